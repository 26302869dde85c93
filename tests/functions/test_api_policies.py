"""What the functions behind the queue API, and records, may do. All tests here run under their roles
(:class:`tests.functions.conftest.Functions`).
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from local.iam.policies import Need
from simulation.roles import roles
from tests.contract.samples import first, message
from tests.fakes.large_bodies import large_text
from tests.functions.conftest import RECORDS_BUCKET, Functions, Sink, change, gateway_event, turn_clock, whole
from tests.functions.test_engine import PROJECT
from tests.functions.test_hub import a_store
from tests.template.cloudformation import deployed

from pushhub.base.times import iso_time
from pushhub.base.verdict import Verdict
from pushhub.cloud.audit_trail import S3AuditTrail
from pushhub.engine.model.delivery import with_span
from pushhub.engine.model.trace import Span
from pushhub.engine.store._delivery_items import encode_delivery
from pushhub.runtime.hub import start
from pushhub.web.audit import audit

LARGE = large_text(20_000)


@dataclass
class Caller:
    """A client of the functions."""

    functions: Functions
    token: str

    def call(
        self, function: str, method: str, path: str, body: object = None, *, override: str = "", below: str = "/queues"
    ) -> dict[str, Any]:
        """Make a request below the project's queues, or something else of it, as the gateway hands it over.

        The answer's body.
        """
        headers = {"authorization": f"OAuth {self.token}"}
        if override:
            headers["x_http_method_override"] = override
        path, _, query = path.partition("?")
        whole = f"/3/projects/{PROJECT}{below}{path}"
        event = gateway_event(method, whole, {} if body is None else body, query=query, **headers)
        answer = self.functions.invoke(function, event)
        assert answer["statusCode"] < 300, answer
        assert self.functions.refused == []
        reported: dict[str, Any] = json.loads(answer["body"])
        return reported

    def make(self, name: str, **settings: object) -> None:
        """Make a queue."""
        self.call("control", "PUT", f"/{name}", {"queue": settings})

    def post(self, name: str, *bodies: str, **options: object) -> list[str]:
        """Post messages; their ids."""
        messages = [{"body": body, **options} for body in bodies]
        answer = self.call("ingest", "POST", f"/{name}/messages", {"messages": messages})
        return list(answer["ids"])


@pytest.fixture
def caller(functions: Functions) -> Caller:
    return Caller(functions, a_store())


def push_queue(caller: Caller, url: str) -> None:
    subscribers = [{"name": "shop", "url": url}]
    caller.make("orders", push={"subscribers": subscribers, "retries": 3, "retries_delay": 60})


def pushed_once(caller: Caller, *bodies: str) -> list[str]:
    """Post to the push queue and let the first attempts be made."""
    ids = caller.post("orders", *bodies)
    caller.functions.invoke("dispatch", caller.functions.stream_event())
    caller.functions.invoke("push", caller.functions.sqs_event("PUSH_QUEUE_URL"))
    return ids


def test_ingest_may_accept_messages_of_every_kind(caller: Caller, sink: Sink) -> None:
    push_queue(caller, sink.url)
    caller.make("alarms")
    caller.make("watched", alerts=[{"type": "fixed", "trigger": 1, "queue": "alarms", "snooze": 60}])
    caller.make("loud", alerts=[{"type": "fixed", "trigger": 1, "queue": "orders"}])
    caller.make("found", search_fields=["order"])
    caller.post("found", '{"order": 4711}', '{"order": 4712}')
    for name in ("orders", "watched", "loud", "new"):
        caller.post(name, "one")
        caller.post(name, "one", LARGE, "three")
        caller.call("ingest", "POST", f"/{name}/webhook", LARGE)
    caller.call("ingest", "POST", "/another-new/webhook", "raw")


@pytest.mark.parametrize("function", ["ingest", "control"])
def test_a_method_override_works_on_the_paths_that_both_functions_have(
    caller: Caller, sink: Sink, function: str
) -> None:
    """Iron's Java client deletes with POST and ``X-HTTP-Method-Override``, so its request reaches ingest."""
    sink.status = 202
    push_queue(caller, sink.url)
    caller.make("line", alerts=[{"type": "fixed", "trigger": 1, "direction": "desc", "queue": "alarms"}])
    first, second = caller.post("line", "a", LARGE)
    caller.call(function, "POST", "/line/messages?n=10", override="GET")
    caller.call(function, "POST", "/line/messages", {"ids": [first]}, override="DELETE")
    caller.call(function, "POST", "/line/messages", {"ids": [{"id": second}]}, override="DELETE")
    caller.post("line", "b")
    caller.call(function, "POST", "/line/messages", {}, override="DELETE")
    ids = pushed_once(caller, "a", LARGE, "c")
    shown = caller.call(function, "POST", "/orders/messages?n=10", override="GET")
    assert len(shown["messages"]) == len(ids)
    headers, _ = sink.received[0]
    acknowledgement = {
        "id": headers["Iron-Message-Id"],
        "reservation_id": headers["Iron-Reservation-Id"],
        "subscriber_name": headers["Iron-Subscriber-Name"],
    }
    caller.call(function, "POST", "/orders/messages", {"ids": [acknowledgement]}, override="DELETE")
    caller.call(function, "POST", "/orders/messages", {"ids": [ids[2]]}, override="DELETE")
    caller.call(function, "POST", "/orders/messages", {}, override="DELETE")


