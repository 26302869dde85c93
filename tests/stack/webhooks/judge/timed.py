"""What takes hours and days, on a hub whose clock can be turned (tests/webhooks/served.py)."""

from __future__ import annotations

import json
import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from svix.models import AppPortalAccessIn, EndpointIn, EndpointSecretRotateIn, MessageIn, RecoverIn
from tests.stack.webhooks.judge.stage import Stage, options, refused, unprocessable

HOUR = 3_600
DAY = 24 * HOUR
WAITS = (5, 300, 1_800, 7_200, 18_000, 36_000, 36_000)
FAIL, SENDING = 2, 3


class Turned:
    """An application with one endpoint, on a clock that only this check turns."""

    def __init__(self, stage: Stage, *answers: tuple[int, dict[str, str], int, str], **fields: Any) -> None:
        self.stage = stage
        self.app = stage.app()
        self.url = f"https://receiver.example/{secrets.token_hex(4)}"
        self.answers(*answers)
        self.endpoint = stage.svix.endpoint.create(self.app.id, EndpointIn(url=self.url, **fields))

    def answers(self, *answers: tuple[int, dict[str, str], int, str]) -> None:
        """Say what the endpoint answers."""
        self.stage.tell("answers", url=self.url, answers=answers or [(200, {}, 0, "")])

    def turn(self, seconds: float) -> datetime:
        """Let time pass; what time it is then."""
        return datetime.fromtimestamp(self.stage.tell("turn", seconds=seconds), UTC)

    def sent(self) -> list[Any]:
        """What was sent."""
        found: list[Any] = self.stage.tell("sent", url=self.url)
        return found

    def post(self, **fields: Any) -> Any:
        """Post a message, and let it be sent."""
        posted = self.stage.svix.message.create(self.app.id, MessageIn(event_type="a", payload={"n": 1}, **fields))
        self.turn(0)
        return posted

    def signatures(self) -> int:
        """How many signatures a delivery carries now."""
        self.post()
        return len(self.sent()[-1]["headers"]["webhook-signature"].split(" "))

    def standing(self, message: Any) -> Any:
        """How it stands with a message."""
        listed = self.stage.svix.message_attempt.list_attempted_messages(self.app.id, self.endpoint.id).data
        (found,) = [each for each in listed if each.id == message.id]
        return found

    def disabled(self) -> bool:
        """Whether the endpoint is disabled."""
        return bool(self.stage.svix.endpoint.get(self.app.id, self.endpoint.id).disabled)


def failing(**headers: str) -> tuple[int, dict[str, str], int, str]:
    """An answer of 500."""
    return 500, headers, 0, ""


OK: tuple[int, dict[str, str], int, str] = (200, {}, 0, "")


def timed_19_an_old_key_signs_for_a_day_or_as_long_as_was_asked(stage: Stage) -> None:
    world = Turned(stage)
    rotate = stage.svix.endpoint.rotate_secret
    rotate(world.app.id, world.endpoint.id, EndpointSecretRotateIn())
    rotate(world.app.id, world.endpoint.id, EndpointSecretRotateIn(grace_period_seconds=HOUR))
    assert world.signatures() == 3
    world.turn(HOUR)
    assert world.signatures() == 2
    world.turn(23 * HOUR - 60)
    assert world.signatures() == 2
    world.turn(60)
    assert world.signatures() == 1


def timed_31_a_key_is_known_for_twelve_hours(stage: Stage) -> None:
    world = Turned(stage)
    of = options("MessageCreateOptions", idempotency_key=secrets.token_hex(8))

    def post() -> str:
        return str(stage.svix.message.create(world.app.id, MessageIn(event_type="a", payload={}), of).id)

    first = post()
    world.turn(12 * HOUR - 1)
    assert post() == first
    assert len(world.sent()) == 1


