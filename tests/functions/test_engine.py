"""Dispatch, push, wake and errors as Lambda runs them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.cloud import aws_services as aws
from tests.fakes import FakeClock
from tests.fakes.large_bodies import large_body
from tests.functions.conftest import ROOT, Context, Functions, Sink, as_json, started, turn_clock, whole

from pushhub.base.errors import Unavailable
from pushhub.cloud.clock import SystemClock
from pushhub.cloud.observability import TOGETHER, telemetry
from pushhub.cloud.settings import MissingSettingError, Settings
from pushhub.engine.model.deflated import plain
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.message import NewMessage
from pushhub.engine.model.project import Project
from pushhub.engine.model.queue import PushSettings, Queue, QueueType, Subscriber
from pushhub.engine.model.work import WorkOrder, pack
from pushhub.engine.protocol import Protocol
from pushhub.engine.wiring import ATTEMPT_EVENTS, PUBLIC_BASE_URL
from pushhub.ironmq.wiring import Ironmq
from pushhub.runtime.engine import handle_errors, wake_due
from pushhub.runtime.hub import Pushhub, settings_of
from pushhub.runtime.recording import record_changes

PROJECT = "5f0000000000000000000001"


def a_push_queue(url: str, *, retries: int = 1, retries_delay: int = 60, error_queue: str = "failed") -> Queue:
    whole().engine.ports.config.put_project(Project(project_id=PROJECT, created_at=1))
    queue = Queue(
        project=PROJECT,
        name="orders",
        uid="aaaaaaaaaaaa",
        pull_uid="bbbbbbbbbbbb",
        type=QueueType.MULTICAST,
        push=PushSettings(
            subscribers=(Subscriber(subscriber_id="s0", name="shop", url=url),),
            retries=retries,
            retries_delay=retries_delay,
            error_queue=error_queue,
        ),
        secret="5ec3e7",
        created_at=1,
    )
    whole().engine.ports.config.create_queue(queue)
    return queue


def post(*bodies: bytes) -> list[str]:
    return whole().part(Ironmq).post.post(PROJECT, "orders", [NewMessage(body=body) for body in bodies])


def test_a_message_travels_from_the_stream_to_its_subscriber(functions: Functions, sink: Sink) -> None:
    # Given an accepted message, one small and one with a claim-checked body
    a_push_queue(sink.url)
    ids = post(b"caf\xc3\xa9 \xff", large_body(20_000))
    # When the stream hands them to dispatch, and SQS the orders to push
    assert as_json(functions.invoke("dispatch", functions.stream_event())) == {"batchItemFailures": []}
    assert as_json(functions.invoke("push", functions.sqs_event("PUSH_QUEUE_URL"))) == {"batchItemFailures": []}
    # Then the subscriber has the exact bytes
    assert sorted(body for _, body in sink.received) == sorted([b"caf\xc3\xa9 \xff", large_body(20_000)])
    assert {headers["Iron-Message-Id"] for headers, _ in sink.received} == set(ids)
    assert whole().engine.ports.config.total(PROJECT, "aaaaaaaaaaaa") == 2


def test_a_failed_first_attempt_waits_in_the_retry_queue_and_ends_in_the_error_queue(
    functions: Functions, sink: Sink
) -> None:
    queue = a_push_queue(sink.url, retries=1, retries_delay=30)
    sink.status = 503
    [message_id] = post(b"x")
    functions.invoke("dispatch", functions.stream_event())
    # When the first attempt fails, the order moves to the retry queue and is not kept in the push queue
    assert functions.invoke("push", functions.sqs_event("PUSH_QUEUE_URL")) == {"batchItemFailures": []}
    [moved] = [each for each in functions.calls if each.operation == "SendMessageBatch"][-1:]
    assert moved.parameters["QueueUrl"] == functions.queue_urls["RETRY_QUEUE_URL"]
    assert moved.parameters["Entries"][0]["DelaySeconds"] == 30
    # When it comes too early, it is hidden again, past the try of the one that is on time, and reported as kept
    early = an_order(moved.parameters["Entries"][0]["MessageBody"], "retry_queue", receipt="unknown")
    kept = functions.invoke("push", early)
    assert kept == {"batchItemFailures": [{"itemIdentifier": "early"}]}
    hidden = functions.calls[-1]
    assert hidden.operation == "ChangeMessageVisibilityBatch"
    assert 1 <= hidden.parameters["Entries"][0]["VisibilityTimeout"] <= 30 + 15
    assert len(sink.received) == 1
    # When its time has come and it fails again, it goes to the errors queue, and from there to the error queue
    turn_clock(seconds=31)
    functions.invoke("push", early)
    assert len(sink.received) == 2
    assert functions.invoke("errors", functions.sqs_event("ERRORS_QUEUE_URL")) == {"batchItemFailures": []}
    failed = whole().engine.ports.config.queue(PROJECT, "failed")
    assert failed is not None
    [error] = (
        whole().part(Ironmq).ports.pull.peek(PROJECT, failed.pull_uid, count=10, now=whole().engine.ports.clock.now())
    )
    answer = json.loads(plain(error.message.body or b""))
    assert (answer["source_msg_id"], answer["subscribers"][0]["code"]) == (message_id, 503)
    assert queue.name == answer["queue"]


def test_a_parked_delivery_is_woken(functions: Functions, sink: Sink) -> None:
    a_push_queue(sink.url, retries=1, retries_delay=5000)
    sink.status = 500
    post(b"x")
    functions.invoke("dispatch", functions.stream_event())
    assert functions.invoke("push", functions.sqs_event("PUSH_QUEUE_URL")) == {"batchItemFailures": []}
    assert functions.invoke("wake", {"time": "now"}) == {"woken": 0, "ticked": 0}
    turn_clock(seconds=5001)
    assert functions.invoke("wake", {"time": "now"}) == {"woken": 1, "ticked": 0}
    sink.status = 200
    assert functions.invoke("push", functions.sqs_event("RETRY_QUEUE_URL")) == {"batchItemFailures": []}
    assert [body for _, body in sink.received] == [b"x", b"x"]


def test_ticks_are_made_before_a_backlog_takes_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given more deliveries to wake than a run has time for, and a task for each minute
    left = [60_000]
    done: list[tuple[str, int]] = []

    class Backlog:
        def run(self, remaining_ms: Callable[[], int]) -> int:
            while remaining_ms() > 10_000:
                left[0] -= 10_000
            done.append(("wake", left[0]))
            return 9

    class Tick:
        def run(self, remaining_ms: Callable[[], int]) -> int:
            done.append(("tick", remaining_ms()))
            return 1

    class Recovered:
        def run(self, remaining_ms: Callable[[], int]) -> int:
            return 0

    class Look:
        def run(self) -> None:
            done.append(("look", left[0]))

    class Pulses:
        def run(self) -> None:
            done.append(("pulse", left[0]))

    class Minute(Context):
        def get_remaining_time_in_millis(self) -> int:
            return left[0]

    parts = {
        "wake": Backlog(),
        "recover": Recovered(),
        "wake_ups": Recovered(),
        "queue_levels": Look(),
        "pulses": Pulses(),
    }
    engine = SimpleNamespace(**parts, protocols=[Protocol(name="p", ticks=(Tick,))])
    # When wake runs, then the ticks come first, with half of the time at most, of which some is for those behind it
    assert wake_due(cast(Pushhub, SimpleNamespace(engine=engine)), {}, Minute()) == {"woken": 9, "ticked": 1}
    assert done == [("pulse", 60_000), ("tick", 25_000), ("wake", 10_000), ("look", 10_000)]


def test_a_tick_with_more_to_do_than_it_has_time_for_leaves_some_to_each_of_the_others() -> None:
    # Given a minute in which each tick, or some, have more to do than there is time for, 100 ms a piece
    left = [55_000]

    class Minute(Context):
        def get_remaining_time_in_millis(self) -> int:
            return left[0]

    class Part:
        def __init__(self, much: float) -> None:
            self.much, self.done = much, 0

        def run(self, remaining_ms: Callable[[], int] = lambda: 0) -> int:
            while remaining_ms() > 10_000 and self.done < self.much:
                left[0] -= 100
                self.done += 1
            return self.done

    for greedy in ({*range(6)}, {0, 5}, {1, 4}, {5}):
        left[0] = 55_000
        ticks = [Part(math.inf if number in greedy else 1) for number in range(6)]
        parts = {name: Part(0) for name in ("pulses", "queue_levels")} | {"wake": Part(math.inf)}
        parts |= {"wake_ups": ticks[4], "recover": ticks[5]}
        protocol = Protocol(name="p", ticks=tuple((lambda each=each: each) for each in ticks[:4]))  # type: ignore[misc]
        # When it runs
        wake_due(cast(Pushhub, SimpleNamespace(engine=SimpleNamespace(**parts, protocols=[protocol]))), {}, Minute())
        # Then each does some of it
        assert all(each.done for each in ticks), greedy
        # And who alone has much to do in an outage has all of the time of ticks for it
        assert greedy != {5} or ticks[5].done == 170
        assert parts["wake"].done >= 275


def test_a_part_of_the_minute_that_fails_stops_none_of_the_others() -> None:
    # Given a minute, each of whose parts may fail for a project of its own
    class Part:
        def __init__(self, error: Exception | None = None) -> None:
            self.error, self.runs = error, 0

        def run(self, remaining_ms: Callable[[], int] | None = None) -> int:
            self.runs += 1
            if self.error is not None:
                raise self.error
            return 1

    names = ("pulses", "recover", "wake_ups", "wake", "queue_levels")
    for failing in (*names, "tick"):
        parts = {name: Part(KeyError("x") if name == failing else None) for name in names}
        ticks = [Part(KeyError("x") if failing == "tick" else None), Part()]
        protocol = Protocol(name="p", ticks=tuple((lambda each=each: each) for each in ticks))  # type: ignore[misc]
        engine = SimpleNamespace(**parts, protocols=[protocol])
        # When one fails
        with pytest.raises(KeyError):
            wake_due(cast(Pushhub, SimpleNamespace(engine=engine)), {}, Context())
        # Then all others had their turn, and the failure is the run's
        assert [each.runs for each in (*parts.values(), *ticks)] == [1] * 7, failing


def test_wake_tells_of_what_was_set_aside(functions: Functions, capsys: pytest.CaptureFixture[str]) -> None:
    # Given nothing set aside, then wake tells nothing
    functions.invoke("wake", {})
    assert "WorkStuck" not in capsys.readouterr().out
    # When something is set aside
    functions.sqs.send_message(QueueUrl=functions.queue_urls["DISPATCH_FAILURES_URL"], MessageBody="{}")
    turn_clock(seconds=300)
    functions.invoke("wake", {})
    # Then the metric that an alarm watches has it, and the log names the queue
    lines = [json.loads(each) for each in capsys.readouterr().out.splitlines()]
    (counted,) = (each for each in lines if "WorkStuck" in each)
    assert counted["WorkStuck"] == [1.0]
    (reported,) = (each for each in lines if each.get("message") == "messages_set_aside")
    assert reported["queue"] == "dispatch_failures"


def test_poison_is_kept_for_the_dead_letter_queue_and_its_neighbours_go_on(functions: Functions, sink: Sink) -> None:
    a_push_queue(sink.url)
    post(b"x")
    functions.invoke("dispatch", functions.stream_event())
    event = functions.sqs_event("PUSH_QUEUE_URL")
    event["Records"] += an_order("not json", "push_queue", receipt="r", sqs_id="poison")["Records"]
    event["Records"] += an_order('{"subscriber_id": 7}', "push_queue", receipt="r", sqs_id="poison-2")["Records"]
    kept = functions.invoke("push", event)
    assert kept == {"batchItemFailures": [{"itemIdentifier": "poison"}, {"itemIdentifier": "poison-2"}]}
    # And it is redelivered within seconds, so that it reaches the dead-letter queue within minutes
    hidden = [
        call.parameters["Entries"] for call in functions.calls if call.operation == "ChangeMessageVisibilityBatch"
    ]
    poison = [each["VisibilityTimeout"] for entries in hidden for each in entries if each["ReceiptHandle"] == "r"]
    assert poison == [1, 1]
    assert len(sink.received) == 1


def test_a_stream_record_that_cannot_be_read_is_set_aside_whole(functions: Functions, sink: Sink) -> None:
    a_push_queue(sink.url)
    post(b"x")
    event = functions.stream_event()
    event["Records"].insert(0, {"eventID": "bad", "dynamodb": {"NewImage": {"kind": {"S": "message"}}}})
    assert functions.invoke("dispatch", event) == {"batchItemFailures": []}
    aside = functions.sqs.receive_message(QueueUrl=functions.queue_urls["DISPATCH_FAILURES_URL"])["Messages"]
    assert json.loads(aside[0]["Body"])["eventID"] == "bad"
    assert len(functions.sqs_event("PUSH_QUEUE_URL")["Records"]) == 1


def test_a_message_that_was_lost_and_put_back_is_not_dispatched_a_second_time(functions: Functions, sink: Sink) -> None:
    # Given an accepted message that is restored unchanged, which looks like a new one in the stream
    a_push_queue(sink.url)
    post(b"x")
    event = functions.stream_event()
    for record in event["Records"]:
        record["dynamodb"]["NewImage"]["restored"] = {"BOOL": True}
    functions.invoke("dispatch", event)
    assert functions.sqs_event("PUSH_QUEUE_URL")["Records"] == []


def test_an_attempt_that_could_outlast_the_function_is_not_started(functions: Functions, sink: Sink) -> None:
    a_push_queue(sink.url)
    post(b"x")
    functions.invoke("dispatch", functions.stream_event())
    functions.invoke("push", functions.sqs_event("PUSH_QUEUE_URL"), Context(remaining_ms=12_000))
    assert sink.received == []
    assert len(functions.sqs_event("RETRY_QUEUE_URL")["Records"]) == 1


def test_an_exhausted_delivery_that_cannot_be_handled_is_told_with_its_reason_and_its_run(
    functions: Functions, sink: Sink, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given an exhausted delivery, and a missing table
    a_push_queue(sink.url, retries=0)
    sink.status = 500
    [message_id] = post(b"x")
    functions.invoke("dispatch", functions.stream_event())
    functions.invoke("push", functions.sqs_event("PUSH_QUEUE_URL"))
    event = functions.sqs_event("ERRORS_QUEUE_URL")
    functions.dynamodb.delete_table(TableName=aws.MESSAGES_TABLE)
    # When it is handled, then it is kept, and the log says which one and why
    kept = functions.invoke("errors", event)
    assert [each["itemIdentifier"] for each in kept["batchItemFailures"]] == [event["Records"][0]["messageId"]]
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    [shown] = [line for line in lines if line.get("message") == "exhausted_unhandled"]
    assert shown["request_id"] == "request-1"
    assert (shown["project"], shown["queue"], shown["message_id"]) == (PROJECT, "orders", message_id)
    assert shown["error"] == "Unavailable: dynamodb:BatchGetItem failed: ResourceNotFoundException"
    # And it is counted where an alarm watches it, long before it is among the dead letters
    assert [line["CallsFailing"] for line in lines if "CallsFailing" in line] == [[1.0]]


def test_the_base_url_must_be_one() -> None:
    settings = Settings([PUBLIC_BASE_URL], {"PUBLIC_BASE_URL": "https://hub.example/"})
    assert settings[PUBLIC_BASE_URL] == "https://hub.example"
    with pytest.raises(MissingSettingError, match="PUBLIC_BASE_URL"):
        Settings([PUBLIC_BASE_URL], {"PUBLIC_BASE_URL": "hub.example"})


def test_the_log_tells_of_all_attempts_or_of_exceptions() -> None:
    for word in ("all", "exceptions"):
        assert Settings([ATTEMPT_EVENTS], {"ATTEMPT_EVENTS": word})[ATTEMPT_EVENTS] == word
    with pytest.raises(MissingSettingError, match="must be one of all, exceptions, not 'none'"):
        Settings([ATTEMPT_EVENTS], {"ATTEMPT_EVENTS": "none"})


def an_order(body: str, queue: str, *, receipt: str, sqs_id: str = "early") -> dict[str, Any]:
    return {
        "Records": [
            {
                "messageId": sqs_id,
                "receiptHandle": receipt,
                "body": body,
                "attributes": {"ApproximateReceiveCount": "1"},
                "eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:{queue}",
            }
        ]
    }


@pytest.mark.parametrize("function", sorted({each.parent.name for each in (ROOT / "functions").glob("*/handler.py")}))
def test_a_function_without_a_setting_does_not_even_start(
    functions: Functions, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    for setting in sorted(each.name for each in settings_of(function) if not each.optional):
        with monkeypatch.context() as without:
            without.delenv(setting)
            with pytest.raises(MissingSettingError, match=setting):
                started(function)


def test_exhausted_deliveries_are_handed_over_together_and_those_that_fail_come_again() -> None:
    # Given a protocol that cannot post one of five exhausted deliveries
    asked: list[list[WorkOrder]] = []

    class Posts:
        def run(
            self, orders: Sequence[WorkOrder], *, repeated: Collection[DeliveryKey], remaining_ms: Callable[[], int]
        ) -> dict[DeliveryKey, Exception]:
            asked.append([*orders])
            assert {each.message_id for each in repeated} == {"4"}
            assert remaining_ms() == Context().get_remaining_time_in_millis()
            return {each.key: Unavailable("dynamodb:PutItem") for each in orders if each.key.message_id == "3"}

    def order(number: int) -> WorkOrder:
        return WorkOrder(key=DeliveryKey("p", "u", str(number), "s"), queue="q")

    def record(sqs_id: str, body: str) -> dict[str, Any]:
        attributes = {"ApproximateReceiveCount": "2" if sqs_id == "sqs-4" else "1"}
        return {"messageId": sqs_id, "receiptHandle": "none", "body": body, "attributes": attributes}

    ports = SimpleNamespace(clock=FakeClock())
    hub = cast(
        Pushhub, SimpleNamespace(engine=SimpleNamespace(ports=ports, protocols=[Protocol(name="p", exhausted=Posts)]))
    )
    packs = pack([order(number) for number in range(2)])
    # When a batch of a pack, of single orders and of a message that is no order comes
    records = [record("pack", packs[0][1]), *(record(f"sqs-{each}", order(each).encode()) for each in (2, 3, 4))]
    answer = handle_errors(hub, {"Records": [*records, record("poison", "no order")]}, Context())
    # Then the protocol is called once, and only the failed order and the message that is none are redelivered
    assert [[each.key.message_id for each in orders] for orders in asked] == [["0", "1", "2", "3", "4"]]
    assert answer == {"batchItemFailures": [{"itemIdentifier": "poison"}, {"itemIdentifier": "sqs-3"}]}


def counted(capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    """The sums of all functions that were written."""
    lines = [json.loads(each) for each in capsys.readouterr().out.splitlines()]
    of_hub = [each for each in lines if each.get("service") == "hub"]
    return {name: each[name][0] for each in of_hub for name in TOGETHER if name in each}


@pytest.mark.parametrize(
    ("setting", "waited_s", "late"),
    [("PUSH_QUEUE_URL", 60, False), ("PUSH_QUEUE_URL", 180, True), ("RETRY_QUEUE_URL", 180, False)],
)
def test_orders_that_no_run_took_up_in_time_are_counted(
    functions: Functions, sink: Sink, capsys: pytest.CaptureFixture[str], setting: str, waited_s: int, late: bool
) -> None:
    # Given an order that has waited for so long; in the retry queue they do so on purpose
    a_push_queue(sink.url)
    post(b"x")
    functions.invoke("dispatch", functions.stream_event())
    event = functions.sqs_event("PUSH_QUEUE_URL")
    (record,) = event["Records"]
    record["eventSourceARN"] = f"arn:aws:sqs:us-east-1:1:{setting.removesuffix('_URL').lower()}"
    turn_clock(seconds=waited_s)
    capsys.readouterr()
    functions.invoke("push", event)
    assert counted(capsys) == ({"WorkLate": 1.0} if late else {})
    assert len(sink.received) == 1


def test_dispatch_tells_when_it_is_behind_its_stream(
    functions: Functions, sink: Sink, capsys: pytest.CaptureFixture[str]
) -> None:
    a_push_queue(sink.url)
    post(b"x")
    event = functions.stream_event()
    for behind_s, late in ((0, {}), (65, {"WorkLate": 1.0})):
        for each in event["Records"]:
            each["dynamodb"]["ApproximateCreationDateTime"] = SystemClock().now() / 1000 - behind_s
        capsys.readouterr()
        functions.invoke("dispatch", event)
        assert counted(capsys) == late


def test_records_tells_when_it_is_behind_a_stream(capsys: pytest.CaptureFixture[str]) -> None:
    # Given changes of a table, of which the oldest was made a while ago
    clock, handed = FakeClock(), []
    use_case = SimpleNamespace(run=lambda records, **_: handed.append(len(records)))
    engine = SimpleNamespace(
        ports=SimpleNamespace(clock=clock), records=lambda _: use_case, cataloguer=lambda _: use_case
    )
    hub = cast(Pushhub, SimpleNamespace(engine=engine))
    for behind_s, late in ((890, {}), (910, {"WorkLate": 1.0})):
        made_at = clock.now() / 1000 - behind_s
        record = {"eventSourceARN": "arn:aws:dynamodb:us-east-1:1:table/messages/stream/1"}
        records = [{**record, "dynamodb": {"ApproximateCreationDateTime": each}} for each in (made_at + 60, made_at)]
        record_changes(hub, {"Records": records}, Context())
        telemetry.flush()
        assert counted(capsys) == late
    # Then they became records all the same
    assert handed == [2, 2, 2, 2]


@pytest.mark.parametrize(("behind_h", "goes_on"), [(5, False), (7, True)])
def test_records_do_not_wait_for_the_catalogue_until_they_are_lost(
    behind_h: int, goes_on: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given a table of the catalogue that is away, while records can be written
    clock, recorded = FakeClock(), []

    def fails(*_: object, **__: object) -> None:
        raise Unavailable("dynamodb:BatchWriteItem", "ResourceNotFoundException")

    engine = SimpleNamespace(
        ports=SimpleNamespace(clock=clock),
        records=lambda _: SimpleNamespace(run=lambda records, **_: recorded.append(len(records))),
        cataloguer=lambda _: SimpleNamespace(run=fails),
    )
    hub = cast(Pushhub, SimpleNamespace(engine=engine))
    record: dict[str, Any] = {"eventSourceARN": "arn:aws:dynamodb:us-east-1:1:table/messages/stream/1"}
    record |= {"dynamodb": {"ApproximateCreationDateTime": clock.now() / 1000 - behind_h * 3_600}}
    # When a batch comes for some hours, then it comes again until it is catalogued
    if not goes_on:
        with pytest.raises(Unavailable):
            record_changes(hub, {"Records": [record]}, Context())
        telemetry.flush()
        assert counted(capsys) == {"WorkLate": 1.0}
        return
    # And later it is left out, rather than all records behind it with the stream; which an alarm hears of
    assert record_changes(hub, {"Records": [record]}, Context()) == {"batchItemFailures": []}
    telemetry.flush()
    assert counted(capsys) == {"WorkLate": 1.0, "CallsFailing": 1.0}
    assert recorded == [1]


def test_a_report_that_failed_is_counted_as_a_fault_of_the_hub(
    functions: Functions, capsys: pytest.CaptureFixture[str]
) -> None:
    # When EventBridge tells of the end of a run
    event = {"source": "aws.glue", "detail": {"jobName": "report", "jobRunId": "jr_1", "state": "FAILED"}}
    assert as_json(functions.invoke("sweep", event)) == {"swept": 0}
    # Then it is counted, and nothing is swept
    assert counted(capsys) == {"HubFaults": 1.0}
    assert functions.calls == []


def test_a_run_for_a_project_does_that_projects_work_only() -> None:
    done: list[str] = []

    class Work:
        def run_project(self, project_id: str, remaining_ms: Callable[[], int]) -> int:
            done.append(project_id)
            return 3

    def never() -> Any:
        raise AssertionError("a tick")

    engine = SimpleNamespace(protocols=[Protocol(name="p", ticks=(never,), project_work=(Work,))])
    hub = cast(Pushhub, SimpleNamespace(engine=engine))
    assert wake_due(hub, {"project": PROJECT}, Context()) == {"worked": 3}
    assert done == [PROJECT]


def test_a_run_for_a_project_without_tasks_has_all_that_it_needs(functions: Functions) -> None:
    assert functions.invoke("wake", {"project": PROJECT}) == {"worked": 0}
