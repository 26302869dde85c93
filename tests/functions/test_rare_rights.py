"""Rights that functions use seldom: each is used here once, under the roles
(:class:`tests.functions.conftest.Functions`), and counts for ``make rights``.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from tests.cloud import aws_services as aws
from tests.contract.samples import first
from tests.fakes.large_bodies import large_body, large_text
from tests.functions.conftest import Functions, Sink, change, gateway_event, whole
from tests.functions.test_engine import PROJECT, a_push_queue, post
from tests.functions.test_hub import a_store, request
from tests.functions.test_policies import run_and_check
from tests.functions.test_webhooks import Organization

from pushhub.base.verdict import Verdict
from pushhub.cloud.clock import SystemClock
from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.message import NewMessage
from pushhub.engine.model.pulse import HOUR_MS, NAMES_MS
from pushhub.engine.model.queue import Queue, QueueType
from pushhub.engine.projects.projects import Projects
from pushhub.engine.store.dynamodb_pulses import is_pulse
from pushhub.engine.waiting.sweep import GRACE_MS
from pushhub.ironmq.wiring import Ironmq
from pushhub.notifications.store.websocket_management import ApiGatewaySockets
from pushhub.notifications.wire.frames import UNSUBSCRIBE
from pushhub.webhooks.model.portal_frame import PortalFrame

LARGE = b'{"number": "R1", "text": "' + large_body(20_000) + b'"}'
"""A body that goes by way of the bodies bucket."""


def subscribed(queue: Queue, url: str) -> Queue:
    """The queue with another URL of its subscriber, stored."""
    assert queue.push is not None
    [shop] = queue.push.subscribers
    changed = replace(queue, version=1, push=replace(queue.push, subscribers=(replace(shop, url=url),)))
    whole().engine.ports.config.update_queue(changed)
    return changed


def a_searched_queue(like: Queue, name: str) -> None:
    """A push queue by whose field ``number`` people find its messages."""
    other = {"name": name, "uid": "cccccccccccc", "pull_uid": "dddddddddddd", "search_fields": ("number",)}
    whole().engine.ports.config.create_queue(replace(like, **other))  # type: ignore[arg-type]


@pytest.mark.parametrize("by", ["push", "poll"])
def test_what_is_copied_to_a_push_queue_is_stored_and_found_by_its_fields(
    functions: Functions, sink: Sink, by: str
) -> None:
    # Given a queue whose subscriber is another push queue
    queue = a_push_queue(sink.url)
    a_searched_queue(queue, "copies")
    subscribed(queue, "ironmq:///copies")
    # When a large message is copied there, Then the function may store its body, itself and its place in the index
    post(LARGE)
    functions.invoke("dispatch", functions.stream_event())
    run_and_check(functions, by, functions.sqs_event("PUSH_QUEUE_URL"))
    written = [each for each in functions.calls if each.operation in {"PutObject", "BatchWriteItem"}]
    assert len({each.operation for each in written}) == 2


def test_an_error_queue_may_be_a_push_queue(functions: Functions, sink: Sink) -> None:
    queue = a_push_queue(sink.url, retries=0, error_queue="failed")
    a_searched_queue(queue, "failed")
    assert queue.search_fields == ()
    sink.status = 500
    post(b'{"number": "R1"}')
    functions.invoke("dispatch", functions.stream_event())
    functions.invoke("push", functions.sqs_event("PUSH_QUEUE_URL"))
    searched = whole().engine.ports.config.queue(PROJECT, "failed", fresh=True)
    assert searched is not None
    whole().engine.ports.config.update_queue(replace(searched, search_fields=("source_msg_id",)))
    run_and_check(functions, "errors", functions.sqs_event("ERRORS_QUEUE_URL"))
    assert {"PutItem", "BatchWriteItem"} <= {each.operation for each in functions.calls}


@pytest.mark.parametrize("by", ["push", "poll"])
def test_a_queues_subscriber_may_be_a_topic_with_several_consumers(
    functions: Functions, sink: Sink, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a topic whose subscriber has two consumers
    queue = a_push_queue(sink.url)
    notified(functions, "/subscriptions", {"context": "tenant", "subscription": "orders"})
    asked_for = {"subscriber": "app", "subscription": "orders", "shared": True}
    token = notified(functions, "/token", asked_for)["token"]
    for each in ("a", "b"):
        query = {"token": token, "consumer": each}
        event = {
            "requestContext": {"eventType": "CONNECT", "routeKey": "$connect", "connectionId": each},
            "queryStringParameters": query,
            "multiValueQueryStringParameters": {name: [value] for name, value in query.items()},
        }
        assert functions.invoke("consumers", event) == {"statusCode": 200}
    # When something is posted to a queue whose subscriber is that topic
    subscribed(queue, "notification2://orders")
    post(b'{"n": 1}')
    functions.invoke("dispatch", functions.stream_event())
    # Then the function may append it, and wake whoever sends it
    run_and_check(functions, by, functions.sqs_event("PUSH_QUEUE_URL"))
    assert {each.operation for each in functions.calls} >= {"GetItem", "PutItem", "UpdateItem", "Query"}
    assert "wakes.fifo" in str([each.parameters for each in functions.calls if each.operation.startswith("Send")])
    # And a consumer that has its subscriber removed may have what all acknowledged taken together
    monkeypatch.setattr(ApiGatewaySockets, "close", lambda *_: None)
    frame = {"requestContext": {"eventType": "MESSAGE", "routeKey": "$default", "connectionId": "b"}}
    run_and_check(functions, "consumers", frame | {"body": UNSUBSCRIBE})
    assert "BatchGetItem" in {each.operation for each in functions.calls}


def test_control_takes_a_large_message_of_the_hub_too(functions: Functions) -> None:
    """A path of ingest's may reach it (:mod:`tests.functions.test_hub`)."""
    message = {"message": "order:new", "payload": {"text": large_text(20_000)}}
    run_and_check(functions, "control", request(a_store(), "POST", "/messages", message))
    assert "PutObject" in {each.operation for each in functions.calls}