def timed_32_the_waits_are_those_of_svix(stage: Stage) -> None:
    world = Turned(stage, failing())
    message = world.post()
    waits = []
    for _ in WAITS:
        standing = world.standing(message)
        assert int(standing.status) == SENDING
        attempt = stage.svix.message_attempt.list_by_msg(world.app.id, message.id).data[0]
        waits.append((standing.next_attempt - attempt.timestamp).total_seconds())
        now = world.turn(0)
        world.turn((standing.next_attempt - now).total_seconds() + 61)
    for wait, wanted in zip(waits, WAITS, strict=True):
        assert 0.79 * wanted <= wait <= 1.21 * wanted, (waits, WAITS)
    world.turn(2 * DAY)
    standing = world.standing(message)
    assert (int(standing.status), standing.next_attempt) == (FAIL, None)
    attempts = stage.svix.message_attempt.list_by_msg(world.app.id, message.id).data
    assert len(attempts) == len(world.sent()) == 8


def timed_33_an_attempt_that_timed_out_waits_a_minute_at_least(stage: Stage) -> None:
    world = Turned(stage, (0, {}, 15_000, "timeout"))
    message = world.post()
    standing = world.standing(message)
    attempt = stage.svix.message_attempt.list_by_msg(world.app.id, message.id).data[0]
    assert attempt.response_status_code == 0
    assert (standing.next_attempt - message.timestamp).total_seconds() >= 48


def timed_33_retry_after_is_obeyed_up_to_the_life_of_the_message(stage: Stage) -> None:
    world = Turned(stage, failing(**{"retry-after": str(DAY)}))
    message = world.post()
    wait = (world.standing(message).next_attempt - message.timestamp).total_seconds()
    assert DAY <= wait <= DAY + 120
    world.turn(DAY - 120)
    assert len(world.sent()) == 1
    world.turn(300)
    assert len(world.sent()) == 2


def timed_38_what_failed_for_good_is_recovered(stage: Stage) -> None:
    world = Turned(stage, failing())
    message = world.post()
    began = world.turn(0) - timedelta(minutes=1)
    world.turn(3 * DAY)
    assert int(world.standing(message).status) == FAIL
    world.answers(OK)
    stage.svix.endpoint.recover(world.app.id, world.endpoint.id, RecoverIn(since=began))
    world.turn(120)
    assert int(world.standing(message).status) == 0
    assert len(world.sent()) == 9
    early = began - timedelta(days=15)
    unprocessable(stage.svix.endpoint.recover, world.app.id, world.endpoint.id, RecoverIn(since=early))


def timed_43_a_portal_token_expires(stage: Stage) -> None:
    world = Turned(stage)
    access = stage.svix.authentication.app_portal_access(world.app.id, AppPortalAccessIn(expiry=HOUR))
    portal = stage.client(access.token)
    world.turn(HOUR - 1)
    portal.application.get(world.app.id)
    world.turn(1)
    refused(401, portal.application.get, world.app.id)


def timed_44_a_message_that_keeps_failing_is_told_of(stage: Stage) -> None:
    url = f"https://operations.example/{secrets.token_hex(4)}"
    created = stage.raw("POST", "/operational-webhook/endpoint", {"url": url}).json
    world = Turned(stage, *[failing()] * 4, OK)
    message = world.post()
    kinds = []
    for wait in (0, 10, 400, 2_300, 9_000):
        world.turn(wait)
        answer = [json.loads(each["body"]) for each in stage.tell("sent", url=url)]
        kinds.append([each["type"] for each in answer if each["data"].get("msgId") == message.id])
    failing_, recovered = "message.attempt.failing", "message.attempt.recovered"
    assert kinds == [[], [], [], [failing_], [failing_, recovered]]
    assert answer[-1]["data"]["lastAttempt"]["responseStatusCode"] == 200
    assert stage.raw("DELETE", f"/operational-webhook/endpoint/{created['id']}").status == 204


def timed_45_an_endpoint_that_only_fails_for_five_days_is_disabled(stage: Stage) -> None:
    world, other = Turned(stage, failing()), Turned(stage, failing())
    for day in range(9):
        world.post()
        other.answers(OK if day == 4 else failing())
        other.post()
        for _ in range(8):
            world.turn(3 * HOUR)
        if day < 5:
            assert not world.disabled()
    assert world.disabled()
    assert not other.disabled(), "it succeeded once in between"
