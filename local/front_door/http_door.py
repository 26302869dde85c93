"""One base URL for the whole hub: forwards requests to the emulator's API Gateway byte for byte,
as a custom domain does on AWS.

The emulator serves an API below ``/_aws/execute-api/<api id>/<stage>``, which no client of a hub expects. Path, query,
header values and body pass unchanged in both directions. What API Gateway itself says is said here: its size limit and
its time limit. IronMQ answers no 504, and 503 only if repeating helps (its clients retry those for a long time), so a
gateway that fails is a 500, as it is for a failing function on AWS; a 503 of the hub itself says when to repeat. While
the disk is nearly full, what would add to the state is refused (:mod:`local.state.disk_space`).

Run as a process: ``python -m local.front_door.http_door PORT UPSTREAM WEBSOCKET_UPSTREAM STATE``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import logging
import re
import signal
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import aiohttp
from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from local.front_door.websocket_door import WebSocketDoor
from local.place import HOST
from local.state.disk_space import MESSAGE as ROOM_MESSAGE
from local.state.disk_space import STATUS as ROOM_STATUS
from local.state.disk_space import Room, adds

REQUEST_LIMIT = 10 * 1024 * 1024
"""Bytes of a request's body; API Gateway's own limit."""
EVENT_LIMIT = 6 * 1024 * 1024
"""Bytes of the event that a function is run with; Lambda's own limit
(https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html). The event is JSON, so a body that is text is
escaped in it, and any other is base64.
"""
ENVELOPE_BYTES = 1_500
"""What API Gateway adds to path, query, headers and body: the context, and names."""
TEXTUAL = re.compile(r"text/|application/(json|javascript|xml)\b")
"""Content types that API Gateway hands on as text
(https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html).
"""
ANSWER_SECONDS = 35.0
"""A long poll of 30 s, the longest API Gateway allows, and room for the emulator."""
REQUESTS_AT_ONCE = 12
"""Requests handed on side by side; more wait here.