def notified(functions: Functions, path: str, body: dict[str, Any]) -> Any:
    """A request of the notifications' API."""
    answer = asked(functions, "control", "POST", path, body, root="/notification2")
    assert answer["statusCode"] < 300, answer
    return json.loads(answer["body"])


@pytest.mark.parametrize("by", ["push", "poll", "errors", "control", "ingest"])
def test_a_body_that_is_gone_is_missing_and_not_refused(functions: Functions, sink: Sink, by: str) -> None:
    """Who may not list the bucket gets a 403 for an object that is not there, and would try for ever."""
    # Given a large message whose object is gone
    queue = a_push_queue(sink.url, retries=0)
    if by == "ingest":
        pulled = {
            "name": "pulled",
            "uid": "cccccccccccc",
            "pull_uid": "dddddddddddd",
            "type": QueueType.PULL,
            "push": None,
        }
        whole().engine.ports.config.create_queue(replace(queue, **pulled))  # type: ignore[arg-type]
        whole().part(Ironmq).post.post(PROJECT, "pulled", [NewMessage(body=LARGE)])
    else:
        [message_id] = post(LARGE)
    if by == "errors":
        sink.status = 500
        functions.invoke("dispatch", functions.stream_event())
        functions.invoke("push", functions.sqs_event("PUSH_QUEUE_URL"))
    s3 = aws._client("s3")
    for each in s3.list_objects_v2(Bucket=aws.BUCKET)["Contents"]:
        s3.delete_object(Bucket=aws.BUCKET, Key=each["Key"])
    # When the function needs it, Then it learns that
    if by in {"push", "poll"}:
        functions.invoke("dispatch", functions.stream_event())
        run_and_check(functions, by, functions.sqs_event("PUSH_QUEUE_URL"))
    elif by == "errors":
        run_and_check(functions, "errors", functions.sqs_event("ERRORS_QUEUE_URL"))
    elif by == "control":
        assert asked(functions, "control", "GET", f"/queues/orders/messages/{message_id}")["statusCode"] == 404
    else:
        answer = asked(functions, "ingest", "GET", "/queues/pulled/messages")
        assert json.loads(answer["body"])["messages"] == []
    assert functions.refused == []
    assert "NoSuchKey" not in str(functions.refused)


