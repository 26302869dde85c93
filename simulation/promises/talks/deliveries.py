"""What becomes of an endpoint's messages: how long they wait after each answer, what resends and changes of the
endpoint do to those that wait, who waits behind whom, and how far a round goes.

Sources: docs/webhooks.md ("Ordering keys", "Background tasks", "Differences from Svix"), docs/flow.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from simulation.promises.talks.customers import HOUR, KIND, LATE_S, MINUTE, OTHER, Customer, gaps
from simulation.promises.talks.talk import Came, Talk
from simulation.promises.talks.webhooks import OTHER_SECRET, is_signed

FIRST_S, SECOND_S, THIRD_S = 5, 300, 1_800
"""Svix's first waits; each is up to a fifth shorter or longer."""

MOST_HOPS = 10
MANUAL = 1
"""``triggerType`` of what a person asked for."""


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(
        _waits,
        _twice_in_a_row,
        _resent,
        _switched_off,
        _removed,
        _changed,
        _ordered,
        _stuck,
        _by_hand,
        _rounds,
    )


def _about(talk: Talk, wait: float, *, late: float = 2) -> Callable[[float], bool]:
    """About a wait of the schedule, which may be late."""
    most = wait * 1.2 + late + (LATE_S if wait >= MINUTE else 0) + talk.gathered_s + talk.put_off_s
    return lambda gap: wait * 0.8 - 0.5 <= gap <= most


def _exactly(talk: Talk, wait: float) -> Callable[[float], bool]:
    """At least a wait that was asked for, and not much more."""
    return lambda gap: wait - 0.5 <= gap <= wait * 1.2 + LATE_S + talk.gathered_s + talk.put_off_s


def _waits(talk: Talk) -> None:
    """How long an endpoint is left alone after each kind of failure: the schedule's wait, a minute at least after a 429
    or no answer in time, and what ``Retry-After`` says in full.
    """
    one = Customer(talk, "waits")
    failures: Mapping[str, tuple[Any, Callable[[float], bool]]] = {
        "error": ((500, b""), _about(talk, FIRST_S)),
        "not-found": ((404, b""), _about(talk, FIRST_S)),
        "bad-gateway": ((502, b""), _about(talk, FIRST_S)),
        "unavailable": ((503, b""), _about(talk, FIRST_S)),
        "too-slow-behind": ((504, b""), _about(talk, FIRST_S)),
        "redirect": ((302, b"", {"location": "https://waits-error.example/"}), _about(talk, FIRST_S)),
        "refused": ((0, b"connect"), _about(talk, FIRST_S)),
        "cut-short": ((0, b"bad_response"), _about(talk, FIRST_S)),
        "too-many": ((429, b""), _exactly(talk, MINUTE)),
        "timeout": ((0, b"timeout"), _exactly(talk, MINUTE)),
        "later": ((503, b"", {"retry-after": "40"}), _exactly(talk, 40)),
        "later-error": ((500, b"", {"retry-after": "130"}), _exactly(talk, 130)),
        "many-later": ((429, b"", {"retry-after": "200"}), _exactly(talk, 200)),
        "many-sooner": ((429, b"", {"retry-after": "1"}), _exactly(talk, MINUTE)),
        "much-later": ((503, b"", {"retry-after": "4000"}), _exactly(talk, 4_000)),
    }
    for uid, (answer, _) in failures.items():
        asked: list[Came] = []

        def say(came: Came, answer: Any = answer, asked: list[Came] = asked) -> Any:
            asked.append(came)
            return answer if len(asked) == 1 else (200, b"")

        one.says[uid] = say
        one.endpoint(uid)
    message_id = one.post(1)
    talk.sleep(4_000 * 1.2 + 2 * LATE_S + talk.put_off_s)
    for uid, (_, wait) in failures.items():
        talk.came(f"once more after {uid}", [wait], gaps(one.came[uid]))
        talk.came(f"the same message to {uid}", {message_id}, {each.headers["webhook-id"] for each in one.came[uid]})
    talk.is_so("all arrived", dict.fromkeys(failures, (0, None)), one.state(message_id))
    one.over()


