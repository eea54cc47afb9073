"""`check`: every finding has its path, line and what to do; what is right has none."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from notebook_sync import Notebook
from notebook_sync.errors import NotPermitted
from notebook_sync.services.check import Finding
from notebook_sync.services.setup import initialize
from tests.services.conftest import SCRIBE, assert_raises, write_files

ORDERS, RULES, REMINDERS = (
    f"runtime/{name}.md" for name in ("standing-orders", "external-communications", "reminders")
)
Found = list[tuple[str, int, str]]


@pytest.fixture
def opened(folder: Path) -> Iterator[Notebook]:
    initialize(folder, git=False)
    with Notebook.open(folder) as notebook:
        yield notebook


def findings(notebook: Notebook, files: dict[str, str]) -> list[Finding]:
    write_files(notebook.root, files)
    return notebook.prompts.check().results


def found(notebook: Notebook, files: dict[str, str]) -> Found:
    return [(one.path, one.line, one.severity) for one in findings(notebook, files)]


def test_a_new_notebook_and_a_vault_are_fine(opened: Notebook, tmp_path: Path) -> None:
    assert found(opened, {}) == []
    vault = {
        "Daily/2026-02-18.md": "- [ ] call [[Odile|her]] ^task\n![[map.png]] #tag\n",
        "Odile.md": "---\ntags: [a]\naliases: [O]\n---\n# Odile\n[[2026-02-18#^task]] [[O#Odile]] [x](Daily/)\n",
        "Templates/day.md": "---\ntitle: {{title}}\n---\n[[{{yesterday}}]] <% tp.file %>\n",
        "map.png": "x",
    }
    with Notebook.open(write_files(tmp_path / "vault", vault)) as notebook:
        assert [one for one in findings(notebook, {}) if "template" not in one.message] == []


LINKS = (
    *("[[plan]]", "[[Plan.md]]", "[[pages/plan]]", "[[The Plan]]", "[[the-id]]", "[[plan#budget|shown]]"),
    *("[[plan#Budget#Fares: all]]", "[[plan#^sum]]", "[p](plan.md)", "[p](../pages/plan.md#budget)"),
    *("[p](/pages/plan.md)", "[p](a%20picture.png)", "[p](../pages/)", "[p](https://elsewhere.example/x.md)"),
    *("[p](#here)", "`[[code]]`", "<!-- [[comment]] -->", "[[reminders]]", "[p](../ignored.txt)"),
)


def test_links_that_lead_somewhere(opened: Notebook) -> None:
    plan = "---\nid: the-id\ntitle: The Plan\n---\n# Budget\n## Fares: all\nTen crowns ^sum\n"
    files = {"pages/plan.md": plan, "pages/from.md": "\n\n".join(["# Here", *LINKS]), "pages/a picture.png": ""}
    assert findings(opened, {**files, ".gitignore": "*.txt\n", "ignored.txt": ""}) == []


def test_links_that_lead_nowhere_have_their_own_line(opened: Notebook) -> None:
    reasons = {
        "[[Plan]]": "there is no note or file of this name",
        "[p](plam.md)": "there is no note or file of this name",
        "[p](../../../etc/no)": "there is no note or file of this name",
        "[[Planning notes#fees]]": "pages/Planning notes.md has no such heading",
        "[[Planning notes#^b]]": "pages/Planning notes.md has no such block",
    }
    links = "\n\n".join(["See [[Planning notes]].", *reasons])
    said = findings(opened, {"pages/Planning notes.md": "# Planning notes\n", "pages/lines.md": links})
    assert [(one.place, one.severity) for one in said] == [(f"pages/lines.md:{n}", "warning") for n in (3, 5, 7, 9, 11)]
    assert all(one.message.endswith(reason) for one, reason in zip(said, reasons.values(), strict=True))


def test_problems_of_files(opened: Notebook) -> None:
    (opened.root / "pages/bad.md").write_bytes(b"one\ntwo \xff\n")
    files = {
        "pages/a.md": "---\nid: x\n---\n",
        "pages/bb.md": "---\nid: x\n---\n",
        "pages/c.md": "---\ntitle: [\n---\n",
        "pages/merge.md": "text\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n",
    }
    (opened.root / "pages/link.md").symlink_to("a.md")
    assert found(opened, files) == [
        ("pages/bad.md", 2, "error"),
        ("pages/bb.md", 0, "error"),
        ("pages/c.md", 3, "error"),
        ("pages/link.md", 0, "error"),
        ("pages/merge.md", 2, "error"),
        ("pages/merge.md", 6, "error"),
    ]


def test_conflict_copies_name_the_file_to_merge_into(opened: Notebook) -> None:
    names = {
        "facts/core (conflicted copy 2026-11-20 093012).md": "facts/core.md",
        "facts/notes.sync-conflict-20261120-093012-ABCD123.md": "facts/notes.md",
        "runtime/reminders.sync-conflict-20261120-093012-ABCD123.md": REMINDERS,
    }
    files = dict.fromkeys([*names, "facts/core.md", "facts/notes.md"], "# x\n\n- A fact\n")
    copies = [one for one in findings(opened, files) if "conflict copy" in one.message]
    assert {one.path: re.findall(r"into (\S+),", one.message)[0] for one in copies} == names
    messages = {one.path: one.message for one in findings(opened, {"pages/reminders.md": "x\n"})}
    assert messages["pages/reminders.md"].startswith(f"has the name of {REMINDERS}")


def test_names_that_other_systems_refuse_or_take_for_one(opened: Notebook) -> None:
    odd = ["pages/CON.md", "pages/a\nb.md", "pages/dot..md", "pages/plan.md"]
    messages = {one.path: one.message for one in findings(opened, dict.fromkeys([*odd, "pages/Plan.md"], "x\n"))}
    assert sorted(messages) == [*odd[:2], "pages/plan.md"]
    assert messages["pages/plan.md"].startswith("differs from pages/Plan.md")
    assert all(message.endswith(("rename it", "rename one of them")) for message in messages.values())


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (REMINDERS, "# Today\n\n- Call\n", [(3, "warning")]),
        (REMINDERS, "## Today\n\n<!-- later\n- [ ] Call\n", [(3, "error")]),
        (REMINDERS, "## Today\n\n```\n- [ ] Call\n", [(3, "error")]),
        (REMINDERS, "## Today\n\n<!-- - [ ] Call -->\n", [(3, "info")]),
        (REMINDERS, "<!--\n- [ ] Example\n-->\n## Today\n\n%%\n- [ ] Call\n%%\n\n- [ ] Real\n", [(7, "info")]),
        (
            RULES,
            "## Permanent Rules\n\n| **Eva** | a@x | block |\n|---|---|---|\n| **Ana** | a@x | block |\n",
            [(5, "warning")],
        ),
        (RULES, "## Permanent Rules\n\n- **A** (a@x): block [until 2020-01-01]\n", [(3, "info")]),
        (RULES, "## Temporary\n\n- **A** (a@x): block\n", [(3, "warning")]),
        (ORDERS, "## Style\n\n- Tea [until 2020-01-01]\n- Rum [until Friday]\n", [(3, "info"), (4, "warning")]),
        (ORDERS, "## A\n<!-- pin -->\n\n- x\n\n<!-- pin -->\n", [(6, "warning")]),
        (ORDERS, "---\nprovenance: external\n---\n- x\n", [(0, "error")]),
    ],
)
def test_runtime_files(opened: Notebook, path: str, text: str, expected: list[tuple[int, str]]) -> None:
    assert found(opened, {path: text}) == [(path, line, severity) for line, severity in expected]


def test_files_that_the_settings_name(opened: Notebook) -> None:
    (opened.root / ORDERS).unlink()
    toml = '[prompt]\nsystem_files = ["AGENTS.md"]\n[[prompt.files]]\npath = "channels/a/b.md"\n'
    assert found(opened, {"notebook.toml": toml}) == [
        ("AGENTS.md", 0, "error"),
        ("channels/a/b.md", 0, "error"),
        (ORDERS, 0, "warning"),
    ]


def test_an_emptied_file_is_an_error_until_it_says_something(opened: Notebook) -> None:
    write_files(
        opened.root, {ORDERS: "## Boundaries\n\n- Never promise a berth\n", "notebook.toml": "[sync]\nsettle_ms = 0\n"}
    )
    opened.prompt()
    (one,) = findings(opened, {ORDERS: "\n"})
    assert (one.path, one.severity, "it is empty" in one.message) == (ORDERS, "error", True)
    assert found(opened, {ORDERS: "## Boundaries\n"}) == []


def test_what_is_left_out_has_its_lines(opened: Notebook) -> None:
    tasks = "".join(f"- [{'x' if number % 2 else ' '}] Oil winch {number}\n" for number in range(12))
    write_files(opened.root, {"notebook.toml": "[prompt]\nmax_tokens_per_file = 70\n"})
    (one,) = findings(opened, {ORDERS: f"---\ntitle: a\n---\n<!-- a\nb -->\n## Today\n\n{tasks}"})
    assert (one.line, one.severity) == (9, "warning")
    assert "more than its cap of 70: 7 entries are left out, from line 9, 11, 13, 15, 17;" in one.message
    pinned = "## {}\n<!-- pin -->\n\n" + "- Never promise a berth\n" * 8
    (one, _) = findings(opened, {ORDERS: pinned.format("Boundaries") + "\n" + pinned.format("Style")})
    assert (one.severity, "pinned sections" in one.message) == ("error", True)


def test_a_total_that_is_too_small_names_one_that_is_enough(opened: Notebook) -> None:
    write_files(opened.root, {ORDERS: "## Preferences\n\n" + "- Offer the early crossing first\n" * 100})
    (one,) = findings(opened, {"notebook.toml": "[prompt]\nmax_tokens = 900\n"})
    assert (one.path, one.severity) == ("notebook.toml", "warning")
    enough = int(re.findall(r"set it to (\d+)", one.message)[0])
    assert found(opened, {"notebook.toml": f"[prompt]\nmax_tokens = {enough}\n"}) == []


def test_what_a_prompt_found_of_a_large_file_is_not_found_again(
    opened: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(opened.root, {ORDERS: "# a\n" * 3_000})
    opened.prompt()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("read again")

    for name in ("visible", "Cutting"):
        monkeypatch.setattr(sys.modules["prompt.assemble"], name, refuse)
    assert [(one.path, one.severity) for one in opened.prompts.check().results] == [(ORDERS, "warning")]


def test_broken_settings_are_a_finding_and_other_sessions_are_refused(opened: Notebook) -> None:
    opened.prompt()
    assert found(opened, {"notebook.toml": "[x]\n"}) == [("notebook.toml", 0, "error")]
    assert_raises(NotPermitted, opened.prompts.check, SCRIBE)
