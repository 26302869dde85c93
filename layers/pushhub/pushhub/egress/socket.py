"""Sockets with one deadline per exchange, however slowly the other side sends its answer, and which know whether a
request can have been read.

A socket's own timeout is per call, so an endpoint that sends a byte each second could keep a reader for ever. Here each
call gets only the time that is left.
"""

from __future__ import annotations

import contextlib
import errno
import math
import select
import socket
import ssl
import struct
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pushhub.base.errors import Unavailable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

    from pushhub.egress.url import IPAddress

_OUR_FAULT = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
# A name may have hundreds of addresses; trying more than a few only wastes time.
_ADDRESSES_TRIED = 4
# The part of tcp_info (linux/tcp.h) up to and with tcpi_bytes_acked.
_TCP_INFO = struct.Struct("=120xQ")
_REFUSAL_MS = 500


def time_left(deadline: float) -> float:
    """Seconds until ``deadline`` (on ``time.monotonic``); always more than 0.

    Raises:
        TimeoutError: The deadline has passed.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("the deadline has passed")
    return left


class BoundedSocket(socket.socket):
    """A TCP socket with a deadline.

    Attributes:
        deadline: On ``time.monotonic``; each call ends by then with ``TimeoutError``.
        received: Bytes received since :meth:`bind_to`.
    """

    deadline = math.inf
    received = 0
    _acknowledged: int | None = None

    def bind_to(self, deadline: float) -> None:
        """Start an exchange that must end by ``deadline``."""
        self.deadline = deadline
        self.received = 0
        self._acknowledged = self._bytes_acknowledged()

    def nothing_was_read(self) -> bool:
        """Whether the other side has certainly read nothing of what was sent since :meth:`bind_to`: its system has
        refused the connection (RST), and has not acknowledged a byte.

        To be asked after the connection was found closed. One that the other side has only ended in its own direction
        can still read.
        """
        if self._acknowledged is None:
            return False
        with contextlib.suppress(OSError, ValueError):
            closed = select.poll()
            closed.register(self, 0)
            # The refusal comes a round trip after what it refuses.
            return bool(closed.poll(_REFUSAL_MS)) and self._bytes_acknowledged() == self._acknowledged
        return False

    def _bytes_acknowledged(self) -> int | None:
        """Bytes that the other side's system has acknowledged (Linux's ``tcpi_bytes_acked``)."""
        try:
            known = self.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
            (count,) = _TCP_INFO.unpack(known)
        except (OSError, struct.error):
            return None
        return int(count)

    def recv_into(self, buffer: WriteableBuffer, nbytes: int | None = None, flags: int = 0) -> int:
        """Like the base class, but no longer than the deadline.

        Raises:
            TimeoutError: It has passed.
        """
        self.settimeout(time_left(self.deadline))
        count = super().recv_into(buffer, nbytes or 0, flags)
        self.received += count
        return count

    def send(self, data: ReadableBuffer, flags: int = 0) -> int:
        """Like the base class, but no longer than the deadline."""
        self.settimeout(time_left(self.deadline))
        return super().send(data, flags)

    def sendall(self, data: ReadableBuffer, flags: int = 0) -> None:
        """Like the base class, but no longer than the deadline."""
        self.settimeout(time_left(self.deadline))
        super().sendall(data, flags)


class BoundedTLSSocket(BoundedSocket, ssl.SSLSocket):
    """The same over TLS (set as ``SSLContext.sslsocket_class``).

    The handshake is limited by the timeout of the socket it wraps.
    """


def connect_to(addresses: Sequence[IPAddress], port: int, deadline: float) -> BoundedSocket:
    """Connect to the first address that answers; each address tried gets an equal share of the time.

    Returns:
        A connected socket whose timeout is the remaining time.

    Raises:
        OSError: None answered; the first failure is raised.
        Unavailable: This machine has no socket to spare.
    """
    failure: OSError | None = None
    tried = addresses[:_ADDRESSES_TRIED]
    for index, address in enumerate(tried):
        try:
            connected = _connect(address, port, time_left(deadline) / (len(tried) - index))
            connected.settimeout(time_left(deadline))
        except OSError as error:
            if error.errno in _OUR_FAULT:
                raise Unavailable("connect") from error
            failure = failure or error
        else:
            return connected
    raise failure or TimeoutError("the deadline has passed")


def _connect(address: IPAddress, port: int, timeout_s: float) -> BoundedSocket:
    connection = BoundedSocket(socket.AF_INET6 if address.version == 6 else socket.AF_INET, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        connection.connect((str(address), port))
        # Head and body are written separately; waiting for the first one's acknowledgement would cost a round trip.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        connection.close()
        raise
    return connection
