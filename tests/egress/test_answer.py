"""The reader of answers by itself: how the bytes come changes nothing, and nothing of it is read twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.effort import effort
from tests.hostile.odd_answers import ODD_ANSWERS

from pushhub.egress.answer import AnswerCut, AnswerTooLarge, NotHttp, Reply, read_answer

HEAD = b"HTTP/1.1 200 OK\r\n"

PIECES = [
    *(b"\r\n", b"\n", b"\r", b" ", b"\t", b":", b"x: y", b"3", b"abc", b"0", b"\r\n\r\n"),
    *(b"Content-Length: 3", b"Content-Length : 3", b"Transfer-Encoding: chunked", b"Connection: close"),
    *(HEAD, b"HTTP/1.1 100 Continue\r\n\r\n"),
]


def coming(answer: bytes, at_once: int) -> Callable[[bytearray], int]:
    """A connection on which so many bytes come at a time, and then the end."""
    rest = memoryview(answer)

    def receive(buffer: bytearray) -> int:
        nonlocal rest
        count = min(at_once, len(rest), len(buffer))
        buffer[:count] = rest[:count]
        rest = rest[count:]
        return count

    return receive


def outcome(answer: bytes, at_once: int) -> object:
    """What is read of it, but not whether the connection can be used again: its end may have been seen or not."""
    try:
        return read_answer(coming(answer, at_once), "POST", 50)._replace(reusable=False)
    except (AnswerCut, AnswerTooLarge, NotHttp) as error:
        return type(error)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=10).map(lambda drawn: HEAD + b"".join(drawn)))
def test_bytes_one_by_one_are_read_as_they_are_all_at_once(answer: bytes) -> None:
    assert outcome(answer, 1) == outcome(answer, 100_000)


@pytest.mark.parametrize("name", [each for each in ODD_ANSWERS if len(ODD_ANSWERS[each]) < 5_000])
def test_odd_answers_are_read_alike_in_any_pieces(name: str) -> None:
    answer = ODD_ANSWERS[name]
    assert outcome(answer, 1) == outcome(answer, 7) == outcome(answer, 100_000)


@pytest.mark.parametrize(
    ("answer", "reusable"),
    [
        (HEAD + b"Content-Length: 2\r\n\r\nok", True),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", True),
        (b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nok", True),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", False),
        (HEAD + b"Connection: x, Close\r\nContent-Length: 2\r\n\r\nok", False),
        # More came than it said
        (HEAD + b"Content-Length: 2\r\n\r\nok!", False),
        # Where it ends is said in two ways, or in a strange one
        (HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", False),
        (HEAD + b"Content-Length: 3\r\nContent-Length: 2\r\n\r\nok", False),
        (HEAD + b"Content-Length: 2 bytes\r\n\r\nok", False),
        (HEAD + b"Content-Length : 9\r\nContent-Length: 2\r\n\r\nok", False),
        (HEAD + b"\r\nok", False),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\nok", False),
        # What has no body announces one, which may come yet
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n", False),
        (b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", False),
    ],
)
def test_a_connection_is_used_again_only_if_the_end_of_its_answer_is_certain(answer: bytes, reusable: bool) -> None:
    came = coming(answer, 100_000)
    reply: Reply = read_answer(came, "POST", 50)
    assert (reply.reusable, reply.status // 100) == (reusable, 1 if b" 101 " in answer else 2)


def test_five_thousand_headers_may_come() -> None:
    reply = read_answer(coming(HEAD + b"X: y\r\n" * 4_999 + b"Content-Length: 0\r\n\r\n", 16_384), "POST", 50)
    assert len(reply.headers) == 5_000
    with pytest.raises(AnswerTooLarge):
        read_answer(coming(HEAD + b"X: y\r\n" * 5_000 + b"Content-Length: 0\r\n\r\n", 16_384), "POST", 50)


def test_chunks_of_a_byte_cost_little_each() -> None:
    # Given an answer in as many chunks as it has bytes
    chunks = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 20_000 + b"0\r\n\r\n"
    replies: list[Reply] = []
    # When it is read
    cost = effort(lambda: replies.append(read_answer(coming(chunks, 16_384), "POST", 20_000)))
    # Then all of it is, in a few steps for each: other requests wait for them
    assert replies[0].body == b"x" * 20_000
    assert cost < 20_000 * 100
