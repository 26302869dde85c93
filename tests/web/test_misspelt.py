"""Names of settings that are probably misspelt, in every API's own description and in a served one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.world import PROJECT
from tests.web.protocols import served

from pushhub.runtime.hub import PROTOCOLS
from pushhub.web.api import Body
from pushhub.web.misspelt import MOST_WARNINGS, Misspelt

CHANGES = [
    (each, route, described)
    for each in PROTOCOLS
    for route in each.routes()
    if route.is_audited and route.body is Body.JSON
    for described in [each.description().routes[route.name]]
    if isinstance(described.sent, dict)
]
NAMES = [
    (each, route, described.sent, name)
    for each, route, described in CHANGES
    for name in described.sent
    if len(name) > 4
]


@pytest.mark.parametrize(("protocol", "route", "described"), CHANGES, ids=lambda each: getattr(each, "name", ""))
def test_what_the_documents_send_is_spelt_as_it_is_read(protocol: Any, route: Any, described: Any) -> None:
    assert Misspelt(protocol.description)(route.name, json.dumps(described.sent).encode()) == []


@given(st.data())
def test_a_letter_too_few_is_told_with_the_name_that_was_meant(data: st.DataObject) -> None:
    # Given any example of a change, and any letter left out of one of its names
    protocol, route, sent, name = data.draw(st.sampled_from(NAMES))
    place = data.draw(st.integers(0, len(name) - 1))
    typo = name[:place] + name[place + 1 :]
    body = {typo if each == name else each: value for each, value in sent.items()}
    # Then it is told, with the name that was meant or another one as near
    [reported] = Misspelt(protocol.description)(route.name, json.dumps(body).encode())
    assert reported.startswith(f"{typo} is not read: did you mean ")


def test_what_lies_inside_is_looked_at_and_what_is_free_is_not() -> None:
    reported = Misspelt(PROTOCOLS[0].description)
    push = {"subscribers": [{"name": "a", "url": "https://a.example", "heders": {"X-Heders": "1"}}], "retrys": 3}
    body = {"queue": {"serch_fields": ["id"], "size": 3, "total_messages": 4, "push": push}}
    assert sorted(reported("ironmq.put_queue", json.dumps(body).encode())) == [
        "heders is not read: did you mean headers?",
        "retrys is not read: did you mean retries?",
        "serch_fields is not read: did you mean search_fields?",
    ]


def test_what_stands_a_level_too_high_is_told_with_its_place() -> None:
    reported = Misspelt(PROTOCOLS[0].description)
    for body, warnings in (
        ({"push": {"subscribers": []}}, ["push is not read here: it belongs into queue"]),
        ({"queue": {"retries": 3}}, ["retries is not read here: it belongs into push"]),
        ({"queue": {"retries": 3, "push": {"subscribers": []}}}, ["retries is not read here: it belongs into push"]),
        ({"queue": {"retries": 3, "push": {"retries": 3}}}, []),
        ({"queue": {"push": 7, "retries": 3}}, []),
    ):
        assert reported("ironmq.put_queue", json.dumps(body).encode()) == warnings


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[",
        b"[]",
        b"7",
        b'{"queue": "serch_fields"}',
        b'{"queue": {"serch_fields\\r\\nX: y": 1}}',
        b'{"queue": {"serch_fields": 1}}' + b" " * 65_536,
        json.dumps({"queue": {"x" * each: 1 for each in range(1, 300)}}).encode(),
        b'{"queue":' * 90 + b"1" + b"}" * 90,
    ],
    ids=lambda each: repr(each[:20]),
)
def test_hostile_bodies_are_told_nothing(body: bytes) -> None:
    assert Misspelt(PROTOCOLS[0].description)("ironmq.put_queue", body) == []


def test_a_body_full_of_them_gets_a_few_warnings() -> None:
    queue = {f"serch_field{each}": 1 for each in range(1_000)}
    reported = Misspelt(PROTOCOLS[0].description)("ironmq.put_queue", json.dumps({"queue": queue}).encode())
    assert len(reported) == MOST_WARNINGS


@pytest.mark.parametrize(
    ("name", "warning"),
    [("serch_fields", "serch_fields is not read: did you mean search_fields?"), ("search_fields", None)],
)
def test_the_change_is_made_and_its_answer_warns(name: str, warning: str | None) -> None:
    answer = served("ironmq").send("PUT", f"/3/projects/{PROJECT}/queues/orders", {"queue": {name: ["id"]}})
    assert (answer.status, answer.headers.get("Pushhub-Warning")) == (200, warning)


def test_what_is_sent_for_a_misspelt_name_would_be_too_much_and_is_not() -> None:
    # Given a queue and an endpoint
    iron, hooks = served("ironmq"), served("webhooks")
    queue = f"/3/projects/{PROJECT}/queues/orders"
    push = {"subscribers": [{"name": "shop", "url": "https://shop.example"}]}
    assert iron.send("PUT", queue, {"queue": {"push": push}}).status == 200
    hooks.send("POST", "/api/v1/app", {"name": "Acme", "uid": "acme"})
    hooks.send("POST", "/api/v1/app/acme/endpoint", {"url": "https://a.example", "uid": "e"})
    # When what would narrow a replay is misspelt, then it is refused
    for wrong in ({"dryRun": True}, {"message_id": ["1"]}, {"ids": ["1"]}, {"untill": "2026-11-18"}):
        refused = iron.send("POST", f"{queue}/replay", {"subscriber": "shop", **wrong})
        assert (refused.status, refused.body["msg"].partition(";")[0]) == (400, f"{next(iter(wrong))} is not read here")
    for route in ("recover", "replay-missing", "bulk-replay"):
        since = {"since": "2026-11-18T00:00:00Z"}
        refused = hooks.send("POST", f"/api/v1/app/acme/endpoint/e/{route}", {**since, "dry_run": True})
        assert refused.status == 400
        assert "dry_run is not read: did you mean dryRun?" in json.dumps(refused.body)
        # What no name is near to is left alone, as Svix's clients may send more
        assert hooks.send("POST", f"/api/v1/app/acme/endpoint/e/{route}", {**since, "new": True}).status == 202
