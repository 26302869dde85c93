"""Calls of backlogs wait for each other, and for nobody else's patience."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from local.emulator.calls import TOKEN, let_calls_of_backlogs_give_way

WRITE, SEND, POLL = "DynamoDB_20120810.PutItem", "AmazonSQS.SendMessageBatch", "AmazonSQS.ReceiveMessage"


class Emulator:
    """Answers a call when it is told to, and notes which it has begun."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.answers: dict[str, asyncio.Event] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.begun.append(scope["path"])
        await self.answers.setdefault(scope["path"], asyncio.Event()).wait()

    async def answer(self, path: str) -> None:
        self.answers[path].set()
        await settle()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def call(path: str, operation: str | None = None, token: str = "") -> dict[str, Any]:
    headers = [(b"x-amz-target", operation.encode())] if operation else []
    return {"type": "http", "path": path, "headers": [*headers, (b"x-amz-security-token", token.encode())]}


async def begin(*calls: dict[str, Any]) -> tuple[Emulator, list[asyncio.Task[None]]]:
    emulator = Emulator()
    app = let_calls_of_backlogs_give_way(emulator)
    tasks = [asyncio.create_task(app(each, None, None)) for each in calls]
    await settle()
    return emulator, tasks


async def end(emulator: Emulator, tasks: list[asyncio.Task[None]]) -> None:
    while not all(each.done() for each in tasks):
        for path in list(emulator.answers):
            await emulator.answer(path)


@pytest.mark.parametrize("operation", [WRITE, SEND])
def test_calls_of_backlogs_begin_one_after_the_other_and_others_at_once(operation: str) -> None:
    async def run() -> list[str]:
        # Given calls of a backlog, and then one of somebody else
        calls = [call(f"backlog {number}", operation, TOKEN) for number in range(3)]
        emulator, tasks = await begin(*calls, call("other", operation))
        begun = list(emulator.begun)
        # When the first is answered, then the next begins
        await emulator.answer("backlog 0")
        assert emulator.begun == [*begun, "backlog 1"]
        await end(emulator, tasks)
        return begun

    # Then only the first of the backlog has begun when the other one's has
    assert asyncio.run(run()) == ["backlog 0", "other"]


def test_nobody_waits_for_who_waits_for_a_message() -> None:
    async def run() -> list[str]:
        emulator, tasks = await begin(
            call("poll", POLL, TOKEN),
            call("first", WRITE, TOKEN),
            call("object", None, TOKEN),
            call("late", POLL, TOKEN),
        )
        begun = list(emulator.begun)
        await end(emulator, tasks)
        return begun

    assert asyncio.run(run()) == ["poll", "first", "object", "late"]


def test_a_call_that_is_broken_off_lets_the_next_one_begin() -> None:
    async def run() -> list[str]:
        emulator, tasks = await begin(call("first", WRITE, TOKEN), call("second", WRITE, TOKEN))
        tasks[0].cancel()
        await settle()
        begun = list(emulator.begun)
        await end(emulator, tasks)
        return begun

    assert asyncio.run(run()) == ["first", "second"]