The emulator starts a process for every request that finds no idle one, so a burst would start a hundred of them, and on
a small machine they time out together. AWS needs no such limit.
"""
FILES_AT_ONCE = 2
"""The same for the console's files: a browser asks for all of them together,
and each is read in no time by a process that is there.
"""
LONG_POLLS_AT_ONCE = 12
"""The same for reservations, which may wait half a minute for a message and must not keep others waiting."""
LONG_POLLS_OF_A_PROJECT = 8
"""How many of those may belong to one project, so that others need not wait for them."""
DRAIN_SECONDS = 35.0
"""How long requests under way may take after the front door is told to stop."""

_HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"}
    | {"te", "trailer", "transfer-encoding", "upgrade"}
)
_CODES = {400: "generic_error", 413: "payload_too_large", 507: "insufficient_storage"}
"""Codes of webhooks, by status; all others are ``server_error``."""
_NAMES = {400: "general/badRequest", 413: "general/requestTooLarge", 507: "general/insufficientStorage"}
"""Names of Notifications 2.0, by status; all others are ``general/internalError``."""
_GATEWAY_FAILURES = frozenset({502, 503, 504})
_NO_UTF8 = re.compile("[\ud800-\udfff]")
_log = logging.getLogger("pushhub.front_door")


class FrontDoor:
    """Forwards requests to one API."""

    def __init__(self, upstream: str, room: Room | None) -> None:
        self._upstream = upstream
        self._room = room
        self._turns = asyncio.Semaphore(REQUESTS_AT_ONCE)
        self._file_turns = asyncio.Semaphore(FILES_AT_ONCE)
        self._long_turns = asyncio.Semaphore(LONG_POLLS_AT_ONCE)
        self._long_turns_of: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def session(self, _: web.Application) -> Any:
        """Opens what is needed while the front door runs."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
            timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS, sock_connect=5),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        )
        yield
        await self._session.close()

    async def forward(self, request: web.Request) -> web.StreamResponse:
        """Forward one request to the API, and return its answer."""
        if (request.content_length or 0) > REQUEST_LIMIT:
            return _refusal(request.path, 413, "Request Entity Too Large")
        if any(map(_NO_UTF8.search, request.headers.values())):
            return _refusal(request.path, 400, "Bad Request")
        if self._room and adds(request.method, request.path) and not self._room.left():
            _log.error("%s %s: refused, as the disk is nearly full", request.method, request.path)
            return _refusal(request.path, ROOM_STATUS, ROOM_MESSAGE)
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return _refusal(request.path, 413, "Request Entity Too Large")
        if event_size(request.raw_path, request.headers, body) > EVENT_LIMIT:
            return _refusal(request.path, 413, "Request Too Long")
        async with contextlib.AsyncExitStack() as turns:
            for turn in self._turns_for(request.path):
                await turns.enter_async_context(turn)
            return await self._handed_on(request, body)

    def _turns_for(self, path: str) -> tuple[asyncio.Semaphore, ...]:
        if not path.endswith("/reservations"):
            return (self._file_turns if path.startswith("/console/") else self._turns,)
        # The first four parts of the path: /3/projects/{project}.
        project = "/".join(path.split("/", 4)[:4])
        of_project = self._long_turns_of.setdefault(project, asyncio.Semaphore(LONG_POLLS_OF_A_PROJECT))
        return of_project, self._long_turns

    async def _handed_on(self, request: web.Request, body: bytes) -> web.StreamResponse:
        try:
            async with self._session.request(
                request.method,
                # With the request's exact path and query.
                URL(self._upstream + request.raw_path, encoded=True),
                data=io.BytesIO(body) if body else None,
                headers=_request_headers(request),
                allow_redirects=False,
            ) as answer:
                content, headers = await answer.read(), answer.headers
                if answer.status in _GATEWAY_FAILURES and "Retry-After" not in headers:
                    said = (request.method, request.path, answer.status, content)
                    _log.error("%s %s: the API answered %d: %.500r", *said)
                    return _refusal(request.path, 500, "Internal Server Error")
                return web.Response(status=answer.status, reason=answer.reason, body=content, headers=_kept(headers))
        except (aiohttp.ClientError, TimeoutError) as error:
            # Not the error itself: some hold the whole address, with a token in its query.
            _log.error("%s %s: %s", request.method, request.path, type(error).__name__)
            return _refusal(request.path, 500, "Internal Server Error")


