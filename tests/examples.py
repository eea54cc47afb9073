"""Examples in Markdown files: below an introduction, a title and some texts each, all ended by a line of one dot."""

import re
from pathlib import Path
from typing import Any


def examples_in(file: Path, texts: int) -> dict[str, Any]:
    """Arguments of `pytest.mark.parametrize` after the names: so many texts for each example, called by its title."""
    *fields, _ = re.split(r"(?m)^\.\n", file.read_text(encoding="utf-8"))
    titles = [field.strip().splitlines()[-1] for field in fields[:: texts + 1]]
    columns = [fields[place :: texts + 1] for place in range(1, texts + 1)]
    return {"argvalues": list(zip(*columns, strict=True)), "ids": titles}
