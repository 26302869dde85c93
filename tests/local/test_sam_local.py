"""What ``sam local`` is given: plain settings, routes it can serve, and a way to the emulator."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
from local.front_door.websocket_door import IDLE_S
from local.place import REPOSITORY
from local.sam_local.__main__ import ROUTES, Connection, invocation_template
from local.sam_local.seed import PING_S, _plain, listen
from tests.template.cloudformation import parameter, source

BUILT: dict[str, dict[str, Any]] = {
    "PushhubLayer": {"Type": "AWS::Serverless::LayerVersion", "Properties": {"ContentUri": "PushhubLayer"}},
    "WakeFunction": {
        "Type": "AWS::Serverless::Function",
        "Properties": {
            "CodeUri": "WakeFunction",
            "Timeout": 55,
            "Environment": {"Variables": {"RETRY_QUEUE_URL": {"Ref": "RetryQueue"}}},
        },
    },
    "IngestFunction": {"Type": "AWS::Serverless::Function", "Properties": {"CodeUri": "IngestFunction", "Timeout": 29}},
    "WakeLogs": {"Type": "AWS::Logs::LogGroup", "Properties": {}},
    "WebSocketApi": {"Type": "AWS::ApiGatewayV2::Api", "Properties": {"ProtocolType": "WEBSOCKET"}},
}


def resources_made() -> dict[str, Any]:
    settings = {
        "WakeFunction": {"RETRY_QUEUE_URL": "http://127.0.0.1:4577/0/q", "LOG_LEVEL": "INFO"},
        "IngestFunction": {},
    }
    written = invocation_template(
        BUILT, settings, endpoint_url="http://172.17.0.1:4577", emulator_url="http://127.0.0.1:4577"
    )
    resources: dict[str, Any] = written["Resources"]
    return resources


def test_functions_get_the_deployed_settings_with_the_emulators_address_as_containers_see_it() -> None:
    # Given what sam build writes, when it is prepared
    wake = resources_made()["WakeFunction"]["Properties"]
    # Then
    assert wake["CodeUri"] == str(REPOSITORY / ".aws-sam" / "build" / "WakeFunction")
    assert wake["Timeout"] == 55
    assert wake["Runtime"] == parameter("Runtime")["Default"]
    assert wake["Environment"]["Variables"] == {
        "RETRY_QUEUE_URL": "http://172.17.0.1:4577/0/q",
        "LOG_LEVEL": "INFO",
        "AWS_ENDPOINT_URL": "http://172.17.0.1:4577",
    }


def test_start_api_is_given_what_it_can_serve_and_nothing_it_stumbles_over() -> None:
    # Given a template with a WebSocket API, when it is prepared
    resources = resources_made()
    # Then only functions and the layer are left, and ingest has its routes
    assert sorted(resources) == ["IngestFunction", "PushhubLayer", "WakeFunction"]
    events = resources["IngestFunction"]["Properties"]["Events"].values()
    assert [(each["Properties"]["Method"], each["Properties"]["Path"]) for each in events] == list(
        ROUTES["IngestFunction"]
    )
    assert resources["WakeFunction"]["Properties"]["Events"] == {}


def test_the_whole_template_can_be_prepared() -> None:
    # Given every resource of the template, some of which have no properties
    built = source()["Resources"]
    functions = {name for name, each in built.items() if each["Type"] == "AWS::Serverless::Function"}
    # When it is prepared
    settings: dict[str, dict[str, str]] = {name: {} for name in functions}
    written = invocation_template(
        built, settings, endpoint_url="http://172.17.0.1:1", emulator_url="http://127.0.0.1:1"
    )
    # Then it has every function, and the layers
    assert written["Resources"].keys() == functions | {"PushhubLayer", "ScriptingLayer"}
    layers = written["Resources"]["TransformFunction"]["Properties"]["Layers"]
    assert layers == [{"Ref": "PushhubLayer"}, {"Ref": "ScriptingLayer"}]


def test_records_of_a_stream_look_as_a_function_is_given_them() -> None:
    image = {"body": {"B": b"\x00\xff"}, "ids": {"L": [{"B": b"a"}]}, "n": {"N": "1"}}
    assert _plain(image) == {"body": {"B": "AP8="}, "ids": {"L": [{"B": "YQ=="}]}, "n": {"N": "1"}}


def test_a_container_reaches_the_emulator_and_gets_its_answer() -> None:
    async def upper(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def talk() -> bytes:
        # Given an emulator and the way to it
        async with await asyncio.start_server(upper, "127.0.0.1", 0) as emulator:
            port = emulator.sockets[0].getsockname()[1]
            async with await asyncio.start_server(Connection("127.0.0.1", port), "127.0.0.1", 0) as way:
                # When a container talks, and ends what it says
                reader, writer = await asyncio.open_connection(*way.sockets[0].getsockname())
                writer.write(b"hello " * 50_000)
                writer.write_eof()
                answer = await reader.read()
                writer.close()
                await writer.wait_closed()
                return answer

    # Then
    assert asyncio.run(asyncio.wait_for(talk(), 90)) == b"HELLO " * 50_000


def test_a_container_is_hung_up_on_when_the_emulator_is_gone() -> None:
    async def talk() -> bytes:
        gone = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        port = gone.sockets[0].getsockname()[1]
        gone.close()
        await gone.wait_closed()
        async with await asyncio.start_server(Connection("127.0.0.1", port), "127.0.0.1", 0) as way:
            reader, writer = await asyncio.open_connection(*way.sockets[0].getsockname())
            answer = await reader.read()
            writer.close()
            return answer

    assert asyncio.run(asyncio.wait_for(talk(), 90)) == b""


def test_the_consumer_pings_while_it_listens() -> None:
    # Given a server that counts pings, and hangs up after three
    pings: list[bytes] = []

    async def serve(request: web.Request) -> web.WebSocketResponse:
        served = web.WebSocketResponse(autoping=False)
        await served.prepare(request)
        async for message in served:
            pings.append(message.data)
            if len(pings) == 3:
                await served.close()
        return served

    async def run() -> None:
        app = web.Application()
        app.router.add_get("/", serve)
        async with TestServer(app) as server, ClientSession() as session:
            consumer = await session.ws_connect(server.make_url("/"))
            # When a consumer listens that is sent nothing, then it is heard nevertheless
            await asyncio.wait_for(listen(consumer, lambda _: None, ping_s=0.01), 90)

    asyncio.run(run())
    assert len(pings) == 3
    assert 2 * PING_S < IDLE_S
