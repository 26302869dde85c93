"""Each function's role allows what the function does in cases that come about seldom. All tests here run under the
roles (:class:`tests.functions.conftest.Functions`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.cloud import aws_services as aws
from tests.functions.conftest import RECORDS_BUCKET, Functions, Sink, turn_clock, whole
from tests.functions.test_engine import PROJECT, a_push_queue, post

from pushhub.base.times import iso_time
from pushhub.cloud.clock import SystemClock
from pushhub.cloud.inserts import Inserts
from pushhub.engine.model import concurrency
from pushhub.engine.model.circuit import Circuit, CircuitState
from pushhub.engine.model.flow import Limits
from pushhub.engine.model.message import NewMessage
from pushhub.engine.model.pulse import Pulse
from pushhub.engine.model.queue import Alert, QueueType
from pushhub.engine.store.aws_nights import GlueRuns
from pushhub.engine.store.s3_records import S3RecordStore
from pushhub.ironmq.model.project_alert import Format, Measure, ProjectAlert
from pushhub.ironmq.wiring import Ironmq

DAY_MS = 86_400_000
FULL = Alert(alert_id="aaaaaaaaaaaa", type="fixed", direction="asc", trigger=1, queue="told", snooze=0)
"""Fires when a queue has its first message."""


def test_sweep_is_allowed_to_look_at_a_night(functions: Functions, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a night at rest, a day after the last report, of whose pulses none is left but one
    monkeypatch.setenv("REPORT_JOB", "report")
    now = SystemClock().now() // 86_400_000 * 86_400_000 + 5_400_000
    monkeypatch.setattr(SystemClock, "now", lambda _: now)
    s3 = aws._client("s3")
    first, last = iso_time(now - 7 * 86_400_000), iso_time(now - 86_400_000)
    verdict = {"conserved": True, "owed": 0, "stream_records_quarantined": 0, "as_of": last.replace("Z", "+00:00")}
    for key, content in {
        "reports/latest.json": {"report": f"{first[:10]}_{last[:10]}", "verdict": verdict},
        "curated/open/2026-11-26.json": {"rows": 0},
    }.items():
        s3.put_object(Bucket=RECORDS_BUCKET, Key=key, Body=json.dumps(content).encode())
    S3RecordStore(s3, RECORDS_BUCKET).write([Pulse(table="messages", at=now)], table="messages", first="1", last="1")
    functions.forget()
    # When sweep decides about it
    monkeypatch.setattr(GlueRuns, "start", lambda _: True)
    functions.invoke("sweep", {})
    # Then it may do all that leads to that, and start that one job
    assert {"Scan", "ListObjectsV2", "GetObject", "PutObject"} <= {each.operation for each in functions.calls}
    actions = {right.action: right.resource for right in functions.roles["sweep"].policies.rights}
    assert actions["glue:StartJobRun"].endswith(":job/ReportJob")
    assert actions["events:PutEvents"].endswith(":event-bus/default")


def test_the_engine_is_allowed_to_protect_a_subscriber(functions: Functions, sink: Sink) -> None:
    # Given a failing subscriber with a circuit and limits
    queue = a_push_queue(sink.url, retries=3, retries_delay=3)
    assert queue.push is not None
    [plain] = queue.push.subscribers
    limited = replace(plain, limits=Limits(rate_per_s=100, concurrency=10))
    whole().engine.ports.config.update_queue(
        replace(queue, version=1, push=replace(queue.push, subscribers=(limited,), circuit=Circuit(failures=1)))
    )
    sink.status = 500
    post(b"x")
    run_and_check(functions, "dispatch", functions.stream_event())
    # When its circuit opens and an order joins its backlog, then push has the rights for that
    run_and_check(functions, "push", functions.sqs_event("PUSH_QUEUE_URL"))
    post(b"y")
    run_and_check(functions, "dispatch", functions.stream_event())
    run_and_check(functions, "push", functions.sqs_event("PUSH_QUEUE_URL"))
    [key] = whole().engine.ports.subscribers.looked_after()
    assert whole().engine.ports.subscribers.waiting(key, 9)
    # And when it is probed, ramps and closes, then wake has the rights for its part
    sink.status = 200
    subscribers = whole().engine.ports.subscribers
    states: list[CircuitState] = []
    # Which of two orders is the probe, and whether the other one waits again, depends on chance
    while CircuitState.CLOSED not in states and len(states) < 8:
        turn_clock(seconds=70)
        run_and_check(functions, "wake", {})
        event = functions.sqs_event("RETRY_QUEUE_URL")
        if event["Records"]:
            run_and_check(functions, "push", event)
        health = subscribers.health(key)
        states += [health.state] if health else []
    assert states[-1:] == [CircuitState.CLOSED], states
    assert subscribers.waiting(key, 9) == []


def test_the_engine_is_allowed_to_keep_an_order(functions: Functions, sink: Sink) -> None:
    # Given two messages of an ordering key, in one batch, to a subscriber that fails
    a_push_queue(sink.url, retries=1, retries_delay=3)
    sink.status = 500
    with functions.acting_as("ingest"):
        messages = [NewMessage(body=body, order_key="k") for body in (b"1", b"2")]
        whole().part(Ironmq).post.post(PROJECT, "orders", messages)
    run_and_check(functions, "dispatch", functions.stream_event())
    # When the second waits behind the first and is released, then push has the rights for that
    run_and_check(functions, "push", functions.sqs_event("PUSH_QUEUE_URL"))
    sink.status = 200
    turn_clock(seconds=4)
    # A run that takes long finds the order that it has released itself.
    while len(sink.received) < 3:
        come = functions.sqs.receive_message(QueueUrl=functions.queue_urls["RETRY_QUEUE_URL"], WaitTimeSeconds=20)
        functions.sqs.change_message_visibility(
            QueueUrl=functions.queue_urls["RETRY_QUEUE_URL"],
            ReceiptHandle=come["Messages"][0]["ReceiptHandle"],
            VisibilityTimeout=0,
        )
        run_and_check(functions, "push", functions.sqs_event("RETRY_QUEUE_URL"))
    assert [body for _, body in sink.received] == [b"1", b"1", b"2"]


def test_push_may_write_together_what_ends_at_the_same_time(
    functions: Functions, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given that another delivery's end is being written whenever one is to be, which else depends on chance
    put = Inserts.put

    def meanwhile(inserts: Inserts, item: Any, alone: Callable[[], None]) -> None:
        put(inserts, item, lambda: put(inserts, item, alone))

    monkeypatch.setattr(Inserts, "put", meanwhile)
    a_push_queue(sink.url)
    post(b"x")
    functions.invoke("dispatch", functions.stream_event())
    # When push delivers, then it has the right to write both in one call
    run_and_check(functions, "push", functions.sqs_event("PUSH_QUEUE_URL"))
    assert "BatchExecuteStatement" in {each.operation for each in functions.calls}
    assert [body for _, body in sink.received] == [b"x"]


def test_push_may_move_what_would_hold_up_others_to_the_slow_lane(
    functions: Functions, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given two messages in one batch to an unknown subscriber, whose first answer takes too long
    monkeypatch.setattr(concurrency, "HOLD_MS", -1)
    a_push_queue(sink.url)
    post(b"1", b"2")
    functions.invoke("dispatch", functions.stream_event())
    # When one is moved to the slow lane, then push has the right to do so, and poll to deliver it from there
    run_and_check(functions, "push", functions.sqs_event("PUSH_QUEUE_URL"))
    assert len(sink.received) == 1
    run_and_check(functions, "poll", functions.sqs_event("SLOW_QUEUE_URL"))
    assert sorted(body for _, body in sink.received) == [b"1", b"2"]


def test_wake_and_push_are_allowed_to_tell_of_alerts(functions: Functions, sink: Sink) -> None:
    # Given a delivery that failed, a message of a pull queue, and alerts that watch both queues and the project
    queue = a_push_queue(sink.url, retries=3, retries_delay=600)
    pulled = replace(queue, name="pulled", uid="cccccccccccc", pull_uid="dddddddddddd", type=QueueType.PULL, push=None)
    whole().engine.ports.config.create_queue(pulled)
    sink.status = 500
    post(b"x")
    run_and_check(functions, "dispatch", functions.stream_event())
    run_and_check(functions, "push", functions.sqs_event("PUSH_QUEUE_URL"))
    whole().part(Ironmq).post.post(PROJECT, "pulled", [NewMessage(body=b"y")])
    alerts = whole().part(Ironmq).ports.alerts
    for number, (measure, watched) in enumerate(
        ((Measure.OLDEST_WAITING, "orders"), (Measure.OLDEST_WAITING, "pulled"), (Measure.GIVEN_UP, ""))
    ):
        alerts.save(
            ProjectAlert(
                project=PROJECT,
                alert_id=f"{number:012x}",
                name=watched,
                measure=measure,
                threshold=1,
                minutes=5,
                queue=watched,
                url=sink.url,
                format=Format.JSON,
                created_at=1,
            )
        )
    turn_clock(seconds=5)
    functions.stream_event()
    # When wake looks at them, then both that wait are told of, and arrive
    run_and_check(functions, "wake", {})
    sink.status = 200
    run_and_check(functions, "dispatch", functions.stream_event())
    run_and_check(functions, "push", functions.sqs_event("PUSH_QUEUE_URL"))
    answer = [json.loads(body) for _, body in sink.received if body.startswith(b"{")]
    assert sorted((each["state"], each["alert"]["queue"]) for each in answer) == [
        ("firing", "orders"),
        ("firing", "pulled"),
    ]


@pytest.mark.parametrize("by", ["errors", "push", "poll"])
def test_who_posts_to_a_queue_may_fire_the_alerts_of_its_size(functions: Functions, sink: Sink, by: str) -> None:
    # Given an error queue, or a pull queue that is fed by a push queue, with an alert of its size
    queue = a_push_queue(sink.url, retries=0, retries_delay=3)
    assert queue.push is not None
    fed = replace(
        queue,
        name="failed",
        uid="cccccccccccc",
        pull_uid="dddddddddddd",
        type=QueueType.PULL,
        push=None,
        alerts=(FULL,),
    )
    whole().engine.ports.config.create_queue(fed)
    [shop] = queue.push.subscribers
    push = replace(queue.push, error_queue="failed")
    if by != "errors":
        push = replace(queue.push, subscribers=(replace(shop, url="ironmq:///failed"),))
    whole().engine.ports.config.update_queue(replace(queue, version=1, push=push))
    # When a message is posted to it
    sink.status = 500
    post(b"x")
    functions.invoke("dispatch", functions.stream_event())
    orders = functions.sqs_event("PUSH_QUEUE_URL")
    run_and_check(functions, "poll" if by == "poll" else "push", orders)
    if by == "errors":
        run_and_check(functions, "errors", functions.sqs_event("ERRORS_QUEUE_URL"))
    # Then the alert has come
    reported = whole().engine.ports.config.queue(PROJECT, "told", fresh=True)
    assert reported is not None
    assert whole().part(Ironmq).ports.pull.size(PROJECT, reported.pull_uid, SystemClock().now()) == 1


@pytest.mark.parametrize(
    ("queue", "name"), [("PUSH", "push"), ("RETRY", "push"), ("ROUTE", "push"), ("SLOW", "poll"), ("POLL", "poll")]
)
def test_an_order_that_waits_long_may_become_a_new_message_of_its_queue(
    functions: Functions, sink: Sink, queue: str, name: str
) -> None:
    # Given an order that was received ten times and is five days old, and a table that cannot be read
    a_push_queue(sink.url)
    post(b"x")
    functions.invoke("dispatch", functions.stream_event())
    event = functions.sqs_event("PUSH_QUEUE_URL")
    for each in event["Records"]:
        each["attributes"] |= {"ApproximateReceiveCount": "11", "SentTimestamp": str(SystemClock().now() - 5 * DAY_MS)}
        each["eventSourceARN"] = each["eventSourceARN"].replace("push_queue", f"{queue.lower()}_queue")
    functions.dynamodb.delete_table(TableName=aws.MESSAGES_TABLE)
    # When the function can do nothing for it now, Then it may send it to its queue again, as a new message
    run_and_check(functions, name, event)
    sent = [each for each in functions.calls if each.operation == "SendMessageBatch"]
    assert {each.parameters["QueueUrl"].rpartition("/")[2] for each in sent} == {f"{queue.lower()}_queue"}


def run_and_check(functions: Functions, name: str, event: dict[str, Any]) -> None:
    """Run a function, which makes calls, each of which its role allows."""
    functions.forget()
    assert event.get("Records", [1]), f"nothing for {name} to do"
    functions.invoke(name, event)
    assert functions.calls
    assert functions.refused == []
