"""What people see of an address: where the server is, and nothing that lets them in."""

from __future__ import annotations

import pytest

from notebook_sync.address import Address


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("", ""),
        ("redis://h1/0", "redis://h1/0"),
        ("redis://:secret@h1/0", "redis://***@h1/0"),
        ("mongodb://a:p@ss@h1,h2/x", "mongodb://***@h1,h2/x"),
        ("mongodb://a:p/ss?x@h1", "mongodb://***@h1"),
        ("mongodb://ann:secret@db:27017/x?tls=true", "mongodb://***@db:27017/x?tls=***"),
        ("redis://h/0?password=hunter2&db=1;hunter2", "redis://h/0?password=***&db=***"),
        ("redis://h/0?password=hun@ter2", "redis://***"),
        ("redis://h/0#hunter2", "redis://h/0"),
        ("user:secret@host:27017", "***@host:27017"),
        ("mongodb:/user:secret@host", "***@host"),
    ],
)
def test_it_is_shown_without_credentials_and_values(url: str, shown: str) -> None:
    assert Address.of(url).shown() == shown


def test_a_message_of_a_driver_loses_the_password_and_its_pieces() -> None:
    address = Address.of("mongodb://ann:left%2Dhand/right@host/?tlsCertificateKeyFilePassword=k3y%2D1")
    told = "ann:left%2Dhand/right, left-hand/right, left%2Dhand, bad port 'right', k3y%2D1, k3y-1"
    assert address.without_secrets(told) == "***, ***, ***, bad port '***', ***, ***"


def test_a_short_piece_of_a_password_does_not_garble_a_message() -> None:
    address = Address.of("mongodb://ann:x@1@127.0.0.1:27017")
    assert address.without_secrets("bad port '1'") == "bad port ***"
    assert address.without_secrets("127.0.0.1:27017: timed out after 10 s") == "127.0.0.1:27017: timed out after 10 s"
