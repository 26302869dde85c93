"""How frames of WebSocket clients come to the function that handles them.

On AWS each frame is handed to a run of its own, in parallel, and nothing waits for it. MiniStack reads a connection's
next frame when the function has handled the one before, in one process for all connections. On a busy machine thousands
of frames then stand in the socket, and behind them the answers to pings and the end of the connection. Here frames are
read as soon as they come, and acknowledgements that have gathered meanwhile are handed on in one frame: the hub takes
many, a line each.

Nothing here knows MiniStack; :mod:`local.emulator.process` has its connections read by these.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

Message = dict[str, Any]
"""A message of the ASGI protocol."""

FRAME_LIMIT = 131_072
"""Bytes of a frame; API Gateway's own limit."""
WAITING_LIMIT = 4 * FRAME_LIMIT
"""Characters of a connection that may wait here; more wait in the socket. A consumer may have 1000 notifications to
acknowledge, 17,000 characters."""
APART_S = 0.02
"""How far apart acknowledgements of all connections are handed on: about as long as the function takes for a frame."""

_ACK_ID = re.compile(r"[A-Za-z0-9+/]{15}=")


class SpacedTurns:
    """Gives turns, one after the other.

    Args:
        apart_s: Seconds between two of them.
    """

    def __init__(self, apart_s: float = APART_S) -> None:
        self._apart_s = apart_s
        self._next = 0.0

    async def next(self) -> None:
        """Wait for a turn."""
        now = time.monotonic()
        turn = max(now, self._next)
        self._next = turn + self._apart_s
        await asyncio.sleep(turn - now)


class Frames:
    """Frames of one connection that wait for the function.

    Args:
        receive: Reads the connection (ASGI).
        turns: Keep frames of all connections apart.
    """

    def __init__(self, receive: Callable[[], Awaitable[Message]], turns: SpacedTurns) -> None:
        self._receive = receive
        self._turns = turns
        self._waiting: deque[Message] = deque()
        self._size = 0
        self._changed = asyncio.Condition()
        self._reading: asyncio.Task[None] | None = None

    async def next(self) -> Message:
        """What comes next, acknowledgements in a row as one frame. If cancelled, it comes again."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        async with self._changed:
            await self._changed.wait_for(lambda: self._waiting)
        if _is_ack(self._waiting[0]):
            await self._turns.next()
        async with self._changed:
            taken = self._take()
            self._changed.notify_all()
        return taken

    async def end(self) -> None:
        """Read no more."""
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading

    async def _read(self) -> None:
        ended = False
        while not ended:
            message = await self._receive()
            ended = message["type"] == "websocket.disconnect"
            async with self._changed:
                await self._changed.wait_for(lambda: self._size < WAITING_LIMIT)
                self._waiting.append(message)
                self._size += _size(message)
                self._changed.notify_all()

    def _take(self) -> Message:
        first = self._waiting.popleft()
        self._size -= _size(first)
        if not _is_ack(first):
            return first
        ack_ids = [first["text"]]
        most = FRAME_LIMIT // (len(first["text"]) + 1)
        while self._waiting and _is_ack(self._waiting[0]) and len(ack_ids) < most:
            ack_ids.append(self._waiting.popleft()["text"])
            self._size -= len(ack_ids[-1])
        return {**first, "text": "\n".join(ack_ids)}


def _is_ack(message: Message) -> bool:
    return bool(_ACK_ID.fullmatch(message.get("text") or ""))


def _size(message: Message) -> int:
    return len(message.get("text") or message.get("bytes") or "")
