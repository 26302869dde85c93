"""A consumer of notifications that loses its connection and, once it is back,
gets exactly the rest (Notifications 2.0).
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import aiohttp

from local.demonstration.hub import Client
from local.errors import LocalError, Say
from local.stack import Description

TOPIC = "demo"
PUBLISHED_BEFORE, PUBLISHED_MEANWHILE = 12, 8
ACKNOWLEDGED = 7
SECONDS = 60.0
"""The flow fails after this time."""
STATUS_OF_A_DUPLICATE = 409


class Tenant(Client):
    """The project as a publisher and as a consumer.

    Args:
        user: The name it signs in with.
        name: Of the subscriber: a new one for each demonstration unless one is given.

    Attributes:
        published_again: Numbers that were published again because the hub had failed, and may exist twice.
    """

    def __init__(self, stack: Description, user: str, name: str = "") -> None:
        headers = {"Authorization": aiohttp.encode_basic_auth(f"{stack.project_id}/{user}", stack.token)}
        super().__init__(f"{stack.base_url}/notification2", headers)
        self.name = name or f"demo{time.time_ns()}"
        self.published_again: set[int] = set()

    async def publish(self, numbers: range, topic: str = TOPIC) -> None:
        """Publish events, each in a separate request. They match every subscription of the tenant."""
        for number in numbers:
            before = self.repeated
            data = {"type": f"{topic}_Step", "number": number}
            await self.call("POST", "/notifications", {"api": "events", "source": "machine-1", "data": data})
            if self.repeated != before:
                self.published_again.add(number)

    async def token(self, topic: str = TOPIC) -> str:
        """A token for the subscriber."""
        answer = await self.call("POST", "/token", {"subscriber": self.name, "subscription": topic})
        return str(answer["token"])

    def connect(self, token: str) -> Any:
        """Connect a consumer."""
        return self.session.ws_connect(f"{self._base}/consumer/?token={token}")


async def run(stack: Description, say: Say) -> None:
    """Show a consumer whose connection is cut, and check what it gets when it is back."""
    async with Tenant(stack, "demo") as tenant:
        try:
            await asyncio.wait_for(_show(tenant, say), SECONDS)
        except TimeoutError as error:
            raise LocalError(f"the consumer's demonstration did not end within {SECONDS:.0f} s") from error


async def _show(tenant: Tenant, say: Say) -> None:
    subscription = {"context": "tenant", "subscription": TOPIC}
    await tenant.call("POST", "/subscriptions", subscription, also=STATUS_OF_A_DUPLICATE)
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
        wanted = [number for number in rest if number in expected or number not in tenant.published_again]
        if wanted != expected or not await _silent(consumer):
            raise LocalError(f"the consumer should have received {expected}, not {list(rest)}")
        for ack_id in rest.values():
            await consumer.send_str(ack_id)
        await asyncio.sleep(0.5)
    await tenant.call("POST", f"/unsubscribe?token={token}", {})
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
