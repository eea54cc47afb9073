"""What a breadcrumb says of a change."""

from __future__ import annotations

import pytest

from notebook_sync.files.parse import parse
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
        ("---\ntags: [a]\n---\n" + BEFORE, "Changed the frontmatter"),
    ],
)
def test_a_change_is_told_by_the_sections_it_touched(after: str, told: str) -> None:
    old = parse("pages/plan.md", BEFORE.encode())
    before = {
        "content": old.content,
        "sections": [{"anchor": s.anchor, "heading": s.heading, "start": s.start} for s in old.sections],
    }
    assert describe_change(before, parse("pages/plan.md", after.encode())) == told
