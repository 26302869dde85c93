"""What is found by a value, and how it is shown: page by page, each message with its field and state; values of all
kinds; and what is counted by hour.

Source: docs/ironmq.md ("Finding messages", "Requests").
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from simulation.promises.talks.push_queues import ILL, LATE_S, MINUTE, OK, created, listening, posted
from simulation.promises.talks.talk import Came, Said, Talk

MOST_PAGES = 20


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_in_pages, _of_each_kind, _with_states, _counted)


def _found(talk: Talk, value: str) -> tuple[list[dict[str, Any]], int]:
    """All that is found by a value, in order, and on how many pages."""
    rows: list[dict[str, Any]] = []
    after: str | None = None
    for page in range(1, MOST_PAGES + 1):
        answer = talk.ask("GET", f"/search?{urlencode({'value': value, **({'after': after} if after else {})})}")
        rows += answer["found"]
        after = answer["after"]
        if after is None:
            return rows, page
    return rows, MOST_PAGES


def _in_pages(talk: Talk) -> None:
    """More than fit on a page: each message once, those first that have the value in a named field, and of both the
    newest first.
    """
    named, plain = "/queues/pages-named", "/queues/pages-plain"
    talk.ask("PUT", named, {"queue": {"search_fields": ["word"]}})
    several = [json.dumps({"word": "Pagesword", "n": number}) for number in range(30)]
    ids = posted(talk, named, *several)
    rows, pages = _found(talk, "pagesword")
    talk.is_so("all of them at once", ids[::-1], [each["message_id"] for each in rows])
    talk.is_so("of which field", {("pages-named", "word")}, {(each["queue"], each["field"]) for each in rows})
    talk.is_so("on several pages", lambda each: each > 1, pages)
    others = posted(talk, plain, *several[:28])
    talk.sleep(2 * MINUTE + 20 + talk.put_off_s)
    rows, _ = _found(talk, "pagesword")
    whole = [("pages-named", each) for each in reversed(ids)] + [("pages-plain", each) for each in reversed(others)]
    talk.is_so("then the others", whole, [(each["queue"], each["message_id"]) for each in rows])
    talk.ask("DELETE", f"{named}/messages", {}, shows={"msg": "Cleared"})
    talk.sleep(2)
    rows, _ = _found(talk, "pagesword")
    talk.is_so("what is left", others[::-1], [each["message_id"] for each in rows])
    for path in (named, plain):
        talk.ask("DELETE", path)


def _of_each_kind(talk: Talk) -> None:
    """By a text, a number or what is true or false of a named field, as it stands in the body, in any case; not by what
    is null, empty, or no single value.
    """
    path = "/queues/kinds"
    talk.ask("PUT", path, {"queue": {"search_fields": ["of.it", "header:X-Kind"]}})
    values: Mapping[str, Any] = {
        "KINDSTEXT": "kindstext",
        "Straßenkind": "STRASSENKIND",
        "two kinds": "two kinds",
        "471101": 471_101,
        "-4711.25": -4711.25,
        "12345678901234567890123": 12_345_678_901_234_567_890_123,
        "true": True,
        "false": False,
    }
    ids = {name: posted(talk, path, json.dumps({"of": {"it": value}}))[0] for name, value in values.items()}
    ids["a kind"] = posted(talk, path, "no JSON", push_headers={"x-kind": "A Kind"})[0]
    dotted = posted(talk, path, json.dumps({"of.it": "dottedkind"}))[0]
    for body in (
        {"of": {"it": None}},
        {"of": {"it": ["listkind"]}},
        {"of": {"it": {"in": "innerkind"}}},
        {"of": "ofkind"},
    ):
        posted(talk, path, json.dumps(body))
    for value, message_id in {**ids, "dottedkind": dotted}.items():
        rows, _ = _found(talk, value)
        talk.is_so(f"by {value}", [message_id], [each["message_id"] for each in rows])
    for value in ("null", "listkind", "innerkind", "ofkind", "kinds", "4711", "471101.0"):
        talk.is_so(f"not by {value}", ([], 1), _found(talk, value))
    talk.ask("GET", path, shows={"queue": {"total_messages": len(ids) + 5}})
    talk.ask("DELETE", path)


def _with_states(talk: Talk) -> None:
    """Each with its state at each subscriber, that which most needs somebody, and its time; in a pull queue whether
    somebody has it; and lists choose by that.
    """
    listening(talk, {"states-well": OK, "states-ill": ILL, "states-202": (202, b"")})
    names = ("states-well", "states-ill", "states-202")
    # Until it is looked up nothing is tried again
    queue = created(talk, "found-pushed", *names, retries=3, retries_delay=1_200)
    began = talk.now()
    [pushed] = posted(talk, queue, json.dumps({"v": "statesword"}))
    held, free = posted(talk, "/queues/found-pulled", *(2 * [json.dumps({"v": "statesword"})]))
    talk.ask("POST", "/queues/found-pulled/reservations", {"timeout": 1_200}, shows={"messages": [{"id": held}]})
    talk.sleep(2 * MINUTE + 20 + talk.put_off_s)
    rows = {each["message_id"]: each for each in _found(talk, "statesword")[0]}
    states = {held: "reserved", free: "waiting", pushed: "retrying"}
    talk.is_so("their states", states, {message_id: each["state"] for message_id, each in rows.items()})
    at = {each["subscriber_name"]: each["state"] for each in rows[pushed]["deliveries"]}
    talk.is_so("at each", {"states-well": "delivered", "states-ill": "retrying", "states-202": "reserved"}, at)
    shows = {"kind": "queue", "queue": "found-pushed", "excerpt": lambda each: "statesword" in each}
    talk.is_so("what it is", shows, rows[pushed])
    accepted = talk.moment(rows[pushed]["accepted_at"]) - began
    talk.is_so("when it came", lambda each: -25 <= each <= 25, accepted / 1_000_000)
    asked: tuple[tuple[str, str, list[str]], ...] = (
        ("found-pushed", "delivered", [pushed]),
        ("found-pushed", "reserved", [pushed]),
        ("found-pushed", "exhausted", []),
        ("found-pulled", "reserved", [held]),
        ("found-pulled", "waiting", [free]),
    )
    for of, state, expected in asked:
        query = urlencode({"kind": "queue", "of": of, "in_state": state, "limit": 100})
        events = talk.ask("GET", f"/events?{query}")["events"]
        talk.is_so(f"{state} in {of}", expected, [each["message_id"] for each in events])
    for path in (queue, "/queues/found-pulled"):
        talk.ask("DELETE", path)


def _counted(talk: Talk) -> None:
    """What is accepted, tried, taken, failed and given up is counted by hour, for the project and for each subscriber,
    with how long attempts took.
    """
    if talk.gathered_s or talk.put_off_s:
        return

    def takes_long(came: Came) -> Said:
        return 200, b"", {}, 4.0 if int(came.body) % 10 == 0 else 0.0

    talk.listen("counted-slow.example", takes_long)
    listening(talk, {"counted-ill": ILL})
    queue = created(talk, "counted", "counted-slow", "counted-ill", retries=1, retries_delay=20)
    fields = ("accepted", "attempts", "delivered", "failed", "given_up")

    def project() -> dict[str, int]:
        hours = talk.ask("GET", "/activity?hours=168")["hours"]
        return {name: sum(each[name] for each in hours) for name in fields}

    def at(name: str) -> Any:
        return talk.ask("GET", f"/activity/subscriber?queue=counted&subscriber={name}&hours=3")

    # Until all that was before is counted
    talk.sleep(4 * MINUTE)
    before = project()
    posted(talk, queue, *(f"{number}" for number in range(20)))
    talk.sleep(20 + LATE_S + 4 * MINUTE)
    more = {"accepted": 20, "attempts": 60, "delivered": 20, "failed": 40, "given_up": 20}
    now = project()
    talk.is_so("of the project", more, {name: now[name] - before[name] for name in fields})
    own: Mapping[str, dict[str, int]] = {
        "counted-slow": {"attempts": 20, "delivered": 20, "failed": 0, "given_up": 0},
        "counted-ill": {"attempts": 40, "delivered": 0, "failed": 40, "given_up": 20},
    }
    for name, expected in own.items():
        hours = at(name)["hours"]
        talk.is_so(f"of {name}", expected, {each: sum(hour[each] for hour in hours) for each in expected})
        talk.is_so(
            "each hour once, in order", sorted({each["hour"] for each in hours}), [each["hour"] for each in hours]
        )
    slow, ill = at("counted-slow"), at("counted-ill")
    # To a fifth
    talk.is_so("half of them", lambda each: each <= 1_500, slow["p50_ms"])
    for percent in ("p95_ms", "p99_ms"):
        talk.is_so(f"how long: {percent}", lambda each: 3_200 <= each <= 5_000, slow[percent])
        talk.is_so("the other one", lambda each: each <= 1_500, ill[percent])
    talk.ask("GET", "/activity/subscriber?queue=counted&subscriber=none", status=404)
    talk.ask("DELETE", queue)


__all__ = ["through"]
