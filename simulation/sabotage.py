"""Real defects, put back one at a time to see whether the simulator finds them: ``python -m simulation.sabotage``.

Each is a small change of the hub's code for the length of a run. Some are defects that the hub once had and that were
found from outside; the others are those that its design is meant to avoid.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from pushhub.base.errors import Conflict, Unavailable
from pushhub.base.ids import derived_message_id
from pushhub.base.verdict import Verdict
from pushhub.cloud.table import Table
from pushhub.engine import accept, circuits, copies, deliver, dispatch, push, sweep
from pushhub.engine.circuits import Circuits, Gate
from pushhub.engine.deliver import Deliver
from pushhub.engine.in_hand import InHand
from pushhub.engine.model.answer_rules import AnswerRules
from pushhub.engine.model.circuit import CircuitState, Health
from pushhub.engine.model.delivery import Delivery, DeliveryState, after_asked_try
from pushhub.engine.model.message import Message, Ordering
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.model.work import pack as pack_orders
from pushhub.engine.resend import Resend
from pushhub.engine.store import _queue_items, sqs_work
from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore
from pushhub.engine.store.dynamodb_messages import DynamoDBMessageStore
from pushhub.engine.store.dynamodb_subscribers import DynamoDBSubscribers
from pushhub.engine.store.s3_records import S3RecordStore
from pushhub.engine.store.sqs_work import SqsWorkQueue
from pushhub.engine.sweep import Sweep
from pushhub.ironmq import error_queue, post
from pushhub.notifications.store.dynamodb_backlogs import DynamoDBConnectionStore
from pushhub.notifications.store.dynamodb_topics import DynamoDBTopicStore
from pushhub.runtime import engine as runtime_engine
from pushhub.webhooks import queues as webhooks_queues
from simulation import pull_defects, tenant_defects
from simulation.promises import quotas, tasks
from simulation.run import Plan, Result, simulate

Change = tuple[object, str, object]

HOURS = 2.0


@dataclass(frozen=True)
class Sabotage:
    """A defect.

    Attributes:
        name: Its name.
        told: What is wrong, in a sentence.
        changes: Module or class, attribute, and its replacement.
        world: The world in which it shows.
        seed: A seed that finds it.
        found_by: Rules that it breaks there, at least one of which is reported.
        rate: Posts per hour of each producer.
        calm: Whether it is looked for while nothing else goes wrong.
        hours: Hours of traffic.
        only: Names of the storms and actors that take part; None for all.
    """

    name: str
    told: str
    changes: Callable[[], Sequence[Change]]
    world: str
    seed: int
    found_by: tuple[str, ...]
    rate: float = 12.0
    calm: bool = False
    hours: float = HOURS
    only: frozenset[str] | None = None

    @contextmanager
    def installed(self) -> Iterator[None]:
        """The hub with the defect."""
        patches = [patch.object(target, name, value) for target, name, value in self.changes()]
        for each in patches:
            each.start()
        try:
            yield
        finally:
            for each in patches:
                each.stop()


def _acknowledgement_lost() -> Sequence[Change]:
    real = DynamoDBMessageStore.save

    def save(self: DynamoDBMessageStore, delivery: Delivery) -> None:
        try:
            real(self, delivery)
        except Conflict:
            if delivery.state is not DeliveryState.ACKNOWLEDGED:
                raise

    return [(DynamoDBMessageStore, "save", save)]


def _unconditional() -> Sequence[Change]:
    real = Table.put

    def put(self: Table, item: Any, **condition: Any) -> None:
        if condition.get("ConditionExpression") == "#version = :before":
            condition = {}
        real(self, item, **condition)

    return [(Table, "put", put)]


def _ingest_alone() -> Sequence[Change]:
    real = dispatch.Dispatch._send

    def send(self: Any, at_once: Any, to_route: Any, later: Any, again: Any) -> None:  # noqa: ARG001
        real(self, at_once, to_route, later, {})

    return [(dispatch.Dispatch, "_send", send)]


def _undone_forgotten() -> Sequence[Change]:
    def get_many(self: Any, keys: Sequence[Any]) -> list[Any]:
        if not keys:
            return []
        asked = {self._name: {"Keys": list(keys), "ConsistentRead": True}}
        found: list[Any] = self._client.batch_get_item(RequestItems=asked)["Responses"].get(self._name, [])
        return found

    return [(Table, "get_many", get_many)]


def _one_for_each_message() -> Sequence[Change]:
    real = pack_orders

    def pack(orders: Sequence[WorkOrder]) -> Any:
        return real(
            list(
                {each.key[2] if isinstance(each.key, tuple) else each.key.message_id: each for each in orders}.values()
            )
        )

    return [(sqs_work, "pack", pack)]


def _failed_entries_forgotten() -> Sequence[Change]:
    def send_batch(self: Any, batch: list[Any]) -> None:
        self._client.send_message_batch(QueueUrl=self._url, Entries=batch)

    return [(SqsWorkQueue, "_send_batch", send_batch)]


def _dispatched_perhaps() -> Sequence[Change]:
    real = SqsWorkQueue.send_packed

    def send_packed(self: SqsWorkQueue, orders: Sequence[WorkOrder], delay_s: int = 0) -> None:
        try:
            real(self, orders, delay_s)
        except Exception:  # noqa: BLE001 (the defect)
            return

    return [(SqsWorkQueue, "send_packed", send_packed)]


def _records_swallowed() -> Sequence[Change]:
    real = S3RecordStore.write

    def write(self: S3RecordStore, *args: Any, **more: Any) -> bool:
        try:
            return real(self, *args, **more)
        except Unavailable:
            return False

    return [(S3RecordStore, "write", write)]


def _ids_drawn() -> Sequence[Change]:
    numbers = itertools.count()

    def drawn(at_ms: int, cause: str, bump: int = 0) -> str:
        return derived_message_id(at_ms, f"{cause}/{next(numbers)}", bump)

    return [(accept, "derived_message_id", drawn)]


def _acknowledgements_forgotten() -> Sequence[Change]:
    real = DynamoDBConnectionStore.acknowledge
    numbers = itertools.count()

    def acknowledge(self: Any, connection_id: str, positions: Any, *, shared: bool) -> Any:
        return real(self, connection_id, positions if next(numbers) % 10 else {0}, shared=shared)

    return [(DynamoDBConnectionStore, "acknowledge", acknowledge)]


def _repeats_taken() -> Sequence[Change]:
    real = DynamoDBTopicStore.append

    def append(self: DynamoDBTopicStore, commit: Any, part: Any = None) -> None:  # noqa: ARG001 (the defect)
        real(self, commit)

    return [(DynamoDBTopicStore, "append", append)]


def _anybody_s() -> Sequence[Change]:
    real = Table.update

    def update(self: Table, key: Any, **update: Any) -> Any:
        if update.get("ConditionExpression") == "place = :seen":
            update["ConditionExpression"] = "attribute_exists(pk)"
            update["ExpressionAttributeValues"] = {
                name: value for name, value in update["ExpressionAttributeValues"].items() if name != ":seen"
            }
        return real(self, key, **update)

    return [(Table, "update", update)]


def _nobody_waits_behind() -> Sequence[Change]:
    return [(Deliver, "_must_wait_behind", lambda *_: False)]


def _one_key() -> Sequence[Change]:
    return [(post, "Ordering", lambda *, key: Ordering(key="all"))]


def _probes_at_any_time() -> Sequence[Change]:
    def claimed(health: Health, now: int, *, for_ms: int, claim: str = "") -> Health | None:
        if health.state is not CircuitState.OPEN:
            return None
        return replace(health, probe_at=now + for_ms, claim=claim, version=health.version + 1)

    return [(circuits, "claimed", claimed)]


def _never_open() -> Sequence[Change]:
    return [(Circuits, "gate", lambda *_, **__: Gate.GO)]


def _anybodys_turn() -> Sequence[Change]:
    real = DynamoDBSubscribers.take_turn

    def take_turn(store: DynamoDBSubscribers, *given: Any, now: int, until: int) -> Any:
        del now
        return real(store, *given, now=10**15, until=until)

    return [(DynamoDBSubscribers, "take_turn", take_turn)]


def _not_disabled() -> Sequence[Change]:
    real = webhooks_queues.subscriber_of

    def subscriber_of(*given: Any) -> Any:
        return replace(real(*given), disabled=False)

    return [(webhooks_queues, "subscriber_of", subscriber_of)]


def _rate_only_stored() -> Sequence[Change]:
    real = webhooks_queues.subscriber_of

    def subscriber_of(*given: Any) -> Any:
        return replace(real(*given), limits=None)

    return [(webhooks_queues, "subscriber_of", subscriber_of)]


def _one_try_ends_all() -> Sequence[Change]:
    def ended(delivery: Delivery, answer: Any, verdict: Verdict, **more: Any) -> Delivery:
        tried = after_asked_try(delivery, answer, verdict, **more)
        if verdict is Verdict.DELIVERED or tried.settled:
            return tried
        return replace(tried, state=DeliveryState.EXHAUSTED, due_at=None, settled_at=answer.finished_at)

    return [(deliver, "after_asked_try", ended)]


def _asked_and_not_queued() -> Sequence[Change]:
    real = Resend.ask

    def ask(self: Resend, message: Message, subscriber_id: str) -> Delivery:
        nowhere: Any = _Nowhere()
        with patch.object(self, "_retry_queue", nowhere):
            return real(self, message, subscriber_id)

    return [(Resend, "ask", ask)]


class _Nowhere:
    """A queue that swallows its orders."""

    def send(self, orders: object) -> None:
        """Discard them."""


def _clears_unheard() -> Sequence[Change]:
    real = _queue_items.decode_queue

    def decode_queue(*given: Any) -> Any:
        return replace(real(*given), cleared_at=0)

    return [(_queue_items, "decode_queue", decode_queue)]


def _stale_queues() -> Sequence[Change]:
    real = DynamoDBConfigStore.queue

    def queue(self: DynamoDBConfigStore, project_id: str, name: str, *, fresh: bool = False) -> Any:  # noqa: ARG001 (the defect)
        return real(self, project_id, name)

    return [(DynamoDBConfigStore, "queue", queue)]


def _pull(name: str, changes: Callable[[], Sequence[Change]], rule: str) -> Sabotage:
    """A defect of pull queues, which shows in a short run."""
    told = (changes.__doc__ or "").rstrip(".")
    return Sabotage(name, told[:1].lower() + told[1:], changes, "pull", 1, (rule,), hours=1.0)


def _tenants(name: str, changes: Callable[[], Sequence[Change]], rule: str, who: str) -> Sabotage:
    """A defect of quotas and tasks, which shows in a quarter of an hour without storms."""
    told, only = (changes.__doc__ or "").rstrip("."), frozenset({who})
    told = told[:1].lower() + told[1:]
    return Sabotage(name, told, changes, "tenants", 1, (rule,), rate=120.0, calm=True, hours=0.25, only=only)


LOST = ("lost without a reason", "never ended")

ORDER = ("out of order", "a place left out", "two at one place")

BEGAN_ANEW = ("began anew", "ended twice", "an error message too many", "an error message is missing")

ALL: tuple[Sabotage, ...] = (
    Sabotage(
        "orders wear out",
        (
            "an order that waits often travels in one SQS message until the dead-letter queue takes it (found by "
            "outsiders)"
        ),
        lambda: [(push, "FRESH_AFTER_RECEIVES", 10**9)],
        "ironmq",
        2,
        ("dead letter without a fault",),
    ),
    Sabotage(
        "no sweeper",
        "nothing looks for work that fell out of the queues (found by outsiders)",
        lambda: [(Sweep, "run", lambda *_: 0)],
        "ironmq",
        63,
        ("never ended",),
    ),
    Sabotage(
        "begun anew",
        (
            "the sweeper takes a delivery that ended, and went by its time to live before its message did, for one "
            "never tried (found by this simulator)"
        ),
        lambda: [(sweep, "KEPT_AFTER_EXPIRY_MS", 10**12)],
        "ironmq",
        63,
        BEGAN_ANEW,
    ),
    Sabotage(
        "the expired vanish",
        "a message that expires while it is tried reaches no error queue (found by outsiders)",
        lambda: [(error_queue, "GIVEN_UP", frozenset({DeliveryState.EXHAUSTED}))],
        "ironmq",
        4,
        ("an error message is missing",),
    ),
    Sabotage(
        "an acknowledgement is lost",
        "an acknowledgement that meets the record of its own attempt is answered and not written",
        _acknowledgement_lost,
        "ironmq",
        272,
        ("asked after its end",),
    ),
    Sabotage(
        "writes without condition",
        "what somebody else wrote meanwhile is written over",
        _unconditional,
        "ironmq",
        1,
        (
            "asked after its end",
            "ended twice",
            "record missing",
            "record told twice differently",
        ),
    ),
    Sabotage(
        "keys left undone",
        "what DynamoDB leaves unprocessed of a batch counts as not there",
        _undone_forgotten,
        "ironmq",
        1,
        ("asked after its end", "asked before its time"),
    ),
    Sabotage(
        "one order for each message",
        "of the deliveries of a message that are queued together only the last is",
        _one_for_each_message,
        "ironmq",
        1,
        LOST,
    ),
    Sabotage(
        "entries that failed",
        "what SQS leaves undone of a batch is not sent again",
        _failed_entries_forgotten,
        "ironmq",
        1,
        LOST,
    ),
    Sabotage(
        "dispatched perhaps",
        "dispatch takes a batch of the stream for done although it could not queue it",
        _dispatched_perhaps,
        "ironmq",
        253,
        LOST,
    ),
    Sabotage(
        "all done",
        "the answer to a batch names nothing that is to be kept, so SQS deletes what waits",
        lambda: [(runtime_engine, "failures", lambda _: {"batchItemFailures": []})],
        "ironmq",
        1,
        LOST,
    ),
    Sabotage(
        "records swallowed",
        "delivery records that cannot be written are left out",
        _records_swallowed,
        "ironmq",
        3,
        ("record missing", "records differ", "never accepted", "acceptance not recorded"),
    ),
    Sabotage(
        "long waits in flight",
        "waits are visibility timeouts however long they are, so that a long outage fills what SQS lets be in flight",
        lambda: [(push, "HIDDEN_WAIT_MS", 10**9)],
        "ironmq",
        1,
        ("a long wait in flight", "too many in flight"),
    ),
    Sabotage(
        "a dead run's orders are forgotten",
        "a run leaves it to the queue how long its messages are hidden",
        lambda: [(InHand, "keep_hidden", lambda *_: set())],
        "hub",
        266,
        ("what a dead run had in hand",),
    ),
    Sabotage(
        "nobody waits behind",
        "a message is sent although the one before it, of the same ordering key, has not ended",
        _nobody_waits_behind,
        "policies",
        29,
        ORDER,
    ),
    Sabotage(
        "both go on",
        "a message that waited in line goes on by itself although the one before it has sent it on",
        lambda: [(DynamoDBSubscribers, "take", lambda *_, **__: True)],
        "policies",
        1,
        ("asked twice at once", "asked after its end", "asked before its time"),
        calm=True,
    ),
    Sabotage(
        "the stream as eager",
        "the stream's orders for eager messages come at once, beside ingest's",
        lambda: [(dispatch, "first_order", WorkOrder.carrying)],
        "ironmq",
        1,
        ("asked twice at once", "asked after its end", "asked before its time"),
        rate=60.0,
        calm=True,
        hours=0.25,
    ),
    Sabotage(
        "ingest alone",
        "the stream sends no orders for eager messages, whose ingest may have died",
        _ingest_alone,
        "ironmq",
        37,
        ("lost without a reason",),
    ),
    Sabotage(
        "one key for all",
        "messages of all ordering keys wait for each other",
        _one_key,
        "policies",
        29,
        ("held up",),
    ),
    Sabotage(
        "who ends tells nobody",
        "a delivery that ends does not look who waits behind it",
        lambda: [(Deliver, "_let_next_go", lambda *_: None)],
        "policies",
        29,
        ("held up", *LOST),
    ),
    Sabotage(
        "the gate stands open",
        "what is owed to a subscriber whose circuit is open is tried all the same",
        _never_open,
        "policies",
        29,
        ("asked while its circuit was open", "two probes at a time"),
    ),
    Sabotage(
        "probes at any time",
        "a subscriber with an open circuit is probed whether or not a probe is due",
        _probes_at_any_time,
        "policies",
        29,
        ("probed before its time", "two probes at a time"),
    ),
    Sabotage(
        "given up instead of put aside",
        "what is owed to a subscriber whose circuit is open is given up without a place in its list",
        lambda: [(DynamoDBSubscribers, "add", lambda *_: None)],
        "policies",
        29,
        LOST,
    ),
    Sabotage(
        "a flood instead of a ramp",
        "when a subscriber is back, all that waited is let go at once",
        lambda: [(Health, "release", property(lambda _: 5_000))],
        "policies",
        29,
        ("more let go than its ramp allows",),
    ),
    Sabotage(
        "Retry-After in vain",
        "what an answer asks to wait is not waited",
        lambda: [(AnswerRules, "_retry_after_ms", lambda *_: 0)],
        "policies",
        29,
        ("asked before its time",),
    ),
    Sabotage(
        "limits of one's own",
        "each run takes a subscriber's turn, whoever has it",
        _anybodys_turn,
        "policies",
        29,
        ("too many at a time",),
    ),
    Sabotage(
        "410 is an error like any other",
        "an endpoint that is gone is not disabled",
        lambda: [(Deliver, "_disable", lambda *_: None)],
        "webhooks",
        28,
        ("given up too soon",),
    ),
    Sabotage(
        "disabled and sent to",
        "what is owed to an endpoint that was disabled is sent all the same",
        _not_disabled,
        "webhooks",
        19,
        ("sent to a disabled endpoint",),
    ),
    Sabotage(
        "a rate that is only stored",
        "an endpoint's throttleRate is shown and not kept to (found in another server)",
        _rate_only_stored,
        "webhooks",
        17,
        ("too often",),
    ),
    Sabotage(
        "one try ends all",
        "a try by hand that fails ends the automatic tries (found in another server)",
        _one_try_ends_all,
        "webhooks",
        17,
        ("given up too soon",),
    ),
    Sabotage(
        "asked for and not queued",
        "a message is to be sent again, and its order is not queued",
        _asked_and_not_queued,
        "webhooks",
        17,
        ("sent again in vain", *LOST),
    ),
    Sabotage(
        "clears unheard",
        "what its owner cleared of a push queue is delivered all the same",
        _clears_unheard,
        "ironmq",
        1,
        ("asked after its owner took it back",),
    ),
    Sabotage(
        "a stale copy",
        "attempts ask only twice a minute whether their queue has changed, and go by a copy of it until then",
        lambda: [(copies, "NOTES_MS", copies.KEPT_MS)],
        "ironmq",
        1,
        ("asked the old way", "asked after its owner took it back"),
    ),
    Sabotage(
        "changes unnoted",
        "what its owner changes is not noted, so that attempts hear of it when their copy is too old",
        lambda: [(copies.ChangeNotes, "note", lambda *_: None)],
        "ironmq",
        1,
        ("asked the old way", "asked after its owner took it back"),
    ),
    Sabotage(
        "a memory of the queue",
        "who posts goes by what was remembered of the queue: what comes after a clear is cleared with the rest",
        _stale_queues,
        "pull",
        37,
        ("there and not handed out", "handed out after it was cleared"),
    ),
    Sabotage(
        "ids are drawn",
        "what the hub makes itself gets a new id each time it is made",
        _ids_drawn,
        "hub",
        1,
        ("copies", "a child twice"),
    ),
    Sabotage(
        "anybody's message",
        "a consumer takes a message that another has just reserved",
        _anybody_s,
        "pull",
        255,
        ("reserved by two",),
        rate=30.0,
    ),
    _pull("a place forgotten", pull_defects.one_forgotten, "there and not handed out"),
    _pull("delays in vain", pull_defects.no_delay, "handed out too early"),
    _pull("counted from two", pull_defects.counted_from_two, "reserved_count"),
    _pull("reserved for ever", pull_defects.never_back, "there and not handed out"),
    _pull("dead one early", pull_defects.dead_one_early, "a dead letter too early"),
    _pull("dead never", pull_defects.dead_never, "handed out too often"),
    _pull("dead and lost", pull_defects.dead_are_lost, "a dead letter is missing"),
    _pull("cut at 8 KiB", pull_defects.cut, "other bytes than were posted"),
    _pull("another's body", pull_defects.anothers_body, "other bytes than were posted"),
    _pull("released at once", pull_defects.released_at_once, "handed out too early"),
    _pull("old reservations count", pull_defects.old_reservations_count, "a reservation that was over counts"),
    _pull("deleted in vain", pull_defects.some_deletions_in_vain, "handed out after it was deleted"),
    _pull("the second first", pull_defects.the_second_first, "there and not handed out"),
    _tenants(
        "a batch is its burst",
        tenant_defects.a_batch_is_its_burst,
        quotas.TOO_MUCH,
        "producers of larger than the burst",
    ),
    _tenants("paid for twice", tenant_defects.paid_for_twice, quotas.TOO_LITTLE, "producers of singles"),
    _tenants("one turn for all", tenant_defects.one_turn_for_all, tasks.WAITED, "owners"),
    _tenants("keys of tasks in vain", tenant_defects.keys_of_tasks_in_vain, tasks.TWO_TASKS, "owners"),
    Sabotage(
        "acknowledgements forgotten",
        "one of ten acknowledgements of notifications is not noted",
        _acknowledgements_forgotten,
        "notifications",
        1,
        ("sent after its acknowledgement",),
    ),
    Sabotage(
        "repeats are taken",
        "a publish request that is repeated under its key is taken again",
        _repeats_taken,
        "notifications",
        156,
        ("published twice",),
    ),
)


def found(sabotage: Sabotage, seed: int) -> tuple[Result, list[str]]:
    """A run with the defect, and those of its rules that were broken, in the order in which they were found."""
    with sabotage.installed():
        result = simulate(Plan(seed, sabotage.world, sabotage.hours, sabotage.rate, sabotage.only, sabotage.calm))
    return result, [*dict.fromkeys(each.rule for each in result.violations if each.rule in sabotage.found_by)]


def main(arguments: Sequence[str]) -> int:
    """Look for each defect, starting from its seed, and print the table of docs/simulation.md; returns 1 when one is
    not found.
    """
    parser = argparse.ArgumentParser(prog="python -m simulation.sabotage", description=__doc__)
    parser.add_argument("--most", type=int, default=20, help="seeds to try for each")
    parser.add_argument("--only", default="", help="those to look for, by name, with commas between; all if empty")
    given = parser.parse_args(arguments)
    missed = 0
    print(
        "| defect | world | seed | seeds tried | simulated hours | seconds of CPU | rules broken, the first one "
        "first |\n|---|---|---|---|---|---|---|"
    )
    for sabotage in ALL:
        if given.only and sabotage.name not in given.only.split(","):
            continue
        began, hours = time.process_time(), 0.0
        for tried in range(1, given.most + 1):
            seed = sabotage.seed + tried - 1
            result, rules = found(sabotage, seed)
            hours += result.simulated_hours
            if rules:
                break
        else:
            missed += 1
            others = sorted({each.rule for each in result.violations})
            rules = [f"not found; {others}"]
        seconds = time.process_time() - began
        print(
            (
                f"| {sabotage.name}: {sabotage.told} | {sabotage.world} | {seed} | {tried} | {hours:.0f} | "
                f"{seconds:.0f} | {', '.join(rules)} |"
            ),
            flush=True,
        )
    return 1 if missed else 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        again = [sys.executable, "-m", "simulation.sabotage", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": "0"})  # noqa: S606 (this very program)
    sys.exit(main(sys.argv[1:]))