def _twice_in_a_row(talk: Talk) -> None:
    """A second 502, 503 or 504 in a row asks for a minute; a first one for nothing, also after another failure."""
    one = Customer(talk, "row")
    hand: Mapping[str, Sequence[int]] = {"again": (503,), "either": (502,), "between": (503, 500), "first": (500,)}
    automatic = {"again": 503, "either": 504, "between": 503, "first": 503}
    minute = {"again": True, "either": True, "between": False, "first": False}
    for uid, codes in hand.items():
        answers = iter([*codes, automatic[uid]])
        one.says[uid] = lambda _, answers=answers: (next(answers, 200), b"")
        one.endpoint(uid)
    talk.sleep(2)
    at = talk.epoch_s() + 2 * MINUTE
    message_id = one.post(1, deliverAt=datetime.fromtimestamp(at, UTC).isoformat())
    talk.sleep(5 + talk.put_off_s)
    for number in range(2):
        for uid, codes in hand.items():
            if number < len(codes):
                talk.ask("POST", f"{one.path}/msg/{message_id}/endpoint/{uid}/resend", status=202)
        talk.sleep(15 + talk.put_off_s)
    talk.came("by hand", {uid: len(codes) for uid, codes in hand.items()}, {u: len(c) for u, c in one.came.items()})
    talk.sleep(at - talk.epoch_s() + 2 * MINUTE + 2 * talk.gathered_s + talk.put_off_s)
    for uid, heard in one.came.items():
        talk.came(f"then twice, {uid}", len(hand[uid]) + 2, len(heard))
        waits = _exactly(talk, MINUTE) if minute[uid] else _about(talk, FIRST_S)
        talk.came(f"once more, {uid}", waits, gaps(heard)[-1])
    talk.is_so("all arrived", dict.fromkeys(hand, (0, None)), one.state(message_id))
    one.over()


def _resent(talk: Talk) -> None:
    """What a person has sent again is sent once, at once, whatever the filters say and to nobody else; if it fails, it
    neither is tried again nor changes when the automatic tries come.
    """
    one = Customer(talk, "resent")
    for uid, more in (("fails", {}), ("well", {}), ("filters", {"eventTypes": [OTHER]}), ("later", {})):
        if uid != "later":
            one.endpoint(uid, **more)
    one.says["fails"] = (500, b"")
    message_id = one.post(1)
    talk.sleep(30 + talk.put_off_s)
    one.endpoint("later")
    path = f"{one.path}/msg/{message_id}/endpoint"
    talk.came("tried twice", 2, len(one.came["fails"]))
    one.says["well"] = (500, b"")
    for uid in ("fails", "well", "filters", "later"):
        talk.ask("POST", f"{path}/{uid}/resend", status=202)
    talk.sleep(10 + talk.put_off_s)
    counts = {uid: len(heard) for uid, heard in one.came.items()}
    talk.came("once more each, at once", {"fails": 3, "well": 2, "filters": 1, "later": 1}, counts)
    resent = one.came["fails"][2]
    talk.came("the same message", (message_id, 1), (resent.headers["webhook-id"], json.loads(resent.body)["n"]))
    talk.sleep(SECOND_S * 1.2 + LATE_S + talk.gathered_s)
    automatic = [*one.came["fails"][:2], *one.came["fails"][3:]]
    waits = [_about(talk, FIRST_S), _about(talk, SECOND_S)]
    talk.came("the automatic tries go on", waits, gaps(automatic))
    one.says["fails"] = (200, b"")
    talk.sleep(THIRD_S * 1.2 + LATE_S + talk.gathered_s)
    talk.came("as planned", [*waits, _about(talk, THIRD_S)], gaps([*one.came["fails"][:2], *one.came["fails"][3:]]))
    talk.sleep(3 * HOUR)
    counts = {uid: len(heard) for uid, heard in one.came.items()}
    talk.came("and nothing more", {"fails": 5, "well": 2, "filters": 1, "later": 1}, counts)
    talk.is_so("it has arrived", (0, None), one.state(message_id)["fails"])
    shown = talk.ask("GET", f"{one.path}/attempt/msg/{message_id}")["data"]
    by_hand = [each["triggerType"] for each in shown if each["url"].startswith("https://resent-fails")]
    talk.is_so("which was by hand", [0, 0, MANUAL, 0, 0], by_hand)
    talk.ask("POST", f"{one.path}/msg/msg_none/endpoint/well/resend", status=404)
    talk.ask("POST", f"{path}/none/resend", status=404)
    one.over()


