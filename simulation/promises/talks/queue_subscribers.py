"""Subscribers that leave, come, move, get another name or other settings while something is owed to them: also paused
ones, and those of a unicast queue.

Source: docs/ironmq.md ("A queue", "Pausing a subscriber"), docs/ironmq-behaviour.md ("Push queues").
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from simulation.promises.judgement import SECOND
from simulation.promises.talks.push_queues import (
    ILL,
    LATE_S,
    MINUTE,
    OK,
    created,
    ids_of,
    listening,
    posted,
    reported,
    statuses,
    subscriber,
)
from simulation.promises.talks.talk import Came, Talk


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_removed_at_rest, _changed_at_rest, _left_in_turn, _joined_in_turn, _between_tries)


def _bodies(came: Sequence[Came]) -> list[str]:
    return [each.body.decode() for each in came]


def _removed_at_rest(talk: Talk) -> None:
    """What waits for a paused subscriber that is removed is reported, and never sent, also when one of its name is
    added again: that one is not paused, and gets what is posted from then on.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"rest-goes": OK, "rest-stays": OK})
    queue = created(talk, "rest-removed", *came, retries=2, error_queue="rest-failed")
    talk.ask("POST", f"{queue}/pause", {"subscriber": "rest-goes"}, shows={"msg": "Paused"})
    talk.sleep(2)
    ids = posted(talk, queue, "a", "b")
    talk.sleep(15)
    talk.ask("DELETE", f"{queue}/subscribers", {"subscribers": [{"name": "rest-goes"}]}, shows={"msg": "Updated"})
    talk.ask("POST", f"{queue}/subscribers", {"subscribers": [subscriber("rest-goes")]}, shows={"msg": "Updated"})
    shown = {each["name"]: each.get("paused", False) for each in talk.ask("GET", queue)["queue"]["push"]["subscribers"]}
    talk.is_so("nobody is paused", {"rest-goes": False, "rest-stays": False}, shown)
    talk.sleep(2)
    [new] = posted(talk, queue, "c")
    talk.sleep(3 * MINUTE)
    talk.came("what each got", [[new], sorted([*ids, new])], [sorted(ids_of(heard)) for heard in came.values()])
    for message_id in ids:
        talk.is_so("how it ended", {"state": "exhausted", "tries": 0}, statuses(talk, queue, message_id)["rest-goes"])
    missed = [(each["source_msg_id"], each["subscribers"]) for each in reported(talk, "rest-failed")]
    whom = [{"name": "rest-goes", "url": "https://rest-goes.example/in", "code": 0}]
    talk.is_so("what is reported", [(each, whom) for each in ids], missed)
    talk.ask("GET", f"{queue}/health", shows={"waiting": 0})
    for path in (queue, "/queues/rest-failed"):
        talk.ask("DELETE", path)


def _changed_at_rest(talk: Talk) -> None:
    """A paused subscriber that gets another name, and one that moves, are paused still; what waits for them comes when
    they are resumed, as whom and where they are then.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"rest-named": OK, "rest-moves": OK, "rest-moved": OK})
    queue = created(talk, "rest-changed", "rest-named", "rest-moves")
    for name in ("rest-named", "rest-moves"):
        talk.ask("POST", f"{queue}/pause", {"subscriber": name}, shows={"msg": "Paused"})
    talk.sleep(2)
    ids = posted(talk, queue, "a", "b")
    talk.sleep(15)
    moved = {**subscriber("rest-moved"), "name": "rest-moves"}
    changed = [{**subscriber("rest-named"), "name": "rest-other"}, moved]
    talk.ask("PUT", f"{queue}/subscribers", {"subscribers": changed}, shows={"msg": "Updated"})
    shown = [each.get("paused", False) for each in talk.ask("GET", queue)["queue"]["push"]["subscribers"]]
    talk.is_so("both are paused", [True, True], shown)
    talk.ask("POST", f"{queue}/resume", {"subscriber": "rest-named"}, status=404)
    talk.sleep(2 * MINUTE)
    talk.came("nothing yet", [0, 0, 0], [len(each) for each in came.values()])
    for name in ("rest-other", "rest-moves"):
        talk.ask("POST", f"{queue}/resume", {"subscriber": name}, shows={"msg": "Resumed"})
    talk.sleep(3 * MINUTE)
    found = {name: sorted(ids_of(heard)) for name, heard in came.items()}
    talk.came("where they are", {"rest-named": ids, "rest-moves": [], "rest-moved": ids}, found)
    names = {each.headers["iron-subscriber-name"] for each in came["rest-named"]}
    talk.came("as whom", {"rest-other"}, names)
    talk.ask("DELETE", queue)


def _left_in_turn(talk: Talk) -> None:
    """Of a unicast queue, one that is removed is asked no more, and the others are; what expires then is reported once,
    with the last answer of each that was asked.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"left-a": ILL, "left-b": (404, b""), "left-c": (503, b"")})
    push = {"retries": 9, "retries_delay": 30, "error_queue": "left-failed", "expires": 80}
    queue = created(talk, "left-one", *came, kind="unicast", **push)
    [one] = posted(talk, queue, "x")
    talk.sleep(10)
    talk.came("each was asked", [1, 1, 1], [len(each) for each in came.values()])
    talk.ask("DELETE", f"{queue}/subscribers", {"subscribers": [{"name": "left-b"}]}, shows={"msg": "Updated"})
    talk.sleep(80 + LATE_S)
    talk.came("one no more", [3, 1, 3], [len(each) for each in came.values()])
    [error] = reported(talk, "left-failed")
    talk.is_so("why", {"source_msg_id": one, "reason": "expired", "body": "x"}, error)
    codes = {each["name"]: each["code"] for each in error["subscribers"]}
    talk.is_so("with all of them", {"left-a": 500, "left-b": 404, "left-c": 503}, codes)
    shown = statuses(talk, queue, one)
    talk.is_so(
        "tries of each", {"left-a": 3, "left-b": 1, "left-c": 3}, {name: each["tries"] for name, each in shown.items()}
    )
    talk.is_so("as one", [{"state": "expired", "status": "expired"}] * 3, [*shown.values()])
    for path in (queue, "/queues/left-failed"):
        talk.ask("DELETE", path)


