"""Two endpoints of the hub protocol as users write them: a mailer that is done at once, a warehouse that is not."""

from __future__ import annotations

from collections import Counter
from typing import Any

from aiohttp import web

from local.errors import Say

ORDER = {
    "number": "R123456789",
    "status": "complete",
    "email": "jürgen@example.org",
    "items": [{"sku": "SPR-00013", "quantity": 2, "name": "Größe ☃"}],
}
KEY = "demonstration-endpoint-key-0123456789"
"""What the hub shows to both of them."""
POLL_DELAY_S = 2
SERVICES = {"mailer": "order_confirmation", "warehouse": "ship"}
CHILDREN = ["email:sent", "shipment:confirm"]
"""What their answers lead to."""


class Shop:
    """The two endpoints.

    Attributes:
        asked: How often each was asked for what.
    """

    def __init__(self, say: Say) -> None:
        self.asked: Counter[str] = Counter()
        self._say = say

    def routes(self) -> list[web.RouteDef]:
        """What they serve."""
        return [
            web.get("/{name}/endpoint.json", self._describe),
            web.post("/mailer/order_confirmation", self._confirm),
            web.post("/warehouse/ship", self._ship),
            web.post("/warehouse/status/{number}", self._status),
        ]

    async def _describe(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        path = {"name": SERVICES[name], "path": f"/{SERVICES[name]}", "recommends": {"messages": ["order:new"]}}
        return web.json_response({"name": name, "services": [path]})

    async def _confirm(self, request: web.Request) -> web.Response:
        message = await self._read(request, "mailer: order_confirmation")
        child = {"message": "email:sent", "payload": {"to": message["payload"]["order"]["email"]}}
        return web.json_response({"message_id": message["message_id"], "messages": [child]})

    async def _ship(self, request: web.Request) -> web.Response:
        message = await self._read(request, "warehouse: ship")
        status = f"/warehouse/status/{message['payload']['order']['number']}"
        return self._later(message, status)

    async def _status(self, request: web.Request) -> web.Response:
        message = await self._read(request, "warehouse: poll")
        if self.asked["warehouse: poll"] < 2:
            return self._later(message, request.path)
        child = {"message": "shipment:confirm", "payload": {"order": message["payload"]["order"]["number"]}}
        return web.json_response({"message_id": message["message_id"], "messages": [child]})

    @staticmethod
    def _later(message: dict[str, Any], update_url: str) -> web.Response:
        """The answer of a service that is not done: ask again there."""
        later = {"message_id": message["message_id"], "delay": POLL_DELAY_S, "update_url": update_url}
        return web.json_response(later)

    async def _read(self, request: web.Request, what: str) -> dict[str, Any]:
        message: dict[str, Any] = await request.json()
        self.asked[what] += 1
        self._say(f"the endpoint was asked, {what}: {message['message_id']}")
        return message
