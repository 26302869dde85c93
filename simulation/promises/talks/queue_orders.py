"""When pushes of a queue's messages begin: those with the same ordering key, of a subscriber that is paused, of an
eager queue; and that no others wait for these.

Source: docs/ironmq.md ("Order", "Pausing a subscriber", "Eager queues").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

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
from simulation.promises.talks.talk import Came, Said, Talk


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_keyed, _acknowledged, _others, _rested, _resumed, _eager, _slow, _suspended)


def _bodies(came: Sequence[Came]) -> list[str]:
    return [each.body.decode() for each in came]


def _keyed(talk: Talk) -> None:
    """Each subscriber gets the messages of a key one after the other, over several posts; one that fails holds back
    what follows at itself alone, until it was given up; the next begins when the one before has ended.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"keyed-ill": ILL, "keyed-slow": (200, b"", {}, 3), "keyed-well": OK})
    queue = created(talk, "keyed-several", *came, retries=1, retries_delay=40)
    ids = posted(talk, queue, "1", "2", ordering_key="k") + posted(talk, queue, "3", ordering_key="k")
    posted(talk, queue, "A", ordering_key="K")
    posted(talk, queue, "long", ordering_key=256 * "k")
    posted(talk, queue, "none")
    talk.sleep(20)
    free = ["A", "long", "none"]
    talk.came("the first of each at who fails", sorted(["1", *free]), sorted(_bodies(came["keyed-ill"])))
    for name in ("keyed-slow", "keyed-well"):
        talk.came(f"all of them at {name}", sorted(["1", "2", "3", *free]), sorted(_bodies(came[name])))
        talk.came("in order", ["1", "2", "3"], [each for each in _bodies(came[name]) if each in "123"])
    own = [each.at for each in came["keyed-slow"] if each.body.decode() in {"1", "2", "3"}]
    for before, after in pairwise(own):
        talk.came("when the one before has ended", lambda each: 3 <= each <= 8, (after - before) / 1_000_000)
    shown = statuses(talk, queue, ids[1])["keyed-ill"]
    talk.is_so("one that waits", ({"tries": 0, "state": "pending"}, False), (shown, "status_code" in shown))
    talk.sleep(3 * (40 + LATE_S))
    own_bodies = [each for each in _bodies(came["keyed-ill"]) if each in "123"]
    talk.came("each twice, one after the other", [*"112233"], own_bodies)
    talk.came("once at the others", [6, 6], [len(came[name]) for name in ("keyed-slow", "keyed-well")])
    talk.ask("DELETE", queue)


def _acknowledged(talk: Talk) -> None:
    """The next of a key begins when the one before was acknowledged, or never was and is given up."""
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"held-202": (202, b"")})["held-202"]
    queue = created(talk, "held-keyed", "held-202", retries=0, retries_delay=60)
    ids = posted(talk, queue, "1", "2", "3", ordering_key="k")
    talk.sleep(30)
    talk.came("the first alone", ["1"], _bodies(came))
    talk.is_so("which is reserved", {"state": "reserved"}, statuses(talk, queue, ids[0])["held-202"])
    held = {"reservation_id": came[0].headers["iron-reservation-id"], "subscriber_name": "held-202"}
    talk.ask("DELETE", f"{queue}/messages/{ids[0]}", held, shows={"msg": "Deleted"})
    talk.sleep(10)
    talk.came("then the second", ["1", "2"], _bodies(came))
    talk.sleep(30)
    talk.came("which was not acknowledged yet", ["1", "2"], _bodies(came))
    talk.sleep(30 + LATE_S)
    talk.came("then the third", ["1", "2", "3"], _bodies(came))
    ends = [statuses(talk, queue, each)["held-202"]["state"] for each in ids[:2]]
    talk.is_so("what became of them", ["acknowledged", "exhausted"], ends)
    talk.ask("DELETE", queue)


