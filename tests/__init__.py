"""The tests. What a contract or a helper asserts is told like what a test asserts."""

from pathlib import Path

import pytest

pytest.register_assert_rewrite(*(f"tests.{one.stem}" for one in Path(__file__).parent.iterdir() if one.stem[0] != "_"))
