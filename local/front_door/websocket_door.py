"""The front door's part for consumers of notifications: connects their path with the emulator's WebSocket API.

On AWS API Gateway does all of this by itself (behind CloudFront, see ``docs/notifications.md``). Here it makes up for
what the emulator does otherwise:

* It answers any handshake that ``$connect`` refuses with 403. AWS hands the function's own status on, so a refused
  handshake is asked for again over HTTP, where the same use case says what it would answer.
* It notices that a client has gone only after it has worked off its frames, so the same subscriber's next handshake is
  held back for a moment.
* It does not tell when a connection was last active, so connections that idle are closed here.
* It sends what a failing function leaves behind ("Worker process died") to the consumer, whose client would take it for
  a notification or stop listening. Only notifications are handed on. (AWS sends an error object of its own in that
  place, see ``docs/notifications.md``.)
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
import time
from collections import OrderedDict
from contextlib import suppress
from typing import Any

import aiohttp
from aiohttp import WSCloseCode, WSMsgType, web
from yarl import URL

from local.front_door.masked_frames import MaskedWebSocketResponse

FRAME_LIMIT = 131_072
"""Bytes of a message; API Gateway's own limit."""

HOLD_BACK_S = 8.0
"""How long a handshake may be held back until the emulator has noticed that the previous connection has ended."""

IDLE_S = 300.0
"""A connection without traffic, pings included, is closed after this time."""

_NOTIFICATION = re.compile(r"[A-Za-z0-9+/]{15}=\n/")
"""How every notification begins: its ack id, then its description."""

_LOOK_AGAIN_S = 0.1
_REMEMBERED = 1000
_log = logging.getLogger("pushhub.front_door")


class WebSocketDoor:
    """Connects consumers with the WebSocket API.

    Args:
        websocket_url: The emulator's address of the WebSocket API and stage, ``ws://...``.
        http_url: That of the HTTP API and stage.
        idle_s: After how many seconds without traffic connections are closed.
    """

    def __init__(self, websocket_url: str, http_url: str, *, idle_s: float = IDLE_S) -> None:
        self._websocket_url = websocket_url
        self._http_url = http_url
        self._idle_s = idle_s
        self._open: set[web.WebSocketResponse] = set()
        self._leaving = False
        self._ended: OrderedDict[str, float] = OrderedDict()

    async def session(self, _: web.Application) -> Any:
        """Opens what is needed while the front door runs; closes consumers' connections when it stops."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar()
        )
        yield
        await self._session.close()

    async def leave(self, _: web.Application) -> None:
        """Tell the consumers that the front door stops; handshakes that still wait are refused."""
        self._leaving = True
        for each in list(self._open):
            await each.close(code=WSCloseCode.GOING_AWAY)

    async def handshake(self, request: web.Request) -> web.StreamResponse:
        """Answer a handshake, and carry frames both ways until one side closes."""
        query = request.rel_url.raw_query_string
        upstream = await self._connect(query)
        if isinstance(upstream, web.Response):
            return upstream
        if self._leaving:
            await upstream.close()
            return _going()
        client = MaskedWebSocketResponse(autoping=False, max_msg_size=FRAME_LIMIT)
        try:
            await client.prepare(request)
            self._open.add(client)
            traffic = _Traffic()
            tasks = [
                asyncio.create_task(_inwards(client, upstream, traffic)),
                asyncio.create_task(_outwards(upstream, client, traffic)),
                asyncio.create_task(traffic.ceased(self._idle_s)),
            ]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            idles = tasks[-1].done()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await client.close(code=WSCloseCode.GOING_AWAY if idles else _code(upstream.close_code))
        finally:
            self._open.discard(client)
            self._remember(query)
            await upstream.close()
        return client

    async def _connect(self, query: str) -> aiohttp.ClientWebSocketResponse | web.Response:
        """The connection to the emulator, or the answer to a handshake that is refused."""
        deadline = time.monotonic() + HOLD_BACK_S
        pause_s = _LOOK_AGAIN_S
        url = URL(f"{self._websocket_url}?{query}", encoded=True)
        while not self._leaving:
            try:
                return await self._session.ws_connect(url, autoping=True, max_msg_size=0)
            except aiohttp.WSServerHandshakeError:
                answer = await self._reason(query)
            except (aiohttp.ClientError, TimeoutError) as error:
                _log.error("handshake: %s", type(error).__name__)
                return web.Response(status=503)
            # Refused a moment ago, and now it would not be, or only by a connection that has just ended: once more.
            passing = answer.status == 426 or (answer.status == 409 and self._ended_lately(query))
            if not passing or time.monotonic() >= deadline:
                return answer if answer.status != 426 else web.Response(status=503)
            # Ever longer, as those who ask keep the emulator from what they wait for.
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, 1.0)
        return _going()

    async def _reason(self, query: str) -> web.Response:
        """The hub's answer to such a handshake."""
        url = URL(f"{self._http_url}/notification2/consumer/?{query}", encoded=True)
        if len(url.query.getall("token", [])) > 1:
            # The handshake is refused for that, where HTTP would take the first.
            url = url.without_query_params("token")
        try:
            async with self._session.get(url) as answer:
                body = await answer.read()
                challenges = [("WWW-Authenticate", each) for each in answer.headers.getall("WWW-Authenticate", [])]
                return web.Response(
                    status=answer.status, body=body, content_type="application/json", headers=challenges
                )
        except (aiohttp.ClientError, TimeoutError) as error:
            _log.error("handshake: %s", type(error).__name__)
            return web.Response(status=503)

    def _remember(self, query: str) -> None:
        self._ended[_subscriber(query)] = time.monotonic()
        if len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)

    def _ended_lately(self, query: str) -> bool:
        return time.monotonic() - self._ended.get(_subscriber(query), float("-inf")) < HOLD_BACK_S


