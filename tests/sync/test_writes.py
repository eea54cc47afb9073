"""What a breadcrumb says of a change."""

from __future__ import annotations

import pytest

from notebook_sync.files.note import Stamp
from notebook_sync.files.parse import parse
from notebook_sync.mirror.base import Breadcrumb, Put
from notebook_sync.mirror.document import document_of, moment
from notebook_sync.sync.writes import describe_change

BEFORE = "# Plan\n\nStart.\n\n## Budget\n\n100\n\n## Risks\n\nnone\n"


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (BEFORE.replace("100", "200"), "Changed Budget"),
        (BEFORE.replace("Start.", "Begin."), "Changed Plan"),
        (BEFORE.replace("100", "200").replace("none", "some"), "Changed Budget, Risks"),
        (BEFORE + "\n## Timeline\n\nMay\n", "Added Timeline"),
        (BEFORE.replace("## Risks\n\nnone\n", ""), "Removed Risks"),
        (BEFORE + "".join(f"\n## H{n}\n" for n in range(5)), "Added H0, H1, H2 and 2 more"),
        ("Hello.\n" + BEFORE, "Changed the text"),
        ("---\ntags: [a]\n---\n" + BEFORE, "Changed tags"),
        ("---\ntitle: Ferry\nstatus: complete\n---\n" + BEFORE, "Changed title, status"),
        ("---\nstatus: complete\n---\n" + BEFORE.replace("100", "200"), "Changed status; changed Budget"),
        ("---\nsummary: Costs\n---\n" + BEFORE, "Changed summary"),
        ("---\ntags: [a]\n---\nHello.\n" + BEFORE, "Changed tags; changed the text"),
        ("---\nberth: 4\n---\n" + BEFORE, "Changed the frontmatter"),
    ],
)
def test_a_change_is_told_by_the_fields_and_sections_it_touched(after: str, told: str) -> None:
    assert change_told("pages/plan.md", BEFORE, after) == told


def test_a_change_is_told_by_the_fields_of_its_collection() -> None:
    before = "Ropes hold.\n"
    after = "---\nconfidence: 0.9\nkey_findings: [ropes hold]\n---\n" + before
    assert change_told("research_notes/ropes.md", before, after) == "Changed key_findings, confidence"


def test_what_a_new_text_changes_by_itself_is_not_told_apart() -> None:
    before, after = "```python\nprint()\n```\n", "```sql\nSELECT 1\n```\n"
    assert change_told("code_snippets/one.md", before, after) == "Changed the text"


def change_told(path: str, before: str, after: str) -> str:
    old = parse(path, before.encode())
    document = document_of(Put(old.wants, old, Stamp(1, 1, 1, 1), None, "created", Breadcrumb(moment(1), "Created")))
    return describe_change(document, parse(path, after.encode()))
