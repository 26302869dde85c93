"""Quotas of projects on what producers post, shared by all execution environments (decision 0052).

An environment leases part of a project's quota in advance, as many messages as it has recently used, so most posts
touch nothing but memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.base.cache import ExpiringCache
from pushhub.base.errors import QuotaExceeded, Unavailable
from pushhub.engine.model.quota import Quota

if TYPE_CHECKING:
    from collections.abc import Callable

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.ports import ProjectStore, QuotaStore

LEASE_MS = 10_000
"""How long a lease is valid."""

LEASES_OF_A_BURST = 10
"""A lease is at most this fraction of the burst, so that a few environments cannot hold all of it."""

FREE_SHARE = 1_000
"""An environment accepts this fraction of the messages that the rate allots to a lease's time, but at least one,
without a lease. So a project that posts little costs no write, and a thousand environments together exceed the quota by
no more than the quota itself.
"""

STRICT_MS = 60_000
"""How long an environment that refused a post accepts nothing without a lease."""

REFUSED_MS = 1_000
"""Minimum wait of an environment that refused a post before it asks for a lease again; doubles up to four times this.
"""

_DOUBLINGS = 2
_FORGET_MS = 3_600_000
_KNOWN = 5_000


@dataclass
class _Lease:
    """One environment's part of a project's quota. Times are epoch milliseconds.

    Attributes:
        size: Messages that the next lease is for.
        left: Unused messages of the current lease.
        used: Messages used from it.
        until: When it lapses.
        mark: The project's mark when it was last seen, epoch microseconds.
        free_at: When the next message is accepted without a lease.
        asks_at: When a lease is asked for again after a refusal.
        refused: Size of the refused post, in messages; until then, posts at least as large are refused unasked.
        refusals: Consecutive refusals.
    """

    size: int = 1
    left: int = 0
    used: int = 0
    until: int = 0
    mark: int = 0
    free_at: int = 0
    asks_at: int = 0
    refused: int = 0
    refusals: int = 0

    def spare_us(self, quota: Quota, now: int) -> int:
        """How far the mark may still be moved, in microseconds."""
        return now * 1000 + quota.us(quota.burst) - max(self.mark, now * 1000)


class Quotas:
    """Decides whether a project may post; for one thread at a time.

    Args:
        projects: Projects, some with a quota of their own.
        marks: Until when each project's quota is spent.
        default: Messages per second for projects without a quota of their own; 0 for no limit.
        clock: Time.
        telemetry: Reports refusals, and quotas that could not be read.
    """

    def __init__(
        self,
        *,
        projects: ProjectStore,
        marks: QuotaStore,
        default: Callable[[], int],
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._projects = projects
        self._marks = marks
        self._default = default
        self._clock = clock
        self._telemetry = telemetry
        self._leases = ExpiringCache[_Lease](clock, ttl_ms=_FORGET_MS, capacity=_KNOWN)

    def take(self, project_id: str, count: int) -> None:
        """Count the messages of a producer's post; call this before any of them is stored.

        Raises:
            QuotaExceeded: They exceed the project's quota.
        """
        try:
            self._take(project_id, count)
        except Unavailable as error:
            # The quota protects other projects; a failed call of our own is no reason to refuse a message.
            self._telemetry.count("CallsFailed")
            self._telemetry.event("quota_unknown", error=str(error), project=project_id)
        except QuotaExceeded:
            self._telemetry.count("MessagesRefused", count)
            raise

    def _take(self, project_id: str, count: int) -> None:
        quota = self._quota(project_id)
        if not quota.per_second:
            return
        lease = self._leases.get(project_id)
        if lease is None:
            lease = _Lease()
            self._leases.put(project_id, lease)
        now = self._clock.now()
        if now < lease.until and lease.left >= count:
            lease.left -= count
            lease.used += count
            return
        if now < lease.asks_at and count >= lease.refused:
            raise _exceeded(quota, lease.asks_at - now)
        if _is_free(quota, lease, count, now):
            lease.free_at = now + LEASE_MS
            return
        self._renew(project_id, quota, lease, count)

    def _quota(self, project_id: str) -> Quota:
        project = self._projects.project(project_id)
        own = project.quota if project else None
        return own or Quota.of(self._default())

    def _renew(self, project_id: str, quota: Quota, lease: _Lease, count: int) -> None:
        """Lease as many messages as a post needs, plus those expected after it.

        Raises:
            QuotaExceeded: There are not even enough for the post itself.
        """
        now = self._clock.now()
        most = max(1, quota.burst // LEASES_OF_A_BURST)
        if now < lease.until:
            lease.size = min(most, 2 * lease.size)
        else:
            lease.size, lease.left = max(1, min(most, lease.used)), 0
        # A batch that is larger than the burst counts as the burst, so that it can pass at all.
        need = min(count - lease.left, quota.burst)
        more = min(lease.size, quota.burst - need)
        if self._move(project_id, quota, lease, need + more):
            lease.left = more
        elif quota.messages(lease.spare_us(quota, now)) >= need and self._move(project_id, quota, lease, need):
            lease.left = 0
        else:
            self._refuse(project_id, quota, lease, count, need)
        lease.used, lease.until, lease.refusals = count, now + LEASE_MS, 0

    def _move(self, project_id: str, quota: Quota, lease: _Lease, messages: int) -> bool:
        """Take messages out of a project's quota; returns whether there were enough."""
        now = self._clock.now() * 1000
        mark = self._marks.move_mark(
            project_id, quota.us(messages), now=now, most_us=quota.us(quota.burst), ahead=lease.mark > now
        )
        lease.mark = mark.until
        return mark.moved

    def _refuse(self, project_id: str, quota: Quota, lease: _Lease, count: int, need: int) -> None:
        """Refuse a post and, for some time, all others that are not smaller; only the first one is logged."""
        now = self._clock.now()
        spent_ms = -((lease.spare_us(quota, now) - quota.us(need)) // 1000)
        waits_ms = max(REFUSED_MS << min(lease.refusals, _DOUBLINGS), spent_ms)
        lease.refusals += 1
        lease.asks_at, lease.refused = now + waits_ms, count
        lease.free_at = now + STRICT_MS
        self._telemetry.event("quota_exceeded", project=project_id, per_second=quota.per_second, wait_ms=waits_ms)
        raise _exceeded(quota, waits_ms)


def _is_free(quota: Quota, lease: _Lease, count: int, now: int) -> bool:
    """Whether a post is so small, and the last one like it so long ago, that it needs no lease."""
    return now >= lease.free_at and count <= max(1, quota.per_second * LEASE_MS // 1000 // FREE_SHARE)


def _exceeded(quota: Quota, waits_ms: int) -> QuotaExceeded:
    return QuotaExceeded(quota.per_second, retry_after_s=max(1, -(-waits_ms // 1000)))
