"""What the hub takes from queues that are not its own: SQS, standard and FIFO, and events of EventBridge."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.fakes import Crash, Fault, FaultPlan
from tests.functions.conftest import Context
from tests.webhooks.world import WebhooksWorld

from pushhub.cloud.settings import MissingSettingError, Settings
from pushhub.engine.bodies import body_of
from pushhub.engine.model.message import MAX_HOPS
from pushhub.engine.model.queue import PushSettings, Queue, QueueType, Subscriber
from pushhub.engine.projects.projects import Projects
from pushhub.runtime.consuming import SETTINGS, consume

QUEUE = "arn:aws:sqs:eu-central-1:123456789012:theirs"
EVENTS = "arn:aws:sqs:eu-central-1:123456789012:events"
TO_QUEUE = f"{PROJECT}/queues/taken in"
URL = "https://a.example/in"


class Consuming(WebhooksWorld):
    """A hub that consumes."""

    def __init__(self, to: str = TO_QUEUE) -> None:
        super().__init__()
        app = self.make_app()
        self.app = app
        self.settings = Settings(
            SETTINGS,
            {
                "CONSUMED_QUEUE": QUEUE,
                "CONSUMED_QUEUE_TO": to.format(app=app),
                "CONSUMED_EVENTS": EVENTS,
                "CONSUMED_EVENTS_TO": to.format(app=app),
            },
        )

    def run_batch(self, *records: dict[str, Any]) -> list[str]:
        """The ids of the messages that have to come again."""
        answer = consume(self.hub, self.settings, {"Records": list(records)}, Context())
        assert answer.keys() == {"batchItemFailures"}
        return [each["itemIdentifier"] for each in answer["batchItemFailures"]]

    def held(self) -> list[str]:
        """What the pull queue has, in its order."""
        queue = self.config.queue(PROJECT, "taken in")
        if queue is None:
            return []
        held = self.pull.peek(PROJECT, queue.pull_uid, count=100, now=self.clock.now())
        return [body_of(each.message, self.bodies).decode() for each in held]

    def listed(self) -> list[dict[str, Any]]:
        """What the application has, oldest first."""
        return list(reversed(self.ask("GET", f"/app/{self.app}/msg")["data"]))


def record(
    body: str,
    number: int,
    *,
    sent: int = 0,
    group: str = "",
    own_id: str = "",
    arn: str = QUEUE,
    **attributes: str,
) -> dict[str, Any]:
    """A message as Lambda gets it; sent at the hub's beginning, and so many milliseconds."""
    fifo = {"MessageGroupId": group, "MessageDeduplicationId": own_id or sha256(body.encode()).hexdigest()}
    return {
        "messageId": f"059f36b4-87a3-44ab-83d2-{number:012d}",
        "receiptHandle": "x",
        "body": body,
        "attributes": {
            "ApproximateReceiveCount": "1",
            "SentTimestamp": str(1_795_000_000_000 + sent),
            **(fifo if group else {}),
        },
        "messageAttributes": {
            name.replace("_", "-"): {"stringValue": value, "dataType": "String"} for name, value in attributes.items()
        },
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": "eu-central-1",
    }


def bus_event(event_id: str, **changed: object) -> str:
    """An event as EventBridge writes it."""
    return json.dumps(
        {
            "version": "0",
            "id": event_id,
            "detail-type": "EC2 Instance State-change Notification",
            "source": "aws.ec2",
            "account": "123456789012",
            "time": "2026-11-18T11:06:39Z",
            "region": "eu-central-1",
            "resources": [],
            "detail": {"state": "terminated"},
            **changed,
        }
    )


@pytest.mark.parametrize("to", [TO_QUEUE, PROJECT + "/applications/{app}"])
def test_messages_are_taken_in_byte_for_byte_and_each_once(to: str) -> None:
    # Given a hub that consumes a queue
    world = Consuming(to)
    records = [record('{"a": 1.10,  "b": "é"}', 1), record("no JSON", 2, sent=1)]
    # When a batch comes, and, as SQS may do, again
    assert world.run_batch(*records) == []
    world.clock.advance(seconds=60)
    assert world.run_batch(*records, record("x", 3, sent=2)) == []
    # Then each message is there once, as it was sent
    wanted = ['{"a": 1.10,  "b": "é"}', "no JSON", "x"]
    if "queues" in to:
        assert world.held() == wanted
    else:
        assert [each["eventType"] for each in world.listed()] == ["consumed"] * 3
        stored = {body_of(each, world.bodies).decode() for each in world.messages.all_messages()}
        assert stored == set(wanted)


