"""The management API of WebSocket connections in memory, with the clients at the other ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.fakes.clock import FakeClock


@dataclass
class _Socket:
    active_at: int
    frames: list[str] = field(default_factory=list)


class FakeSockets:
    """Connections that tests open and cut.

    Args:
        clock: Time of traffic.

    Attributes:
        closed: Connections the hub closed, in order.
        meanwhile: Called after each frame that arrives, with its connection; for events that happen while a sender
            sends.
    """

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._open: dict[str, _Socket] = {}
        self._frames: dict[str, list[str]] = {}
        self.closed: list[str] = []
        self.meanwhile: Callable[[str], None] = lambda _: None

    def opened(self, connection_id: str) -> None:
        """Finish the handshake of a connection."""
        with self._lock:
            socket = _Socket(self._clock.now())
            self._open[connection_id] = socket
            self._frames[connection_id] = socket.frames

    def cut(self, connection_id: str) -> None:
        """Cut the client's connection."""
        self._open.pop(connection_id, None)

    def heard(self, connection_id: str) -> None:
        """The client sends something, if only a ping."""
        self._open[connection_id].active_at = self._clock.now()

    def frames(self, connection_id: str) -> list[str]:
        """Every frame that reached a client, readable even after the connection was cut."""
        return self._frames.get(connection_id, [])

    def is_open(self, connection_id: str) -> bool:
        """Whether a connection is open."""
        return connection_id in self._open

    def send(self, connection_id: str, text: str) -> bool:
        with self._lock:
            socket = self._open.get(connection_id)
            if socket is None:
                return False
            socket.frames.append(text)
        self.meanwhile(connection_id)
        return True

    def close(self, connection_id: str) -> None:
        if self._open.pop(connection_id, None) is not None:
            self.closed.append(connection_id)

    def active_at(self, connection_id: str) -> int | None:
        socket = self._open.get(connection_id)
        return socket.active_at if socket else None
