"""What ``sam local invoke`` is given: plain settings, the stack's own names, and a way to the emulator."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from local.place import REPOSITORY
from local.sam_local import Connection, invocation_template, with_names_of
from local.stack import Description

DESCRIPTION = Description(
    base_url="http://127.0.0.1:8377",
    project_id="0123456789abcdef01234567",
    token="a-token",
    aws_endpoint_url="http://127.0.0.1:4577",
    region="us-east-1",
    outputs={
        "PushQueueUrl": "http://127.0.0.1:4577/000000000000/pushhub-PushQueue-F48476A7972A3",
        "RetryQueueUrl": "http://127.0.0.1:4577/000000000000/pushhub-RetryQueue-74FA159CA8555",
        "MessagesTableName": "pushhub-MessagesTable-7FECB08A2B71B",
        "BaseUrl": "http://127.0.0.1:8377",
    },
)


def example(name: str) -> Any:
    return json.loads(with_names_of(DESCRIPTION, (REPOSITORY / "events" / name).read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("event", "arn_end"),
    [
        ("push-sqs-first-attempts.json", ":pushhub-PushQueue-F48476A7972A3"),
        ("push-sqs-retries.json", ":pushhub-RetryQueue-74FA159CA8555"),
        ("records-stream-messages.json", ":table/pushhub-MessagesTable-7FECB08A2B71B/stream/2026-11-21T05:00:00.000"),
    ],
)
def test_events_name_the_resources_of_the_running_stack(event: str, arn_end: str) -> None:
    for record in example(event)["Records"]:
        assert record["eventSourceARN"].endswith(arn_end)


def test_requests_carry_the_project_and_token_of_the_running_stack() -> None:
    request = example("control-http-list-queues.json")
    assert request["rawPath"] == "/3/projects/0123456789abcdef01234567/queues"
    assert request["headers"]["authorization"] == "OAuth a-token"


def test_names_the_stack_does_not_tell_stay_as_they_are() -> None:
    assert with_names_of(DESCRIPTION, "pushhub-OtherQueue-Yb3kQ9tRw1Lz") == "pushhub-OtherQueue-Yb3kQ9tRw1Lz"


def test_functions_get_the_deployed_settings_and_the_emulators_address() -> None:
    # Given what sam build writes
    built = {
        "PushhubLayer": {"Type": "AWS::Serverless::LayerVersion", "Properties": {"ContentUri": "PushhubLayer"}},
        "WakeFunction": {
            "Type": "AWS::Serverless::Function",
            "Properties": {
                "CodeUri": "WakeFunction",
                "Timeout": 55,
                "Environment": {"Variables": {"RETRY_QUEUE_URL": {"Ref": "RetryQueue"}}},
            },
        },
        "WakeLogs": {"Type": "AWS::Logs::LogGroup", "Properties": {}},
    }
    # When
    made = invocation_template(
        built, {"WakeFunction": {"RETRY_QUEUE_URL": "http://q"}}, endpoint_url="http://172.17.0.1:4577"
    )["Resources"]
    # Then
    assert sorted(made) == ["PushhubLayer", "WakeFunction"]
    wake = made["WakeFunction"]["Properties"]
    assert wake["CodeUri"] == str(REPOSITORY / ".aws-sam" / "build" / "WakeFunction")
    assert wake["Timeout"] == 55
    assert wake["Environment"]["Variables"] == {
        "RETRY_QUEUE_URL": "http://q",
        "AWS_ENDPOINT_URL": "http://172.17.0.1:4577",
    }


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
    assert asyncio.run(asyncio.wait_for(talk(), 10)) == b"HELLO " * 50_000


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

    assert asyncio.run(asyncio.wait_for(talk(), 10)) == b""
