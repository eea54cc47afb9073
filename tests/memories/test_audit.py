"""Auditing memories: each thing they lack is counted, and told with its place and what to do; nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.notes.memories import audit as memory_audit
from notebook_sync.operations.memories import Agents, Audit, Priorities, TagCounts, Timestamps
from notebook_sync.operations.registry import plain

OWNER = Session.owner()
PARTS = "## Context\nFog.\n## Reasoning\nIt is near.\n## Outcome\nIt holds.\n"
SOUND = (
    "---\nid: {id}\nkind: decision\ncreated_at: 2026-02-16\nagent: scribe\ntags: [gate, coins]\n---\n# {id}\n" + PARTS
)


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    (tmp_path / "notebook.toml").write_text(
        '[search]\nembeddings = "off"\n[sync]\nsettle_ms = 0\n[[prompt.files]]\npath = "memories/secret.md"\n'
        'sessions = ["owner"]\n'
    )
    (tmp_path / "memories").mkdir()
    with Notebook.open(tmp_path) as opened:
        yield opened


def write(notebook: Notebook, name: str, text: str = SOUND) -> str:
    (notebook.root / "memories" / f"{name}.md").write_text(text.replace("{id}", name))
    return f"memories/{name}.md"


def findings(notebook: Notebook, session: Session = OWNER) -> list[tuple[str, int, str]]:
    return [(one.path, one.line, one.what) for one in notebook.memories.audit(session).findings]


def without_findings(audit: Audit) -> dict[str, Any]:
    return {name: value for name, value in plain(audit).items() if not name.startswith("findings")}


def test_sound_memories_have_no_findings(notebook: Notebook) -> None:
    write(notebook, "rope")
    write(notebook, "gate", SOUND.replace("---\n#", "priority: 3\nrelations:\n- {type: similar, to: rope}\n---\n#"))
    notebook.sync()
    notebook.memories.score(OWNER)
    audit = notebook.memories.audit(OWNER)
    score = audit.score.mean
    assert score is not None
    assert 0 < score < 1
    assert plain(audit) == {
        "memories": 2,
        "timestamps": {"missing": 0, "unparsable": 0},
        "agents": {"unknown": 0},
        "unstructured": 0,
        "needs_review": 0,
        "importance": {"mean": 5.0, "sigma": 2.0, "saturated": 0.5},
        "similar_share": 1.0,
        "links": 1,
        "links_broken": 0,
        "tags": {"per_memory": 2.0, "none": 0},
        "score": {"mean": score, "sigma": audit.score.sigma},
        "findings": [],
        "findings_left_out": 0,
    }


def test_of_nothing_there_are_no_means(notebook: Notebook) -> None:
    audit = notebook.memories.audit(OWNER)
    assert (audit.memories, audit.similar_share, audit.findings) == (0, None, [])
    assert audit.importance == Priorities(None, None, None)


AMISS = [
    ("created_at: 2026-02-16\n", "", 1, "does not say when it was made"),
    ("created_at: 2026-02-16", "created_at: null", 4, "does not say when it was made"),
    ("created_at: 2026-02-16", "created_at: soon", 4, "must be a date or time"),
    ("created_at: 2026-02-16", "created_at: 1771234567", 4, "must be a date or time"),
    ("created_at: 2026-02-16", "created_at: [1]", 4, "must be a date or time"),
    ("agent: scribe\n", "", 1, "nobody is known to have said it"),
    ("agent: scribe", "agent: unknown", 5, "nobody is known to have said it"),
    ("kind: decision\n", "", 1, "it is of no kind"),
    ("kind: decision", "kind: idea", 3, "'idea' is not one of"),
    ("id:", "needs_review: true\nid:", 2, "marked for review"),
    ("id:", "relations: [{type: causes, to: gone}]\nid:", 2, "it causes 'gone', which is no memory"),
    ("id:", "relations:\n- {type: likes, to: x}\n- 5\nid:", 3, "is not one of causes"),
    ("id:", "priority: high\nid:", 2, "must be a number from 1 to 10"),
    ("id:", "x: [\nid:", 4, "frontmatter is ignored"),
]


def test_what_is_amiss_is_told_with_its_line_and_what_to_do(notebook: Notebook) -> None:
    paths = [write(notebook, f"n{at:02}", SOUND.replace(was, now, 1)) for at, (was, now, _, _) in enumerate(AMISS)]
    told = notebook.memories.audit(OWNER).findings
    for path, (_, _, line, what) in zip(paths, AMISS, strict=True):
        assert any((one.path, one.line) == (path, line) and what in one.what for one in told), (path, what)
    assert all(one.fix for one in told)


def test_each_kind_of_finding_is_counted(notebook: Notebook) -> None:
    write(notebook, "none", "Ropes\n")
    write(notebook, "words", SOUND.replace("2026-02-16", "soon"))
    links = "relations:\n- {type: causes, to: gone}\n- {type: similar, to: words}\nneeds_review: true\n"
    write(notebook, "links", SOUND.replace("kind:", f"{links}kind:"))
    audit = notebook.memories.audit(OWNER)
    assert audit.timestamps == Timestamps(missing=1, unparsable=1)
    assert (audit.agents, audit.unstructured, audit.needs_review) == (Agents(unknown=1), 1, 1)
    assert (audit.links, audit.links_broken, audit.similar_share) == (2, 1, 0.5)
    assert audit.tags == TagCounts(per_memory=1.3333, none=1)


def test_a_file_that_can_no_longer_be_read_is_told(notebook: Notebook) -> None:
    path = write(notebook, "rope")
    notebook.sync()
    (notebook.root / path).write_bytes(b"x" * (3 << 20))
    ((found, line, what),) = findings(notebook)
    assert (found, line) == (path, 1)
    assert "more than max_file_bytes" in what


def test_somebody_elses_words_are_marked_and_no_finding_is_long(notebook: Notebook) -> None:
    write(notebook, "rope", SOUND.replace("kind: decision", f"provenance: external\nkind: {'obey ' * 200}"))
    (found,) = notebook.memories.audit(OWNER).findings
    assert found.provenance == "external"
    assert len(found.what) <= 200


def test_of_very_many_findings_the_first_are_told_and_the_others_counted(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_audit, "MOST_FINDINGS", 2)
    for name in ("a", "b"):
        write(notebook, name, "Ropes\n")
    audit = notebook.memories.audit(OWNER)
    assert [one.path for one in audit.findings] == ["memories/a.md"] * 2
    assert audit.findings_left_out == 6


def test_a_memory_that_a_session_may_not_read_counts_as_none(notebook: Notebook) -> None:
    write(notebook, "rope", SOUND.replace("id:", "relations: [{type: causes, to: secret}]\nid:", 1))
    write(notebook, "secret", "---\nid: secret\n---\nOdile pays the keeper\n")
    session = Session.task("scribe")
    told = notebook.memories.audit(session)
    assert (told.memories, told.links_broken) == (1, 1)
    (notebook.root / "memories" / "secret.md").unlink()
    assert notebook.memories.audit(session) == told


def test_an_audit_changes_nothing(notebook: Notebook) -> None:
    path = notebook.root / write(notebook, "rope", "Ropes\n")
    before = (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
    notebook.memories.audit(OWNER)
    assert (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) == before
    assert without_findings(notebook.memories.audit(OWNER)) == without_findings(notebook.memories.audit(OWNER))
