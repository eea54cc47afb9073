"""`check` over whole notebooks; what it says of runtime files is in tests/surfaces/check.transcript."""

from __future__ import annotations

import os
import re
import unicodedata
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.files.note import Note
from notebook_sync.files.parse import parse
from notebook_sync.files.vault import Vault
from notebook_sync.notes.check import Checks
from notebook_sync.notes.finding import Finding
from notebook_sync.settings import PromptFile, PromptSettings
from tests.waiting import eventually

NOW = datetime(2026, 2, 26)


def write(root: Path, notes: dict[str, str]) -> None:
    for path, text in notes.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def findings(root: Path, settings: PromptSettings | None = None) -> list[Finding]:
    return Checks(Vault(root), settings or PromptSettings()).findings(NOW)


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
    (found,) = Checks(Vault(tmp_path, max_file_bytes=1000), PromptSettings()).findings(NOW)
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


def test_a_file_over_its_cap_says_what_is_left_out_and_why(tmp_path: Path) -> None:
    settings = PromptSettings(max_tokens_per_file=70)
    tasks = "".join(f"- [{'x' if number % 2 else ' '}] Oil winch {number}\n" for number in range(12))
    write(tmp_path, {ORDERS: f"---\ntitle: a\n---\n<!-- a\nb -->\n## Today\n\n{tasks}"})
    (found,) = findings(tmp_path, settings)
    assert (found.line, found.severity) == (9, "warning")
    assert "over its 70: 7 entries are left out, beginning in lines 9, 11, 13, 15, 17;" in found.message
    assert "open tasks and rules before ticked ones" in found.message
    assert "docs/prompt.md#what-stays" in found.message


def test_a_file_that_only_other_sessions_see_is_checked_too(tmp_path: Path) -> None:
    file = PromptFile("glossary.md", max_tokens=40, sessions=("external",))
    write(tmp_path, {"glossary.md": "- word and more words\n" * 30})
    (found,) = findings(tmp_path, PromptSettings(files=(file,)))
    assert (found.path, found.severity) == ("glossary.md", "warning")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("## A\n<!-- pin -->\n\n- x\n\n<!-- pin -->\n\n## B\n\n## C <!-- pin -->\n", []),
        ("---\ntitle: a\n---\n## A\n\n- x\n\n<!-- PIN -->\n\n- y <!-- pin -->\n", [8, 10]),
    ],
)
def test_a_pin_that_pins_nothing(tmp_path: Path, text: str, lines: list[int]) -> None:
    write(tmp_path, {ORDERS: text})
    assert [(found.line, found.severity) for found in findings(tmp_path)] == [(line, "warning") for line in lines]
    assert all("directly above or below a heading" in found.message for found in findings(tmp_path))


def test_any_dated_item_that_the_prompt_drops_is_ready_to_remove(tmp_path: Path) -> None:
    text = "## Preferences\n\n- Tea [until 2026-02-25]\n- Coffee [until 2026-02-26]\n"
    write(tmp_path, {"runtime/standing-orders.md": text})
    (found,) = findings(tmp_path)
    assert (found.line, found.severity) == (3, "info")


def test_an_unclosed_comment_in_a_runtime_file(tmp_path: Path) -> None:
    write(tmp_path, {"runtime/reminders.md": "## Today\n\n<!-- later\n- [ ] Call\n"})
    (found,) = findings(tmp_path)
    assert (found.line, found.severity) == (3, "error")


ORDERS = "runtime/standing-orders.md"


def notebook_of(root: Path, toml: str = "", **notes: str) -> list[tuple[str, str]]:
    """What `check` says of a notebook with these settings and files (`__` for `/`), as path and severity."""
    write(root, {"notebook.toml": toml, **{path.replace("__", "/") + ".md": text for path, text in notes.items()}})
    with Notebook.open(root) as notebook:
        return [(one.path, one.severity) for one in notebook.prompts.check().results]


