"""Clients of the hub's protocols as any program would write them: for the demonstration and ``sam local``.

A loaded machine answers 500 now and then, and clients of a hub are expected to try again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self
from urllib.parse import quote

import aiohttp
from aiohttp import web

from local.errors import LocalError
from local.place import HOST
from local.stack import Description

PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0)
"""The waits before each further try."""
_FULL_DISK = 507
_DUPLICATE = 409
_MISSING = 404


class Client:
    """Calls one of the hub's protocols, within its context.

    Args:
        base_url: What every path is below.
        headers: Of each request.
    """

    session: aiohttp.ClientSession

    def __init__(self, base_url: str, headers: Mapping[str, str]) -> None:
        self.base_url = base_url
        self._headers = headers

    async def __aenter__(self) -> Self:
        """Open the connections."""
        timeout, connector = aiohttp.ClientTimeout(total=40), aiohttp.TCPConnector(limit=4)
        self.session = aiohttp.ClientSession(headers=self._headers, timeout=timeout, connector=connector)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close them."""
        await self.session.close()

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        expected: Collection[int] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The answer to a request, which is repeated while the hub fails.

        Args:
            expected: Statuses of refusal whose body is an answer too.

        Raises:
            LocalError: The hub refused it, or failed each time. A failed try may have had its effect all the same.
        """
        what = f"{method} {path.partition('?')[0]}"
        for pause in (*PAUSES_S, None):
            try:
                async with self.session.request(method, self.base_url + path, json=body, headers=headers) as answer:
                    status, text = answer.status, await answer.text()
            except (aiohttp.ClientError, TimeoutError) as error:
                failure = LocalError(f"the hub did not answer {what}: {error!r}")
            else:
                if status < 300 or status in expected:
                    return json.loads(text) if text else None
                failure = LocalError(f"the hub answered {status} to {what}: {text[:200]}")
                if status < 500 or status == _FULL_DISK:
                    raise failure
            if pause is not None:
                await asyncio.sleep(pause)
        raise failure


class Hub(Client):
    """The queues of a project (IronMQ v3)."""

    def __init__(self, stack: Description) -> None:
        base_url = f"{stack.base_url}/3/projects/{stack.project_id}/queues"
        super().__init__(base_url, {"Authorization": f"OAuth {stack.token}"})

    async def queue_names(self, prefix: str) -> list[str]:
        """Names of the queues that begin with a prefix (the first hundred)."""
        return [each["name"] for each in (await self.call("GET", f"?per_page=100&prefix={quote(prefix)}"))["queues"]]

    async def put_queue(self, name: str, settings: dict[str, Any]) -> None:
        """Make a queue."""
        await self.call("PUT", f"/{quote(name, safe='')}", {"queue": settings})

    async def total_messages(self, name: str) -> int:
        """How many messages were ever posted to a queue; 0 if it does not exist."""
        answer = await self.call("GET", f"/{quote(name, safe='')}", expected={_MISSING})
        return int(answer.get("queue", {}).get("total_messages", 0))

    async def post(self, name: str, bodies: list[str]) -> list[str]:
        """Post messages; their ids in order."""
        messages = {"messages": [{"body": body} for body in bodies]}
        return list((await self.call("POST", f"/{quote(name, safe='')}/messages", messages))["ids"])

    async def statuses(self, name: str, message_id: str) -> dict[str, dict[str, Any]]:
        """Push status of a message by subscriber."""
        answer = await self.call("GET", f"/{quote(name, safe='')}/messages/{message_id}/subscribers")
        return {status["subscriber_name"]: status for status in answer["subscribers"]}

    async def reserve(self, name: str, count: int, timeout: int) -> list[dict[str, Any]]:
        """Reserve messages of a pull queue for some seconds; none if it does not exist."""
        wanted = {"n": count, "timeout": timeout}
        answer = await self.call("POST", f"/{quote(name, safe='')}/reservations", wanted, expected={_MISSING})
        return list(answer.get("messages", []))


class Store(Client):
    """A store, as its storefront and its admin client see it (Spree hub protocol)."""

    def __init__(self, stack: Description) -> None:
        super().__init__(f"{stack.base_url}/api/stores/{stack.project_id}", {"X-Augury-Token": stack.token})

    async def register(self, name: str, url: str, token: str) -> list[str]:
        """Register an endpoint, or update the URL of one that is known; the names of its services."""
        fields = {"name": name, "url": url, "category": "demonstration", "token": token}
        ids = {each["name"]: each["id"] for each in await self.call("GET", "/integrations")}
        method, path = ("PUT", f"/integrations/{ids[name]}") if name in ids else ("POST", "/integrations")
        return [each["name"] for each in (await self.call(method, path, {"integration": fields}))["services"]]

    async def copies(self, message_id: str) -> list[dict[str, Any]]:
        """The copies of an incoming message that were routed to services, with all details."""
        children = (await self.call("GET", f"/messages/{message_id}"))["children"]
        return [await self.call("GET", f"/messages/{each['id']}") for each in children]


class Tenant(Client):
    """A publisher and a consumer of one topic (Notifications 2.0).

    Args:
        user: The name it signs in with.
        topic: The subscription that it uses.
        subscriber: The consumer's name.
    """

    def __init__(self, stack: Description, *, user: str, topic: str, subscriber: str) -> None:
        credentials = aiohttp.encode_basic_auth(f"{stack.project_id}/{user}", stack.token)
        super().__init__(f"{stack.base_url}/notification2", {"Authorization": credentials})
        self.topic = topic
        self.subscriber = subscriber

    async def subscribe(self) -> None:
        """Make the topic, unless it is there."""
        subscription = {"context": "tenant", "subscription": self.topic}
        await self.call("POST", "/subscriptions", subscription, expected={_DUPLICATE})

    async def publish(self, numbers: Iterable[int]) -> None:
        """Publish an event for each number; they match every subscription of the tenant."""
        for number in numbers:
            data = {"type": f"{self.topic}_Step", "number": number}
            await self.call("POST", "/notifications", {"api": "events", "source": "machine-1", "data": data})

    async def token(self, subscriber: str = "") -> str:
        """What the consumer (or another) connects with."""
        wanted = {"subscriber": subscriber or self.subscriber, "subscription": self.topic}
        return str((await self.call("POST", "/token", wanted))["token"])

    def connect(self, token: str) -> Any:
        """Connect a consumer."""
        return self.session.ws_connect(f"{self.base_url}/consumer/?token={token}")


@asynccontextmanager
async def serve(routes: Iterable[web.RouteDef], host: str = HOST) -> AsyncIterator[str]:
    """Let endpoints listen on an address of this machine, loopback unless another is named; gives their base URL."""
    app = web.Application(client_max_size=16 * 1024 * 1024)
    app.add_routes(routes)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=2)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, 0, backlog=512).start()
        yield f"http://{host}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
