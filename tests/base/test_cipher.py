"""What is encrypted is not seen, and opens with its own key and context only, unchanged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.base.cipher import KEY_BYTES, decrypt, encrypt

KEYS = st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES)
CONTENTS = st.binary(max_size=300)


@given(KEYS, CONTENTS, st.binary(max_size=40))
def test_what_is_encrypted_opens_again(key: bytes, content: bytes, context: bytes) -> None:
    sealed = encrypt(key, content, context=context)
    assert decrypt(key, sealed, context=context) == content
    assert len(sealed) == len(content) + 56
    assert len(content) < 8 or content not in sealed


@given(KEYS, CONTENTS, st.binary(max_size=40), st.data())
def test_any_changed_bit_is_noticed(key: bytes, content: bytes, context: bytes, data: st.DataObject) -> None:
    sealed = encrypt(key, content, context=context)
    bit = data.draw(st.integers(0, 8 * len(sealed) - 1))
    changed = bytearray(sealed)
    changed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(ValueError, match="another key or context"):
        decrypt(key, bytes(changed), context=context)


@given(KEYS, KEYS, CONTENTS, st.binary(max_size=40), st.binary(max_size=40))
def test_another_key_or_context_does_not_open_it(
    key: bytes, other: bytes, content: bytes, context: bytes, elsewhere: bytes
) -> None:
    sealed = encrypt(key, content, context=context)
    if other != key:
        with pytest.raises(ValueError, match="another key"):
            decrypt(other, sealed, context=context)
    if elsewhere != context:
        with pytest.raises(ValueError, match="another key"):
            decrypt(key, sealed, context=elsewhere)


@given(KEYS, st.binary(max_size=55))
def test_what_is_too_short_is_refused(key: bytes, sealed: bytes) -> None:
    with pytest.raises(ValueError, match="too short"):
        decrypt(key, sealed, context=b"")


def test_the_same_text_is_never_encrypted_the_same_way() -> None:
    key = bytes(range(KEY_BYTES))
    assert len({encrypt(key, b"same", context=b"") for _ in range(100)}) == 100


def test_what_earlier_versions_wrote_opens() -> None:
    """The format, as stored since November 2026."""
    sealed = bytes.fromhex(FIXED)
    assert decrypt(bytes(range(KEY_BYTES)), sealed, context=b"5c1f") == "Bearer schl\u00fcssel".encode()


FIXED = (
    "000102030405060708090a0b0c0d0e0f1011121314151617fcd482618cae0320c8f561482677aa2b96629bf4caa6bd22"
    "021fec6bd963d8245c76e6316328135db8dc81fc7854428168"
)
