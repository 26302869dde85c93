"""What delivery records say of messages of queues, from their acceptance to their end, against what was posted, what
subscribers and consumers got, and what was done meanwhile.

Source: docs/records.md, field by field and kind by kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simulation.promises.talks.records import NEAR_S, Answers, after, attempt, in_turn, lives_of, near, recorded_of
from simulation.promises.talks.talk import Came, Talk

MINUTE = 60
FAR_S = 900
"""A longer wait is in the schedule."""


def push(talk: Talk) -> None:
    """Of push queues."""
    talk.through(_delivered, _scheduled, _worked_on, _one_of_several, _ended, _by_hand)


def pull(talk: Talk) -> None:
    """Of pull queues."""
    talk.through(_reserved, _moved)


def _put(talk: Talk, queue: str, subscribers: Mapping[str, Answers], **settings: Any) -> dict[str, Sequence[Came]]:
    """A push queue with subscribers and their answers; what comes to them."""
    came = {name: talk.listen(f"{queue}-{name}.example", in_turn(each)) for name, each in subscribers.items()}
    push = {"subscribers": [{"name": name, "url": f"https://{queue}-{name}.example/in"} for name in came]}
    push |= settings.pop("push", {})
    talk.ask("PUT", f"/queues/{queue}", {"queue": {"push": push, **settings}})
    return came


def _posted(talk: Talk, queue: str, body: str, **more: Any) -> str:
    messages = {"messages": [{"body": body, **more}]}
    return str(talk.ask("POST", f"/queues/{queue}/messages", messages, status=201)["ids"][0])


def _delivered(talk: Talk) -> None:
    """What two subscribers were sent and answered, one of them twice."""
    answers: dict[str, Answers] = {"quick": [(200, b"ok!")], "again": [(503, b"later"), (201, b"")]}
    delay, lasts, body = 40 + talk.gathered_s, 7_200, '{"n": "é"}'
    push = {"retries": 2, "retries_delay": delay}
    came = _put(talk, "lives", answers, message_expiration=lasts, push=push)
    at = talk.now()
    one = _posted(talk, "lives", body)
    talk.sleep(delay + 20 + 2 * talk.gathered_s + talk.put_off_s)
    [accepted], lives = lives_of(talk, one, 4)
    shown = {"project": talk.project, "queue": "lives", "message_id": one, "dialect": "raw"}
    begun = accepted["accepted_at"]
    expected = {
        **shown,
        "schema_version": 2,
        "accepted_at": near(talk, at),
        "at": begun,
        "due_at": begun,
        "expires_at": after(talk, begun, lasts),
        "body_size": len(body.encode()),
        "owed": lambda each: sorted(each) == sorted(one["delivery_id"] for each in lives.values() for one in each[:1]),
    }
    talk.is_so("its acceptance", expected, accepted)
    for name, given in answers.items():
        common = {**shown, "subscriber": name, "tries_max": 3, "accepted_at": begun, "expires_at": str}
        tries = [*zip(came[name], given, strict=True)]
        rows = [
            attempt(talk, each, number, answer, version=number, tries=number, **common)
            for number, (each, answer) in enumerate(tries, start=1)
        ]
        rows[-1] |= {"verdict": "delivered", "state": "delivered"}
        if len(rows) > 1:
            first = lives[name][0]["finished_at"]
            rows[0] |= {"verdict": "failed", "state": "retrying", "wait_after_ms": 1_000 * delay}
            rows[0] |= {"due_at": after(talk, first, delay)}
            gap = (came[name][1].at - came[name][0].at) / 1_000
            rows[1] |= {"wait_before_ms": lambda each, gap=gap: abs(each - gap) <= 1_000 * NEAR_S}
        talk.is_so(f"records of {name}", rows, lives[name])
    talk.ask("DELETE", "/queues/lives")


def _scheduled(talk: Talk) -> None:
    """What waits for longer than a quarter of an hour is in the schedule, and its record says so."""
    wait = FAR_S + 60
    answers: Answers = [(500, b""), (200, b"")]
    came = _put(talk, "far", {"s": answers}, push={"retries": 1, "retries_delay": wait})
    one = _posted(talk, "far", "x", delay=wait)
    talk.sleep(2 * wait + 3 * MINUTE + 2 * talk.gathered_s + talk.put_off_s)
    [accepted], lives = lives_of(talk, one, 4)
    talk.is_so("due later", {"due_at": after(talk, accepted["at"], wait)}, accepted)
    [subscriber] = lives
    first, last = came["s"]
    rows = [
        {"kind": "rescheduled", "state": "pending", "scheduled": True, "version": 1, "tries": 0}
        | {"due_at": accepted["due_at"]},
        attempt(talk, first, 1, answers[0], version=2, tries=1, scheduled=True, state="retrying")
        | {"wait_after_ms": 1_000 * wait, "tries_max": 2},
        attempt(talk, last, 2, answers[1], version=3, tries=2, state="delivered"),
    ]
    talk.is_so("records", rows, lives[subscriber])
    talk.ask("DELETE", "/queues/far")


def _worked_on(talk: Talk) -> None:
    """Whoever answers 202 acknowledges, or does not; of each end there is a record, with the attempt that was taken."""
    delay = 40 + talk.gathered_s + round(talk.put_off_s)
    came = _put(talk, "working", {"s": [(202, b"")]}, push={"retries": 1, "retries_delay": delay})
    ids = [_posted(talk, "working", each) for each in ("done", "not")]
    talk.sleep(20 + talk.put_off_s)
    first = next(each for each in came["s"] if each.headers["iron-message-id"] == ids[0])
    held = {"reservation_id": first.headers["iron-reservation-id"], "subscriber_name": "s"}
    at = talk.now()
    talk.ask("DELETE", f"/queues/working/messages/{ids[0]}", held, shows={"msg": "Deleted"})
    talk.sleep(3 * delay + 3 * MINUTE + 2 * talk.gathered_s)
    reserved = {"verdict": "reserved", "state": "reserved", "wait_after_ms": 1_000 * delay, "tries_max": 2}
    _, lives = lives_of(talk, ids[0], 3)
    rows = [
        attempt(talk, first, 1, (202, b""), version=1, tries=1, **reserved),
        {
            "kind": "acknowledged",
            "state": "acknowledged",
            "attempt": 1,
            "version": 2,
            "tries": 1,
            "at": near(talk, at),
        },
    ]
    talk.is_so("acknowledged", rows, lives["s"])
    _, lives = lives_of(talk, ids[1], 4)
    tried = [each for each in came["s"] if each.headers["iron-message-id"] == ids[1]]
    rows = [
        attempt(talk, each, number, (202, b""), version=number, tries=number, **reserved)
        for number, each in enumerate(tried, start=1)
    ]
    rows.append({"kind": "exhausted", "state": "exhausted", "version": 3, "tries": 2})
    talk.is_so("never acknowledged", rows, lives["s"])
    talk.is_so("which attempt", False, "attempt" in lives["s"][-1])
    talk.ask("DELETE", "/queues/working")


def _one_of_several(talk: Talk) -> None:
    """In unicast a try is a whole round; each attempt names who was asked."""
    delay = 30 + talk.gathered_s
    answers: dict[str, Answers] = {"a": [(500, b"")], "b": [(500, b""), (200, b"")]}
    push = {"retries": 3, "retries_delay": delay}
    came = _put(talk, "either", answers, type="unicast", push=push)
    one = _posted(talk, "either", "x")
    talk.sleep(delay + MINUTE + 2 * talk.gathered_s + talk.put_off_s)
    asked = sorted([(each.at, name) for name, heard in came.items() for each in heard])
    [accepted], lives = lives_of(talk, one, 1 + len(asked))
    talk.is_so("owed as one", [f"{one}.*"], accepted["owed"])
    rows: list[dict[str, Any]] = []
    for number, (at, name) in enumerate(asked, start=1):
        state = "delivered" if number == len(asked) else "retrying"
        ended = number == len(asked) or number % 2 == 0
        tries = number // 2 + (number % 2 and ended)
        rows.append({"kind": "attempt", "attempt": number, "version": number, "subscriber": name, "state": state})
        rows[-1] |= {"delivery_id": f"{one}.*", "tries": tries, "started_at": near(talk, at), "tries_max": 4}
    talk.is_so("each attempt", rows, lives["*"])
    ids = {each["subscriber"]: each["subscriber_id"] for each in lives["*"]}
    talk.is_so("each by its id", [ids[name] for _, name in asked], [each["subscriber_id"] for each in lives["*"]])
    talk.is_so("two of them", 2, len({*ids.values()}))
    talk.ask("DELETE", "/queues/either")


def _ended(talk: Talk) -> None:
    """How what waits ends: deleted, cleared, without its subscriber or queue, over its time, or given up; and why."""
    delay, lasts = 100 + talk.gathered_s, 60
    ways: dict[str, tuple[dict[str, Any], dict[str, str] | None]] = {
        "deleted": ({}, {"kind": "cancelled"}),
        "cleared": ({}, {"kind": "cancelled", "reason": "queue_cleared"}),
        "gone": ({}, {"kind": "cancelled", "reason": "queue_deleted"}),
        "alone": ({}, {"kind": "exhausted", "reason": "subscriber_removed"}),
        "expired": ({"message_expiration": lasts}, {"kind": "expired"}),
        "once": ({"push": {"retries": 0}}, None),
    }
    ids: dict[str, str] = {}
    came: dict[str, Sequence[Came]] = {}
    for name, (settings, _) in ways.items():
        push = {"retries": 9, "retries_delay": delay, **settings.get("push", {})}
        answers: dict[str, Answers] = {"s": [(500, b"")], **({"t": [(200, b"")]} if name == "alone" else {})}
        came |= {name: _put(talk, name, answers, **{**settings, "push": push})["s"]}
        ids[name] = _posted(talk, name, "x")
    talk.sleep(20 + talk.put_off_s)
    talk.ask("DELETE", f"/queues/deleted/messages/{ids['deleted']}", {})
    talk.ask("DELETE", "/queues/cleared/messages", {})
    talk.ask("DELETE", "/queues/gone")
    talk.ask("DELETE", "/queues/alone/subscribers", {"subscribers": [{"name": "s"}]})
    talk.sleep(delay + 3 * MINUTE + 2 * talk.gathered_s)
    for name, (_, end) in ways.items():
        talk.came(f"one request of {name}", 1, len(came[name]))
        [accepted], lives = lives_of(talk, ids[name], 2 + (end is not None) + (name == "alone"))
        records = lives["s"]
        rows = [attempt(talk, came[name][0], 1, (500, b""), version=1, tries=1, verdict="failed")]
        if end is None:
            rows[0] |= {"state": "exhausted", "tries_max": 1}
        else:
            rows[0] |= {"state": "retrying", "tries_max": 10}
            rows.append({**end, "state": end["kind"], "version": 2, "tries": 1})
        talk.is_so(name, rows, records)
        without = [each.get("reason") for each in records]
        talk.is_so(f"why {name}", [None, *([end.get("reason")] if end else [])], without)
        if name == "expired":
            talk.is_so("at its time", lambda at, by=accepted["expires_at"]: by <= at, records[-1]["at"])
    for name in ways:
        if name != "gone":
            talk.ask("DELETE", f"/queues/{name}")


def _by_hand(talk: Talk) -> None:
    """A try by hand has the next number, uses up no try, and is named one; so is what asked for it."""
    answers: Answers = [(500, b""), (500, b"no"), (200, b"")]
    came = _put(talk, "hand", {"s": answers}, push={"retries": 0})["s"]
    one = _posted(talk, "hand", "x")
    for _ in range(2):
        talk.sleep(20 + talk.put_off_s)
        talk.ask("POST", "/queues/hand/replay", {"subscriber": "s"}, shows={"replayed": 1})
    talk.sleep(20 + talk.put_off_s)
    _, lives = lives_of(talk, one, 6)
    ends = ("exhausted", "exhausted", "delivered")
    rows: list[dict[str, Any]] = []
    for number, (each, answer, state) in enumerate(zip(came, answers, ends, strict=True), start=1):
        if number > 1:
            rows.append({"kind": "rescheduled", "state": "exhausted", "manual": True, "version": 2 * number - 2})
        rows.append(attempt(talk, each, number, answer, version=2 * number - 1, tries=1, state=state))
    talk.is_so("each", rows, lives["s"])
    asked = [each.get("manual", False) for each in lives["s"]]
    talk.is_so("by whom", [False, True, True, True, True], asked)
    talk.is_so("of how many", [1, None, None], [each.get("tries_max") for each in lives["s"] if "attempt" in each])
    talk.ask("DELETE", "/queues/hand")


def _reserved(talk: Talk) -> None:
    """Of a pull queue: put, reserved, touched, given back, and taken out by who had it, or by its owner."""
    talk.ask("PUT", "/queues/stays", {"queue": {"message_timeout": 50}})
    one, other = (_posted(talk, "stays", each) for each in ("one", "other"))
    path, times = f"/queues/stays/messages/{one}", [talk.now()]
    [held] = talk.ask("POST", "/queues/stays/reservations", {"n": 1}, shows={"messages": [{"id": one}]})["messages"]
    talk.sleep(5, exactly=True)
    times.append(talk.now())
    touched = {"reservation_id": held["reservation_id"], "timeout": 70}
    again = talk.ask("POST", f"{path}/touch", touched)["reservation_id"]
    talk.sleep(5, exactly=True)
    times.append(talk.now())
    talk.ask("POST", f"{path}/release", {"reservation_id": again, "delay": 0})
    talk.sleep(5, exactly=True)
    times.append(talk.now())
    talk.ask("POST", "/queues/stays/reservations", {"n": 1, "delete": True}, shows={"messages": [{"id": one}]})
    talk.ask("DELETE", f"/queues/stays/messages/{other}", {})
    [accepted], lives = lives_of(talk, one, 6)
    begun = {"kind": "accepted", "dialect": "pull", "queue": "stays", "body_size": 3, "owed": [f"{one}.line"]}
    talk.is_so("put", {**begun, "reservations": 0, "due_at": accepted["at"], "accepted_at": accepted["at"]}, accepted)
    rows = [
        {"kind": kind, "state": state, "reservations": count, "at": near(talk, at), "subscriber_id": "line"}
        for kind, state, count, at in (
            ("reserved", "reserved", 1, times[0]),
            ("reserved", "reserved", 2, times[1]),
            ("released", "pending", 2, times[2]),
            ("reserved", "reserved", 3, times[3]),
            ("delivered", "delivered", 3, times[3]),
        )
    ]
    records = lives["line"]
    rows[0]["due_at"] = after(talk, records[0]["at"], 50)
    rows[1]["due_at"] = after(talk, records[1]["at"], 70)
    talk.is_so("its records", rows, records)
    _, lives = lives_of(talk, other, 2)
    talk.is_so("deleted unreserved", [{"kind": "cancelled", "state": "cancelled", "reservations": 0}], lives["line"])
    talk.ask("DELETE", "/queues/stays")


def _moved(talk: Talk) -> None:
    """What was reserved too often moves: exhausted in the one queue, and accepted in the other under the same id, where
    it has a stay of its own.
    """
    dead = {"queue_name": "moved-dead", "max_reservations": 1}
    talk.ask("PUT", "/queues/moved", {"queue": {"message_timeout": 5, "dead_letter": dead}})
    one = _posted(talk, "moved", "letter")
    talk.ask("POST", "/queues/moved/reservations", {"n": 1}, shows={"messages": [{"id": one}]})
    talk.sleep(10)
    talk.ask("POST", "/queues/moved/reservations", {"n": 1}, shows={"messages": []})
    talk.sleep(10)
    taken = {"n": 1, "delete": True}
    talk.ask("POST", "/queues/moved-dead/reservations", taken, shows={"messages": [{"id": one, "body": "letter"}]})
    found = recorded_of(talk, lambda each: each["message_id"] == one, 6)
    by_queue = {
        queue: sorted((each for each in found if each["queue"] == queue), key=lambda each: str(each["at"]))
        for queue in ("moved", "moved-dead")
    }
    kinds = {queue: {each["kind"] for each in records} for queue, records in by_queue.items()}
    expected = {"moved": {"accepted", "exhausted", "reserved"}, "moved-dead": {"accepted", "delivered", "reserved"}}
    talk.is_so("what became of it", expected, kinds)
    talk.is_so("in two queues", 2, len({each["queue_uid"] for each in found}))
    stays = {each["delivery_id"] for each in by_queue["moved-dead"] if "delivery_id" in each}
    [accepted] = [each for each in by_queue["moved-dead"] if each["kind"] == "accepted"]
    talk.is_so("its stay", {*accepted["owed"]}, stays)
    talk.is_so("a number of its own", True, all(each.startswith(f"{one}~") for each in stays))
    talk.is_so("its size", [6, 6], [each["body_size"] for each in found if each["kind"] == "accepted"])
    for queue in ("moved", "moved-dead"):
        talk.ask("DELETE", f"/queues/{queue}")


__all__ = ["pull", "push"]