def test_attributes_say_what_a_message_is_about_and_which_trace_it_belongs_to() -> None:
    world = Consuming(PROJECT + "/applications/{app}")
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert world.run_batch(record("{}", 1, webhook_event_type="invoice paid", traceparent=trace)) == []
    [message] = world.messages.all_messages()
    assert world.listed()[0]["eventType"] == "invoice.paid"
    assert message.trace is not None
    assert message.trace.trace_id == "0af7651916cd43dd8448eb211c80319c"


def test_what_cannot_be_taken_in_comes_again_and_the_others_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    # Given a batch in which one message has gone round in circles
    world = Consuming()
    looped = record("round", 2, Pushhub_Hops=str(MAX_HOPS))
    # Then it alone comes again, so that its own queue sets it aside in the end
    assert world.run_batch(record("a", 1), looped, record("b", 3, sent=1)) == [looped["messageId"]]
    assert world.held() == ["a", "b"]
    # And the log says which and why
    shown = json.loads(capsys.readouterr().out.splitlines()[0])
    assert shown["sqs_id"] == looped["messageId"]
    assert shown["reason"] == "it has passed 10 queues; taken for a loop"


@pytest.mark.parametrize(
    "to",
    ["5f00000000000000000000ff/queues/q", PROJECT + "/applications/nobody", "5f00000000000000000000ff/applications/a"],
)
def test_nothing_is_lost_that_goes_nowhere(to: str) -> None:
    world = Consuming(to)
    assert len(world.run_batch(record("a", 1), record("b", 2))) == 2


def test_a_suspended_project_takes_nothing() -> None:
    world = Consuming()
    Projects(config=world.config, clock=world.clock).suspend(PROJECT)
    world.clock.advance(seconds=5)
    assert len(world.run_batch(record("a", 1))) == 1


def test_messages_of_another_queue_are_not_taken_for_those_of_this_one() -> None:
    world = Consuming()
    world.settings = Settings(SETTINGS, {"CONSUMED_EVENTS": EVENTS, "CONSUMED_EVENTS_TO": TO_QUEUE})
    assert len(world.run_batch(record("a", 1))) == 1


@pytest.mark.parametrize("to", ["queues/x", "p/topics/x", "p/queues/", "a b/queues/c"])
def test_a_destination_that_is_none_is_told_when_the_function_starts(to: str) -> None:
    with pytest.raises(MissingSettingError, match="CONSUMED_QUEUE_TO"):
        Settings(SETTINGS, {"CONSUMED_QUEUE_TO": to})


def test_groups_become_ordering_keys_and_wait_behind_what_failed() -> None:
    # Given a push queue, and a batch of two groups; the first message of one of them is refused
    world = Consuming(f"{PROJECT}/queues/pushed")
    world.config.create_queue(a_push_queue())
    batch = [
        record("a1", 1, group="a", Pushhub_Hops=str(MAX_HOPS)),
        record("b1", 2, group="b"),
        record("a2", 3, group="a"),
        record("b2", 4, group="b"),
    ]
    # When it comes
    kept = world.run_batch(*batch)
    # Then all of that group come again, in order, and the other one has its order as an ordering key
    assert kept == [batch[0]["messageId"], batch[2]["messageId"]]
    ordered = sorted(world.messages.all_messages(), key=lambda each: each.ordering.sequence if each.ordering else 0)
    assert [(each.ordering.key, each.ordering.sequence) for each in ordered if each.ordering] == [("b", 1), ("b", 2)]
    assert [body_of(each, world.bodies) for each in ordered] == [b"b1", b"b2"]


