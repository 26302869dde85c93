"""One try is one request that can have been read: counted on the wire, on connections that are closed in every way."""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.egress.guarded_sending import asking, sender

from pushhub.egress import connection as connection_module
from pushhub.egress.socket import BoundedSocket

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"


class Counting:
    """Answers the first request of each connection and ends the connection at or after the second.

    Args:
        end: How: ``read`` reads the second request and closes, ``reset`` does the same with RST, ``idle`` closes right
            after the first answer, ``half`` ends only its own direction then, and goes on reading.
    """

    def __init__(self, end: str) -> None:
        self._end = end
        self.requests = 0
        self.ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            self._read(connection)
            connection.sendall(ANSWER)
            if self._end == "idle":
                # Its end is on the way before anybody can go on.
                connection.close()
                self.ended.set()
                return
            if self._end == "half":
                connection.shutdown(socket.SHUT_WR)
                self.ended.set()
            self._read(connection)
            if self._end == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _read(self, connection: socket.socket) -> None:
        request = b""
        while not request.endswith(b"\r\n\r\nhello"):
            came = connection.recv(65_536)
            if not came:
                return
            request += came
        self.requests += 1


@contextlib.contextmanager
def counting(end: str) -> Iterator[Counting]:
    server = Counting(end)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def unnoticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a connection arrives only after it was found to be open."""
    monkeypatch.setattr(connection_module.GuardedConnection, "is_connected", True)
    monkeypatch.setattr("urllib3.connectionpool.is_connection_dropped", lambda _: False)


@pytest.mark.parametrize("end", ["read", "reset"])
def test_a_request_that_was_read_is_not_sent_again(end: str) -> None:
    # Given a receiver that takes the second request on its connection and closes
    with counting(end) as server, sender() as sending:
        first, second = (sending.send(asking(f"http://127.0.0.1:{server.port}/")) for _ in range(2))
    # Then the second try failed, and what was on the wire is what is told
    assert (first.status_code, second.status_code, second.error_class, second.bytes_out) == (200, 0, "reset", 5)
    assert server.requests == 2


@pytest.mark.parametrize("end", ["idle", "half"])
def test_a_connection_that_was_closed_is_noticed_before_it_is_used(end: str) -> None:
    # Given a receiver that closes its connections after each answer without saying so
    with counting(end) as server, sender() as sending:
        for _ in range(3):
            server.ended.clear()
            assert sending.send(asking(f"http://127.0.0.1:{server.port}/")).status_code == 200
            assert server.ended.wait(90)
    # Then every request was answered, and there were no others
    assert server.requests == 3


@pytest.mark.usefixtures("unnoticed")
def test_a_request_that_was_certainly_not_read_is_sent_again_at_once() -> None:
    # Given a receiver that closes its connections, and a sender that learns of it a moment too late
    with counting("idle") as server, sender() as sending:
        for _ in range(3):
            server.ended.clear()
            # Then its system refuses the request unread, so it is sent on another connection
            assert sending.send(asking(f"http://127.0.0.1:{server.port}/")).status_code == 200
            assert server.ended.wait(90)
    assert server.requests == 3


@pytest.mark.usefixtures("unnoticed")
def test_a_refusal_without_an_end_before_it_shows_that_nothing_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a receiver's system that has forgotten a connection: it refuses what comes, and has said no word before
    receive = BoundedSocket.recv_into

    def refused(self: BoundedSocket, *given: Any) -> int:
        count = receive(self, *given)
        if count == 0:
            raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
        return count

    with counting("idle") as server, sender() as sending:
        assert sending.send(asking(f"http://127.0.0.1:{server.port}/")).status_code == 200
        assert server.ended.wait(90)
        monkeypatch.setattr(BoundedSocket, "recv_into", refused)
        # Then the request is sent on another connection
        assert sending.send(asking(f"http://127.0.0.1:{server.port}/")).status_code == 200
    assert server.requests == 2


@pytest.mark.usefixtures("unnoticed")
def test_a_receiver_that_ended_only_its_own_direction_may_have_read_it() -> None:
    # Given a receiver that says no more on its connection, and still reads
    with counting("half") as server, sender() as sending:
        assert sending.send(asking(f"http://127.0.0.1:{server.port}/")).status_code == 200
        assert server.ended.wait(90)
        # Then the request is not sent a second time, although no answer can come
        assert sending.send(asking(f"http://127.0.0.1:{server.port}/")).error_class == "reset"
