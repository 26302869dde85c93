"""The policy simulator: how a retry policy would handle an outage, by the engine's own rules on virtual time.

Nothing is decided here: :func:`~pushhub.engine.model.delivery.next_step` says what to do with a delivery,
:func:`~pushhub.engine.model.delivery.after_attempt` what an answer does to it,
:class:`~pushhub.engine.circuits.Circuits` and :class:`~pushhub.engine.limiter.Limiter` which subscribers may be
attempted, and :class:`~pushhub.engine.circuits.Recover` releases what waits. This module keeps the time, plays the
endpoint, and counts.

The work is bounded. Messages accepted one after another are simulated together, as a *lot*. A small run finds out how
much work a lot causes, and the real run has as many lots as fit. Where messages of a lot fare differently (a probe, a
share of answers, the minutes of a ramp) the lot is split.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from random import Random
from typing import Any

from pushhub.base.errors import Invalid
from pushhub.base.verdict import Answer, Verdict, iron_verdict
from pushhub.engine.admission import PROBE_MARGIN_MS
from pushhub.engine.circuits import Circuits, Gate, Recover
from pushhub.engine.model.answer_rules import Stops
from pushhub.engine.model.backoff import MAX_DELAY_MS
from pushhub.engine.model.circuit import Circuit, CircuitState, Health, SubscriberKey
from pushhub.engine.model.delivery import (
    Delivery,
    DeliveryState,
    Step,
    after_attempt,
    close,
    next_step,
    opening,
    without_target,
)
from pushhub.engine.model.forecast import MINUTE_MS, Forecast, Plan, Tally
from pushhub.engine.model.message import Message
from pushhub.engine.model.subscriber_event import SubscriberEvent, SubscriberEventKind
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.ports import Waiting

WORK = 6_000
"""Approximate number of lot attempts that a run may make; other expensive steps count as fractions of one."""

LOOK, OUTCOME = 0.5, 0.2
"""What looking at a delivery, or telling the circuit an outcome, counts as."""

FREE_WINDOWS, WINDOW = 4, 0.05
"""How many windows of an outage cost nothing in an attempt, and what looking at each further one counts as."""

PILOT = 30
"""Lots in the run that measures how much work a lot causes."""

FEWEST, MOST = 10, 5_000
"""Minimum and maximum number of lots in a forecast."""

TOLD = 32
"""Maximum number of attempts of a partly failed lot that the circuit is told of."""

MOST_BEGINNINGS = 50
"""Maximum number of beginnings of trouble that are simulated with smaller lots."""

START_MS = 86_400_000
"""Start of virtual time, epoch milliseconds: on a full minute, and late enough not to look like "never"."""

KEY = SubscriberKey(project="-", queue="-", queue_uid="-", subscriber_id="-")


def forecast(plan: Plan, *, work: int = WORK) -> Forecast:
    """What the plan's policy would do; the same result for the same plan.

    Args:
        plan: The policy, the traffic, the outage.
        work: Work budget of a run, in lot attempts; up to four times as much where less is impossible.

    Raises:
        Invalid: Even a few lots would exceed the budget.
    """
    pilot = _Run(plan, PILOT, most_work=work)
    pilot.run()
    if pilot.cut:
        lots = FEWEST
    elif plan.messages <= PILOT:
        return pilot.forecast()
    else:
        lots = max(FEWEST, min(MOST, int(PILOT * work / max(1, pilot.work))))
    if lots > FEWEST:
        run = _Run(plan, lots, most_work=work * 3 // 2)
        run.run()
        if not run.cut:
            return run.forecast()
    # The rest is inherently expensive: retries a second apart, or a ramp that lasts for days.
    run = _Run(plan, FEWEST, most_work=work * 4)
    run.run()
    if not run.cut:
        return run.forecast()
    raise Invalid(
        "This is too much to simulate: shorten the lifetime of messages or the time they are posted for, or lengthen "
        "the waits between tries"
    )


@dataclass(slots=True)
class _Lot:
    """Messages that are simulated together.

    Attributes:
        count: Number of messages.
        delivery: Their common state.
        span_ms: Time over which their acceptances, and so their attempts, are spread; 0 once they were released
            together.
    """

    count: int
    delivery: Delivery
    span_ms: int

    def split(self, count: int, name: str) -> _Lot:
        """Split off some of the messages, as a new lot with the given name."""
        span_ms = self.span_ms * count // self.count
        self.count -= count
        self.span_ms -= span_ms
        return _Lot(count, replace(self.delivery, message_id=name), span_ms if count > 1 else 0)


_Entry = tuple[int, int, Callable[[Any], None], "_Lot | None"]
"""A scheduled step: its time, a number to keep the order, what to do, and the lot it is about."""


class _Time:
    """Implements the engine's clock on virtual time.

    Args:
        random: Source of the random parts of waits.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self.at = START_MS

    def now(self) -> int:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += round(seconds * 1000)

    def jitter(self) -> float:
        return self._random.random()