def test_control_may_do_everything_else(caller: Caller, sink: Sink) -> None:
    # Queues and subscribers
    push_queue(caller, sink.url)
    caller.make("line", dead_letter={"queue_name": "dead", "max_reservations": 1}, message_timeout=60)
    caller.call("control", "GET", "?per_page=2&prefix=o")
    for name in ("orders", "line"):
        caller.call("control", "GET", f"/{name}")
        caller.call("control", "PATCH", f"/{name}", {"queue": {"message_timeout": 90}})
    shop = {"name": "second", "url": sink.url, "headers": {"X-Key": "1"}}
    caller.call("control", "POST", "/orders/subscribers", {"subscribers": [shop]})
    caller.call("control", "DELETE", "/orders/subscribers", {"subscribers": [{"name": "second"}]})
    caller.call("control", "PUT", "/orders/subscribers", {"subscribers": [{"name": "shop", "url": sink.url}]})
    # A line
    caller.post("line", *"abc", LARGE)
    caller.call("control", "GET", "/line/messages?n=10")
    taken = caller.call("control", "POST", "/line/reservations", {"n": 10, "timeout": 60})["messages"]
    held = {each["id"]: {"reservation_id": each["reservation_id"]} for each in taken}
    one, two, three, large = held
    caller.call("control", "GET", f"/line/messages/{large}")
    renewed = caller.call("control", "POST", f"/line/messages/{one}/touch", {**held[one], "timeout": 60})
    caller.call("control", "POST", f"/line/messages/{one}/release", {"reservation_id": renewed["reservation_id"]})
    caller.call("control", "DELETE", f"/line/messages/{two}", held[two])
    caller.call("control", "POST", f"/line/messages/{large}/release", held[large])
    caller.call("control", "POST", f"/line/messages/{three}/release", held[three])
    # Everything left was reserved before: it moves to the dead letters
    assert caller.call("control", "POST", "/line/reservations", {"n": 10})["messages"] == []
    caller.call("control", "POST", "/dead/reservations", {"n": 10, "delete": True})
    caller.post("line", "d", expires_in=1)
    turn_clock(seconds=1_000_000)
    caller.call("control", "POST", "/line/reservations", {"n": 1, "wait": 0})
    caller.call("control", "DELETE", "/line/messages", {})
    # Named fields
    caller.call("control", "PATCH", "/orders", {"queue": {"search_fields": ["order"]}})
    named = caller.post("orders", '{"order": 1}', '{"order": 1}')
    caller.call("control", "GET", "?value=1", below="/search")
    caller.call("control", "DELETE", f"/orders/messages/{named[0]}")
    caller.call("control", "PATCH", "/orders", {"queue": {"search_fields": []}})
    turn_clock(seconds=60)
    # A pause
    caller.call("control", "POST", "/orders/pause", {"subscriber": "shop"})
    caller.call("control", "GET", "/orders/health")
    caller.call("control", "POST", "/orders/resume", {"subscriber": "shop"})
    # Messages of a push queue
    sink.status = 500
    small, large = pushed_once(caller, "x", LARGE)
    caller.call("control", "GET", "/orders")
    caller.call("control", "GET", "/orders/messages?n=10")
    caller.call("control", "GET", f"/orders/messages/{large}")
    caller.call("control", "GET", f"/orders/messages/{small}/subscribers")
    headers, _ = sink.received[0]
    reservation = f"reservation_id={headers['Iron-Reservation-Id']}&subscriber_name=shop"
    caller.call("control", "DELETE", f"/orders/messages/{headers['Iron-Message-Id']}?{reservation}")
    caller.call("control", "DELETE", f"/orders/messages/{caller.post('orders', 'y')[0]}")
    caller.call("control", "DELETE", "/orders/messages", {})
    caller.call("control", "GET", "/orders")
    caller.call("control", "DELETE", "/orders")
    caller.call("control", "GET", "", below="/activity")
    newest = {"report": "s3://records/reports/2026-11-15_2026-11-21", "verdict": {"as_of": "2026-11-22"}}
    s3 = boto3.client("s3")
    s3.put_object(Bucket=RECORDS_BUCKET, Key="reports/latest.json", Body=json.dumps(newest).encode())
    caller.call("control", "GET", "", below="/report")
    caller.call("control", "GET", "", below="/report/queues")


