"""What people look up in a project with queues: values of bodies, the past, what waits in all queues, activity, and how
subscribers are doing.

Source: docs/ironmq.md ("Finding messages", "Searching the past", "How a subscriber is doing", "Requests").
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from simulation.promises.documents import said
from simulation.promises.talks.push_queues import ILL, LATE_S, MINUTE, OK, created, listening, posted
from simulation.promises.talks.talk import Came, Said, Talk


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_named, _values, _past, _waiting, _doing, _failing)


def _search(talk: Talk, value: str) -> list[str]:
    """The messages that are found by a value, each once."""
    found: list[str] = []
    after: str | None = None
    for _ in range(40):
        query = {"value": value, **({"after": after} if after else {})}
        answer = talk.ask("GET", f"/search?{urlencode(query)}")
        found += [each["message_id"] for each in answer["found"]]
        after = answer["after"]
        if after is None:
            break
    return sorted({*found})


def _values(talk: Talk) -> None:
    """By a text or number of a JSON body, whole or a word of it, in any case; by a word of others; not by parts of
    words, names of members or headers; nor what was deleted, cleared, or is another project's.
    """
    listening(talk, {"values-well": OK, "values-ill": ILL})
    queue = created(talk, "valued", "values-well", retries=0)
    ill = created(talk, "valued-ill", "values-ill", retries=5, retries_delay=3_000)
    cleared = created(talk, "valued-cleared", "values-well", retries=0)
    longest = said("ironmq", r"by any value of up to (\d+) characters")
    bodies = {
        "json": json.dumps({"order": {"id": 471_147, "to": "Zoë Grün-Haus"}, "list": ["alphaword", {"deep": True}]}),
        "other": "plain betaword; and more",
        "long": json.dumps({"v": longest * "w", "too": (longest + 1) * "u"}),
    }
    ids = {name: posted(talk, queue, body, push_headers={"X-Who": "gammaword"})[0] for name, body in bodies.items()}
    [retried] = posted(talk, ill, json.dumps({"n": "deltaword"}))
    pulled = talk.ask("POST", "/queues/valued-pull/messages", {"messages": [{"body": "epsilonword"}]}, status=201)[
        "ids"
    ]
    [deleted] = posted(talk, queue, "zetaword")
    posted(talk, cleared, "etaword")
    talk.sleep(2 * MINUTE + 20 + talk.put_off_s)
    finds: dict[str, Sequence[str]] = {
        "471147": [ids["json"]],
        "zoë": [ids["json"]],
        "ZOË GRÜN-HAUS": [ids["json"]],
        "AlphaWord": [ids["json"]],
        "betaword": [ids["other"]],
        longest * "w": [ids["long"]],
        "deltaword": [retried],
        "epsilonword": pulled,
        "zetaword": [deleted],
        "etaword": [str],  # type: ignore[list-item]
        # Parts of words, names of members, headers, and what nobody has posted
        **dict.fromkeys(("47114", "alpha", "betawor", "deep", "gammaword", "thetaword"), ()),
    }
    for value, expected in finds.items():
        talk.is_so(f"found by {value[:20]}", [*expected], _search(talk, value))
    talk.ask("GET", queue, shows={"queue": {"total_messages": 4}})
    talk.ask("DELETE", f"{queue}/messages/{deleted}", {})
    talk.ask("DELETE", f"{cleared}/messages", {}, shows={"msg": "Cleared"})
    talk.ask("DELETE", "/queues/valued-pull/messages", {}, shows={"msg": "Cleared"})
    talk.sleep(5)
    for value in ("zetaword", "etaword", "epsilonword"):
        talk.is_so(f"not any more by {value}", [], _search(talk, value))
    talk.is_so("those beside it", [ids["other"]], _search(talk, "betaword"))
    for bad in ("", (longest + 101) * "v"):
        talk.refused("GET", f"/search?{urlencode({'value': bad})}")
    for path in (queue, ill, cleared, "/queues/valued-pull"):
        talk.ask("DELETE", path)


def _named(talk: Talk) -> None:
    """By the values of named fields at once, of messages that were posted since they were named, as long as they are
    there; lists of deliveries show them.
    """
    listening(talk, {"named-ill": ILL})
    queue = created(talk, "fields", "named-ill", retries=0)
    longest = said("ironmq", r"of these fields of up to (\d+) characters")
    headers = {"X-Customer": "custombefore"}
    posted(talk, queue, "{}", push_headers=headers)
    talk.ask("PATCH", queue, {"queue": {"search_fields": ["order.id", "deep.er.still", "header:x-customer"]}})
    talk.sleep(2)
    bodies = [
        {"order": {"id": longest * "f"}},
        {"order": {"id": (longest + 1) * "g"}},
        {"deep": {"er": {"still": 4.5}}},
    ]
    ids = [posted(talk, queue, json.dumps(each), push_headers={"X-Customer": "Ann Lee"})[0] for each in bodies]
    # Immediately
    talk.is_so("of the longest", [ids[0]], _search(talk, longest * "f"))
    talk.is_so("by a number", [ids[2]], _search(talk, "4.5"))
    talk.is_so("by a header", sorted(ids), _search(talk, "ann lee"))
    for value in ("ann", "custombefore"):
        talk.is_so(f"not by {value}", [], _search(talk, value))
    talk.sleep(20 + talk.put_off_s)
    listed = {each["message_id"]: each for each in talk.ask("GET", f"{queue}/deliveries?state=exhausted")["deliveries"]}
    talk.is_so("in lists", {"header:x-customer": "Ann Lee", "deep.er.still": "4.5"}, listed[ids[2]]["fields"])
    talk.ask("DELETE", f"{queue}/messages/{ids[2]}", {})
    talk.is_so("not what was deleted", [], _search(talk, "4.5"))
    talk.is_so("but the others", sorted(ids[:2]), _search(talk, "ann lee"))
    talk.ask("DELETE", f"{queue}/messages", {}, shows={"msg": "Cleared"})
    talk.sleep(1)
    talk.is_so("not what was cleared", [], _search(talk, "ann lee"))
    talk.ask("DELETE", queue)


def _past(talk: Talk) -> None:
    """What happened to messages, also to deleted ones, by each of what may be asked for, and by two at a time."""
    listening(talk, {"past-well": OK, "past-ill": ILL})
    queue = created(talk, "past", "past-well", "past-ill", retries=1, retries_delay=10)
    beside = created(talk, "past-beside", "past-well", retries=0)
    one, other = posted(talk, queue, "one", "other")
    [third] = posted(talk, beside, "third")
    talk.sleep(10 + LATE_S + talk.put_off_s)
    talk.ask("DELETE", f"{queue}/messages/{one}", {})
    talk.sleep(20 * MINUTE)
    asked: tuple[tuple[dict[str, str], set[str]], ...] = (
        ({"queue": "past"}, {one, other}),
        ({"message_id": one}, {one}),
        ({"message_id": third}, {third}),
        ({"subscriber": "past-well"}, {one, other, third}),
        ({"queue": "past-beside", "state": "exhausted"}, set()),
        ({"queue": "past", "state": "exhausted"}, {one, other}),
        ({"queue": "past", "state": "retrying", "subscriber": "past-well"}, set()),
        ({"queue": "past", "subscriber": "past-ill", "state": "retrying"}, {one, other}),
        ({"queue": "past", "message_id": third}, set()),
    )
    for query, expected in asked:
        rows = _happened(talk, **query)
        talk.is_so(f"whose past is {query}", expected, {each["message_id"] for each in rows})
        for name in {"queue", "subscriber", "state"} & {*query}:
            talk.is_so(f"only of that {name}", {query[name]} if rows else set(), {each.get(name) for each in rows})
    talk.refused(
        "POST", "/past", {}, {"state": "none"}, {"queue": "past", "since": "2026-01-01T00:00:00Z"}, {"queue": 5}
    )
    talk.ask("GET", "/past/none", status=404)
    early = {"since": _iso(talk.epoch_s() - 7_200), "until": _iso(talk.epoch_s() - 5_400)}
    talk.is_so("before it happened", [], _happened(talk, queue="past", **early))
    for path in (queue, beside):
        talk.ask("DELETE", path)


def _happened(talk: Talk, **query: str) -> list[dict[str, Any]]:
    """A search of the past, until it is done."""
    search = talk.ask("POST", "/past", query, status=202)["id"]
    rows: list[dict[str, Any]] = []
    after: str | None = None
    for _ in range(60):
        answer = talk.ask("GET", f"/past/{search}" + (f"?after={after}" if after else ""))
        rows += answer["found"]
        after = answer["after"] or after
        if answer["state"] == "done" and answer["after"] is None:
            return rows
        talk.sleep(2, exactly=True)
    return rows


def _waiting(talk: Talk) -> None:
    """What waits in all queues, and in each: messages for consumers, and those that failed or wait, each once; what is
    delivered does not.
    """
    listening(talk, {"waiting-well": OK, "waiting-ill": ILL, "waiting-too": ILL, "waiting-rests": OK})
    push = {"retries": 5, "retries_delay": 3_000, "error_queue": "waiting-failed"}
    ill = created(talk, "waiting-ill", "waiting-ill", "waiting-too", "waiting-well", **push)
    well = created(talk, "waiting-well", "waiting-well", **push)
    rests = created(talk, "waiting-rests", "waiting-rests", retries=0)
    talk.ask("POST", f"{rests}/pause", {"subscriber": "waiting-rests"})
    talk.sleep(5)
    failing = posted(talk, ill, "a", "b", "c")
    posted(talk, well, "d")
    posted(talk, rests, "e", "f")
    pull = {"messages": [{"body": "g"}, {"body": "h", "delay": 600}]}
    pulled = talk.ask("POST", "/queues/waiting-pull/messages", pull, status=201)["ids"]
    talk.sleep(4 * MINUTE + talk.put_off_s)
    seen = talk.ask("GET", "/overview", shows={"after": lambda each: each is None or isinstance(each, str)})
    rows = {each["name"]: each for each in seen["queues"] if each["name"].startswith("waiting-")}
    expected = {
        "waiting-ill": {"type": "multicast", "size": 6, "oldest": failing[0], "retries": 5, "retries_delay": 3_000},
        "waiting-pull": {"type": "pull", "size": 2, "oldest": pulled[0], "retries": None, "retries_delay": None},
    }
    talk.is_so("what waits", expected, rows)
    talk.is_so("not what is delivered", False, "waiting-well" in rows)
    talk.is_so("error queues", True, "waiting-failed" in seen["error_queues"])
    shown = [{"id": each, "body": body} for each, body in zip(failing, "abc", strict=True)]
    talk.ask("GET", f"{ill}/messages?n=10", shows={"messages": shown})
    talk.ask("GET", f"{ill}/messages?n=2", shows={"messages": shown[:2]})
    listed = {each["name"]: each for each in talk.ask("GET", "/queues?prefix=waiting-&health=true")["queues"]}
    # Each delivery of a push queue, each message of a pull queue
    waiting = {"waiting-ill": 6, "waiting-well": 0, "waiting-rests": 2, "waiting-pull": 2}
    talk.is_so("in a list", waiting, {name: each["waiting"] for name, each in listed.items()})
    subscribers = {"waiting-ill": 3, "waiting-well": 1, "waiting-rests": 1, "waiting-pull": 0}
    talk.is_so("with its subscribers", subscribers, {name: each["subscribers"] for name, each in listed.items()})
    states = {"waiting-ill": "failing", "waiting-well": "delivering", "waiting-rests": "paused"}
    talk.is_so("the worst health", states, {name: listed[name]["health"]["state"] for name in states})
    for path in (ill, well, rests, "/queues/waiting-pull"):
        talk.ask("DELETE", path)


def _doing(talk: Talk) -> None:
    """The word for how each subscriber is doing, of several that apply the first, with since when and what waits."""
    if talk.gathered_s or talk.put_off_s:
        return

    def half(came: Came) -> Said:
        return ILL if came.body == b"ill" else OK

    listening(talk, {"doing-well": OK, "doing-ill": ILL, "doing-rests": ILL})
    talk.listen("doing-half.example", half)
    names = ("doing-half", "doing-ill", "doing-rests", "doing-well")
    queue = created(talk, "doing", *names, retries=9, retries_delay=3_000)
    at = {name: {"state": "delivering", "waiting": 0, "complete": True} for name in names}
    shown = [{"name": name, "health": at[name]} for name in names]
    talk.ask("GET", f"{queue}/health", shows={"waiting": 0, "complete": True, "subscribers": shown})
    began = talk.epoch_s()
    posted(talk, queue, "well", "ill")
    talk.sleep(4 * MINUTE)
    talk.ask("POST", f"{queue}/pause", {"subscriber": "doing-rests"})
    talk.sleep(5)
    posted(talk, queue, "well", "ill")
    talk.sleep(4 * MINUTE)
    expected = {
        "doing-half": {"state": "retrying", "waiting": 2, "complete": True, "since": str},
        "doing-ill": {"state": "failing", "waiting": 4, "complete": True, "since": str},
        "doing-rests": {"state": "paused", "waiting": 4, "complete": True},
        "doing-well": {"state": "delivering", "waiting": 0, "complete": True},
    }
    answer = talk.ask("GET", f"{queue}/health", shows={"waiting": 10, "complete": True})
    found = {each["name"]: each["health"] for each in answer["subscribers"]}
    talk.is_so("how they are doing", expected, found)
    for name in ("doing-half", "doing-ill"):
        since = datetime.fromisoformat(found[name]["since"]).timestamp() - began
        talk.is_so(f"since the first: {name}", lambda each: -2 <= each <= 60, since)
    talk.ask("POST", f"{queue}/resume", {"subscriber": "doing-rests"})
    talk.ask("DELETE", queue)
    unicast = created(talk, "doing-one", "doing-ill", "doing-rests", kind="unicast", retries=9, retries_delay=3_000)
    posted(talk, unicast, "x", "y")
    talk.sleep(MINUTE)
    # It is counted for the queue
    talk.ask("GET", f"{unicast}/health", shows={"waiting": 2, "complete": True, "subscribers": [..., ...]})
    talk.ask("DELETE", unicast)


def _failing(talk: Talk) -> None:
    """Who gave up all that it was owed is failing until it accepts something; what it accepted before the last hour
    does not count.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    answers: dict[str, Said] = {"says": ILL}
    talk.listen("fails.example", lambda _: answers["says"])
    queue = created(talk, "fails", "fails", retries=0)

    def doing(state: str) -> None:
        health = {"state": state, "since": None, "until": None, "waiting": 0, "complete": True}
        talk.ask("GET", f"{queue}/health", shows={"waiting": 0, "subscribers": [{"name": "fails", "health": health}]})

    doing("delivering")
    for answer, state in ((ILL, "failing"), (OK, "delivering"), (ILL, "delivering")):
        answers["says"] = answer
        posted(talk, queue, "x")
        talk.sleep(4 * MINUTE)
        doing(state)
        # All three of them in this hour and the one before
    talk.sleep(2 * 60 * MINUTE)
    doing("delivering")
    posted(talk, queue, "y")
    talk.sleep(4 * MINUTE)
    doing("failing")
    talk.ask("DELETE", queue)


def _iso(epoch_s: float) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).isoformat()


__all__ = ["through"]