class _Nobody:
    """Implements the engine's telemetry by discarding everything."""

    def event(self, name: str, /, **fields: object) -> None:
        pass

    def count(self, metric: str, value: int = 1) -> None:
        pass


class _InTurn(Executor):
    """Runs each task immediately."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


class _Known:
    """Holds what the hub stores about the subscriber: its health, and the lots waiting for it.

    Implements the engine's ports for those, and for the queue that released orders go to.

    Args:
        look: Told of each lot that is released.
        next_name: Makes a name for a lot.
        changed: Told of the subscriber's health when it has changed.

    Attributes:
        lots: The waiting lots in order, by name.
    """

    def __init__(
        self, look: Callable[[_Lot], None], next_name: Callable[[], str], changed: Callable[[Health], None]
    ) -> None:
        self._changed = changed
        self._look = look
        self._next_name = next_name
        self._health: Health | None = None
        self._watched = False
        self.opened = 0
        self.lots: OrderedDict[str, _Lot] = OrderedDict()

    def health(self, key: SubscriberKey) -> Health | None:
        del key
        return self._health

    def save(self, health: Health) -> None:
        was_open = self._health is not None and self._health.state is CircuitState.OPEN
        self.opened += health.state is CircuitState.OPEN and not was_open
        self._health = health
        if self._watched:
            self._changed(health)

    def queue(self, project_id: str, name: str, *, fresh: bool = False) -> None:
        """Nobody pauses it."""
        del project_id, name, fresh

    def look_after(self, key: SubscriberKey) -> None:
        del key
        self._watched = True

    def looked_after(self) -> Iterator[SubscriberKey]:
        return iter((KEY,) if self._watched else ())

    def leave(self, key: SubscriberKey) -> None:
        del key
        self._watched = False

    def wait(self, lot: _Lot) -> None:
        """Make a lot wait for the subscriber, behind the others."""
        self.lots[lot.delivery.message_id] = lot

    def waiting(self, key: SubscriberKey, limit: int) -> list[Waiting]:
        del key
        names: list[str] = []
        left = limit
        for name, lot in self.lots.items():
            if lot.count > left:
                break
            left -= lot.count
            names.append(name)
        if left and len(names) < len(self.lots):
            # The first messages of the next lot are released; the rest keep their place.
            next_lot = next(islice(self.lots.values(), len(names), None))
            part = next_lot.split(left, self._next_name())
            names.append(part.delivery.message_id)
            self.wait(part)
        keys = [self.lots[each].delivery.key for each in names]
        return [Waiting(order=WorkOrder(key=key, queue=KEY.queue), place=key.message_id) for key in keys]

    def remove(self, key: SubscriberKey, waiting: Sequence[Waiting]) -> None:
        del key
        for each in waiting:
            self.lots.pop(each.place, None)

    def send(self, orders: Sequence[tuple[WorkOrder, int]]) -> None:
        for order, _ in orders:
            lot = self.lots.pop(order.key.message_id)
            lot.span_ms = 0
            self._look(lot)


class _Run:
    """One run of a plan.

    Args:
        lots: Approximate number of lots to divide its messages into.
        most_work: Work after which the run is aborted.

    Attributes:
        work: Work done, in attempts.
        cut: The run was aborted; its figures are meaningless.
    """

    def __init__(self, plan: Plan, lots: int, *, most_work: int) -> None:
        self.work = 0.0
        self.cut = False
        self._plan = plan
        self._most_work = most_work
        self._random = Random(plan.seed)  # noqa: S311 (the same each time is what it is for)
        self._time = _Time(self._random)
        self._ends_at = START_MS + plan.watch_ms
        self._agenda: list[_Entry] = []
        self._entries = 0
        self._names = 0
        self._lots = 0
        self._tick_at: int | None = None
        self._disabled = False
        self._tally = Tally()
        self._known = _Known(self._look_soon, self._next_name, self._plan_tick)
        nobody = _Nobody()
        self._circuits = Circuits(healths=self._known, events=lambda _: (self,), clock=self._time, telemetry=nobody)
        self._line: deque[_Lot] = deque()
        self._turn_at = 0.0
        self._turn_planned = False
        self._recover = Recover(
            queues=self._known,
            is_suspended=lambda _: False,
            healths=self._known,
            backlog=self._known,
            retry_queue=self._known,
            clock=self._time,
            telemetry=nobody,
            executor=_InTurn(),
        )
        cuts = _cuts(plan, lots)
        self._sample = max(after - before for before, after in pairwise(cuts))
        for before, after in pairwise(cuts):
            self._accept(before, after)

    def run(self) -> None:
        """Run the simulation to its end."""
        while self._agenda and self._agenda[0][0] <= self._ends_at:
            if self.work > self._most_work:
                self.cut = True
                return
            at, _, what, lot = heapq.heappop(self._agenda)
            self._time.at = at
            what(lot)
        self._time.at = self._ends_at
        for lot in (*(each[3] for each in self._agenda), *self._known.lots.values(), *self._line):
            if lot is not None:
                self._leave(lot)

    def forecast(self) -> Forecast:
        """The figures of the run."""
        self._tally.opened = self._known.opened
        return self._tally.forecast(self._plan, sample=self._sample)

    def happened(self, event: SubscriberEvent) -> None:
        """The engine reported something about the subscriber."""
        if event.kind is SubscriberEventKind.DISABLE:
            self._disable()

    def _at(self, at: int, what: Callable[[Any], None], lot: _Lot | None) -> None:
        self._entries += 1
        heapq.heappush(self._agenda, (at, self._entries, what, lot))

    def _next_name(self) -> str:
        self._names += 1
        return str(self._names)

    def _accept(self, before: int, after: int) -> None:
        """Accept the messages from one number to another."""
        plan = self._plan
        every = plan.duration_ms / plan.messages
        at = START_MS + round(before * every)
        message = Message(
            project=KEY.project,
            queue=KEY.queue,
            queue_uid=KEY.queue_uid,
            message_id=self._next_name(),
            body=None,
            body_size=plan.body_bytes,
            accepted_at=at,
            due_at=at,
            expires_at=at + plan.life_ms,
            subscriber_ids=(KEY.subscriber_id,),
        )
        lot = _Lot(after - before, opening(message, KEY.subscriber_id), round((after - before - 1) * every))
        self._at(at, self._look, lot)

    def _look_soon(self, lot: _Lot) -> None:
        self._at(self._time.at, self._look, lot)

    def _look(self, lot: _Lot, *, in_turn: bool = False) -> None:
        self.work += LOOK
        now = self._time.at
        step = next_step(lot.delivery, self._plan.policy, now)
        if step.step is Step.WAIT:
            self._at(now + step.wait_ms, self._look, lot)
        elif step.step is Step.CLOSE and step.closes_as is not None:
            self._close(lot, close(lot.delivery, step.closes_as, now))
        elif self._disabled:
            self._circuits.start_over(KEY)
            policy, jitter = self._plan.policy, self._time.jitter()
            self._close(
                lot, without_target(lot.delivery, (), policy, now=now, jitter=jitter, reason="subscriber_disabled")
            )
        elif self._plan.rate_limit is None or in_turn:
            self._attempt_if_let(lot)
        else:
            self._line.append(lot)
            self._plan_turn()

    def _plan_turn(self) -> None:
        """Have the first in line looked at when the rate allows it."""
        if self._line and not self._turn_planned:
            self._turn_planned = True
            self._at(max(round(self._turn_at), self._time.at), self._take_turn, None)

    def _take_turn(self, _: object) -> None:
        self._turn_planned = False
        if self._line:
            self._look(self._line.popleft(), in_turn=True)
        self._plan_turn()

    def _attempt_if_let(self, lot: _Lot) -> None:
        plan = self._plan
        gate = Gate.GO
        if plan.circuit is not None:
            gate = self._circuits.gate(KEY, probe_ms=plan.timeout_s * 1000 + PROBE_MARGIN_MS)
        if gate is Gate.WAIT:
            self._known.wait(lot)
        elif gate is Gate.PROBE:
            # One message is the probe; the next look decides about the others.
            probe = lot.split(1, self._next_name()) if lot.count > 1 else lot
            if probe is not lot:
                self._look_soon(lot)
            self._attempt(probe, probe=True)
        elif plan.rate_limit is None:
            self._attempt(lot)
        else:
            # A lot takes up the time of as many attempts as it has.
            self._turn_at = max(self._turn_at, self._time.at) + lot.count * 1000 / plan.rate_limit
            lot.span_ms = max(lot.span_ms, round(lot.count * 1000 / plan.rate_limit))
            self._attempt(lot)

    def _attempt(self, lot: _Lot, *, probe: bool = False) -> None:
        started_at, timeout_ms, count = self._time.at, self._plan.timeout_s * 1000, lot.count
        self.work += WINDOW * max(0, len(self._plan.endpoint.windows) - FREE_WINDOWS)
        well = self._plan.endpoint.well(started_at, timeout_ms)
        answered: list[tuple[_Lot, Answer]] = []
        left = count
        for window, share in self._plan.endpoint.troubles(started_at - START_MS, lot.span_ms):
            hit = _drawn(left, share, self._random)
            left -= hit
            if hit:
                struck = lot.split(hit, self._next_name()) if left else lot
                answered.append((struck, window.answer(started_at, timeout_ms)))
        if left:
            answered.append((lot, well))
        told: _Told | None = _Told(sum(each.count for each, answer in answered if _fails(answer)), count)
        for part, answer in answered:
            self._begin(part, answer, told, probe=probe)
            told = None

    def _begin(self, lot: _Lot, answer: Answer, told: _Told | None, *, probe: bool) -> None:
        """Begin an attempt for each message of a lot; the outcome takes effect when the answer arrives."""
        began = answer.started_at - START_MS
        self.work += 1
        self._tally.attempt(began, lot.span_ms, lot.count, failed=_fails(answer), took_ms=answer.duration_ms)
        if not lot.delivery.attempts:
            self._tally.attempted += lot.count
        self._at(answer.finished_at, lambda _: self._end(lot, answer, told, probe=probe), lot)

    def _end(self, lot: _Lot, answer: Answer, told: _Told | None, *, probe: bool) -> None:
        plan, jitter = self._plan, self._time.jitter()
        verdict = iron_verdict(answer)
        last = lot.delivery.last
        before = last.status_code if last else None
        asked = plan.rules.asked(answer, failed=verdict is Verdict.FAILED, jitter=jitter, before=before)
        if asked.stops is Stops.SUBSCRIBER:
            self._disable()
        lot.delivery = after_attempt(
            lot.delivery, answer, verdict, policy=plan.policy, reserve_ms=0, jitter=jitter, asked=asked
        )
        if plan.circuit is not None and told is not None:
            outcomes = told.outcomes(plan.circuit, self._random)
            self.work += len(outcomes) * OUTCOME
            for failure in outcomes:
                self._circuits.ended(
                    KEY, plan.circuit, failure=failure and asked.stops is not Stops.DELIVERY, probe=probe
                )
        wakes_at = lot.delivery.wakes_at
        if wakes_at is None:
            self._count(lot)
            return
        if wakes_at - self._time.at > MAX_DELAY_MS:
            self._tally.scheduled += lot.count
        self._at(wakes_at, self._look, lot)

    def _close(self, lot: _Lot, closed: Delivery) -> None:
        lot.delivery = closed
        self._tally.closed += lot.count
        self._count(lot)

    def _count(self, lot: _Lot) -> None:
        """A lot ended, or is held for a person."""
        self._tally.ended[lot.delivery.state] += lot.count
        if lot.delivery.state is DeliveryState.DELIVERED and lot.delivery.last is not None:
            self._tally.delays.append((lot.delivery.last.started_at - lot.delivery.accepted_at, lot.count))

    def _leave(self, lot: _Lot) -> None:
        """The simulation ends while a lot is still on its way."""
        expired = lot.delivery.expires_at <= self._ends_at
        self._tally.ended[DeliveryState.EXPIRED if expired else "waiting"] += lot.count

    def _disable(self) -> None:
        """From now on, no more requests are made.

        The real hub releases a limited number of waiting orders each minute. When exactly they end is not reported, so
        here they all end now.
        """
        if self._disabled:
            return
        self._disabled = True
        self._tally.disabled_at_ms = self._time.at - START_MS
        while self._known.lots:
            self._look_soon(self._known.lots.popitem(last=False)[1])

    def _plan_tick(self, health: Health) -> None:
        """Schedule the circuit for the next minute in which there is something to do."""
        wanted = max(self._time.at + 1, health.probe_at if health.state is CircuitState.OPEN else 0)
        at = -(-wanted // MINUTE_MS) * MINUTE_MS
        if self._tick_at is None or at < self._tick_at:
            self._tick_at = at
            self._at(at, self._tick, None)

    def _tick(self, _: None) -> None:
        if self._time.at != self._tick_at:
            return
        self.work += LOOK
        self._tick_at = None
        self._recover.run(lambda: MINUTE_MS)
        health = self._known.health(KEY)
        if health is not None and any(self._known.looked_after()):
            self._plan_tick(health)


@dataclass(frozen=True, slots=True)
class _Told:
    """The attempts of a lot that the circuit is told of."""

    failed: int
    attempts: int

    def outcomes(self, circuit: Circuit, random: Random) -> list[bool]:
        """Whether each of them failed, in random order; identical ones are limited to as many as make a difference."""
        if not self.failed:
            return [False]
        if self.failed == self.attempts:
            return [True] * min(self.attempts, circuit.failures)
        count = min(self.attempts, TOLD)
        failed = round(self.failed * count / self.attempts)
        outcomes = [True] * failed + [False] * (count - failed)
        random.shuffle(outcomes)
        return outcomes


def _fails(answer: Answer) -> bool:
    return iron_verdict(answer) is Verdict.FAILED


def _drawn(count: int, share: float, random: Random) -> int:
    """How many out of this many are hit when each is hit with this probability."""
    if share >= 1:
        return count
    if count <= TOLD:
        return sum(random.random() < share for _ in range(count))
    return min(count, max(0, round(random.gauss(count * share, math.sqrt(count * share * (1 - share))))))


def _cuts(plan: Plan, lots: int) -> list[int]:
    """Where to cut the messages into lots: the number of each lot's first message, then the total number of messages.

    When trouble begins, a circuit opens within moments, so messages around those times go into smaller lots.
    """
    count = plan.messages
    cuts = {*range(0, count, -(-count // lots)), count}
    if plan.circuit is None:
        return sorted(cuts)
    beginnings = [*islice(_beginnings(plan), MOST_BEGINNINGS)]
    for at_ms, fails_after_ms in beginnings:
        first = math.ceil(at_ms * count / plan.duration_ms)
        critical = math.ceil(plan.rate * fails_after_ms / 1000) + 2 * plan.circuit.failures
        step = -(-critical // max(1, lots // (2 * len(beginnings))))
        cuts |= {each for each in range(first, first + critical + 1, step) if each < count}
    return sorted(cuts)


def _beginnings(plan: Plan) -> Iterator[tuple[int, int]]:
    """When trouble begins while messages arrive, and how long attempts then take to fail."""
    for window in plan.endpoint.windows:
        fails_after_ms = window.fails_after_ms(plan.timeout_s * 1000)
        if fails_after_ms is not None:
            every = window.down_ms + window.up_ms if window.down_ms else window.ends - window.begins
            yield from ((at, fails_after_ms) for at in range(window.begins, min(window.ends, plan.duration_ms), every))