def test_the_id_that_a_fifo_queues_sender_gave_is_its_id_unless_it_is_made_of_the_body() -> None:
    # Given an application
    world = Consuming(PROJECT + "/applications/{app}")
    # When a sender repeats a message under its own id, hours later, when SQS no longer knows it
    for number in (1, 2):
        assert world.run_batch(record("{}", number, group="g", own_id="order-7", sent=number)) == []
    assert len(world.listed()) == 1
    # Then the same id in another group is another message, and so is the same body another day
    assert world.run_batch(record("{}", 3, group="h", own_id="order-7")) == []
    for number in (4, 5):
        assert world.run_batch(record("{}", number, group="g")) == []
    assert len(world.listed()) == 4


@pytest.mark.parametrize("to", [TO_QUEUE, PROJECT + "/applications/{app}"])
def test_an_event_of_eventbridge_comes_once_by_its_id(to: str) -> None:
    # Given events of a bus, one of which the bus delivers twice
    world = Consuming(to)
    one, two = bus_event("6a7e8feb-b491-4cf7-a9f1-bf3703467718"), bus_event("7f0d1d3c-0000-4000-8000-000000000000")
    records = [record(one, 1, arn=EVENTS), record(two, 2, arn=EVENTS), record(one, 3, arn=EVENTS, sent=9_000)]
    assert world.run_batch(*records) == []
    if "queues" in to:
        assert sorted(world.held()) == sorted([one, two])
    else:
        assert [each["eventType"] for each in world.listed()] == ["EC2.Instance.State-change.Notification"] * 2


@pytest.mark.parametrize(
    "body", ["", "{", "[]", "7", "{}", bus_event(""), bus_event("1", time="yesterday"), bus_event("1", id=7), "[" * 200]
)
def test_what_is_no_event_goes_to_its_queues_dead_letters(body: str) -> None:
    world = Consuming()
    assert world.run_batch(record(body, 1, arn=EVENTS), record(bus_event("1"), 2, arn=EVENTS)) == [
        record(body, 1)["messageId"]
    ]
    assert len(world.held()) == 1


def a_push_queue() -> Queue:
    return Queue(
        project=PROJECT,
        name="pushed",
        uid="aaaaaaaaaaaa",
        pull_uid="bbbbbbbbbbbb",
        type=QueueType.MULTICAST,
        push=PushSettings(subscribers=(Subscriber(subscriber_id="s0", name="shop", url=URL),)),
        secret="5ec3e7",
        created_at=1,
    )


def _redelivered(world: Consuming, records: list[dict[str, Any]]) -> None:
    """What SQS does: a batch comes until nothing of it is kept, in the order of its groups."""
    left = records
    for _ in range(5):
        try:
            kept = set(world.run_batch(*left))
        except Crash:
            world.__dict__.pop("hub", None)
            continue
        left = [each for each in left if each["messageId"] in kept]
        if not left:
            return
    pytest.fail("It is never taken in")


def _with_plan(to: str, plan: FaultPlan, setup: Callable[[Consuming], None]) -> Consuming:
    world = Consuming(to)
    setup(world)
    world.plan = plan
    world.__dict__.pop("hub", None)
    return world


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("to", [f"{PROJECT}/queues/pushed", PROJECT + "/applications/{app}"])
def test_nothing_is_lost_doubled_or_out_of_order_whatever_call_goes_wrong(to: str, fault: Fault) -> None:
    records = [
        record(f"{key}{number}", 10 * number + at, group=key, sent=number, own_id=f"{key}{number}")
        for number in range(3)
        for at, key in enumerate("ab")
    ]

    def setup(world: Consuming) -> None:
        world.config.create_queue(a_push_queue())

    learned = FaultPlan()
    _redelivered(_with_plan(to, learned, setup), records)
    for number in range(1, len(learned.calls) + 1):
        plan = FaultPlan(fault, at=number)
        world = _with_plan(to, plan, setup)
        _redelivered(world, records)
        found = defaultdict(list)
        for each in sorted(world.messages.all_messages(), key=lambda one: one.ordering.sequence if one.ordering else 0):
            assert each.ordering is not None
            found[each.ordering.key].append(body_of(each, world.bodies).decode())
        assert found == {"a": ["a0", "a1", "a2"], "b": ["b0", "b1", "b2"]}, (number, plan.calls)