def _switched_off(talk: Talk) -> None:
    """What waits for an endpoint that is switched off, by its owner or by its answer, has failed, and does not come
    when it is on again; other endpoints get theirs. What is recovered is sent.
    """
    one = Customer(talk, "off")
    for uid in ("owner", "gone", "stays"):
        one.endpoint(uid)
    failing = (500, b"")
    later = (503, b"", {"retry-after": "100"})
    one.says |= {
        "owner": lambda came: later if b"2" in came.body else failing,
        "stays": failing,
        "gone": lambda came: (410, b"") if b"2" in came.body else failing,
    }
    first = one.post(1)
    talk.sleep(20 + talk.put_off_s)
    second = one.post(2)
    talk.sleep(3 + talk.put_off_s)
    talk.ask("PATCH", f"{one.path}/endpoint/owner", {"disabled": True})
    talk.sleep(10 + talk.put_off_s)
    for uid in ("owner", "gone"):
        talk.ask("GET", f"{one.path}/endpoint/{uid}", shows={"disabled": True})
    third = one.post(3)
    talk.sleep(SECOND_S * 1.2 + 2 * LATE_S + talk.gathered_s)
    for about, message_id in (("first", first), ("second", second)):
        state = one.state(message_id)
        talk.is_so(f"the {about} has failed", {"owner": (2, None), "gone": (2, None)}, state)
        talk.is_so(f"the {about} is still tried elsewhere", (2, str), state["stays"])
    talk.is_so("what is posted meanwhile", {"stays"}, {*one.state(third)})
    talk.came("each as long as it was on", [1, 1, 2], one.numbers("owner"))
    talk.came("nothing after 410", [1, 1, 2], one.numbers("gone"))
    one.says |= {"owner": (200, b""), "gone": (200, b"")}
    before = {uid: len(heard) for uid, heard in one.came.items()}
    began = talk.ask("GET", f"{one.path}/msg/{first}")["timestamp"]
    for uid in ("owner", "gone"):
        talk.ask("PATCH", f"{one.path}/endpoint/{uid}", {"disabled": False}, shows={"disabled": False})
    talk.sleep(HOUR)
    for uid in ("owner", "gone"):
        talk.came(f"nothing comes back to {uid}", before[uid], len(one.came[uid]))
        talk.ask("POST", f"{one.path}/endpoint/{uid}/recover", {"since": began}, status=202)
    talk.sleep(2 * MINUTE + talk.put_off_s)
    for uid in ("owner", "gone"):
        talk.came(f"what is recovered, {uid}", [1, 2], sorted(one.numbers(uid)[before[uid] :]))
        talk.is_so(f"it has arrived at {uid}", (0, None), one.state(first)[uid])
    one.over()


def _removed(talk: Talk) -> None:
    """Nothing waits for an endpoint that was deleted, and one of its uid that is made afterwards gets nothing of it."""
    one = Customer(talk, "removed")
    for uid in ("one", "other"):
        one.endpoint(uid)
        one.says[uid] = (500, b"")
    message_id = one.post(1)
    talk.sleep(20 + talk.put_off_s)
    talk.ask("DELETE", f"{one.path}/endpoint/one", status=204)
    gone = one.came["one"]
    again = one.endpoint("one", channels=["none"])
    one.says = {}
    talk.sleep(SECOND_S * 1.2 + 2 * LATE_S + talk.gathered_s)
    talk.came("no more tries", (2, 0), (len(gone), len(again)))
    talk.came("the other's go on", 3, len(one.came["other"]))
    talk.ask(
        "POST", f"{one.path}/endpoint/one/recover", {"since": "2026-11-10T00:00:00Z", "unlimited": True}, status=202
    )
    talk.sleep(2 * MINUTE + talk.put_off_s)
    talk.came("nothing is recovered of it", 0, len(again))
    talk.ask("POST", f"{one.path}/msg/{message_id}/endpoint/one/resend", status=202)
    talk.sleep(10 + talk.put_off_s)
    talk.came("but by hand", [1], one.numbers("one"))
    one.over()


