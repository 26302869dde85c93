"""Rounds of unicast queues whose subscribers change meanwhile: who is still asked, and what comes of a message that
nobody is left to take.

Source: docs/ironmq.md ("A push"), docs/ironmq-behaviour.md ("Push queues").
"""

from __future__ import annotations

from collections import Counter

from simulation.promises.judgement import SECOND
from simulation.promises.talks.push_queues import (
    ILL,
    LATE_S,
    OK,
    created,
    ids_of,
    listening,
    posted,
    reported,
    statuses,
    subscriber,
)
from simulation.promises.talks.talk import Talk

DELAY_S = 30
MANY = 6
"""Messages, of which some begin their rounds with each subscriber."""


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_changed, _nobody_left)


def _changed(talk: Talk) -> None:
    """Of the next round is who has not been removed, at the URL that each has by then; who was added gets what is
    posted from then on. The one that takes it ends it for all.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    answers = {"rounds-goes": ILL, "rounds-stays": ILL, "rounds-moves": ILL, "rounds-moved": ILL, "rounds-added": OK}
    came = listening(talk, answers)
    first = ("rounds-goes", "rounds-moves", "rounds-stays")
    queue = created(
        talk, "rounds", *first, kind="unicast", retries=2, retries_delay=DELAY_S, error_queue="rounds-failed"
    )
    # Each begins with another one
    ids = posted(talk, queue, *(f"{number}" for number in range(MANY)))
    talk.sleep(10)
    asked = sorted(each.at for name in first for each in came[name])
    talk.came("all three in a round", [MANY] * 3, [len(came[name]) for name in first])
    talk.came("one after the other, at once", True, asked[-1] - asked[0] < 5 * SECOND)
    talk.ask("DELETE", f"{queue}/subscribers", {"subscribers": [{"name": "rounds-goes"}]}, shows={"msg": "Updated"})
    moved = {**subscriber("rounds-moves"), "url": "https://rounds-moved.example/in"}
    talk.ask("POST", f"{queue}/subscribers", {"subscribers": [moved, subscriber("rounds-added")]})
    talk.sleep(2)
    [other] = posted(talk, queue, "other")
    talk.sleep(2 * (DELAY_S + 15) + LATE_S)
    counts = {name: Counter(ids_of(heard)) for name, heard in came.items()}
    of_each = [{name: counts[name][one] for name in answers} for one in ids]
    expected = {"rounds-goes": 1, "rounds-moves": 1, "rounds-stays": 3, "rounds-moved": 2, "rounds-added": 0}
    talk.came("who is asked for those before", [expected] * MANY, of_each)
    talk.came("who has taken the one after them", 1, counts["rounds-added"][other])
    talk.came("who was not asked for it", 0, counts["rounds-goes"][other])
    ended = {"state": "exhausted", "retries_remaining": 0, "status_code": 500}
    tries = {"rounds-goes": 1, "rounds-moves": 3, "rounds-stays": 3}
    for one in ids:
        shown = statuses(talk, queue, one)
        talk.is_so("given up", {name: {**ended, "tries": count} for name, count in tries.items()}, shown)
        talk.is_so("where it was asked last", "https://rounds-moved.example/in", shown["rounds-moves"]["url"])
    errors = reported(talk, "rounds-failed")
    talk.is_so("each reported once", sorted(ids), [each["source_msg_id"] for each in errors])
    for error in errors:
        talk.is_so("with all that were asked", sorted(first), sorted(each["name"] for each in error["subscribers"]))
    for path in (queue, "/queues/rounds-failed"):
        talk.ask("DELETE", path)


def _nobody_left(talk: Talk) -> None:
    """A message whose subscribers were all removed is given up when its next try would be due, and reported once; what
    is posted afterwards goes to those that took their places.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"left-a": ILL, "left-b": ILL, "left-new": OK})
    push = {"retries": 5, "retries_delay": DELAY_S, "error_queue": "left-failed"}
    queue = created(talk, "left", "left-a", "left-b", kind="unicast", **push)
    [one] = posted(talk, queue, "one")
    talk.sleep(10)
    talk.ask("PUT", f"{queue}/subscribers", {"subscribers": [subscriber("left-new")]})
    talk.sleep(2)
    [other] = posted(talk, queue, "other")
    talk.sleep(DELAY_S + LATE_S)
    talk.came(
        "who was asked",
        {"left-a": [one], "left-b": [one], "left-new": [other]},
        {n: ids_of(c) for n, c in came.items()},
    )
    shown = statuses(talk, queue, one)
    talk.is_so("given up", {name: {"state": "exhausted", "tries": 1} for name in ("left-a", "left-b")}, shown)
    talk.is_so("of no others", ["left-a", "left-b"], sorted(shown))
    [error] = reported(talk, "left-failed")
    both = [{"name": name, "code": 500} for name in ("left-a", "left-b")]
    talk.is_so("reported", {"source_msg_id": one, "body": "one", "queue": "left"}, error)
    talk.is_so("with both", both, sorted(error["subscribers"], key=lambda each: str(each["name"])))
    talk.is_so("the other has arrived", {"left-new": {"state": "delivered"}}, statuses(talk, queue, other))
    for path in (queue, "/queues/left-failed"):
        talk.ask("DELETE", path)


__all__ = ["through"]
