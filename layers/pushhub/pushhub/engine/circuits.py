"""Circuits of subscribers, as one execution environment sees them: it counts by itself,
and reads and writes what is known to all.

No attempt costs a write. Health is written when it changes: at a first failure after a success, when the circuit opens,
at a probe, when the subscriber is back, at a warning. It is read at most once in a few seconds for each subscriber that
is attempted. What is in memory may be a little old, which costs a dead subscriber a few requests more and a live one a
short wait, never a message.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from pushhub.base.conflicts import until_saved
from pushhub.base.errors import Conflict, Unavailable
from pushhub.engine.faults import described
from pushhub.engine.model.circuit import (
    Circuit,
    CircuitState,
    Health,
    SubscriberKey,
    claimed,
    drained,
    due_warning,
    failed,
    ramped,
    reset,
    succeeded,
    warned,
)
from pushhub.engine.model.subscriber_event import SubscriberEvent, SubscriberEventKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.ports import Healths, OrderSink, SubscriberEvents, WaitingOrders

FRESH_MS = 10_000
"""How old what is known of a subscriber may be."""

QUIET_MS = 60_000
"""After a success was written, an execution environment writes no failure for so long:
so one that fails now and then does not cost a write each time.
"""

SETTLED_MS = 60_000
"""A circuit stays in the list of those to look after for so long after it closed:
a run that read of it earlier may still make something wait.
"""

KNOWN = 5_000
"""Subscribers remembered; the one that was looked at longest ago is forgotten first."""

MINUTE_MS = 60_000

MARGIN_MS = 10_000
"""Kept free at the end of a run."""

AT_ONCE = 50
"""Circuits that are seen to side by side."""

MOST_AT_ONCE = 1_000
"""Orders that are let go at a time where the circuit is closed."""


class Gate(Enum):
    """Whether an attempt may be made."""

    GO = "go"
    PROBE = "probe"
    """It is the one that finds out whether the subscriber is back."""
    WAIT = "wait"
    """What is owed waits on the subscriber."""


@dataclass
class _Known:
    """What this environment knows of a subscriber."""

    health: Health
    read_at: int
    in_a_row: int = 0
    quiet_until: int = 0
    lately: deque[tuple[int, bool]] = field(default_factory=deque)

    def tripped(self, circuit: Circuit, now: int) -> bool:
        """Whether its failures are too many."""
        while self.lately and self.lately[0][0] < now - circuit.window_s * 1000:
            self.lately.popleft()
        failures = sum(bad for _, bad in self.lately)
        share = len(self.lately) >= circuit.least and failures >= circuit.share * len(self.lately)
        return self.in_a_row >= circuit.failures or share


class Circuits:
    """Says who may be attempted, and learns from what came of it. Safe to share between threads.

    Args:
        healths: What all know.
        events: Told of warnings, and of subscribers to be disabled; by the name of their queue.
        clock: Time.
        telemetry: Metrics.
    """

    def __init__(
        self,
        *,
        healths: Healths,
        events: Callable[[str], Sequence[SubscriberEvents]],
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._healths = healths
        self._events = events
        self._clock = clock
        self._telemetry = telemetry
        self._known: OrderedDict[SubscriberKey, _Known] = OrderedDict()
        self._lock = threading.Lock()

    def gate(self, key: SubscriberKey, *, probe_ms: int) -> Gate:
        """Whether an attempt may be made now.

        Args:
            key: The subscriber.
            probe_ms: Milliseconds that a probe may take, until another one may be made.

        Raises:
            Unavailable: Its health could not be read or written.
        """
        known = self._fresh(key)
        if known.health.state is not CircuitState.OPEN:
            return Gate.GO
        probing = claimed(known.health, self._clock.now(), for_ms=probe_ms)
        if probing is None:
            return Gate.WAIT
        try:
            self._healths.save(probing)
        except Conflict:
            self._forget(key)
            return Gate.WAIT
        self._telemetry.count("CircuitProbes")
        self._learn(known, probing)
        return Gate.PROBE

    def ended(self, key: SubscriberKey, circuit: Circuit, *, failure: bool, probe: bool) -> None:
        """Learn from an attempt. What cannot be written is learned from the next one: a delivery never fails for it.

        Args:
            key: The subscriber.
            circuit: Its settings.
            failure: Whether it failed.
            probe: Whether it was the probe.
        """
        now = self._clock.now()
        try:
            known = self._fresh(key)
            with self._lock:
                known.in_a_row = known.in_a_row + 1 if failure else 0
                known.lately.append((now, failure))
                tripped = failure and known.tripped(circuit, now)
                quiet = failure and not tripped and not probe and now < known.quiet_until
            if quiet:
                return
            if not failure:
                if not known.health.well:
                    known.quiet_until = now + QUIET_MS
                self._change(known, lambda health: succeeded(health, now))
                return
            self._change(known, lambda health: failed(health, circuit, now, tripped=tripped, probe=probe))
            before = known.health
            percent = due_warning(before, circuit, now)
            if percent is not None:
                # Told before it is written: rather twice, and known by its cause, than never. What another environment
                # gave meanwhile was this very warning, so it is not counted a second time.
                self._tell(before, percent, now)
                given = before.failing_since, before.warnings
                self._change(
                    known,
                    lambda health: warned(health, now) if (health.failing_since, health.warnings) == given else health,
                )
        except Unavailable as error:
            self._telemetry.count("CallsFailed")
            self._telemetry.event(
                "health_not_written", error=str(error), project=key.project, subscriber_id=key.subscriber_id
            )

    def start_over(self, key: SubscriberKey) -> None:
        """A subscriber was disabled, enabled or changed: what waits on it is looked at soon,
        and nothing is held against it.

        Raises:
            Unavailable: Nothing may be assumed; call again.
        """
        known = self._fresh(key)
        clean = Health(key=key, version=known.health.version, changed_at=known.health.changed_at)
        if known.health != clean:
            self._change(known, lambda health: reset(health, self._clock.now()))

    def _change(self, known: _Known, change: Callable[[Health], Health]) -> None:
        """Write a change, again from what is stored when another one came first.

        Raises:
            Unavailable: There was no end of others' changes, or it could not be read or written.
        """

        def once() -> None:
            # What is remembered will do at first: a save says so when it is not what is stored any more.
            before = known.health
            after = change(before)
            if after is before:
                return
            if after.state is CircuitState.OPEN and before.state is not CircuitState.OPEN:
                self._healths.look_after(after.key)
            try:
                self._healths.save(after)
            except Conflict:
                self._learn(known, self._healths.health(before.key) or Health(key=before.key))
                raise
            self._learn(known, after)
            if after.state is not before.state:
                self._telemetry.count(f"Circuits{after.state.value.capitalize()}")
                self._telemetry.event(
                    "circuit",
                    state=after.state.value,
                    project=after.key.project,
                    queue=after.key.queue,
                    subscriber_id=after.key.subscriber_id,
                )

        until_saved(once, doing="writing what is known of a subscriber")

    def _tell(self, health: Health, percent: int, now: int) -> None:
        over = percent == 100
        key = health.key
        event = SubscriberEvent(
            kind=SubscriberEventKind.DISABLE if over else SubscriberEventKind.FAILING,
            project=key.project,
            queue=key.queue,
            queue_uid=key.queue_uid,
            subscriber_id=key.subscriber_id,
            at=now,
            reason="failing",
            failing_since=health.failing_since,
            percent=percent,
        )
        for each in self._events(event.queue):
            each.happened(event)
        self._telemetry.count("SubscribersDisabled" if over else "SubscribersFailing")

    def _fresh(self, key: SubscriberKey) -> _Known:
        now = self._clock.now()
        with self._lock:
            known = self._known.get(key)
            if known is not None and now - known.read_at < FRESH_MS:
                self._known.move_to_end(key)
                return known
        health = self._healths.health(key) or Health(key=key)
        with self._lock:
            known = self._known.setdefault(key, _Known(health=health, read_at=now))
            self._known.move_to_end(key)
            if len(self._known) > KNOWN:
                self._known.popitem(last=False)
        self._learn(known, health)
        return known

    def _learn(self, known: _Known, health: Health) -> None:
        with self._lock:
            if health.version >= known.health.version:
                if health.state is not known.health.state:
                    # What was counted belongs to the time before: after a probe, and for others' news, counting starts
                    # anew.
                    known.in_a_row = 0
                    known.lately.clear()
                known.health, known.read_at = health, self._clock.now()

    def _forget(self, key: SubscriberKey) -> None:
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                known.read_at = 0


class Recover:
    """Sees each minute to the circuits that are not closed: a probe for those that are open,
    a share of what waits for those that ramp.

    Args:
        healths: What is known of subscribers.
        backlog: What waits on them.
        retry_queue: Where orders go that are let go.
        clock: Time.
        telemetry: Metrics.
        executor: Sees to several side by side.
    """

    def __init__(
        self,
        *,
        healths: Healths,
        backlog: WaitingOrders,
        retry_queue: OrderSink,
        clock: Clock,
        telemetry: Telemetry,
        executor: Executor,
    ) -> None:
        self._executor = executor
        self._healths = healths
        self._backlog = backlog
        self._retry_queue = retry_queue
        self._clock = clock
        self._telemetry = telemetry

    def run(self, remaining_ms: Callable[[], int]) -> int:
        """See to all of them, as far as the milliseconds that are left allow; how many orders were let go.

        Raises:
            Unavailable: They could not be listed; the next run goes on.
        """
        keys = [*self._healths.looked_after()]
        # Another one first each minute, so that those at the end come too when there are more than a run can see to.
        first = self._clock.now() // MINUTE_MS * AT_ONCE % max(1, len(keys))
        keys = keys[first:] + keys[:first]
        count = 0
        while keys and remaining_ms() > MARGIN_MS:
            count += sum(self._executor.map(self._see_to_safely, keys[:AT_ONCE]))
            del keys[:AT_ONCE]
        if count:
            self._telemetry.count("DeliveriesReleased", count)
        return count

    def _see_to_safely(self, key: SubscriberKey) -> int:
        """What goes wrong with one subscriber must not hold up the others, nor what wakes after them.

        The next minute tries again.
        """
        try:
            return self._see_to(key)
        except Exception as error:  # noqa: BLE001 (told, counted, and tried again each minute)
            self._telemetry.count("CallsFailed" if isinstance(error, Unavailable) else "CircuitFaults")
            self._telemetry.event(
                "circuit_not_seen_to",
                **described(error),
                project=key.project,
                queue=key.queue,
                subscriber_id=key.subscriber_id,
            )
        return 0

    def _see_to(self, key: SubscriberKey) -> int:
        health = self._healths.health(key) or Health(key=key)
        now = self._clock.now()
        if health.state is CircuitState.OPEN:
            return self._let_go(key, 1) if now >= health.probe_at else 0
        if health.state is CircuitState.CLOSED:
            count = self._let_go(key, MOST_AT_ONCE)
            if not count and now - health.changed_at > SETTLED_MS:
                self._healths.leave(key)
            return count
        count = self._let_go(key, health.release)
        nothing_waits = not count and now - health.changed_at > SETTLED_MS
        try:
            self._healths.save(drained(health, now) if nothing_waits else ramped(health))
        except Conflict:
            return count
        return count

    def _let_go(self, key: SubscriberKey, most: int) -> int:
        """Queue what has waited longest, then take it from the list.

        A crash between the two queues it twice, which is harmless.
        """
        waiting = self._backlog.waiting(key, most)
        if waiting:
            self._retry_queue.send([(each.order, 0) for each in waiting])
            self._backlog.remove(key, waiting)
        return len(waiting)
