"""The size of the code against the figures in pyproject.toml: `python -m tests.statement_budget [ROOT]`.

Statements are counted with `ast`, without docstrings, so that formatting cannot change the number. A room may exceed
its figure by 15 %; `whole` (notebook_sync and prompt) and `tests` may not. A room that is larger today has
a limit of its own in `over`. Exit status 1 where something is over its limit.
"""

import ast
import sys
import tomllib
from collections import Counter
from pathlib import Path

TOLERANCE_PERCENT = 15
TOTALS = ("whole", "tests")


def count_statements(source: str) -> int:
    """All statements of a module, without docstrings and other bare constants."""
    return sum(isinstance(node, ast.stmt) and not _is_constant(node) for node in ast.walk(ast.parse(source)))


def count_rooms(root: Path) -> Counter[str]:
    """Statements by room: `prompt`, `root` (modules of notebook_sync itself), its packages, `whole` and `tests`."""
    counts: Counter[str] = Counter()
    for package in ("prompt", "notebook_sync", "tests"):
        for path in (root / package).rglob("*.py"):
            statements = count_statements(path.read_text(encoding="utf-8"))
            parts = path.relative_to(root).parts
            room = package
            if package == "notebook_sync":
                room = "root" if len(parts) == 2 else parts[1]
            counts[room] += statements
            if package != "tests":
                counts["whole"] += statements
    return counts


def main(root: Path) -> int:
    """Print the table; 1 if a count is over its limit or a room has no figure."""
    settings = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["notebook-sync"]
    figures, over = settings["budget"], settings.get("over", {})
    counts = count_rooms(root)
    is_over = False
    for room in dict.fromkeys((*figures, *counts)):
        figure = figures.get(room, 0)
        limit = figure if room in TOTALS else figure * (100 + TOLERANCE_PERCENT) // 100
        limit = max(limit, over.get(room, 0))
        verdict = "OVER" if counts[room] > limit else ""
        is_over |= bool(verdict)
        print(f"{room:10} {counts[room]:6} statements of {figure:6}, at most {limit:6}  {verdict}".rstrip())
    return int(is_over)


def _is_constant(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if sys.argv[1:] else Path(__file__).parent.parent)))
