"""What the hub protocol leaves open, and the hub decided: payloads as they are sent, answers of every kind,
notifications, filters' regular expressions, identities, listings by each filter.

Sources: docs/hub-protocol.md ("Decisions"), the guides of the Spree Commerce Hub (v5).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from simulation.promises.talks.pages import Page, by_pages, chosen
from simulation.promises.talks.services import copies, done, mapped, pushed
from simulation.promises.talks.talk import Came, Say, Talk

MINUTE = 60
PER_PAGE = 25


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_as_written, _answered, _noticed, _patterns, _identified, _listed)


def _as_written(talk: Talk) -> None:
    """Payloads are sent as they were written; further fields are kept and passed on."""
    came = talk.listen("written.example", done)
    mapping = mapped(talk, "written", ["written:one"])
    talk.sleep(61)
    written = '{"total": 19.90, "big": 12345678901234567890, "e": 1e3, "none": null, "text": "\\u00e9"}'
    body = f'{{"message": "written:one", "origin": "store", "further": [1], "payload": {written}}}'.encode()
    message_id = talk.ask("POST", "/messages", body, status=201)["message_id"]
    talk.sleep(20)
    talk.came("as it was written", True, written.encode() in came[0].body)
    shown = {"origin": "store", "extra": {"further": [1]}, "payload": json.loads(written), "source": "incoming"}
    talk.ask("GET", f"/messages/{message_id}", shows={**shown, "parent_id": None, "attempts": 0, "mapping": None})
    [copy] = copies(talk, message_id)
    shown = {
        "source": "accepted",
        "parent_id": message_id,
        "state": "completed",
        "consumer": "written",
        "attempts": 0,
        "extra": {"further": [1]},
    }
    talk.is_so(
        "its copy", {**shown, "destination_name": "written", "is_consumer_remote": True, "last_error": None}, copy
    )
    talk.is_so("its times", True, copy["created_at"] <= copy["completed_at"] and copy["locked_at"] is None)
    answer = {"attempt": 1, "status": 200, "error": None, "polled": None, "duration_ms": int}
    talk.is_so("its answer", {"last_answer": answer, "result": {"message_id": copy["id"]}}, copy)
    for bad in (
        b'{"message": "written:one", "payload": {"a": NaN}}',
        b'{"message": "written:one"',
        b"[]",
        b'{"message": "a", "payload": "x"}',
    ):
        talk.ask("POST", "/messages", bad, status=422, shows={"error": str})
    talk.ask("DELETE", mapping)


def _answered(talk: Talk) -> None:
    """What each answer means: whether it is asked again, and what comes of it."""
    failed, completed = "failed", "completed"

    def zipped(came: Came) -> tuple[int, bytes, Mapping[str, str]]:
        return 200, gzip.compress(done(came)[1]), {"content-encoding": "gzip"}

    said: dict[str, tuple[Say, str]] = {
        "plain": (done, completed),
        "other-type": (lambda each: (*done(each), {"content-type": "text/plain"}), completed),
        "zipped": (zipped, completed),
        "encoded": (lambda each: (*done(each), {"content-encoding": "br"}), failed),
        "empty": (lambda _: (200, b""), failed),
        "number": (lambda _: (200, b"7"), failed),
        "created": (lambda each: (201, done(each)[1]), failed),
        "other-id": (lambda _: (200, b'{"message_id": "x"}'), failed),
        "no-id": (lambda _: (200, b"{}"), failed),
        "no-delay": (lambda each: done(each, update_url="/later"), failed),
        "bad-delay": (lambda each: done(each, delay=-1), failed),
        "text-delay": (lambda each: done(each, delay="soon"), failed),
        "bad-child": (lambda each: done(each, messages=[{"message": "answered:child"}]), failed),
        "bad-children": (lambda each: done(each, messages={}), failed),
        "bad-parameter": (lambda each: done(each, parameters=[{"value": 1}]), failed),
        "bad-scheme": (lambda each: done(each, delay=1, update_url="ftp://a.example/"), failed),
        "bad-notice": (lambda each: done(each, notifications=[7, {"level": "info", "subject": "kept"}]), completed),
    }
    came: dict[str, Sequence[Came]] = {}
    for name, (say, _) in said.items():
        came[name] = talk.listen(f"answered-{name}.example", say)
    options = {"retry_base": 3_000, "retry_cap": 3_000}
    mappings = [mapped(talk, f"answered-{name}", [f"answered:{name}"], options=options) for name in said]
    child = talk.listen("answered-child.example", done)
    lenient = talk.listen("answered-lenient.example", lambda _: (200, b'{"message_id": "x"}'))
    later: list[str] = []

    def says_later(each: Came) -> tuple[int, bytes]:
        later.append(each.path)
        children = [{"message": "answered:child", "payload": {"of": len(later)}}]
        return done(each, delay=30, update_url="/later", messages=children) if len(later) < 2 else done(each)

    talk.listen("answered-async.example", says_later)
    mappings.append(mapped(talk, "answered-child", ["answered:child"]))
    mappings.append(mapped(talk, "answered-lenient", ["answered:lenient"], options={"lenient": True}))
    mappings.append(mapped(talk, "answered-async", ["answered:async"]))
    parked = talk.listen("answered-parked.example", lambda _: (500, b"<html>no</html>"))
    mappings.append(mapped(talk, "answered-parked", ["answered:parked"], options={"retries_allowed": False}))
    talk.sleep(61)
    before = talk.ask("GET", "/queues")
    ids = {name: pushed(talk, f"answered:{name}", {"of": name}) for name in (*said, "lenient", "async", "parked")}
    talk.sleep(2 * MINUTE + talk.put_off_s)
    for name, (_, outcome) in said.items():
        [copy] = copies(talk, ids[name])
        state = "failing" if outcome is failed else "completed"
        talk.is_so(
            name, {"state": state, "attempts": 1 if outcome is failed else 0, "can_attempt": outcome is failed}, copy
        )
        talk.is_so(f"why {name} failed", outcome is failed, bool(copy["last_error"]))
        talk.came(f"{name} is asked once", 1, len(came[name]))
    talk.came("one that is lenient", 1, len(lenient))
    [copy] = copies(talk, ids["lenient"])
    talk.is_so("accepts it", {"state": "completed"}, copy)
    talk.came("an answer that is to come later has no children", [], child)
    [copy] = copies(talk, ids["async"])
    talk.is_so("a poll", {"state": "completed", "last_answer": {"polled": lambda each: each.endswith("/later")}}, copy)
    [copy] = copies(talk, ids["parked"])
    talk.is_so(
        "without retries", {"state": "parked", "attempts": 1, "can_attempt": True, "result": "<html>no</html>"}, copy
    )
    talk.came("it is asked once", 1, len(parked))
    counts = talk.ask("GET", "/queues")
    fail = sum(outcome is failed for _, outcome in said.values())
    more = {each: counts[each] - before[each] for each in ("failing", "parked")}
    talk.is_so("how many more", {"failing": fail, "parked": 1}, more)
    # By the query, as well as in the body; given up is not tried again
    talk.ask("PUT", f"/messages/{copy['id']}?archive=true", None)
    talk.ask("GET", f"/messages/{copy['id']}", shows={"state": "never_processed", "can_attempt": False})
    talk.ask("PUT", f"/messages/{copy['id']}?attempt_now=true", None, status=422)
    [copy] = copies(talk, ids["empty"])
    talk.ask("PUT", f"/messages/{copy['id']}?attempt_now=true", None)
    talk.sleep(20)
    talk.came("it is asked again", 2, len(came["empty"]))
    talk.ask("GET", f"/messages/{copy['id']}", shows={"state": "failing", "attempts": 2})
    for each in mappings:
        talk.ask("DELETE", each)
    talk.sleep(20)


def _noticed(talk: Talk) -> None:
    """Notifications of services: levels, what is counted together, what follows from one, and how they are found."""
    rounds: list[int] = []

    def says(each: Came) -> tuple[int, bytes]:
        rounds.append(1)
        notes = [
            {
                "level": "warning",
                "subject": "same",
                "description": f"{len(rounds)}",
                "reference_type": "Order",
                "reference_token": "R1",
            },
            {"level": "error", "subject": "same", "more": "m"},
            {"level": "odd", "subject": "other", "reference_type": "Order", "reference_token": "R2"},
        ]
        return (500 if len(rounds) < 3 else 200), done(each, notifications=notes)[1]

    talk.listen("noticed.example", says)
    heard = talk.listen(
        "noticed-told.example", lambda each: done(each, notifications=[{"level": "info", "subject": "again"}])
    )
    options = {"retry_base": 5, "retry_cap": 5}
    mappings = [mapped(talk, "noticed", ["noticed:one"], options=options)]
    mappings.append(mapped(talk, "noticed-told", ["notification:warn", "notification:error", "notification:info"]))
    talk.sleep(61)
    began = talk.epoch_s()
    message_id = pushed(talk, "noticed:one", {"n": 1})
    talk.sleep(5 * MINUTE + talk.put_off_s)
    talk.came("tries", 3, len(rounds))
    sent = sorted(json.loads(each.body)["message"] for each in heard)
    talk.came("each is told of once", ["notification:error", "notification:info", "notification:warn"], sent)
    [copy] = copies(talk, message_id)
    shown = {"occurrences": 3, "message_id": copy["id"], "origin": "noticed"}
    warned = {"level": "warn", "subject": "same", "reference_type": "Order", "reference_token": "R1"}
    rows = talk.ask("GET", "/notifications.json")
    ours = [each for each in rows if each["message_id"] == copy["id"]]
    found = {each["level"]: each for each in ours}
    expected = {
        "warn": {**shown, **warned},
        "error": {**shown, "details": {"more": "m"}},
        "info": {**shown, "subject": "other", "reference_token": "R2"},
    }
    talk.is_so("notifications", expected, found)
    talk.is_so("none follows from one", 3, len(ours))
    filters: tuple[tuple[dict[str, str], Callable[[Any], bool]], ...] = (
        ({"level": "error"}, lambda each: each["level"] == "error"),
        ({"reference_type": "Order"}, lambda each: each["reference_type"] == "Order"),
        ({"reference_type": "Order", "reference_token": "R2"}, lambda each: each["reference_token"] == "R2"),
        ({"start_date": _iso(began - 1), "level": "warn"}, lambda each: each["level"] == "warn"),
    )
    for query, by in filters:
        got = talk.ask("GET", f"/notifications.json?{urlencode(query)}")
        of_it = [each["id"] for each in got if each["message_id"] == copy["id"]]
        talk.is_so(f"chosen by {query}", [each["id"] for each in ours if by(each)], of_it)
    talk.ask(
        "GET",
        f"/notifications.json?{urlencode({'end_date': _iso(began - 1), 'message': 'x'})}",
        shows=lambda each: not [row for row in each if row["message_id"] == copy["id"]],
    )
    talk.is_so(
        "as its message shows them",
        {each["id"] for each in ours},
        {each["id"] for each in talk.ask("GET", f"/messages/{copy['id']}")["notifications"]},
    )
    for each in mappings:
        talk.ask("DELETE", each)


def _iso(epoch_s: float) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _patterns(talk: Talk) -> None:
    """Regular expressions, literal texts, values that are no texts; what is no value matches only two. What RE2 lacks,
    or takes too many instructions, is refused.
    """
    lacks = "(?=a) (?!a) (?<=a) (?<!a) (a)\\1 (?>a) a++ (?(1)a) (?#a) (?R) (?|a) a\\Z \\Ga \\u20ac (?x)a"
    fields = {"name": "patterns", "url": "https://patterns.example/in", "token": "t", "messages": ["patterns:none"]}
    for patterns, status in (
        *(([each], 422) for each in lacks.split(" ")),
        (["(?imsU)a"], 201),
        (3 * ["a{1000}"], 201),
        (5 * ["a{1000}"], 422),
        (3 * [r"\pL"], 201),
        (4 * [r"\pL"], 422),
    ):
        matches = [{"path": "payload.a", "operator": "match", "value": each} for each in patterns]
        answer = talk.ask("POST", "/mappings", {"mapping": {**fields, "filters": matches}}, status=status)
        if status == 201:
            talk.ask("DELETE", f"/mappings/{answer['id']}")
    cases: tuple[tuple[str, str, str, list[int]], ...] = (
        ("payload.a", "match", r"^R\d+$", [1]),
        ("payload.a", "match", r"r(?i)1", []),
        ("payload.a", "match", r"(?i)r1\b", [1, 2]),
        ("payload.a", "contains", "1|2", []),
        ("payload.a", "contains", "R", [1, 2]),
        ("payload.b", "eq", '{"x":1,"y":[1,2]}', [1]),
        ("payload.b.x", "eq", "1", [1]),
        ("payload.b.x", "lt", "10", [1, 2]),
        ("payload.b.x", "gt", "1", [2]),
        ("payload.none", "neq", "x", [1, 2, 3]),
        ("payload.none", "empty", "", [1, 2, 3]),
        ("payload.none", "eq", "", []),
        ("payload.none", "match", ".*", []),
        ("payload.c", "eq", "true", [1]),
        ("message", "begin", "patterns:", [1, 2, 3]),
        ("message", "end", "two", []),
        # RE2, with ASCII classes, in the first 10,000 characters
        ("payload.d", "match", r"^\d$", [1]),
        ("payload.d", "match", r"^\w$", [1]),
        ("payload.d", "match", r"^\pN$", [1, 2]),
        ("payload.d", "match", r"^\x{20ac}$", [3]),
        ("payload.e", "match", "^x$", [1]),
        ("payload.e", "match", "(?m)^x$", [1, 2]),
        ("payload.e", "match", "(?s)^x.$", [2]),
        ("payload.long", "match", "b", [1]),
    )
    heard: list[Sequence[Came]] = []
    mappings: list[str] = []
    for number, (path, operator, value, _) in enumerate(cases):
        heard.append(talk.listen(f"patterns-{number}.example", done))
        filters = [{"path": path, "operator": operator, "value": value}]
        mappings.append(mapped(talk, f"patterns-{number}", ["patterns:one"], filters=filters))
    talk.sleep(61)
    for payload in (
        {"n": 1, "a": "R1", "b": {"y": [1, 2], "x": 1}, "c": True, "d": "7", "e": "x", "long": 9_999 * "a" + "b"},
        {"n": 2, "a": "xR1 R22", "b": {"x": 9}, "c": "no", "d": "٧", "e": "x\n", "long": 10_000 * "a" + "b"},
        {"n": 3, "a": "", "c": None, "d": "€", "e": "y"},
    ):
        pushed(talk, "patterns:one", payload)
    talk.sleep(30 + talk.put_off_s)
    for (path, operator, value, wanted), came in zip(cases, heard, strict=True):
        numbers = sorted(json.loads(each.body)["payload"]["n"] for each in came)
        talk.came(f"{path} {operator} {value}", wanted, numbers)
    for each in mappings:
        talk.ask("DELETE", each)


def _identified(talk: Talk) -> None:
    """An identity is taken once, after the filters, and free again without its mapping; why one went nowhere."""
    came = talk.listen("identified.example", done)
    fields: dict[str, Any] = {
        "filters": [{"path": "payload.ready", "operator": "eq", "value": "yes"}],
        "identifiers": {"n": "payload.n", "m": "payload.m"},
    }
    mapping = mapped(talk, "identified", ["identified:one"], **fields)
    talk.sleep(61)

    def posted(**payload: Any) -> str:
        message_id = pushed(talk, "identified:one", payload)
        talk.sleep(8)
        return message_id

    filtered = posted(n=1, m=1, ready="no", place=1)
    first = posted(n=1, m=1, ready="yes", place=2)
    again = posted(n=1, m=1, ready="yes", place=3)
    posted(n=1, m=2, ready="yes", place=4)
    posted(ready="yes", place=5)
    posted(ready="yes", place=6)
    unwanted = pushed(talk, "identified:nobody", {"place": 7})
    talk.sleep(20)

    def places() -> list[int]:
        return [json.loads(each.body)["payload"]["place"] for each in came]

    talk.came("the first of each identity, and all without one", [2, 4, 5, 6], places())
    for message_id, state in ((filtered, "never_processed"), (again, "never_processed"), (unwanted, "never_processed")):
        talk.ask("GET", f"/messages/{message_id}", shows={"state": state, "children": [], "reason": str})
    reasons = [talk.ask("GET", f"/messages/{each}")["reason"] for each in (filtered, again)]
    talk.is_so("by which mapping", (True, True), ("identified" in reasons[0], first in reasons[1]))
    rows = talk.ask("GET", "/queues/archived.json?source=incoming&state=never_processed&message=identified:one")
    talk.is_so("what went nowhere", [again, filtered], [each["message_id"] for each in rows])
    talk.ask("DELETE", mapping)
    mapping = mapped(talk, "identified", ["identified:one"], **fields)
    talk.sleep(61)
    posted(n=1, m=1, ready="yes", place=8)
    talk.came("a new mapping knows none", 8, places()[-1])
    talk.ask("DELETE", mapping)


def _listed(talk: Talk) -> None:
    """Lists of messages, page by page and by each filter, in both forms."""
    talk.listen("listed.example", done)
    mappings = {
        name: mapped(talk, f"listed-{name}", kinds)
        for name, kinds in (("one", ["listed:one"]), ("both", ["listed:one", "listed:two"]))
    }
    for name in mappings:
        talk.listen(f"listed-{name}.example", done)
    talk.sleep(61)
    ids, began = [], talk.epoch_s()
    for number in range(28):
        ids.append(pushed(talk, f"listed:{'two' if number % 4 == 3 else 'one'}", {"n": number}))
        talk.sleep(1.1)
    talk.sleep(30 + talk.put_off_s)

    def page(form: str, **query: str) -> Callable[[int, Any], Page]:
        def asked(_: int, after: Any) -> Page:
            number = after or 1
            got = talk.ask("GET", f"/queues/archived{form}?{urlencode({**query, 'page': number})}")
            if form:
                return got, number + 1 if len(got) == PER_PAGE else None
            talk.is_so("its number", number, got["page"])
            return got["messages"], number + 1 if number < got["pages"] else None

        return asked

    def rows(form: str = "", **query: str) -> list[Any]:
        found: list[Any] = []
        following: Any = None
        for _ in range(20):
            some, following = page(form, **query)(PER_PAGE, following)
            found += some
            if following is None:
                break
        return found

    started = {"start_date": _iso_ms(began)}
    posted = [{"message_id": each, "source": "incoming"} for each in ids[::-1]]
    for form in ("", ".json"):
        for kind, wanted in (("listed:one", 0), ("listed:two", 1)):
            expected = [
                each for each, number in zip(posted, range(27, -1, -1), strict=True) if (number % 4 == 3) == wanted
            ]
            by_pages(talk, f"{kind}{form}", expected, page(form, source="incoming", message=kind), sizes=(PER_PAGE,))
    whole = _ours(rows(**started))
    talk.is_so("copies", 28 + 21, len(whole))
    for about, query, by in (
        ("of a type", {"message": "listed:two"}, lambda each: each["message"] == "listed:two"),
        ("of a mapping", {"mapping_id": mappings["one"][10:]}, lambda each: each["consumer"] == "listed-one"),
        (
            "of both",
            {"mapping_id": mappings["both"][10:], "message": "listed:one"},
            lambda each: each["consumer"] == "listed-both" and each["message"] == "listed:one",
        ),
    ):
        chosen(talk, about, whole, lambda query=query: rows(**query), by)  # type: ignore[misc]
    # By the second in which a posted message came, which is in the id of its copies, too
    middle = _came_s(whole[20])
    until = [each for each in whole if _came_s(each) < middle]
    talk.is_so("what came until then", until, _ours(rows(end_date=_iso_ms(middle), **started)))
    talk.is_so("what came since then", whole[: -len(until)], _ours(rows(start_date=_iso_ms(middle))))
    talk.ask("GET", "/queues/archived?message=listed:one&page=9", shows={"page": 9, "messages": []})
    for bad in ("page=0", "page=x", "state=odd", "source=odd", "start_date=x"):
        talk.refused("GET", f"/queues/archived?{bad}", status=422)
    talk.ask("GET", "/queues/other", status=404)
    for each in mappings.values():
        talk.ask("DELETE", each)


def _ours(rows: Sequence[Any]) -> list[Any]:
    return [each for each in rows if each["message"].startswith("listed:")]


def _came_s(row: Mapping[str, Any]) -> int:
    return int(row["message_id"][:8], 16)


def _iso_ms(epoch_s: float) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


__all__ = ["copies", "done", "mapped", "pushed", "through"]
