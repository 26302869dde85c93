"""Subscribers of the demonstration: small HTTP endpoints on loopback that remember what they were sent."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import NamedTuple

import aiohttp
from aiohttp import web

from local.demonstration.hub import serve as listen
from local.place import HOST


class Push(NamedTuple):
    """IronMQ's headers of one push."""

    message_id: str
    reservation_id: str
    subscriber: str
    message_url: str


@dataclass(kw_only=True)
class Subscriber:
    """A subscriber of the demonstration.

    Attributes:
        name: In the queue.
        manner: How it behaves, for the table.
        url: Where it listens, once it does.
    """

    name: str
    manner: str
    url: str = ""


@dataclass(kw_only=True)
class Sink(Subscriber):
    """A subscriber that listens.

    Attributes:
        tries: Pushes by message id.
        accepted: Body of each message it has accepted, by id.
    """

    tries: Counter[str] = field(default_factory=Counter)
    accepted: dict[str, bytes] = field(default_factory=dict)

    async def take(self, push: Push, body: bytes) -> int:
        """Decide about one push; returns the status to answer."""
        raise NotImplementedError

    async def answer(self, request: web.Request) -> web.Response:
        """Answer one push."""
        names = ("Message-Id", "Reservation-Id", "Subscriber-Name", "Subscriber-Message-Url")
        push = Push(*(request.headers[f"Iron-{name}"] for name in names))
        self.tries[push.message_id] += 1
        return web.Response(status=await self.take(push, await request.read()))

    async def close(self) -> None:
        """Finish the work that it has begun."""


@dataclass(kw_only=True)
class Healthy(Sink):
    """Accepts everything at once."""

    name: str = "healthy"
    manner: str = "answers 200"

    async def take(self, push: Push, body: bytes) -> int:
        """Accept the push."""
        self.accepted[push.message_id] = body
        return 200


@dataclass(kw_only=True)
class Flaky(Sink):
    """Refuses some messages once and a few twice before it accepts them, by the order in which they arrive first."""

    name: str = "flaky"
    manner: str = "answers 503 to each third message once, to each ninth twice"

    async def take(self, push: Push, body: bytes) -> int:
        """Accept the push, or refuse it for now."""
        position = list(self.tries).index(push.message_id) + 1
        refusals = 2 if position % 9 == 0 else 1 if position % 3 == 0 else 0
        if self.tries[push.message_id] <= refusals:
            return 503
        self.accepted[push.message_id] = body
        return 200


@dataclass(kw_only=True)
class Later(Sink):
    """Answers 202 and acknowledges a moment later, like a worker with its own queue.

    Attributes:
        pause: Seconds between the answer and the acknowledgement.
        window: Seconds that the hub waits for it. A later acknowledgement is dropped, as the hub pushes again.
    """

    name: str = "later"
    manner: str = "answers 202, acknowledges a moment later"
    pause: float = 0.2
    window: float = 3.0
    _session: aiohttp.ClientSession | None = None
    _gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(8))
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def take(self, push: Push, body: bytes) -> int:
        """Reserve the message."""
        task = asyncio.create_task(self._acknowledge(push, body))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return 202

    async def _acknowledge(self, push: Push, body: bytes) -> None:
        pushed = time.monotonic()
        await asyncio.sleep(self.pause)
        self._session = self._session or aiohttp.ClientSession()
        proof = {"reservation_id": push.reservation_id, "subscriber_name": push.subscriber}
        async with self._gate:
            if time.monotonic() - pushed > self.window:
                return
            async with self._session.delete(push.message_url, json=proof) as answer:
                if answer.status == 200:
                    self.accepted[push.message_id] = body

    async def close(self) -> None:
        """Finish the acknowledgements under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session:
            await self._session.close()


@dataclass(kw_only=True)
class Dead(Subscriber):
    """Refuses every connection."""

    name: str = "dead"
    manner: str = "refuses connections"


@contextlib.asynccontextmanager
async def serve(sinks: list[Sink], dead: Dead) -> AsyncIterator[None]:
    """Let the sinks listen, and reserve a port on which nothing does; sets everyone's ``url``."""
    with socket.socket() as closed:
        # Bound but not listening: connections are refused, and nobody else can get the port meanwhile.
        closed.bind((HOST, 0))
        dead.url = f"http://{HOST}:{closed.getsockname()[1]}/{dead.name}"
        async with listen([web.post(f"/{sink.name}", sink.answer) for sink in sinks]) as url:
            for sink in sinks:
                sink.url = f"{url}/{sink.name}"
            try:
                yield
            finally:
                for sink in sinks:
                    await sink.close()
