"""Attempts: made, retried, told, and made again by hand."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta

from svix.models import RecoverIn
from tests.stack.webhooks.judge.receiver import Answer
from tests.stack.webhooks.judge.stage import Stage, options, refused, unprocessable, until

SUCCESS, FAIL, SENDING = 0, 2, 3
SCHEDULED, MANUAL = 0, 1


def check_32_a_failed_attempt_is_made_again_after_five_seconds(stage: Stage) -> None:
    app = stage.app()
    endpoint, inbox = stage.endpoint(app, Answer(status=500))
    message = stage.post(app)
    inbox.one()
    inbox.of(message.id, 2)
    second, first, *_ = stage.attempts(app, message, 2)
    # That it is no more than a fifth later: tests/webhooks/messages, where the clock can be turned.
    assert (second.timestamp - first.timestamp).total_seconds() >= 3.9

    def later() -> float | None:
        shown = stage.attempted(app, endpoint, message, SENDING).next_attempt
        second = stage.attempts(app, message)[0]
        found = (shown - second.timestamp).total_seconds()
        return found if found > 30 else None

    assert 239 <= until(later, "the second wait") <= 361, "five minutes, a fifth more or less"


def check_34_only_2xx_is_success(stage: Stage) -> None:
    app = stage.app()
    elsewhere = stage.receiver.inbox()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{unused.getsockname()[1]}/"
        wanted = {
            stage.endpoint(app, Answer(status=204))[0].id: (SUCCESS, 204),
            stage.endpoint(app, Answer(status=299))[0].id: (SUCCESS, 299),
            stage.endpoint(app, Answer(status=308, headers={"Location": elsewhere.url}))[0].id: (FAIL, 308),
            stage.endpoint(app, Answer(status=404, body=b"not here"))[0].id: (FAIL, 404),
            stage.endpoint(app, url=nobody)[0].id: (FAIL, 0),
        }
        message = stage.post(app)
        attempts = {each.endpoint_id: each for each in reversed(stage.attempts(app, message, len(wanted)))}
    found = {key: (int(each.status), each.response_status_code) for key, each in attempts.items()}
    assert found == wanted
    assert not elsewhere.came
    for each in attempts.values():
        assert each.trigger_type == SCHEDULED
        assert each.response_duration_ms >= 0
        assert each.msg_id == message.id
        assert each.url.startswith("http://127.0.0.1:")
    read = [stage.svix.message_attempt.get(app.id, message.id, each.id) for each in attempts.values()]
    responses = {each.response_status_code: each.response for each in read}
    assert responses[404] == "not here"
    assert responses[0], "an error's text"


def check_35_attempts_are_listed_with_filters(stage: Stage) -> None:
    app, one, two = stage.app(), stage.event_type(), stage.event_type()
    good, _ = stage.endpoint(app, Answer(body=b"thank you"))
    bad, _ = stage.endpoint(app, Answer(status=404, body=b"\xff\xfe"), channels=["red"])
    first = stage.post(app, one)
    stage.attempts(app, first, 1)
    second = stage.post(app, two, channels=["red"])
    newest = stage.attempts(app, second, 2)
    by_endpoint = stage.svix.message_attempt.list_by_endpoint
    by_message = stage.svix.message_attempt.list_by_msg

    def listed(endpoint: object, **fields: object) -> list[str]:
        found = by_endpoint(app.id, endpoint.id, options("MessageAttemptListByEndpointOptions", **fields))  # type: ignore[attr-defined]
        return [each.msg_id for each in found.data]

    assert listed(good) == [second.id, first.id], "newest first"
    assert listed(good, limit=1) == [second.id]
    assert listed(good, status=FAIL) == []
    assert listed(good, status=SUCCESS) == [second.id, first.id]
    assert second.id in listed(bad, status=FAIL)
    assert second.id in listed(bad, status_code_class=400)
    assert listed(bad, status_code_class=200) == []
    assert listed(good, event_types=[one]) == [first.id]
    assert listed(good, event_types=[one, two]) == [second.id, first.id]
    assert listed(good, channel="red") == [second.id]
    assert listed(good, before=first.timestamp - timedelta(seconds=1)) == []
    assert listed(good, after=first.timestamp - timedelta(seconds=1)) == [second.id, first.id]
    for query in (f"event_types[]={one}", f"event_types[0]={one}", f"event_types={one}"):
        found = stage.raw("GET", f"/app/{app.id}/attempt/endpoint/{good.id}?{query}").json["data"]
        assert [each["msgId"] for each in found] == [first.id], query
    only = by_message(app.id, second.id, options("MessageAttemptListByMsgOptions", endpoint_id=good.id)).data
    assert [each.endpoint_id for each in only] == [good.id]
    unknown = options("MessageAttemptListByMsgOptions", endpoint_id="ep_000000000000000000000000000")
    refused(404, by_message, app.id, second.id, unknown)
    assert {each.endpoint_id for each in newest} == {good.id, bad.id}
    # What an endpoint answered is shown, and can be expunged.
    with_content = options("MessageAttemptListByMsgOptions", with_content=True, endpoint_id=good.id)
    (attempt,) = by_message(app.id, second.id, with_content).data
    assert attempt.response == "thank you"
    read = stage.svix.message_attempt.get(app.id, second.id, attempt.id)
    assert (read.id, read.response, read.response_status_code) == (attempt.id, "thank you", 200)
    stage.svix.message_attempt.expunge_content(app.id, second.id, attempt.id)
    assert stage.svix.message_attempt.get(app.id, second.id, attempt.id).response == "EXPUNGED"
    path = f"/app/{app.id}/attempt/msg/{second.id}"
    assert all(each["response"] == "{}" for each in stage.raw("GET", f"{path}?with_content=false").json["data"])
    assert stage.raw("GET", f"{path}?status=9").status == 400
    refused(404, stage.svix.message_attempt.get, app.id, second.id, "atmpt_000000000000000000000000000")


def check_37_a_resend_is_one_manual_attempt(stage: Stage) -> None:
    app, name = stage.app(), stage.event_type()
    resend = stage.svix.message_attempt.resend
    # It ignores filters, and needs no failure
    endpoint, inbox = stage.endpoint(app, types=[name])
    message = stage.post(app, "another.type")
    resend(app.id, message.id, endpoint.id)
    inbox.of(message.id)
    (attempt,) = stage.attempts(app, message)
    assert (int(attempt.status), int(attempt.trigger_type)) == (SUCCESS, MANUAL)
    answer = stage.raw("POST", f"/app/{app.id}/msg/{message.id}/endpoint/{endpoint.id}/resend")
    assert answer.status == 202
    assert isinstance(answer.json, dict)
    inbox.of(message.id, 2)
    # A failed one does not end what is planned; a successful one does.
    failing, failing_inbox = stage.endpoint(app, *(Answer(status=500, headers={"Retry-After": "60"}),) * 2, Answer())
    message = stage.post(app)
    failing_inbox.of(message.id)
    stage.attempted(app, failing, message, SENDING)
    resend(app.id, message.id, failing.id)
    failing_inbox.of(message.id, 2)
    stage.attempts(app, message, 2)
    stage.attempted(app, failing, message, SENDING)
    resend(app.id, message.id, failing.id)
    failing_inbox.of(message.id, 3)
    done = stage.attempted(app, failing, message, SUCCESS)
    assert done.next_attempt is None
    of = options("MessageAttemptListByMsgOptions", endpoint_id=failing.id)
    kinds = [int(each.trigger_type) for each in stage.svix.message_attempt.list_by_msg(app.id, message.id, of).data]
    assert kinds == [MANUAL, MANUAL, SCHEDULED]
    disabled, silent = stage.endpoint(app, disabled=True)
    answer = stage.raw("POST", f"/app/{app.id}/msg/{message.id}/endpoint/{disabled.id}/resend")
    assert answer.status in (202, 400), answer.content
    assert not silent.came


def check_38_recover_resends_what_failed_once_each(stage: Stage) -> None:
    app = stage.app()
    # 410 is final, so that nothing else is planned
    fails = Answer(status=500, headers={"webhook-delivery": "abort-message"})
    endpoint, inbox = stage.endpoint(app, Answer(), fails, fails, Answer())
    began = datetime.now(UTC) - timedelta(minutes=1)
    messages = []
    for number in range(3):
        messages.append(stage.post(app, payload={"n": number}))
        inbox.of(messages[-1].id)
    for message, status in zip(messages, (SUCCESS, FAIL, FAIL), strict=True):
        stage.attempted(app, endpoint, message, status)
    task = stage.svix.endpoint.recover(app.id, endpoint.id, RecoverIn(since=began))
    assert task.id.startswith("qtask_")
    assert str(getattr(task.task, "value", task.task)) == "endpoint.recover"
    for message, count in zip(messages, (1, 2, 2), strict=True):
        inbox.of(message.id, count)
    for message in messages[1:]:
        stage.attempted(app, endpoint, message, SUCCESS)
        assert [int(each.trigger_type) for each in stage.attempts(app, message, 2)] == [MANUAL, SCHEDULED]
    assert len(inbox.came) == 5
    long_ago = datetime.now(UTC) - timedelta(days=15)
    (reason,) = unprocessable(stage.svix.endpoint.recover, app.id, endpoint.id, RecoverIn(since=long_ago))
    assert list(reason.loc) == ["body", "since"]
