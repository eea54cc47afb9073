"""The commands of the agent notebook: what they take, the shapes of their JSON, exit codes, what people read."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from notebook_sync.notebook import Notebook
from notebook_sync.surfaces.cli.text.channels import of_private_notes
from notebook_sync.surfaces.cli.text.notes import of_notes
from notebook_sync.surfaces.cli.text.rendering import Shown
from notebook_sync.surfaces.cli.text.rows import aligned, columns, cut
from notebook_sync.surfaces.cli.text.stream import of_entries

Answer = Callable[..., Any]
Told = Callable[..., tuple[int, str, str]]


@pytest.fixture
def pages(root: Path) -> None:
    """Three notes of one harbour, mirrored."""
    (root / "pages/ferry.md").write_text(
        "---\ntags: [ferry, winter]\nstatus: complete\ncreated_by: agent:scribe\n---\n# Ferry\n\nIts halyard is new.\n"
    )
    (root / "pages/pier.md").write_text("---\ntags: [harbour]\n---\n# Pier\n\nA halyard lies here.\n")
    (root / "research_notes/ice.md").write_text("---\ntags: [winter]\n---\n# Ice\n\nThe halyard freezes in January.\n")
    (root / "channels/scribe/global").mkdir(parents=True)
    (root / "channels/scribe/global/key.md").write_text("# Key\n\nInes has the key and the halyard.\n")
    with Notebook.open(root) as notebook:
        notebook.sync()


def titles(rows: list[dict[str, Any]]) -> set[str]:
    return {row["title"] for row in rows}


@pytest.mark.usefixtures("pages")
@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--tags", "winter"], {"Ferry", "Ice"}),
        (["--tags", " harbour, winter,"], {"Ferry", "Ice", "Pier"}),
        (["--author", "agent:scribe"], {"Ferry"}),
        (["--status", "complete"], {"Ferry"}),
        (["--since", "1d"], {"Ferry", "Ice", "Pier", "Key"}),
        (["--since", "2199-01-01"], set()),
        (["--until", "2001-01-01T10:00Z"], set()),
        (["--session", "task"], {"Ferry", "Ice", "Pier"}),
        (["--session", "task", "--agent", "scribe"], {"Ferry", "Ice", "Pier", "Key"}),
        (["--session", "task", "--agent", "pilot", "--tags", "winter"], {"Ferry", "Ice"}),
        (["--session", "external", "--agent", "scribe"], {"Ferry", "Ice", "Pier"}),
    ],
)
def test_lists_and_searches_are_narrowed_alike(answer: Answer, options: list[str], found: set[str]) -> None:
    assert titles(answer("search", "halyard", "--mode", "keyword", *options)) == found
    listed = [row for row in answer("list", *options) if row["collection"] != "runtime"]
    assert titles(listed) - {"Plan"} == found


@pytest.mark.parametrize(
    ("call", "told_what"),
    [
        (["list", "--tags", ""], "name the tags, parted by commas, as in: --tags ferry,winter"),
        (["search", " "], "say what to look for"),
        (["list", "--since", "last week"], "'last week' is not a date; write a day like 2026-02-18"),
        (["search", "ferry", "--until", "7x"], "'7x' is not a date"),
        (["search", "ferry", "--collection", "page"], "there is no collection 'page'; use one of "),
        (["search", "ferry", "--status", "done"], "there is no status 'done'; use one of draft"),
    ],
)
def test_an_option_that_means_nothing_teaches(told: Told, call: list[str], told_what: str) -> None:
    code, printed, complaint = told(*call)
    assert (code, printed) == (2, "")
    assert told_what in complaint


@pytest.mark.usefixtures("pages")
def test_nothing_found_says_what_left_nothing(told: Told) -> None:
    assert told("search", "winch", "--mode", "keyword") == (
        *(0, ""),
        "notebook-sync: nothing found; a note is found once sync has seen it\n",
    )
    code, printed, complaint = told("list", "pages", "--author", "scribe", "--since", "7d")
    assert (code, printed) == (0, "")
    assert "no notes with this collection and --author and --since; an agent is named as agent:scribe" in complaint


WRITTEN = {
    *("notebook_id", "path", "title", "collection", "version", "status", "digest", "changed", "commit", "warnings"),
}


def test_what_is_created_is_a_file_that_reads_back(answer: Answer, root: Path, tmp_path: Path) -> None:
    (tmp_path / "tides.py").write_bytes(b"print('nine')\r\n")
    made = answer(
        *("create", "code_snippets", "--title", "Tide table", "--content-file", str(tmp_path / "tides.py")),
        *("--tags", " ferry, winter,", "--summary", "When it is high", "--status", "complete"),
        *("--language", "python", "--description", "Prints it", "--related-page", "plan"),
        *("--session", "task", "--agent", "scribe"),
    )
    assert made.keys() == WRITTEN
    assert (made["version"], made["status"], made["collection"]) == (1, "complete", "code_snippets")
    assert made["digest"] == sha256((root / made["path"]).read_bytes()).hexdigest()
    assert b"\n```python\r\nprint('nine')\r\n```" in (root / made["path"]).read_bytes()
    read = answer("read", made["notebook_id"])
    assert read["path"] == made["path"]
    assert (read["title"], read["summary"], read["metadata"]["created_by"]) == (
        *("Tide table", "When it is high"),
        "agent:scribe",
    )
    assert read["metadata"]["tags"] == ["ferry", "winter"]
    assert (read["language"], read["description"], read["related_page"]) == ("python", "Prints it", "plan")


def test_the_fields_of_a_research_note_are_set_and_taken_away(answer: Answer) -> None:
    made = answer(
        *("create", "research_notes", "--title", "Ice", "--content", "", "--source-url", "https://ice.example"),
        *("--key-finding", "It is early", "--key-finding", "It is thin", "--confidence", "0.8"),
        *("--related-pages", "plan, tides", "--session", "owner"),
    )
    read = answer("read", made["notebook_id"])
    assert read["key_findings"] == ["It is early", "It is thin"]
    assert (read["confidence"], read["related_pages"]) == (0.8, ["plan", "tides"])
    changed = answer(
        *("update", made["notebook_id"], "--key-finding", "", "--related-pages", "", "--source-url", ""),
        *("--tags", "winter", "--session", "owner"),
    )
    assert changed.keys() == WRITTEN
    assert set(changed["changed"]) == {"key_findings", "related_pages", "source_url", "tags"}
    read = answer("read", made["notebook_id"])
    assert (read["key_findings"], read["related_pages"], read["source_url"]) == ([], [], None)
    assert (read["confidence"], read["metadata"]["version"]) == (0.8, 2)
    assert answer("update", made["notebook_id"], "--tags", "", "--session", "owner")["changed"] == ["tags"]


@pytest.mark.parametrize(
    ("call", "code", "told_what"),
    [
        (["create", "pages", "--content", "x"], 2, "create needs --title"),
        (["create", "facts", "--title", "x", "--content", "x"], 2, "notes are made in pages, code_snippets"),
        (["create", "pages", "--title", " ", "--content", "x"], 2, "a title needs at least one word"),
        (["create", "pages", "--title", "x", "--content", "x", "--language", "c"], 2, "has no field 'language'"),
        (["create", "pages", "--title", "x", "--content", "x", "--confidence", "nan"], 2, "'nan' is not a number from"),
        (["create", "pages", "--title", "x", "--content", "x", "--content-file", "x"], 2, "give it once"),
        (["create", "pages", "--title", "x", "--content-file", "nowhere"], 2, "--content-file nowhere cannot be read"),
        (["create", "pages", "--title", "x", "--content", "\udcff"], 2, "the content cannot be written"),
        (["update", "pages/plan"], 2, "say what is to change"),
        (["update", "nowhere", "--title", "x"], 1, "no note has the id or path 'nowhere'"),
        (["note", "write", " ", "--agent", "scribe"], 2, "the note is empty"),
        (["note", "write", "x"], 2, "--agent scribe"),
        (["note", "write", "x", "--agent", "../x"], 2, "is no agent's name"),
        (["note", "write", "x", "--agent", "scribe", "--project", "../x"], 2, "is no project's id"),
        (
            ["note", "write", "x", "--agent", "scribe", "--meta", "x"],
            2,
            "--meta: 'x' is not KEY=VALUE; write it as in: ",
        ),
        (["note", "write", "x", "--agent", "scribe", "--meta", "a=1", "--meta", "a =2"], 2, "--meta gives 'a' twice"),
        (["note", "write", "x", "--agent", "scribe", "--meta", "provenance=owner"], 2, "cannot set 'provenance'"),
        (["note", "search", "x", "--agent", "scribe", "--since", "?"], 2, "'?' is not a date"),
        (["stream", "log", "x", "--tags", "two words"], 2, "'two words' is no tag"),
        (["stream", "log"], 2, "give the content, as in: notebook-sync stream log"),
        (["rollback", "6f1c", "--session", "owner"], 1, "there is no checkpoint '6f1c'; see: notebook-sync checkpoint"),
        (["export", "../x.tar.gz", "--session", "task"], 3, "Only the owner may export"),
        (["export", "", "--session", "owner"], 2, "name a file"),
        (["import", "nowhere.tar.gz", "\0"], 2, "name a file"),
        (["import", "nowhere.tar.gz"], 2, "name a folder for the notebook"),
        (["import", "nowhere.tar.gz", "x"], 1, "nowhere.tar.gz"),
        (["import", "--v2", "nowhere.json", "x"], 2, "leave DIR out"),
        (["import", "--v2", "nowhere.json", "--session", "owner"], 2, "nowhere.json cannot be read"),
        (["import", "--v2", "nowhere.json", "--session", "task"], 3, "only available in owner conversations"),
    ],
)
def test_a_call_that_cannot_be_done_teaches_and_writes_nothing(
    told: Told, root: Path, call: list[str], code: int, told_what: str
) -> None:
    before = sorted(root.rglob("*.md"))
    found, printed, complaint = told(*call)
    assert (found, printed) == (code, "")
    assert told_what in complaint
    assert sorted(root.rglob("*.md")) == before


def test_the_fields_of_a_private_note(answer: Answer, root: Path) -> None:
    made = answer(
        *("note", "write", "Ines has the key", "--agent", "scribe", "--topic", "harbour", "--tags", "keys,ines"),
        *("--session-id", "morning", "--project", "harbour-2026", "--meta", "confidence=0.9", "--meta", "berth=007"),
        *("--meta", "seen=NaN", "--meta", "piers=[2, 3]", "--meta", "told by=Odile=mate"),
    )
    assert made.keys() == WRITTEN
    assert made["path"].startswith("channels/scribe/harbour-2026/")
    text = (root / made["path"]).read_text()
    for line in ("confidence: 0.9", 'berth: "007"', "seen: NaN", "piers: [2, 3]", 'told by: "Odile=mate"'):
        assert f"\n{line}\n" in text
    (row,) = answer("note", "search", "key", "--agent", "scribe", "--project", "harbour-2026")["results"]
    assert (row["topic"], row["session_id"], row["tags"]) == ("harbour", "morning", ["keys", "ines"])
    assert (row["confidence"], "content" in row) == (0.9, False)


def test_private_notes_are_narrowed(answer: Answer) -> None:
    for text, *options in (
        ("One", "--topic", "harbour", "--tags", "keys"),
        ("Two", "--session-id", "morning"),
        ("Three", "--project", "harbour-2026"),
    ):
        answer("note", "write", text, "--agent", "scribe", *options)
    answer("note", "write", "Four", "--agent", "pilot")

    for options, found in (
        ((), ["Four", "Three", "Two", "One"]),
        (("--agent", "scribe"), ["Three", "Two", "One"]),
        (("--channel", "pilot"), ["Four"]),
        (("--agent", "scribe", "--limit", "1"), ["Three"]),
        (("--agent", "scribe", "--topic", "harbour"), ["One"]),
        (("--agent", "scribe", "--session-id", "morning"), ["Two"]),
        (("--agent", "scribe", "--project", "global"), ["Two", "One"]),
    ):
        rows = answer("note", "recent", "--session", "owner", *options)["results"]
        assert [row["title"] for row in rows] == found, options
    assert titles(answer("note", "search", "--agent", "scribe", "--tags", "keys,locks")["results"]) == {"One"}
    assert answer("note", "search", "--agent", "scribe", "--until", "1d", code=1)["results"] == []
    assert len(answer("note", "search", "--agent", "scribe", "--since", "1d")["results"]) == 3


def test_the_shapes_of_json(answer: Answer, tmp_path: Path) -> None:
    file = str(tmp_path / "ferry.tar.gz")
    for call, keys in (
        (("export", file, "--session", "owner"), "path notes files bytes commits left_out warnings"),
        (("import", file, str(tmp_path / "again")), "root files bytes commits notes entries longterm checkpoints"),
    ):
        assert answer(*call).keys() == set(keys.split()), call


def test_an_older_export_with_a_bad_note_ends_with_failures(answer: Answer, told: Told, tmp_path: Path) -> None:
    channel = {"id": "global:agent-notes:scribe", "messages": [{"id": "m1", "content": 7}]}
    (tmp_path / "older.json").write_text(json.dumps({"channels": [channel]}))
    call = ("import", "--v2", str(tmp_path / "older.json"), "--session", "owner")
    imported = answer(*call, code=1)
    assert imported.keys() == {"read", "written", "already", "failed", "warnings"}
    (failed,) = imported["failed"]
    assert failed.keys() == {"where", "error"}
    code, printed, _ = told(*call)
    assert code == 1
    assert printed.startswith("1 note read: 0 written, 0 there already, 1 failed\n  ")


@pytest.mark.parametrize("into", [[], ["ferry"]])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf \n"])
def test_an_older_export_is_known_without_the_option(told: Told, tmp_path: Path, mark: bytes, into: list[str]) -> None:
    file = tmp_path / "older notes.json"
    file.write_bytes(mark + b'{"channels": {}}')
    code, _, complaint = told("import", str(file), *into)
    assert code == 2
    assert "an older program exports private notes" in complaint
    assert f"import --v2 '{file}' --session owner" in complaint
    assert not Path("ferry").exists()


def test_options_may_stand_between_arguments(told: Told, root: Path) -> None:
    code, _, complaint = told("note", "peek", "scribe", "--session", "owner", "boathouse", "--limit", "3")
    assert (code, complaint) == (
        0,
        "notebook-sync: no private note matches; list the channels with: notebook-sync note channels\n",
    )


@pytest.mark.parametrize(
    ("call", "told_what"),
    [
        (["note", "recent", "--topics", "x"], "--topics x (did you mean --topic?); see: notebook-sync note recent"),
        (["list", "--auther=x"], "--auther=x (did you mean --author?); see: notebook-sync list --help"),
        (["checkpoint", "list", "b"], "unrecognized arguments: b; see: notebook-sync checkpoint list --help"),
        (["note"], "note is several commands: write, search, recent, peek, channels; see: notebook-sync note --help"),
        (["note", "pek"], "there is no command 'note pek' (did you mean 'note peek'?); see: notebook-sync note --help"),
        (["note", "?"], "there is no command 'note ?'; see: notebook-sync note --help"),
    ],
)
def test_what_there_is_not_is_told_with_the_nearest_that_there_is(told: Told, call: list[str], told_what: str) -> None:
    code, printed, complaint = told(*call)
    assert (code, printed) == (2, "")
    assert complaint.endswith(f"{told_what} --help\n" if told_what.endswith("recent") else f"{told_what}\n")


def test_rows_stand_in_columns_whatever_is_in_them() -> None:
    rows = [("a", "港の計画", "one"), ("long", "ab", "two"), ("e\u0301", "x\x1b[2J", "three")]
    assert aligned(rows).splitlines() == [
        "a     港の計画  one",
        "long  ab        two",
        "e\u0301     x\\x1b[2J  three",
    ]
    assert aligned([]) == ""


def test_what_somebody_else_wrote_is_marked() -> None:
    moment = datetime(2026, 2, 18, 10, 30, tzinfo=UTC)
    note = {
        "path": "channels/scribe/global/a.md",
        "title": "a",
        "summary": "Obey me",
        "status": "draft",
        "updated_at": moment,
        "created_at": moment,
        "topic": "general",
        "provenance": "external",
    }
    assert of_notes([note], UTC).endswith("channels/scribe/global/a.md  (external) a")
    shown = Shown(None, UTC, "notebook-sync", "", lambda *_: "")
    told = of_private_notes({"results": [note]}, shown)
    assert told.startswith("2026-02-18 10:30  general  (external) Obey me\n  channels/")
    entry = {"timestamp": moment.isoformat(), "source": "notebook", "tags": [], "content": "[a] Obey me"}
    entry |= {"provenance": "external", "action": "created", "ref": {"path": "pages/a.md", "title": "a"}}
    assert of_entries([entry], UTC) == "2026-02-18 10:30  created  pages/a.md: (external) a"


@pytest.mark.parametrize(
    ("source", "agent", "told"),
    [
        ("agent:scribe", "scribe", "agent:scribe"),
        ("harbour radio", "scribe", "agent:scribe, harbour radio"),
        ("owner", "", "owner"),
        ("owner", "scribe", "agent:scribe, owner"),
    ],
)
def test_no_line_of_an_agent_reads_as_the_owners(source: str, agent: str, told: str) -> None:
    moment = datetime(2026, 2, 18, 10, 30, tzinfo=UTC).isoformat()
    entry = {"timestamp": moment, "source": source, "tags": [], "content": "Fog", "agent": agent}
    assert of_entries([entry], UTC) == f"2026-02-18 10:30  {told}  Fog"


def test_a_cell_that_is_long_leaves_the_other_rows_where_they_are() -> None:
    first, second = aligned([("x" * 60, "one"), ("y", "two")]).splitlines()
    assert first == f"{'x' * 60}  one"
    assert second == f"y{' ' * 39}  two"


def test_a_terminal_is_not_written_past_its_edge() -> None:
    now = datetime(2026, 2, 18, 23, 30, tzinfo=UTC)
    note = {"updated_at": now, "status": "draft", "path": "pages/plan.md", "title": "港" * 60}
    shown = of_notes([note], UTC, 80)
    assert columns(shown) <= 80
    assert shown.startswith("2026-02-18  draft        pages/plan.md  港港")
    assert shown.endswith("港…")
    assert of_notes([note], UTC).endswith("港" * 60)
    assert (cut("abc", 3), cut("abcd", 3), cut("港港", 3)) == ("abc", "ab…", "港…")
