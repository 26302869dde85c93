"""A hub that fails for a moment is asked again; one that refuses is not."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from aiohttp import web
from local.demonstration import hub as module
from local.demonstration.hub import PAUSES_S, Failed, Hub, again, check
from local.errors import LocalError
from local.place import HOST


class Attempts:
    """What the next attempts come to: an answer's status, or an error; then success."""

    def __init__(self, *outcomes: int | Exception) -> None:
        self.outcomes = list(outcomes)
        self.waited: list[float] = []
        self.repeated = 0

    async def attempt(self) -> str:
        outcome = self.outcomes.pop(0) if self.outcomes else 200
        if isinstance(outcome, Exception):
            raise outcome
        check(outcome, "GET /x", "why")
        return "done"

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)

    def repeat(self) -> None:
        self.repeated += 1

    def run(self) -> str:
        return asyncio.run(again("GET /x", self.attempt, sleep=self.sleep, repeated=self.repeat))


@pytest.mark.parametrize("fault", [500, 502, 503, aiohttp.ServerDisconnectedError(), TimeoutError()])
def test_a_failure_is_tried_again_after_growing_waits(fault: int | Exception) -> None:
    # Given a hub that fails a few times, when it is asked, then it is asked until it answers
    attempts = Attempts(fault, fault, fault)
    assert attempts.run() == "done"
    assert attempts.waited == list(PAUSES_S[:3])
    assert attempts.repeated == 3


@pytest.mark.parametrize("fault", [500, TimeoutError()])
def test_it_is_given_up_at_last(fault: int | Exception) -> None:
    # Given a hub that fails for good
    attempts = Attempts(*[fault] * 20)
    # When it is asked, then the end of it says what was asked
    with pytest.raises(Failed, match="GET /x"):
        attempts.run()
    assert attempts.waited == list(PAUSES_S)


@pytest.mark.parametrize("status", [400, 401, 404, 409, 422, 507])
def test_a_refusal_is_not_tried_again(status: int) -> None:
    attempts = Attempts(status)
    with pytest.raises(LocalError, match=f"answered {status} to GET /x: why"):
        attempts.run()
    assert attempts.waited == []


def test_the_demonstrations_client_gets_over_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a hub that fails with its first answer
    answers = [500]

    async def post(_: web.Request) -> web.Response:
        status = answers.pop() if answers else 201
        return web.json_response({"ids": ["1"]} if status == 201 else {"msg": "Internal server error"}, status=status)

    async def play() -> tuple[list[str], int]:
        app = web.Application()
        app.router.add_post("/3/projects/p/queues/q/messages", post)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, HOST, 0).start()
        try:
            async with Hub(f"http://{HOST}:{runner.addresses[0][1]}", "p", "t") as hub:
                return await hub.post("q", ["body"]), hub.repeated
        finally:
            await runner.cleanup()

    # When the demonstration posts, then it has its answer, and it is known that the message may be there twice
    monkeypatch.setattr(module, "PAUSES_S", (0.0,))
    assert asyncio.run(play()) == (["1"], 1)