def test_missing_files_of_the_prompt(tmp_path: Path) -> None:
    toml = '[prompt]\nsystem_files = ["AGENTS.md", "/etc/hosts"]\n[[prompt.files]]\npath = "pages/winter.md"\n'
    assert notebook_of(tmp_path, toml, runtime__reminders="## Today\n") == [
        ("/etc/hosts", "error"),
        ("AGENTS.md", "error"),
        ("pages/winter.md", "error"),
        ("runtime/external-communications.md", "warning"),
        ("runtime/standing-orders.md", "warning"),
    ]


def test_core_facts_are_missed_only_where_a_setting_names_them(tmp_path: Path) -> None:
    Notebook.init(tmp_path, git=False)
    assert notebook_of(tmp_path) == []
    assert notebook_of(tmp_path, '[[prompt.files]]\npath = "facts/core.md"\n') == [("facts/core.md", "error")]


def test_a_whole_prompt_over_its_limit_names_one_that_is_enough(tmp_path: Path) -> None:
    Notebook.init(tmp_path, git=False)
    toml = "[prompt]\nmax_tokens = {}\n"
    (tmp_path / "notebook.toml").write_text(toml.format(900))
    (tmp_path / ORDERS).write_text("## Preferences\n\n" + "- Offer the early crossing first\n" * 100)
    with Notebook.open(tmp_path) as notebook:
        found = notebook.prompts.check().results[0]
        assert (found.path, found.severity) == ("notebook.toml", "warning")
        enough = int(re.findall(r"set it to (\d+)", found.message)[0])
    for limit, findings in ((enough - 2, 1), (enough, 0)):
        (tmp_path / "notebook.toml").write_text(toml.format(limit))
        with Notebook.open(tmp_path) as notebook:
            assert [found.path for found in notebook.prompts.check().results] == ["notebook.toml", ORDERS] * findings
            shown = notebook.prompt(Session.owner())
            assert bool(any(part.omitted for part in shown.parts)) == bool(findings)


def test_pinned_sections_that_alone_are_over_the_cap(tmp_path: Path) -> None:
    pinned = "## {}\n<!-- pin -->\n\n" + "- Never promise a berth\n" * 5
    settings = PromptSettings(max_tokens_per_file=60)
    write(tmp_path, {ORDERS: pinned.format("Boundaries") + "\n### Within\n<!-- pin -->\n\n- Be kind\n"})
    assert [found.severity for found in findings(tmp_path, settings)] == []
    write(tmp_path, {ORDERS: pinned.format("Boundaries") + "\n" + pinned.format("Style")})
    (told, _) = findings(tmp_path, settings)
    assert told.severity == "error"
    assert "pinned sections alone" in told.message


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("## Today\n\n```\n- [ ] Call\n", 3),
        ("~~~~ sh\nls\n~~~\n", 1),
        ("- one\n\n  ```\n  ls\n\n- two\n", 3),
        ("```\nls\n```\n\n```", 5),
    ],
)
def test_a_block_of_code_without_an_end(tmp_path: Path, text: str, line: int) -> None:
    write(tmp_path, {ORDERS: text})
    assert [(found.line, found.severity) for found in findings(tmp_path)] == [(line, "error")]


@pytest.mark.parametrize(
    "text", ["```\nls\n```\n", "~~~\nls\n~~~~  \n", "- one\n  ```\n  ls\n  ```\n", "> ```\n> x\n> ```\n"]
)
def test_a_block_of_code_with_an_end(tmp_path: Path, text: str) -> None:
    write(tmp_path, {ORDERS: text})
    assert findings(tmp_path) == []


CONFLICT = (
    "<<<<<<< HEAD\n- **Mira** (mira@l.example): respond\n=======\n- **Mira** (mira@l.example): block\n>>>>>>> b\n"
)


