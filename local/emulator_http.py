"""How the emulator reads requests and writes answers. Runs in the emulator's process.

Its HTTP server, hypercorn, takes half of the emulator's CPU: some seven objects, two tasks and four locks for each
request. Here plain requests (HTTP/1.1, a length, nothing to negotiate), which is all that the front door and the
functions send, are read and answered with little more than a pattern; any other one, and all that follow on its
connection, is hypercorn's as before: upgrades to WebSockets, chunked or large bodies, ``Expect``, HTTP/2, and whatever
is not quite right.
"""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import suppress
from http import HTTPStatus
from typing import Any, ClassVar
from urllib.parse import unquote

from hypercorn.asyncio import run, tcp_server  # type: ignore[import-not-found]
from hypercorn.utils import parse_socket_addr  # type: ignore[import-not-found]

LARGE = 1 << 20
"""Bytes of a body from which on hypercorn reads it."""
LOOK_S = 1.0
"""How often an answer that takes its time looks whether anybody still waits for it."""
_REQUEST = re.compile(rb"(DELETE|GET|OPTIONS|PATCH|POST|PUT) (/[!-~]*) HTTP/1\.1\r\n")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\0-\x08\n-\x1f\x7f]*?)[ \t]*\r\n")
_NEGOTIATED = frozenset({b"connection", b"expect", b"http2-settings", b"te", b"transfer-encoding", b"upgrade"})
_WITHOUT_BODY = frozenset({204, 304})
_log = logging.getLogger("pushhub.http")

Headers = list[tuple[bytes, bytes]]


def serve_plainly() -> None:
    """Let plain requests be read and answered here."""
    run.TCPServer = Connection


def head_of(data: bytes) -> tuple[str, bytes, Headers, int] | None:
    """Method, target, header fields and length of the body of a plain request; None for any other."""
    line = _REQUEST.match(data)
    if not line:
        return None
    headers: Headers = []
    at, length, hosts = line.end(), 0, 0
    while at < len(data) - 2:
        field = _FIELD.match(data, at)
        if not field:
            return None
        at = field.end()
        name, value = field[1].lower(), field[2]
        headers.append((name, value))
        if name == b"content-length":
            if length or not value.isdigit():
                return None
            length = int(value)
        elif name == b"host":
            hosts += 1
        elif name in _NEGOTIATED and (name, value.lower()) != (b"connection", b"keep-alive"):
            return None
    return (line[1].decode(), line[2], headers, length) if hosts == 1 and length < LARGE else None


class _Unread:
    """A stream whose beginning was read already."""

    def __init__(self, begin: bytes, rest: asyncio.StreamReader) -> None:
        self._begin = begin
        self._rest = rest

    def at_eof(self) -> bool:
        """Whether there is nothing more."""
        return not self._begin and self._rest.at_eof()

    async def read(self, most: int) -> bytes:
        """The beginning, then the rest."""
        begin, self._begin = self._begin, b""
        return begin or await self._rest.read(most)


