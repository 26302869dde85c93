"""Sockets in memory, with which the hub's own code is loaded in place of the system's (:mod:`.egress`).

Over TLS, the handshake, certificates and ciphers are OpenSSL's; only the bytes go through memory.
"""

from __future__ import annotations

import errno
import socket
import ssl
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from simulation.internet.network import Line, broken, current

_SECOND = 1_000_000
_ACKNOWLEDGED_AT = 120
"""Where ``tcpi_bytes_acked`` is in ``struct tcp_info`` of Linux."""

_PIECE = 64 * 1024


class MemorySocket:
    """A TCP socket, as far as the hub uses one."""

    def __init__(self, family: int = socket.AF_INET, type: int = socket.SOCK_STREAM, *_: object) -> None:
        self.family = family
        self.type = type
        self._timeout: float | None = None
        self._line: Line | None = None

    def settimeout(self, value: float | None) -> None:
        """See ``socket.settimeout``."""
        self._timeout = value

    def connect(self, address: tuple[str, int]) -> None:
        """See ``socket.connect``."""
        network, pause = current()
        self._line = network.connect(address[0], address[1], self._timeout, pause)

    def setsockopt(self, *_: object) -> None:
        """Nothing depends on it."""

    def getsockopt(self, level: int, option: int, size: int = 0) -> bytes:
        """What Linux knows of the connection."""
        if (level, option) != (socket.IPPROTO_TCP, socket.TCP_INFO):
            raise broken(errno.ENOPROTOOPT)
        return struct.pack(f"={_ACKNOWLEDGED_AT}xQ", self._open().acknowledged).ljust(size, b"\0")

    def send(self, data: Any, flags: int = 0) -> int:
        """See ``socket.send``."""
        self.sendall(data, flags)
        return len(data)

    def sendall(self, data: Any, flags: int = 0) -> None:  # noqa: ARG002 (the system's)
        """See ``socket.sendall``."""
        self._put(bytes(data))

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:  # noqa: ARG002 (the system's)
        """See ``socket.recv_into``."""
        piece = self._get(nbytes or len(buffer), self._until())
        memoryview(buffer)[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        """See ``socket.close``."""
        line, self._line = self._line, None
        if line is not None:
            line.closed_at = line.scheduler.now

    def readable(self) -> bool:
        """Whether a look for bytes would not wait."""
        return self._line is None or self._line.readable()

    def refused_within(self, milliseconds: int) -> bool:
        """Wait for the other side's refusal of the connection; whether it came."""
        line, (_, pause) = self._open(), current()
        at = line.refused_at()
        limit = line.scheduler.now + 1000 * milliseconds
        pause(max(0, (limit if at is None else min(at, limit)) - line.scheduler.now))
        return at is not None and at <= limit

    def _open(self) -> Line:
        if self._line is None:
            raise broken(errno.EBADF)
        return self._line

    def _until(self) -> int | None:
        """When the operation that begins now has to end."""
        return None if self._timeout is None else self._open().scheduler.now + round(self._timeout * _SECOND)

    def _put(self, data: bytes) -> None:
        network, pause = current()
        line = self._open()
        network.arrives(line, pause)
        line.sent(data)

    def _get(self, most: int, until: int | None) -> bytes:
        """What comes next.

        Raises:
            TimeoutError: Nothing came in time.
        """
        line, (_, pause) = self._open(), current()
        now, at = line.scheduler.now, line.next_at()
        if at is None and until is None:
            raise AssertionError("somebody waits for ever")
        wakes = at if until is None or (at is not None and at <= until) else until
        assert wakes is not None
        if wakes > now:
            pause(wakes - now)
        if at is None or wakes < at:
            raise TimeoutError("timed out")
        return line.take(most)


class MemoryTLSSocket(MemorySocket):
    """The same with TLS, where the other side speaks it."""

    _tls: ssl.SSLObject | None = None
    _coming: ssl.MemoryBIO
    _going: ssl.MemoryBIO

    @classmethod
    def _create(
        cls, sock: MemorySocket, *, server_hostname: str | None = None, context: ssl.SSLContext | None = None, **_: Any
    ) -> MemoryTLSSocket:
        """What ``SSLContext.wrap_socket`` calls."""
        assert context is not None
        wrapped = cls(sock.family, sock.type)
        wrapped._line, sock._line = sock._line, None
        wrapped._timeout = sock._timeout
        if wrapped._open().peer.encrypted:
            wrapped._coming, wrapped._going = ssl.MemoryBIO(), ssl.MemoryBIO()
            wrapped._tls = context.wrap_bio(wrapped._coming, wrapped._going, server_hostname=server_hostname)
            try:
                wrapped._through(wrapped._tls.do_handshake)
            except BaseException:
                wrapped.close()
                raise
        return wrapped

    def sendall(self, data: Any, flags: int = 0) -> None:
        """See ``socket.sendall``."""
        tls = self._tls
        if tls is None:
            super().sendall(data, flags)
            return
        whole = memoryview(bytes(data))
        while whole:
            piece = whole[:_PIECE]
            written: int = self._through(lambda piece=piece: tls.write(piece))  # type: ignore[misc]
            whole = whole[written:]

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """See ``socket.recv_into``."""
        tls = self._tls
        if tls is None:
            return super().recv_into(buffer, nbytes, flags)
        try:
            piece: bytes = self._through(lambda: tls.read(nbytes or len(buffer)))
        except ssl.SSLError as error:
            if error.args[0] != ssl.SSL_ERROR_EOF:
                raise
            return 0
        memoryview(buffer)[: len(piece)] = piece
        return len(piece)

    def _through(self, act: Callable[[], Any]) -> Any:
        """Do something with TLS, and move the bytes that it needs."""
        until = self._until()
        while True:
            try:
                result = act()
            except ssl.SSLWantReadError:
                self._flush()
                piece = self._get(_PIECE, until)
                if piece:
                    self._coming.write(piece)
                else:
                    self._coming.write_eof()
            except ssl.SSLError:
                with suppress(OSError):
                    self._flush()
                raise
            else:
                self._flush()
                return result

    def _flush(self) -> None:
        data = self._going.read()
        if data:
            self._put(data)


class Poll:
    """``select.poll`` for one of these sockets, which looks for a refusal alone."""

    def __init__(self) -> None:
        self._socket: MemorySocket | None = None

    def register(self, watched: MemorySocket, events: int) -> None:  # noqa: ARG002 (the system's)
        """See ``select.poll``."""
        self._socket = watched

    def poll(self, milliseconds: int) -> list[int]:
        """See ``select.poll``."""
        assert self._socket is not None
        return [1] if self._socket.refused_within(milliseconds) else []
