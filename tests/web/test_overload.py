"""The answer to a request for which there was not enough time."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.ironmq.api.hub import Hub
from tests.web.described import violation
from tests.web.protocols import Served, served

from pushhub.base.errors import Conflict, Contended, Overdue, Unavailable
from pushhub.cloud.deadline import deadline
from pushhub.runtime.routes import all_routes
from pushhub.web.api import Function, Route

ONE_EACH = {each.name.partition(".")[0]: each for each in all_routes() if each.function is Function.INGEST}
SAYS = {
    "ironmq": ("msg", {}),
    "hub": ("error", {}),
    "notifications": ("message", {"error": "general/overloaded"}),
    "webhooks": ("detail", {"code": "overloaded"}),
}
"""The field with the text, and further fields that clients use."""


def failing(protocol: str, error: Exception) -> tuple[Served, Route[Any, Any]]:
    """An API whose store of tokens fails."""
    api = served(protocol)

    def fail(*_: object, **__: object) -> None:
        raise error

    for name in ("has_token", "project_of"):
        setattr(api.world.config, name, fail)
    return api, ONE_EACH[protocol]


@pytest.mark.parametrize(
    "error",
    [
        Overdue("dynamodb:GetItem"),
        Contended("changing a queue under contention"),
        Unavailable("dynamodb:PutItem", "ThrottlingException"),
        Unavailable("dynamodb:BatchWriteItem", "UnprocessedItems"),
    ],
    ids=["time is over", "others wrote first in every round", "asked too often", "some of it too often"],
)
@pytest.mark.parametrize("protocol", SAYS)
def test_what_will_pass_is_told_to_come_again_in_the_protocols_own_words(protocol: str, error: Exception) -> None:
    # Given a request whose time is over before a store could be called, or that others or a service never let through
    api, route = failing(protocol, error)
    # When it is answered
    answer = api.call(route)
    # Then as described: a 503 that says when to repeat it
    assert answer.status == 503
    assert violation(route.name, answer) is None
    assert 1 <= int(answer.headers["Retry-After"]) <= 30
    said, more = SAYS[protocol]
    assert "try again" in answer.body[said]
    assert more.items() <= answer.body.items()


@pytest.mark.parametrize("protocol", SAYS)
def test_a_lost_race_is_never_a_fault(protocol: str) -> None:
    api, route = failing(protocol, Conflict("somebody else wrote first"))
    assert api.call(route).status == (409 if protocol in {"hub", "webhooks"} else 503)


@pytest.mark.parametrize("protocol", SAYS)
def test_a_service_that_fails_is_a_fault_while_there_is_time_and_a_busy_hub_when_there_is_not(protocol: str) -> None:
    api, route = failing(protocol, Unavailable("dynamodb:GetItem", "ReadTimeoutError"))
    with deadline.within(28):
        assert api.call(route).status == 500
    with deadline.within(10):
        assert api.call(route).status == 503
    assert api.call(route).status == 500


def test_a_long_poll_whose_time_is_over_found_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a consumer that waits, and whose last look would come too late
    hub = Hub()
    hub.make("q")
    real = hub.world.pull.reserve
    began = hub.world.clock.now()

    def late(*arguments: Any, **named: Any) -> Any:
        if hub.world.clock.now() - began > 23_000:
            raise Overdue("dynamodb:Query")
        return real(*arguments, **named)

    monkeypatch.setattr(hub.world.pull, "reserve", late)
    # Then it is told so, and no error
    assert hub.reserve("q", wait=30) == []
    assert hub.world.clock.now() - began < 25_000


def test_a_reservation_that_was_never_tried_is_no_empty_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a queue with a message, and a request without time
    hub = Hub()
    hub.post("q", "x")

    def late(*_: object, **__: object) -> None:
        raise Overdue("dynamodb:Query")

    monkeypatch.setattr(hub.world.pull, "reserve", late)
    # Then the consumer, waiting or not, does not learn that there is nothing
    for wait in (b"0", b"30"):
        event = hub.event(
            "POST",
            f"/3/projects/{PROJECT}/queues/q/reservations",
            b'{"wait": ' + wait + b"}",
            {"Authorization": f"OAuth {hub.token}", "Content-Type": "application/json"},
        )
        assert hub.api.handle(event)["statusCode"] == 503
