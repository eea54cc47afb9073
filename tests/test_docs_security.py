"""The tables of docs/security.md are those that the code and tests/security give."""

from __future__ import annotations

from tests.security_tables import PAGE, rights, rules, table_in

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_rights_are_those_of_the_table_of_permissions() -> None:
    assert table_in(TEXT, "rights").strip() == rights().strip(), "write it again: python -m tests.security_tables"


def test_each_rule_that_is_attacked_has_its_row_and_holds() -> None:
    rows = [line.split(" | ") for line in table_in(TEXT, "attempts").strip().splitlines()[2:]]
    assert [row[-1].strip(" `|") for row in rows] == [f"{name}.py" for name in rules()]
    assert [row[0].removeprefix("| ").casefold() for row in rows] == [rule.casefold() for rule in rules().values()]
    assert all(int(row[-3]) == int(row[-2]) > 0 for row in rows)