def _others(talk: Talk) -> None:
    """A key is that of its queue; what is deleted, expires, or is tried again by hand lets the next go, or is none of
    its business.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    fails = {"a1", "c1"}

    def some(came: Came) -> Said:
        return ILL if came.body.decode() in fails else OK

    came = talk.listen("ordered-some.example", some)
    first = created(talk, "ordered-first", "ordered-some", retries=0)
    second = created(talk, "ordered-second", "ordered-some", retries=5, retries_delay=3_000, expires=60)
    [lost] = posted(talk, first, "a1", ordering_key="k")
    posted(talk, second, "c1", "c2", ordering_key="k")
    posted(talk, first, "a2", ordering_key="k")
    talk.sleep(15)
    talk.came("given up, and not in another queue", ["a1", "a2", "c1"], sorted(_bodies(came)))
    fails.clear()
    talk.ask("POST", f"{first}/replay", {"subscriber": "ordered-some"}, shows={"replayed": 1})
    posted(talk, first, "a3", ordering_key="k")
    talk.sleep(15)
    talk.came("by hand, and the next", ["a1", "a3"], sorted(_bodies(came)[3:]))
    talk.is_so("delivered", {"state": "delivered", "tries": 2}, statuses(talk, first, lost)["ordered-some"])
    for each in (first, second):
        talk.ask("DELETE", each)


def _rested(talk: Talk) -> None:
    """While a subscriber is paused, what it failed to take is not tried, and uses up no attempts; the other one, and
    the one of its name in another queue, get theirs.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"rests-ill": ILL, "rests-well": OK})
    push = {"retries": 1, "retries_delay": 50}
    queue, beside = (created(talk, name, "rests-ill", "rests-well", **push) for name in ("rests", "rests-beside"))
    [failed] = posted(talk, queue, "failed")
    talk.sleep(10)
    for _ in range(2):
        talk.ask("POST", f"{queue}/pause", {"subscriber": "rests-ill"}, shows={"msg": "Paused"})
    for kept in (
        ("POST", f"{queue}/subscribers", {"subscribers": [subscriber("rests-ill", timeout=12)]}),
        ("PUT", f"{queue}/subscribers", {"subscribers": [subscriber("rests-well"), subscriber("rests-ill")]}),
        ("PATCH", queue, {"queue": talk.ask("GET", queue)["queue"]}),
    ):
        talk.ask(*kept)
        paused = {each["name"] for each in talk.ask("GET", queue)["queue"]["push"]["subscribers"] if each.get("paused")}
        talk.is_so("who is paused", {"rests-ill"}, paused)
    shown = talk.ask("GET", beside)["queue"]["push"]["subscribers"]
    talk.is_so("nobody elsewhere", [], [each for each in shown if each.get("paused")])
    talk.sleep(2)
    [waits] = posted(talk, queue, "waits")
    posted(talk, beside, "beside")
    talk.sleep(50 + LATE_S)
    heard = {name: sorted(_bodies(each)) for name, each in came.items()}
    expected = {"rests-ill": ["beside", "beside", "failed"], "rests-well": ["beside", "failed", "waits"]}
    talk.came("who gets what", expected, heard)
    for message_id, tries in ((failed, 1), (waits, 0)):
        one = statuses(talk, queue, message_id)["rests-ill"]
        talk.is_so("tries", ({"tries": tries, "retries_remaining": 1}, False), (one, "next_try_at" in one))
    for _ in range(2):
        talk.ask("POST", f"{queue}/resume", {"subscriber": "rests-ill"}, shows={"msg": "Resumed"})
    talk.sleep(3 * MINUTE + 50 + LATE_S)
    counts = Counter(_bodies(came["rests-ill"]))
    talk.came("as many tries as without a pause", {"failed": 2, "waits": 2, "beside": 2}, dict(counts))
    for path in (queue, beside):
        talk.ask("DELETE", path)


