"""The few calls of the hub's API that the demonstration makes, as any HTTP client would."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import aiohttp

from local.demonstration.again import again, check

__all__ = ["Hub"]


class Hub:
    """A client of one project.

    Args:
        base_url: Of the hub.
        project_id: The project.
        token: Its token.

    Attributes:
        repeated: How often a request was repeated because the hub had failed. Its effect may have happened
            twice.
    """

    def __init__(self, base_url: str, project_id: str, token: str) -> None:
        self._base = f"{base_url}/3/projects/{project_id}/queues"
        self._headers = {"Authorization": f"OAuth {token}"}
        self._session: aiohttp.ClientSession | None = None
        self.repeated = 0

    async def __aenter__(self) -> Self:
        """Open the connections."""
        self._session = aiohttp.ClientSession(
            headers=self._headers, timeout=aiohttp.ClientTimeout(total=40), connector=aiohttp.TCPConnector(limit=4)
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close them."""
        if self._session:
            await self._session.close()

    async def queue_names(self, prefix: str) -> list[str]:
        """Names of the queues that begin with a prefix (the first hundred)."""
        answer = await self._call("GET", f"?per_page=100&prefix={quote(prefix)}")
        return [queue["name"] for queue in answer["queues"]]

    async def put_queue(self, name: str, settings: dict[str, Any]) -> None:
        """Make a queue."""
        await self._call("PUT", f"/{quote(name, safe='')}", {"queue": settings})

    async def total_messages(self, name: str) -> int:
        """How many messages were ever posted to a queue; 0 if it does not exist."""
        answer = await self._call("GET", f"/{quote(name, safe='')}", missing={"queue": {"total_messages": 0}})
        return int(answer["queue"]["total_messages"])

    async def post(self, name: str, bodies: list[str]) -> list[str]:
        """Post messages; their ids in order."""
        messages = {"messages": [{"body": body} for body in bodies]}
        answer = await self._call("POST", f"/{quote(name, safe='')}/messages", messages)
        return [str(each) for each in answer["ids"]]

    async def statuses(self, name: str, message_id: str) -> dict[str, dict[str, Any]]:
        """Push status of a message by subscriber."""
        answer = await self._call("GET", f"/{quote(name, safe='')}/messages/{message_id}/subscribers")
        return {status["subscriber_name"]: status for status in answer["subscribers"]}

    async def reserve(self, name: str, count: int, timeout: int) -> list[dict[str, Any]]:
        """Reserve messages of a pull queue for some seconds; none if it does not exist."""
        wanted = {"n": count, "timeout": timeout}
        answer = await self._call("POST", f"/{quote(name, safe='')}/reservations", wanted, missing={"messages": []})
        return list(answer["messages"])

    async def release(self, name: str, message_id: str, reservation_id: str) -> None:
        """Release a reserved message."""
        path = f"/{quote(name, safe='')}/messages/{message_id}/release"
        await self._call("POST", path, {"reservation_id": reservation_id})

    async def _call(
        self, method: str, path: str, content: dict[str, Any] | None = None, *, missing: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        session = self._session
        if session is None:
            raise RuntimeError("the client is used outside its context")
        what = f"{method} {path.partition('?')[0]}"

        async def attempt() -> dict[str, Any]:
            async with session.request(method, self._base + path, json=content) as answer:
                if answer.status == 404 and missing is not None:
                    return missing
                check(answer.status, what, await answer.text())
                result: dict[str, Any] = await answer.json()
                return result

        return await again(what, attempt, repeated=self._repeat)

    def _repeat(self) -> None:
        self.repeated += 1
