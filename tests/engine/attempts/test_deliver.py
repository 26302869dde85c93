"""One delivery: what is attempted, written and logged, and what follows; with in-memory stores."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.contract.samples import message
from tests.fakes import FakeClock, FakeWorkQueue, FaultPlan, faulty
from tests.fakes.body_store import FakeBodyStore
from tests.fakes.credentials import credentials
from tests.fakes.message_store import FakeMessageStore
from tests.fakes.schedule import FakeSchedule
from tests.fakes.subscribers import FakeSubscribers
from tests.fakes.telemetry import FakeTelemetry

from pushhub.base.errors import Conflict, Unavailable
from pushhub.base.verdict import Answer, Verdict
from pushhub.engine.attempts.admission import PROBE_MARGIN_MS, Admission
from pushhub.engine.attempts.circuits import Gate
from pushhub.engine.attempts.deliver import Deliver, Requests
from pushhub.engine.attempts.delivery_news import DeliveryNews
from pushhub.engine.attempts.in_order import InOrder
from pushhub.engine.attempts.job import DEADLINE_MARGIN_MS, MayAsk
from pushhub.engine.model.answer_rules import STANDARD_RULES, Asked, Stops
from pushhub.engine.model.backoff import MAX_DELAY_MS, Exponential, FixedDelay
from pushhub.engine.model.circuit import Circuit, SubscriberKey
from pushhub.engine.model.delivery import Delivery, DeliveryState, added, opening
from pushhub.engine.model.flow import SHORT_ATTEMPT_MS, Limits, Terms
from pushhub.engine.model.following import Follow, Following
from pushhub.engine.model.message import BodyRef, Message, Ordering
from pushhub.engine.model.queue import PushSettings, Queue, QueueType, Subscriber
from pushhub.engine.model.received import Loaded, Received
from pushhub.engine.model.subscriber_event import SubscriberEvent, SubscriberEventKind
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.target import Outcome, PushOrder

START = FakeClock().now()
LIFE_MS = 10 * 86_400_000
IDENTITY = {"project": "p", "queue": "q", "message_id": "7", "subscriber_id": "a"}


def a_subscriber(subscriber_id: str = "a", **more: object) -> Subscriber:
    fields: dict[str, object] = {"name": subscriber_id.upper(), "url": f"test://{subscriber_id}", "timeout_s": 10}
    return Subscriber(subscriber_id=subscriber_id, **fields | more)  # type: ignore[arg-type]


def a_message(*subscribers: str, **more: object) -> Message:
    fields: dict[str, object] = {
        **{"project": "p", "queue": "q", "queue_uid": "u", "message_id": "7", "body": b"x"},
        "accepted_at": START - 1000,
        "expires_at": START + LIFE_MS,
        "subscriber_ids": subscribers or ("a",),
    }
    return message(**fields | more)


class Bench:
    """The surroundings of a delivery: acts as its queues, its target, its circuits and its watchers."""

    dialect = "tested"

    def __init__(self, *subscribers: Subscriber, plan: FaultPlan | None = None, **push: object) -> None:
        self.clock = FakeClock()
        self.clock.jitter_value = 0.5
        self.telemetry = FakeTelemetry()
        self.schedule = FakeSchedule(self.clock)
        self.messages = FakeMessageStore(self.schedule)
        self.bodies = FakeBodyStore()
        self.subscribers = FakeSubscribers()
        self.next_queue = FakeWorkQueue(self.clock)
        self.plan = plan or FaultPlan()
        settings: dict[str, object] = {"retries": 2, "retries_delay": 60}
        self.settings = PushSettings(subscribers=subscribers or (a_subscriber(),), **settings | push)  # type: ignore[arg-type]
        self.now_stored: Queue | None = Queue(
            project="p",
            name="q",
            uid="u",
            pull_uid="l",
            type=QueueType.MULTICAST,
            push=self.settings,
            secret="s",
            created_at=START - 10**6,
        )
        self.remembered: Queue | None = self.now_stored
        self.asked_since: list[int | None] = []
        self.outcomes: list[Outcome] = []
        self.orders: list[PushOrder] = []
        self.meanwhile: Callable[[], None] | None = None
        self.let_in = Gate.GO
        self.gates: list[tuple[SubscriberKey, int]] = []
        self.learned: list[tuple[SubscriberKey, Circuit, bool, bool]] = []
        self.started_over: list[SubscriberKey] = []
        self.whole = Following(Follow.NOTHING)
        self.endings: list[tuple[str, Message, Delivery]] = []
        self.happenings: list[tuple[str, SubscriberEvent]] = []
        messages = faulty(self.messages, "messages", self.plan)
        in_order = InOrder(
            messages=messages, successors=self.subscribers, next_queue=self.next_queue, telemetry=self.telemetry
        )
        self.deliver_ = Deliver(
            queues=self,
            messages=messages,
            requests=Requests(targets=self, credentials=credentials(), bodies=self.bodies),  # type: ignore[arg-type]
            admission=Admission(
                circuits=self,  # type: ignore[arg-type]
                backlog=self.subscribers,
                projects=self,
                internal=lambda _: False,
                in_order=in_order,
                clock=self.clock,
                telemetry=self.telemetry,
            ),
            news=DeliveryNews(
                watchers=lambda name: [_Watcher(self, name)],
                subscriber_events=lambda name: [_Watcher(self, name)],
                in_order=in_order,
                telemetry=self.telemetry,
            ),
            projects=self,
            clock=self.clock,
            telemetry=self.telemetry,
        )

    # its projects
    def is_suspended(self, project_id: str, *, since: int) -> bool:
        return False

    def exports_spans(self, project_id: str) -> bool:
        return False

    # its queues
    def queue(self, project_id: str, name: str, *, since: int | None = None) -> Queue | None:
        assert (project_id, name) == ("p", "q")
        self.asked_since.append(since)
        return self.now_stored if since is None else self.remembered

    # its target
    def of(self, url: str) -> Bench:
        assert url.startswith("test://")
        return self

    def deliver(self, order: PushOrder) -> Outcome:
        self.orders.append(order)
        if self.meanwhile:
            self.meanwhile()
        return self.outcomes.pop(0) if self.outcomes else answered(200)

    # its circuits
    def gate(self, key: SubscriberKey, *, probe_ms: int) -> Gate:
        self.gates.append((key, probe_ms))
        return self.let_in

    def ended(self, key: SubscriberKey, circuit: Circuit, *, failure: bool, probe: bool) -> None:
        self.learned.append((key, circuit, failure, probe))

    def start_over(self, key: SubscriberKey) -> None:
        self.started_over.append(key)

    # what a test does
    def run(
        self,
        message: Message,
        stored: Delivery | None = None,
        subscriber_id: str = "a",
        *,
        remaining_ms: int = 10**6,
        receive_count: int = 1,
        manual: bool = False,
        version: int | None = None,
        bare: bool = False,
        terms: Terms | None = None,
        may_ask: MayAsk | None = None,
    ) -> Following:
        """Work on its delivery; it and its message are stored first. A bare order comes without the message.

        Returns what comes next; all that is told is in ``whole``.
        """
        self.messages.accept_once(message)
        if stored is not None:
            self.messages.restore(None, [stored])
        carried = replace(WorkOrder.carrying(message, subscriber_id), manual=manual, version=version)
        received = Received(
            order=replace(carried, message=None) if bare else carried,
            sqs_id="1",
            receipt_handle="h",
            received_at=START,
            receive_count=receive_count,
        )
        self.whole = self.deliver_.run(
            Loaded(received, stored, None, self.clock.now()), lambda: remaining_ms, terms, may_ask
        )
        return Following(self.whole.follow, self.whole.due_at)

    def stored(self, message: Message, subscriber_id: str = "a") -> Delivery:
        delivery = self.messages.delivery(message.delivery_key(subscriber_id))
        assert delivery is not None
        return delivery


class _Watcher:
    def __init__(self, bench: Bench, name: str) -> None:
        self._bench = bench
        self._name = name

    def seen(self, message: Message, delivery: Delivery) -> None:
        self._bench.endings.append((self._name, message, delivery))

    def happened(self, event: SubscriberEvent) -> None:
        self._bench.happenings.append((self._name, event))


def answered(
    status: int, verdict: Verdict | None = None, *, reserve_ms: int = 0, asked: Asked | None = None, **more: object
) -> Outcome:
    fields: dict[str, object] = {"message": str(status), "bytes_out": 3, "bytes_in": 4}
    answer = Answer(status_code=status, started_at=START + 10, finished_at=START + 30, **fields | more)  # type: ignore[arg-type]
    meaning = verdict or (Verdict.DELIVERED if status == 200 else Verdict.FAILED)
    return Outcome(answer=answer, verdict=meaning, reserve_ms=reserve_ms, asked=asked)


def waiting(message: Message, subscriber_id: str = "a", **more: object) -> Delivery:
    """The delivery as stored after a first failure, due now."""
    fields: dict[str, object] = {
        "state": DeliveryState.RETRYING,
        "due_at": START,
        "tries": 1,
        "attempts": 1,
        "version": 1,
    }
    return replace(opening(message, subscriber_id), **fields | more)  # type: ignore[arg-type]


# -- an attempt


def test_a_first_attempt_is_made_with_everything_written_and_told() -> None:
    bench, message = Bench(), a_message()
    assert bench.run(message) == Following(Follow.NOTHING)
    # Then the target had all that an attempt needs
    [order] = bench.orders
    assert bench.now_stored is not None
    assert order == PushOrder(
        queue=bench.now_stored,
        push=bench.settings,
        subscriber=a_subscriber(),
        message=message,
        body=b"x",
        delivery=opening(message, "a"),
    )
    # And the outcome is stored, and passed to the queue's watchers
    stored = bench.stored(message)
    assert (stored.state, stored.settled_at, stored.version) == (DeliveryState.DELIVERED, START + 30, 1)
    assert stored.last is not None
    assert (stored.last.subscriber, stored.last.dialect) == ("A", "tested")
    assert (stored.status("a").name, stored.status("a").url) == ("A", "test://a")
    assert bench.endings[0] == ("q", message, stored)
    # And logged in one wide event
    assert bench.telemetry.counts == {"DeliveriesDelivered": 1}
    assert bench.telemetry.events == [
        (
            "attempt",
            {
                **IDENTITY,
                "subscriber": "A",
                "attempt": 1,
                "tries": 1,
                "tries_max": 3,
                "verdict": None,
                "state": "delivered",
                "reason": None,
                "manual": False,
                "scheduled": False,
                "status_code": 200,
                "error_class": "",
                "duration_ms": 20,
                "bytes_out": 3,
                "bytes_in": 4,
                "wait_before_ms": 1010,
                "wait_after_ms": None,
                "trace_id": None,
                "receive_count": None,
            },
        )
    ]


def test_a_failure_is_looked_at_again_when_its_wait_is_over() -> None:
    bench, message = Bench(), a_message()
    bench.outcomes = [answered(503, error_class="reset")]
    assert bench.run(message, receive_count=2) == Following(Follow.LATER, START + 30 + 60_000)
    stored = bench.stored(message)
    assert (stored.state, stored.due_at, stored.scheduled) == (DeliveryState.RETRYING, START + 60_030, False)
    assert bench.telemetry.counts == {"AttemptsFailed": 1}
    [(_, event)] = bench.telemetry.events
    reported = ("verdict", "state", "status_code", "error_class", "receive_count", "wait_after_ms")
    assert [event[each] for each in reported] == ["failed", "retrying", 503, "reset", 2, 60_000]


def test_the_last_failure_goes_to_the_error_queue_and_is_counted() -> None:
    bench, message = Bench(), a_message()
    bench.outcomes = [answered(500)]
    assert bench.run(message, waiting(message, tries=2, attempts=2)) == Following(Follow.ERROR)
    assert bench.stored(message).state is DeliveryState.EXHAUSTED
    assert bench.telemetry.counts == {"AttemptsFailed": 1, "DeliveriesExhausted": 1}


def test_what_is_in_no_order_looks_for_no_successor() -> None:
    message = a_message()
    for gone in (False, True):
        bench = Bench()

        def never(ended: object) -> None:
            raise AssertionError("nothing waits behind it")

        bench.subscribers.behind = never  # type: ignore[method-assign]
        bench.messages.accept_once(message)
        if gone:
            bench.messages.delete(message)
        bench.run(message, waiting(message), bare=gone)
        assert bench.stored(message).settled


def test_what_is_held_for_a_person_is_counted_and_its_order_given_up() -> None:
    policy = Exponential(base_s=1, cap_s=1, max_attempts=1, holds=True)
    bench, message = Bench(retry=policy), a_message()
    bench.outcomes = [answered(500)]
    assert bench.run(message) == Following(Follow.NOTHING)
    assert bench.telemetry.counts == {"AttemptsFailed": 1, "DeliveriesHeld": 1}


def test_a_subscribers_own_policy_and_rules_go_before_the_queues() -> None:
    own = a_subscriber(retry=FixedDelay(retries=9, delay_s=7), rules=STANDARD_RULES)
    bench, message = Bench(own), a_message()
    bench.outcomes = [answered(429)]
    # Then a slow-down of a minute and a tenth is what its rules and the jitter make of a 429
    assert bench.run(message) == Following(Follow.LATER, START + 30 + 66_000)
    assert bench.telemetry.named("attempt")[0]["tries_max"] == 10
    # And if it has none, those of the queue apply
    bench = Bench(rules=STANDARD_RULES)
    bench.outcomes = [answered(429)]
    assert bench.run(message) == Following(Follow.LATER, START + 30 + 66_000)
    # And the target's own reading of an answer takes precedence over both
    bench = Bench(rules=STANDARD_RULES)
    bench.outcomes = [answered(429, asked=Asked(wait_ms=61_000))]
    assert bench.run(message) == Following(Follow.LATER, START + 30 + 61_000)


@pytest.mark.parametrize(("delay_s", "scheduled"), [(900, False), (901, True)])
def test_a_long_wait_is_spent_in_the_schedule(delay_s: int, scheduled: bool) -> None:
    bench, message = Bench(retries_delay=delay_s), a_message()
    bench.clock.advance(ms=30)
    bench.outcomes = [answered(500)]
    following = bench.run(message)
    assert following == (Following(Follow.NOTHING) if scheduled else Following(Follow.LATER, START + 30 + 900_000))
    assert bench.stored(message).scheduled is scheduled
    assert bench.telemetry.counts["DeliveriesScheduled"] == scheduled
    assert delay_s * 1000 - MAX_DELAY_MS in (0, 1000)


def test_a_body_that_lies_elsewhere_is_fetched_and_one_that_is_gone_expires() -> None:
    bench = Bench()
    [ref] = bench.bodies.put("p", [b"large"], START)
    message = a_message(body=None, body_ref=ref)
    bench.run(message)
    assert bench.orders[0].body == b"large"
    # Given a body that the bucket has removed
    bench = Bench()
    gone = a_message(body=None, body_ref=BodyRef(key="gone", offset=0, length=1))
    assert bench.run(gone) == Following(Follow.ERROR)
    stored = bench.stored(gone)
    assert (stored.state, stored.settled_at, stored.reason) == (DeliveryState.EXPIRED, START, "")
    assert bench.orders == []


def test_an_asked_for_try_of_what_had_ended_whose_body_is_gone_is_dropped() -> None:
    bench = Bench()
    gone = a_message(body=None, body_ref=BodyRef(key="gone", offset=0, length=1))
    ended = waiting(gone, state=DeliveryState.EXHAUSTED, due_at=None, settled_at=START - 5, asked_at=START)
    assert bench.run(gone, ended, manual=True) == Following(Follow.NOTHING)
    stored = bench.stored(gone)
    assert (stored.state, stored.asked_at, stored.settled_at) == (DeliveryState.EXHAUSTED, None, START - 5)


def test_a_poll_goes_on_from_the_poll_queue() -> None:
    bench, message = Bench(), a_message()
    polling = replace(answered(200, Verdict.POLL, reserve_ms=5_000), update_url="https://a.example/status")
    bench.outcomes = [polling]
    assert bench.run(message) == Following(Follow.POLL, START + 30 + 5_000)
    assert bench.stored(message).update_url == "https://a.example/status"
    assert bench.telemetry.named("attempt")[0]["verdict"] == "poll"


# -- no attempt


@pytest.mark.parametrize(("timeout_s", "long"), [(40, False), (41, True)])
@pytest.mark.parametrize("limits", [None, Limits(rate_per_s=2)])
def test_what_was_not_begun_says_how_long_it_may_take_and_where_it_is_to_wait(
    timeout_s: int, long: bool, limits: Limits | None
) -> None:
    # Given a run that has no time for the attempt
    bench = Bench(a_subscriber(timeout_s=timeout_s, limits=limits))
    bench.run(a_message(), remaining_ms=SHORT_ATTEMPT_MS - 1)
    # Then its order says why, and whether any run of push had it
    terms = Terms(limits=limits or Limits(), longest_ms=timeout_s * 1000 + DEADLINE_MARGIN_MS)
    assert bench.orders == []
    assert bench.whole == Following(Follow.LATER, START, terms=terms, long=long)


def test_where_a_delivery_waits_depends_on_whom_it_asks_next() -> None:
    # Given a message for one of two subscribers, of whom the one asked first refuses, and no time for the other
    bench = Bench(a_subscriber("a", timeout_s=41), a_subscriber("b"))
    bench.outcomes = [answered(503, Verdict.FAILED)]
    bench.run(a_message("a", "b", unicast=True), subscriber_id="*", remaining_ms=SHORT_ATTEMPT_MS)
    assert len(bench.orders) == 1
    assert (bench.whole.follow, bench.whole.answered, bench.whole.long) == (Follow.LATER, False, True)


def test_what_is_not_due_is_looked_at_when_it_is_and_told_to_those_who_watch() -> None:
    bench, message = Bench(), a_message()
    stored = waiting(message, due_at=START + 2_000)
    assert bench.run(message, stored) == Following(Follow.LATER, START + 2_000)
    assert bench.endings == [("q", message, stored)]
    polled = waiting(message, due_at=START + 2_000, update_url="https://a.example/status")
    assert Bench().run(message, polled) == Following(Follow.POLL, START + 2_000)


@pytest.mark.parametrize(
    ("state", "follow"),
    [
        (DeliveryState.DELIVERED, Follow.NOTHING),
        (DeliveryState.CANCELLED, Follow.NOTHING),
        (DeliveryState.EXHAUSTED, Follow.ERROR),
        (DeliveryState.EXPIRED, Follow.ERROR),
    ],
)
def test_what_had_ended_before_is_told_again(state: DeliveryState, follow: Follow) -> None:
    bench, message = Bench(), a_message()
    stored = waiting(message, state=state, due_at=None, settled_at=START)
    assert bench.run(message, stored) == Following(follow)
    assert bench.endings == [("q", message, stored)]
    assert bench.messages.saved == []


def test_what_outlived_its_message_is_closed_and_logged() -> None:
    bench, message = Bench(), a_message(expires_at=START)
    assert bench.run(message, waiting(message)) == Following(Follow.ERROR)
    closed = bench.stored(message)
    assert (closed.state, closed.settled_at, closed.reason) == (DeliveryState.EXPIRED, START, "")
    assert bench.endings == [("q", message, closed)]
    assert bench.telemetry.counts == {"DeliveriesExpired": 1}
    assert bench.messages.saved == [closed]
    assert bench.telemetry.events == [
        (
            "delivery_closed",
            {
                "project": "p",
                "queue": "q",
                "message_id": "7",
                "delivery_id": "7.a",
                "state": "expired",
                "reason": None,
                "tries": 1,
            },
        )
    ]


def test_an_end_that_another_one_wrote_first_is_looked_at_anew() -> None:
    bench, message = Bench(), a_message(expires_at=START)
    bench.messages.restore(None, [waiting(message, version=4)])
    assert bench.run(message, waiting(message)) == Following(Follow.LATER, START)
    assert bench.endings == []
    assert bench.telemetry.counts == {}


# -- the queue and the message


@pytest.mark.parametrize("gone", ["queue", "push", "generation"])
def test_without_its_queue_a_delivery_is_cancelled(gone: str) -> None:
    bench, message = Bench(), a_message()
    assert bench.now_stored is not None
    bench.now_stored = {
        "queue": None,
        "push": replace(bench.now_stored, push=None),
        "generation": replace(bench.now_stored, uid="another"),
    }[gone]
    bench.remembered = bench.now_stored
    assert bench.run(message, waiting(message)) == Following(Follow.NOTHING)
    closed = bench.stored(message)
    assert (closed.state, closed.reason) == (DeliveryState.CANCELLED, "queue_deleted")
    assert bench.endings == [("q", message, closed)]
    assert bench.telemetry.named("delivery_closed")[0]["reason"] == "queue_deleted"


@pytest.mark.parametrize("retried", [False, True])
def test_an_attempt_goes_by_a_copy_of_the_queue_no_older_than_its_message(retried: bool) -> None:
    bench, message = Bench(), a_message()
    bench.run(message, waiting(message) if retried else None)
    assert bench.asked_since == [message.accepted_at]


def test_a_try_that_a_person_wants_goes_by_the_queue_as_it_is() -> None:
    bench, message = Bench(), a_message()
    bench.run(message, waiting(message, asked_at=START), manual=True)
    assert bench.asked_since == [None]


@pytest.mark.parametrize("lacks", ["queue", "push", "generation", "subscriber", "enabled"])
def test_what_is_remembered_and_does_not_fit_the_message_is_looked_up(lacks: str) -> None:
    # Given a cache that is older than the message
    bench, message = Bench(), a_message()
    assert bench.now_stored is not None
    old = bench.now_stored
    bench.remembered = {
        "queue": None,
        "push": replace(old, push=None),
        "generation": replace(old, uid="before"),
        "subscriber": replace(old, push=replace(bench.settings, subscribers=(a_subscriber("z"),))),
        "enabled": replace(old, push=replace(bench.settings, subscribers=(a_subscriber(disabled=True),))),
    }[lacks]
    bench.run(message)
    assert bench.asked_since == [message.accepted_at, None]
    assert bench.stored(message).state is DeliveryState.DELIVERED


def test_the_subscriber_owed_is_enough_to_be_remembered() -> None:
    bench = Bench(a_subscriber("a"))
    message = a_message("a", "b")
    bench.run(message)
    assert bench.asked_since == [message.accepted_at]


def test_in_unicast_every_subscriber_of_the_message_must_be_remembered() -> None:
    message = a_message("a", "b", unicast=True)
    since = message.accepted_at
    for names, asked in ((("a", "b"), [since]), (("a",), [since, None])):
        bench = Bench(*(a_subscriber(each) for each in names))
        bench.run(message, subscriber_id="*")
        assert bench.asked_since == asked


def test_an_order_without_its_message_reads_it_and_one_whose_message_is_gone_ends() -> None:
    bench, message = Bench(), a_message()
    assert bench.run(message, bare=True) == Following(Follow.NOTHING)
    assert bench.orders[0].message == message
    # Given a delivery whose message left the table
    bench = Bench()
    stored = waiting(message)
    bench.messages.accept_once(message)
    bench.messages.delete(message)
    assert bench.run(message, stored, bare=True) == Following(Follow.ERROR)
    closed = bench.stored(message)
    assert (closed.state, closed.reason) == (DeliveryState.EXPIRED, "message_gone")
    assert bench.endings == []
    # And one that was never stored, or had ended
    assert bench.run(message, bare=True) == Following(Follow.NOTHING)
    ended = waiting(message, state=DeliveryState.EXHAUSTED, due_at=None)
    assert bench.run(message, ended, bare=True) == Following(Follow.NOTHING)


# -- removed subscribers


@pytest.mark.parametrize(("here", "reason"), [((), "subscriber_removed"), ((True,), "subscriber_disabled")])
def test_what_is_owed_to_nobody_ends_and_says_why(here: tuple[bool, ...], reason: str) -> None:
    others = [a_subscriber(disabled=True)] if here else []
    bench, message = Bench(*others, a_subscriber("z"), circuit=Circuit()), a_message()
    assert bench.run(message, waiting(message)) == Following(Follow.ERROR)
    closed = bench.stored(message)
    assert (closed.state, closed.reason, closed.settled_at) == (DeliveryState.EXHAUSTED, reason, START)
    assert bench.endings == [("q", message, closed)]
    assert bench.started_over == [SubscriberKey(project="p", queue="q", queue_uid="u", subscriber_id="a")]
    assert bench.orders == []
    # And without a circuit nothing is stored about it
    bench = Bench(a_subscriber("z"))
    bench.run(message, waiting(message))
    assert bench.started_over == []


def test_a_round_goes_on_with_those_who_are_there() -> None:
    message = a_message("a", "b", "c", unicast=True, message_id="3")
    bench = Bench(a_subscriber("a", disabled=True), a_subscriber("c"))
    assert bench.run(message, subscriber_id="*") == Following(Follow.NOTHING)
    assert [each.subscriber.subscriber_id for each in bench.orders] == ["c"]


@pytest.mark.parametrize(("delay_s", "scheduled"), [(60, False), (3600, True)])
def test_a_round_whose_last_subscriber_is_gone_is_tried_again_later(delay_s: int, scheduled: bool) -> None:
    message = a_message("a", "b", unicast=True, message_id="2")
    bench = Bench(a_subscriber("a"), retries_delay=delay_s)
    bench.outcomes = [answered(500)]
    bench.meanwhile = lambda: bench.clock.set(START + 30)
    following = bench.run(message, subscriber_id="*")
    due_at = START + 30 + delay_s * 1000
    assert following == (Following(Follow.NOTHING) if scheduled else Following(Follow.LATER, due_at))
    stored = bench.stored(message, "*")
    assert (stored.tries, stored.due_at, stored.version, stored.scheduled) == (1, due_at, 2, scheduled)
    assert bench.endings[-1] == ("q", message, stored)


def test_a_round_that_another_one_changed_is_looked_at_anew() -> None:
    message = a_message("a", "b", unicast=True, message_id="2")
    bench = Bench(a_subscriber("a"))
    stored = waiting(message, "*", cursor=1)
    bench.messages.restore(None, [replace(stored, version=6)])
    assert bench.run(message, stored, "*") == Following(Follow.LATER, START)
    assert bench.endings == []


# -- circuits, limits and order


def test_a_circuit_that_is_open_lets_it_wait_on_its_subscriber() -> None:
    bench, message = Bench(circuit=Circuit()), a_message()
    bench.let_in = Gate.WAIT
    assert bench.run(message, waiting(message), version=1) == Following(Follow.ANOTHER)
    key = SubscriberKey(project="p", queue="q", queue_uid="u", subscriber_id="a")
    assert bench.gates == [(key, 10_000 + PROBE_MARGIN_MS)]
    [waits] = bench.subscribers.waiting(key, 9)
    assert (waits.order.key, waits.order.version) == (message.delivery_key("a"), None)
    assert waits.place.startswith(f"{START:015d}")
    assert (bench.orders, bench.endings) == ([], [])
    assert bench.telemetry.counts == {"DeliveriesWaiting": 1}


@pytest.mark.parametrize(
    ("outcome", "failure"),
    [
        (answered(200), False),
        (answered(500), True),
        (answered(202, Verdict.RESERVED), False),
        (answered(400, asked=Asked(stops=Stops.DELIVERY, reason="asked_to_stop")), False),
        (answered(410, asked=Asked(stops=Stops.SUBSCRIBER, reason="status_410")), True),
    ],
)
@pytest.mark.parametrize("gate", [Gate.GO, Gate.PROBE])
def test_a_circuit_learns_from_what_came_of_it(outcome: Outcome, failure: bool, gate: Gate) -> None:
    circuit = Circuit(failures=9)
    bench, message = Bench(circuit=circuit), a_message()
    bench.let_in, bench.outcomes = gate, [outcome]
    bench.run(message)
    key = SubscriberKey(project="p", queue="q", queue_uid="u", subscriber_id="a")
    assert bench.learned == [(key, circuit, failure, gate is Gate.PROBE)]


def test_a_unicast_delivery_and_a_queue_without_circuits_have_none() -> None:
    bench = Bench(circuit=Circuit())
    bench.run(a_message("a", unicast=True), subscriber_id="*")
    plain = Bench()
    plain.run(a_message())
    assert [*bench.gates, *bench.learned, *plain.gates, *plain.learned] == []


LIMITS = Limits(rate_per_s=1)
TERMS = Terms(limits=LIMITS, longest_ms=15_000)


@pytest.mark.parametrize(
    "terms", [None, Terms(limits=Limits(rate_per_s=2), longest_ms=15_000), replace(TERMS, longest_ms=1)]
)
def test_an_order_that_did_not_wait_for_its_turn_under_the_present_limits_is_sent_to_wait(terms: Terms | None) -> None:
    bench = Bench(a_subscriber(limits=LIMITS), circuit=Circuit())
    bench.run(a_message(), terms=terms)
    assert bench.whole == Following(Follow.LEASE, terms=TERMS)
    assert (bench.orders, bench.gates) == ([], [])


def test_in_its_turn_it_is_attempted_and_told_how_that_went() -> None:
    bench = Bench(a_subscriber(limits=LIMITS))
    bench.run(a_message(), terms=TERMS)
    assert bench.whole == Following(Follow.NOTHING, answered=True, terms=TERMS)
    bench = Bench(a_subscriber(limits=LIMITS))
    bench.outcomes = [answered(500)]
    bench.run(a_message(), terms=TERMS)
    assert bench.whole == Following(Follow.LATER, START + 30 + 60_000, answered=False, terms=TERMS)
    # And one whose limits are gone is attempted under any terms
    free = Bench()
    free.run(a_message(), terms=TERMS)
    assert free.whole == Following(Follow.NOTHING, answered=True)


@pytest.mark.parametrize(("gate", "asked"), [(Gate.GO, 0), (Gate.PROBE, 1)])
def test_what_may_not_ask_in_its_turn_at_this_moment_waits_for_it_again_but_for_a_probe(gate: Gate, asked: int) -> None:
    bench = Bench(a_subscriber(limits=LIMITS), circuit=Circuit())
    bench.let_in = gate
    bench.run(a_message(), terms=TERMS, may_ask=lambda now: now < START)
    assert len(bench.orders) == asked
    assert asked or bench.whole == Following(Follow.LEASE, terms=TERMS)


def test_a_turn_is_for_one_attempt() -> None:
    # Given a subscriber whose retries are due at once
    bench, message = Bench(a_subscriber(limits=LIMITS), retries_delay=0), a_message()
    bench.outcomes = [answered(500)]
    bench.run(message, terms=TERMS)
    assert bench.whole.follow is Follow.LATER
    assert bench.whole.terms == TERMS
    assert len(bench.orders) == 1


def test_a_unicast_delivery_waits_for_no_turn() -> None:
    bench = Bench(a_subscriber(limits=LIMITS))
    bench.run(a_message("a", unicast=True), subscriber_id="*")
    assert len(bench.orders) == 1


def test_a_probe_waits_for_its_turn_like_any_attempt() -> None:
    bench = Bench(a_subscriber(limits=LIMITS), circuit=Circuit())
    bench.let_in = Gate.PROBE
    bench.run(a_message())
    assert (bench.whole.follow, bench.gates) == (Follow.LEASE, [])
    bench.run(a_message(message_id="8"), terms=TERMS)
    assert [probe for _, _, _, probe in bench.learned] == [True]


def in_order() -> tuple[Message, Message]:
    """A message, and the one before it in its ordering key."""
    first = a_message(message_id="6", ordering=Ordering(key="k", sequence=1))
    return first, a_message(ordering=Ordering(key="k", sequence=2, previous={"a": "6"}))


def test_a_message_waits_behind_the_one_before_it_until_that_has_ended() -> None:
    first, second = in_order()
    bench = Bench()
    bench.messages.accept_once(first)
    assert bench.run(second, version=1) == Following(Follow.ANOTHER)
    assert bench.orders == []
    assert bench.telemetry.counts == {"DeliveriesInLine": 1}
    behind = bench.subscribers.behind(first.delivery_key("a"))
    assert behind is not None
    assert (behind.key, behind.version) == (second.delivery_key("a"), None)
    # When the first has ended, then its order is sent and forgotten
    bench.run(first)
    assert [(order.key, delay_s) for order, delay_s in bench.next_queue.sent] == [(second.delivery_key("a"), 0)]
    assert bench.subscribers.behind(first.delivery_key("a")) is None
    # And the second is delivered
    bench.run(second)
    assert bench.stored(second).state is DeliveryState.DELIVERED


def test_one_that_was_tried_already_waits_behind_nobody() -> None:
    first, second = in_order()
    bench = Bench()
    bench.messages.accept_once(first)
    bench.run(second, waiting(second))
    assert len(bench.orders) == 1


@pytest.mark.parametrize("whose", ["of the one before", "of the one that waits"])
@pytest.mark.parametrize("place", range(5))
def test_one_that_waits_is_tried_once_however_the_end_of_the_one_before_and_its_own_look_meet(
    whose: str, place: int
) -> None:
    # Given two orders, of which one is worked on in the middle of the other: after any of its calls
    first, second = in_order()
    bench = Bench()
    bench.messages.accept_once(first)
    outer, inner = (first, second) if whose == "of the one before" else (second, first)
    count = itertools.count()

    def interrupted(real: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object, **named: object) -> object:
            answer = real(*given, **named)
            if next(count) == place:
                bench.run(inner)
            return answer

        return call

    stores: list[tuple[object, list[str]]] = [
        (bench.subscribers, ["wait_behind", "behind", "take", "let_go"]),
        (bench.messages, ["delivery", "save"]),
    ]
    for store, names in stores:
        for name in names:
            setattr(store, name, interrupted(getattr(store, name)))
    bench.run(outer)
    if next(count) <= place:
        bench.run(inner)
    # Then the second is tried at once, or its order is sent on, and not both
    tried = bench.messages.delivery(second.delivery_key("a")) is not None
    assert [tried, len(bench.next_queue.sent)] in ([True, 0], [False, 1])
    assert bench.subscribers.behind(first.delivery_key("a")) is None


def test_whatever_ends_one_lets_the_next_go() -> None:
    first, second = in_order()
    for ends in ("expired", "gone", "gone before", "told again"):
        bench = Bench()
        message = replace(first, expires_at=START) if ends == "expired" else first
        bench.subscribers.wait_behind(first.delivery_key("a"), WorkOrder.carrying(second, "a"))
        stored = waiting(message)
        if ends in ("gone before", "told again"):
            stored = replace(stored, state=DeliveryState.EXPIRED, due_at=None)
        bench.messages.accept_once(message)
        if ends.startswith("gone"):
            bench.messages.delete(message)
        bench.run(message, stored, bare=ends.startswith("gone"))
        assert len(bench.next_queue.sent) == 1, ends


# -- manual tries


def asked_for(message: Message, *, ago_ms: int = 0) -> Delivery:
    return waiting(message, due_at=START + 10**6, asked_at=START - ago_ms, version=2)


def test_an_asked_for_try_is_made_by_its_own_order_and_its_delivery_waits_on() -> None:
    bench, message = Bench(circuit=Circuit()), a_message()
    bench.let_in = Gate.WAIT
    bench.outcomes = [answered(500)]
    assert bench.run(message, asked_for(message), manual=True) == Following(Follow.NOTHING)
    # Then the circuit does not stop it, but learns from it
    assert (len(bench.orders), bench.gates, len(bench.learned)) == (1, [], 1)
    stored = bench.stored(message)
    assert (stored.asked_at, stored.due_at, stored.tries) == (None, START + 10**6, 1)
    assert stored.last is not None
    assert (stored.last.manual, stored.last.subscriber, stored.last.dialect) == (True, "A", "tested")
    assert (stored.status("a").name, stored.status("a").url) == ("A", "test://a")
    assert bench.telemetry.named("attempt")[0]["manual"] is True


def test_an_answer_that_ends_the_automatic_tries_too_is_told_and_one_beside_none_is_not() -> None:
    message = a_message()
    stop = answered(400, asked=Asked(stops=Stops.DELIVERY, reason="asked_to_stop"))
    bench = Bench()
    bench.outcomes = [stop]
    assert bench.run(message, asked_for(message), manual=True) == Following(Follow.ERROR)
    assert (bench.stored(message).state, bench.stored(message).reason) == (DeliveryState.EXHAUSTED, "asked_to_stop")
    # Given a subscriber that was not owed the message
    bench = Bench()
    bench.outcomes = [stop]
    only = replace(added(message, "a", due_at=None), asked_at=START, version=1)
    assert bench.run(message, only, manual=True) == Following(Follow.NOTHING)
    assert bench.stored(message).state is DeliveryState.EXHAUSTED


def test_a_try_of_what_had_ended_that_there_is_no_time_for_is_made_later() -> None:
    message = a_message()
    ended = waiting(message, state=DeliveryState.EXHAUSTED, due_at=None, settled_at=START, asked_at=START)
    assert Bench().run(message, ended, manual=True, remaining_ms=0) == Following(Follow.LATER, START)


def test_whoever_has_to_know_of_an_end_is_told_once() -> None:
    message = a_message(expires_at=START)
    ended = waiting(message, state=DeliveryState.EXHAUSTED, due_at=None, asked_at=START - 9)
    assert Bench().run(message, ended, manual=True) == Following(Follow.NOTHING)
    # But of one that only ends now
    assert Bench().run(message, waiting(message, asked_at=START - 9), manual=True) == Following(Follow.ERROR)


def test_a_try_of_a_subscriber_that_is_gone_is_dropped() -> None:
    bench, message = Bench(a_subscriber("z")), a_message()
    assert bench.run(message, asked_for(message), manual=True) == Following(Follow.NOTHING)
    stored = bench.stored(message)
    assert (stored.asked_at, stored.state, stored.version) == (None, DeliveryState.RETRYING, 3)
    assert bench.endings[0] == ("q", message, stored)
    # And one that has no other tries ends
    bench = Bench(a_subscriber("a", disabled=True))
    only = replace(added(message, "a", due_at=None), asked_at=START, version=1)
    assert bench.run(message, only, manual=True) == Following(Follow.NOTHING)
    assert bench.stored(message).state is DeliveryState.EXHAUSTED
    assert bench.stored(message).reason == "subscriber_disabled"


def test_a_drop_that_another_one_came_before_leaves_what_that_wrote() -> None:
    bench, message = Bench(a_subscriber("z")), a_message()
    newer = waiting(message, due_at=START + 7_000, version=9)
    bench.messages.restore(None, [newer])
    assert bench.run(message, asked_for(message), manual=True) == Following(Follow.NOTHING)
    assert bench.stored(message) == newer


# -- disabling subscribers


def test_who_asks_to_be_disabled_is() -> None:
    bench, message = Bench(), a_message()
    bench.outcomes = [answered(410, asked=Asked(stops=Stops.SUBSCRIBER, reason="status_410"))]
    assert bench.run(message) == Following(Follow.ERROR)
    event = SubscriberEvent(
        kind=SubscriberEventKind.DISABLE,
        project="p",
        queue="q",
        queue_uid="u",
        subscriber_id="a",
        at=START + 30,
        reason="status_410",
    )
    assert bench.happenings == [("q", event)]
    assert bench.telemetry.counts["SubscribersDisabled"] == 1
    assert bench.telemetry.named("subscriber_disabled") == [{**IDENTITY, "reason": "status_410"}]
    # And reported before the attempt is written
    assert bench.telemetry.events[0][0] == "subscriber_disabled"
    assert bench.telemetry.named("attempt")[0]["reason"] == "status_410"


# -- changes during an attempt


def test_an_attempt_during_which_a_person_asked_for_a_try_counts_as_it_is() -> None:
    bench, message = Bench(), a_message()
    stored = waiting(message)
    asked = replace(stored, asked_at=START + 5, version=2)
    bench.meanwhile = lambda: bench.messages.save(asked)
    bench.outcomes = [answered(500)]
    bench.run(message, stored)
    after = bench.stored(message)
    assert (after.tries, after.attempts, after.asked_at, after.version) == (2, 2, START + 5, 3)
    assert after.due_at == START + 30 + 60_000


def test_a_duplicates_failure_leaves_what_the_first_one_wrote() -> None:
    bench, message = Bench(), a_message()
    stored = waiting(message)
    first = replace(stored, attempts=2, tries=2, due_at=START + 60_000, version=2)
    bench.meanwhile = lambda: bench.messages.save(first)
    bench.outcomes = [answered(500)]
    # Its order goes behind that of the first one: it comes when the first one's next request must be over
    assert bench.run(message, stored) == Following(Follow.LATER, START + 60_000 + 10_000 + DEADLINE_MARGIN_MS)
    assert bench.stored(message) == first


def test_a_duplicates_success_delivers_what_the_first_one_left_waiting() -> None:
    bench, message = Bench(), a_message()
    stored = waiting(message)
    first = replace(stored, attempts=2, tries=2, due_at=START + 60_000, version=2)
    bench.meanwhile = lambda: bench.messages.save(first)
    assert bench.run(message, stored) == Following(Follow.NOTHING)
    after = bench.stored(message)
    assert (after.state, after.attempts, after.version) == (DeliveryState.DELIVERED, 2, 3)


def test_a_delivery_that_is_gone_after_its_attempt_is_over() -> None:
    bench, message = Bench(), a_message()
    stored = waiting(message)

    def save(delivery: Delivery) -> None:
        bench.messages.lose()
        raise Conflict("gone")

    bench.messages.save = save  # type: ignore[method-assign]
    assert bench.run(message, stored) == Following(Follow.ERROR)


def test_what_never_comes_to_rest_is_a_fault_of_ours() -> None:
    bench, message = Bench(), a_message()
    stored = waiting(message)

    def save(delivery: Delivery) -> None:
        raise Conflict("again")

    bench.messages.save = save  # type: ignore[method-assign]
    with pytest.raises(Unavailable, match=r"^recording an attempt under contention"):
        bench.run(message, stored)
