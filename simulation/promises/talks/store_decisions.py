"""What a person decides about messages of a store that wait: for a poll, for a time, for a try, for a person; and what
changes of options and parameters do to them.

Source: docs/hub-protocol.md ("Routes", "Terms", "Decisions").
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from simulation.promises.judgement import SECOND
from simulation.promises.talks.services import copies, done, mapped, pushed
from simulation.promises.talks.talk import Came, Talk

MINUTE = 60
HOUR = 3_600
LATE_S = 75
"""What waits longer than a minute is looked after each minute."""

FORM = "application/x-www-form-urlencoded"


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_what_waits, _polls_again, _options, _options_end, _set_meanwhile)


def _payload(came: Came) -> Any:
    return json.loads(came.body)["payload"]


def _removed(talk: Talk, *paths: str) -> None:
    for each in paths:
        talk.ask("DELETE", each)


def _what_waits(talk: Talk) -> None:
    """What waits for a poll, as it was put off, as it was delayed, or for its next try: tried now it is done, given up
    it never is.
    """
    asked: dict[str, list[str]] = {}

    def answers(came: Came) -> tuple[int, bytes]:
        sent = json.loads(came.body)
        kind = sent["message"].removeprefix("waits:")
        paths = asked.setdefault(sent["message_id"], [])
        paths.append(came.path)
        if kind == "parent":
            return done(came, messages=[{"message": "waits:child", "payload": sent["payload"], "delay": HOUR}])
        first: dict[str, dict[str, Any]] = {"poll": {"delay": HOUR, "update_url": "/later"}, "off": {"delay": HOUR}}
        if len(paths) > 1 or kind == "child":
            return done(came)
        return (500, b"") if kind == "failing" else done(came, **first[kind])

    talk.listen("waits.example", answers)
    kinds = {"poll": "scheduled", "off": "scheduled", "child": "scheduled", "failing": "failing"}
    options = {"retry_base": HOUR, "retry_cap": HOUR}
    mapping = mapped(talk, "waits", [f"waits:{each}" for each in (*kinds, "parent")], options=options)
    talk.sleep(MINUTE + 1)
    ids: dict[tuple[str, str], str] = {}
    for kind, state in kinds.items():
        for wish in ("attempt_now", "archive"):
            posted = pushed(talk, f"waits:{'parent' if kind == 'child' else kind}", {"wish": wish})
            talk.sleep(5 + talk.gathered_s + talk.put_off_s)
            [copy] = copies(talk, posted)
            if kind == "child":
                [incoming] = copies(talk, copy["id"])
                [copy] = copies(talk, incoming["id"])
            waits = {"state": state, "can_attempt": True, "next_attempt": str, "queue_name": "accepted"}
            talk.is_so(f"{kind} waits", waits, copy)
            ids[kind, wish] = copy["id"]
    before = {key: len(asked.get(each, ())) for key, each in ids.items()}
    talk.is_so("requests", {key: int(key[0] != "child") for key in ids}, before)
    as_form = talk.with_headers(content_type=FORM)
    for (_, wish), each in ids.items():
        as_form.ask("PUT", f"/messages/{each}", f"{wish}=true".encode())
    talk.sleep(20 + talk.gathered_s + talk.put_off_s)
    paths = {kind: asked.get(ids[kind, "attempt_now"]) for kind in kinds}
    again = {"poll": ["/in", "/later"], "off": ["/in", "/in"], "child": ["/in"], "failing": ["/in", "/in"]}
    talk.came("tried now", again, paths)
    for (kind, wish), each in ids.items():
        over = {"state": "completed", "reason": None} if wish == "attempt_now" else {"state": "never_processed"}
        shown = {**over, "queue_name": "archived", "can_attempt": False, "completed_at": str}
        talk.ask("GET", f"/messages/{each}", shows={**shown, **({"reason": str} if wish == "archive" else {})})
        talk.is_so(f"{kind} waits no more", False, "next_attempt" in talk.ask("GET", f"/messages/{each}"))
    talk.sleep(1.2 * HOUR + LATE_S + talk.put_off_s)
    later = {key: len(asked.get(each, ())) for key, each in ids.items()}
    expected = {(kind, wish): len(again[kind]) if wish == "attempt_now" else before[kind, wish] for kind, wish in ids}
    talk.came("no more of any", expected, later)
    talk.ask("DELETE", mapping)


def _polls_again(talk: Talk) -> None:
    """What was parked while it was polled is polled again where it was, with all tries: the original request is made
    once.
    """
    said = [(200, {"delay": 1, "update_url": "/later"}), (500, {}), (500, {}), (500, {}), (200, {})]
    asked: list[Came] = []

    def answers(came: Came) -> tuple[int, bytes]:
        asked.append(came)
        status, more = said[min(len(asked), len(said)) - 1]
        return status, done(came, **more)[1]

    talk.listen("polled.example", answers)
    options = {"retry_base": 10, "retry_cap": 10, "max_attempts": 2}
    mapping = mapped(talk, "polled", ["polled:one"], options=options)
    talk.sleep(MINUTE + 1)
    posted = pushed(talk, "polled:one", {})
    wait = 3 * MINUTE + 3 * talk.gathered_s + talk.put_off_s
    talk.sleep(wait, exactly=True)
    [copy] = copies(talk, posted)
    talk.is_so("parked", {"state": "parked", "attempts": 2, "can_attempt": True}, copy)
    talk.came("polls", ["/in", "/later", "/later"], [each.path for each in asked])
    talk.ask("PUT", f"/messages/{copy['id']}", {"attempt_now": True})
    talk.sleep(wait, exactly=True)
    talk.came("and again", ["/in", *4 * ["/later"]], [each.path for each in asked])
    shown = {"state": "completed", "last_answer": {"attempt": 5, "polled": "https://polled.example/later"}}
    talk.ask("GET", f"/messages/{copy['id']}", shows=shown)
    talk.ask("DELETE", mapping)


def _failing(talk: Talk, name: str, said: Mapping[str, Any], options: Mapping[str, Any]) -> tuple[Sequence[Came], str]:
    """A service that fails at first, then answers ``said``, and its mapping."""

    def answers(_: Came) -> tuple[int, bytes]:
        heard.append(1)
        status = said["status"] if len(heard) > 1 else 500
        return status, json.dumps({"message_id": said["id"]} if "id" in said else {}).encode()

    heard: list[int] = []
    came = talk.listen(f"{name}.example", answers)
    return came, mapped(talk, name, ["options:one"], options=options)


def _options(talk: Talk) -> None:
    """Changed options hold for every later attempt: waits, their cap, whether another id is accepted."""
    slow = {"retry_base": 100, "retry_cap": 100}
    changes: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "options-lenient": ({"status": 200, "id": "x"}, {"lenient": True}),
        "options-lenient-none": ({"status": 200}, {"lenient": True}),
        "options-strict": ({"status": 200, "id": "x"}, {}),
        "options-quick": ({"status": 500}, {"retry_base": 5, "retry_cap": 20}),
        "options-as-before": ({"status": 500}, {}),
    }
    services = {name: _failing(talk, name, said, slow) for name, (said, _) in changes.items()}
    talk.sleep(MINUTE + 1)
    posted = pushed(talk, "options:one", {})
    talk.sleep(20 + talk.put_off_s)
    for name, (_, path) in services.items():
        talk.ask("PUT", path, {"mapping": {"options": changes[name][1]}})
    late = LATE_S + talk.gathered_s + talk.put_off_s
    talk.sleep(2 * 120 + 2 * late, exactly=True)
    states = {each["consumer"]: each["state"] for each in copies(talk, posted)}
    talk.is_so("states", {name: "completed" if "lenient" in name else "failing" for name in changes}, states)
    accepted = [len(came) for name, (came, _) in services.items() if "lenient" in name]
    talk.came("once accepted", [2, 2], accepted)
    for name, waits in {"options-quick": (100, 10, 20, 20), "options-as-before": (100, 100)}.items():
        requests = [each.at / SECOND for each in services[name][0]][: len(waits) + 1]
        found = [later - earlier for earlier, later in pairwise(requests)]
        fit = [wait - 1 <= each <= 1.2 * wait + late for wait, each in zip(waits, found, strict=False)]
        talk.came(f"waits of {name}: {found}", [True] * len(waits), fit)
    talk.came("a failure as before", True, len(services["options-strict"][0]) >= 3)
    _removed(talk, *(path for _, path in services.values()))
    talk.sleep(120 + LATE_S)


def _options_end(talk: Talk) -> None:
    """Changed options end tries, or let them go on: of what has failed once, as often as is allowed then."""
    slow = {"retry_base": 60, "retry_cap": 60}
    changes: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "ends-none": ({}, {"retries_allowed": False}),
        "ends-two": ({}, {"max_attempts": 2}),
        "ends-many": ({"max_attempts": 2}, {"max_attempts": None}),
        "ends-later": ({"max_attempts": 2}, {"max_attempts": 3}),
    }
    services = {name: _failing(talk, name, {"status": 500}, slow | own) for name, (own, _) in changes.items()}
    talk.sleep(MINUTE + 1)
    posted = pushed(talk, "options:one", {})
    talk.sleep(20 + talk.put_off_s)
    for name, (_, path) in services.items():
        talk.ask("PUT", path, {"mapping": {"options": changes[name][1]}})
    talk.sleep(3 * (72 + LATE_S) + talk.gathered_s + talk.put_off_s, exactly=True)
    rows = {each["consumer"]: each for each in copies(talk, posted)}
    states = {"ends-none": "parked", "ends-two": "parked", "ends-many": "failing", "ends-later": "parked"}
    talk.is_so("states", states, {name: each["state"] for name, each in rows.items()})
    counts = {name: len(came) for name, (came, _) in services.items()}
    talk.came("requests", {"ends-none": 1, "ends-two": 2, "ends-many": lambda each: each > 2, "ends-later": 3}, counts)
    for each in rows.values():
        talk.ask("PUT", f"/messages/{each['id']}", {"archive": True})
    _removed(talk, *(path for _, path in services.values()))


def _set_meanwhile(talk: Talk) -> None:
    """What a person sets while a request is in progress stays: its answer is that to an older request. The next one's
    counts again; what was deleted is sent no more.
    """
    given = {"name": "meanwhile.mark", "value": "first", "data_type": "string"}
    path = f"/parameters/{talk.ask('POST', '/parameters', {'parameter': given}, status=201)['id']}"

    def answers(came: Came) -> tuple[int, bytes]:
        sent = _payload(came)
        if sent["n"] == 1:
            talk.sleep(2, exactly=True)
            talk.ask("PUT", path, {"parameter": {"value": "by hand"}})
            talk.sleep(2, exactly=True)
        returned = {"parameters": [{"name": "meanwhile.mark", "value": f"by {sent['n']}"}]}
        return done(came, **(returned if sent["n"] < 3 else {}))

    came = talk.listen("meanwhile.example", answers)
    mapping = mapped(talk, "meanwhile", ["meanwhile:one"], parameters=[path.rpartition("/")[2]])
    talk.sleep(MINUTE + 1)
    for number, value in ((1, "by hand"), (2, "by 2"), (3, "by 2")):
        pushed(talk, "meanwhile:one", {"n": number})
        talk.sleep(20 + talk.put_off_s)
        talk.ask("GET", path, shows={"value": value, "data_type": "string"})
    talk.ask("DELETE", path)
    talk.sleep(1)
    pushed(talk, "meanwhile:one", {"n": 4})
    talk.sleep(20 + talk.put_off_s)
    sent = [[each["value"] for each in _payload(one).get("parameters", [])] for one in came]
    talk.came("as it was sent", [["first"], ["by hand"], ["by 2"], []], sent)
    talk.ask("DELETE", mapping)


__all__ = ["through"]
