"""A consumer of notifications that loses its connection and, once it is back,
gets exactly the rest (Notifications 2.0).
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import aiohttp

from local.demonstration.again import again, check
from local.errors import LocalError
from local.stack import Description

__all__ = ["run"]

TOPIC = "demo"
PUBLISHED_BEFORE, PUBLISHED_MEANWHILE = 12, 8
ACKNOWLEDGED = 7
SECONDS = 60.0
"""The flow fails after this time."""
STATUS_OF_A_DUPLICATE = 409

Say = Callable[[str], None]
"""Tells the person at the terminal one line."""


@dataclass(kw_only=True)
class Tenant:
    """The project as a publisher and as a consumer.

    Attributes:
        stack: The running stack.
        session: Its connections.
        name: Of the subscriber: a new one for each demonstration.
        repeated: Numbers that were published again because the hub had failed, and may exist twice.
    """

    stack: Description
    session: aiohttp.ClientSession
    name: str = field(default_factory=lambda: f"demo{time.time_ns()}")
    repeated: set[int] = field(default_factory=set)

    async def post(
        self, path: str, body: object, *, also: int = 0, repeated: Callable[[], None] = lambda: None
    ) -> dict[str, Any]:
        """One request.

        Raises:
            LocalError: The hub refused it, with another status than ``also``, or failed again and again.
        """

        async def attempt() -> dict[str, Any]:
            async with self.session.post(f"{self.stack.base_url}/notification2{path}", json=body) as answer:
                if answer.status != also:
                    check(answer.status, f"POST {path.partition('?')[0]}", await answer.text())
                content: dict[str, Any] = await answer.json(content_type=None)
                return content

        return await again(f"POST {path.partition('?')[0]}", attempt, repeated=repeated)

    async def publish(self, numbers: range) -> None:
        """Publish events, each in a separate request."""
        for number in numbers:
            data = {"type": "demo_Step", "number": number}
            event = {"api": "events", "source": "machine-1", "data": data}
            await self.post("/notifications", event, repeated=partial(self.repeated.add, number))

    async def publish_to(self, topic: str, number: int) -> None:
        """Publish one event, which matches every subscription of the tenant."""
        event = {"api": "events", "source": "machine-1", "data": {"type": f"{topic}_Step", "number": number}}
        await self.post("/notifications", event)

    async def token(self) -> str:
        """A token for the subscriber."""
        answer = await self.post("/token", {"subscriber": self.name, "subscription": TOPIC})
        return str(answer["token"])

    def connect(self, token: str) -> Any:
        """Connect a consumer."""
        return self.session.ws_connect(f"{self.stack.base_url}/notification2/consumer/?token={token}")


async def run(stack: Description, say: Say) -> None:
    """Show a consumer whose connection is cut, and check what it gets when it is back.

    Args:
        stack: The running stack.
        say: For lines of text.

    Raises:
        LocalError: Something did not happen, was late, or was wrong.
    """
    headers = {"Authorization": aiohttp.encode_basic_auth(f"{stack.project_id}/demo", stack.token)}
    async with aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(total=40)) as session:
        try:
            await asyncio.wait_for(_show(Tenant(stack=stack, session=session), say), SECONDS)
        except TimeoutError as error:
            raise LocalError(f"the consumer's demonstration did not end within {SECONDS:.0f} s") from error


async def _show(tenant: Tenant, say: Say) -> None:
    subscription = {"context": "tenant", "subscription": TOPIC}
    await tenant.post("/subscriptions", subscription, also=STATUS_OF_A_DUPLICATE)
    token = await tenant.token()
    async with tenant.connect(token) as consumer:
        say(f"A consumer connected as {tenant.name} to the topic {TOPIC}.")
        await tenant.publish(range(PUBLISHED_BEFORE))
        received = await _receive(consumer, PUBLISHED_BEFORE)
        # Out of order, as clients that work on several at once acknowledge.
        acknowledged = sorted(received)[::2] + sorted(received)[1::4][: ACKNOWLEDGED - (PUBLISHED_BEFORE + 1) // 2]
        for number in reversed(acknowledged):
            await consumer.send_str(received[number])
        say(f"It received {len(received)} notifications and acknowledged {len(acknowledged)}: {_listed(acknowledged)}.")
        await asyncio.sleep(1)
    await tenant.publish(range(PUBLISHED_BEFORE, PUBLISHED_BEFORE + PUBLISHED_MEANWHILE))
    say(f"Its connection is gone; {PUBLISHED_MEANWHILE} more were published meanwhile.")
    expected = sorted(set(range(PUBLISHED_BEFORE + PUBLISHED_MEANWHILE)) - set(acknowledged))
    async with tenant.connect(token) as consumer:
        rest = await _receive(consumer, len(expected))
        say(f"Back again it received {len(rest)}: {_listed(list(rest))}.")
        wanted = [number for number in rest if number in expected or number not in tenant.repeated]
        if wanted != expected or not await _silent(consumer):
            raise LocalError(f"the consumer should have received {expected}, not {list(rest)}")
        for ack_id in rest.values():
            await consumer.send_str(ack_id)
        await asyncio.sleep(0.5)
    await tenant.post(f"/unsubscribe?token={token}", {})
    say("Checked: exactly the rest, in order, and then silence.")


async def _receive(consumer: aiohttp.ClientWebSocketResponse, count: int) -> dict[int, str]:
    """Ack ids by number, in the order received."""
    received: dict[int, str] = {}
    while len(received) < count:
        ack_id, _description, _action, _empty, body = (await consumer.receive_str()).split("\n")
        received[json.loads(body)["number"]] = ack_id
    return received


async def _silent(consumer: aiohttp.ClientWebSocketResponse) -> bool:
    try:
        await consumer.receive(timeout=1)
    except TimeoutError:
        return True
    return False


def _listed(numbers: list[int]) -> str:
    return ", ".join(str(number) for number in numbers)
