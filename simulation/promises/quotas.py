"""Quotas: how much of what a project posts is accepted, as its owner was promised, from what its producers asked and
were answered.

In any minute a project gets no more in than its rate and its burst (or two seconds' worth and its largest post, if that
is more), to 5 %. A minute in which producers wait as they are told, so that at each moment one of them waits or asks,
brings in at least 95 % of the rate, give or take the one post at its edge. A project without a quota is never refused.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from simulation.promises.judgement import SECOND, Exchange, Judgement, moment

MINUTE_S = 60
TOLERANCE = 0.05
BORROWED_S = 2
"""A post larger than the burst is accepted when all but two seconds' worth of what came before is paid for."""

LATE_S = 1
"""Whoever comes back so long after its time costs its project nothing."""

TOO_MUCH, TOO_LITTLE = "more than its quota in a minute", "less than its quota in a minute"
REFUSED_FREELY, NOT_TOLD = "refused without a quota", "refused without a time to come back"
TOO_MANY_REQUESTS = 429


@dataclass(frozen=True)
class Quota:
    """What an owner was promised: messages a second on average, and at once."""

    per_second: int
    burst: int


@dataclass(frozen=True)
class Posted:
    """A producer's request.

    Attributes:
        project: Its project.
        exchange: The request.
        messages: How many it has.
        retry_after_s: When it was told to come back, if it was refused; 0 for not told.
    """

    project: str
    exchange: Exchange
    messages: int
    retry_after_s: int = 0

    @property
    def refused(self) -> bool:
        """Whether it exceeded a quota."""
        return self.exchange.status == TOO_MANY_REQUESTS


class Quotas:
    """Judges a run.

    Args:
        quotas: By project; those that are not named have none.
        clocks_s: The most by which two clocks of the hub differ, by the fault plan, in seconds.
        judgement: Where the facts go.
    """

    def __init__(self, quotas: Mapping[str, Quota], *, clocks_s: float, judgement: Judgement) -> None:
        self._quotas = quotas
        self._clocks_s = clocks_s
        self._judgement = judgement

    def judge(self, posts: Sequence[Posted]) -> None:
        """Look at each minute of each project."""
        by_project: dict[str, list[Posted]] = defaultdict(list)
        for each in sorted(posts, key=lambda each: each.exchange.asked):
            by_project[each.project].append(each)
        for project, own in by_project.items():
            quota = self._quotas.get(project)
            for each in own:
                if each.refused:
                    at = moment(each.exchange.answered)
                    self._judgement.fact(quota is not None, REFUSED_FREELY, project, at)
                    self._judgement.fact(each.retry_after_s >= 1, NOT_TOLD, project, at)
            if quota is not None:
                self._too_much(project, quota, own)
                self._too_little(project, quota, own)

    def _too_much(self, project: str, quota: Quota, posts: Sequence[Posted]) -> None:
        """Minutes that begin when a post is made; counted is what was certainly accepted, and certainly within."""
        # Where one of our own calls failed, a message is accepted whatever the quota says.
        sure = [each for each in posts if each.exchange.done and not each.exchange.unsure]
        asked = [each.exchange.asked for each in sure]
        for first, begins in enumerate(asked):
            ends = begins + MINUTE_S * SECOND
            within = [each for each in sure[first : bisect.bisect_right(asked, ends)] if each.exchange.answered <= ends]
            largest = max((each.messages for each in within), default=0)
            burst = max(quota.burst, BORROWED_S * quota.per_second + largest)
            most = quota.per_second * (MINUTE_S * (1 + TOLERANCE) + self._clocks_s) + burst
            total = sum(each.messages for each in within)
            self._judgement.fact(total <= most, TOO_MUCH, project, f"{total} from {moment(begins)}, {most:.0f} may be")

    def _too_little(self, project: str, quota: Quota, posts: Sequence[Posted]) -> None:
        """Minutes in which somebody waits at each moment; counted is what was accepted in them, or may have been: a
        post at any time between its request and its answer.
        """
        answered = sorted(posts, key=lambda each: each.exchange.answered)
        times = [each.exchange.answered for each in answered]
        sums = [0, *accumulate(_perhaps(each) for each in answered)]
        asked = [each.exchange.asked for each in posts]
        begun = [0, *accumulate(_perhaps(each) for each in posts)]
        doubts = [0, *accumulate(_perhaps(each) if each.exchange.unsure else 0 for each in answered)]
        largest = max(each.messages for each in posts)
        least = quota.per_second * (MINUTE_S * (1 - TOLERANCE) - 2 * self._clocks_s) - largest
        for begins, ends in _waited(posts):
            for start in range(begins, ends - MINUTE_S * SECOND, SECOND):
                first = bisect.bisect_left(times, start)
                last = bisect.bisect_right(asked, start + MINUTE_S * SECOND)
                # What was perhaps taken in the minute before, unknown to whoever sent it, may be paid for in this one.
                owed = doubts[first] - doubts[bisect.bisect_left(times, start - MINUTE_S * SECOND)]
                total = begun[last] - sums[first] + owed
                detail = f"{total} from {moment(start)}, {least:.0f} are promised"
                self._judgement.fact(total >= least, TOO_LITTLE, project, detail)


def _perhaps(post: Posted) -> int:
    """The messages of a post that were accepted, or may have been, perhaps twice."""
    if post.exchange.unsure:
        return 2 * post.messages
    return post.messages if post.exchange.done else 0


def _waited(posts: Sequence[Posted]) -> Iterator[tuple[int, int]]:
    """The spans, each from a refusal on, in which at each moment somebody asks or waits as it was told."""
    begins = ends = -1
    for post in posts:
        if post.exchange.asked > ends and begins >= 0:
            yield begins, ends
            begins = -1
        if begins >= 0:
            ends = max(ends, _until(post))
        elif post.refused:
            begins, ends = post.exchange.answered, _until(post)
    if begins >= 0:
        yield begins, ends


def _until(post: Posted) -> int:
    """Until when a post keeps its project's quota in use: a slow one for a second, a refused one until it is late."""
    if not post.refused:
        return min(post.exchange.answered, post.exchange.asked + LATE_S * SECOND)
    return post.exchange.answered + (post.retry_after_s + LATE_S) * SECOND
