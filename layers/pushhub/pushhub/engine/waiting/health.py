"""How subscribers are doing: gathers what is stored of them, and what waits for them, for
:mod:`pushhub.engine.model.subscriber_health`.

Each delivery is counted once, wherever it waits: with those that failed and are retried, in the backlog behind a
circuit or a pause, or in line for the subscriber's limits. Nothing is written for that when messages are delivered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pushhub.base.ids import time_of_message_id
from pushhub.engine.attempts.ports import Healths, SubscriberBacklog
from pushhub.engine.component import Component
from pushhub.engine.flow.ports import Backlogs, SlowSubscribers
from pushhub.engine.model.activity import HOUR_MS
from pushhub.engine.model.circuit import CircuitState, Health, SubscriberKey
from pushhub.engine.model.flow import FlowKey, Limits
from pushhub.engine.model.subscriber_health import Owed, SubscriberHealth, TokenOutage, health_of
from pushhub.engine.security.oauth import TokenOwner

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from pushhub.base.ports import Clock
    from pushhub.engine.attempts.ports import Unsettled
    from pushhub.engine.model.activity import SubscriberActivity
    from pushhub.engine.model.work import WorkOrder
    from pushhub.engine.records.ports import ActivityStore
    from pushhub.engine.security.oauth import AccessTokenStore, TokenState

MOST_COUNTED = 10_000
"""What is retried in a queue, or waits in a backlog, is counted up to this number."""

ENTRIES_READ = (MOST_COUNTED // 100 + 1, 1_000, MOST_COUNTED + 1)
"""Entries of a backlog that are read; more are if these have too few orders."""

SETTLED_MS = 600_000
"""How long after a circuit has closed its backlog is still looked at."""

MOST_SLOW = 1_000
"""Slow subscribers that are looked up: they stand in line without limits of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A subscriber whose health is asked for.

    Attributes:
        tokens: Whose tokens it is sent (:class:`pushhub.engine.security.oauth.TokenOwner`); empty if it is sent none.
        certificate_ends_at: When its client certificate ends, epoch milliseconds; None if it has none.
        cleared_at: What its queue accepted up to then (epoch milliseconds) was cleared, and is not owed any more.
    """

    key: SubscriberKey
    tokens: str = ""
    disabled: bool = False
    awaits_consent: bool = False
    paused: bool = False
    limits: Limits | None = None
    certificate_ends_at: int | None = None
    cleared_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Retried:
    """Ids of a queue's messages that are retried, by subscriber."""

    ids: Mapping[str, set[str]]
    complete: bool


class _Subscribers(Healths, SubscriberBacklog, Backlogs, SlowSubscribers, Protocol):
    """What is stored of subscribers."""