def _changed(talk: Talk) -> None:
    """What waits goes to the endpoint as it is by then: URL, headers and secret; its filters count when messages are
    posted, and an endpoint that is made later gets what is posted later.
    """
    one = Customer(talk, "moved")
    old = one.endpoint("moves", headers={"X-Old": "1"})
    one.says["moves"] = (500, b"")
    moved = talk.listen("moved-there.example", lambda _: (200, b""))
    message_id = one.post(1)
    talk.sleep(20 + talk.put_off_s)
    path = f"{one.path}/endpoint/moves"
    change = {"url": "https://moved-there.example/new", "eventTypes": [OTHER], "channels": ["none"]}
    talk.ask("PATCH", path, {**change, "payloadFilters": [{"path": "n", "operator": "gt", "value": 9}]})
    talk.ask("PUT", f"{path}/headers", {"headers": {"X-New": "2"}}, status=204)
    talk.ask("POST", f"{path}/secret/rotate", {"key": OTHER_SECRET, "gracePeriodSeconds": 0})
    later = one.endpoint("later")
    talk.sleep(2)
    second = one.post(2)
    talk.sleep(SECOND_S * 1.2 + LATE_S + talk.gathered_s + talk.put_off_s)
    talk.came("no more where it was", 2, len(old))
    talk.came("once where it is", [("/new", message_id)], [(each.path, each.headers["webhook-id"]) for each in moved])
    names = [({"x-old", "x-new"} & {*each.headers}, is_signed(each, OTHER_SECRET)) for each in moved]
    talk.came("with its headers and secret", [(lambda each: each == {"x-new"}, True)], names)
    talk.came("what is posted later", [second], [each.headers["webhook-id"] for each in later])
    talk.is_so("to whom", {"later": (0, None)}, one.state(second))
    talk.is_so("and before", {"moves": (0, None)}, one.state(message_id))
    one.over()


def _ordered(talk: Talk) -> None:
    """Of a key each endpoint gets one after the other, and a stuck one delays nothing else; numbers are those of the
    application's key, with a gap for what a filter leaves out; a resend waits for nobody.
    """
    one = Customer(talk, "keyed")
    one.endpoint("stuck")
    one.endpoint("well")
    one.endpoint("some", eventTypes=[KIND])
    one.says["stuck"] = lambda came: (500, b"") if came.headers.get("webhook-ordering-key") == "a" else (200, b"")
    posts = ((1, "a", KIND), (2, "a", OTHER), (3, "b", KIND), (4, "a", KIND), (5, None, KIND), (6, "b", KIND))
    ids = {}
    for number, key, kind in posts:
        ids[number] = one.post(number, kind, **({} if key is None else {"orderingKey": key}))
        talk.sleep(1, exactly=True)
    talk.sleep(30 + 2 * talk.gathered_s + talk.put_off_s)
    places = {1: ("a", "1"), 2: ("a", "2"), 3: ("b", "1"), 4: ("a", "3"), 5: (None, None), 6: ("b", "2")}
    expected = {"stuck": [1, 1, 3, 5, 6], "well": [1, 2, 3, 4, 5, 6], "some": [1, 3, 4, 5, 6]}
    for uid, numbers in expected.items():
        talk.came(f"what came to {uid}", numbers, sorted(one.numbers(uid)))
        for key in ("a", "b"):
            own = [number for number in one.numbers(uid) if places[number][0] == key]
            talk.came(f"{key} in order at {uid}", sorted(own), own)
        for each in one.came[uid]:
            said = (each.headers.get("webhook-ordering-key"), each.headers.get("webhook-sequence"))
            talk.came(f"its place at {uid}", places[json.loads(each.body)["n"]], said)
    # One that waits is sent by hand, and the others still wait
    one.says["stuck"] = lambda came: (500, b"") if json.loads(came.body)["n"] == 1 else (200, b"")
    talk.ask("POST", f"{one.path}/msg/{ids[4]}/endpoint/stuck/resend", status=202)
    talk.sleep(10 + talk.put_off_s)
    talk.came("by hand", [4], one.numbers("stuck")[5:])
    one.says["stuck"] = (200, b"")
    talk.sleep(SECOND_S * 1.2 + LATE_S + 3 * talk.gathered_s)
    talk.came("then the rest, in order", [1, 2], one.numbers("stuck")[6:8])
    talk.is_so("each has arrived", {(0, None)}, {one.state(each)["stuck"] for each in ids.values()})
    one.over()


