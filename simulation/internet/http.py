"""HTTP/1.1 from the receiving end: cuts what comes on a connection into requests, strictly."""

from __future__ import annotations

import re
from collections.abc import Iterator

from simulation.promises.talks.internet import Request

_LINE = re.compile(rb"([A-Z]+) (/[\x21-\x7e]*) HTTP/1\.1")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([^\x00-\x08\x0a-\x1f\x7f]*)")


class Reading:
    """What came on one connection."""

    def __init__(self) -> None:
        self._come = bytearray()

    def requests(self, data: bytes) -> Iterator[Request]:
        """Requests that are complete, once more bytes have come."""
        self._come += data
        while (end := self._come.find(b"\r\n\r\n")) >= 0:
            first, *lines = bytes(self._come[:end]).split(b"\r\n")
            found = _LINE.fullmatch(first)
            headers = [_HEADER.fullmatch(each) for each in lines]
            if found is None or None in headers:
                self._come.clear()
                yield Request("", "", (), b"", "no request of HTTP/1.1")
                return
            named = tuple((each[1].decode().lower(), _text(each[2])) for each in headers if each is not None)
            lengths = [value for name, value in named if name == "content-length"]
            length = int(lengths[0]) if lengths and lengths[0].isdigit() else 0
            wrong = _wrong(named, lengths)
            if len(self._come) < end + 4 + length:
                return
            body = bytes(self._come[end + 4 : end + 4 + length])
            del self._come[: end + 4 + length]
            yield Request(found[1].decode(), found[2].decode(), named, body, wrong)

    @property
    def begun(self) -> int:
        """Bytes of a request that is not complete."""
        return len(self._come)


def _wrong(headers: tuple[tuple[str, str], ...], lengths: list[str]) -> str:
    names = [name for name, _ in headers]
    if len(lengths) > 1 or "transfer-encoding" in names or not all(each.isdigit() for each in lengths):
        return "it is not clear where it ends"
    if names.count("host") != 1:
        return "it does not name one host"
    twice = sorted({each for each in names if names.count(each) > 1})
    return f"headers occur twice: {twice}" if twice else ""


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