def event_size(raw_path: str, headers: Mapping[str, str], body: bytes) -> int:
    """Bytes of the event that a request becomes, nearly."""
    size = ENVELOPE_BYTES + len(json.dumps([raw_path, *headers.items()]))
    if "Content-Encoding" in headers or not TEXTUAL.match(headers.get("Content-Type", "").lower()):
        return size + -(-len(body) // 3) * 4
    if size + 6 * len(body) <= EVENT_LIMIT:
        # No character takes more.
        return size + len(body)
    return size + len(json.dumps(body.decode(errors="replace"), ensure_ascii=False).encode())


def _words(path: str, status: int, message: str) -> dict[str, str]:
    """A refusal as clients of the protocol read it. On AWS it is API Gateway that refuses, with ``{"message"}``."""
    if path.startswith("/api/v1/"):
        return {"code": _CODES.get(status, "server_error"), "detail": message}
    if path.startswith("/notification2/"):
        return {"error": _NAMES.get(status, "general/internalError"), "message": message, "info": ""}
    if path.startswith("/api/"):
        return {"error": message}
    return {"message": message, "msg": message}


def _refusal(path: str, status: int, message: str) -> web.Response:
    """An answer of the front door itself."""
    body = json.dumps(_words(path, status, message)).encode()
    response = web.Response(status=status, body=body, headers={"Content-Type": "application/json"})
    if status != 500:
        # The body was not read, or not to its end, so the connection cannot be used again.
        response.force_close()
    return response


def _kept(headers: CIMultiDictProxy[str], without: Set[str] = frozenset()) -> CIMultiDict[str]:
    options = {name.strip().lower() for value in headers.getall("Connection", []) for name in value.split(",")}
    dropped = _HOP_BY_HOP | options | {"content-length"} | without
    spelled: dict[str, str] = {}
    kept: CIMultiDict[str] = CIMultiDict()
    for name, value in headers.items():
        if name.lower() not in dropped:
            # The client keeps only the last of two headers that differ in case.
            kept.add(spelled.setdefault(name.lower(), name), value)
    return kept


def _request_headers(request: web.Request) -> CIMultiDict[str]:
    """The request's headers with what API Gateway adds.

    The emulator distinguishes its services by host name, so that is its own.
    """
    headers = _kept(request.headers, without={"host", "expect"})
    forwarded = [*request.headers.getall("X-Forwarded-For", []), request.remote or HOST]
    headers["X-Forwarded-For"] = ", ".join(forwarded)
    headers["X-Forwarded-Port"] = str(request.url.port or 80)
    headers["X-Forwarded-Proto"] = "http"
    headers["X-Forwarded-Host"] = request.host
    return headers


def runner(upstream: str, websocket_upstream: str = "", room: Room | None = None) -> web.AppRunner:
    """The front door, not yet started: bodies stay compressed, and header lines may be as long as API Gateway allows.

    Args:
        upstream: The emulator's address of the API and stage, without a slash at the end.
        websocket_upstream: That of the WebSocket API and stage; without it there are no consumers of notifications.
        room: Whether there is room on the disk; without it nothing is checked.
    """
    app = web.Application(client_max_size=REQUEST_LIMIT)
    front = FrontDoor(upstream, room)
    app.cleanup_ctx.append(front.session)
    if websocket_upstream:
        door = WebSocketDoor(websocket_upstream, upstream)

        async def consumer(request: web.Request) -> web.StreamResponse:
            """Handshakes go to the WebSocket API; other requests to their path are treated like all others."""
            upgrade = request.headers.get("Upgrade", "").lower() == "websocket"
            return await (door.handshake(request) if upgrade else front.forward(request))

        app.cleanup_ctx.append(door.session)
        app.on_shutdown.append(door.leave)
        app.router.add_get("/notification2/consumer{slash:/?}", consumer, allow_head=False)
    # "." is no line break, and an encoded one is decoded before it is matched.
    app.router.add_route("*", r"/{path:[\s\S]*}", front.forward)
    return web.AppRunner(
        app,
        access_log=None,
        logger=_server_log(),
        shutdown_timeout=DRAIN_SECONDS,
        keepalive_timeout=75,
        auto_decompress=False,
        lingering_time=2,
        max_line_size=10_240,
        max_field_size=10_240,
    )


class _WithoutRequests(logging.Filter):
    """Leaves out what a request said: of one that is malformed, the server's error holds the bytes, and with them a
    token.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record; it is always written."""
        error = record.exc_info[0] if record.exc_info else None
        record.msg, record.args = "a request could not be read: %s", (error.__name__ if error else "no error",)
        record.exc_info = record.exc_text = None
        return True


def _server_log() -> logging.Logger:
    found = logging.getLogger("pushhub.front_door.server")
    if not found.filters:
        found.addFilter(_WithoutRequests())
    return found


async def serve(port: int, upstream: str, websocket_upstream: str, room: Room | None) -> None:
    """Serve until SIGTERM; then accept nothing more and finish what is under way."""
    door = runner(upstream, websocket_upstream, room)
    await door.setup()
    await web.TCPSite(door, HOST, port, backlog=1024).start()
    _log.info("serving %s on http://%s:%d", upstream, HOST, port)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await stopped.wait()
    _log.info("stopping")
    await door.cleanup()


def main() -> None:
    """Run as a process."""
    parser = argparse.ArgumentParser(prog="python -m local.front_door.http_door")
    parser.add_argument("port", type=int)
    parser.add_argument("upstream")
    parser.add_argument("websocket_upstream", nargs="?", default="")
    parser.add_argument("state", nargs="?", type=Path)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    room = Room(arguments.state) if arguments.state else None
    asyncio.run(serve(arguments.port, arguments.upstream, arguments.websocket_upstream, room))


if __name__ == "__main__":
    main()
