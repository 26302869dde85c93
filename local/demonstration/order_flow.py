"""An order through the hub protocol: a store pushes ``order:new`` to two endpoints,
one that answers at once and one that answers later.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from local.demonstration.hub import Client, serve
from local.errors import LocalError, Say
from local.place import HOST
from local.stack import Description

ORDER = {
    "number": "R123456789",
    "status": "complete",
    "email": "jürgen@example.org",
    "items": [{"sku": "SPR-00013", "quantity": 2, "name": "Größe ☃"}],
}
POLL_DELAY_S = 2
SECONDS = 120.0
"""The flow fails after this time."""
ENDPOINT_KEY = "demonstration-endpoint-key-0123456789"


@dataclass(kw_only=True)
class Endpoints:
    """Two endpoints as users write them: a mailer that is done at once, and a warehouse that takes its time.

    Attributes:
        url: Where they listen, once they do.
        asked: Requests by path and message id.
        say: Told of each request, if wanted.
    """

    url: str = ""
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    say: Say = lambda _: None

    async def describe(self, request: web.Request) -> web.Response:
        """``endpoint.json`` of either endpoint."""
        name, messages = {
            "mailer": ("order_confirmation", ["order:new"]),
            "warehouse": ("ship", ["order:new"]),
        }[request.match_info["name"]]
        service = {"name": name, "path": f"/{name}", "recommends": {"messages": messages}}
        return web.json_response({"name": request.match_info["name"], "services": [service]})

    async def confirm(self, request: web.Request) -> web.Response:
        """The mailer's answer: done at once, with a child message."""
        message = await self._taken(request, "mailer: POST order_confirmation")
        child = {"message": "email:sent", "payload": {"to": message["payload"]["order"]["email"]}}
        note = {"level": "info", "subject": "Confirmation sent", "description": "1 email"}
        return web.json_response({"message_id": message["message_id"], "messages": [child], "notifications": [note]})

    async def ship(self, request: web.Request) -> web.Response:
        """The warehouse's answer: later."""
        message = await self._taken(request, "warehouse: POST ship")
        status = f"/warehouse/status/{message['payload']['order']['number']}"
        return web.json_response({"message_id": message["message_id"], "delay": POLL_DELAY_S, "update_url": status})

    async def status(self, request: web.Request) -> web.Response:
        """The warehouse's answer to a poll: not yet the first time, done the second."""
        message = await self._taken(request, "warehouse: poll")
        if self.asked["warehouse: poll", message["message_id"]] < 2:
            later = {"delay": POLL_DELAY_S, "update_url": request.path}
            return web.json_response({"message_id": message["message_id"], **later})
        child = {"message": "shipment:confirm", "payload": {"order": message["payload"]["order"]["number"]}}
        return web.json_response({"message_id": message["message_id"], "messages": [child]})

    async def _taken(self, request: web.Request, what: str) -> dict[str, Any]:
        message: dict[str, Any] = await request.json()
        self.asked[what, message["message_id"]] += 1
        self.say(f"the endpoint was asked, {what}: {message['message_id']}")
        return message

    @contextlib.asynccontextmanager
    async def serve(self, host: str = HOST) -> AsyncIterator[Self]:
        """Listen on an address of this machine; loopback unless another is named."""
        routes = [
            web.get("/{name}/endpoint.json", self.describe),
            web.post("/mailer/order_confirmation", self.confirm),
            web.post("/warehouse/ship", self.ship),
            web.post("/warehouse/status/{number}", self.status),
        ]
        async with serve(routes, host) as self.url:
            yield self


class Store(Client):
    """A store of the hub, as its storefront and its admin client see it."""

    def __init__(self, stack: Description) -> None:
        super().__init__(f"{stack.base_url}/api/stores/{stack.project_id}", {"X-Augury-Token": stack.token})

    async def register(self, name: str, url: str) -> dict[str, Any]:
        """Register an endpoint, or update the URL of one from an earlier demonstration."""
        fields = {"name": name, "url": url, "category": "demonstration", "token": ENDPOINT_KEY}
        known = {each["name"]: each["id"] for each in await self.call("GET", "/integrations")}
        path = f"/integrations/{known[name]}" if name in known else "/integrations"
        registered: dict[str, Any] = await self.call("PUT" if name in known else "POST", path, {"integration": fields})
        return registered

    async def copies(self, message_id: str) -> list[dict[str, Any]]:
        """The accepted copies of an incoming message, with all details."""
        children = (await self.call("GET", f"/messages/{message_id}"))["children"]
        return [await self.call("GET", f"/messages/{each['id']}") for each in children]


async def run(stack: Description, say: Say) -> None:
    """Show an order's path through the hub protocol and check it."""
    async with Store(stack) as store, Endpoints().serve() as endpoints:
        for name in ("mailer", "warehouse"):
            integration = await store.register(f"demo-{name}", f"{endpoints.url}/{name}")
            services = ", ".join(each["name"] for each in integration["services"])
            say(f"Registered the endpoint demo-{name}: it describes the service {services}.")
        started = time.monotonic()
        pushed = await store.call("POST", "/messages", {"message": "order:new", "payload": {"order": ORDER}})
        say(f"Pushed order:new, {pushed['message_id']}.")
        copies = await _settled(store, pushed["message_id"], say)
        children = [child["message"] for copy in copies for child in copy["children"]]
        asked = Counter(what for what, _ in endpoints.asked.elements())
        least = {"mailer: POST order_confirmation": 1, "warehouse: POST ship": 1, "warehouse: poll": 2}
        say(f"The endpoints were asked: {', '.join(f'{what} {times}x' for what, times in asked.items())}.")
        say(f"Their answers led to: {', '.join(sorted(children))}.")
        if not asked >= Counter(least) or sorted(children) != ["email:sent", "shipment:confirm"]:
            raise LocalError(f"the order flow is not right: {dict(asked)}, {children}")
        say(f"Checked: each child message was made once. {time.monotonic() - started:.1f} s in all.")


async def _settled(store: Store, message_id: str, say: Say) -> list[dict[str, Any]]:
    """Wait until both copies are completed, telling each change of their states."""
    deadline = time.monotonic() + SECONDS
    shown = ""
    while True:
        copies = await store.copies(message_id)
        standing = ", ".join(sorted(f"{each['consumer']} {each['state']}" for each in copies))
        if standing and standing != shown:
            say(f"  {standing}")
            shown = standing
        if len(copies) == 2 and all(each["state"] == "completed" for each in copies):
            return copies
        if time.monotonic() > deadline:
            raise LocalError(f"the order flow did not end within {SECONDS:.0f} s: {standing or 'nothing was routed'}")
        await asyncio.sleep(0.5)
