"""What paths of a redaction withhold, of one message and of many in one answer; and what is found of what is withheld.

Source: docs/webhooks.md ("Redaction", "Finding messages").
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from typing import Any

from simulation.promises.documents import said
from simulation.promises.talks.customers import Customer
from simulation.promises.talks.talk import Talk

HIDDEN = "[redacted]"
COSTLY_TURNS = 5
"""What takes a second of CPU is asked in one of so many runs."""

PAYLOAD: Mapping[str, Any] = {
    "user": {"email": "a@b.example", "name": "A"},
    "items": [{"card": 4111, "more": {"card": 4112}}, {"card": {"n": 1}}, 7, [{"card": 4113}]],
    "a.b": {"c": 5, "d": 6},
    "list": [1, [2, 3]],
    "card": 0,
    "exact": 12_345_678_901_234_567_890,
    "größe": None,
}
"""What is posted, and shown with what a path withholds."""

PATHS: tuple[tuple[str, tuple[tuple[str | int, ...], ...]], ...] = (
    ("user", (("user",),)),
    ("user.email", (("user", "email"),)),
    ("User.email", ()),
    ("email", ()),
    ("user.email.x", ()),
    ("*.email", (("user", "email"),)),
    ("größe", (("größe",),)),
    ("items.0", (("items", 0),)),
    ("items.1.card", (("items", 1, "card"),)),
    ("items.*.card", (("items", 0, "card"), ("items", 1, "card"))),
    ("items.card", ()),
    (
        "items.**.card",
        (("items", 0, "card"), ("items", 0, "more", "card"), ("items", 1, "card"), ("items", 3, 0, "card")),
    ),
    (
        "**.card",
        (
            *(("items", 0, "card"), ("items", 0, "more", "card"), ("items", 1, "card"), ("items", 3, 0, "card")),
            ("card",),
        ),
    ),
    ("list.1.0", (("list", 1, 0),)),
    ("list.*", (("list", 0), ("list", 1))),
    ("list.*.*", (("list", 1, 0), ("list", 1, 1))),
    ("a.b", (("a.b",),)),
    ("a.b.c", (("a.b", "c"),)),
    ("a.*.d", (("a.b", "d"),)),
)
"""Paths, with the places of what each withholds."""


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_paths, _together, _found)


def _withheld(places: Iterable[tuple[str | int, ...]]) -> Mapping[str, Any]:
    """The payload as it is shown."""
    shown = copy.deepcopy(dict(PAYLOAD))
    # The innermost first: what is around it may be withheld, too
    for *inner, last in sorted(places, key=len, reverse=True):
        at: Any = shown
        for step in inner:
            at = at[step]
        at[last] = HIDDEN
    return shown


def _paths(talk: Talk) -> None:
    """Each path withholds the values at its places and no others; all of several do; an application's rules are those
    of its own messages, whenever these came.
    """
    one = Customer(talk, "paths")
    other = Customer(talk, "paths-too", beside=one)
    message_id, twin = (each.post(0, payload=PAYLOAD) for each in (one, other))
    for path, places in PATHS:
        talk.ask("PATCH", one.path, {"redaction": {"payload": [path]}})
        talk.sleep(1, exactly=True)
        shown = talk.ask("GET", f"{one.path}/msg/{message_id}")["payload"]
        expected = _withheld(places)
        talk.is_so(f"what {path} leaves", lambda each, expected=expected: each == expected, shown)
    every = {"payload": [path for path, _ in PATHS], "answers": []}
    talk.ask("PATCH", one.path, {"redaction": every}, shows={"redaction": every})
    talk.sleep(1, exactly=True)
    expected = _withheld(place for _, places in PATHS for place in places)
    for path in (f"{one.path}/msg/{message_id}", f"{one.path}/msg"):
        answer = talk.ask("GET", path)
        shown = answer["payload"] if "payload" in answer else answer["data"][0]["payload"]
        talk.is_so("what all of them leave", lambda each: each == expected, shown)
    talk.ask("GET", f"{other.path}/msg/{twin}", shows={"payload": lambda each: each == PAYLOAD})
    talk.is_so("how many are listed", 1, len(talk.ask("GET", f"{other.path}/msg")["data"]))
    other.over()
    one.over()


def _together(talk: Talk) -> None:
    """The messages of one answer share what redaction may cost; the rest is read one by one. What is too costly alone
    is withheld, and still sent.
    """
    if talk.turn % COSTLY_TURNS != 1:
        return
    most = said("webhooks", r"\(some ([\d,]+) members;")
    one = Customer(talk, "costly")
    talk.ask("PATCH", one.path, {"redaction": {"payload": ["secret"]}})
    talk.sleep(1, exactly=True)
    count = 6
    for number in range(count):
        members = {f"m{number}_{place}": 0 for place in range(most * 9 // 10)}
        one.post(number, payload={"n": number, "secret": "s3cret", **members})
    rows = talk.ask("GET", f"{one.path}/msg", shows={"data": count * [...]})["data"]
    costly = {HIDDEN: "too costly to redact here"}
    examined = [each["payload"] != costly for each in rows]
    talk.is_so("the newest", [True, True, True, True, False, False], examined)
    for number, each in enumerate(reversed(rows)):
        shown = talk.ask("GET", f"{one.path}/msg/{each['id']}")["payload"]
        found = (shown.get("n"), shown.get("secret"), len(shown))
        talk.is_so("one by one", (number, HIDDEN, most * 9 // 10 + 2), found)
    came = one.endpoint("one")
    talk.sleep(2)
    large = {"secret": "s3cret", **{f"m{place}": 0 for place in range(most * 12 // 10)}}
    message_id = one.post(9, payload=large)
    talk.sleep(10 + talk.put_off_s)
    shown = json.dumps(talk.ask("GET", f"{one.path}/msg/{message_id}"))
    talk.is_so("alone", (False, False), ("s3cret" in shown, "m1" in shown))
    talk.came("but sent", [len(large)], [len(json.loads(each.body)) for each in came])
    one.over()


def _found(talk: Talk) -> None:
    """By what is withheld a message is not found, whether it came before the rule or after it; by its other values it
    is.
    """
    one = Customer(talk, "found")
    talk.ask("PATCH", one.path, {"searchFields": ["user.email", "order"]})
    talk.sleep(2)
    search = talk.at(f"/3/projects/{talk.project}").with_headers(authorization=f"OAuth {talk.token}")

    def post(number: int) -> str:
        message_id = one.post(
            number, payload={"n": number, "user": {"email": f"redacted-{number}"}, "order": f"order-{number}"}
        )
        talk.sleep(3)
        return message_id

    def finds(value: str, message_id: str) -> int:
        return int(message_id in json.dumps(search.ask("GET", f"/search?value={value}")))

    first = post(1)
    talk.is_so("by both", (1, 1), (finds("redacted-1", first), finds("order-1", first)))
    talk.ask("PATCH", one.path, {"redaction": {"payload": ["user.*"]}})
    talk.sleep(2)
    second = post(2)
    for number, message_id in ((1, first), (2, second)):
        talk.ask("GET", f"{one.path}/msg/{message_id}", shows={"payload": {"n": number, "user": {"email": HIDDEN}}})
        found = finds(f"redacted-{number}", message_id), finds(f"order-{number}", message_id)
        talk.is_so(f"by what is shown alone, {number}", (0, 1), found)
    one.over()


__all__ = ["webhooks"]
