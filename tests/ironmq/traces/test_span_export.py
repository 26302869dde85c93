"""Spans of attempts, made from delivery records and exported to the project's collector."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.fakes import Fault, FaultPlan, Reply
from tests.ironmq.api.hub import OTHER_PROJECT, Hub

from pushhub.base.errors import Unavailable
from pushhub.engine.model.activity import HOUR_MS
from pushhub.engine.model.delivery import Delivery
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.record import DeliveryRecord
from pushhub.engine.model.records import record_of_delivery
from pushhub.ironmq.model.spans import MOST_BYTES, SPANS_QUEUE, SPANS_UID

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GIVEN = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
ENDPOINT, COLLECTOR = "https://a.example/in", "https://otel.example/v1/traces"
MESSAGE = json.dumps({"messages": [{"body": "x"}]}).encode()


class Traced(Hub):
    """A hub whose delivery records are made as its stores are written.

    Attributes:
        records: All of them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.records: list[DeliveryRecord] = []
        self._known: dict[DeliveryKey, Delivery] = {}
        self._seen = 0
        save = self.world.messages.save

        def saved(delivery: Delivery) -> None:
            save(delivery)
            record = record_of_delivery(self._known.get(delivery.key), delivery, self.world.clock.now())
            self._known[delivery.key] = delivery
            if record is not None:
                self.records.append(record)

        self.world.messages.save = saved  # type: ignore[method-assign]

    def export(self, batch: str = "") -> None:
        """Let the function of records handle what happened since it last did, and everything else go on for a while."""
        batch, new, self._seen = batch or str(self._seen), self.records[self._seen :], len(self.records)
        self.tell(new, batch)
        self.world.run(seconds=1)

    def tell(self, records: list[DeliveryRecord], batch: str) -> None:
        """Tell those who want to know of records."""
        for protocol in self.world.hub.engine.protocols:
            for make in protocol.record_listeners:
                make().recorded(records, batch)

    def set(self, **settings: Any) -> None:
        answer = self.call("PUT", "/traces", {"traces": {"url": COLLECTOR, **settings}})
        assert answer.status == 200, answer
        self.world.clock.advance(seconds=31)

    def post_traced(self, name: str, count: int = 1, headers: dict[str, str] | None = None) -> None:
        body = json.dumps({"messages": [{"body": "x"}] * count}).encode()
        url = f"/3/projects/{PROJECT}/queues/{name}/messages"
        assert self.send("POST", url, body, GIVEN if headers is None else headers, token=self.token).status == 201
        self.world.run(seconds=20)

    def sent(self, url: str) -> list[Any]:
        return [each for each in self.world.sender.requests if each.url == url]

    def spans(self) -> list[dict[str, Any]]:
        """All spans that the collector was sent."""
        found: list[dict[str, Any]] = []
        for request in self.sent(COLLECTOR):
            [resource] = json.loads(gzip.decompress(request.body))["resourceSpans"]
            [scope] = resource["scopeSpans"]
            found += scope["spans"]
        return found

    def shown(self) -> Any:
        return self.call("GET", "/traces").body["traces"]


@pytest.fixture
def hub() -> Traced:
    created = Traced()
    created.make_push("q", ENDPOINT, retries=2, retries_delay=3)
    return created


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


def test_each_attempt_becomes_two_spans_between_the_producer_and_the_receiver(hub: Traced) -> None:
    # Given a project that exports, and an endpoint that takes the third try
    hub.set(headers={"Authorization": "Bearer s3cret"})
    hub.world.sender.script(ENDPOINT, 500, 500, 200)
    # When a message of a trace is posted
    hub.post_traced("q")
    hub.export()
    # Then the collector gets a message_attempt, child of the producer's span, and in it the http_attempt whose id the
    # receiver got, for each try
    [request] = hub.sent(COLLECTOR)
    headers = {name.lower(): value for name, value in request.headers.items()}
    assert headers["authorization"] == "Bearer s3cret"
    assert headers["content-type"] == "application/json"
    assert not [each for each in headers if each.startswith(("iron-", "pushhub-", "trace"))]
    spans = hub.spans()
    assert {each["traceId"] for each in spans} == {TRACE}
    outer = [each for each in spans if each["name"] == "message_attempt"]
    inner = [each for each in spans if each["name"] == "http_attempt"]
    received = [each.headers["traceparent"].split("-")[2] for each in hub.sent(ENDPOINT)]
    assert [each["spanId"] for each in inner] == received
    assert [each["parentSpanId"] for each in inner] == [each["spanId"] for each in outer]
    assert {each["parentSpanId"] for each in outer} == {PARENT}
    assert len({each["spanId"] for each in spans}) == 6
    assert [each["status"]["code"] for each in inner] == [2, 2, 1]
    assert [attributes(each)["http.response.status_code"] for each in inner] == ["500", "500", "200"]
    assert [attributes(each)["attempt_count"] for each in outer] == ["1", "2", "3"]
    assert all(int(each["startTimeUnixNano"]) <= int(each["endTimeUnixNano"]) for each in spans)
    assert hub.shown()["exported"] == 6


