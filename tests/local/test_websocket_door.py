"""The WebSocket half of the front door, before an upstream that does what the emulator does."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import pytest
import websockets
from aiohttp import WSMsgType, web
from local.front_door.http_door import runner
from local.front_door.websocket_door import FRAME_LIMIT, WebSocketDoor
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus
from yarl import URL

HOST = "127.0.0.1"
PATH = "/notification2/consumer/"


@dataclass
class Emulator:
    """Refuses with 403 as the emulator does, and says over HTTP why; otherwise echoes frames, each as a notification.

    Attributes:
        refusals: Statuses that the next handshakes would be refused with.
        queries: Of every handshake.
        asked: Queries of handshakes that it was asked about.
        frames: What came in.
        sockets: Open connections.
        reads: Whether it reads on.
    """

    refusals: list[int] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    frames: list[str | bytes] = field(default_factory=list)
    sockets: list[web.WebSocketResponse] = field(default_factory=list)
    reads: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.reads.set()

    async def socket(self, request: web.Request) -> web.StreamResponse:
        self.queries.append(request.rel_url.raw_query_string)
        if self.refusals:
            return web.Response(status=403)
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        self.sockets.append(socket)
        async for message in socket:
            if message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                self.frames.append(message.data)
                await self.reads.wait()
                if message.data == "close":
                    await socket.close(code=1000)
                elif isinstance(message.data, str):
                    await socket.send_str(
                        message.data.removeprefix("raw ") if message.data.startswith("raw ") else echo(message.data)
                    )
        return socket

    async def why(self, request: web.Request) -> web.Response:
        self.asked.append(request.rel_url.raw_query_string)
        status = self.refusals.pop(0) if self.refusals else 426
        challenge = {"WWW-Authenticate": 'Bearer realm="x"'} if status == 401 else {}
        return web.Response(status=status, text=json.dumps({"message": "why"}), headers=challenge)


@asynccontextmanager
async def open_door(emulator: Emulator, **settings: float) -> AsyncIterator[str]:
    """The door before an emulator; its address."""
    app = web.Application()
    app.router.add_get("/live", emulator.socket)
    app.router.add_get("/notification2/consumer/", emulator.why)
    upstream = web.AppRunner(app, shutdown_timeout=0.1)
    await upstream.setup()
    await web.TCPSite(upstream, HOST, 0).start()
    port = upstream.addresses[0][1]
    if not settings:
        door = runner(f"http://{HOST}:{port}", f"ws://{HOST}:{port}/live")
    else:
        inner = WebSocketDoor(f"ws://{HOST}:{port}/live", f"http://{HOST}:{port}", **settings)
        application = web.Application()
        application.cleanup_ctx.append(inner.session)
        application.router.add_get(PATH, inner.handshake)
        door = web.AppRunner(application)
    await door.setup()
    await web.TCPSite(door, HOST, 0).start()
    try:
        yield f"ws://{HOST}:{door.addresses[0][1]}{PATH}"
    finally:
        await door.cleanup()
        await upstream.cleanup()


def echo(text: str) -> str:
    return f"AAAAAAAAAAEAAAA=\n/t/alarms/1\nCREATE\n\necho {text}"


async def closed(connection: ClientConnection, seconds: float = 5) -> int | None:
    with pytest.raises(ConnectionClosed):
        await asyncio.wait_for(connection.recv(), seconds)
    return connection.close_code


def a_token(subscriber: str) -> str:
    claims = base64.b64encode(json.dumps({"sub": subscriber, "topic": "t/relnotif/a"}).encode()).decode().rstrip("=")
    return f"x.{claims}.y"


def test_frames_pass_both_ways_and_the_query_as_it_came() -> None:
    async def play() -> None:
        emulator = Emulator()
        async with open_door(emulator) as url, websockets.connect(f"{url}?token=a%2Fb&consumer=x") as client:
            await client.send("hällo\n\n")
            assert await client.recv() == echo("hällo\n\n")
            await client.send("close")
            assert await closed(client) == 1000
        assert emulator.queries == ["token=a%2Fb&consumer=x"]
        assert emulator.frames == ["hällo\n\n", "close"]

    asyncio.run(play())


def test_a_binary_frame_ends_the_connection_and_acknowledges_nothing() -> None:
    async def play() -> None:
        emulator = Emulator()
        async with open_door(emulator) as url, websockets.connect(f"{url}?token=x") as client:
            await client.send(b"AAAAAAAAAIDk3kY=")
            assert await closed(client) == 1003
        assert emulator.frames == []

    asyncio.run(play())


def test_a_handshake_with_two_tokens_is_asked_for_without_any() -> None:
    # Given a hub that is asked why a handshake was refused, and would take the first token
    async def play() -> None:
        emulator = Emulator(refusals=[401])
        async with open_door(emulator) as url:
            with pytest.raises(InvalidStatus) as refused:
                await websockets.connect(f"{url}?token=a&consumer=x&token=b")
            assert refused.value.response.status_code == 401
        assert emulator.asked == ["consumer=x"]

    asyncio.run(play())


@pytest.mark.parametrize("status", [401, 409, 500])
def test_a_refused_handshake_has_the_status_that_the_hub_tells(status: int) -> None:
    async def play() -> None:
        async with open_door(Emulator(refusals=[status])) as url:
            with pytest.raises(InvalidStatus) as refused:
                await websockets.connect(f"{url}?token=x")
            assert refused.value.response.status_code == status
            assert json.loads(refused.value.response.body or b"")["message"] == "why"
            challenges = refused.value.response.headers.get_all("WWW-Authenticate")
            assert challenges == (['Bearer realm="x"'] if status == 401 else [])

    asyncio.run(play())


def test_a_handshake_is_held_back_while_the_connection_before_it_is_still_ending() -> None:
    async def play() -> None:
        emulator = Emulator()
        async with open_door(emulator) as url:
            query = f"?token={a_token('app')}"
            async with websockets.connect(url + query):
                pass
            # For a while the emulator still takes the first connection for open.
            emulator.refusals = [409, 409]
            async with websockets.connect(url + query) as again:
                await again.send("x")
                assert await again.recv() == echo("x")
            # Another subscriber is told at once.
            emulator.refusals = [409]
            with pytest.raises(InvalidStatus):
                await websockets.connect(f"{url}?token={a_token('other')}")

    asyncio.run(play())


def test_a_refusal_whose_reason_has_passed_is_tried_again() -> None:
    async def play() -> None:
        emulator = Emulator(refusals=[426])
        async with open_door(emulator) as url, websockets.connect(f"{url}?token=x") as client:
            await client.send("x")
            assert await client.recv() == echo("x")
        assert len(emulator.queries) == 2

    asyncio.run(play())


def test_a_connection_without_traffic_is_closed_and_pings_keep_one() -> None:
    async def play() -> None:
        async with open_door(Emulator(), idle_s=0.4) as url:
            quiet = await websockets.connect(url, ping_interval=None)
            pinging = await websockets.connect(url, ping_interval=0.1)
            assert await closed(quiet) == 1001
            await asyncio.sleep(0.4)
            await pinging.send("x")
            assert await pinging.recv() == echo("x")
            await pinging.close()

    asyncio.run(play())


def test_frames_come_in_order_and_none_is_lost_when_the_client_closes_behind_it() -> None:
    async def play() -> None:
        emulator = Emulator()
        ids = [base64.b64encode(number.to_bytes(11)).decode() for number in range(500)]
        sent = [*ids[:300], "other", *ids[300:]]
        async with open_door(emulator) as url:
            async with websockets.connect(url, max_queue=None) as client:
                for each in sent:
                    await client.send(each)
            while len(emulator.frames) < len(sent):
                await asyncio.sleep(0.01)
        assert emulator.frames == sent

    asyncio.run(asyncio.wait_for(play(), 90))


def test_pings_are_answered_while_the_emulator_reads_nothing() -> None:
    async def play() -> None:
        emulator = Emulator()
        async with open_door(emulator) as url, websockets.connect(url, max_queue=None) as client:
            # Given an emulator that is still at the first of as many acknowledgements as a consumer may owe
            emulator.reads.clear()
            for number in range(1000):
                await client.send(base64.b64encode(number.to_bytes(11)).decode())
            # When the client pings, then it is answered
            await asyncio.wait_for(await client.ping(), 90)
            assert len(emulator.frames) <= 1
            emulator.reads.set()

    asyncio.run(play())


@pytest.mark.parametrize(
    "frame",
    [
        "Worker process died",
        '{"message": "Internal server error", "connectionId": "abc=", "requestId": "def="}',
        "",
        "AAAAAAAAAAEAAAA=",
        "AAAAAAAAAAEAAAA=\nno description",
        " AAAAAAAAAAEAAAA=\n/t/alarms/1\nCREATE\n\n{}",
    ],
)
def test_what_a_dying_function_leaves_behind_never_reaches_a_consumer(frame: str) -> None:
    async def play() -> None:
        async with open_door(Emulator()) as url, websockets.connect(url) as client:
            # Given an emulator that sends what is no notification, and then one
            await client.send(f"raw {frame}")
            await client.send("x")
            # When the consumer reads, then the notification is the first thing it sees
            assert await client.recv() == echo("x")

    asyncio.run(play())


def test_a_handshake_that_waits_when_the_door_closes_is_refused_and_leaves_nothing_open() -> None:
    async def play() -> None:
        emulator = Emulator()
        async with open_door(emulator) as url:
            query = f"?token={a_token('app')}"
            async with websockets.connect(url + query):
                pass
            # Given a handshake that is held back
            emulator.refusals = [409] * 1000
            waiting = asyncio.create_task(websockets.connect(url + query).__aenter__())
            while len(emulator.queries) < 3:
                await asyncio.sleep(0.01)
            # When the door closes
        # Then it is refused, and did not hold up the door
        with pytest.raises(InvalidStatus) as refused:
            await waiting
        assert refused.value.response.status_code == 503

    asyncio.run(asyncio.wait_for(play(), 90))


def test_a_ping_is_answered_with_what_it_held() -> None:
    async def play() -> None:
        async with open_door(Emulator()) as url, websockets.connect(url) as client:
            await asyncio.wait_for(await client.ping(b"abc"), 90)

    asyncio.run(play())


def test_too_large_a_message_ends_the_connection() -> None:
    async def play() -> None:
        emulator = Emulator()
        async with open_door(emulator) as url, websockets.connect(url) as client:
            await client.send("x" * FRAME_LIMIT)
            assert len(await client.recv()) == len(echo("x" * FRAME_LIMIT))
            await client.send("x" * (FRAME_LIMIT + 1))
            assert await closed(client) == 1009
        assert len(emulator.frames) == 1

    asyncio.run(play())


def test_an_upstream_that_dies_closes_the_client_normally() -> None:
    async def play() -> None:
        emulator = Emulator()
        async with open_door(emulator) as url, websockets.connect(url) as client:
            await client.send("x")
            await client.recv()
            (socket,) = emulator.sockets
            transport = socket._req.transport if socket._req else None
            assert transport is not None
            transport.abort()
            assert await closed(client) == 1000

    asyncio.run(play())


def test_a_door_that_stops_tells_its_clients_and_does_not_wait_for_them() -> None:
    async def play() -> None:
        emulator = Emulator()
        async with open_door(emulator) as url:
            client = await websockets.connect(url)
        assert await closed(client) == 1001

    asyncio.run(asyncio.wait_for(play(), 90))


def test_a_request_that_is_no_handshake_goes_where_requests_go() -> None:
    async def play() -> None:
        emulator = Emulator(refusals=[401])
        async with open_door(emulator) as url, aiohttp.ClientSession() as session:
            answer = await session.get(url.replace("ws", "http", 1))
            assert answer.status == 401
        assert emulator.queries == []

    asyncio.run(play())


def test_without_an_upstream_the_handshake_is_unavailable() -> None:
    async def play() -> None:
        door = runner(f"http://{HOST}:9", f"ws://{HOST}:9/live")
        await door.setup()
        await web.TCPSite(door, HOST, 0).start()
        try:
            with pytest.raises(InvalidStatus) as refused:
                await websockets.connect(f"ws://{HOST}:{door.addresses[0][1]}{PATH}")
            assert refused.value.response.status_code == 503
        finally:
            await door.cleanup()

    asyncio.run(play())


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "byte by byte"])
def test_an_unmasked_frame_ends_the_connection_with_1002(cut: bool) -> None:
    async def play() -> None:
        emulator = Emulator()
        async with open_door(emulator) as url:
            place = URL(url)
            reader, writer = await asyncio.open_connection(place.host, place.port)
            writer.write(
                f"GET {PATH}?token=x HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
            )
            assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
            # Given masked frames, a long one among them
            masked = b"\x81\x82\0\0\0\0ok" + b"\x81\xfe\x01\x00\0\0\0\0" + b"a" * 256
            # When one comes that is not masked
            given = masked + b"\x81\x04evil"
            # (Its head suffices: byte by byte, the rest would come when the connection has ended.)
            head = len(masked) + 2
            for piece in [given[at : at + 1] for at in range(head)] if cut else [masked, given[len(masked) :]]:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            # Then it is not read, and the connection ends as one that breaks the protocol
            answer = await asyncio.wait_for(reader.read(), 90)
            assert int.from_bytes(answer[answer.rindex(b"\x88") + 2 :][:2]) == 1002
            assert "evil" not in emulator.frames
            writer.close()

    asyncio.run(play())
