"""How editors write: nobody who reads the index meanwhile sees a deleted note or half a file."""

import os
import random
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.processes import repeating
from tests.sync.conftest import Follow, Following, every_state_of
from tests.sync.world import World
from tests.waiting import eventually

OLD, NEW = "---\ntitle: A\n---\nold\n", "---\ntitle: A\n---\nnew\n"


@pytest.fixture
def root(root: Path) -> Path:
    (root / "other.md").write_text("other")
    (root / "a.md").write_text(OLD)
    return root


@pytest.fixture
def patient(root: Path, following: Follow) -> Iterator[Following]:
    """A watcher that takes no half of a save for all of it, however slow the machine is."""
    with following(settle_ms=60_000) as found:
        yield found


def vim(*options: str) -> Callable[[Path], None]:
    def save(path: Path) -> None:
        settings = [part for option in options for part in ("-c", f"set {option}")]
        command = ["vim", "-u", "NONE", "-i", "NONE", "-es", *settings, "-c", "%s/old/new/", "-c", "wq", str(path)]
        environ = {**os.environ, "TERM": "dumb"}
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True, env=environ)

    return save


def sed(path: Path) -> None:
    subprocess.run(["sed", "-i", "s/old/new/", str(path)], check=True)


def truncate_then_write(path: Path) -> None:
    """VS Code, and every `open(path, "w")`: an empty file, then the text."""
    with path.open("w") as file:
        file.write(NEW)


def rename_away_then_create(path: Path) -> None:
    """Backups by renaming."""
    path.rename(f"{path}~")
    path.write_text(NEW)
    Path(f"{path}~").unlink()


def delete_then_create(path: Path) -> None:
    path.unlink()
    path.write_text(NEW)


def replace_through_a_temporary_file(path: Path) -> None:
    temporary = path.with_name("a.md.tmp")
    temporary.write_text(NEW)
    temporary.replace(path)


by_vim = [
    pytest.param(vim("swapfile", "backup", "backupcopy=no"), id="vim, renaming"),
    pytest.param(vim("swapfile", "backup", "backupcopy=yes"), id="vim, copying"),
    pytest.param(vim("swapfile", "nobackup", "backupcopy=auto"), id="vim, its default"),
]
others = [sed, truncate_then_write, rename_away_then_create, delete_then_create, replace_through_a_temporary_file]


@pytest.mark.parametrize("save", [*(by_vim if shutil.which("vim") else ()), *others])
def test_a_save_is_one_change_of_one_note(root: Path, patient: Following, save: Callable[[Path], None]) -> None:
    with every_state_of(patient.world, "a.md") as seen:
        eventually(lambda: seen == {"old\n"}, "the old text is seen")
        save(root / "a.md")
        patient.becomes({"a.md": "new\n", "other.md": "other"})
        eventually(lambda: "new\n" in seen, "the new text is seen")
        assert (seen, patient.deleted(), patient.world.rows()["a.md"]["version"]) == ({"old\n", "new\n"}, 0, 2)


@pytest.mark.parametrize("pause_after", [0, 5, len("---\ntitle: A\n")])
def test_a_writer_that_pauses_shows_no_half_file(
    root: Path, patient: Following, pause_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pause ends once the half file was looked at, which is well before the settle time has passed."""
    looked = threading.Event()
    look = patient.engine.look

    def noticing(places: set[str], **more: object) -> object:
        try:
            return look(places, **more)  # type: ignore[arg-type]
        finally:
            if "a.md" in (places or ()):
                looked.set()

    with every_state_of(patient.world, "a.md") as seen:
        monkeypatch.setattr(patient.engine, "look", noticing)
        eventually(lambda: seen == {"old\n"}, "the old text is seen")
        with (root / "a.md").open("w") as file:
            file.write(NEW[:pause_after])
            file.flush()
            assert looked.wait(30)
            file.write(NEW[pause_after:])
        patient.becomes({"a.md": "new\n", "other.md": "other"})
        eventually(lambda: "new\n" in seen, "the new text is seen")
        assert (seen, patient.deleted()) == ({"old\n", "new\n"}, 0)


def test_a_page_that_stays_empty_is_indexed_empty(root: Path, watch: Following) -> None:
    (root / "a.md").write_text("")
    watch.becomes({"a.md": "", "other.md": "other"})


@pytest.mark.parametrize("save", [lambda path: path.rename(path.with_name("b.md")), lambda path: _copied(path)])
def test_a_renamed_note_keeps_its_past(
    root: Path, watch: Following, save: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.md").write_text(NEW)
    watch.becomes({"a.md": "new\n", "other.md": "other"})
    look, saving = watch.engine.look, threading.Lock()

    def look_after_it(places: set[str], **more: object) -> object:
        with saving:
            return look(places, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(watch.engine, "look", look_after_it)
    with saving:
        save(root / "a.md")
    watch.becomes({"b.md": "new\n", "other.md": "other"})
    assert watch.world.rows()["b.md"]["version"] == 2
    eventually(lambda: watch.world.actions()[-1:] == [("moved", "b.md")], "the stream says so")


def test_every_look_has_one_of_the_versions_that_were_written(world: World, rng: random.Random) -> None:
    """Torn reads: a writer in a loop, in place and without a pause."""
    versions = [bytes([letter]) * 200_000 for letter in b"abcd"]
    world.write("a.md", versions[0])
    file = (world.root / "a.md").open("r+b", buffering=0)
    with file, repeating(lambda: os.pwrite(file.fileno(), rng.choice(versions), 0)):
        for _ in range(60):
            world.engine.look(["a.md"])
            assert {text.encode() for text in world.texts().values()} <= {*versions}
    world.check()


def _copied(path: Path) -> None:
    """As a file manager does it: a copy, its times and rights, then the end of the original."""
    new = path.with_name("b.md")
    new.write_bytes(path.read_bytes())
    for mode in (0o600, 0o644) * 5:
        new.chmod(mode)
    path.unlink()
