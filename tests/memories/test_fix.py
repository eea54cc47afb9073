"""Repairing memories: what is proved is written, as one edit that leaves every other byte; the rest is told."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from notebook_sync import Notebook, Session
from notebook_sync.errors import NotPermitted
from notebook_sync.files.frontmatter import read_frontmatter
from notebook_sync.notes.memories import fix as memory_fix
from notebook_sync.operations.memories import Fixed, LeftOut, Timestamps
from notebook_sync.operations.registry import plain

OWNER = Session.owner()
WHEN = "2026-01-05T08:00:00+00:00"
PARTS = "## Context\nFog.\n## Reasoning\nIt is near.\n## Outcome\nIt holds.\n"
SOUND = "---\nid: {id}\nkind: decision\ncreated_at: 2026-02-16\nagent: scribe\n---\n# {id}\n" + PARTS


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    (tmp_path / "notebook.toml").write_text('[search]\nembeddings = "off"\n[sync]\nsettle_ms = 0\n')
    (tmp_path / "memories").mkdir()
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    with Notebook.open(tmp_path) as opened:
        yield opened


def write(notebook: Notebook, name: str, text: str) -> Path:
    path = notebook.root / "memories" / f"{name}.md"
    path.write_bytes(text.replace("{id}", name).encode())
    return path


def commit(notebook: Notebook, message: str = "Add") -> None:
    when = {"GIT_AUTHOR_DATE": WHEN, "GIT_COMMITTER_DATE": WHEN}
    who = ["-c", "user.name=Odile", "-c", "user.email=odile@harbour.example"]
    for command in (["add", "-A"], ["commit", "-q", "-m", message]):
        subprocess.run(["git", "-C", notebook.root, *who, *command], check=True, env={**os.environ, **when})


def log(notebook: Notebook) -> list[str]:
    command = ["git", "-C", str(notebook.root), "log", "--format=%s"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def changes(told: Fixed) -> list[tuple[str, str, Any, Any]]:
    return [(one.path, one.field, one.before, one.after) for one in told.changes]


def left(told: Fixed) -> list[tuple[str, str]]:
    return [(one.path, one.what) for one in told.left]


def test_git_proves_when_a_memory_was_made_and_by_which_agent(notebook: Notebook) -> None:
    path = write(notebook, "rope", "Ropes\r\n" + PARTS)
    commit(notebook, "Add\n\nAgent: scribe\n")
    path.write_bytes(b"Ropes hang\r\n" + PARTS.encode())
    told = notebook.memories.fix(OWNER)
    assert changes(told) == [
        ("memories/rope.md", "created_at", None, WHEN),
        ("memories/rope.md", "agent", None, "scribe"),
    ]
    assert [one.because for one in told.changes] == [
        "its first commit is of then",
        "its first commit is by that agent",
    ]
    assert (told.applied, left(told)) == (True, [("memories/rope.md", "it is of no kind")])
    assert (
        path.read_bytes()
        == b"---\r\ncreated_at: 2026-01-05T08:00:00.000Z\r\nagent: scribe\r\n---\r\nRopes hang\r\n" + PARTS.encode()
    )
    assert log(notebook) == ["Repair memories: memories/rope.md", "Add"]


def test_tags_prove_who_said_it_and_of_which_kind_it_is(notebook: Notebook) -> None:
    write(
        notebook, "rope", "---\ncreated_at: 2026-02-16\nagent: unknown\ntags: [Decision, agent:scribe]\n---\n" + PARTS
    )
    write(notebook, "gate", "---\ncreated_at: 2026-02-16\nagent: pilot\ntags: [decision, problem]\n---\n" + PARTS)
    told = notebook.memories.fix(OWNER)
    assert changes(told) == [
        ("memories/rope.md", "agent", "unknown", "scribe"),
        ("memories/rope.md", "kind", None, "decision"),
    ]
    assert left(told) == [("memories/gate.md", "it is of no kind")]


TIMES = {
    "1771234567": "2026-02-16T09:36:07+00:00",
    "1771234567000": "2026-02-16T09:36:07+00:00",
    "20260216": "2026-02-16T00:00:00+00:00",
    "2026/02/16": "2026-02-16T00:00:00+00:00",
    '"Mon, 16 Feb 2026 09:30:00 +0100"': "2026-02-16T08:30:00+00:00",
}
NO_TIMES = ("soon", "16.02.2026", "02/16/2026", "17", "[2026]", "9999/99/99")


def test_a_time_in_another_form_proves_itself(notebook: Notebook) -> None:
    for at, said in enumerate(TIMES):
        write(notebook, f"n{at}", SOUND.replace("2026-02-16", f"{said}  # by hand"))
    told = notebook.memories.fix(OWNER).changes
    assert [one.after for one in told] == [*TIMES.values()]
    assert {one.because for one in told} == {"that is what it says, in another form"}
    assert "# by hand" in (notebook.root / "memories" / "n0.md").read_text()


def test_what_nothing_proves_is_left_as_it_is_and_told(notebook: Notebook) -> None:
    paths = [write(notebook, f"n{at}", SOUND.replace("2026-02-16", said)) for at, said in enumerate(NO_TIMES)]
    before = [path.read_bytes() for path in paths]
    told = notebook.memories.fix(OWNER)
    assert (told.changes, told.applied) == ([], False)
    assert [(one.path, one.line) for one in told.left] == [(f"memories/n{at}.md", 4) for at in range(6)]
    assert [path.read_bytes() for path in paths] == before


def test_a_link_to_a_path_becomes_one_to_the_id_there_and_others_stay(notebook: Notebook) -> None:
    links = "relations:\n- {type: causes, to: memories/gate, note: kept}\n- {type: solves, to: gone}\n"
    write(notebook, "rope", SOUND.replace("kind:", f"{links}kind:"))
    write(notebook, "gate", SOUND.replace("id: {id}", "id: the-gate"))
    told = notebook.memories.fix(OWNER)
    ((_, field, before, after),) = changes(told)
    assert field == "relations"
    assert before[0]["to"] == "memories/gate"
    assert after == [{"type": "causes", "to": "the-gate", "note": "kept"}, {"type": "solves", "to": "gone"}]
    assert [one.what for one in told.left] == ["it solves 'gone', which is no memory"]
    assert notebook.memories.audit(OWNER).links_broken == 1


LINKS = """relations:
# why the ferry waits
- type: causes  # as Odile said
  to: {to}
  since: 2024-01-01
