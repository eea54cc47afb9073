"""The product as people run it: a folder of notes, the command line as processes, and servers behind two URLs."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from notebook_sync import Notebook, Session
from notebook_sync.config import load
from notebook_sync.files.note import HISTORY_LIMIT
from notebook_sync.mirror.document import canonical
from notebook_sync.refs.entry import ref_fields
from tests import forked
from tests.waiting import eventually

REPOSITORY = Path(__file__).parents[2]
SETTINGS = """
[sync]
settle_ms = 40
reconcile_seconds = 3600
[mirror]
database = "{database}"
timeout_seconds = 1
[refs]
prefix = "{prefix}"
timeout_seconds = 1
"""


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class World:
    """A notebook, and where its stores are: embedded, where a URL is not given."""

    root: Path
    mongodb_url: str = ""
    redis_url: str = ""

    def on(self, mongodb_url: str = "", redis_url: str = "") -> World:
        """The same notebook on other stores."""
        return replace(self, mongodb_url=mongodb_url, redis_url=redis_url)

    @property
    def urls(self) -> dict[str, str]:
        return {"MONGODB_URL": self.mongodb_url, "REDIS_URL": self.redis_url}

    @contextlib.contextmanager
    def notebook(self) -> Iterator[Notebook]:
        with Notebook(self.root, load(self.root, self.urls)) as notebook:
            yield notebook

    def run(self, *arguments: str) -> Done:
        """One command, to its end."""
        done = forked.run(["-C", str(self.root), *arguments], env=self._environment())
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def live(self, *arguments: str) -> subprocess.Popen[str]:
        """Start one of `tests.integration.lives` with this notebook."""
        command, *more = arguments
        return subprocess.Popen(
            [*forked.command("tests.integration.lives"), command, str(self.root), *more],
            env=self._environment(),
            stderr=subprocess.PIPE,
            text=True,
        )

    @contextlib.contextmanager
    def watching(self) -> Iterator[Watching]:
        """`notebook-sync watch` as a process, ready, and ended well afterwards."""
        process = subprocess.Popen(
            [*forked.command(), "-C", str(self.root), "watch", "--json"],
            env=self._environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        watching = Watching(process)
        try:
            eventually(lambda: watching.told("ready") or process.poll() is not None, "the watch is ready")
            assert process.poll() is None
            yield watching
            process.terminate()
            assert process.wait(30) == 0
        finally:
            process.kill()
            process.wait()
            watching.close()

    def write(self, path: str, text: str) -> None:
        """Save a file as an editor does: whole, in one step."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_name(f".{file.name}.tmp")
        beside.write_text(text)
        beside.replace(file)

    def commit_all(self, message: str) -> None:
        """Commit with git, which keeps the notes' past."""
        git = ["git", "-C", str(self.root), "-c", "user.name=A", "-c", "user.email=a@example.org"]
        for arguments in (["init", "-q"], ["add", "--all"], ["commit", "-qm", message]):
            subprocess.run([*git, *arguments], check=True)

    def git(self, *arguments: str) -> str:
        """What git answers in the notebook."""
        return subprocess.run(
            ["git", "-C", str(self.root), *arguments], capture_output=True, text=True, check=True
        ).stdout

    def documents(self) -> dict[str, dict[str, Any]]:
        """By path, every document of the mirror, in canonical form."""
        with self.notebook() as notebook:
            return {document["path"]: canonical(document) for document in notebook.mirror.documents()}

    def whole(self) -> dict[str, dict[str, Any]]:
        """By path, every document as it is."""
        with self.notebook() as notebook:
            return {document["path"]: document for document in notebook.mirror.documents()}

    def refs(self) -> dict[str, dict[str, Any]]:
        """By id, every ref that hot memory holds."""
        with self.notebook() as notebook:
            ids = [note_id for note_id, _, _ in notebook.refs.digests()]
            return {note_id: notebook.refs.get(note_id) or {} for note_id in ids}

    def stream(self) -> list[tuple[str, str, str]]:
        """Note, action and version of each entry of today's stream."""
        with self.notebook() as notebook:
            day = datetime.now(UTC).astimezone(notebook.settings.timezone).date().isoformat()
            entries = notebook.refs.day(day)
        return [(entry["ref"]["notebook_id"], entry["action"], entry["ref"]["version"]) for entry in entries]

    def prompt(self) -> str:
        with self.notebook() as notebook:
            return notebook.prompt(Session.owner()).text

    def is_consistent(self) -> bool:
        with self.notebook() as notebook:
            return notebook.admin.verify().consistent

    def converges(self) -> None:
        """Files, mirror and refs agree, after a while."""
        try:
            eventually(self.is_consistent, "files, mirror and refs agree", 45)
        except AssertionError:
            with self.notebook() as notebook:
                assert notebook.admin.verify().differences == []

    def assert_whole(self) -> None:
        """Files = mirror = refs, and no version is missing, doubled, or unknown to the refs."""
        paths = [str(file.relative_to(self.root)) for file in self.root.rglob("*.md")]
        visible = [path for path in paths if not path.startswith(".")]
        digests = {path: sha256((self.root / path).read_bytes()).hexdigest() for path in visible}
        documents = self.whole()
        assert {path: document["source"]["digest"] for path, document in documents.items()} == digests
        for document in documents.values():
            versions = [crumb["version"] for crumb in document["history"]]
            version = document["metadata"]["version"]
            assert versions == list(range(max(1, version - HISTORY_LIMIT + 1), version + 1)), document["path"]
        with self.notebook() as notebook:
            expected = {ref.id: ref_fields(ref) for ref in notebook.mirror.refs()}
        assert self.refs() == expected

    def _environment(self) -> Mapping[str, str]:
        return {**os.environ, "PYTHONPATH": str(REPOSITORY), **self.urls}


class Watching:
    """A watch that runs, and what it has told."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.events: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def told(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == kind]

    def tells(self, kind: str, times: int = 1) -> None:
        eventually(lambda: len(self.told(kind)) >= times, f"the watch tells {kind}: {self.events}", 45)

    def close(self) -> None:
        self._reader.join(10)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.append(json.loads(line))
