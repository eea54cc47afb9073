"""`python -m tests.security_tables` runs tests/security and writes the tables of docs/security.md.

They are: what each session may do, from the table of permissions; and what was attempted against each rule, with its
outcome."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from notebook_sync.permissions import TABLE, Resource
from notebook_sync.sessions import KINDS

PAGE = Path(__file__).parents[1] / "docs" / "security.md"
FOLDER = Path(__file__).parent / "security"
RESOURCES: Mapping[Resource, str] = {
    "runtime": "the files in `runtime/`",
    "in the prompt": "other files of the session's prompt",
    "withheld": "files that `[[prompt.files]]` shows to other sessions only",
    "core facts": "`facts/core.md`",
    "settings": "`notebook.toml`",
    "notes": "all other notes",
    "own channel": "the private notes of the session's agent",
    "another's channel": "private notes of other agents, without a membership",
    "hidden": "`.notebook`, `.git`, tokens, memberships",
    "outside": "files outside of the notebook",
    "stream": "the daily stream and checkpoints",
}
_VERBS = {"read": "read", "write": "change", "add": "add"}


def rights() -> str:
    """What each session may do, as a Markdown table."""
    rows = [
        f"| {RESOURCES[resource]} | {' | '.join(_named(by_kind[kind]) for kind in KINDS)} |"
        for resource, by_kind in TABLE.items()
    ]
    return "\n".join([f"| what | {' | '.join(KINDS)} |", "|---" * (len(KINDS) + 1) + "|", *rows, ""])


def _named(verbs: frozenset[str]) -> str:
    return ", ".join(name for verb, name in _VERBS.items() if verb in verbs) or "nothing"


def rules() -> dict[str, str]:
    """By the name of its module, the rule that each module of tests/security attacks."""
    docs = {path.stem: ast.get_docstring(ast.parse(path.read_text())) or "" for path in FOLDER.glob("test_*.py")}
    return {name: " ".join(doc.removeprefix("Rule: ").split("\n\n")[0].split()) for name, doc in sorted(docs.items())}


class Outcomes:
    """A plugin of pytest that counts, for each module, the attempts and those that were held off."""

    def __init__(self) -> None:
        self.attempts, self.held = Counter[str](), Counter[str]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            module = Path(report.location[0]).stem
            self.attempts[module] += 1
            self.held[module] += report.passed


def attempts(outcomes: Outcomes) -> str:
    """The attempts against each rule and their outcome, as a Markdown table."""
    lines = ["| rule | attempts | held | in tests/security |", "|---|--:|--:|---|"]
    for name, rule in rules().items():
        text = (rule[0].upper() + rule[1:]).replace("|", "\\|")
        lines.append(f"| {text} | {outcomes.attempts[name]} | {outcomes.held[name]} | `{name}.py` |")
    return "\n".join([*lines, ""])


def with_table(text: str, name: str, table: str) -> str:
    """The page with one of its tables replaced."""
    begin, end = f"<!-- {name}: python -m tests.security_tables -->\n", f"<!-- end of {name} -->\n"
    above, _, rest = text.partition(begin)
    return f"{above}{begin}\n{table}\n{end}{rest.partition(end)[2]}"


def table_in(text: str, name: str) -> str:
    """What stands in the page for one of its tables."""
    return text.partition(f"<!-- {name}: python -m tests.security_tables -->\n")[2].partition(
        f"<!-- end of {name} -->"
    )[0]


def main() -> int:
    outcomes = Outcomes()
    status = pytest.main(["-q", "-p", "no:cacheprovider", str(FOLDER)], plugins=[outcomes])
    text = with_table(PAGE.read_text(encoding="utf-8"), "rights", rights())
    PAGE.write_text(with_table(text, "attempts", attempts(outcomes)), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
