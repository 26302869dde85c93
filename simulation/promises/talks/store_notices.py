"""Notifications of stores: by pages and filters, what is the same one, the messages that they raise; what is secret of
parameters; large payloads and answers, shown and sent whole.

Source: docs/hub-protocol.md ("Routes", "How it uses the engine", "Decisions", "Secrets").
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from simulation.promises.talks.services import copies, done, mapped, pushed
from simulation.promises.talks.talk import Came, Talk

MINUTE = 60
PER_PAGE = 25
HIDDEN = "********"


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_paged, _the_same, _raised, _secrets, _large)


def _removed(talk: Talk, *paths: str) -> None:
    for each in paths:
        talk.ask("DELETE", each)


def _paged(talk: Talk) -> None:
    """A page has 25 of those that a filter chooses, in both forms; pages together are the whole, newest first."""
    notes = [
        {
            "level": "error" if number % 10 == 9 else "warn",
            "subject": f"paged {number}",
            "reference_type": "Order" if number < PER_PAGE + 2 else "Shipment",
            "reference_token": f"R{number % 3}",
        }
        for number in range(PER_PAGE + 6)
    ]
    talk.listen("paged.example", lambda each: done(each, notifications=notes if b'"first"' in each.body else notes[:1]))
    mapping = mapped(talk, "paged", ["paged:one"])
    talk.sleep(MINUTE + 1)
    since = {"start_date": datetime.fromtimestamp(talk.epoch_s(), UTC).isoformat()}
    ids = []
    for which in ("first", "second"):
        posted = pushed(talk, "paged:one", {"which": which})
        talk.sleep(10 + talk.put_off_s)
        ids += [each["id"] for each in copies(talk, posted)]
    subjects = [each["subject"] for each in notes]
    for query, chosen in (
        ({"level": "error"}, [each["subject"] for each in notes if each["level"] == "error"]),
        ({"level": "warn"}, [each["subject"] for each in notes if each["level"] == "warn"] + subjects[:1]),
        ({"reference_type": "Order"}, subjects[: PER_PAGE + 2] + subjects[:1]),
        ({"reference_type": "Shipment"}, subjects[PER_PAGE + 2 :]),
        ({"reference_token": "R1", "level": "warn"}, [each["subject"] for each in notes if _is_one(each)]),
        ({"reference_token": "R9"}, []),
    ):
        pages = -(-len(chosen) // PER_PAGE)
        asked = {**since, **query}
        shown: list[Any] = []
        for page in range(1, max(1, pages) + 2):
            found = talk.ask("GET", f"/notifications?{urlencode({**asked, 'page': page})}")
            size = min(PER_PAGE, max(0, len(chosen) - (page - 1) * PER_PAGE))
            here = found["page"], found["pages"], len(found["notifications"])
            talk.is_so(f"page {page} of {query}", (page, max(1, pages), size), here)
            bare = talk.ask("GET", f"/notifications.json?{urlencode({**asked, 'page': page})}")
            talk.is_so("the same without numbers", found["notifications"], bare)
            shown += bare
        talk.is_so(f"all of {query}", sorted(chosen), sorted(each["subject"] for each in shown))
        times = [each["logged_on"] for each in shown]
        talk.is_so("newest first", sorted(times, reverse=True), times)
    twice = [each["message_id"] for each in talk.ask("GET", "/notifications.json") if each["subject"] == "paged 0"]
    talk.is_so("one of each message", ids[1], twice[0])
    talk.refused("GET", "/notifications?page=0", status=422)
    talk.refused("GET", "/notifications?start_date=x", status=422)
    talk.ask("DELETE", mapping)


def _is_one(note: dict[str, str]) -> bool:
    return note["reference_token"] == "R1" and note["level"] == "warn"


def _the_same(talk: Talk) -> None:
    """The same level and subject are one notification of a message, in one answer and in several, those that failed
    and those that something comes later included; other levels and subjects are others.
    """

    def note(level: str, subject: str, **more: str) -> dict[str, str]:
        return {"level": level, "subject": subject, **more}

    said: tuple[tuple[int, dict[str, Any], list[dict[str, str]]], ...] = (
        (500, {}, [note("warn", "a", description="1"), note("warning", "a", description="2"), note("err", "a")]),
        (200, {"delay": 1, "update_url": "/later"}, [note("WARN", "a"), note("info", "a"), note("warn", "A")]),
        (500, {}, [note("fatal", "a")]),
        (200, {}, [note("warn", "a", description="last")]),
    )
    asked: list[str] = []

    def answers(came: Came) -> tuple[int, bytes]:
        asked.append(came.path)
        status, more, notes = said[min(len(asked), len(said)) - 1]
        return status, done(came, **more, notifications=notes)[1]

    talk.listen("same.example", answers)
    mapping = mapped(talk, "same", ["same:one"], options={"retry_base": 5, "retry_cap": 5})
    talk.sleep(MINUTE + 1)
    posted = pushed(talk, "same:one", {})
    talk.sleep(4 * MINUTE + 3 * talk.gathered_s + talk.put_off_s)
    talk.came("tries and polls", ["/in", "/in", "/later", "/later"], asked)
    [copy] = copies(talk, posted)
    found = {(each["level"], each["subject"]): each for each in copy["notifications"]}
    counts = {("warn", "a"): 4, ("error", "a"): 1, ("info", "a"): 2, ("warn", "A"): 1}
    talk.is_so("how often", counts, {key: each["occurrences"] for key, each in found.items()})
    talk.is_so("each once", len(counts), len(copy["notifications"]))
    warned = found["warn", "a"]
    shown = {"description": "last", "origin": "same", "message_id": copy["id"]}
    talk.is_so("as it was last", shown, warned)
    talk.is_so("its times", True, warned["logged_on"] < warned["last_update"])
    talk.ask("DELETE", mapping)


def _raised(talk: Talk) -> None:
    """A notification's message goes to the services that want its level, with what was said and who said it; it comes
    of the message that it is about.
    """
    notes = [
        {"level": "warn", "subject": "low", "description": "stock of A-1"},
        {"level": "info", "subject": "counted"},
    ]
    talk.listen("raises.example", lambda each: done(each, notifications=notes))
    came = {each: talk.listen(f"raised-{each}.example", done) for each in ("warn", "info", "error")}
    paths = [mapped(talk, f"raised-{each}", [f"notification:{each}"]) for each in came]
    paths.append(mapped(talk, "raises", ["raises:one"]))
    talk.sleep(MINUTE + 1)
    posted = pushed(talk, "raises:one", {})
    talk.sleep(30 + 2 * talk.gathered_s + 2 * talk.put_off_s)
    said = {name: [json.loads(each.body) for each in heard] for name, heard in came.items()}
    warned = {"subject": "low", "description": "stock of A-1"}
    expected = {
        "warn": [{"message": "notification:warn", "payload": warned, "source": "raises"}],
        "info": [{"message": "notification:info", "payload": {"subject": "counted"}, "source": "raises"}],
        "error": [],
    }
    talk.came("what is sent of them", expected, said)
    [copy] = copies(talk, posted)
    counts = {each["subject"]: each["occurrences"] for each in copy["notifications"]}
    talk.is_so("how often", {"low": 1, "counted": 1}, counts)
    kinds = sorted((each["message"], each["state"]) for each in _from(talk, copy["id"]))
    talk.is_so("of which message", [(f"notification:{each}", "completed") for each in ("info", "warn")], kinds)
    _removed(talk, *paths)


def _from(talk: Talk, message_id: str) -> list[Any]:
    """The incoming messages that a message has led to by notifications."""
    rows = talk.ask("GET", "/queues/archived.json?source=incoming")
    return [each for each in rows if each["parent_id"] == message_id]


def _secrets(talk: Talk) -> None:
    """Values of parameters named like a secret, or of the type password, are shown nowhere, whoever set them; sent
    back, ``********`` means the stored one.
    """
    names = ("api_key", "a_token", "secret_of", "passphrase", "Password")
    given = {f"secrets.{each}": f"hush {each}" for each in names}
    ids = {}
    for name, value in given.items():
        body = {"name": name, "value": value, "data_type": "string"}
        shown = {**body, "value": HIDDEN}
        ids[name] = talk.ask("POST", "/parameters", {"parameter": body}, status=201, shows=shown)["id"]
        talk.ask("PUT", f"/parameters/{ids[name]}", {"parameter": shown}, shows=shown)
        # By its name, as it is posted anew
        talk.ask("POST", "/parameters", {"parameter": shown}, status=201, shows={**shown, "id": ids[name]})
    plain = {"name": "secrets.open", "value": "seen", "data_type": "string"}
    open_id = talk.ask("POST", "/parameters", {"parameter": plain}, status=201, shows=plain)["id"]
    nothing = {"name": "secrets.none_key", "value": HIDDEN, "data_type": "string"}
    talk.refused("POST", "/parameters", {"parameter": nothing}, status=422)

    def answers(each: Came) -> tuple[int, bytes]:
        returned = [{"name": "secrets.got_token", "value": "hush got"}]
        return done(each, parameters=returned if b'"n":1' in each.body.replace(b" ", b"") else [])

    came = talk.listen("secrets.example", answers)
    mapping = mapped(talk, "secrets", ["secrets:one"], parameters=[*ids.values(), open_id])
    talk.sleep(MINUTE + 1)
    posted = []
    for number in (1, 2):
        posted.append(pushed(talk, "secrets:one", {"n": number}))
        talk.sleep(20 + talk.put_off_s)
    sent = [{one["name"]: one["value"] for one in json.loads(each.body)["payload"]["parameters"]} for each in came]
    first = {**given, "secrets.open": "seen"}
    talk.came("what is sent", [first, {**first, "secrets.got_token": "hush got"}], sent)
    listed = {each["name"]: each["value"] for each in talk.ask("GET", "/parameters.json")}
    expected = dict.fromkeys([*given, "secrets.got_token"], HIDDEN) | {"secrets.open": "seen"}
    talk.is_so("as they are listed", expected, listed)
    views = ["/parameters", "/mappings", "/queues/archived", f"/messages/{posted[0]}"]
    talk.is_so("shown nowhere", [False] * 4, ["hush" in json.dumps(talk.ask("GET", each)) for each in views])
    [copy] = copies(talk, posted[0])
    talk.is_so("nor in what was answered", False, "hush" in json.dumps(copy))
    _removed(talk, mapping, *(f"/parameters/{each['id']}" for each in talk.ask("GET", "/parameters.json")))


def _large(talk: Talk) -> None:
    """What is too large for the table is sent and shown whole: payloads and children, results, answers of failures."""
    text = {each: hashlib.shake_256(each.encode()).hexdigest(12_000) for each in ("payload", "child", "result", "no")}

    def parent(came: Came) -> tuple[int, bytes]:
        failed.append(1)
        if len(failed) == 1:
            return 500, json.dumps({"error": "no", "text": text["no"]}).encode()
        return done(
            came, messages=[{"message": "large:child", "payload": {"text": text["child"]}}], text=text["result"]
        )

    failed: list[int] = []
    came = talk.listen("large-parent.example", parent)
    children = {each: talk.listen(f"large-{each}.example", done) for each in ("one", "other")}
    mappings = [mapped(talk, f"large-{each}", ["large:child"]) for each in children]
    mappings.append(mapped(talk, "large-parent", ["large:one"], options={"retry_base": 60, "retry_cap": 60}))
    talk.sleep(MINUTE + 1)
    posted = pushed(talk, "large:one", {"text": text["payload"]})
    talk.sleep(20 + talk.put_off_s)
    [copy] = copies(talk, posted)
    no = {"state": "failing", "attempts": 1, "last_error": "HTTP 500: no", "result": {"text": text["no"]}}
    talk.is_so("a failure", {**no, "payload": {"text": text["payload"]}}, copy)
    talk.sleep(72 + 2 * MINUTE + 2 * talk.gathered_s + 2 * talk.put_off_s)
    talk.came(
        "sent whole, each time", 2 * [{"text": text["payload"]}], [json.loads(each.body)["payload"] for each in came]
    )
    for name, heard in children.items():
        talk.came(
            f"a child, to {name}", [{"text": text["child"]}], [json.loads(each.body)["payload"] for each in heard]
        )
    [copy] = copies(talk, posted)
    talk.is_so("the result", {"state": "completed", "result": {"text": text["result"]}, "last_error": None}, copy)
    talk.ask("GET", f"/messages/{posted}", shows={"payload": {"text": text["payload"]}})
    [child] = copies(talk, copy["id"])
    talk.is_so("a child", {"payload": {"text": text["child"]}, "parent_id": copy["id"]}, child)
    for each in copies(talk, child["id"]):
        talk.is_so("its copies", {"payload": {"text": text["child"]}, "state": "completed"}, each)
    _removed(talk, *mappings)


__all__ = ["through"]
