"""The answer to a request, read from the socket as curl reads it (docs/dependencies.md says why no library does this).

Receivers write their own servers, and whoever tried theirs with curl believes that it works. So what curl takes as an
answer is one: a line without a colon, a blank before it, lines that end without CR, a length that is followed by text.
``tests/egress/test_answers_like_curl.py`` compares the two. What curl refuses is refused, unless its meaning is plain.

Nothing is guessed that would harm: a connection whose answer did not end exactly where it said is not used again, so
nothing of one answer can become part of the next.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

MAX_HEAD = 300 * 1024
"""Bytes of status line, headers and interim answers together, as in curl."""

MAX_HEADERS = 5_000
"""Headers, as in curl 8."""

_BUFFER = 16 * 1024
_FRAMING_LINE = 16 * 1024
"""Longest line between chunks, as in curl."""

_FRAMING_FACTOR = 8
"""A chunk of one byte takes six on the wire; more framing than that is an attack rather than an answer."""

_MOST_LENGTH = 2**63 - 1
_STATUS = re.compile(
    rb"HTTP/(?P<version>1\.[0-9]|2(?:\.0)?)[ \t]+(?P<status>[1-9][0-9]{2})(?![0-9])(?P<reason>.*)", re.I
)
_FIRST = b"HTTP/"
_LENGTH = re.compile(rb"[ \t]*\+?([0-9]+)")
_CHUNK = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,16})(?![0-9A-Fa-f])")
_PLAIN_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,4})\r\n")


class AnswerTooLarge(Exception):
    """An answer's head or framing is larger than any useful answer's."""


class NotHttp(Exception):
    """What came is no answer in HTTP."""


class AnswerCut(Exception):
    """The connection ended before the answer did."""


class Reply(NamedTuple):
    """An answer as received.

    Attributes:
        headers: Names in lower case and values, in order, as text whose Latin-1 bytes came.
        body: Cut at the limit.
        reusable: Whether the connection can carry another request.
    """

    status: int
    reason: str
    headers: Sequence[tuple[str, str]]
    body: bytes
    reusable: bool


class Framing(NamedTuple):
    """Where an answer's body ends.

    Attributes:
        length: Bytes; None for the end of the connection.
        chunked: Whether it comes in chunks, whatever the length.
    """

    length: int | None = None
    chunked: bool = False


def read_answer(receive: Callable[[bytearray], int], method: str, limit: int) -> Reply:
    """Read one answer.

    Args:
        receive: Fills a buffer with what comes next, and returns how much that was; 0 at the end of the connection.
        method: Of the request: an answer to HEAD has no body.
        limit: Bytes of the body that are wanted. One more shows that there are more, and reading ends.

    Raises:
        NotHttp: See there.
        AnswerCut: See there.
        AnswerTooLarge: The head or the framing is too large.
        OSError: Whatever ``receive`` raises.
    """
    return _Reader(receive).answer(method, limit)


class _Reader:
    """What has come, and what of it has been read."""

    def __init__(self, receive: Callable[[bytearray], int]) -> None:
        self._receive = receive
        self._buffer = bytearray(_BUFFER)
        self._come = bytearray()
        self._ended = False
        self._allowance = MAX_HEAD

    def answer(self, method: str, limit: int) -> Reply:
        while True:
            version, status, reason = self._status_line()
            headers = self._headers()
            # Interim answers may come unasked (RFC 9110, 15.2). After a switch of protocols nothing else comes.
            if status == 101 or status >= 200:
                break
        framing = _framing(headers)
        self._allowance = _FRAMING_FACTOR * limit + MAX_HEAD
        if method == "HEAD" or status in (101, 204, 304):
            # What announces a body with 204 may send it yet; with 304 and to HEAD, that is what a GET would get.
            announced = status == 204 and (framing.chunked or bool(framing.length))
            body, whole = b"", status != 101 and not announced
        elif framing.chunked:
            body, whole = self._chunks(limit + 1)
        elif framing.length is None:
            body, whole = self._up_to(limit + 1), False
        else:
            body = self._up_to(min(framing.length, limit + 1))
            if len(body) < min(framing.length, limit + 1):
                raise AnswerCut
            whole = len(body) == framing.length
        reusable = whole and len(body) <= limit and not self._come and not self._ended and _stays(version, headers)
        shown = [(name.strip().decode("latin-1"), value.decode("latin-1")) for name, value in headers]
        return Reply(status, reason.strip(b" \t\r").decode("latin-1"), shown, body[:limit], reusable)

    def _status_line(self) -> tuple[bytes, int, bytes]:
        # Whoever speaks something else may wait for our turn after a greeting without an end of line.
        while len(self._come) < len(_FIRST) and self._more():
            pass
        if not self._come:
            raise AnswerCut
        if self._come[: len(_FIRST)].upper() != _FIRST[: len(self._come)]:
            raise NotHttp
        found = _STATUS.match(self._line())
        if not found:
            raise NotHttp
        return found["version"], int(found["status"]), found["reason"]

    def _headers(self) -> list[tuple[bytes, bytes]]:
        """The lines that have a colon, up to the empty line or the end of the connection; folded lines are one. Names
        are in lower case, with the blank before the colon: a framing header with one is none, as for curl.
        """
        headers: list[tuple[bytes, bytes]] = []
        folded: list[bytes] = []
        for line in self._head_lines():
            if line[:1] in (b" ", b"\t"):
                folded.append(line.strip())
                continue
            if folded and headers:
                name, value = headers[-1]
                headers[-1] = name, b" ".join(each for each in (value, *folded) if each)
            folded = []
            if not line:
                return headers
            name, colon, value = line.partition(b":")
            if colon and name.strip():
                headers.append((name.lower(), value.strip()))
        raise AnswerTooLarge

    def _head_lines(self) -> Iterator[bytes]:
        """The lines up to the empty one, or more than there may be."""
        # Nearly always all of them have come at once, and all end in the same way.
        end = self._come.find(b"\r\n\r\n", 0, self._allowance)
        head = bytes(self._come[: end + 2]) if end > 0 and self._come[:2] != b"\r\n" else b""
        lines = head.split(b"\r\n")
        if 1 < len(lines) <= MAX_HEADERS and head.count(b"\n") == len(lines) - 1 and b"\r\r" not in head:
            self._take(end + 4)
            yield from lines
            return
        for _ in range(MAX_HEADERS + 1):
            yield self._line()

    def _chunks(self, limit: int) -> tuple[bytes, bool]:
        """A body in chunks, up to a limit, and whether it was all."""
        body = bytearray()
        while True:
            self._plain_chunks(body, limit)
            found = _CHUNK.match(self._line(_FRAMING_LINE))
            if not found:
                if self._ended:
                    raise AnswerCut
                raise NotHttp
            size = int(found[1], 16)
            if size == 0:
                while self._line(_FRAMING_LINE):
                    pass
                return bytes(body), True
            wanted = min(size, limit - len(body))
            got = self._up_to(wanted)
            body += got
            if len(got) < wanted:
                raise AnswerCut
            if len(body) == limit:
                return bytes(body), False
            if self._line(_FRAMING_LINE):
                raise NotHttp

    def _plain_chunks(self, body: bytearray, limit: int) -> None:
        """Take all chunks that have come whole, in the plainest form: there may be millions of a byte each, and whoever
        sends them must not keep others waiting.
        """
        come, end, before = self._come, 0, len(body)
        while found := _PLAIN_CHUNK.match(come, end):
            start, size = found.end(), int(found[1], 16)
            after = start + size
            if not 0 < size < limit - len(body) or come[after : after + 2] != b"\r\n":
                break
            body += come[start:after]
            end = after + 2
        del come[:end]
        self._allowance -= end - (len(body) - before)
        if self._allowance < 0:
            raise AnswerTooLarge

    def _line(self, most: int = MAX_HEAD) -> bytes:
        """The next line without its end; what there is at the end of the connection."""
        seen = 0
        while (end := self._come.find(b"\n", seen)) < 0:
            seen = len(self._come)
            if seen > min(most, self._allowance):
                raise AnswerTooLarge
            if not self._more():
                end = seen
                break
        if end > most:
            raise AnswerTooLarge
        line = bytes(self._come[:end]).rstrip(b"\r")
        self._take(min(end + 1, len(self._come)))
        return line

    def _up_to(self, count: int) -> bytes:
        """The next bytes, less only at the end of the connection."""
        while len(self._come) < count and self._more():
            pass
        taken = bytes(self._come[:count])
        del self._come[: len(taken)]
        return taken

    def _take(self, count: int) -> None:
        """Pass over something that is no body."""
        del self._come[:count]
        self._allowance -= count
        if self._allowance < 0:
            raise AnswerTooLarge

    def _more(self) -> bool:
        """Receive; whether anything came."""
        if self._ended:
            return False
        count = self._receive(self._buffer)
        self._come += memoryview(self._buffer)[:count]
        self._ended = count == 0
        return not self._ended


def _framing(headers: Sequence[tuple[bytes, bytes]]) -> Framing:
    """Where the body ends (RFC 9112, 6.3), and where curl takes it to end if that is unclear: the last length counts,
    as far as it is a number, and one that is too large for any file is none.
    """
    length: int | None = None
    chunked = False
    for name, value in headers:
        if name == b"transfer-encoding":
            chunked = chunked or b"chunked" in {each.strip().lower() for each in value.split(b",")}
        elif name == b"content-length":
            found = _LENGTH.match(value)
            if not found:
                if not chunked:
                    raise NotHttp
                continue
            # A number of so many digits would take long to read.
            digits = found[1].lstrip(b"0") or b"0"
            number = int(digits) if len(digits) < 20 else _MOST_LENGTH + 1
            length = number if number <= _MOST_LENGTH else None
    return Framing(length, chunked)


def _stays(version: bytes, headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Whether the other side keeps the connection, and says in only one way where the answer ends."""
    words, lengths, coded = set[bytes](), set[bytes](), False
    for name, value in headers:
        match name.strip():
            case b"connection":
                words.update(each.strip().lower() for each in value.split(b","))
            case b"content-length":
                lengths.add(value)
            case b"transfer-encoding":
                coded = True
    if b"close" in words or (version == b"1.0" and b"keep-alive" not in words):
        return False
    return len(lengths) + coded <= 1 and all(each.isdigit() for each in lengths)