- oddity
- {type: solves, "to":"{to}", more: [1, 2]}
- type: expands
  to: >-
    {to}
"""


@pytest.mark.parametrize(
    "links",
    [
        LINKS,
        LINKS.replace("\n", "\r\n"),
        "relations: [{type: causes, to: {to}, at: 2024-01-01}, {to: '{to}', type: solves}]  # two\n",
    ],
)
def test_only_the_target_of_a_link_changes_and_what_a_person_wrote_there_stays(notebook: Notebook, links: str) -> None:
    path = write(notebook, "rope", SOUND.replace("kind:", f"{links}kind:").replace("{to}", "memories/gate.md"))
    write(notebook, "gate", SOUND.replace("id: {id}", "id: g4"))
    before = path.read_bytes()
    assert [one.field for one in notebook.memories.fix(OWNER).changes] == ["relations"]
    after = path.read_bytes()
    plain = after.replace(b'"g4"', b"g4").replace(b"'g4'", b"g4")
    said = before.replace(b'"memories/gate.md"', b"g4").replace(b"'memories/gate.md'", b"g4")
    for fold in (b">-\n    ", b">-\r\n    "):
        said = said.replace(fold, b"")
    assert plain == said.replace(b"memories/gate.md", b"g4")
    assert notebook.memories.fix(OWNER).changes == []


def test_a_link_that_is_there_already_is_not_made_a_second_time(notebook: Notebook) -> None:
    said = (
        ("solves", "memories/gate"),
        ("Solves", "memories/gate.md"),
        ("causes", "memories/gate.md"),
        ("causes", "g4"),
    )
    links = "relations:\n" + "".join(f"- {{type: {kind}, to: {to}}}\n" for kind, to in said)
    write(notebook, "rope", SOUND.replace("kind:", f"{links}kind:"))
    write(notebook, "gate", SOUND.replace("id: {id}", "id: g4"))
    told = notebook.memories.fix(OWNER)
    ((_, _, _, after),) = changes(told)
    assert [one["to"] for one in after] == ["g4", "memories/gate.md", "memories/gate.md", "g4"]
    assert [one.what for one in told.left] == [
        "it solves 'memories/gate.md', which is no memory",
        "it causes 'memories/gate.md', which is no memory",
    ]


def test_a_dry_run_tells_the_same_and_changes_nothing(notebook: Notebook) -> None:
    path = write(notebook, "rope", "---\ntags: [insight, agent:scribe]\n---\n" + PARTS)
    commit(notebook)
    before = path.read_bytes()
    dry = notebook.memories.fix(OWNER, dry_run=True)
    assert path.read_bytes() == before
    assert log(notebook) == ["Add"]
    told = notebook.memories.fix(OWNER)
    assert {**plain(told), "applied": False} == plain(dry)
    assert len(told.changes) == 2
    assert notebook.memories.fix(OWNER) == Fixed([], applied=False, left=[], left_out=LeftOut(0, 0), backup="")


def test_of_very_many_changes_the_first_are_told_and_the_others_counted(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_fix, "MOST_TOLD", 2)
    for name in ("rope", "gate", "tide"):
        write(notebook, name, "---\ntags: [insight]\n---\n" + PARTS)
    told = notebook.memories.fix(OWNER)
    assert ([one.path for one in told.changes], len(told.left)) == (
        ["memories/gate.md", "memories/rope.md"],
        2,
    )
    assert told.left_out == LeftOut(changes=1, left=4)
    assert len(log(notebook)) == 1


def test_all_repairs_are_one_commit_and_are_taken_back_by_undo(notebook: Notebook) -> None:
    for name in ("rope", "gate", "tide"):
        write(notebook, name, f"{name}\n")
    commit(notebook)
    assert len(notebook.memories.fix(OWNER).changes) == 3
    assert log(notebook) == ["Repair memories", "Add"]
    notebook.undo("memories/rope.md", OWNER)
    assert (notebook.root / "memories" / "rope.md").read_text() == "rope\n"


def test_very_many_repairs_are_commits_of_their_own_behind_a_checkpoint(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_fix, "BATCH", 2)
    for name in ("rope", "gate", "tide"):
        write(notebook, name, f"{name}\n")
    commit(notebook)
    steps: list[tuple[int, int]] = []
    told = notebook.memories.fix(OWNER, progress=lambda done, total: steps.append((done, total)))
    assert (len(told.changes), steps) == (3, [(2, 3), (3, 3)])
    assert log(notebook) == ["Repair memories: memories/tide.md", "Repair memories", "Add"]
    notebook.stream.rollback(told.backup, OWNER, files=True)
    assert (notebook.root / "memories" / "tide.md").read_text() == "tide\n"


def test_repairs_that_were_interrupted_are_gone_on_with(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_fix, "BATCH", 1)
    for name in ("gate", "rope", "tide"):
        write(notebook, name, f"{name}\n")
    commit(notebook)
    tide = notebook.root / "memories" / "tide.md"

    def take_away(done: int, _: int) -> None:
        if done == 2:
            tide.unlink()
            tide.symlink_to("rope.md")

    told = notebook.memories.fix(OWNER, progress=take_away)
    assert [one.path for one in told.changes] == ["memories/gate.md", "memories/rope.md"]
    assert told.applied
    assert str(told.trouble).endswith("; what is told here is written, and the next repair goes on from there")
    tide.unlink()
    write(notebook, "tide", "tide\n")
    again = notebook.memories.fix(OWNER)
    assert ([one.path for one in again.changes], again.trouble) == (["memories/tide.md"], None)


def test_a_link_that_is_mended_leaves_another_to_the_same_place_told(notebook: Notebook) -> None:
    links = "relations:\n- {type: causes, to: memories/gate.md}\n- {type: solves, to: memories/gate.md}\n"
    write(notebook, "rope", SOUND.replace("kind:", f"{links}- {{type: causes, to: gate}}\nkind:"))
    write(notebook, "gate", SOUND)
    told = notebook.memories.fix(OWNER)
    assert [one["to"] for one in told.changes[0].after] == ["memories/gate.md", "gate", "gate"]
    assert [(one.line, one.what) for one in told.left] == [(4, "it causes 'memories/gate.md', which is no memory")]


def test_a_file_that_must_be_mended_by_hand_costs_no_other(notebook: Notebook) -> None:
    broken = write(notebook, "broken", "---\nx: [\n---\nRopes\n")
    bad = write(notebook, "bad", "---\nid: bad\n---\n")
    bad.write_bytes(b"---\nid: bad\n---\n\xff\n")
    write(notebook, "good", "Gates\n")
    commit(notebook)
    before = broken.read_bytes(), bad.read_bytes()
    told = notebook.memories.fix(OWNER)
    assert {one.path for one in told.changes} == {"memories/good.md"}
    assert len(told.warnings) == 2
    assert {one.path for one in told.left} >= {"memories/broken.md", "memories/bad.md"}
    assert (broken.read_bytes(), bad.read_bytes()) == before


def test_without_git_only_what_the_file_says_is_proved(tmp_path: Path) -> None:
    (tmp_path / "notebook.toml").write_text('[search]\nembeddings = "off"\n')
    (tmp_path / "memories").mkdir()
    (tmp_path / "memories" / "rope.md").write_text("---\ntags: [insight]\n---\n" + PARTS)
    with Notebook.open(tmp_path) as notebook:
        told = notebook.memories.fix(OWNER)
    assert changes(told) == [("memories/rope.md", "kind", None, "insight")]
    assert len(told.left) == 2


def test_an_external_session_repairs_nothing(notebook: Notebook) -> None:
    path = write(notebook, "rope", "---\ntags: [insight]\n---\nRopes\n")
    before = path.read_bytes()
    for dry_run in (False, True):
        with pytest.raises(NotPermitted):
            notebook.memories.fix(Session.external("scribe"), dry_run=dry_run)
    assert path.read_bytes() == before


def test_of_an_import_only_what_it_said_is_proved_for_its_commit_is_of_another_day(
    notebook: Notebook, tmp_path: Path
) -> None:
    export = tmp_path.parent / f"{tmp_path.name}.jsonl"
    said = "Ropes\\n" + PARTS.replace("\n", "\\n")
    export.write_text(
        f'{{"id": "a", "content": "{said}", "tags": ["insight", "agent:scribe"], "created_at": "soon"}}\n'
    )
    notebook.memories.import_file(str(export), OWNER)
    assert notebook.memories.audit(OWNER).timestamps == Timestamps(missing=0, unparsable=1)
    assert [one.field for one in notebook.memories.fix(OWNER).changes] == ["kind"]
    audit = notebook.memories.audit(OWNER)
    assert (audit.timestamps.unparsable, audit.unstructured, audit.needs_review) == (1, 0, 1)
    (advice,) = (one.fix for one in audit.findings if "created_at" in one.what)
    assert advice.endswith("no commit tells when it was made, as it was imported: write it by hand")


@pytest.mark.parametrize("said", ["early spring 2019", "[2019, 3]"])
def test_what_a_time_said_is_kept_beside_the_one_that_git_proves(notebook: Notebook, said: str) -> None:
    path = write(notebook, "rope", SOUND.replace("2026-02-16", said))
    commit(notebook)
    assert [one.field for one in notebook.memories.fix(OWNER).changes] == ["created_at", "created_at_before"]
    kept = read_frontmatter(path.read_text()).metadata
    assert kept["created_at"].isoformat() == WHEN
    assert kept["created_at_before"] == yaml.safe_load(said)
    path.write_text(path.read_text().replace(f"created_at: {WHEN[:10]}", "created_at: last"))
    assert notebook.memories.fix(OWNER).changes == []
