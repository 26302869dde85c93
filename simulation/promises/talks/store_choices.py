"""Which messages a service of a store gets: filters on several values, values that look alike, identities of several
fields, and mappings whose filters take too much work.

Sources: docs/hub-protocol.md ("Routes", "Decisions", "Limits", "Regular expressions").
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from simulation.promises.talks.services import copies, done, mapped, pushed
from simulation.promises.talks.talk import Came, Talk

MINUTE = 60
LONGEST_SEARCHED = 10_000
"""Characters of a text in which a pattern is looked for."""


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_several_values, _alike, _identities, _too_much_work)


def _numbers(came: Sequence[Came]) -> list[int]:
    return sorted(json.loads(each.body)["payload"]["n"] for each in came)


def _removed(talk: Talk, *paths: str) -> None:
    for each in paths:
        talk.ask("DELETE", each)


Case = tuple[Sequence[Mapping[str, Any]], Sequence[int]]
"""Filters of a mapping, and the numbers of the messages that pass them."""


def _filtered(talk: Talk, name: str, cases: Sequence[Case], payloads: Sequence[Mapping[str, Any]]) -> None:
    """Each service gets the messages that pass its filters; messages are numbered from 1."""
    heard, paths = [], []
    for place, (filters, _) in enumerate(cases):
        heard.append(talk.listen(f"{name}-{place}.example", done))
        paths.append(mapped(talk, f"{name}-{place}", [f"{name}:one"], filters=filters))
    talk.sleep(MINUTE + 1)
    for number, payload in enumerate(payloads, start=1):
        pushed(talk, f"{name}:one", {"n": number, **payload})
    talk.sleep(30 + talk.put_off_s)
    for (filters, wanted), came in zip(cases, heard, strict=True):
        talk.came(f"{filters}", [*wanted], _numbers(came))
    _removed(talk, *paths)


def _several_values(talk: Talk) -> None:
    """``all`` and ``any`` hold for each operator; without a value only ``neq`` and ``empty`` do; all filters count."""

    def of(operator: str, value: str = "", rule: str = "", path: str = "payload.items.*.k") -> dict[str, str]:
        return {"path": path, "operator": operator, "value": value, **({"match_rule": rule} if rule else {})}

    cases: list[Case] = [
        ([of("eq", "a", "all")], []),
        ([of("eq", "a", "any")], [1]),
        ([of("neq", "a")], [2, 3, 4]),
        ([of("neq", "b", "any")], [1, 2, 3, 4]),
        ([of("begin", "a", "any")], [1]),
        ([of("end", "b", "any")], [1, 2]),
        ([of("contains", "b")], []),
        ([of("contains", "b", "any")], [1, 2]),
        ([of("present")], [1, 2]),
        ([of("present", rule="any")], [1, 2]),
        ([of("empty")], [3, 4]),
        ([of("empty", rule="any")], [3, 4]),
        ([of("match", "^[ab]$")], [1]),
        ([of("match", "^[ab]$", "any")], [1, 2]),
        ([of("gt", "2", "all", "payload.list.*")], [2]),
        ([of("gt", "2", "any", "payload.list.*")], [1, 2]),
        ([of("lt", "2", "any", "payload.list.*")], [1]),
        # One that does not hold is enough, whichever it is
        ([of("match", "^[ab]$", "any"), of("lt", "2", "any", "payload.list.*")], [1]),
        ([of("match", "^[ab]$", "any"), of("match", "^c$", "any")], [2]),
        ([of("eq", "b", "any"), of("eq", "c", "any")], [2]),
    ]
    payloads: list[dict[str, Any]] = [
        {"items": [{"k": "a"}, {"k": "b"}], "list": [1, 3]},
        {"items": [{"k": "b"}, {"k": "c"}], "list": [10, 3]},
        {"items": [{"k": None}, {}], "list": []},
        {"items": [], "list": "none"},
    ]
    _filtered(talk, "several", cases, payloads)


def _alike(talk: Talk) -> None:
    """Values that look alike: numbers and their texts, letters in upper case and with accents, an order of members."""
    cases: list[Case] = [
        ([{"path": "payload.v", "operator": operator, "value": value}], wanted)
        for operator, value, wanted in (
            ("eq", "1", [1, 2]),
            ("neq", "1", [3, 4, 5, 6, 7, 8]),
            ("eq", "true", [3, 4]),
            ("eq", "a", [5]),
            ("eq", "A", [6]),
            ("contains", "é", [7, 8]),
            ("eq", '{"a":1,"b":"é"}', [8]),
            # Numbers by their size, not by their texts
            ("lt", "1.5", [1, 2]),
            ("lt", "10", [1, 2]),
            ("gt", "0", [1, 2]),
        )
    ]
    values = (1, "1", True, "true", "a", "A", "é", {"b": "é", "a": 1})
    _filtered(talk, "alike", cases, [{"v": each} for each in values])


def _identities(talk: Talk) -> None:
    """An identity is that of all values by their names: others in one field, or in each other's, are others. Without
    any value all come; one that was archived has taken its own.
    """
    came = talk.listen("identities.example", lambda each: (500, b"") if '"ill"' in each.body.decode() else done(each))
    options = {"retries_allowed": False}
    identifiers = {"a": "payload.a", "b": "payload.b"}
    mapping = mapped(talk, "identities", ["identities:one"], identifiers=identifiers, options=options)
    talk.sleep(MINUTE + 1)
    payloads: tuple[tuple[dict[str, Any], bool], ...] = (
        ({"a": "1", "b": "2"}, True),
        ({"a": "2", "b": "1"}, True),
        ({"a": "12", "b": ""}, True),
        ({"a": "12", "b": ""}, False),
        ({"a": "1", "b": "22"}, True),
        ({"b": "2", "a": "1", "more": 1}, False),
        ({"a": "only"}, True),
        ({"b": "only"}, True),
        ({"a": "only"}, False),
        ({"a": None, "b": None}, True),
        ({"a": None, "b": None}, True),
        ({}, True),
        ({"a": "ill"}, True),
        ({"a": {"x": 1, "y": [1, 2]}}, True),
        ({"a": {"y": [1, 2], "x": 1}}, False),
        ({"a": {"y": [2, 1], "x": 1}}, True),
    )
    for number, (payload, _) in enumerate(payloads):
        posted = pushed(talk, "identities:one", {"n": number, **payload})
        talk.sleep(6 + talk.put_off_s)
        if payload.get("a") == "ill":
            [copy] = copies(talk, posted)
            talk.ask("PUT", f"/messages/{copy['id']}", {"archive": True})
            talk.sleep(5)
    pushed(talk, "identities:one", {"n": len(payloads), "a": "ill"})
    talk.sleep(20 + talk.put_off_s)
    talk.came("which come", [number for number, (_, wanted) in enumerate(payloads) if wanted], _numbers(came))
    talk.ask("DELETE", mapping)


def _too_much_work(talk: Talk) -> None:
    """A message waits for a mapping whose filters take more steps than allowed, also that of patterns, until they take
    fewer; an error says so, and mappings before and after it are served meanwhile, once.
    """
    patterns = [{"path": "payload.long", "operator": "match", "value": r"\pL\pL"}]
    many = 5 * [{"path": "payload.items.*.k", "operator": "eq", "value": "1"}]
    came = {name: talk.listen(f"work-{name}.example", done) for name in ("before", "patterns", "between", "many", "z")}
    filters = {"patterns": patterns, "many": many}
    paths = {name: mapped(talk, f"work-{name}", ["work:one"], filters=filters.get(name, [])) for name in came}
    talk.sleep(MINUTE + 1)
    payload = {"n": 1, "long": LONGEST_SEARCHED * "é", "items": LONGEST_SEARCHED * [{"k": 1}]}
    posted = pushed(talk, "work:one", payload)
    talk.sleep(15 + talk.put_off_s)
    served = {"before": [1], "patterns": [], "between": [1], "many": [], "z": [1]}
    talk.came("the others", served, {name: _numbers(heard) for name, heard in came.items()})
    waits = {"message_id": posted, "state": "pending", "queue_name": "incoming"}
    talk.ask("GET", "/queues/incoming.json?message=work:one", shows=[waits])
    talk.ask("GET", f"/messages/{posted}", shows=waits)

    def errors() -> dict[str, int]:
        rows = talk.ask("GET", "/notifications.json?level=error")
        return {each["origin"]: each["occurrences"] for each in rows if each["message_id"] == posted}

    both = {"work-patterns": 1, "work-many": 1}
    talk.is_so("errors", both, errors())
    # A pattern that takes less, and fewer filters
    talk.ask("PUT", paths["patterns"], {"mapping": {"filters": [{**patterns[0], "value": "^é"}]}})
    talk.ask("PUT", paths["many"], {"mapping": {"filters": many[:1]}})
    talk.sleep(2 * MINUTE + talk.put_off_s)
    talk.came("all, once", {name: [1] for name in came}, {name: _numbers(heard) for name, heard in came.items()})
    talk.ask("GET", "/queues/incoming.json?message=work:one", shows=[])
    names = sorted(each["consumer"] for each in copies(talk, posted))
    talk.is_so("its copies", sorted(f"work-{name}" for name in came), names)
    talk.is_so("the same errors", both, errors())
    _removed(talk, *paths.values())


__all__ = ["through"]
