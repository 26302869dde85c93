"""A hub that fails for a moment is asked again; one that refuses is not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web
from local.demo import clients
from local.demo.clients import Client, serve
from local.errors import LocalError

PAUSES_S = (0.0, 0.0, 0.0)


def ask(monkeypatch: pytest.MonkeyPatch, *statuses: int, expected: tuple[int, ...] = ()) -> tuple[Any, int]:
    """The answer of a hub that answers with these statuses in turn, then with 200; and how often it was asked."""
    monkeypatch.setattr(clients, "PAUSES_S", PAUSES_S)
    asked: list[int] = []

    async def answer(_: web.Request) -> web.Response:
        asked.append(statuses[len(asked)] if len(asked) < len(statuses) else 200)
        return web.json_response({"msg": "why"}, status=asked[-1])

    async def play() -> Any:
        async with serve([web.get("/x", answer)]) as url, Client(url, {}) as client:
            return await client.call("GET", "/x?y=z", expected=expected)

    return asyncio.run(play()), len(asked)


@pytest.mark.parametrize("status", [500, 502, 503])
def test_a_failure_is_tried_again(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    # Given a hub that fails a few times, when it is asked, then it is asked until it answers
    assert ask(monkeypatch, *[status] * len(PAUSES_S)) == ({"msg": "why"}, len(PAUSES_S) + 1)


def test_it_is_given_up_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a hub that fails for good, when it is asked, then the end of it says what was asked
    with pytest.raises(LocalError, match="answered 500 to GET /x: "):
        ask(monkeypatch, *[500] * (len(PAUSES_S) + 1))


def test_a_hub_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given nothing that listens
    monkeypatch.setattr(clients, "PAUSES_S", PAUSES_S)

    async def play() -> None:
        async with serve([]) as url:
            pass
        async with Client(url, {}) as client:
            await client.call("GET", "/x")

    # When it is asked, then the error says so
    with pytest.raises(LocalError, match="did not answer GET /x: "):
        asyncio.run(play())


@pytest.mark.parametrize("status", [400, 401, 404, 409, 422, 507])
def test_a_refusal_is_not_tried_again(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    # Given a hub that refuses once, when it is asked, then the refusal is the end of it
    with pytest.raises(LocalError, match=f"answered {status} to GET /x: .*why"):
        ask(monkeypatch, status)


def test_a_refusal_that_is_expected_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a refusal that the caller knows, when it is asked, then the answer is its body
    assert ask(monkeypatch, 404, expected=(404,)) == ({"msg": "why"}, 1)
