"""The talks about Svix's API notice a hub that answers, stores or sends something else than the documents say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from simulation.account import Account, HttpAnswer
from simulation.promises.talks import (
    doors,
    effects,
    listings,
    portals,
    readers,
    requests,
    rights,
    round_trips,
    senders,
    signing,
    streams,
    transformed,
)
from simulation.promises.talks.shapes import Shapes
from simulation.promises.talks.talk import OTHER_ANSWER, OTHER_SHAPE, OTHER_STATUS, Came, Talk
from simulation.template import stack
from simulation.truth import Truth
from simulation.weather import Weather
from simulation.worlds.webhooks import WebhooksWorld

DOCUMENT: Mapping[str, Any] = {
    "paths": {
        "/a/{id}": {
            "get": {
                "responses": {
                    "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}},
                    "204": {},
                }
            }
        },
        "/a/all": {"get": {"responses": {"204": {}}}},
    },
    "components": {
        "schemas": {
            "A": {
                "type": "object",
                "required": ["id"],
                "additionalProperties": False,
                "properties": {
                    "id": {"type": "string", "pattern": "^a", "maxLength": 3},
                    "n": {"type": ["integer", "null"], "minimum": 1},
                    "of": {"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2},
                    "any": {"anyOf": [{"type": "boolean"}, {"type": "string", "format": "date-time"}]},
                    "more": {"type": "object", "additionalProperties": {"type": "string"}},
                },
            }
        }
    },
}


@pytest.mark.parametrize(
    ("body", "same"),
    [
        ({"id": "ab"}, True),
        ({"id": "ab", "n": None, "of": [1, 2], "any": True, "more": {"x": "y"}}, True),
        ({"id": "ab", "any": "2026-11-30T00:00:00Z"}, True),
        ({}, False),
        ({"id": "b"}, False),
        ({"id": "abcd"}, False),
        ({"id": 7}, False),
        ({"id": "a", "n": 0}, False),
        ({"id": "a", "n": True}, False),
        ({"id": "a", "of": [3]}, False),
        ({"id": "a", "of": [1, 1, 1]}, False),
        ({"id": "a", "any": "yesterday"}, False),
        ({"id": "a", "more": {"x": 1}}, False),
        ({"id": "a", "else": 1}, False),
        ([], False),
    ],
)
def test_an_answer_has_the_described_shape(body: Any, same: bool) -> None:
    assert (not Shapes(DOCUMENT).differs("GET", "/a/7?x=y", 200, body)) == same


def test_statuses_are_described_and_the_most_literal_route_counts() -> None:
    shapes = Shapes(DOCUMENT)
    assert shapes.differs("GET", "/a/7", 404, {})
    assert shapes.differs("GET", "/a/7", 204, {"id": "a"})
    assert not shapes.differs("GET", "/a/all", 204, {})
    assert not shapes.differs("GET", "/else", 500, {})


Bend = Callable[[str, str, Any, HttpAnswer], HttpAnswer]
"""Another answer to a request: method, path, body, and the hub's own answer."""


def talked(monkeypatch: pytest.MonkeyPatch, bend: Bend, *parts: Callable[[Talk], None]) -> set[str]:
    """What parts of a talk say of a hub whose answers are bent."""
    own = Account.http

    def http(account: Account, method: str, path: str, body: object = None, **more: Any) -> HttpAnswer:
        return bend(method, path, body, own(account, method, path, body, **more))

    monkeypatch.setattr(Account, "http", http)
    found: set[str] = set()

    class Talked(WebhooksWorld):
        """Parts alone."""

        def talk(self) -> None:
            self._talking_webhooks().through(*parts)
            found.update(each.rule for each in self.talked.violations)

    account = Account("webhooks/1", stack(), Weather((), "webhooks/1"))
    with account.installed():
        world = Talked(account, Truth(account), 1, 1)
        account.begin_schedules()
        account.scheduler.spawn(world.talk)
        account.scheduler.run(account.scheduler.now + 3 * 3_600 * 1_000_000)
    return found


def shown(method: str, ends: str, **members: Any) -> Bend:
    """Answers to a method of paths that end so have other members."""

    def bend(asked: str, path: str, _: Any, answer: HttpAnswer) -> HttpAnswer:
        if asked == method and path.partition("?")[0].endswith(ends) and isinstance(answer.body, dict):
            return replace(answer, body={**answer.body, **members})
        return answer

    return bend


