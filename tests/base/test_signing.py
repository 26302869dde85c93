"""Signatures, against published vectors."""

from __future__ import annotations

import base64

import pytest
from tests.fakes.clock import START_MS
from tests.fakes.vectors import VECTORS

from pushhub.base.errors import Invalid
from pushhub.base.signing import KeyRing, TooManyKeys, new_key, parse_key, signatures

SYMMETRIC = parse_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
ASYMMETRIC = parse_key("whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==")


def test_the_published_vectors_of_svix() -> None:
    signed = signatures([SYMMETRIC, ASYMMETRIC], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b'{"test": 2432232314}')
    assert signed == (
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= "
        "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="
    )


@pytest.mark.parametrize("vector", VECTORS["ed25519"], ids=lambda vector: vector["id"])
def test_v1a_is_ed25519_as_in_rfc_8032(vector: dict[str, str]) -> None:
    # Given a published seed with its public key, as an owner enters them
    seed, public, message, signed = (bytes.fromhex(vector[name]) for name in ("seed", "public", "message", "signature"))
    key = parse_key("whsk_" + base64.b64encode(seed + public).decode())
    # Then the signature is the published one
    assert key.signature(message) == "v1a," + base64.b64encode(signed).decode()


@pytest.mark.parametrize("size", [0, 31, 32, 63, 65])
def test_a_secret_that_is_no_seed_with_its_public_key_is_refused(size: int) -> None:
    with pytest.raises(Invalid, match="a seed of 32 bytes followed by its public key"):
        parse_key("whsk_" + base64.b64encode((ASYMMETRIC.private + ASYMMETRIC.public + b"x")[:size]).decode())


def test_a_seed_with_the_public_key_of_another_is_refused() -> None:
    other = ASYMMETRIC.public[:-1] + b"x"
    with pytest.raises(Invalid, match="followed by its public key"):
        parse_key("whsk_" + base64.b64encode(ASYMMETRIC.private + other).decode())


def test_a_ring_is_written_and_read_and_shows_nothing_in_its_text() -> None:
    ring = KeyRing(SYMMETRIC).rotated(ASYMMETRIC, grace_ms=1000, now=START_MS)
    assert KeyRing.decode(ring.encode()) == ring
    assert base64.b64encode(SYMMETRIC.private).decode() not in repr(ring)
    assert repr(SYMMETRIC.private) not in repr(ring)


def test_old_keys_sign_until_their_time_the_current_one_first() -> None:
    first, second, third = (new_key() for _ in range(3))
    ring = KeyRing(first).rotated(second, grace_ms=2000, now=START_MS).rotated(third, grace_ms=1000, now=START_MS)
    assert ring.live(START_MS) == [third, second, first]
    assert ring.live(START_MS + 1000) == [third, first]
    assert ring.live(START_MS + 2000) == [third]
    # Back to an earlier key: it signs once
    assert ring.rotated(first, grace_ms=0, now=START_MS).live(START_MS) == [first, second]


def test_more_than_ten_old_keys_are_refused_with_the_time_of_the_next_end() -> None:
    ring = KeyRing(new_key())
    for number in range(10):
        ring = ring.rotated(new_key(), grace_ms=1000 + number, now=START_MS)
    with pytest.raises(TooManyKeys) as refused:
        ring.rotated(new_key(), grace_ms=5000, now=START_MS)
    assert refused.value.next_expiry == START_MS + 1000
    ring.rotated(new_key(), grace_ms=0, now=START_MS)