class SubscriberHealths(Component):
    """Tells the health of subscribers."""

    subscribers: Callable[[], _Subscribers]  # Their circuits, backlogs and speed.
    tokens: Callable[[], AccessTokenStore]
    deliveries: Unsettled
    activity: Callable[[], ActivityStore]  # What happened at each, hour by hour.
    is_suspended: Callable[[str], bool]  # Says which projects are suspended, by id.
    executor: Executor  # Reads for several subscribers in parallel.
    clock: Clock

    def of(self, project_id: str, watched: Sequence[Watched]) -> list[SubscriberHealth]:
        """The health of subscribers of a project, in their order."""
        if not watched:
            return []
        now = self.clock.now()
        keys = [each.key for each in watched]
        stored = self.subscribers().healths(keys)
        outages = self._outages(project_id, [each.tokens for each in watched if each.tokens])
        uids = sorted({each.queue_uid for each in keys})
        retried = dict(zip(uids, self.executor.map(lambda uid: self._retried(project_id, uid), uids), strict=True))
        slow = self.subscribers().slow(now, MOST_SLOW)
        suspended = self.is_suspended(project_id)
        lately = self._lately(project_id, keys, stored, now)

        def owed(each: Watched) -> Owed:
            key = each.key
            behind = self._backlog(key, stored.get(key), now, held=each.paused or suspended)
            stands = each.limits is not None or (key.project, key.queue_uid, key.subscriber_id) in slow
            return _owed(retried[key.queue_uid], each, behind, self._line(each) if stands else ())

        return [
            health_of(
                now=now,
                stored=stored.get(each.key),
                outage=outages.get(each.tokens),
                owed=waits,
                lately=lately.get(each.key.subscriber_id),
                disabled=each.disabled,
                awaits_consent=each.awaits_consent,
                suspended=suspended,
                paused=each.paused,
                certificate_ends_at=each.certificate_ends_at,
            )
            for each, waits in zip(watched, self.executor.map(owed, watched), strict=True)
        ]

    def unwell(self, project_id: str) -> tuple[list[SubscriberKey], list[str]]:
        """Subscribers of a project that fail or are paused, and the names of those whose token server gives no token.

        All of them, and perhaps some that are well again.
        """
        failing = [
            each.key
            for each in self.subscribers().healths_of(project_id)
            if each.state is not CircuitState.CLOSED or each.failing_since is not None
        ]
        return failing, [each.owner.name for each in self.tokens().token_states_of(project_id) if each.failures]

    def _lately(
        self, project_id: str, keys: Sequence[SubscriberKey], stored: Mapping[SubscriberKey, Health], now: int
    ) -> dict[str, SubscriberActivity]:
        """What happened in this hour and the one before, at those whose health has not changed meanwhile: of the others
        it tells nothing of what holds since.
        """
        hour = now - now % HOUR_MS
        before = hour - HOUR_MS
        ids = [each.subscriber_id for each in keys if each not in stored or stored[each].changed_at < before]
        return self.activity().activity_at(project_id, ids, [before, hour]) if ids else {}

    def _outages(self, project_id: str, names: Sequence[str]) -> dict[str, TokenOutage]:
        if not names:
            return {}
        states = self.tokens().token_states([TokenOwner(project_id, each) for each in names])
        return {each.owner.name: outage for each in states if (outage := _outage(each))}

    def _retried(self, project_id: str, queue_uid: str) -> _Retried:
        found: dict[str, set[str]] = defaultdict(set)
        entries = self.deliveries.retried(project_id, queue_uid, limit=MOST_COUNTED + 1)
        for message_id, subscriber_id in entries[:MOST_COUNTED]:
            found[subscriber_id].add(message_id)
        return _Retried(ids=found, complete=len(entries) <= MOST_COUNTED)

    def _backlog(self, key: SubscriberKey, stored: Health | None, now: int, *, held: bool) -> Sequence[str]:
        """Ids of the messages that wait behind a circuit or a pause. Whoever never failed has no backlog."""
        if stored is None:
            return ()
        settled = stored.state is CircuitState.CLOSED and now - stored.changed_at > SETTLED_MS
        return () if settled and not held else self.subscribers().waiting_ids(key, MOST_COUNTED + 1)

    def _line(self, watched: Watched) -> Sequence[str]:
        """Ids of the messages that wait for the subscriber's limits."""
        key, parts = watched.key, watched.limits.parts if watched.limits else 1
        flows = (FlowKey.of_subscriber(key.project, key.queue_uid, key.subscriber_id, part) for part in range(parts))
        return [order.key.message_id for flow in flows for order in self._in_line(flow)]

    def _in_line(self, flow: FlowKey) -> list[WorkOrder]:
        """Orders in a backlog, up to :data:`MOST_COUNTED`: each entry has up to a hundred of them, and whoever has the
        lease reads there, too.
        """
        orders: list[WorkOrder] = []
        for most in ENTRIES_READ:
            entries = self.subscribers().backlog(flow, most)
            orders = [order for entry in entries for order in entry.orders]
            if len(entries) < most or len(orders) > MOST_COUNTED:
                break
        return orders


def _outage(state: TokenState) -> TokenOutage | None:
    if not state.failures:
        return None
    return TokenOutage(since=state.failing_since, ask_at=state.ask_at, reason=state.reason)


def _owed(retried: _Retried, watched: Watched, behind: Sequence[str], line: Sequence[str]) -> Owed:
    ids, waiting, in_line = (
        {each for each in some if time_of_message_id(each) > watched.cleared_at}
        for some in (retried.ids.get(watched.key.subscriber_id, ()), behind, line)
    )
    return Owed(
        waiting=len(ids | waiting | in_line),
        retried=len(ids),
        in_line=len(in_line),
        oldest_at=time_of_message_id(min(ids)) if ids else None,
        complete=retried.complete and max(len(behind), len(line)) <= MOST_COUNTED,
    )