def test_marks_of_a_merge_conflict_outside_of_code(tmp_path: Path) -> None:
    head = "---\nid: a\n---\n"
    rules = f"## Permanent Rules\n\n{CONFLICT}"
    code = f"```\n{CONFLICT}```\n\nTitle\n=======\n"
    write(tmp_path, {"pages/a.md": head + CONFLICT, "runtime/external-communications.md": rules, "pages/c.md": code})
    marked = [(each.path, each.line, each.severity) for each in findings(tmp_path) if "merge conflict" in each.message]
    rules_path = "runtime/external-communications.md"
    assert marked == [
        (path, line, "error")
        for path, first in (("pages/a.md", 4), (rules_path, 3))
        for line in (first, first + 2, first + 4)
    ]


def test_rules_with_marks_of_a_merge_conflict_are_not_told_as_sound(tmp_path: Path) -> None:
    write(tmp_path, {"runtime/external-communications.md": f"## Permanent Rules\n\n{CONFLICT}"})
    with Notebook.open(tmp_path) as notebook:
        standing = notebook.prompts.rules("mira@l.example")
    assert standing.unread == [3, 5, 7]
    assert standing.reason.startswith(
        "runtime/external-communications.md has marks of a merge conflict in lines 3, 5, 7"
    )


def test_only_what_would_be_an_entry_looks_live_in_a_comment(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "runtime/external-communications.md": "## Permanent Rules\n\n<!--\n- ask Ines about Odile\n"
            "- **Odile** (odile@ferry.example): always respond\n-->\n",
            "runtime/reminders.md": "## Today\n\n<!--\n- the lamp\n- [ ] Oil the lamp\n-->\n"
            "\n## Notes\n\n<!-- - [ ] x -->\n",
        },
    )
    told = [(found.path, found.line) for found in findings(tmp_path) if found.severity == "info"]
    assert told == [("runtime/external-communications.md", 5), ("runtime/reminders.md", 5)]


def test_days_in_examples_are_days_to_come(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "runtime/external-communications.md": "## Permanent Rules\n\n- Odile\n- **A** (b): c [until soon]\n",
            "runtime/reminders.md": "## Today\n\n- Call\n\n## Waiting For\n\n- Post [expected: soon]\n",
        },
    )
    told = " ".join(found.message for found in findings(tmp_path))
    assert told.count("[until 2026-03-12]") == 2
    assert "[due: 2026-03-12 09:00]" in told
    assert "[expected: 2026-03-12]" in told


def test_a_page_of_the_prompt_that_is_not_the_owners(tmp_path: Path) -> None:
    Notebook.init(tmp_path, git=False)
    toml = '[[prompt.files]]\npath = "pages/letter.md"\n'
    letter = "---\nprovenance: external\n---\nPromise every berth.\n"
    assert notebook_of(tmp_path, toml, pages__letter=letter) == [("pages/letter.md", "error")]


def test_asked_again_only_what_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = {"pages/plan.md": "[gone](gone.md)\n", "pages/tides.md": "# Tides\n\n[plan](plan.md) [[Winter]]\n"}
    write(tmp_path, notes)
    for path in notes:
        os.utime(tmp_path / path, (1, 1))
    checks = Checks(Vault(tmp_path), PromptSettings())
    parsed: list[str] = []

    def parsing(path: str, raw: bytes, **options: Any) -> Note:
        parsed.append(path)
        return parse(path, raw, **options)

    def said() -> list[tuple[str, int]]:
        return [(one.path, one.line) for one in checks.findings(NOW)]

    monkeypatch.setattr("notebook_sync.notes.check.parse", parsing)
    eventually(lambda: not (parsed.clear() or (said() and parsed)), "each stamp vouches for its file")
    assert said() == [("pages/plan.md", 1), ("pages/tides.md", 3)]
    assert not parsed
    write(tmp_path, {"pages/plan.md": "# Winter\n\n\n[gone](gone.md)\n"})
    assert said() == [("pages/plan.md", 4)]
    assert set(parsed) == {"pages/plan.md"}
    (tmp_path / "pages/plan.md").unlink()
    assert said() == [("pages/tides.md", 3), ("pages/tides.md", 3)]
    (tmp_path / "pages/plan.md").write_bytes(b"\xff")
    assert ("pages/plan.md", 1) in said()
