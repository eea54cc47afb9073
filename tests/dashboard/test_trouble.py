"""What a page says of an error is for who looks at it, and not for a program."""

from __future__ import annotations

import pytest

from notebook_sync.surfaces.dashboard.trouble import advice_for_owner
from notebook_sync.surfaces.errors import KINDS, Kind


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.type)
def test_the_owner_is_not_sent_to_the_owner(kind: Kind) -> None:
    error = kind.error.__new__(kind.error)
    said = advice_for_owner(error)
    assert said
    assert not {"owner", "arguments", "call", "calling"} & {*said.replace(",", " ").split()}
    assert "notebook_" not in said
    assert "expected_digest" not in said
