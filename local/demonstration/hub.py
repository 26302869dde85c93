"""The few calls of the hub's protocols that the demonstration makes, as any HTTP client would, and its own endpoints.

A request that failed for a moment is made again: a loaded machine answers 500 now and then, and clients of a hub are
expected to try again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any, Self, TypeVar
from urllib.parse import quote

import aiohttp
from aiohttp import web

from local.errors import LocalError
from local.place import HOST

PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0)
"""The waits before each further try."""
_FULL_DISK = 507

T = TypeVar("T")


class Failed(LocalError):
    """The hub failed; trying again may help."""


def check(status: int, what: str, text: str) -> None:
    """Take an answer for what it is.

    Raises:
        Failed: The hub failed; trying again may help.
        LocalError: It refused the request.
    """
    if status < 300:
        return
    kind = Failed if status >= 500 and status != _FULL_DISK else LocalError
    raise kind(f"the hub answered {status} to {what}: {text[:200]}")


async def again(
    what: str,
    attempt: Callable[[], Awaitable[T]],
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    repeated: Callable[[], None] = lambda: None,
) -> T:
    """Repeat an attempt until the hub does not fail.

    Args:
        what: The request, for messages.
        attempt: Makes it; raises :class:`Failed`, or the client's errors.
        sleep: Waits so many seconds.
        repeated: Called before each further try: the failed try may have had its effect all the same.
    """
    for pause in (*PAUSES_S, None):
        try:
            return await attempt()
        except Failed:
            if pause is None:
                raise
        except (aiohttp.ClientError, TimeoutError) as error:
            if pause is None:
                raise Failed(f"the hub did not answer {what}: {error!r}") from error
        repeated()
        await sleep(pause)
    raise AssertionError  # Not reached: the last try returns or raises.


class Client:
    """Calls one of the hub's protocols, within its context.

    Args:
        base_url: What every path is below.
        headers: Of each request.

    Attributes:
        repeated: How often a request was repeated because the hub had failed. Its effect may have happened twice.
    """

    session: aiohttp.ClientSession

    def __init__(self, base_url: str, headers: Mapping[str, str]) -> None:
        self._base = base_url
        self._headers = headers
        self.repeated = 0

    async def __aenter__(self) -> Self:
        """Open the connections."""
        self.session = aiohttp.ClientSession(
            headers=self._headers, timeout=aiohttp.ClientTimeout(total=40), connector=aiohttp.TCPConnector(limit=4)
        )
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
        missing: object = None,
        also: int = 0,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The answer to one request.

        Args:
            missing: What to take a 404 for, unless that is a refusal like others.
            also: A status of failure that is an answer too.
        """
        what = f"{method} {path.partition('?')[0]}"

        async def attempt() -> Any:
            async with self.session.request(method, self._base + path, json=body, headers=headers) as answer:
                if answer.status == 404 and missing is not None:
                    return missing
                if answer.status != also:
                    check(answer.status, what, await answer.text())
                return await answer.json(content_type=None)

        return await again(what, attempt, repeated=self._repeat)

    def _repeat(self) -> None:
        self.repeated += 1


class Hub(Client):
    """A client of one project's queues."""

    def __init__(self, base_url: str, project_id: str, token: str) -> None:
        super().__init__(f"{base_url}/3/projects/{project_id}/queues", {"Authorization": f"OAuth {token}"})

    async def queue_names(self, prefix: str) -> list[str]:
        """Names of the queues that begin with a prefix (the first hundred)."""
        answer = await self.call("GET", f"?per_page=100&prefix={quote(prefix)}")
        return [queue["name"] for queue in answer["queues"]]

    async def put_queue(self, name: str, settings: dict[str, Any]) -> None:
        """Make a queue."""
        await self.call("PUT", f"/{quote(name, safe='')}", {"queue": settings})

    async def total_messages(self, name: str) -> int:
        """How many messages were ever posted to a queue; 0 if it does not exist."""
        answer = await self.call("GET", f"/{quote(name, safe='')}", missing={"queue": {"total_messages": 0}})
        return int(answer["queue"]["total_messages"])

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
        answer = await self.call("POST", f"/{quote(name, safe='')}/reservations", wanted, missing={"messages": []})
        return list(answer["messages"])

    async def release(self, name: str, message_id: str, reservation_id: str) -> None:
        """Release a reserved message."""
        path = f"/{quote(name, safe='')}/messages/{message_id}/release"
        await self.call("POST", path, {"reservation_id": reservation_id})


@contextlib.asynccontextmanager
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