def _stuck(talk: Talk) -> None:
    """The next of a key is sent when the one before it was given up, or its endpoint was switched off and on again."""
    one = Customer(talk, "stuck")
    for uid in ("ends", "off"):
        one.endpoint(uid)
    ended = (500, b"", {"webhook-delivery": "abort-message"})
    one.says["ends"] = lambda came: ended if json.loads(came.body)["n"] < 3 else (200, b"")
    one.says["off"] = (500, b"")
    ids = [one.post(number, orderingKey="k") for number in (1, 2, 3)]
    talk.sleep(30 + 3 * talk.gathered_s + talk.put_off_s)
    talk.came("one after the other", [1, 2, 3], one.numbers("ends"))
    talk.is_so("what became of them", [(2, None), (2, None), (0, None)], [one.state(each)["ends"] for each in ids])
    talk.came("only the first", {1}, {*one.numbers("off")})
    talk.ask("PATCH", f"{one.path}/endpoint/off", {"disabled": True})
    talk.sleep(SECOND_S * 1.2 + 2 * LATE_S + talk.gathered_s)
    one.says["off"] = (200, b"")
    before = len(one.came["off"])
    talk.ask("PATCH", f"{one.path}/endpoint/off", {"disabled": False})
    talk.sleep(5)
    later = one.post(4, orderingKey="k")
    talk.sleep(3 * MINUTE + 3 * talk.gathered_s + talk.put_off_s)
    talk.came("the next one", [4], one.numbers("off")[before:])
    talk.came("with its number", "4", one.came["off"][-1].headers["webhook-sequence"])
    talk.is_so("it has arrived", (0, None), one.state(later)["off"])
    # A key of other letters is another one
    before = len(one.came["ends"])
    one.post(5, orderingKey="K")
    talk.sleep(10 + talk.put_off_s)
    places = [(each.headers["webhook-ordering-key"], each.headers["webhook-sequence"]) for each in one.came["ends"]]
    talk.came("its own numbers", [("K", "1")], places[before:])
    one.over()


def _by_hand(talk: Talk) -> None:
    """A try by hand does not wait for what is before it in its key; if it fails, its own tries go on waiting."""
    one = Customer(talk, "hand")
    one.endpoint("ill")
    one.says["ill"] = (500, b"")
    ids = [one.post(number, orderingKey="k") for number in (1, 2)]
    talk.sleep(30 + talk.put_off_s)
    talk.ask("POST", f"{one.path}/msg/{ids[1]}/endpoint/ill/resend", status=202)
    talk.sleep(MINUTE + talk.put_off_s)
    talk.came("the first, and by hand the second", [1, 1, 2], sorted(one.numbers("ill")))
    talk.sleep(SECOND_S * 1.2 + LATE_S + talk.gathered_s)
    talk.came("the first goes on alone", [1, 1, 1, 2], sorted(one.numbers("ill")))
    one.says["ill"] = (200, b"")
    talk.sleep(THIRD_S * 1.2 + 2 * LATE_S + 3 * talk.gathered_s)
    talk.came("then the second", [1, 2], one.numbers("ill")[4:])
    talk.is_so("both have arrived", {(0, None)}, {one.state(each)["ill"] for each in ids})
    one.over()


def _rounds(talk: Talk) -> None:
    """An endpoint that leads back to a post, and passes on how many led to a message, ends with 508."""
    one = Customer(talk, "rounds")
    answered: list[int] = []

    def back(came: Came) -> tuple[int, bytes]:
        again = talk.with_headers(pushhub_hops=came.headers["pushhub-hops"])
        body = {"eventType": KIND, "payload": {"n": len(answered)}}
        answered.append(again.status("POST", f"{one.path}/msg", body))
        return 200, b""

    one.says["round"] = back
    one.endpoint("round")
    talk.with_headers(pushhub_hops=str(MOST_HOPS - 3)).ask(
        "POST", f"{one.path}/msg", {"eventType": KIND, "payload": {"n": 0}}, status=202
    )
    talk.sleep(MINUTE + 3 * talk.gathered_s + 3 * talk.put_off_s)
    hops = [str(number) for number in range(MOST_HOPS - 2, MOST_HOPS + 1)]
    talk.came("one more each time", hops, [each.headers["pushhub-hops"] for each in one.came["round"]])
    talk.is_so("until there are too many", [202, 202, 508], answered)
    one.says = {}
    one.post(9)
    talk.sleep(10 + talk.put_off_s)
    talk.came("what somebody posted", "1", one.came["round"][-1].headers["pushhub-hops"])
    one.over()


__all__ = ["webhooks"]
