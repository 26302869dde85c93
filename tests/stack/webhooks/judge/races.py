"""Two at a time: what the protocol promises holds however requests and deliveries interleave."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from svix import Webhook
from svix.exceptions import HttpError
from svix.models import ApplicationIn, EndpointSecretRotateIn
from tests.stack.webhooks.judge.receiver import Answer
from tests.stack.webhooks.judge.stage import Stage, until


def check_04_one_of_five_gets_the_uid(stage: Stage) -> None:
    uid = f"race-{time.time_ns()}"

    def create(_: int) -> int:
        try:
            stage.svix.application.create(ApplicationIn(name="race", uid=uid))
        except HttpError as error:
            return int(error.status_code)
        return 201

    with ThreadPoolExecutor(5) as executor:
        assert sorted(executor.map(create, range(5))) == [201, 409, 409, 409, 409]


def check_19_two_rotations_at_once_both_count(stage: Stage) -> None:
    app = stage.app()
    endpoint, inbox = stage.endpoint(app)
    first = stage.secret(app, endpoint)
    path = f"/app/{app.id}/endpoint/{endpoint.id}/secret/rotate"
    with ThreadPoolExecutor(2) as executor:
        answers = list(executor.map(lambda _: stage.raw("POST", path, {}), range(2)))
    keys = [each.json["key"] for each in answers]
    assert [each.status for each in answers] == [200, 200]
    assert len({first, *keys}) == 3
    assert stage.secret(app, endpoint) in keys
    delivery = inbox.of(stage.post(app).id)[0]
    assert len(delivery.signatures) == 3
    for key in (first, *keys):
        Webhook(key).verify(delivery.body, delivery.headers)
    # An old one ends with the next rotation that asks for it.
    last = EndpointSecretRotateIn(grace_period_seconds=0)
    stage.svix.endpoint.rotate_secret(app.id, endpoint.id, last)
    delivery = inbox.of(stage.post(app).id)[0]
    Webhook(stage.secret(app, endpoint)).verify(delivery.body, delivery.headers)


def check_37_a_resend_meets_an_automatic_retry(stage: Stage) -> None:
    app = stage.app()
    endpoint, inbox = stage.endpoint(app, Answer(status=500), Answer(status=500), Answer())
    message = stage.post(app)
    inbox.of(message.id)
    # The first automatic retry comes after four to six seconds; resends come before, at and after it.
    began = time.monotonic()
    resends = 0
    while time.monotonic() - began < 7:
        stage.svix.message_attempt.resend(app.id, message.id, endpoint.id)
        resends += 1
        time.sleep(1)
    stage.attempted(app, endpoint, message, 0)

    listed: list[str] = []

    def settled() -> bool | None:
        attempts = stage.svix.message_attempt.list_by_msg(app.id, message.id).data
        listed[:] = [f"{each.timestamp} {each.trigger_type} {each.response_status_code}" for each in attempts]
        return len(attempts) == len(inbox.came) >= 3 or None

    until(settled, lambda: f"as many attempts told as were made: {len(inbox.came)} made, {resends} asked for, {listed}")
    attempts = stage.svix.message_attempt.list_by_msg(app.id, message.id).data
    assert len({each.id for each in attempts}) == len(attempts)
    # A resend that is asked for while another has not begun is the same try, as happens on a slow machine.
    manual = sum(int(each.trigger_type) for each in attempts)
    reported = [
        (str(each.timestamp), int(each.trigger_type), int(each.status), each.response_status_code) for each in attempts
    ]
    assert 1 <= manual <= resends, f"{resends} asked for, {manual} of {reported}"
    assert 1 <= len(attempts) - manual <= 3, "no more than the planned ones"
    assert stage.attempted(app, endpoint, message, 0).next_attempt is None
