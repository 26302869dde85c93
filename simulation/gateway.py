"""A model of a WebSocket API: handshakes, frames that a function gets asynchronously, and connections whose end the
function may not be told of.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from simulation.functions import RunFailed
from simulation.scheduler import SECOND
from simulation.storage import Socket
from simulation.weather import Kind

if TYPE_CHECKING:
    from simulation.account import Account

LONGEST_S = 7_200
"""Seconds after which a connection ends: two hours."""

IDLE_S = 600
"""Seconds without traffic after which a connection ends: ten minutes."""

ASYNCHRONOUS_TRIES = 3
"""Lambda repeats a failed asynchronous run twice, after one minute and after two more."""


class WebSocketGateway:
    """Connections between clients and the function ``consumers``.

    Args:
        account: The account it belongs to.
    """

    def __init__(self, account: Account) -> None:
        self._account = account
        self._numbers = itertools.count(1)

    def connect(self, query: Mapping[str, str], heard: Callable[[str, str], None]) -> tuple[int, str]:
        """A handshake, in the current task: its status, and the connection's id when it is 200.

        Args:
            query: Query of the URL.
            heard: Called with the connection's id and each frame; with an empty frame when it was closed.
        """
        account = self._account
        connection_id = f"connection-{next(self._numbers)}"
        account.consumers.connects(connection_id, query.get("token", ""))
        account.scheduler.sleep(account.random.randrange(5_000, 60_000))
        event = self._event("CONNECT", connection_id) | {
            "queryStringParameters": dict(query),
            "multiValueQueryStringParameters": {name: [value] for name, value in query.items()},
        }
        try:
            status = int(account.functions["consumers"].invoke(event)["statusCode"])
        except RunFailed:
            status = 500
        if status != 200:
            account.consumers.answered(connection_id, opened=False)
            return status, ""
        account.scheduler.sleep(account.random.randrange(1_000, 30_000))
        now = account.now_ms()
        account.sockets.open[connection_id] = Socket(
            now, now, lambda frame: heard(connection_id, frame), lambda: heard(connection_id, "")
        )
        account.consumers.answered(connection_id, opened=True)
        account.scheduler.spawn(lambda: self._watch(connection_id))
        account.note(f"{connection_id} opens")
        return 200, connection_id

    def send(self, connection_id: str, frame: str, done: Callable[[], None] = lambda: None) -> None:
        """A client sends a frame; ``done`` is called when a run of the function has taken it."""
        socket = self._account.sockets.open.get(connection_id)
        if socket is None or socket.half_open:
            return
        socket.active_at = self._account.now_ms()
        heard = self._account.consumers.sends(connection_id, frame)
        body = base64.b64encode(frame.encode()).decode()
        event = self._event("MESSAGE", connection_id) | {"body": body, "isBase64Encoded": True}

        def taken() -> None:
            # What is on its way when a connection ends, or when its client is gone, may or may not count.
            if self._account.sockets.open.get(connection_id) is socket and not socket.half_open:
                heard()
            done()

        self._account.scheduler.spawn(lambda: self._asynchronously(event, taken), after=self._delay())

    def cut(self, connection_id: str) -> None:
        """A client disconnects. Usually the function is told; but one that vanishes leaves its connection half open."""
        socket = self._account.sockets.open.get(connection_id)
        if socket is None or socket.half_open:
            return
        if self._account.weather.strikes(Kind.HALF_OPEN, "", self._account.scheduler.now):
            self.vanish(connection_id)
        else:
            self._end(connection_id)

    def vanish(self, connection_id: str) -> None:
        """A client is gone without a word: its connection stays open, and what is sent on it is lost."""
        socket = self._account.sockets.open.get(connection_id)
        if socket is not None:
            self._account.note(f"{connection_id} is half open")
            self._account.consumers.ends(connection_id)
            socket.half_open = True

    def _end(self, connection_id: str) -> None:
        """A connection ends. Usually the function is told."""
        if self._account.sockets.open.pop(connection_id, None) is None:
            return
        self._account.note(f"{connection_id} is cut")
        self._account.consumers.ends(connection_id)
        if self._account.random.random() < 0.8:
            event = self._event("DISCONNECT", connection_id)
            self._account.scheduler.spawn(lambda: self._asynchronously(event, lambda: None), after=self._delay())

    def _delay(self) -> int:
        return self._account.random.randrange(5_000, 80_000)

    def _watch(self, connection_id: str) -> None:
        scheduler, sockets = self._account.scheduler, self._account.sockets
        ends = scheduler.now + LONGEST_S * SECOND
        while connection_id in sockets.open:
            idle_ms = self._account.now_ms() - sockets.open[connection_id].active_at
            if scheduler.now >= ends or idle_ms >= IDLE_S * 1000:
                ends_here = sockets.open[connection_id]
                self._end(connection_id)
                if not ends_here.half_open:
                    ends_here.closed()
                return
            scheduler.sleep(60 * SECOND)

    def _asynchronously(self, event: dict[str, Any], done: Callable[[], None]) -> None:
        account = self._account
        for tried in range(ASYNCHRONOUS_TRIES):
            with suppress(RunFailed):
                account.functions["consumers"].invoke(event)
                if account.weather.strikes(Kind.REPLAY, "consumers", account.scheduler.now):
                    # An asynchronous event may be delivered more than once.
                    account.functions["consumers"].invoke(event)
                done()
                return
            account.scheduler.sleep(60 * SECOND * (tried + 1))

    @staticmethod
    def _event(kind: str, connection_id: str) -> dict[str, Any]:
        return {"requestContext": {"eventType": kind, "connectionId": connection_id, "routeKey": f"${kind.lower()}"}}
