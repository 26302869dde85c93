"""Flow: what a receiver with a limit is sent, as its owner was promised, from its own log and what waited for it.

Never more at a time than it takes, nor more in any window than its rate and a second's burst. And never less: while
enough waits for it, its rate is used to 95 %, and while anything does, nine tenths of its places; and whoever works for
it dies or hands over, the next one goes on within two minutes. What waits is known from outside: a message that was
accepted, is owed to the receiver and is asked about later.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from simulation.promises.judgement import HIDDEN_S, SECOND, Because, Fault, Faults, Judgement, moment

LEAST = 0.95
"""The share of a rate that is used while something waits."""

IN_USE = 0.9
"""The share of a number of places."""

UNEQUAL = 2
"""Requests that may come with others because they took unequally long."""

RATE_S, PLACES_S, EACH_RATE = 10, 60, 3
"""What is used is counted in spans of so many seconds, or so many requests of a low rate."""

IN_LINE_S = 10
"""A message waits for its receiver alone so long after it was accepted, or due."""

GOES_ON_S = 120
"""How soon work goes on after whoever did it has died."""

LEARNED_S = 660
"""What a receiver did before, slow or failing, is forgotten after so long."""

SHORT_S = 2
"""Answers that come sooner leave places free between one request and the next."""

BEFORE_S = 180
"""Faults explain what is slow so long afterwards."""

TOO_MANY, TOO_OFTEN = "too many at a time", "too often"
TOO_SLOW, UNUSED, STOPPED = "slower than its rate", "places left free", "nobody went on"


@dataclass(frozen=True)
class Limit:
    """What an owner had set: requests a second, or at a time."""

    rate_per_s: float | None = None
    at_once: int | None = None


@dataclass(frozen=True)
class Asked:
    """A request as the receiver saw it.

    Attributes:
        at: When it came, microseconds.
        ended: When it was over; :data:`FOREVER` while it is not.
        message_id: Its message.
        fine: Whether it was answered well, and the hub got the answer.
    """

    at: int
    ended: int
    message_id: str
    fine: bool = True


@dataclass(frozen=True)
class Waiting:
    """A message that nothing but the limit holds up.

    Attributes:
        message_id: The message.
        since: From when on, microseconds.
    """

    message_id: str
    since: int


class Flow:
    """Judges receivers with limits.

    Args:
        judgement: Where the facts go.
        faults: What the fault plan did to those that push, under the name "", and to messages.
        clocks_s: The most by which two clocks of the hub differ, in seconds.
    """

    def __init__(self, judgement: Judgement, faults: Faults, *, clocks_s: float = 0) -> None:
        self._judgement = judgement
        self._faults = faults
        self._clocks_s = clocks_s

    def judge(
        self,
        name: str,
        limit: Limit,
        log: Sequence[Asked],
        waiting: Iterable[Waiting] = (),
        *,
        window_s: float = RATE_S,
        calm_s: float = LEARNED_S,
        disturbed: Iterable[tuple[int, int]] = (),
    ) -> None:
        """Look at a receiver.

        Args:
            name: The receiver.
            limit: Its limit, which was the same all the time.
            log: All requests that it saw, in order of time.
            waiting: What waited for it.
            window_s: In how long a window no more than the rate may come.
            calm_s: How long it must have answered well before it is judged whether it was sent enough.
            disturbed: When its owner was about to change something else, microseconds: what waited then may have waited
                for that.
        """
        if limit.at_once is not None:
            self._too_many(name, limit.at_once, log)
        if limit.rate_per_s is not None and not self._clocks_s:
            self._too_often(name, limit.rate_per_s, log, window_s)
        spoilt = [(each.at, each.ended + round(calm_s * SECOND)) for each in log if not each.fine]
        stormy = [(each.at, each.ends + _felt_s(each) * SECOND) for each in self._faults.storms]
        waits = _waits_of(log, waiting, [*disturbed])
        self._enough(name, limit, log, waits, _without(_joined(waits), [*spoilt, *stormy]))

    def _too_many(self, name: str, at_once: int, log: Sequence[Asked]) -> None:
        ends: list[int] = []
        for each in log:
            ends = [*(end for end in ends if end > each.at), each.ended]
            detail = f"{name}: {len(ends)} at {moment(each.at)}"
            self._judgement.fact(len(ends) <= at_once, TOO_MANY, each.message_id, detail)

    def _too_often(self, name: str, rate: float, log: Sequence[Asked], window_s: float) -> None:
        most, times = rate * (window_s + 1) + UNEQUAL, [each.at for each in log]
        for place, each in enumerate(log):
            count = place + 1 - bisect.bisect_right(times, each.at - window_s * SECOND)
            detail = f"{name}: {count} in {window_s:g} s at {moment(each.at)}, not {most:.0f}"
            self._judgement.fact(count <= most, TOO_OFTEN, each.message_id, detail)

    def _enough(
        self,
        name: str,
        limit: Limit,
        log: Sequence[Asked],
        waits: Sequence[tuple[int, int]],
        busy: Sequence[tuple[int, int]],
    ) -> None:
        times = [each.at for each in log]
        for begins, ends in busy:
            if limit.rate_per_s is not None:
                span_s = max(RATE_S, EACH_RATE / limit.rate_per_s)
                for start in _spans(begins, ends, span_s):
                    count = _count(times, start, start + span_s * SECOND)
                    detail = f"{name}: {count} in {span_s:g} s from {moment(start)}"
                    # What comes back from where it slept alone is in time by the rule of who goes on.
                    there = sum(since <= start < until for since, until in waits)
                    kept = count >= min(LEAST * limit.rate_per_s * span_s, there) - 1
                    self._judgement.fact(kept, TOO_SLOW, name, detail, self._because(start, span_s))
            if limit.at_once is not None:
                for start in _spans(begins, ends, PLACES_S):
                    self._in_use(name, limit.at_once, log, start)
            gap_s = GOES_ON_S + (1 / limit.rate_per_s if limit.rate_per_s else 0)
            for start in _spans(begins, ends, gap_s):
                # Nothing explains this one: it is what is promised of deaths.
                detail = f"{name}: nothing in {gap_s:g} s from {moment(start)}"
                going = _count(times, start, start + gap_s * SECOND) or any(
                    each.at < start + gap_s * SECOND and each.ended > start for each in log
                )
                other = [each for each in self._because(start, gap_s) if each.struck != ("crash",)]
                self._judgement.fact(bool(going), STOPPED, name, detail, other)

    def _in_use(self, name: str, at_once: int, log: Sequence[Asked], start: int) -> None:
        """Whoever has the turn last waits for its answers before it passes on."""
        stop = start + PLACES_S * SECOND
        lasting = [each for each in log if each.at < stop and each.ended > start]
        if any(each.ended - each.at < SHORT_S * SECOND for each in lasting):
            return
        longest_s = max((each.ended - each.at for each in lasting), default=0) / SECOND
        used_s = sum(min(each.ended, stop) - max(each.at, start) for each in lasting) / SECOND
        least_s = IN_USE * at_once * max(0.0, PLACES_S - longest_s)
        detail = f"{name}: {used_s:.0f} s in use of {at_once} places for {PLACES_S} s from {moment(start)}"
        self._judgement.fact(used_s >= least_s, UNUSED, name, detail, self._because(start, PLACES_S))

    def _because(self, start: int, span_s: float) -> Sequence[Because]:
        return self._faults.on("", start - BEFORE_S * SECOND, round(start + span_s * SECOND))


def _felt_s(storm: Fault) -> int:
    return HIDDEN_S if storm.kept_from_running else BEFORE_S


def _waits_of(
    log: Sequence[Asked], waiting: Iterable[Waiting], disturbed: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The spans in which messages waited that were asked about afterwards."""
    first: dict[str, int] = {}
    for each in log:
        first.setdefault(each.message_id, each.at)
    spans = ((each.since, first.get(each.message_id, 0)) for each in waiting)
    own = [each for each in spans if not any(begins <= each[1] and each[0] <= ends for begins, ends in disturbed)]
    waits = ((begins + IN_LINE_S * SECOND, ends) for begins, ends in own)
    return [each for each in waits if each[0] < each[1]]


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for begins, ends in sorted(spans):
        if joined and begins <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(ends, joined[-1][1])
        else:
            joined.append((begins, ends))
    return joined


def _without(spans: Iterable[tuple[int, int]], other: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """What is left of spans without others."""
    left = [*spans]
    for begins, ends in _joined(other):
        left = [part for span in left for part in ((span[0], min(span[1], begins)), (max(span[0], ends), span[1]))]
        left = [each for each in left if each[0] < each[1]]
    return left


def _spans(begins: int, ends: int, seconds: float) -> Iterator[int]:
    return iter(range(begins, round(ends - seconds * SECOND) + 1, round(seconds * SECOND)))


def _count(times: Sequence[int], begins: float, ends: float) -> int:
    return bisect.bisect_left(times, ends) - bisect.bisect_left(times, begins)
