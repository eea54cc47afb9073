"""The sixteen laws of the architecture, each shown once, by files, processes and servers."""

import shutil
import sys
import threading
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Notebook
from notebook_sync.errors import Conflict
from notebook_sync.files.edits import Edit, apply_edits
from notebook_sync.registry import OPERATIONS
from notebook_sync.store.collections import COLLECTIONS, DOCUMENTS
from notebook_sync.surfaces.tools import ALL, call_tool, tool_definitions
from notebook_sync.sync.diff import Look, diff
from prompt import FileText, PromptSettings, assemble
from tests.processes import start_process
from tests.servers import Server, drop_keys, empty_database, hung
from tests.services.conftest import FILES, NAMELESS, OWNER, SCRIBE, STRANGER, write_files
from tests.store.mirrors import Database, Keys
from tests.waiting import eventually

FERRY, OFF = "pages/ferry.md", '[search]\nembeddings = "off"\n'


@pytest.fixture
def notebook(folder: Path) -> Iterator[Notebook]:
    with Notebook.open(write_files(folder, FILES)) as opened:
        opened.sync()
        yield opened


def refs_to(url: str, prefix: str = "aether") -> str:
    return f'{OFF}[refs]\nurl = "{url}"\nprefix = "{prefix}"\n'


def projected(notebook: Notebook) -> list[dict[str, Any]]:
    """All that the index derives from the files of notes."""
    names = [each.name for each in DOCUMENTS.columns if not each.kept and not each.observed]
    return notebook.core.index.documents.find(fields=["id", *names, *DOCUMENTS.many])


def notes_on_disk(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.glob("[!.]*/**/*.md")}


def run_together(*calls: tuple[Any, ...]) -> None:
    """Call functions, each in a process of its own; all must succeed."""
    for process in [start_process(*each) for each in calls]:
        process.join(90)
        assert process.exitcode == 0


def test_law_01_files_are_truth(
    folder: Path, mongodb_url: str, mongo_database: str, redis_url: str, redis_prefix: str
) -> None:
    mirror = f'[mirror]\nurl = "{mongodb_url}"\ndatabase = "{mongo_database}"\n'
    write_files(folder, FILES | {"notebook.toml": refs_to(redis_url, redis_prefix) + mirror})
    mongo, keys, seen = Database(mongodb_url, mongo_database), Keys(redis_url, redis_prefix), list[Any]()
    for _ in range(2):
        with Notebook.open(folder) as notebook:
            notebook.admin.rebuild()
            seen.append((projected(notebook), mongo.texts(), keys.refs()))
            shutil.rmtree(notebook.core.place.state)
        empty_database(mongodb_url, mongo_database)
        drop_keys(redis_url, redis_prefix)
    assert (seen[0], [len(each) > 5 for each in seen[0]]) == (seen[1], [True] * 3)
    mongo.client.close()


def test_law_02_the_engine_never_rewrites_a_persons_file(notebook: Notebook) -> None:
    old = b"\xef\xbb\xbf---\r\ntitle:  'A' # why\r\n---\r\n# A\r\n\r\n* one\r\n\n# B \r\n\t tail"
    write_files(notebook.root, {"pages/odd.md": old.decode(), "pages/broken.md": "---\ntitle: [\n---\n"})
    before = notes_on_disk(notebook.root)
    for work in (notebook.sync, notebook.admin.rebuild, notebook.admin.status, notebook.prompt, notebook.prompts.check):
        work()
    assert notes_on_disk(notebook.root) == before
    notebook.notes.edit("pages/odd", "append_to_section", section="A", content="* two")
    new = old.replace(b"* one\r\n", b"* one\r\n* two\r\n")
    assert notes_on_disk(notebook.root) == {**before, "pages/odd.md": new}