@pytest.mark.parametrize(
    ("settings", "headers"),
    [
        (None, GIVEN),
        ({"on": False}, GIVEN),
        ({}, {}),
        ({}, {"traceparent": f"00-{TRACE}-{PARENT}-00"}),
    ],
    ids=["nothing set", "off", "no trace", "not sampled"],
)
def test_nothing_is_kept_or_exported_where_nobody_wants_it(
    hub: Traced, settings: dict[str, Any] | None, headers: dict[str, str]
) -> None:
    if settings is not None:
        hub.set(**settings)
    hub.post_traced("q", headers=headers)
    hub.export()
    assert len(hub.sent(ENDPOINT)) == 1
    assert hub.sent(COLLECTOR) == []
    assert {each.trace_id for each in hub.records} == {None}
    assert not [each for each in hub.world.messages.all_messages() if each.queue == SPANS_QUEUE]


def test_records_that_come_again_are_exported_once(hub: Traced) -> None:
    hub.set()
    hub.post_traced("q", count=3)
    hub.tell(hub.records, "messages-1-9")
    hub.tell(hub.records, "messages-1-9")
    hub.world.run(seconds=1)
    assert len(hub.sent(COLLECTOR)) == 1
    assert len(hub.spans()) == 6


def test_many_attempts_go_in_requests_that_fit_into_a_message(hub: Traced) -> None:
    hub.set()
    for _ in range(3):
        hub.post_traced("q", count=100)
    hub.export()
    assert all(len(each.body) <= MOST_BYTES for each in hub.sent(COLLECTOR))
    assert len({each["spanId"] for each in hub.spans()}) == len(hub.spans()) == 600


@pytest.mark.parametrize("status", [429, 502, 503, 504, "timeout"])
def test_a_collector_that_fails_is_asked_again_and_nothing_else_waits(hub: Traced, status: Any) -> None:
    # Given a collector that fails twice
    hub.set()
    failure = Reply(error_class="timeout") if status == "timeout" else status
    hub.world.sender.script(COLLECTOR, failure, failure, 200)
    hub.post_traced("q")
    hub.export()
    # Then its owner sees that, and deliveries go on
    assert hub.shown()["failing"]["status_code"] == (0 if status == "timeout" else status)
    hub.post_traced("q")
    assert len(hub.sent(ENDPOINT)) == 2
    # And it gets the spans
    hub.world.run(seconds=60)
    assert len(hub.sent(COLLECTOR)) == 3
    assert (hub.shown()["exported"], hub.shown()["dropped"], hub.shown()["failing"]) == (2, 0, None)


def test_a_collector_that_says_when_is_not_asked_before(hub: Traced) -> None:
    hub.set()
    hub.world.sender.script(COLLECTOR, Reply(status_code=429, headers={"retry-after": "120"}), 200)
    hub.post_traced("q")
    hub.export()
    hub.world.run(seconds=115)
    assert len(hub.sent(COLLECTOR)) == 1
    hub.world.run(seconds=10)
    assert len(hub.sent(COLLECTOR)) == 2


@pytest.mark.parametrize("status", [400, 401, 404, 413, 302, 500])
def test_what_a_collector_refuses_is_dropped_in_sight(hub: Traced, status: int) -> None:
    hub.set()
    hub.world.sender.script(COLLECTOR, *[status] * 9)
    hub.post_traced("q")
    hub.export()
    hub.world.run(seconds=1000)
    assert len(hub.sent(COLLECTOR)) == 1
    assert (hub.shown()["exported"], hub.shown()["dropped"]) == (0, 2)
    assert hub.world.telemetry.counts["SpansDropped"] == 2
    [event] = hub.world.telemetry.named("spans_dropped")
    assert event["reason"] == f"status_{status}"


