"""What the models of quotas and tasks find, and what they leave alone, in a few lines of what callers saw."""

from __future__ import annotations

from dataclasses import replace

import pytest
from simulation.promises import quotas, tasks
from simulation.promises.judgement import SECOND, Exchange, Judgement
from simulation.promises.quotas import Posted, Quota, Quotas
from simulation.promises.tasks import Began, Replay, Tasks

RATE, BURST = 2, 20


def exchange(at: float, status: int = 201, *struck: str) -> Exchange:
    return Exchange(round(at * SECOND), round(at * SECOND) + 50_000, status, struck)


def posted(at: float, messages: int = 1, project: str = "p") -> Posted:
    return Posted(project, exchange(at), messages)


def refused(at: float, retry_after_s: int = 1, project: str = "p") -> Posted:
    return Posted(project, exchange(at, 429), 1, retry_after_s)


def rules(*seen: Posted, clocks_s: float = 0) -> set[str]:
    judgement = Judgement()
    Quotas({"p": Quota(RATE, BURST)}, clocks_s=clocks_s, judgement=judgement).judge(seen)
    return {each.rule for each in judgement.total()}


def minutes(per_second: float, seconds: int = 100) -> list[Posted]:
    """Somebody always waits, and so many are accepted a second after a refusal."""
    count = round(per_second * seconds)
    return [*map(refused, range(seconds)), *(posted(0.5 + each / per_second) for each in range(count))]


def test_the_rate_and_the_burst_are_kept() -> None:
    burst = [posted(0)] * BURST
    assert rules(*burst, *minutes(RATE)) == set()
    # And a batch larger than the burst, when it is repaid before anything else is accepted
    large = [posted(50 * each, 100) for each in range(4)]
    assert rules(*large, *map(refused, range(3, 50))) == set()


@pytest.mark.parametrize(
    ("seen", "rule"),
    [
        ([posted(0)] * (BURST + 2), set()),
        (minutes(RATE * 1.3), {quotas.TOO_MUCH}),
        ([posted(10 * each, 100) for each in range(5)], {quotas.TOO_MUCH}),
        (minutes(RATE * 0.85), {quotas.TOO_LITTLE}),
        ([refused(0, project="free")], {quotas.REFUSED_FREELY}),
        ([refused(0, 0)], {quotas.NOT_TOLD}),
    ],
)
def test_a_quota_that_is_not_kept_is_told(seen: list[Posted], rule: set[str]) -> None:
    assert rules(*seen) == rule


def test_nobody_is_promised_what_nobody_waits_for() -> None:
    # Given few posts, and pauses in which nobody was told to wait
    idle = [
        each
        for each in minutes(RATE * 0.5, 300)
        if not each.refused or each.exchange.asked % (50 * SECOND) < 40 * SECOND
    ]
    assert rules(*idle) == set()


def test_what_nobody_knows_of_counts_for_either_side() -> None:
    # Given a third more than the rate, of which as much was accepted while a call of the hub's own failed
    seen = minutes(RATE * 1.3)
    struck = [
        replace(each, exchange=replace(each.exchange, struck=("refused",)))
        if number % 3 == 0 and not each.refused
        else each
        for number, each in enumerate(seen)
    ]
    assert rules(*struck) == set()
    # And a little less, while some posts were not answered
    lost = [posted(each) for each in range(0, 100, 7)]
    lost = [replace(each, exchange=replace(each.exchange, status=0, struck=("lost",))) for each in lost]
    assert rules(*minutes(RATE * 0.85), *lost) == set()
    # And clocks that are apart
    assert rules(*minutes(RATE * 1.3), clocks_s=20) == set()


def began(at: float, task_id: str = "t1", key: str = "k") -> Began:
    return Began("p", key, exchange(at, 202 if task_id else 500), task_id)


SENT = {"m1": [3 * SECOND], "m2": [4 * SECOND]}
REPLAY = Replay("p", "k", {"m1", "m2"}, SENT, undisturbed=True)


@pytest.mark.parametrize(
    ("seen", "listed", "replay", "rule"),
    [
        ([began(0), began(1), began(300)], {"t1"}, REPLAY, set()),
        ([began(0), began(1, "t2")], {"t1", "t2"}, REPLAY, {tasks.TWO_TASKS}),
        # The first was not answered, and is a task all the same
        ([began(0, ""), began(1)], {"t1", "t2"}, REPLAY, {tasks.NOBODYS}),
        ([began(0), began(1, "", "other")], {"t1", "t2"}, REPLAY, set()),
        ([began(0)], set(), REPLAY, {tasks.NOT_LISTED}),
        ([began(0)], {"t1"}, replace(REPLAY, arrived=SENT | {"m2": [60 * SECOND]}), {tasks.WAITED}),
        ([began(0)], {"t1"}, replace(REPLAY, arrived=SENT | {"m2": [60 * SECOND]}, undisturbed=False), set()),
        ([began(0)], {"t1"}, replace(REPLAY, arrived={"m1": [3 * SECOND]}), {tasks.IN_VAIN}),
        ([began(0)], {"t1"}, replace(REPLAY, arrived=SENT | {"m2": [4 * SECOND, 5 * SECOND]}), {tasks.TWICE}),
    ],
)
def test_a_task_that_is_not_as_promised_is_told(
    seen: list[Began], listed: set[str], replay: Replay, rule: set[str]
) -> None:
    judgement = Judgement()
    Tasks(judgement).judge(seen, {"p": listed}, [replay])
    assert {each.rule for each in judgement.total()} == rule


def test_a_post_without_an_answer_may_have_been_accepted_at_any_time_since_it_was_made() -> None:
    # Given posts of 50, always as soon as they are paid for, of which one fails after 20 seconds
    failed = Posted("p", Exchange(50 * SECOND, 70 * SECOND, 500, ("lost",)), 50)
    seen = [posted(0.5, 50), *map(refused, range(120)), posted(25, 50), failed, posted(76, 50), posted(101, 50)]
    # Then the minutes before its answer have it, too
    assert rules(*seen) == set()
    # But it is no excuse for minutes long after it
    assert rules(*seen, *map(refused, range(120, 230))) == {quotas.TOO_LITTLE}