def decide_without_io() -> None:
    """Make the decisions of sync, edits and prompt once; then again, in a process that may touch nothing outside."""

    def decide() -> list[object]:
        return [
            diff([Look("a.md", fault="not UTF-8")], {}, {}, {}),
            apply_edits("a.md", b"# A\n\n- x\n", [Edit("append_to_section", section="A", content="- y")]),
            assemble([FileText("a.md", b"# A\n")], "task", PromptSettings(), now=datetime(2026, 3, 1)).text,
        ]

    def refuse(event: str, arguments: Any) -> None:
        assert not event.startswith(("open", "os.", "socket.", "sqlite3.", "subprocess.")), (event, arguments)

    assert all(decide())  # with the imports, and the vocabulary of the token counter
    sys.addaudithook(refuse)
    assert all(decide())
    with pytest.raises(AssertionError):
        Path(__file__).read_bytes()


def test_law_03_plan_purely_then_act() -> None:
    run_together((decide_without_io,))


def test_law_04_the_watcher_says_where_the_scan_says_what(notebook: Notebook) -> None:
    assert notebook.core.engine.look([FERRY]).paths == []  # an event without a change
    write_files(notebook.root, {"pages/deep/new.md": "new", "pages/idea.md": "other", "facts/missed.md": "- A fact\n"})
    assert set(notebook.core.engine.look(["pages"]).paths) == {"pages/deep/new.md", "pages/idea.md"}
    # A follower begins with a look at everything, whatever it missed.
    assert "ready" in {each.kind for each in islice(notebook.watch(), 2)}
    assert notebook.admin.status().facts == 2


def test_law_05_known_state_lives_in_the_row_it_describes(notebook: Notebook) -> None:
    before = projected(notebook)
    with notebook.core.index.write():
        notebook.core.index.documents.delete(["pages/ferry"])
    assert (notebook.sync().added, projected(notebook)) == (1, before)


def test_law_06_index_first_mirrors_after(folder: Path, own_redis: Server) -> None:
    write_files(folder, {"notebook.toml": refs_to(own_redis.url), "pages/eel.md": "Eels leave."})
    own_redis.kill()
    with Notebook.open(folder) as notebook:
        assert notebook.sync().targets[0]["trouble"]
        assert notebook.search("eels").results[0].path == "pages/eel.md"
    own_redis.restart(emptied=True)
    with Notebook.open(folder) as notebook:
        assert (notebook.sync().targets[0]["trouble"], notebook.admin.verify().redis) == ("", 1)
    assert Keys(own_redis.url, "aether").refs() == {"pages/eel"}


def save_and_sync(root: Path, name: str) -> None:
    with Notebook.open(root) as notebook:
        for number in range(15):
            write_files(root, {FERRY: f"{name} {number}"})
            notebook.sync()


def test_law_07_write_then_look_again(notebook: Notebook) -> None:
    run_together((save_and_sync, notebook.root, "one"), (save_and_sync, notebook.root, "two"))
    assert notebook.admin.verify().differences == []


def test_law_08_deletes_come_last_and_need_proof(notebook: Notebook) -> None:
    (notebook.root / FERRY).rename(notebook.root / "pages/boat.md")
    assert notebook.sync().moved == 1
    write_files(notebook.root, {f"pages/many/{number}.md": f"note {number}" for number in range(40)})
    notebook.sync()
    shutil.rmtree(notebook.root / "pages/many")
    assert [notebook.sync().deleted, notebook.sync().deleted] == [0, 40]  # the second look is the proof


def test_law_09_one_bad_file_never_stops_a_run(notebook: Notebook) -> None:
    write_files(notebook.root, {FERRY: "---\ntitle: [\n---\n", "pages/good.md": "good"})
    (notebook.root / "pages/idea.md").write_bytes(b"\xff\x00")
    report = notebook.sync()
    assert (report.added, {each["path"] for each in report.failed}) == (1, {FERRY, "pages/idea.md"})
    found = {row.path: row for row in notebook.search("rope").results}
    assert (found[FERRY].title, bool(found[FERRY].stale)) == ("Ferry", True)


def test_law_10_every_edit_names_its_base(notebook: Notebook) -> None:
    base, theirs = notebook.read(FERRY).digest, "# Ferry\n\nBy hand.\n"
    write_files(notebook.root, {FERRY: theirs})
    with pytest.raises(Conflict) as refused:
        notebook.notes.update(FERRY, content="Mine.", expected_digest=base)
    assert (refused.value.text, (notebook.root / FERRY).read_text()) == (theirs, theirs)
    notebook.notes.update(FERRY, content="Mine.", expected_digest=refused.value.current_digest)
    notebook.notes.undo(FERRY)
    assert (notebook.root / FERRY).read_text() == theirs