def _resumed(talk: Talk) -> None:
    """Once it is resumed, a subscriber gets new messages at once, and what waited from the next minute on, once."""
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"resumes-well": OK})["resumes-well"]
    queue = created(talk, "resumes", "resumes-well")
    talk.ask("POST", f"{queue}/pause", {"subscriber": "resumes-well"})
    talk.sleep(2)
    waited = [posted(talk, queue, f"{number}")[0] for number in range(12)]
    keyed = posted(talk, queue, "k1", "k2", "k3", ordering_key="k")
    talk.sleep(2 * MINUTE)
    talk.came("nothing yet", [], came)
    talk.ask("POST", f"{queue}/resume", {"subscriber": "resumes-well"})
    talk.sleep(1.5)
    [new] = posted(talk, queue, "new")
    talk.sleep(4)
    talk.came("what is new", True, new in ids_of(came))
    talk.sleep(2 * MINUTE + 5)
    talk.came("all of them, once", sorted([*waited, *keyed, new]), sorted(ids_of(came)))
    talk.came("those of a key in order", ["k1", "k2", "k3"], [each for each in _bodies(came) if each.startswith("k")])
    talk.ask("GET", f"{queue}/health", shows={"waiting": 0, "subscribers": [{"health": {"state": "delivering"}}]})
    talk.ask("DELETE", queue)


def _eager(talk: Talk) -> None:
    """Of an eager queue, too, each message comes once to each subscriber: in a post that makes more than a hundred
    orders, delayed not before its time, with a key in order, and not to who is paused.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"eager-one": OK, "eager-two": OK, "eager-rests": OK})
    queue = created(talk, "eager-several", *came, eager=True)
    talk.ask("POST", f"{queue}/pause", {"subscriber": "eager-rests"})
    talk.sleep(2)
    began = talk.now()
    ids = posted(talk, queue, *(f"{number}" for number in range(40)))
    [later] = posted(talk, queue, "later", delay=45)
    keyed = posted(talk, queue, "k1", "k2", "k3", ordering_key="k")
    single = [posted(talk, queue, f"s{number}")[0] for number in range(3)]
    talk.sleep(30)
    for name in ("eager-one", "eager-two"):
        talk.came(f"at {name}", sorted([*ids, *keyed, *single]), sorted(ids_of(came[name])))
        talk.came("in order", ["k1", "k2", "k3"], [each for each in _bodies(came[name]) if each.startswith("k")])
    talk.sleep(2 * MINUTE)
    for name in ("eager-one", "eager-two"):
        talk.came(f"once, at {name}", sorted([*ids, *keyed, *single, later]), sorted(ids_of(came[name])))
        at = next(each.at for each in came[name] if each.body == b"later")
        talk.came("after its delay", lambda each: 44 <= each <= 45 + LATE_S, (at - began) / 1_000_000)
    talk.came("nothing to who is paused", [], came["eager-rests"])
    talk.ask("DELETE", queue)


def _slow(talk: Talk) -> None:
    """A subscriber that takes seconds to answer gets each message once, and delays neither the other one of its queue
    nor another queue.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    takes_s = 8
    came = listening(talk, {"takes-long": (200, b"", {}, takes_s), "takes-none": OK})
    queue = created(talk, "takes", *came, retries=0)
    beside = created(talk, "takes-beside", "takes-none", retries=0)
    ids = posted(talk, queue, *(f"{number}" for number in range(40)))
    talk.sleep(1, exactly=True)
    other = posted(talk, beside, *(f"beside {number}" for number in range(10)))
    talk.sleep(10)
    talk.came("who answers at once", sorted([*ids, *other]), sorted(ids_of(came["takes-none"])))
    talk.sleep(40 * takes_s)
    talk.came("each once", sorted(ids), sorted(ids_of(came["takes-long"])))
    for path in (queue, beside):
        talk.ask("DELETE", path)


