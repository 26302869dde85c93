"""A server on plain sockets and threads; the path of each request selects the behaviour of its connection."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class Received:
    """One request as received.

    Attributes:
        head: Request line and headers, byte for byte, without the empty line.
        body: As many bytes as ``Content-Length`` announced.
        connection: Number of the connection it came on, from 0.
    """

    head: bytes
    body: bytes
    connection: int

    @property
    def path(self) -> str:
        """Path with query."""
        return self.head.split(b" ", 2)[1].decode("latin-1")

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Headers in order, names as spelled."""
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return [(name, value) for name, _, value in (line.partition(": ") for line in lines)]


@dataclass
class Peer:
    """The server's side of one connection, as a behaviour sees it.

    Attributes:
        request: The request; its body is empty in behaviours that act before the body is read.
        nth: Which request of this connection it is, from 0.
        port: The endpoint's own port.
        drip_s: Seconds between two bytes of a dripping answer.
    """

    connection: socket.socket
    stopping: threading.Event
    request: Received
    nth: int
    port: int
    drip_s: float

    def send(self, data: bytes) -> None:
        """Send bytes; raises ``OSError`` when the client has gone."""
        self.connection.sendall(data)

    def answer(self, body: bytes = b"", *, status: str = "200 OK", headers: str = "") -> bool:
        """A well-formed answer; the connection stays open."""
        self.send(f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return True

    def drip(self, data: bytes) -> None:
        """Send bytes one by one."""
        for byte in data:
            self.send(bytes([byte]))
            if self.stopping.wait(self.drip_s):
                return

    def repeat(self, data: bytes) -> None:
        """Send the same bytes for ever."""
        while not self.stopping.is_set():
            self.send(data)

    def hang(self) -> None:
        """Do nothing until the endpoint is stopped or the client goes."""
        self.connection.settimeout(0.02)
        while not self.stopping.is_set():
            with contextlib.suppress(TimeoutError):
                if not self.connection.recv(65536):
                    return

    def reset(self) -> None:
        """Close with RST instead of FIN."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


Behaviour = Callable[[Peer], bool | None]
"""What to do with a request; True keeps the connection for another one."""


@dataclass
class HostileEndpoint:
    """A server to be used as a context manager: ``/hang``, ``/reset`` ... select what happens (see :mod:`.behaviours`).

    Attributes:
        behaviours: By first segment of the path.
        before_body: Names of those that act before the body is read.
        host: Loopback address to listen on.
        tls: Speaks TLS with this context.
        greeting: Sent at once on each connection, before anything is read (as a server of another protocol does).
        drip_s: Seconds between two bytes of a dripping answer.
        requests: All received so far.
        connections: Number accepted so far.
    """

    behaviours: dict[str, Behaviour]
    before_body: frozenset[str] = frozenset()
    host: str = "127.0.0.1"
    tls: ssl.SSLContext | None = None
    greeting: bytes = b""
    drip_s: float = 0.03
    requests: list[Received] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    _stopping: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _open: set[socket.socket] = field(default_factory=set)
    _closing: threading.Condition = field(default_factory=threading.Condition)

    def __enter__(self) -> Self:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        self._listener = socket.create_server((self.host, 0), family=family, backlog=64)
        self._listener.settimeout(0.05)
        self.port = self._listener.getsockname()[1]
        self._start(self._accept)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stopping.set()
        for connection in list(self._open):
            # Wakes the thread that waits for its next request.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(timeout=5)
        self._listener.close()

    def url(self, path: str, host: str = "") -> str:
        """The URL of a behaviour; ``host`` replaces the address."""
        place = host or (f"[{self.host}]" if ":" in self.host else self.host)
        return f"{'https' if self.tls else 'http'}://{place}:{self.port}/{path}"

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                connection, _ = self._listener.accept()
                self.connections += 1
                self._start(self._serve, connection, self.connections - 1)

    def _serve(self, raw: socket.socket, number: int) -> None:
        raw.settimeout(5)
        # The client may do anything to the connection; the test checks what the client reports.
        with contextlib.suppress(OSError), contextlib.closing(raw):
            raw.sendall(self.greeting)
            connection = self.tls.wrap_socket(raw, server_side=True) if self.tls else raw
            with self._opened(connection), contextlib.closing(connection):
                for nth, request in enumerate(self._read(connection, number)):
                    peer = Peer(connection, self._stopping, request, nth, self.port, self.drip_s)
                    if not self._behaviour(request)(peer):
                        return

    @contextlib.contextmanager
    def _opened(self, connection: socket.socket) -> Iterator[None]:
        self._open.add(connection)
        try:
            yield
        finally:
            with self._closing:
                self._open.discard(connection)
                self._closing.notify_all()

    def wait_until_closed(self) -> None:
        """Wait until the endpoint has closed every connection on its side."""
        with self._closing:
            assert self._closing.wait_for(lambda: not self._open, timeout=90)

    def _read(self, connection: socket.socket, number: int) -> Iterator[Received]:
        waiting = b""
        while not self._stopping.is_set():
            while b"\r\n\r\n" not in waiting:
                received = self._receive(connection)
                if not received:
                    return
                waiting += received
            head, _, waiting = waiting.partition(b"\r\n\r\n")
            request = Received(head, b"", number)
            if self._name(request) not in self.before_body:
                length = int({name.lower(): value for name, value in request.headers}.get("content-length", 0))
                while len(waiting) < length:
                    received = self._receive(connection)
                    if not received:
                        return
                    waiting += received
                request = Received(head, waiting[:length], number)
                waiting = waiting[length:]
            self.requests.append(request)
            yield request

    def _receive(self, connection: socket.socket) -> bytes:
        """The next bytes; empty when the client closed or the endpoint stops."""
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                return connection.recv(65536)
        return b""

    def _name(self, request: Received) -> str:
        return request.path.lstrip("/").partition("/")[0].partition("?")[0]

    def _behaviour(self, request: Received) -> Behaviour:
        return self.behaviours[self._name(request)]


@contextlib.contextmanager
def unaccepting_port(host: str = "127.0.0.1", port: int = 0) -> Iterator[int]:
    """A port whose backlog of connections is full: connecting to it takes for ever."""
    with contextlib.ExitStack() as held:
        listener = held.enter_context(socket.create_server((host, port), backlog=0))
        address: tuple[str, int] = listener.getsockname()
        while True:
            waiting = held.enter_context(socket.socket())
            waiting.settimeout(0.1)
            try:
                waiting.connect(address)
            except TimeoutError:
                break
        yield address[1]
