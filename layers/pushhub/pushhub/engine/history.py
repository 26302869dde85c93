"""A subscriber's own history as an outage to simulate policies against, from delivery records or from counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pushhub.base.times import epoch_ms
from pushhub.engine.model.attempt_counts import FIRST, GOOD, MINUTE_MS, REFUSED, TIMEOUT, AttemptCounts
from pushhub.engine.model.outage import Endpoint, Trouble, Window

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

WHOLE = 0.95
"""If at least this share of a minute's attempts failed, all of them count as failed."""

SIMILAR = 0.15
"""Minutes are merged into one window if their shares of failures differ by no more than this."""


@dataclass(slots=True)
class _Minute:
    """Attempts that began in a minute.

    Attributes:
        troubles: Failed attempts by cause and status.
        failed_ms: Total milliseconds of the failed attempts.
        good: Number of successful attempts.
        good_ms: Total milliseconds of the successful attempts.
        failed_at: When the failed attempts began, epoch milliseconds.
        good_at: When the successful ones began.
    """

    troubles: Counter[tuple[Trouble, int]] = field(default_factory=Counter)
    failed_ms: int = 0
    good: int = 0
    good_ms: int = 0
    failed_at: list[int] = field(default_factory=list)
    good_at: list[int] = field(default_factory=list)

    @property
    def failed(self) -> int:
        return self.troubles.total()

    def span(self, begins: int) -> tuple[int, int, float]:
        """The part of this minute (given its start) in which attempts failed, and the share that did: an outage may
        begin or end within the minute.
        """
        if not self.good_at:
            # Counts alone do not give exact times.
            return begins, begins + MINUTE_MS, self.failed / (self.failed + self.good)
        if max(self.good_at) <= min(self.failed_at):
            return min(self.failed_at), begins + MINUTE_MS, 1.0
        if max(self.failed_at) <= min(self.good_at):
            return begins, min(self.good_at), 1.0
        return begins, begins + MINUTE_MS, self.failed / (self.failed + self.good)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What happened to a subscriber.

    Attributes:
        starts_at: Epoch milliseconds of the first message's acceptance.
        duration_ms: From there to the last acceptance.
        messages: Messages accepted for it in that time.
        life_ms: Lifetime of its messages.
        endpoint: How it behaved over time, from ``starts_at`` on.
    """

    starts_at: int
    duration_ms: int
    messages: int
    attempts: int
    failed: int
    life_ms: int
    endpoint: Endpoint

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.messages * 1000 / self.duration_ms


def history(
    records: Iterable[Mapping[str, Any]], *, queue: str, subscriber: str, since: int, until: int, most_windows: int
) -> History | None:
    """The history of the subscriber's messages accepted within a time range; None if the records have none.

    A message counts once it has been attempted. Nothing is known about the time between two minutes with failures, so
    it counts as failing.

    Args:
        records: Delivery records, in any order; those of other subscribers are ignored.
        subscriber: Its name or its id.
        since: Start of the range, epoch milliseconds.
        until: End of the range, exclusive.
        most_windows: Maximum number of windows; the closest ones are merged.
    """
    accepted: dict[str, int] = {}
    minutes: dict[int, _Minute] = {}
    life_ms, failed = 0, 0
    seen: set[str] = set()
    for each in records:
        if each["kind"] != "attempt" or each["queue"] != queue or each["record_id"] in seen:
            continue
        if subscriber not in (each.get("subscriber"), each.get("subscriber_id")) or each.get("manual"):
            continue
        accepted_at = epoch_ms(each["accepted_at"])
        if not since <= accepted_at < until:
            continue
        seen.add(each["record_id"])
        accepted[f"{each['queue_uid']}/{each['message_id']}"] = accepted_at
        life_ms = max(life_ms, epoch_ms(each["expires_at"]) - accepted_at)
        started_at = epoch_ms(each["started_at"])
        minute = minutes.setdefault(started_at // MINUTE_MS, _Minute())
        if each["verdict"] == "failed":
            failed += 1
            minute.troubles[_trouble(each)] += 1
            minute.failed_ms += each["duration_ms"]
            minute.failed_at.append(started_at)
        else:
            minute.good += 1
            minute.good_ms += each["duration_ms"]
            minute.good_at.append(started_at)
    if not accepted:
        return None
    starts_at = min(accepted.values()) // MINUTE_MS * MINUTE_MS
    good = sum(each.good for each in minutes.values())
    windows = _fewer(_windows(minutes, starts_at), most_windows)
    return History(
        starts_at=starts_at,
        duration_ms=max(MINUTE_MS, max(accepted.values()) - starts_at),
        messages=len(accepted),
        attempts=len(seen),
        failed=failed,
        life_ms=life_ms,
        endpoint=Endpoint(
            windows=tuple(windows), takes_ms=sum(each.good_ms for each in minutes.values()) // good if good else 50
        ),
    )


def history_of_counts(
    hours: Mapping[int, AttemptCounts], *, since: int, until: int, most_windows: int
) -> History | None:
    """A subscriber's history from counts of its attempts; None if none were counted. Its troubles begin and end on full
    minutes.

    Attempts are only counted from the first failure until there was none for an hour, so nothing is known about the
    time before.

    Args:
        hours: Counts by the start of their hour, epoch milliseconds.
        since: Start of the range, epoch milliseconds, rounded down to its minute.
        until: End of the range, exclusive.
        most_windows: As in :func:`history`.
    """
    minutes: dict[int, _Minute] = {}
    first: dict[int, int] = {}
    for hour, counts in hours.items():
        good_ms = counts.good_ms // max(1, counts.count(GOOD))
        failed_ms = counts.failed_ms // max(1, counts.failed)
        for (number, outcome), count in counts.minutes.items():
            begins = hour + number * MINUTE_MS
            if not since - since % MINUTE_MS <= begins < until:
                continue
            if outcome == FIRST:
                first[begins] = count
                continue
            minute = minutes.setdefault(begins // MINUTE_MS, _Minute())
            if outcome == GOOD:
                minute.good += count
                minute.good_ms += count * good_ms
            else:
                minute.troubles[_counted_trouble(outcome)] += count
                minute.failed_ms += count * failed_ms
    if not minutes:
        return None
    starts_at = min(minutes) * MINUTE_MS
    good, failed = sum(each.good for each in minutes.values()), sum(each.failed for each in minutes.values())
    return History(
        starts_at=starts_at,
        duration_ms=max(first, default=starts_at) + MINUTE_MS - starts_at,
        messages=sum(first.values()),
        attempts=good + failed,
        failed=failed,
        life_ms=max(each.life_ms for each in hours.values()),
        endpoint=Endpoint(
            windows=tuple(_fewer(_windows(minutes, starts_at), most_windows)),
            takes_ms=sum(each.good_ms for each in minutes.values()) // good if good else 50,
        ),
    )


def _counted_trouble(outcome: str) -> tuple[Trouble, int]:
    if outcome == TIMEOUT:
        return Trouble.TIMES_OUT, 0
    return (Trouble.REFUSES, 0) if outcome == REFUSED else (Trouble.ANSWERS, int(outcome))


def _trouble(record: Mapping[str, Any]) -> tuple[Trouble, int]:
    if record["error_class"] == "timeout":
        return Trouble.TIMES_OUT, 0
    if record["error_class"] or not 300 <= record["status_code"] <= 599:
        return Trouble.REFUSES, 0
    return Trouble.ANSWERS, record["status_code"]


def _windows(minutes: Mapping[int, _Minute], starts_at: int) -> list[Window]:
    """One window for each run of minutes in which it failed in the same way and about as often."""
    windows: list[Window] = []
    open_window = False
    for number, minute in sorted(minutes.items()):
        if not minute.failed:
            open_window = False
            continue
        (trouble, status), _ = minute.troubles.most_common(1)[0]
        first, end, share = minute.span(number * MINUTE_MS)
        begins = max(0, first - starts_at)
        window = Window(
            begins=begins,
            ends=max(begins + 1, end - starts_at),
            trouble=trouble,
            status=status or 503,
            takes_ms=minute.failed_ms // minute.failed,
            share=1.0 if share >= WHOLE else share,
        )
        if open_window and _alike(windows[-1], window):
            windows[-1] = _joined(windows[-1], window, between=windows[-1].share)
        elif open_window:
            # Nothing is known about the minutes in between, so the failure is assumed to continue.
            windows[-1] = replace(windows[-1], ends=begins)
            windows.append(window)
        else:
            windows.append(window)
        open_window = True
    return windows


def _alike(one: Window, other: Window) -> bool:
    same = (one.trouble, one.status) == (other.trouble, other.status)
    return same and abs(one.share - other.share) <= SIMILAR


def _joined(one: Window, other: Window, *, between: float) -> Window:
    """Two windows merged into one, given the share of attempts that failed between them."""
    lasts, then = one.ends - one.begins, other.ends - other.begins
    gap = other.begins - one.ends
    share = (one.share * lasts + between * gap + other.share * then) / (lasts + gap + then)
    return replace(one, ends=other.ends, share=min(1.0, share))


def _fewer(windows: Sequence[Window], most: int) -> list[Window]:
    left = [*windows]
    while len(left) > most:
        gaps = [other.begins - one.ends for one, other in pairwise(left)]
        at = gaps.index(min(gaps))
        left[at : at + 2] = [_joined(left[at], left[at + 1], between=0.0)]
    return left
