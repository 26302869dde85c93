"""A webhook: an application, its endpoint, a message, and the signature that the endpoint verifies (Svix API,
Standard Webhooks).
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
import uuid
from collections.abc import Mapping

from aiohttp import web

from local.demonstration.hub import Client, serve
from local.errors import LocalError, Say
from local.stack import Description

APPLICATION, ENDPOINT = "demo", "crm"
EVENT = {"eventType": "invoice.paid", "payload": {"invoice": "R123456789", "customer": "jürgen@example.org"}}
SECONDS = 120.0
"""The flow fails after this time."""


def verified(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether a request was signed with a secret, as a receiver checks it: HMAC-SHA256 of ``id.timestamp.body``."""
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.digest(base64.b64decode(secret.removeprefix("whsec_")), content, hashlib.sha256)
    signatures = headers["webhook-signature"].split(" ")
    return any(hmac.compare_digest(each, "v1," + base64.b64encode(digest).decode()) for each in signatures)


async def run(stack: Description, say: Say) -> None:
    """Send a webhook and check its signature."""
    received: dict[str, tuple[Mapping[str, str], bytes]] = {}

    async def take(request: web.Request) -> web.Response:
        """The endpoint of a customer."""
        received.setdefault(request.headers["webhook-id"], (request.headers.copy(), await request.read()))
        return web.json_response({"ok": True})

    started, headers = time.monotonic(), {"Authorization": f"Bearer {stack.token}"}
    async with serve([web.post("/crm", take)]) as url, Client(f"{stack.base_url}/api/v1", headers) as hub:
        await hub.call("POST", "/app?get_if_exists=true", {"name": "Demonstration", "uid": APPLICATION})
        await hub.call("PUT", f"/app/{APPLICATION}/endpoint/{ENDPOINT}", {"uid": ENDPOINT, "url": f"{url}/crm"})
        secret = (await hub.call("GET", f"/app/{APPLICATION}/endpoint/{ENDPOINT}/secret"))["key"]
        say(f"The application {APPLICATION} has the endpoint {ENDPOINT}, which was given its signing secret.")
        # With a key, repeating it is harmless; the others say what is to be, and are so without one.
        key = {"Idempotency-Key": uuid.uuid4().hex}
        message_id = (await hub.call("POST", f"/app/{APPLICATION}/msg", EVENT, headers=key))["id"]
        say(f"Posted {EVENT['eventType']}, {message_id}.")
        while message_id not in received:
            if time.monotonic() - started > SECONDS:
                raise LocalError(f"the message was not delivered within {SECONDS:.0f} s")
            await asyncio.sleep(0.2)
        given, body = received[message_id]
        say(f"It was delivered with webhook-signature: {given['webhook-signature']}")
        if json.loads(body) != EVENT["payload"] or not verified(secret, given, body):
            raise LocalError(f"the delivery of {message_id} is not what was posted, or its signature is wrong")
        if verified(secret, given, body + b" "):
            raise LocalError("a changed body has the same signature")
        await wait_until_stored(hub, message_id, started)
    say(f"Checked: the signature fits, and fits no other body. {time.monotonic() - started:.1f} s in all.")


async def wait_until_stored(hub: Client, message_id: str, started: float) -> None:
    """Wait until the hub says that the message was delivered.

    The receiver has it a moment before the hub has stored the attempt, and until then no endpoint is listed.
    """
    while True:
        found = (await hub.call("GET", f"/app/{APPLICATION}/msg/{message_id}/endpoint"))["data"]
        said = [to["statusText"] for to in found]
        if said == ["success"]:
            return
        if time.monotonic() - started > SECONDS:
            raise LocalError(f"the hub says {said} of the message after {SECONDS:.0f} s, though it was delivered")
        await asyncio.sleep(0.2)
