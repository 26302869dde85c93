"""Signatures, against published vectors and another implementation."""

from __future__ import annotations

import base64
import secrets

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.fakes.clock import START_MS

from pushhub.base import ed25519
from pushhub.base.signing import KeyRing, TooManyKeys, new_key, parse_key, signatures

SYMMETRIC = parse_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
ASYMMETRIC = parse_key("whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==")


def test_the_published_vectors_of_svix() -> None:
    signed = signatures([SYMMETRIC, ASYMMETRIC], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b'{"test": 2432232314}')
    assert signed == (
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= "
        "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="
    )


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 10_000])
def test_ed25519_is_as_another_implementation_has_it(size: int) -> None:
    for _ in range(10):
        seed, message = secrets.token_bytes(32), secrets.token_bytes(size)
        other = Ed25519PrivateKey.from_private_bytes(seed)
        public = other.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        assert ed25519.public_key(seed) == public
        assert ed25519.sign(seed, public, message) == other.sign(message)


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