def _suspended(talk: Talk) -> None:
    """While its project is suspended, deliveries wait and use up no tries, and messages expire; all but reading is
    refused. When it is resumed, everything goes on, and what has expired is reported.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"stopped-ill": ILL, "stopped-202": (202, b"")})
    push = {"retries": 2, "retries_delay": 40, "error_queue": "stopped-failed"}
    queue = created(talk, "stopped", *came, **push)
    brief = created(talk, "stopped-brief", "stopped-ill", expires=60, **push)
    pulled = posted(talk, "/queues/stopped-pull", "pulled")
    [one] = posted(talk, queue, "one")
    [later] = posted(talk, queue, "later", delay=60)
    [expires] = posted(talk, brief, "expires")
    [held] = talk.ask("POST", "/queues/stopped-pull/reservations", {"timeout": 30})["messages"]
    talk.sleep(10)
    before = {name: len(each) for name, each in came.items()}
    talk.came("once each", {"stopped-ill": 2, "stopped-202": 1}, before)
    talk.typed("projects", "suspend", talk.project, shows=[{"suspended": str}])
    talk.sleep(6, exactly=True)
    reservation = came["stopped-202"][0].headers["iron-reservation-id"]
    acknowledges = {"reservation_id": reservation, "subscriber_name": "stopped-202"}
    asked: tuple[tuple[str, str, object], ...] = (
        ("POST", f"{queue}/messages", {"messages": [{"body": "x"}]}),
        ("POST", f"{queue}/webhook", b"x"),
        ("POST", f"{queue}/replay", {"subscriber": "stopped-ill"}),
        ("POST", f"{queue}/pause", {"subscriber": "stopped-ill"}),
        ("DELETE", f"{queue}/messages", {}),
        ("DELETE", f"{queue}/messages/{one}", {}),
        ("DELETE", f"{queue}/messages/{one}", acknowledges),
        ("PATCH", queue, {"queue": {"push": {"retries": 0}}}),
        ("PUT", "/queues/stopped-new", {}),
        ("POST", "/queues/stopped-pull/reservations", {}),
        ("DELETE", f"/queues/stopped-pull/messages/{pulled[0]}", {"reservation_id": held["reservation_id"]}),
        ("POST", "/alerts", {"alert": {}}),
    )
    for method, path, body in asked:
        talk.ask(method, path, body, status=403, shows={"msg": "The project is suspended"})
    talk.sleep(100 + LATE_S)
    talk.came("nothing meanwhile", before, {name: len(each) for name, each in came.items()})
    talk.is_so("no tries", {"tries": 1, "retries_remaining": 2}, statuses(talk, queue, one)["stopped-ill"])
    talk.ask("GET", "/queues/stopped-pull/messages", shows={"messages": [{"id": pulled[0], "reserved_count": 1}]})
    talk.typed("projects", "resume", talk.project, shows=[{"suspended": None}])
    talk.sleep(2 * MINUTE + 3 * (40 + LATE_S))
    tries = {name: Counter(_bodies(each)) for name, each in came.items()}
    expected = {"stopped-ill": {"one": 3, "later": 3, "expires": 1}, "stopped-202": {"one": 3, "later": 3}}
    talk.came("all tries", expected, {name: dict(each) for name, each in tries.items()})
    states = {body: statuses(talk, queue, each) for body, each in (("one", one), ("later", later))}
    ends = {name: {"state": "exhausted", "tries": 3} for name in came}
    talk.is_so("given up after them", {"one": ends, "later": ends}, states)
    talk.is_so("expired", {"status": "expired", "tries": 1}, statuses(talk, brief, expires)["stopped-ill"])
    reasons = [(each["body"], each.get("reason")) for each in reported(talk, "stopped-failed")]
    notified = [("expires", "expired"), *2 * [("later", None)], *2 * [("one", None)]]
    talk.is_so("what is reported", notified, sorted(reasons, key=str))
    talk.ask(
        "POST", "/queues/stopped-pull/reservations", {}, shows={"messages": [{"id": pulled[0], "reserved_count": 2}]}
    )
    talk.ask("GET", "/queues/stopped-new", status=404)
    for path in (queue, brief, "/queues/stopped-pull", "/queues/stopped-failed"):
        talk.ask("DELETE", path)


__all__ = ["through"]
