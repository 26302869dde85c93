"""A webhook: an application, its endpoint, a message, and the signature that the endpoint verifies (Svix API,
Standard Webhooks).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from local.demonstration.again import again, check
from local.errors import LocalError
from local.place import HOST
from local.stack import Description

__all__ = ["Receiver", "run", "verified"]

APPLICATION, ENDPOINT = "demo", "crm"
EVENT = {"eventType": "invoice.paid", "payload": {"invoice": "R123456789", "customer": "jürgen@example.org"}}
SECONDS = 120.0
"""The flow fails after this time."""

Say = Callable[[str], None]
"""Tells the person at the terminal one line."""


def verified(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether a request was signed with a secret, as a receiver checks it: HMAC-SHA256 of ``id.timestamp.body``."""
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.digest(base64.b64decode(secret.removeprefix("whsec_")), content, hashlib.sha256)
    signatures = headers["webhook-signature"].split(" ")
    return any(hmac.compare_digest(each, "v1," + base64.b64encode(digest).decode()) for each in signatures)


@dataclass(kw_only=True)
class Receiver:
    """The endpoint of a customer.

    Attributes:
        url: Where it listens, once it does.
        received: Headers and body of each request.
    """

    url: str = ""
    received: list[tuple[Mapping[str, str], bytes]] = field(default_factory=list)

    async def take(self, request: web.Request) -> web.Response:
        """Take a delivery."""
        self.received.append((request.headers.copy(), await request.read()))
        return web.json_response({"ok": True})

    def of(self, message_id: str) -> tuple[Mapping[str, str], bytes] | None:
        """The first delivery of a message, or None."""
        return next((each for each in self.received if each[0].get("webhook-id") == message_id), None)

    @contextlib.asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Listen on loopback."""
        app = web.Application()
        app.router.add_post("/crm", self.take)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=2)
        await runner.setup()
        try:
            await web.TCPSite(runner, HOST, 0).start()
            self.url = f"http://{HOST}:{runner.addresses[0][1]}/crm"
            yield
        finally:
            await runner.cleanup()


@dataclass(kw_only=True)
class _Producer:
    """Calls the API.

    Attributes:
        base: URL of the API.
        session: Its connections, with the token.
    """

    base: str
    session: aiohttp.ClientSession

    async def call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """Send one request; the same key makes repeating it harmless.

        Raises:
            LocalError: The hub refused it, or failed again and again.
        """
        what, key = f"{method} {path.partition('?')[0]}", {"Idempotency-Key": uuid.uuid4().hex}

        async def attempt() -> dict[str, Any]:
            async with self.session.request(method, self.base + path, json=body, headers=key) as answer:
                check(answer.status, what, await answer.text())
                content: dict[str, Any] = await answer.json()
                return content

        return await again(what, attempt)


async def run(stack: Description, say: Say) -> None:
    """Send a webhook and check its signature.

    Args:
        stack: The running stack.
        say: For lines of text.

    Raises:
        LocalError: Something did not happen, was late, or was wrong.
    """
    headers, receiver, started = {"Authorization": f"Bearer {stack.token}"}, Receiver(), time.monotonic()
    timeout = aiohttp.ClientTimeout(total=40)
    async with receiver.serve(), aiohttp.ClientSession(headers=headers, timeout=timeout) as session:
        hub = _Producer(base=f"{stack.base_url}/api/v1", session=session)
        await hub.call("POST", "/app?get_if_exists=true", {"name": "Demonstration", "uid": APPLICATION})
        endpoint = {"uid": ENDPOINT, "url": receiver.url}
        await hub.call("PUT", f"/app/{APPLICATION}/endpoint/{ENDPOINT}", endpoint)
        secret = (await hub.call("GET", f"/app/{APPLICATION}/endpoint/{ENDPOINT}/secret"))["key"]
        say(f"The application {APPLICATION} has the endpoint {ENDPOINT}, which was given its signing secret.")
        message_id = (await hub.call("POST", f"/app/{APPLICATION}/msg", EVENT))["id"]
        say(f"Posted {EVENT['eventType']}, {message_id}.")
        given, body = await _delivered(receiver, message_id, started)
        say(f"It was delivered with webhook-signature: {given['webhook-signature']}")
        if json.loads(body) != EVENT["payload"] or not verified(secret, given, body):
            raise LocalError(f"the delivery of {message_id} is not what was posted, or its signature is wrong")
        if verified(secret, given, body + b" "):
            raise LocalError("a changed body has the same signature")
        await wait_until_stored(hub, message_id, started)
    say(f"Checked: the signature fits, and fits no other body. {time.monotonic() - started:.1f} s in all.")


async def _delivered(receiver: Receiver, message_id: str, started: float) -> tuple[Mapping[str, str], bytes]:
    while (found := receiver.of(message_id)) is None:
        if time.monotonic() - started > SECONDS:
            raise LocalError(f"the message was not delivered within {SECONDS:.0f} s")
        await asyncio.sleep(0.2)
    return found


async def wait_until_stored(hub: _Producer, message_id: str, started: float) -> None:
    """Wait until the hub says that the message was delivered.

    The receiver has it a moment before the hub has stored the attempt, and until then no endpoint is listed.

    Raises:
        LocalError: It does not say so in time.
    """
    while True:
        found = (await hub.call("GET", f"/app/{APPLICATION}/msg/{message_id}/endpoint"))["data"]
        said = [to["statusText"] for to in found]
        if said == ["success"]:
            return
        if time.monotonic() - started > SECONDS:
            raise LocalError(f"the hub says {said} of the message after {SECONDS:.0f} s, though it was delivered")
        await asyncio.sleep(0.2)
