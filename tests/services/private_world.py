"""Two notebooks that differ only in what a session must not see, and all that such a session can ask of either.

What the two answer must be equal, so neither a word of what is withheld nor its amount can be in an answer.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

from notebook_sync import Notebook, NotebookError
from notebook_sync.notebook import load_operations
from notebook_sync.registry import OPERATIONS, Operation, as_json, call, for_model, plain_type
from notebook_sync.sessions import Session
from tests.conftest import Copies
from tests.services.conftest import NAMELESS, OWNER, PILOT, SCRIBE, STRANGER, write_files

# In place of each other; in nothing else that is written here.
CANARY, NONSENSE = "quillfeather", "brackenthorn"
_NOON = 1_767_700_000
FOLDER = "channels/scribe"

TILL = f"pages/{CANARY}-till.md"

PUBLIC = {
    "notebook.toml": (
        '[notebook]\nid = "harbour"\ntimezone = "UTC"\n[search]\nembeddings = "off"\n'
        f'[[prompt.files]]\npath = "{TILL}"\nsessions = ["owner"]\n'
    ),
    "pages/ferry.md": "---\nid: ferry-page\ntags: [rope]\n---\n# Ferry\n\nThe ferry needs rope. [[ice]]\n",
    "research_notes/ice.md": "---\ntags: [winter]\n---\n# Ice\n\nRope freezes in January. [[ferry]]\n",
    "facts/notes.md": "# Facts\n\n## Important Facts\n\n- Rope is dear\n",
    "facts/core.md": "# Core\n\n- The harbour is called Quay\n",
    "memories/decision/rope.md": "---\nid: k3v9\ntags: [rope]\n---\n# Buy rope\n\n## Context\n\nRope is dear.\n",
    "runtime/standing-orders.md": "# Standing Orders\n\n- Pay for the ferry\n\n- Sail\n",
    "channels/pilot/global/berth.md": "---\ntopic: berths\n---\n# Berth\n\nRope lies at the berth.\n",
    "channels/odile/global/channel.toml": '[members]\npilot = ["read"]\n',
    "channels/odile/global/shared.md": "# Shared\n\nRope that Odile shares.\n",
}
# What is added to them, or hidden in them.
HIDDEN = {
    TILL: f"---\nid: {CANARY}-id\naliases: [{CANARY}]\n---\n# {CANARY} rope\n\nrope rope [[ferry]] #rope\n",
    TILL.replace(".md", ".sync-conflict-20260101-101010.md"): f"# {CANARY} copy\n\nrope\n",
    "facts/core.md": (
        f"# Core\n\n- The harbour is called Quay<!-- {CANARY} rope -->\n- {CANARY} rope [until 2020-01-01]\n"
    ),
    "runtime/standing-orders.md": (
        f"---\ntitle: {CANARY}\nid: {CANARY}-orders\ntags: [rope]\nstatus: complete\ncreated_by: agent:scribe\n---\n"
        f"# Standing Orders\n\n- Pay for the ferry<!-- {CANARY} rope -->\n\n- Sail\n"
        f"- {CANARY} rope [until 2020-01-01]\n%% {CANARY} [[ferry]] %%\n"
    ),
}
_PRIVATE_TEXT = (
    f"---\nid: {{id}}\ntopic: {CANARY}-topic\ntags: [{CANARY}tag, rope]\nstatus: complete\n---\n"
    f"# {CANARY} {{id}}\n\nThe {CANARY} hides rope. [[{CANARY}]] [[ferry]] #{CANARY}inline\n\n"
    f"## {CANARY} section\n\nrope\n"
)
KEPT, MOVED, GONE = (f"{FOLDER}/global/{CANARY}-{name}.md" for name in ("kept", "moved", "gone"))
SHARED_BY_SCRIBE = f"{FOLDER}/{CANARY}-project/{CANARY}-hand.md"
NAMES = [KEPT, MOVED, SHARED_BY_SCRIBE, GONE, TILL, *(f"{CANARY}-{name}" for name in ("kept", "gone", "id", "orders"))]


@contextmanager
def both(copies: Copies, folder: Path) -> Iterator[tuple[Notebook, Notebook]]:
    """A notebook with private notes and hidden text, and the same with neither."""
    roots = [copies.put(_build, folder / str(with_private), with_private) for with_private in (True, False)]
    with Notebook.open(roots[0]) as one, Notebook.open(roots[1]) as other:
        for notebook in (one, other):
            assert bool(notebook.notes.search(CANARY, SCRIBE).results) == (notebook is one)
            assert bool(notebook.channels.search(CANARY, SCRIBE).results) == (notebook is one)
        yield one, other


def _build(root: Path, with_private: bool) -> None:
    """Make one of them, and sync it."""
    write_files(root, PUBLIC | (HIDDEN if with_private else {}))
    for number, path in enumerate(PUBLIC):
        os.utime(root / path, (_NOON + number, _NOON + number))
    with Notebook.open(root) as notebook:
        notebook.core.engine.sync()
        if with_private:
            _work_in_private(notebook)
        notebook.notes.update("pages/ferry.md", SCRIBE, content="Two coils.", append=True)
        os.utime(root / "pages/ferry.md", (_NOON + 50, _NOON + 50))
        notebook.core.engine.sync()


def _work_in_private(notebook: Notebook) -> None:
    """Do with private notes all that can be done with some."""
    places = {"kept": KEPT, "moves": f"{FOLDER}/global/moves.md", "hand": SHARED_BY_SCRIBE, "gone": GONE}
    write_files(notebook.root, {path: _PRIVATE_TEXT.format(id=f"{CANARY}-{name}") for name, path in places.items()})
    write_files(notebook.root, {f"{FOLDER}/global/{CANARY}.png": "no note"})
    write_files(notebook.root, {f"{FOLDER}/{CANARY}-project/channel.toml": '[members]\nherring = ["read", "write"]\n'})
    notebook.core.engine.sync()
    notes = notebook.notes
    notes.update(KEPT, SCRIBE, title=f"{CANARY} again", summary=f"{CANARY} rope", tags=[CANARY])
    notes.undo(KEPT, SCRIBE)
    notes.rename(places["moves"], MOVED, SCRIBE, links=True)
    notes.delete(GONE, SCRIBE)
    notes.update(TILL, OWNER, summary=f"{CANARY} till")
    assert CANARY in notes.read(f"{CANARY}-kept", SCRIBE).text
    own = {"topic": f"{CANARY}-topic", "tags": [f"{CANARY}tag", "rope"], "metadata": {CANARY: "rope"}}
    for project in ("", f"{CANARY}-project"):
        notebook.channels.write(f"{CANARY} rope of the ferry", SCRIBE, project=project, session_id=CANARY, **own)


# Sessions that see no note of the scribe and nothing that is hidden.
OUTSIDERS = [PILOT, NAMELESS, Session.external("herald"), STRANGER]

Asked = tuple[Operation, dict[str, Any]]

# What every argument of this name may be, where its type does not say it.
_USUAL = {
    "id": "pages/ferry.md",
    "query": "rope",
    "to": "pages/taken.md",
    "text": "rope",
    "title": " ",
    "content": " ",
    "fact": "Rope is dear",
}
_EXTRAS: dict[str, Any] = {
    "limit": 100,
    "dry_run": True,
    "history": True,
    "explain": True,
    "links": True,
    "include": ["refs", "facts", "notes"],
}
_FILTERS: tuple[dict[str, Any], ...] = (
    *({"collection": name} for name in ("channels", "runtime", "pages")),
    *({"author": name} for name in ("agent:scribe", "owner")),
    *({"status": name} for name in ("draft", "complete")),
    *({"tags": ["rope"]}, {"since": "2020-01-01"}),
)


def plain_questions() -> Iterator[Asked]:
    """Every operation with arguments in which nobody guesses."""
    load_operations()
    for operation in OPERATIONS.values():
        usual = _required(operation)
        yield operation, usual
        for name in _EXTRAS.keys() & operation.hints.keys():
            yield operation, {**usual, name: _EXTRAS[name]}
    ask = OPERATIONS.__getitem__
    for filters in _FILTERS:
        for limit in (1, 100):
            yield ask("list"), {**filters, "limit": limit}
            yield ask("search"), {"query": "", **filters, "limit": limit}
            yield ask("search"), {"query": "rope the plan hides", **filters, "limit": limit, "explain": True}
    for name in (*PUBLIC, "standing-orders", "core", "reminders", "channels", FOLDER, f"{FOLDER}/global"):
        if CANARY not in name:
            yield ask("list"), {"linked_to": name, "limit": 1}
            yield ask("update"), {"id": "pages/nowhere", "supersedes": name}
            yield ask("read"), {"id": name, "history": True}
            yield ask("history"), {"id": name}
            yield ask("diff"), {"id": name}
    for channel in ("scribe", "odile", "pilot", ""):
        for query in ("", "rope"):
            for project in ("", "global"):
                of = {"project": project, "channel": channel} if channel else {"project": project}
                yield ask("note search"), {"query": query, **of, "tags": ["rope"]}
                yield ask("note search"), {"query": query, **of, "profile": "similarity", "limit": 1}
                yield ask("note peek"), {"channel": "scribe", "query": query, **of}
        yield ask("note recent"), {"channel": channel}
        yield ask("note write"), {"channel": channel, "content": " "}
    yield ask("rename"), {"id": "research_notes/ice", "to": "pages/ice", "dry_run": True}


def guesses() -> Iterator[Asked]:
    """Every operation asked for exactly what is there, by each of its text arguments."""
    load_operations()
    words = (CANARY, f"{CANARY}tag", f"{CANARY}-topic", f"{CANARY}-section", f"{CANARY} again", *NAMES)
    for operation in OPERATIONS.values():
        usual = _required(operation)
        texts = [name for name, hint in operation.hints.items() if plain_type(hint) is str and name != "return"]
        for word in words:
            for name in texts if operation.effect == "read" else operation.hints.keys() & {"id"}:
                yield operation, {**usual, name: word}
            if "tags" in operation.hints and operation.effect == "read":
                yield operation, {**usual, "tags": [word]}
    ask = OPERATIONS.__getitem__
    for name in NAMES:
        stem = name.removesuffix(".md")
        for spelled in (
            stem,
            stem.rpartition("/")[2],
            f"{name}#{CANARY}-section",
            f"[[{stem}|x]]",
            f"pages/../{name}",
            f"./{name}",
        ):
            yield ask("read"), {"id": spelled}
        yield ask("update"), {"id": name, "title": "x"}
        yield ask("update"), {"id": "pages/idea", "supersedes": name}
        yield ask("list"), {"linked_to": name}
        yield ask("update"), {"id": name, "title": "x", "expected_digest": "0" * 64}
        yield ask("delete"), {"id": name, "expected_digest": "0" * 64}
        if name.startswith("channels"):
            yield ask("rename"), {"id": "pages/ferry.md", "to": name, "dry_run": True}


def _required(operation: Operation) -> dict[str, Any]:
    """Arguments that the operation cannot do without. A write names a note that is nowhere."""
    given: dict[str, Any] = {}
    for name in operation.arguments.__struct_fields__:
        if name in operation.parameters and operation.parameters[name].default is operation.parameters[name].empty:
            choices = [each for each in get_args(plain_type(operation.hints[name])) if isinstance(each, str)]
            given[name] = choices[0] if choices else _USUAL.get(name, "rope")
    return given | ({"id": "pages/nowhere.md"} if "id" in given and operation.effect != "read" else {})


def answer(notebook: Notebook, asked: Asked, session: Session) -> str:
    """What a session reads, as one text, without what differs between two askings of the same thing."""
    operation, given = asked
    try:
        result: Any = as_json(for_model(call(notebook, operation, given, session)))
    except NotebookError as error:
        result = error.as_json()
    text = json.dumps(result, ensure_ascii=False, sort_keys=True).replace(str(notebook.root), "ROOT")
    for pattern, put in _PASSING:
        text = pattern.sub(put, text)
    return text


# What depends on a clock, or is random.
_PASSING: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(Z|\+\d\d:\d\d)?"), "TIME"),
    (re.compile(r"\b[0-9a-f]{40}\b"), "COMMIT"),
    (re.compile(r'"id": "[0-9a-f]+", "kept"|"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"'), "ID"),
    (re.compile(r"(sha256:|- context `)[0-9a-f]{64}"), r"\1HASH"),  # of the question, too
    (re.compile(r'"token_count": \d+'), "TOKENS"),  # of the question
    (re.compile(r'"(seconds|p50_ms|p95_ms)": ?[-\d.e]+'), r'"\1": 0'),
)


def worded(text: str, word: str) -> str:
    """An answer without the word that was asked about, its tokens, and the name of a fence around it."""
    return re.sub(r'"tokens": \d+|external-text id=\\"[0-9a-f]+', "WORD", text.replace(word, "WORD"))


def disguised(asked: Asked) -> Asked:
    """The same question about what is nowhere."""
    operation, given = asked
    return operation, json.loads(json.dumps(given).replace(CANARY, NONSENSE))