def test_control_adds_to_the_audit_trail_and_can_do_nothing_else_with_it(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a hub without a trail, then nothing is kept
    monkeypatch.setattr(audit, "trail", None)
    caller.make("plain")
    kept = S3AuditTrail(boto3.client("s3"), RECORDS_BUCKET)
    assert [*kept.read(PROJECT, "2020-01-01", "2100")] == []
    # Given one with a trail
    monkeypatch.setenv("AUDIT_TRAIL", "true")
    caller.functions.roles.update(roles(PastSearch="objects", AuditTrail="true"))
    start.cache_clear()
    caller.functions.handlers.clear()
    caller.make("orders")
    # Then a change is kept
    asked, ended = kept.read(PROJECT, "2020-01-01", "2100")
    assert (asked["action"], asked["from"]["address"], ended["status"]) == ("ironmq.put_queue", "203.0.113.9", 200)
    # And that is the only right to change it, under the condition that nothing is overwritten
    [policy] = deployed(AuditTrail="true")["ControlFunctionRole"]["Properties"]["Policies"]
    statements = [each for each in policy["PolicyDocument"]["Statement"] if "/audit/" in json.dumps(each)]
    assert statements == [
        {
            "Effect": "Allow",
            "Action": ["s3:PutObject"],
            "Resource": {"Fn::Sub": "${RecordsBucket.Arn}/audit/*"},
            "Condition": {"Null": {"s3:if-none-match": "false"}},
        },
        # A project's own; not those of operators
        {
            "Effect": "Allow",
            "Action": ["s3:GetObject"],
            "Resource": {"Fn::Sub": "${RecordsBucket.Arn}/audit/project=*"},
        },
    ]
    assert "/audit/" not in json.dumps([*deployed().values()])


def test_past_may_search_records_and_is_the_only_one_that_may(caller: Caller) -> None:
    # Given a record of this hour
    now = whole().engine.ports.clock.now()
    at = iso_time(now - 1_000)
    record = {"project": PROJECT, "queue": "orders", "message_id": "1", "kind": "accepted", "at": at}
    key = f"records/dt={at[:10]}/hour={at[11:13]}/messages-1-1-1.json.gz"
    boto3.client("s3").put_object(Bucket=RECORDS_BUCKET, Key=key, Body=gzip.compress(json.dumps(record).encode()))
    # When it is searched, then the function may make every call
    started = caller.call("past", "POST", "", {"queue": "orders"}, below="/past")
    answer = caller.call("past", "GET", f"/{started['id']}", below="/past")
    assert (answer["state"], [each["at"] for each in answer["found"]]) == ("done", [at])
    # And of all that serve requests, it alone may read records
    wanted = Need("s3:GetObject", f"arn:aws:s3:::RecordsBucket/{key}")
    serving = ("ingest", "control", "console", "consumers", "past")
    readers = [each for each in serving if caller.functions.roles[each].policies.granting(wanted)]
    assert readers == ["past"]
    # And control, which gets what the gateway does not know, searches nothing
    path = f"/3/projects/{PROJECT}/past/"
    event = gateway_event("POST", path, {"queue": "orders"}, authorization=f"OAuth {caller.token}")
    assert caller.functions.invoke("control", event)["statusCode"] == 404


@pytest.mark.parametrize("table", ["messages", "pull", "backlogs"])
def test_what_was_put_back_or_came_from_another_stack_makes_no_records_again(functions: Functions, table: str) -> None:
    # Given an item of any table with a stream, which looks like a new one there, and which nobody could read
    image = {"pk": {"S": f"{PROJECT}#aaaaaaaaaaaa#1"}, "sk": {"S": "M"}, "kind": {"S": "message"}}
    record = change({**image, "restored": {"BOOL": True}}, table=table)
    # When records is given it, then nothing is written, and nothing set aside
    functions.forget()
    functions.invoke("records", {"Records": [record]})
    assert functions.calls == []


def test_records_may_keep_records_and_what_it_cannot_read(functions: Functions) -> None:
    item = {
        "pk": {"S": f"{PROJECT}#aaaaaaaaaaaa#1"},
        "sk": {"S": "M"},
        "kind": {"S": "message"},
        "queue": {"S": "orders"},
        "body": {"B": "eA=="},
        **{name: {"N": "1795240514108"} for name in ("body_size", "accepted_at", "due_at", "expires_at")},
    }
    records = [change(image, number) for number, image in enumerate([item, {**item, "due_at": {"S": "never"}}])]
    functions.forget()
    functions.invoke("records", {"Records": records})
    assert [call.operation for call in functions.calls] == ["PutObject", "PutObject", "UpdateItem", "BatchWriteItem"]


def test_records_may_post_the_spans_of_attempts_as_messages_and_nothing_else(functions: Functions) -> None:
    # Given the first attempt of a message with a trace, in a project that exports spans
    span = Span(trace_id="a" * 32, parent_id="b" * 16, span_id="c" * 16)
    image = encode_delivery(with_span(first(message(), Verdict.FAILED), span))
    record = change(image)
    # When records is given it, then it writes the record, counts it, and posts the spans: one write, which it may make
    functions.forget()
    functions.invoke("records", {"Records": [record]})
    assert [call.operation for call in functions.calls] == [
        "PutObject",
        "UpdateItem",
        "UpdateItem",
        "PutItem",
    ]