def asked(
    functions: Functions, name: str, method: str, path: str, body: Any = None, *, root: str = f"/3/projects/{PROJECT}"
) -> Any:
    """A request with a token of the project."""
    ports = whole().engine.ports
    token = Projects(config=ports.config, clock=ports.clock).make_token(PROJECT)
    basic = base64.b64encode(f"{PROJECT}/tester:{token}".encode()).decode()
    shown = f"OAuth {token}" if root.startswith("/3") else f"Basic {basic}"
    return functions.invoke(name, gateway_event(method, f"{root}{path}", body, authorization=shown))


def test_sweep_may_send_every_kind_of_order_and_schedule_again(functions: Functions, sink: Sink) -> None:
    # Given a message that was never tried, and others in every state that waits for somebody, long overdue
    a_push_queue(sink.url)
    ports = whole().engine.ports
    past = SystemClock().now() - GRACE_MS - 60_000
    with pytest.MonkeyPatch.context() as then:
        then.setattr(SystemClock, "now", lambda _: past)
        post(b"never tried", b"retried", b"polled", b"scheduled")
        functions.invoke("ingest", request(a_store(), "POST", "/messages", {"message": "order:new", "payload": {}}))
    found = [message for message, _ in ports.messages.outstanding(0, 1) if message.queue == "orders"]
    for message, state in zip(found[1:], ("retrying", "polling", "scheduled"), strict=True):
        failed = first(message, Verdict.FAILED)
        waits = replace(failed, due_at=past, changed_at=past)
        if state == "polling":
            waits = replace(waits, state=DeliveryState.POLLING, update_url="https://a.example/status")
        ports.messages.save(replace(waits, scheduled=state == "scheduled"))
    # When everything is swept, Then it may send to each queue, and enter into the schedule again
    run_and_check(functions, "sweep", {"everything": True})
    sent = {
        each.parameters["QueueUrl"].rpartition("/")[2] for each in functions.calls if each.operation.startswith("Send")
    }
    assert sent == {"push_queue", "retry_queue", "poll_queue", "route_queue"}
    entered = [each.parameters for each in functions.calls if each.operation == "PutItem"]
    assert aws.SCHEDULE_TABLE in {each["TableName"] for each in entered}


def test_the_console_may_read_which_pages_show_a_portal(functions: Functions) -> None:
    frame = PortalFrame(project=PROJECT)
    run_and_check(functions, "console", gateway_event("GET", f"/console/p/{frame.name}"))


def test_ingest_may_give_up_the_key_of_a_request_that_is_refused(functions: Functions) -> None:
    # Given a request with a key, whose event id is another message's
    organization = Organization(functions)
    organization.call("control", "POST", "/app", {"name": "Acme", "uid": "acme"})
    event = {"eventType": "a", "eventId": "e1", "payload": {}}
    organization.call("ingest", "POST", "/app/acme/msg", event, key="first")
    functions.forget()
    with pytest.raises(AssertionError, match="409"):
        organization.call("ingest", "POST", "/app/acme/msg", event, key="second")
    # Then its key was given up
    assert "DeleteItem" in {each.operation for each in functions.calls}
    assert functions.refused == []


def test_records_may_list_what_the_hour_before_holds(functions: Functions) -> None:
    # Given the pulse of an hour that names what there is of the hour before
    now = SystemClock().now() // HOUR_MS * HOUR_MS + NAMES_MS
    with pytest.MonkeyPatch.context() as then:
        then.setattr(SystemClock, "now", lambda _: now)
        functions.invoke("wake", {})
    items = functions.dynamodb.scan(TableName=aws.MESSAGES_TABLE)["Items"]
    changes = [change(each, at=now // 1000) for each in items if is_pulse(each)]
    # When it is recorded, Then it may look
    run_and_check(functions, "records", {"Records": changes})
    assert "ListObjectsV2" in {each.operation for each in functions.calls}
