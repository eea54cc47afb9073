"""The tests. Assertions in helper modules are explained like those in tests."""

from pathlib import Path

import pytest

_HELPERS = [path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith(("_", "test_"))]
pytest.register_assert_rewrite(*(f"tests.{name}" for name in _HELPERS))
