"""`check` over whole notebooks; what it says of runtime files is in tests/surfaces/check.transcript."""

from __future__ import annotations

import unicodedata
from datetime import date
from pathlib import Path

import pytest

from notebook_sync.config import PromptFile, PromptSettings
from notebook_sync.files.vault import Vault
from notebook_sync.notes.check import check
from notebook_sync.notes.finding import Finding

TODAY = date(2026, 2, 26)


def write(root: Path, notes: dict[str, str]) -> None:
    for path, text in notes.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def findings(root: Path, settings: PromptSettings | None = None) -> list[Finding]:
    return check(Vault(root), settings or PromptSettings(), TODAY)


@pytest.mark.parametrize(
    "link",
    [
        "[[plan]]",
        "[[Plan.md]]",
        "[[pages/plan]]",
        "[[The Plan]]",
        "[[the-id]]",
        "[[plan#budget|shown]]",
        "[p](plan.md)",
        "[p](../pages/plan.md#budget)",
        "[p](/pages/plan.md)",
        "[p](pages/plan.md)",
        "[p](a%20picture.png)",
        "[p](<a picture.png>)",
        "[p](../pages/)",
        "[p](https://elsewhere.example/x.md)",
        "[p](#here)",
        "`[[code]]`",
        "<!-- [[comment]] -->",
    ],
)
def test_links_that_lead_somewhere(tmp_path: Path, link: str) -> None:
    write(
        tmp_path,
        {"pages/plan.md": "---\nid: the-id\ntitle: The Plan\n---\n# Budget\n", "pages/from.md": f"{link}\n"},
    )
    (tmp_path / "pages/a picture.png").write_bytes(b"")
    assert findings(tmp_path) == []


@pytest.mark.parametrize(
    "link", ["[[plam]]", "[p](plam.md)", "[p](../../etc/passwd)", "[p](/etc/passwd)", "[[plan/x]]"]
)
def test_links_that_lead_nowhere(tmp_path: Path, link: str) -> None:
    write(tmp_path, {"pages/plan.md": "Plan.\n", "pages/from.md": f"---\ntitle: From\n---\n\nSee {link}.\n"})
    (found,) = findings(tmp_path)
    assert (found.path, found.line, found.severity) == ("pages/from.md", 5, "warning")


def test_one_id_for_three_files(tmp_path: Path) -> None:
    write(tmp_path, {f"{name}.md": "---\nid: x\n---\n" for name in ("a", "b", "long")})
    assert [(found.path, found.severity) for found in findings(tmp_path)] == [("b.md", "error"), ("long.md", "error")]
    assert all("a.md" in found.message for found in findings(tmp_path))


def test_names_that_other_systems_take_for_one(tmp_path: Path) -> None:
    accented = "caf\u00e9"
    write(
        tmp_path,
        {
            f"{unicodedata.normalize('NFC', accented)}.md": "a\n",
            f"{unicodedata.normalize('NFD', accented)}.md": "b\n",
            "Pages/one.md": "c\n",
            "pages/one.md": "d\n",
            "pages/two.md": "e\n",
        },
    )
    told = [found for found in findings(tmp_path) if "macOS" in found.message]
    assert {found.path for found in told} == {"caf\u00e9.md", "pages"}


def test_problems_of_notes_have_their_line(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"one\ntwo \xff\n")
    write(tmp_path, {"b.md": "---\nstatus: undecided\n---\n", "c.md": "---\ntitle: [\n---\n"})
    told = {found.path: found for found in findings(tmp_path)}
    assert (told["a.md"].line, told["a.md"].severity) == (2, "error")
    assert (told["b.md"].line, told["b.md"].severity) == (2, "warning")
    assert told["c.md"].severity == "error"


def test_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, {"big.md": "x" * 2000})
    (found,) = check(Vault(tmp_path, max_file_bytes=1000), PromptSettings(), TODAY)
    assert (found.path, found.severity) == ("big.md", "error")
    assert "max_file_bytes" in found.message


def test_over_budget_counts_what_a_model_is_shown(tmp_path: Path) -> None:
    orders = "runtime/standing-orders.md"
    settings = PromptSettings(max_tokens_per_file=50, files=(PromptFile("glossary.md", max_tokens=10),))
    hidden = "<!-- " + "not counted " * 100 + "-->\n"
    write(tmp_path, {orders: f"{hidden}Be brief.\n\n{hidden}", "glossary.md": "a b c\n", "pages/long.md": "word " * 99})
    assert findings(tmp_path, settings) == []
    write(tmp_path, {orders: "Be brief. " * 40, "glossary.md": "a b c " * 10})
    assert [found.path for found in findings(tmp_path, settings)] == ["glossary.md", orders]


def test_any_dated_item_that_the_prompt_drops_is_ready_to_remove(tmp_path: Path) -> None:
    text = "## Preferences\n\n- Tea [until 2026-02-25]\n- Coffee [until 2026-02-26]\n"
    write(tmp_path, {"runtime/standing-orders.md": text})
    (found,) = findings(tmp_path)
    assert (found.line, found.severity) == (3, "info")


def test_an_unclosed_comment_in_a_runtime_file(tmp_path: Path) -> None:
    write(tmp_path, {"runtime/reminders.md": "## Today\n\n<!-- later\n- [ ] Call\n"})
    (found,) = findings(tmp_path)
    assert (found.line, found.severity) == (3, "error")
