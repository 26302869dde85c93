"""Operational events of a project: each is sent once, to the endpoints that listen, and not for every message of a
failing endpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.fakes import FakeClock
from tests.fakes.telemetry import FakeTelemetry
from tests.fakes.webhook_tasks import FakeOperationalCounts
from tests.fakes.webhooks import FakeWebhooksSettings

from pushhub.base.errors import Unavailable
from pushhub.base.ids import MessageIds
from pushhub.base.verdict import Verdict
from pushhub.engine.model.delivery import Attempt, Delivery, DeliveryState
from pushhub.engine.model.message import Message
from pushhub.engine.model.reach import Reach
from pushhub.webhooks.model.application import Application, ApplicationFields
from pushhub.webhooks.model.endpoint import Endpoint, EndpointFields
from pushhub.webhooks.model.ids import IdPrefix, message_id, new_id
from pushhub.webhooks.model.internal_queues import OPERATIONAL_APP, queue_of
from pushhub.webhooks.operational.operational import MOST_A_MINUTE, Operational

NOW = FakeClock().now()
IDS = MessageIds(1)


class World:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.applications = FakeWebhooksSettings()
        self.telemetry = FakeTelemetry()
        self.said: list[tuple[str, Mapping[str, Any], str]] = []
        self.fails = False
        self.operational = Operational(
            applications=self.applications,
            say=self._say,
            counts=FakeOperationalCounts(),
            clock=self.clock,
            telemetry=self.telemetry,
        )
        application = Application(
            project=PROJECT,
            app_id=new_id(IdPrefix.APPLICATION, NOW),
            fields=ApplicationFields(name="a", uid="acme"),
            created_at=NOW,
            updated_at=NOW,
        )
        self.app = self.applications.put_application(application, None)
        self.endpoint = Endpoint(
            project=PROJECT,
            app_id=self.app.app_id,
            endpoint_id=new_id(IdPrefix.ENDPOINT, NOW),
            fields=EndpointFields(url="https://a.example/", uid="crm"),
            reach=Reach.PROJECT,
            created_at=NOW,
            updated_at=NOW,
        )

    def _say(self, app: Application, event: str, payload: Mapping[str, Any], cause: str, at: int) -> None:
        if self.fails:
            raise Unavailable("the table")
        assert (app.app_id, payload["type"]) == (OPERATIONAL_APP, event)
        self.said.append((event, payload["data"], cause))

    def message(self, app_id: str = "") -> Message:
        return Message(
            project=PROJECT,
            queue=queue_of(app_id or self.app.app_id),
            queue_uid="u",
            message_id=IDS.next(NOW),
            body=b"{}",
            body_size=2,
            accepted_at=NOW,
            due_at=NOW,
            expires_at=NOW + 1_000,
        )

    def delivery(self, message: Message, state: DeliveryState, tries: int) -> Delivery:
        return Delivery(
            project=PROJECT,
            queue=message.queue,
            queue_uid="u",
            message_id=message.message_id,
            subscriber_id=self.endpoint.endpoint_id,
            targets=(self.endpoint.endpoint_id,),
            accepted_at=NOW,
            expires_at=NOW + 1_000,
            due_at=None,
            state=state,
            tries=tries,
            attempts=tries,
            version=tries,
            last=Attempt(
                number=tries,
                subscriber_id=self.endpoint.endpoint_id,
                verdict=Verdict.FAILED,
                status_code=500,
                error_class="",
                started_at=NOW,
                finished_at=NOW + 5,
                bytes_out=2,
                bytes_in=0,
                wait_before_ms=0,
                wait_after_ms=None,
            ),
        )


@pytest.fixture
def world() -> World:
    return World()


def test_nobody_is_told_before_somebody_listens(world: World) -> None:
    world.operational.endpoint("endpoint.created", world.endpoint)
    world.operational.seen(message := world.message(), world.delivery(message, DeliveryState.EXHAUSTED, 8))
    assert world.said == []
    # When an operational endpoint is created, then they are sent, and the application is created once
    first = world.operational.ensure(PROJECT)
    assert world.operational.ensure(PROJECT) == first
    world.operational.endpoint("endpoint.created", world.endpoint)
    assert [each[0] for each in world.said] == ["endpoint.created"]


def test_an_endpoint_is_told_of_with_its_ids(world: World) -> None:
    world.operational.ensure(PROJECT)
    world.operational.endpoint("endpoint.disabled", world.endpoint, trigger="automatic")
    ((event, data, cause),) = world.said
    ids = {"appId": world.app.app_id, "appUid": "acme"}
    assert event == "endpoint.disabled"
    assert data == {
        **ids,
        "endpointId": world.endpoint.endpoint_id,
        "endpointUid": "crm",
        "trigger": "automatic",
    }
    # And a repeated change has the same cause, another change another; operational endpoints cause no events
    world.operational.endpoint("endpoint.disabled", world.endpoint, trigger="automatic")
    world.operational.endpoint("endpoint.disabled", replace(world.endpoint, version=2))
    world.operational.endpoint("endpoint.created", replace(world.endpoint, app_id=OPERATIONAL_APP))
    assert [each[2] == cause for each in world.said] == [True, True, False]


def test_what_cannot_be_told_does_not_undo_the_change(world: World) -> None:
    world.operational.ensure(PROJECT)
    world.fails = True
    world.operational.endpoint("endpoint.created", world.endpoint)
    assert world.said == []


@pytest.mark.parametrize(
    ("state", "tries", "event"),
    [
        (DeliveryState.PENDING, 0, None),
        (DeliveryState.RETRYING, 3, None),
        (DeliveryState.RETRYING, 4, "message.attempt.failing"),
        (DeliveryState.RETRYING, 5, None),
        (DeliveryState.EXHAUSTED, 8, "message.attempt.exhausted"),
        (DeliveryState.EXHAUSTED, 1, "message.attempt.exhausted"),
        (DeliveryState.DELIVERED, 4, None),
        (DeliveryState.DELIVERED, 5, "message.attempt.recovered"),
    ],
)
def test_a_message_is_told_of_when_it_fails_and_recovers(
    world: World, state: DeliveryState, tries: int, event: str | None
) -> None:
    world.operational.ensure(PROJECT)
    message = world.message()
    world.operational.seen(message, world.delivery(message, state, tries))
    assert [each[0] for each in world.said] == ([event] if event else [])
    if event:
        data = world.said[0][1]
        assert (data["appUid"], data["msgId"]) == ("acme", message_id(message.message_id))
        assert data["endpointId"] == world.endpoint.endpoint_id
        assert data["lastAttempt"]["id"].startswith("atmpt_")
        assert data["lastAttempt"]["responseStatusCode"] == 500


def test_what_is_told_is_not_told_of(world: World) -> None:
    world.operational.ensure(PROJECT)
    message = world.message(OPERATIONAL_APP)
    world.operational.seen(message, world.delivery(message, DeliveryState.EXHAUSTED, 8))
    assert world.said == []


def test_a_thousand_failures_of_one_endpoint_are_no_storm(world: World) -> None:
    world.operational.ensure(PROJECT)
    for _ in range(1_000):
        message = world.message()
        world.operational.seen(message, world.delivery(message, DeliveryState.EXHAUSTED, 8))
    assert len(world.said) == MOST_A_MINUTE
    # When a minute has passed, then more are sent
    world.clock.advance(seconds=60)
    world.operational.seen(message := world.message(), world.delivery(message, DeliveryState.EXHAUSTED, 8))
    assert len(world.said) == MOST_A_MINUTE + 1


def test_a_message_that_cannot_be_told_of_is_told_of_later(world: World) -> None:
    world.operational.ensure(PROJECT)
    world.fails = True
    message = world.message()
    with pytest.raises(Unavailable):
        world.operational.seen(message, world.delivery(message, DeliveryState.EXHAUSTED, 8))