def said(method: str, ends: str, status: int) -> Bend:
    """Answers to a method of paths that end so have another status."""

    def bend(asked: str, path: str, _: Any, answer: HttpAnswer) -> HttpAnswer:
        return replace(answer, status=status) if asked == method and path.endswith(ends) else answer

    return bend


def as_it_is(_: str, __: str, ___: Any, answer: HttpAnswer) -> HttpAnswer:
    """The hub's own answer."""
    return answer


PARTS: Mapping[str, tuple[tuple[Callable[[Talk], None], ...], Bend, set[str]]] = {
    "a list that is never done": ((listings._nothing,), shown("GET", "/connector", done=False), {OTHER_ANSWER}),
    "what is refused and said to be taken": (
        (signing._begun, signing._refused, signing._over),
        said("PUT", "/signatures", 200),
        {OTHER_STATUS, OTHER_SHAPE},
    ),
    "a token that opens more": ((rights._of_streams,), said("GET", "/stream/none", 200), {OTHER_STATUS, OTHER_SHAPE}),
    "a field that does not come back": (
        (round_trips._begun, round_trips._integrations, round_trips._over),
        shown("PUT", "", name="Same"),
        {OTHER_ANSWER},
    ),
    "a sender's question without an answer": (
        (senders._questions,),
        lambda _, path, body, answer: replace(answer, body={}) if "/in/" in path else answer,
        {OTHER_ANSWER},
    ),
    "an example that is not taken": (
        (effects._begun, effects._examples, effects._over),
        said("POST", "/send-example", 404),
        {OTHER_STATUS},
    ),
    "a poller that says it has all": (
        (readers._begun, readers._pollers, readers._over),
        shown("GET", "/poller/any", done=True),
        {OTHER_ANSWER},
    ),
    "an event that is said to be stored": (
        (streams._begun, streams._posted, streams._over),
        said("POST", "/events", 202),
        {OTHER_STATUS, OTHER_SHAPE},
    ),
    "code that is shown otherwise": (
        (transformed._begun, transformed._shown, transformed._over),
        shown("GET", "/transformation", enabled=True),
        {OTHER_ANSWER},
    ),
    "a portal that changes what is the project's": (
        (portals._begun, portals._reach, portals._over),
        said("DELETE", "/endpoint/inner", 204),
        {OTHER_STATUS, OTHER_SHAPE},
    ),
    "a caller who is let in": ((doors._callers,), said("GET", "/app", 200), {OTHER_STATUS, OTHER_SHAPE}),
}
"""Parts of each talk, a hub that is bent, and what is said of it."""


@pytest.mark.parametrize("name", PARTS)
def test_a_talk_notices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parts, bend, rules = PARTS[name]
    # Given a hub that keeps to the documents, nothing is said of it
    with monkeypatch.context() as patched:
        assert talked(patched, as_it_is, *parts) == set()
    # When it does something else, that is told
    assert rules <= talked(monkeypatch, bend, *parts)


def test_values_at_and_beyond_described_bounds_are_asked_for() -> None:
    # Given a schema with a number, a list, a word of some, and what is required
    schema = {
        "required": ["a"],
        "properties": {
            "a": {"type": "integer", "minimum": 1, "maximum": 9},
            "b": {"type": ["array", "null"], "items": {"type": "string"}, "maxItems": 2},
            "c": {"type": "string", "enum": ["x"]},
        },
    }
    cases = [*requests._cases(Shapes({"paths": {}}), schema, {"a": 5})]
    # Then the values at its bounds are good, and those beyond them and of other kinds are not
    assert [each.body.get("a") for each in cases if each.good and "b" not in each.body and "c" not in each.body] == [
        1,
        9,
    ]
    bad = [each.body for each in cases if not each.good]
    assert [each for each in bad if {*each} <= {"a"}] == [{}, {"a": None}, {"a": "word"}, {"a": 0}, {"a": 10}]
    assert {"a": 5, "b": ["n0", "n1", "n2"]} in bad
    assert {"a": 5, "c": "none of them"} in bad


def test_a_verifier_tells_one_secret_from_another() -> None:
    # Given a request as GitHub signs it
    body = b'{"a": 1}'
    headers = {"x-github-event": signing.KIND, "x-github-delivery": "m", "webhook-id": "m"}
    signed = {**headers, "x-hub-signature-256": f"sha256={signing._mac('right', body).hex()}"}
    # Then it is verified with its secret, and neither with another nor with another body
    assert signing._github(Came(0, signed, body), "right")
    assert not signing._github(Came(0, signed, body), "wrong")
    assert not signing._github(Came(0, signed, body + b" "), "right")