def test_a_collector_that_stays_down_loses_its_spans_after_a_quarter_of_an_hour_and_nothing_else(hub: Traced) -> None:
    hub.set()
    hub.world.sender.script(COLLECTOR, *[503] * 50)
    hub.post_traced("q")
    hub.export()
    hub.world.run(seconds=1000)
    assert 4 <= len(hub.sent(COLLECTOR)) <= 8
    assert (hub.shown()["exported"], hub.shown()["dropped"], hub.shown()["failing"]) == (0, 2, None)
    assert [each.state.value for each in hub.world.messages.all_deliveries() if each.queue == "q"] == ["delivered"]


@pytest.mark.parametrize(
    ("answer", "rejected"),
    [
        (b"", 0),
        (b"{}", 0),
        (b'{"partialSuccess":{}}', 0),
        (b'{"partialSuccess":{"rejectedSpans":"1","errorMessage":"too old"}}', 1),
        (b'{"partialSuccess":{"rejectedSpans":2}}', 2),
        (b'{"partialSuccess":{"rejectedSpans":"99"}}', 2),
        (b'{"partialSuccess":{"rejectedSpans":-1}}', 0),
        (b'{"partialSuccess":{"rejectedSpans":"x"}}', 0),
        (b'{"partialSuccess":{"rejectedSpans":1e999}}', 0),
        (b'{"partialSuccess":[]}', 0),
        (b"[" * 4000, 0),
        (b"\xff\xfe", 0),
    ],
)
def test_spans_that_a_collector_takes_in_part_are_not_sent_again(hub: Traced, answer: bytes, rejected: int) -> None:
    hub.set()
    hub.world.sender.script(COLLECTOR, Reply(status_code=200, body=answer))
    hub.post_traced("q")
    hub.export()
    hub.world.run(seconds=1000)
    assert len(hub.sent(COLLECTOR)) == 1
    assert (hub.shown()["exported"], hub.shown()["dropped"]) == (2 - rejected, rejected)


def test_switched_off_while_spans_wait_they_are_dropped(hub: Traced) -> None:
    hub.set()
    hub.world.sender.script(COLLECTOR, 503, 200)
    hub.post_traced("q")
    hub.export()
    assert hub.call("DELETE", "/traces").status == 200
    hub.world.run(seconds=60)
    assert len(hub.sent(COLLECTOR)) == 1
    assert hub.shown() is None
    now = hub.world.clock.now()
    counted = hub.world.ports.activity.subscriber_activity(PROJECT, SPANS_UID, 0, now)
    assert sum(each.given_up for each in counted.values()) == 2
    assert {hour % HOUR_MS for hour in counted} == {0}


def test_spans_that_cannot_be_stored_are_counted_and_hold_up_no_records(hub: Traced) -> None:
    hub.set()
    hub.post_traced("q", count=2)
    struck = hub.world.ports.build(FaultPlan(Fault.FAILS, of="messages.accept_once"))
    for protocol in struck.engine.protocols:
        for make in protocol.record_listeners:
            make().recorded(hub.records, "messages-1-2")
    assert hub.world.telemetry.counts["SpansDropped"] == 4
    assert hub.sent(COLLECTOR) == []


def test_an_attempt_is_made_although_nobody_can_say_whether_its_project_exports(
    hub: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(project_id: str, *, fresh: bool = False) -> None:
        raise Unavailable("dynamodb:GetItem", "Throttled")

    hub.set()
    monkeypatch.setattr(hub.world.config, "span_export", fails)
    hub.post_traced("q")
    assert len(hub.sent(ENDPOINT)) == 1
    assert hub.world.telemetry.counts["SpansDropped"] == 2


def test_an_export_is_no_part_of_the_projects_own_figures(hub: Traced) -> None:
    hub.set()
    uncounted = [each.uncounted for each in hub.world.hub.engine.protocols]
    assert any(each(SPANS_QUEUE) for each in uncounted)
    assert not any(each("spans") for each in uncounted)


def test_one_projects_spans_go_to_no_other_projects_collector(hub: Traced) -> None:
    # Given another project that exports, and this one that does not
    other = hub.call("PUT", "/traces", {"traces": {"url": COLLECTOR}}, project=OTHER_PROJECT)
    assert other.status == 200
    hub.world.clock.advance(seconds=31)
    hub.post_traced("q")
    hub.export()
    assert hub.sent(COLLECTOR) == []
    assert hub.shown() is None
