"""Whose turn it is among messages with the same ordering key, when the one before begins late or ends otherwise than by
an answer: it is delayed, expires, is deleted or cleared, or its subscriber is paused; in queues of both types.

Source: docs/ironmq.md ("Order"), docs/ironmq-behaviour.md ("Push queues").
"""

from __future__ import annotations

from collections.abc import Sequence

from simulation.promises.talks.push_queues import ILL, MINUTE, OK, created, listening, posted, statuses
from simulation.promises.talks.talk import Came, Said, Talk

LONG_S = 3_000
"""So long nothing is tried again that has failed."""

SOON_S = 15
"""Whatever may begin has begun by then."""


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_delayed, _deleted, _in_line, _cleared, _expired, _in_turn)


def _bodies(came: Sequence[Came]) -> list[str]:
    return [each.body.decode() for each in came]


def _delayed(talk: Talk) -> None:
    """One that is delayed holds back what was posted after it, until it was delivered; other keys do not wait."""
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"turns-delayed": OK})["turns-delayed"]
    queue = created(talk, "turns-delayed", "turns-delayed", retries=0)
    posted(talk, queue, "a1", ordering_key="a", delay=45)
    [second] = posted(talk, queue, "a2", ordering_key="a")
    posted(talk, queue, "b1", ordering_key="b")
    talk.sleep(35)
    talk.came("before its time", ["b1"], _bodies(came))
    talk.is_so("the next waits", {"tries": 0, "state": "pending"}, statuses(talk, queue, second)["turns-delayed"])
    talk.sleep(10 + SOON_S)
    talk.came("in order", ["b1", "a1", "a2"], _bodies(came))
    talk.ask("DELETE", queue)


def _deleted(talk: Talk) -> None:
    """Who is deleted while it waits lets nobody overtake those before it, neither what waited behind it nor what is
    posted then; one that fails and is deleted lets the next go at once.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    fails = {"1"}

    def some(came: Came) -> Said:
        return ILL if came.body.decode() in fails else OK

    came = talk.listen("turns-deleted.example", some)
    queue = created(talk, "turns-deleted", "turns-deleted", retries=5, retries_delay=LONG_S)
    ids = posted(talk, queue, *"12345", ordering_key="k")
    talk.sleep(SOON_S)
    # Two beside each other from behind, and one alone
    for place in (2, 1, 4):
        talk.ask("DELETE", f"{queue}/messages/{ids[place]}", {}, shows={"msg": "Deleted"})
    talk.sleep(SOON_S)
    posted(talk, queue, "6", ordering_key="k")
    talk.sleep(SOON_S)
    talk.came("the first alone", ["1"], _bodies(came))
    talk.is_so("others wait", {"tries": 0}, statuses(talk, queue, ids[3])["turns-deleted"])
    talk.ask("DELETE", f"{queue}/messages/{ids[0]}", {}, shows={"msg": "Deleted"})
    talk.sleep(SOON_S)
    talk.came("then what is left, in order", ["1", "4", "6"], _bodies(came))
    talk.ask("DELETE", queue)


def _in_line(talk: Talk) -> None:
    """What waits for a paused subscriber comes in order once that is resumed, but for what was deleted meanwhile."""
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"turns-rests": OK})["turns-rests"]
    queue = created(talk, "turns-rests", "turns-rests")
    talk.ask("POST", f"{queue}/pause", {"subscriber": "turns-rests"}, shows={"msg": "Paused"})
    talk.sleep(2)
    ids = posted(talk, queue, *"12345", ordering_key="k")
    talk.sleep(SOON_S)
    for place in (0, 2):
        talk.ask("DELETE", f"{queue}/messages/{ids[place]}", {}, shows={"msg": "Deleted"})
    talk.ask("POST", f"{queue}/resume", {"subscriber": "turns-rests"}, shows={"msg": "Resumed"})
    talk.sleep(2 * MINUTE + SOON_S)
    talk.came("what is left, in order", [*"245"], _bodies(came))
    talk.ask("GET", queue, shows={"queue": {"size": 0, "total_messages": 5}})
    talk.ask("DELETE", queue)


def _cleared(talk: Talk) -> None:
    """What a queue held when it was cleared holds back nothing that is posted from then on; that has its own order."""
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"turns-ill": ILL, "turns-well": OK})
    queue = created(talk, "turns-cleared", *came, retries=5, retries_delay=LONG_S)
    posted(talk, queue, "1", "2", ordering_key="k")
    talk.sleep(SOON_S)
    talk.ask("DELETE", f"{queue}/messages", {}, shows={"msg": "Cleared"})
    talk.sleep(2)
    posted(talk, queue, "3", "4", ordering_key="k")
    talk.sleep(SOON_S)
    expected = {"turns-ill": [*"13"], "turns-well": [*"1234"]}
    talk.came("who gets what", expected, {name: _bodies(heard) for name, heard in came.items()})
    talk.ask("GET", f"{queue}/health", shows={"waiting": 1})
    talk.ask("DELETE", queue)


def _expired(talk: Talk) -> None:
    """When one expires that has failed, the next of its key begins, and not before."""
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"turns-expired": ILL})["turns-expired"]
    queue = created(talk, "turns-expired", "turns-expired", retries=5, retries_delay=LONG_S, expires=60)
    began = talk.now()
    [first] = posted(talk, queue, "1", ordering_key="k")
    talk.sleep(40, exactly=True)
    posted(talk, queue, "2", "3", ordering_key="k")
    talk.sleep(40, exactly=True)
    talk.came("one after the other", [*"12"], _bodies(came))
    talk.came("when its time was over", lambda each: 59 <= each <= 75, (came[-1].at - began) / 1_000_000)
    talk.is_so("it has expired", {"state": "expired", "tries": 1}, statuses(talk, queue, first)["turns-expired"])
    talk.ask("DELETE", queue)


def _in_turn(talk: Talk) -> None:
    """Of a unicast queue, too, the next of a key begins when the one before was taken by one of the subscribers."""
    if talk.gathered_s or talk.put_off_s:
        return
    fails = {"1": 3}

    def some(came: Came) -> Said:
        left = fails.get(came.body.decode(), 0)
        fails[came.body.decode()] = left - 1
        return ILL if left > 0 else OK

    came = {name: talk.listen(f"{name}.example", some) for name in ("turns-a", "turns-b")}
    queue = created(talk, "turns-either", *came, kind="unicast", retries=3, retries_delay=30)
    posted(talk, queue, *"123", ordering_key="k")
    posted(talk, queue, "free")

    def asked() -> list[str]:
        return [body for _, body in sorted((each.at, each.body.decode()) for heard in came.values() for each in heard)]

    talk.sleep(SOON_S)
    talk.came("one round", [*"11", "free"], sorted(asked()))
    talk.sleep(30 + SOON_S)
    talk.came("one after the other", [*"111123"], [each for each in asked() if each != "free"])
    talk.ask("GET", queue, shows={"queue": {"size": 0, "total_messages": 4}})
    talk.ask("DELETE", queue)


__all__ = ["through"]
