"""Circuit breakers of subscribers, as one execution environment sees them: it counts on its own, and reads and writes
the shared state.

Attempts cost no writes. Health is written only when it changes: at the first failure after a success, when the circuit
opens, at a probe, when the subscriber is back, and at a warning. It is read at most once every few seconds for each
subscriber that is attempted. The copy in memory may be slightly stale, which costs a dead subscriber a few extra
requests and a live one a short wait, but never a message.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from pushhub.base.conflicts import until_saved
from pushhub.base.errors import Conflict, Unavailable
from pushhub.engine.component import Component
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
    paused,
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
    from pushhub.engine.attempts.ports import Healths
    from pushhub.engine.ports import OrderSink, QueueSource, SubscriberEvents, WaitingOrders

FRESH_MS = 10_000
"""Maximum age of a cached health."""

QUIET_MS = 60_000
"""After writing a success, an execution environment writes no failure for this long, so a subscriber that fails now and
then does not cost a write each time.
"""

SETTLED_MS = 60_000
"""How long a closed circuit stays on the list of those to look after: a run that saw it open may still make an order
wait.
"""

KNOWN = 5_000
"""Maximum number of subscribers kept in memory; the least recently used is forgotten first."""

MINUTE_MS = 60_000

MARGIN_MS = 10_000
"""Time kept free at the end of a run."""

AT_ONCE = 50
"""Number of circuits handled in parallel."""

MOST_AT_ONCE = 1_000
"""Orders released at a time once the circuit is closed."""


class Gate(Enum):
    """Whether an attempt may be made."""

    GO = "go"
    PROBE = "probe"
    """This attempt is the probe that finds out whether the subscriber is back."""
    WAIT = "wait"
    """Not now: the delivery waits in the subscriber's backlog."""


@dataclass
class _LocalHealth:
    """What this environment knows of a subscriber."""

    health: Health
    read_at: int
    in_a_row: int = 0
    quiet_until: int = 0
    lately: deque[tuple[int, bool]] = field(default_factory=deque)

    def tripped(self, circuit: Circuit, now: int) -> bool:
        """Whether it failed too often."""
        while self.lately and self.lately[0][0] < now - circuit.window_s * 1000:
            self.lately.popleft()
        failures = sum(bad for _, bad in self.lately)
        share = len(self.lately) >= circuit.least and failures >= circuit.share * len(self.lately)
        return self.in_a_row >= circuit.failures or share


