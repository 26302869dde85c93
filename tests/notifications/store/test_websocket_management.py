"""API Gateway's management API, as far as it can be tested without one: which calls are made and what their answers
mean.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from tests.cloud.aws_services import client_error
from tests.fakes import FakeClock

from pushhub.base.errors import Unavailable
from pushhub.notifications.store.websocket_management import ApiGatewaySockets


class Management:
    """Answers as set by the test; records its calls."""

    def __init__(self, answer: Any = None) -> None:
        self._answer = answer
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, operation: str) -> Any:
        def call(**parameters: Any) -> Any:
            self.calls.append((operation, parameters))
            if isinstance(self._answer, Exception):
                raise self._answer
            return self._answer or {}

        return call


CLOCK = FakeClock()
GONE = client_error("GoneException")
BROKEN = [
    client_error("LimitExceededException"),
    client_error("InternalServerError"),
    client_error("ForbiddenException"),
    EndpointConnectionError(endpoint_url="http://127.0.0.1"),
]


def test_a_frame_is_sent_as_utf_8() -> None:
    management = Management()
    assert ApiGatewaySockets(management, CLOCK).send("c1=", "ä\n")
    assert management.calls == [("post_to_connection", {"ConnectionId": "c1=", "Data": b"\xc3\xa4\n"})]


def test_the_time_of_the_last_traffic_is_told_in_milliseconds() -> None:
    at = datetime(2026, 11, 21, 5, 0, 0, 500_000, UTC)
    assert ApiGatewaySockets(Management({"LastActiveAt": at}), CLOCK).active_at("c1=") == round(at.timestamp() * 1000)


def test_an_answer_without_a_time_counts_as_heard_of_now() -> None:
    assert ApiGatewaySockets(Management({"Identity": {}}), CLOCK).active_at("c1=") == CLOCK.now()


def test_a_connection_that_is_gone_is_no_error() -> None:
    sockets = ApiGatewaySockets(Management(GONE), CLOCK)
    assert not sockets.send("c1=", "x")
    assert sockets.active_at("c1=") is None
    sockets.close("c1=")


@pytest.mark.parametrize("error", BROKEN, ids=repr)
def test_everything_else_is_unavailable(error: Exception) -> None:
    sockets = ApiGatewaySockets(Management(error), CLOCK)
    with pytest.raises(Unavailable):
        sockets.send("c1=", "x")
    with pytest.raises(Unavailable):
        sockets.close("c1=")
    with pytest.raises(Unavailable):
        sockets.active_at("c1=")
