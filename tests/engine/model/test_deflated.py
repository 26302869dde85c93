"""Bodies as they are stored: exactly the bytes that were posted come out, and never more than the hub compressed."""

from __future__ import annotations

import random
import tracemalloc
import zlib

import pytest
from bench.webhook_bodies import corpus
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pushhub.base.errors import Unreadable
from pushhub.engine.model import body_dictionary
from pushhub.engine.model.deflated import LONGEST, SHORTEST, Deflated, plain, stored_as, stored_size

WEBHOOK = next(each.content for each in corpus() if each.sender == "stripe")
RANDOM = random.Random(53)


def deflated(body: bytes) -> Deflated:
    stored = stored_as(body)
    assert isinstance(stored, Deflated)
    return stored


@given(st.binary(max_size=3_000), st.integers(1, 60))
@example(zlib.compress(b"x" * 5_000, 9), 1)
@example(zlib.compress(WEBHOOK), 9)
@example(deflated(WEBHOOK).content, 4)
@example(body_dictionary.DICTIONARY, 1)
@example(b"\0" * LONGEST, 1)
@settings(max_examples=300, deadline=None)
def test_any_bytes_come_back(part: bytes, times: int) -> None:
    # Given bytes of any kind, also compressed ones, and such as an attacker would choose
    body = (part * times)[: LONGEST + 2]
    # When they are stored and read
    stored = stored_as(body)
    # Then they are the same, and never take more room than before
    assert plain(stored) == body
    assert stored_size(stored) <= len(body)


def test_bodies_of_webhooks_take_a_third() -> None:
    # Given bodies of twelve senders
    bodies = [each.content for each in corpus()]
    assert len(bodies) >= 200
    # Then a body of 1.5 to 2.5 KB fits, nearly always, into a write unit with the message's other attributes
    middle = [each for each in bodies if 1_500 <= len(each) <= 2_500]
    assert sum(stored_size(stored_as(each)) <= 1_024 - 189 for each in middle) >= 0.95 * len(middle)
    assert sum(stored_size(stored_as(each)) for each in bodies) < sum(map(len, bodies)) / 3


@pytest.mark.parametrize("size", [0, 1, SHORTEST - 1, LONGEST + 1])
def test_what_is_small_or_very_large_stays_as_it_is(size: int) -> None:
    assert stored_as(b"a" * size) == b"a" * size


@pytest.mark.parametrize("size", [SHORTEST, LONGEST])
def test_everything_between_is_compressed(size: int) -> None:
    assert plain(deflated(b"a" * size)) == b"a" * size


def test_what_does_not_become_much_smaller_stays_as_it_is() -> None:
    assert stored_as(body := RANDOM.randbytes(4_000)) == body


GOOD = deflated(WEBHOOK)


@pytest.mark.parametrize(
    "damaged",
    [
        Deflated(b"", GOOD.size),
        Deflated(b"\x78", GOOD.size),
        Deflated(GOOD.content[:-1], GOOD.size),
        Deflated(GOOD.content[:-4] + b"0000", GOOD.size),
        Deflated(GOOD.content + b"\0", GOOD.size),
        Deflated(GOOD.content, GOOD.size - 1),
        Deflated(GOOD.content, GOOD.size + 1),
        Deflated(GOOD.content, -1),
        Deflated(GOOD.content, 0),
        Deflated(GOOD.content, LONGEST + 1),
        Deflated(zlib.compress(WEBHOOK), GOOD.size),
        Deflated(RANDOM.randbytes(700), GOOD.size),
    ],
)
def test_what_the_hub_did_not_write_is_unreadable(damaged: Deflated) -> None:
    with pytest.raises(Unreadable):
        plain(damaged)


def test_a_bomb_takes_no_more_room_than_a_body_may() -> None:
    # Given a few bytes of a stream with our dictionary that would become 50 MB
    compressor = zlib.compressobj(9, zdict=body_dictionary.DICTIONARY)
    bomb = Deflated(compressor.compress(bytes(50_000_000)) + compressor.flush(), LONGEST)
    # When it is read
    tracemalloc.start()
    with pytest.raises(Unreadable):
        plain(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Then no more was made of it than a body's size
    assert peak < 4 * LONGEST


def test_the_dictionary_is_the_one_that_stored_bodies_name() -> None:
    # Another one may only be added: what was stored with this one could not be read any more
    assert zlib.adler32(body_dictionary.DICTIONARY) == 0x37B0_860B