def _going() -> web.Response:
    """The answer to a handshake that comes when the front door is about to close."""
    response = web.Response(status=503)
    response.force_close()
    return response


class _Traffic:
    """When a connection was last used."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def seen(self) -> None:
        """Note that it is used now."""
        self._last = time.monotonic()

    async def ceased(self, idle_s: float) -> None:
        """Return once it has not been used for the given time."""
        while (left := self._last + idle_s - time.monotonic()) > 0:
            await asyncio.sleep(left)


async def _inwards(client: web.WebSocketResponse, upstream: aiohttp.ClientWebSocketResponse, traffic: _Traffic) -> None:
    with suppress(ConnectionError):
        async for message in client:
            traffic.seen()
            if message.type is WSMsgType.TEXT:
                await upstream.send_str(message.data)
            elif message.type is WSMsgType.BINARY:
                # As API Gateway does; the emulator would treat it as text, and as an acknowledgement.
                await client.close(code=WSCloseCode.UNSUPPORTED_DATA)
            elif message.type is WSMsgType.PING:
                await client.pong(message.data)


async def _outwards(
    upstream: aiohttp.ClientWebSocketResponse, client: web.WebSocketResponse, traffic: _Traffic
) -> None:
    with suppress(ConnectionError):
        async for message in upstream:
            if message.type is not WSMsgType.TEXT:
                continue
            if _NOTIFICATION.match(message.data):
                await client.send_str(message.data)
                traffic.seen()
            else:
                _log.error("not handed on to a consumer, as it is no notification: %.200r", message.data)


def _code(upstream_code: int | None) -> int:
    """The close code for the client: the emulator's, except for those that must not be sent."""
    normal = upstream_code in (None, 1000, 1005, 1006)
    return WSCloseCode.OK if normal or upstream_code is None else upstream_code


def _subscriber(query: str) -> str:
    """Topic and subscriber of a handshake's token, unchecked; the query itself when it has none that can be read."""
    token = URL(f"/?{query}", encoded=True).query.get("token", "")
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.b64decode(payload + "=" * (-len(payload) % 4)))
        return f"{claims['topic']}/{claims['sub']}"
    except (IndexError, KeyError, TypeError, ValueError):
        return query