class Connection(tcp_server.TCPServer):  # type: ignore[misc]
    """A client's connection. Stands for hypercorn's, which goes on with it after the first request that is not
    plain.
    """

    reader: Any
    _quiet: ClassVar[set[Connection]] = set()
    _ending: ClassVar[asyncio.Task[None] | None] = None

    async def run(self) -> None:
        """Serve until it is closed, or the emulator ends."""
        Connection._ending = Connection._ending or self.loop.create_task(self._end_quiet_ones())
        socket = self.writer.get_extra_info("socket")
        begin: bytes | None = None
        with suppress(OSError, asyncio.IncompleteReadError):
            client = parse_socket_addr(socket.family, socket.getpeername())
            server = parse_socket_addr(socket.family, socket.getsockname())
            ends = self.writer.get_extra_info("ssl_object") is not None
            begin = b"" if ends else None
            while begin is None and not self.context.terminated.is_set():
                begin = await self._served(client, server)
        if begin:
            self.reader = _Unread(begin, self.reader)
        if begin is not None:
            await super().run()
        else:
            await self._close()

    async def _served(self, client: Any, server: Any) -> bytes | None:
        """Serve one request, if it is plain. What was read if it is not.

        Raises:
            OSError: The connection is lost.
            asyncio.IncompleteReadError: The client has closed it.
        """
        self._quiet.add(self)
        try:
            data: bytes = await self.reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return b""
        finally:
            self._quiet.discard(self)
        head = head_of(data)
        if head is None:
            return data
        method, target, headers, length = head
        path, _, query = target.partition(b"?")
        scope = {
            "type": "http",
            "http_version": "1.1",
            "asgi": {"spec_version": "2.1", "version": "3.0"},
            "method": method,
            "scheme": "http",
            "path": unquote(path.decode("ascii")),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": headers,
            "client": client,
            "server": server,
            "state": self.state.copy(),
            "extensions": {},
        }
        answer = _Answer(self.reader, self.writer, await self.reader.readexactly(length) if length else b"")
        # A task of its own: what a request sets in its context must not reach the next one.
        try:
            await self.loop.create_task(self.app.app(scope, answer.receive, answer.send))
        except Exception:  # noqa: BLE001 (told, and answered with a 500)
            _log.exception("%s %s", method, path)
        await answer.end()
        return None

    async def _end_quiet_ones(self) -> None:
        await self.context.terminated.wait()
        for each in list(self._quiet):
            each.writer.close()


class _Answer:
    """One request's body and answer, as an ASGI application gets and gives them."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> None:
        self._reader = reader
        self._writer = writer
        self._body: bytes | None = body
        self._head = b""
        self._status = 0
        self._begun = False
        self._chunked = False
        self._closes = False
        self._done = False

    async def receive(self) -> dict[str, Any]:
        """The body, and once it was given, that the client has gone."""
        body, self._body = self._body, None
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        while not (self._reader.at_eof() or self._reader.exception() or self._writer.is_closing()):
            await asyncio.sleep(LOOK_S)
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        """Take the head or a part of the body.

        Raises:
            ValueError: A header field cannot be sent.
        """
        if message["type"] == "http.response.start":
            self._take_head(message["status"], message.get("headers", ()))
        elif message["type"] == "http.response.body" and self._status and not self._done:
            more = message.get("more_body", False)
            part = b"" if self._status in _WITHOUT_BODY else message.get("body", b"")
            if self._chunked and not self._begun and not more:
                # All of it, so its length is known.
                self._chunked = False
                self._head += b"content-length: %d\r\n" % len(part)
            self._write(part, last=not more)
            await self._writer.drain()

    def _take_head(self, status: int, headers: Any) -> None:
        lines = b"".join(b"%s: %s\r\n" % (bytes(name), bytes(value).strip()) for name, value in headers)
        names = []
        at = 0
        while at < len(lines):
            field = _FIELD.match(lines, at)
            if not field:
                raise ValueError(f"a header field that cannot be sent: {lines[at : at + 100]!r}")
            names.append(field[1].lower())
            self._closes |= field[1].lower() == b"connection" and field[2].lower() == b"close"
            at = field.end()
        self._chunked = b"content-length" not in names and status not in _WITHOUT_BODY
        self._status, self._head = status, lines

    def _write(self, part: bytes, *, last: bool) -> None:
        begin = b""
        if not self._begun:
            self._begun = True
            with suppress(ValueError):
                begin = HTTPStatus(self._status).phrase.encode()
            framing = b"transfer-encoding: chunked\r\n" if self._chunked else b""
            begin = b"HTTP/1.1 %d %s\r\n%s%s\r\n" % (self._status, begin, self._head, framing)
        if self._chunked and part:
            part = b"%x\r\n%s\r\n" % (len(part), part)
        if self._chunked and last:
            part += b"0\r\n\r\n"
        self._done |= last
        self._writer.write(begin + part)

    async def end(self) -> None:
        """The application has ended: close the connection unless it may be used again."""
        if not self._begun:
            self._status, self._head, self._chunked = 500, b"content-length: 0\r\nconnection: close\r\n", False
            self._closes = True
            self._write(b"", last=True)
        if self._closes or not self._done:
            self._writer.close()