def _joined_in_turn(talk: Talk) -> None:
    """One that is added to a unicast queue is asked for what is posted from then on, not for what is owed already."""
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"joined-first": ILL, "joined-new": OK})
    queue = created(talk, "joined", "joined-first", kind="unicast", retries=1, retries_delay=40)
    [one] = posted(talk, queue, "old")
    talk.sleep(10)
    talk.ask("POST", f"{queue}/subscribers", {"subscribers": [subscriber("joined-new")]}, shows={"msg": "Updated"})
    talk.sleep(2)
    new = posted(talk, queue, *(f"new {number}" for number in range(4)))
    talk.sleep(40 + LATE_S)
    expected = sorted(f"new {number}" for number in range(4))
    talk.came("what the new one gets", expected, sorted(_bodies(came["joined-new"])))
    talk.came("the first one has both tries of the old", 2, _bodies(came["joined-first"]).count("old"))
    talk.is_so("given up", [{"state": "exhausted", "tries": 2}], [*statuses(talk, queue, one).values()])
    for each in new:
        talk.is_so("taken by the new one", {"tries": 1, "status_code": 200}, statuses(talk, queue, each)["joined-new"])
    talk.ask("DELETE", queue)


def _between_tries(talk: Talk) -> None:
    """What is changed counts for the next try of what waits: headers, how often, and how long after a try the next one
    is; what was given up stays so.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"between": ILL})["between"]
    one = subscriber("between", headers={"X-A": "old"})
    queue = created(talk, "between", one, retries=9, retries_delay=40, error_queue="between-failed")
    [message_id] = posted(talk, queue, "x")
    talk.sleep(10)
    changed = {**one, "headers": {"X-A": "new", "X-B": "b"}}
    talk.ask("POST", f"{queue}/subscribers", {"subscribers": [changed]}, shows={"msg": "Updated"})
    talk.ask("PATCH", queue, {"queue": {"push": {"retries": 2, "retries_delay": 10}}})
    talk.sleep(40 + 10 + 25)
    headers = [(each.headers.get("x-a"), each.headers.get("x-b")) for each in came]
    talk.came("with which headers", [("old", None), ("new", "b"), ("new", "b")], headers)
    gaps = [(after.at - before.at) / SECOND for before, after in pairwise(came)]
    talk.came("how far apart", [lambda each: 39 <= each <= 55, lambda each: 9 <= each <= 25], gaps)
    ended = {"state": "exhausted", "tries": 3, "retries_remaining": 0}
    talk.is_so("given up", ended, statuses(talk, queue, message_id)["between"])
    talk.ask("PATCH", queue, {"queue": {"push": {"retries": 9}}})
    talk.sleep(30)
    talk.came("no more tries", 3, len(came))
    talk.is_so("given up still", {"state": "exhausted", "tries": 3}, statuses(talk, queue, message_id)["between"])
    # Fewer tries than one has had already
    talk.ask("PATCH", queue, {"queue": {"push": {"retries_delay": 40}}})
    talk.sleep(2)
    [other] = posted(talk, queue, "y")
    talk.sleep(10)
    talk.ask("PATCH", queue, {"queue": {"push": {"retries": 0}}})
    talk.sleep(40 + 20)
    talk.came("one try", [other], ids_of(came)[3:])
    talk.is_so("given up, too", {"state": "exhausted", "tries": 1}, statuses(talk, queue, other)["between"])
    missed = [each["source_msg_id"] for each in reported(talk, "between-failed")]
    talk.is_so("each reported once", [message_id, other], missed)
    for path in (queue, "/queues/between-failed"):
        talk.ask("DELETE", path)


__all__ = ["through"]
