"""Quotas of projects on what producers post, shared by all execution environments (docs/decisions/projects.md).

Each environment pays for what it has accepted: it moves the project's mark. It pays a little later if that is little of
what it accepted lately.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.base.cache import ExpiringCache
from pushhub.base.errors import QuotaExceeded, Unavailable
from pushhub.engine.component import Component
from pushhub.engine.model.quota import Quota

if TYPE_CHECKING:
    from collections.abc import Callable

    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.ports import ProjectStore
    from pushhub.engine.projects.ports import QuotaStore

LATELY_MS = 30_000
"""What an environment accepted in this time counts for its credit; after as long without a post it owes nothing."""

CREDIT_PERCENT = 3
"""An environment owes at most this much of what it accepted lately. Whatever number of environments there are, and
however the posts move between them: what they owe when a minute ends is 3 % of what was accepted in it and in the half
minute before, so less than 5 % of a minute.
"""

REFUSED_MS = 1_000
"""Wait of an environment that refused a post before it asks again; twice this after a second refusal in a row, if half
of the burst lasts that long, so that the project loses nothing by it.
"""

_FORGET_MS = 3_600_000
_KNOWN = 5_000


@dataclass
class _Account:
    """What one environment knows of a project's quota. Times are epoch milliseconds.

    Attributes:
        owed: Messages accepted and not paid for.
        half: Which half of :data:`LATELY_MS` it is, counted from the epoch.
        accepted: Messages accepted in this half, and in the one before.
        mark: The project's mark when it was last seen, epoch microseconds.
        asks_at: When the mark is moved again after a refusal.
        refused: Size of the refused post, in messages; until then, posts at least as large are refused unasked.
        refusals: Consecutive refusals.
    """

    owed: int = 0
    half: int = 0
    accepted: tuple[int, int] = (0, 0)
    mark: int = 0
    asks_at: int = 0
    refused: int = 0
    refusals: int = 0

    def go_on(self, now: int) -> None:
        """Forget what was not lately."""
        half = now // (LATELY_MS // 2)
        if half > self.half + 1:
            self.owed, self.accepted = 0, (0, 0)
        elif half > self.half:
            self.accepted = 0, self.accepted[0]
        self.half = half

    def accept(self, count: int, *, owed: int) -> None:
        """Count a post that is accepted; so many messages are owed now."""
        self.owed = owed
        self.accepted = self.accepted[0] + count, self.accepted[1]

    @property
    def credit(self) -> int:
        """How many messages may be owed."""
        return sum(self.accepted) * CREDIT_PERCENT // 100


class Quotas(Component):
    """Decides whether a project may post; for one thread at a time."""

    projects: ProjectStore  # Projects, some with a quota of their own.
    marks: QuotaStore  # Until when each project's quota is spent.
    default: Callable[[], int]  # Messages per second for projects without a quota of their own; 0 for no limit.
    clock: Clock
    telemetry: Telemetry  # Reports refusals, and quotas that could not be read.

    def __post_init__(self) -> None:
        self._accounts = ExpiringCache[_Account](self.clock, ttl_ms=_FORGET_MS, capacity=_KNOWN)

    def take(self, project_id: str, count: int) -> None:
        """Count the messages of a producer's post; call this before any of them is stored.

        Raises:
            QuotaExceeded: They exceed the project's quota.
        """
        try:
            self._take(project_id, count)
        except Unavailable as error:
            # The quota protects other projects; a failed call of our own is no reason to refuse a message.
            self.telemetry.count("CallsFailed")
            self.telemetry.event("quota_unknown", error=str(error), project=project_id)
        except QuotaExceeded:
            self.telemetry.count("MessagesRefused", count)
            raise

    def _take(self, project_id: str, count: int) -> None:
        quota = self._quota(project_id)
        if not quota.per_second:
            return
        account = self._accounts.get(project_id)
        if account is None:
            account = _Account()
            self._accounts.put(project_id, account)
        now = self.clock.now()
        if now < account.asks_at and count >= account.refused:
            raise _exceeded(quota, account.asks_at - now)
        account.go_on(now)
        if account.owed + count <= account.credit:
            account.accept(count, owed=account.owed + count)
            return
        self._pay(project_id, quota, account, count)

    def _quota(self, project_id: str) -> Quota:
        project = self.projects.project(project_id)
        own = project.quota if project else None
        return own or Quota.of(self.default())

    def _pay(self, project_id: str, quota: Quota, account: _Account, count: int) -> None:
        """Pay for a post, and for what is owed.

        Raises:
            QuotaExceeded: The quota is spent.
        """
        messages = account.owed + count
        now, by_us, room_us = self.clock.now() * 1000, quota.us(messages), quota.room_us(messages)
        mark = self.marks.move_mark(project_id, by_us, now=now, most_us=room_us + by_us, ahead=account.mark > now)
        account.mark = mark.until
        if not mark.moved:
            # From now on: the call may have taken seconds, and the mark is as it was at its end.
            answered = self.clock.now() * 1000
            self._refuse(project_id, quota, account, count, wait_ms=-((answered + room_us - mark.until) // 1000))
        account.accept(count, owed=0)
        account.refusals = 0

    def _refuse(self, project_id: str, quota: Quota, account: _Account, count: int, *, wait_ms: int) -> None:
        """Refuse a post and, for some time, all others that are not smaller; only the first one is logged.

        Args:
            count: Messages of the post.
            wait_ms: After this time there is room for it, if nobody else posts.
        """
        if account.refusals and quota.us(quota.burst) >= 4000 * REFUSED_MS:
            wait_ms = max(2 * REFUSED_MS, wait_ms)
        wait_ms = max(REFUSED_MS, wait_ms)
        account.refusals += 1
        account.asks_at, account.refused = self.clock.now() + wait_ms, count
        self.telemetry.event("quota_exceeded", project=project_id, per_second=quota.per_second, wait_ms=wait_ms)
        raise _exceeded(quota, wait_ms)


def _exceeded(quota: Quota, wait_ms: int) -> QuotaExceeded:
    return QuotaExceeded(quota.per_second, retry_after_s=max(1, -(-wait_ms // 1000)))
