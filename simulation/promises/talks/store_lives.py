"""What delivery records say of messages of stores, from their acceptance to their end.

Source: docs/records.md, field by field and kind by kind.
"""

from __future__ import annotations

import hashlib
from typing import Any

from simulation.promises.judgement import SECOND
from simulation.promises.talks.records import Record, attempt, near, recorded_of
from simulation.promises.talks.services import copies, done, mapped, pushed
from simulation.promises.talks.talk import Came, Talk

MINUTE = 60


def stores(talk: Talk) -> None:
    """Of the hub protocol."""
    talk.through(_polled, _held, _kept)


def _of_stores(each: Record) -> bool:
    """Whether a record is of what a service is sent."""
    return bool(each["dialect"] == "hub" and each["queue"] != "hub/incoming")


def _polled(talk: Talk) -> None:
    """A failure, an answer that something comes later, and the polls for it."""
    said: list[tuple[int, dict[str, Any]]] = [
        (500, {}),
        (200, {"delay": 5, "update_url": "/later"}),
        (500, {}),
        (200, {}),
    ]
    came: list[Came] = []

    def answers(each: Came) -> tuple[int, bytes]:
        came.append(each)
        status, more = said[len(came) - 1]
        return status, done(each, **more)[1]

    talk.listen("lives-polled.example", answers)
    options = {"retry_base": 30, "retry_cap": 30, "max_attempts": 3}
    mapping = mapped(talk, "lives-polled", ["lives:polled"], options=options)
    talk.sleep(MINUTE + 1)
    before = {each["record_id"] for each in talk.records()}
    pushed(talk, "lives:polled", {"n": 1})
    talk.sleep(5 * MINUTE + 4 * talk.gathered_s + talk.put_off_s)
    found = recorded_of(talk, lambda each: _of_stores(each) and each["record_id"] not in before, 5)
    records = sorted(found, key=lambda each: int(each.get("version", 0)))
    wanted = (
        ("attempt", "failed", "retrying", 1),
        ("attempt", "poll", "polling", 0),
        ("poll", "failed", "retrying", 1),
        ("poll", "delivered", "delivered", 2),
    )
    rows: list[dict[str, Any]] = [{"kind": "accepted", "dialect": "hub"}]
    for number, (each, answer, (kind, verdict, state, tries)) in enumerate(
        zip(came, said, wanted, strict=True), start=1
    ):
        status, body = answer[0], done(each, **answer[1])[1]
        row = {"kind": kind, "verdict": verdict, "state": state, "tries": tries, "version": number}
        rows.append(attempt(talk, each, number, (status, body)) | row | {"tries_max": 3, "error_class": str})
    rows[2]["wait_after_ms"] = 5_000
    talk.is_so("records", rows, records)
    talk.ask("DELETE", mapping)


def _held(talk: Talk) -> None:
    """What is parked is held, and due at no time; a person has it tried again, or gives it up."""
    came = talk.listen("lives-held.example", lambda _: (500, b""))
    mapping = mapped(talk, "lives-held", ["lives:held"], options={"retries_allowed": False})
    talk.sleep(MINUTE + 1)
    before = {each["record_id"] for each in talk.records()}
    message_id = pushed(talk, "lives:held", {"n": 1})
    talk.sleep(30 + talk.put_off_s)
    [copy] = talk.ask("GET", f"/messages/{message_id}")["children"]
    talk.ask("PUT", f"/messages/{copy['id']}", {"attempt_now": True})
    talk.sleep(2 * MINUTE + talk.put_off_s + talk.gathered_s)
    talk.came("twice", 2, len(came))
    at = talk.now()
    talk.ask("PUT", f"/messages/{copy['id']}", {"archive": True})
    found = recorded_of(talk, lambda each: _of_stores(each) and each["record_id"] not in before, 5)
    records = sorted(found, key=lambda each: int(each.get("version", 0)))
    held = {"state": "held", "tries": 1, "verdict": "failed", "tries_max": 1}
    rows = [
        {"kind": "accepted"},
        attempt(talk, came[0], 1, (500, b"")) | {**held, "version": 1, "error_class": str},
        {"kind": "rescheduled", "state": "retrying", "tries": 0, "version": 2, "scheduled": True, "due_at": str},
        attempt(talk, came[1], 2, (500, b"")) | {**held, "version": 3, "error_class": str},
        {"kind": "cancelled", "state": "cancelled", "version": 4, "at": near(talk, at)},
    ]
    talk.is_so("records", rows, records)
    talk.is_so("due", [False, True, False], ["due_at" in each for each in records[1:4]])
    talk.ask("DELETE", mapping)


def _kept(talk: Talk) -> None:
    """Messages are kept for ten years; what is large is where stores keep it, which nothing ends: the one object is
    that of the message and of its copies.
    """
    came = {name: talk.listen(f"lives-{name}.example", done) for name in ("kept-a", "kept-b")}
    mappings = [mapped(talk, name, ["lives:kept"]) for name in (f"lives-{each}" for each in came)]
    talk.sleep(MINUTE + 1)
    began = talk.now()
    sizes = {"small": 10, "large": 20_000}
    for name, size in sizes.items():
        text = hashlib.shake_256(name.encode()).hexdigest(size)
        posted = pushed(talk, "lives:kept", {"text": text})
    talk.sleep(30 + talk.put_off_s)
    for copy in copies(talk, posted):
        talk.is_so("a copy", {"attempts": 0, "payload": {"text": text}, "last_answer": {"status": 200}}, copy)

    def wanted(each: Record) -> bool:
        return bool(each["kind"] == "accepted" and talk.moment(each["accepted_at"]) >= began)

    found = recorded_of(talk, wanted, 6)
    talk.is_so("a message and two copies of each", 6, len(found))
    for each in found:
        ends = talk.moment(each["expires_at"]) - talk.moment(each["accepted_at"])
        talk.is_so("ten years", True, 10 * 365 <= ends / SECOND / 86_400 <= 10 * 367)
    places = [each["body_ref"] for each in found if each["body_size"] > sizes["large"]]
    talk.is_so("of the large one", 3, len(places))
    talk.is_so("the same object", 1, len({*places}))
    talk.is_so("where stores keep it", True, all(each.startswith("hub/") for each in places))
    talk.is_so("the small one is in the table", 3, sum("body_ref" not in each for each in found))
    talk.came("sent to both", [2, 2], [len(each) for each in came.values()])
    for path in mappings:
        talk.ask("DELETE", path)


__all__ = ["stores"]
