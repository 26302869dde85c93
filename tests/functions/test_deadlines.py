"""Requests whose time is over, as Lambda runs them: nothing is half done, or repeating it does no harm."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.cloud import aws_services as aws
from tests.functions.conftest import Context, Functions, as_json, gateway_event
from tests.functions.test_engine import PROJECT
from tests.functions.test_hub import a_store

from pushhub.base.errors import Overdue
from pushhub.cloud.deadline import Deadline

ENOUGH = 60
"""More calls than any of these requests makes."""


def request(token: str, method: str, path: str, body: Any = None, *, age_s: float = 0) -> dict[str, Any]:
    """An HTTP API event, that old."""
    event = gateway_event(method, f"/3/projects/{PROJECT}/queues{path}", body, authorization=f"OAuth {token}")
    event["requestContext"]["timeEpoch"] = round((time.time() - age_s) * 1000)
    return event


def sent(
    functions: Functions, name: str, event: dict[str, Any], *, remaining_ms: int = 29_000
) -> tuple[int, dict[str, str], Any]:
    answer = as_json(functions.invoke(name, event, Context(remaining_ms=remaining_ms)))
    return answer["statusCode"], answer["headers"], json.loads(answer["body"])


@contextmanager
def over_after(calls: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The time of requests is over after some calls of services; yields what is left of those."""
    left = [calls]

    def read_s(_: Deadline) -> float | None:
        if not left[0]:
            raise Overdue("any call")
        left[0] -= 1
        return None

    with monkeypatch.context() as patch:
        patch.setattr(Deadline, "read_s", read_s)
        yield left


def messages(functions: Functions, table: str) -> int:
    """Messages that are stored, if their place in the queue is."""
    items = functions.dynamodb.scan(TableName=table)["Items"]
    entries = [each for each in items if each["pk"]["S"].endswith("#~0") and each["sk"]["S"][0] != "!"]
    return (
        len(entries) if table == aws.PULL_TABLE else sum(each.get("kind", {}).get("S") == "message" for each in items)
    )


@pytest.mark.parametrize(("remaining_ms", "age_s"), [(3_000, 0), (29_000, 26), (29_000, 40)])
def test_a_request_that_comes_too_late_is_shed_before_anything_is_done(
    functions: Functions, remaining_ms: int, age_s: float
) -> None:
    # Given a request that has waited for a process, for longer than there is time, or for nearly as long
    token = a_store()
    body = {"messages": [{"body": "x"}]}
    # When it is answered, by either function
    for name in ("ingest", "control"):
        status, headers, answer = sent(
            functions, name, request(token, "POST", "/q/messages", body, age_s=age_s), remaining_ms=remaining_ms
        )
        # Then it is to be repeated
        assert (status, headers["Retry-After"]) == (503, "5")
        assert answer["msg"].startswith("The hub is busy")
    # And nothing was stored, and the next request has its own time
    assert messages(functions, aws.PULL_TABLE) == 0
    assert sent(functions, "ingest", request(token, "POST", "/q/messages", body))[0] == 201


@pytest.mark.parametrize("age_s", [-5, 3_600])
def test_times_that_make_no_sense_are_not_believed(functions: Functions, age_s: float) -> None:
    token = a_store()
    event = request(token, "POST", "/q/messages", {"messages": [{"body": "x"}]}, age_s=age_s)
    assert sent(functions, "ingest", event)[0] == 201


@pytest.mark.parametrize("kind", ["push", "pull"])
def test_a_post_whose_time_ends_at_any_call_is_not_stored_or_was_accepted(
    functions: Functions, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    # Given a queue
    token = a_store()
    subscribers = [{"name": "a", "url": "http://127.0.0.1:9/"}]
    settings = {"push": {"subscribers": subscribers}} if kind == "push" else {}
    assert sent(functions, "control", request(token, "PUT", "/q", {"queue": settings}))[0] == 200
    table = aws.MESSAGES_TABLE if kind == "push" else aws.PULL_TABLE
    accepted = 0
    # When a message is posted, and its time is over after each number of calls
    for calls in range(ENOUGH):
        with over_after(calls, monkeypatch) as left:
            status, _, answer = sent(
                functions, "ingest", request(token, "POST", "/q/messages", {"messages": [{"body": "x"}]})
            )
        # Then a 201 is a message in the queue, and a 503 is none, so repeating it is right
        assert status in (201, 503), answer
        accepted += status == 201
        assert messages(functions, table) == accepted
        if left[0]:
            break
    # Until there were more calls than needed
    assert accepted
    assert left[0]


def test_a_reservation_whose_time_ends_at_any_call_loses_nothing(
    functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given messages, of which consumers take two at a time for good
    token = a_store()
    many = {"messages": [{"body": str(number)} for number in range(40)]}
    assert sent(functions, "ingest", request(token, "POST", "/q/messages", many))[0] == 201
    handed_out: list[str] = []
    shed = 0
    # When their time is over after each number of calls
    for calls in range(ENOUGH):
        with over_after(calls, monkeypatch) as left:
            status, _, answer = sent(
                functions, "control", request(token, "POST", "/q/reservations", {"n": 2, "delete": True})
            )
        assert status in (200, 503), answer
        shed += status == 503
        handed_out += [each["id"] for each in answer.get("messages", ())]
        if left[0]:
            break
    assert left[0]
    assert shed
    # Then each message was handed out once at most, and those that were not are in the queue
    assert len(set(handed_out)) == len(handed_out)
    items = functions.dynamodb.scan(TableName=aws.PULL_TABLE)["Items"]
    stored = {each["pk"]["S"].rpartition("#")[2] for each in items if each["sk"]["S"] == "M"}
    assert len(stored | {*handed_out}) == 40