class Circuits(Component):
    """Decides which subscribers may be attempted, and learns from the outcomes. Thread-safe."""

    healths: Healths  # The shared state.
    # Told of warnings and of subscribers to be disabled; chosen by queue name.
    events: Callable[[str], Sequence[SubscriberEvents]]
    clock: Clock
    telemetry: Telemetry

    def __post_init__(self) -> None:
        self._known: OrderedDict[SubscriberKey, _LocalHealth] = OrderedDict()
        self._lock = threading.Lock()

    def gate(self, key: SubscriberKey, *, probe_ms: int) -> Gate:
        """Whether an attempt may be made now.

        Args:
            probe_ms: Milliseconds that a probe may take before another one may be made.
        """
        known = self._fresh(key)
        if known.health.state is not CircuitState.OPEN:
            return Gate.GO
        # Two environments may claim in the same millisecond, and the same write made twice counts for both.
        probing = claimed(known.health, self.clock.now(), for_ms=probe_ms, claim=secrets.token_hex(8))
        if probing is None:
            return Gate.WAIT
        try:
            self.healths.save(probing)
        except Conflict:
            self._forget(key)
            return Gate.WAIT
        self.telemetry.count("CircuitProbes")
        self._learn(known, probing)
        return Gate.PROBE

    def ended(self, key: SubscriberKey, circuit: Circuit, *, failure: bool, probe: bool) -> None:
        """Learn from an attempt. If a change cannot be written, the next attempt will do it; a delivery never fails for
        that.

        Args:
            failure: Whether it failed.
            probe: Whether it was the probe.
        """
        now = self.clock.now()
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
                # The event is reported before it is written: better twice (its cause identifies it) than never. If
                # another environment gave a warning meanwhile, it was this very one, so it is not counted again.
                self._tell(before, percent, now)
                given = before.failing_since, before.warnings
                self._change(
                    known,
                    lambda health: warned(health, now) if (health.failing_since, health.warnings) == given else health,
                )
        except Unavailable as error:
            self.telemetry.count("CallsFailed")
            self.telemetry.event(
                "health_not_written", error=str(error), project=key.project, subscriber_id=key.subscriber_id
            )

    def start_over(self, key: SubscriberKey) -> None:
        """A subscriber was disabled, enabled or changed: its backlog is looked at soon, its failures are forgotten."""
        known = self._fresh(key)
        clean = Health(key=key, version=known.health.version, changed_at=known.health.changed_at)
        if known.health != clean:
            self._change(known, lambda health: reset(health, self.clock.now()))

    def hold(self, key: SubscriberKey) -> None:
        """A delivery is about to wait because its subscriber is paused or its project suspended: note that. The sweep
        then leaves it alone, and :class:`Recover` releases it when that has ended. Mostly without a call.
        """
        known = self._fresh(key)
        if known.health.state is not CircuitState.PAUSED:
            self._change(known, lambda health: paused(health, self.clock.now()))

    def _change(self, known: _LocalHealth, change: Callable[[Health], Health]) -> None:
        """Write a change, starting again from the stored state if another change came first."""

        def once() -> None:
            # The cached health will do at first: the save reports a conflict if it is out of date.
            before = known.health
            after = change(before)
            if after is before:
                return
            if after.state is not before.state and after.state in (CircuitState.OPEN, CircuitState.PAUSED):
                self.healths.look_after(after.key, self.clock.now())
            try:
                self.healths.save(after)
            except Conflict:
                self._learn(known, self.healths.health(before.key) or Health(key=before.key))
                raise
            self._learn(known, after)
            if after.state is not before.state:
                self.telemetry.count(f"Circuits{after.state.value.capitalize()}")
                self.telemetry.event(
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
        for each in self.events(event.queue):
            each.happened(event)
        self.telemetry.count("SubscribersDisabled" if over else "SubscribersFailing")

    def _fresh(self, key: SubscriberKey) -> _LocalHealth:
        now = self.clock.now()
        with self._lock:
            known = self._known.get(key)
            if known is not None and now - known.read_at < FRESH_MS:
                self._known.move_to_end(key)
                return known
        health = self.healths.health(key) or Health(key=key)
        with self._lock:
            known = self._known.setdefault(key, _LocalHealth(health=health, read_at=now))
            self._known.move_to_end(key)
            if len(self._known) > KNOWN:
                self._known.popitem(last=False)
        self._learn(known, health, asked_at=now)
        return known

    def _learn(self, known: _LocalHealth, health: Health, *, asked_at: int = 0) -> None:
        """Know what is stored, or was just written.

        Args:
            asked_at: When it was read. What is stored may be older than what is known: the table was lost, or restored.
                It is true all the same, unless something was learned since it was asked for.
        """
        with self._lock:
            if health.version >= known.health.version or known.read_at < asked_at:
                if health.state is not known.health.state:
                    # The counts belong to the past: after a probe, or a change made elsewhere, counting starts again.
                    known.in_a_row = 0
                    known.lately.clear()
                known.health, known.read_at = health, self.clock.now()

    def _forget(self, key: SubscriberKey) -> None:
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                known.read_at = 0


class Recover(Component):
    """Handles the circuits that are not closed, each minute: a probe for those that are open, a share of the backlog
    for those that ramp, and all of it for those that were paused and are no longer.
    """

    queues: QueueSource  # Say which subscribers are paused.
    is_suspended: Callable[[str], bool]  # Says which projects are suspended, by id.
    healths: Healths
    backlog: WaitingOrders
    retry_queue: OrderSink  # Where released orders go.
    clock: Clock
    telemetry: Telemetry
    executor: Executor  # Handles several circuits in parallel.

    def run(self, remaining_ms: Callable[[], int]) -> int:
        """Handle all circuits, as far as the remaining milliseconds allow; returns the number of orders released."""
        keys = [*self.healths.looked_after()]
        # Start with a different one each minute, so that the last ones get their turn when there are too many for one
        # run.
        first = self.clock.now() // MINUTE_MS * AT_ONCE % max(1, len(keys))
        keys = keys[first:] + keys[:first]
        count = 0
        while keys and remaining_ms() > MARGIN_MS:
            count += sum(self.executor.map(self._see_to_safely, keys[:AT_ONCE]))
            del keys[:AT_ONCE]
        if count:
            self.telemetry.count("DeliveriesReleased", count)
        return count

    def _see_to_safely(self, key: SubscriberKey) -> int:
        """A problem with one subscriber must not delay the others, or the deliveries to be woken after them.

        The next minute tries again.
        """
        try:
            return self._see_to(key)
        except Exception as error:  # noqa: BLE001 (told, counted, and tried again each minute)
            self.telemetry.count("CallsFailed" if isinstance(error, Unavailable) else "CircuitFaults")
            self.telemetry.event(
                "circuit_not_seen_to",
                **described(error),
                project=key.project,
                queue=key.queue,
                subscriber_id=key.subscriber_id,
            )
        return 0

    def _see_to(self, key: SubscriberKey) -> int:
        health = self.healths.health(key) or Health(key=key)
        now = self.clock.now()
        if health.state is CircuitState.OPEN:
            return self._let_go(key, 1) if now >= health.probe_at else 0
        if health.state is CircuitState.PAUSED:
            if self.is_suspended(key.project) or self._is_paused(key):
                return 0
            # A run may still go by the settings from before, so the backlog is looked at for another minute.
            health = reset(health, now)
            try:
                self.healths.save(health)
            except Conflict:
                return 0
        if health.state is CircuitState.CLOSED:
            count = self._let_go(key, MOST_AT_ONCE)
            if not count and now - health.changed_at > SETTLED_MS:
                # Whoever opens it again lists it first.
                self.healths.leave(key, now - SETTLED_MS)
            return count
        count = self._let_go(key, health.release)
        nothing_waits = not count and now - health.changed_at > SETTLED_MS
        try:
            self.healths.save(drained(health, now) if nothing_waits else ramped(health))
        except Conflict:
            return count
        return count

    def _is_paused(self, key: SubscriberKey) -> bool:
        """Whether a subscriber is there and paused, as its queue says now."""
        queue = self.queues.queue(key.project, key.queue, fresh=True)
        if queue is None or queue.push is None or queue.uid != key.queue_uid:
            return False
        subscriber = queue.push.subscriber(key.subscriber_id)
        return subscriber is not None and subscriber.paused

    def _let_go(self, key: SubscriberKey, most: int) -> int:
        """Queue the orders that have waited longest, then remove them from the backlog.

        A crash in between queues them twice, which is harmless.
        """
        waiting = self.backlog.waiting(key, most)
        if waiting:
            self.retry_queue.send([(each.order, 0) for each in waiting])
            self.backlog.remove(key, waiting)
        return len(waiting)
