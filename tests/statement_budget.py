"""How much code there is, against the budget in pyproject.toml: `python -m tests.statement_budget`.

Statements are counted with `ast`, docstrings apart, so that formatting cannot change the number. The budget only falls:
a commit that deletes code lowers it. Exit status 1 where a count is over its budget.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
# What each budget counts.
FOLDERS = {"code": ("notebook_sync", "prompt"), "prompt": ("prompt",), "tests": ("tests",)}


def statements_in(folder: Path) -> int:
    """All statements below `folder`, docstrings and other bare constants apart."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in folder.rglob("*.py"))
    return sum(isinstance(node, ast.stmt) and not _is_constant(node) for tree in trees for node in ast.walk(tree))


def main() -> int:
    """Print each count with its budget."""
    budget = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["notebook-sync"]["budget"]
    is_over = False
    for name, folders in FOLDERS.items():
        count, most = sum(statements_in(ROOT / folder) for folder in folders), budget[name]
        is_over |= count > most
        print(f"{name:8} {count:6} statements, budget {most}{'  OVER BUDGET' if count > most else ''}")
    return int(is_over)


def _is_constant(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


if __name__ == "__main__":
    sys.exit(main())