@pytest.mark.parametrize("session", [OWNER, SCRIBE, NAMELESS, STRANGER], ids=lambda each: f"{each.kind}-{each.agent}")
def test_law_11_the_session_decides(notebook: Notebook, session: Any) -> None:
    listed = {each["name"] for each in tool_definitions(notebook, session, "mcp", ALL)}
    for operation in filter(lambda each: each.tool, OPERATIONS.values()):
        given = dict.fromkeys({"id", "title", "action", "content"} & operation.parameters.keys(), "write")
        given |= {"channel": "scribe"} if operation.tool == "peek_agent_notes" else {}
        answer = str(call_tool(notebook, operation.tool, given, session))
        is_refused = "not_permitted" in answer or "no_agent_named" in answer
        assert is_refused == (operation.tool not in listed), operation.tool
    assert ("notebook_edit" in listed) == (session == OWNER)


def test_law_12_the_prompt_is_never_stale(notebook: Notebook) -> None:
    assert "Never pay" in notebook.prompt(SCRIBE).text
    write_files(notebook.root, {"runtime/standing-orders.md": "## Boundaries\n\n- Always pay\n"})
    assert "Never pay" not in notebook.prompt(SCRIBE).text


def test_law_13_servers_may_hang_reads_and_prompt_may_not(
    notebook: Notebook, own_mongod: Server, own_redis: Server
) -> None:
    mirror = f'timeout_seconds = 600\n[mirror]\nurl = "{own_mongod.url}"\ntimeout_seconds = 600\n'
    write_files(notebook.root, {"notebook.toml": refs_to(own_redis.url) + mirror})
    done: list[Any] = []

    def use() -> None:
        done.append((notebook.read(FERRY), notebook.search("rope"), notebook.notes.list(), notebook.prompt()))

    with hung(own_mongod), hung(own_redis):
        threading.Thread(target=use, daemon=True).start()
        assert eventually(lambda: done, "reads and prompt answer while both servers hang")


@pytest.mark.parametrize(
    "text",
    [
        "{{ 7*7 }} {% include 'x' %}",
        "'; DROP TABLE documents; --",
        '"a" OR NEAR(* AND',
        "$(touch pwned) `id`",
        "@title:(x) | {$ne: 1}",
        "../../etc/passwd",
    ],
)
def test_law_14_text_is_data(notebook: Notebook, text: str) -> None:
    made = notebook.notes.create(text, content=text)
    write_files(notebook.root, {"runtime/standing-orders.md": f"## Boundaries\n\n- {text}\n"})
    assert notebook.search(text).results[0].path == made.path == f"pages/{Path(made.path).name}"
    assert f"- {text}\n" in notebook.prompt().text


def test_law_15_what_only_a_database_holds_is_declared(notebook: Notebook) -> None:
    notebook.notes.update(FERRY, content="Changed.")
    notebook.sync()
    events, state = notebook.admin.events().results, notebook.core.place.state
    assert notebook.admin.status().only_in_index.keys() >= {
        spec.name for spec in COLLECTIONS if spec.dumped and not any(each.kept for each in spec.columns)
    }
    notebook.core.index.dump(state / "dump")
    (state / "index.db").write_bytes(b"damaged")
    with Notebook.open(notebook.root) as again:
        again.sync()
        assert (again.read(FERRY).version, again.admin.events().results) == (2, events or "an edit")


def test_law_16_a_notebook_owns_its_stores(
    notebook: Notebook, tmp_path: Path, redis_url: str, redis_prefix: str
) -> None:
    toml, keys = {"notebook.toml": refs_to(redis_url, redis_prefix)}, Keys(redis_url, redis_prefix)
    write_files(notebook.root, toml)
    notebook.sync()
    before = keys.mark(), keys.refs()
    with Notebook.open(write_files(tmp_path / "other", toml | {"pages/other.md": "other"})) as other:
        assert "belongs to" in other.sync().targets[0]["trouble"]
    assert (keys.mark(), keys.refs()) == before
