"""Who opens a stream: tokens of its owner, and those of its pollers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.webhooks.streams.test_streams import event, make_stream
from tests.webhooks.world import WebhooksWorld

from pushhub.webhooks.model.portal import portal_token


def test_an_owners_token_opens_one_stream_until_it_ends(world: WebhooksWorld) -> None:
    stream, other = make_stream(world, uid="orders"), make_stream(world)
    token = world.ask("POST", "/auth/stream-portal-access/orders", {})["token"]
    assert token.startswith("strmsk_")
    wanted = {"type": "poller", "config": {}}
    assert world.call("POST", "/stream/orders/sink", wanted, token=token).status == 201
    assert len(world.ask("GET", f"/stream/{stream}/sink", token=token)["data"]) == 1
    # Other streams, and what is the project's alone, it does not open
    assert world.call("GET", f"/stream/{other}/sink", token=token).status == 404
    assert world.call("GET", "/stream", token=token).status == 403
    assert world.call("POST", "/stream/orders/events", {"events": [event(1)]}, token=token).status == 403
    # It ends itself, or with all others
    assert world.call("POST", "/auth/stream-logout").status == 403
    assert world.call("POST", "/auth/stream-logout", token=token).status == 204
    assert world.call("GET", f"/stream/{stream}/sink", token=token).status == 401
    token = world.ask("POST", f"/auth/stream-portal-access/{stream}", {"sessionId": "s"})["token"]
    world.call("POST", f"/auth/stream/{stream}/expire-all", {"sessionIds": ["s"]})
    assert world.call("GET", f"/stream/{stream}/sink", token=token).status == 401


def test_a_pollers_token_reads_its_events_and_does_nothing_else(world: WebhooksWorld) -> None:
    stream = make_stream(world, uid="orders")
    wanted = {"type": "poller", "config": {}}
    mine, other = (world.ask("POST", "/stream/orders/sink", wanted)["id"] for _ in range(2))
    path = f"/auth/stream/{stream}/sink/{mine}/poller/token"
    shown = world.ask("GET", path)
    assert world.ask("GET", path) == shown
    token = shown["token"]
    assert world.ask("GET", f"/stream/orders/sink/{mine}/events", token=token)["data"] == []
    assert world.call("GET", f"/stream/orders/sink/{other}/events", token=token).status == 404
    for method, place in (("GET", "/stream/orders/sink"), ("GET", "/stream/orders"), ("GET", "/stream/orders/events")):
        assert world.call(method, place, token=token).status == 403
    # With another token, this one ends after a while
    rotated = world.ask("POST", f"{path}/rotate", {"oldTokenExpiry": 60, "expiry": 3600})
    assert rotated["token"] != token
    assert rotated["expiresAt"] > rotated["createdAt"]
    reads = f"/stream/orders/sink/{mine}/events"
    assert [world.call("GET", reads, token=each).status for each in (token, rotated["token"])] == [200, 200]
    world.clock.advance(ms=61_000)
    assert [world.call("GET", reads, token=each).status for each in (token, rotated["token"])] == [401, 200]
    world.clock.advance(ms=3_600_000)
    assert world.call("GET", reads, token=rotated["token"]).status == 401
    # And it opens nothing any more, though it is forgotten, and its owner looks for a token: that is another one
    ended = rotated["token"]
    for each in [*world.ports.portal_tokens.accesses(PROJECT, stream)]:
        world.ports.portal_tokens.remove_accesses([each])
    fresh = world.ask("GET", path)
    assert fresh["token"] not in (token, ended)
    assert [world.call("GET", reads, token=each).status for each in (fresh["token"], ended)] == [200, 401]
    assert world.ask("GET", path) == fresh
    # And it goes with its sink
    token = world.ask("POST", f"{path}/rotate", {})["token"]
    world.call("DELETE", f"/stream/orders/sink/{mine}")
    assert world.call("GET", reads, token=token).status == 401


@pytest.mark.parametrize("call", ["put_access", "accesses", "remove_accesses"])
def test_one_token_is_left_of_two_that_a_poller_is_given_at_once(
    world: WebhooksWorld, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    # Given a poller that is given another token while it is given one, and neither outlives the next
    stream, tokens = make_stream(world), world.ports.portal_tokens
    sink = world.ask("POST", f"/stream/{stream}/sink", {"type": "poller", "config": {}})["id"]
    path = f"/auth/stream/{stream}/sink/{sink}/poller/token"
    real = getattr(tokens, call)
    meanwhile: list[str] = []

    def called(*given: Any) -> Any:
        monkeypatch.setattr(tokens, call, real)
        meanwhile.append(world.ask("POST", f"{path}/rotate", {"oldTokenExpiry": 0})["token"])
        return real(*given)

    monkeypatch.setattr(tokens, call, called)
    first = world.call("POST", f"{path}/rotate", {"oldTokenExpiry": 0})
    # Then the later one reads its events, and the other was given to nobody, unless it came first
    assert first.status == (200 if call == "remove_accesses" else 409)
    assert world.call("GET", f"/stream/{stream}/sink/{sink}/events", token=meanwhile[0]).status == 200
    assert world.ask("GET", path)["token"] == meanwhile[0]
    assert len([*tokens.accesses(PROJECT, stream)]) == 1


def test_only_pollers_have_such_a_token(world: WebhooksWorld) -> None:
    stream = make_stream(world)
    wanted = {"type": "http", "config": {"url": "https://a.example/in"}}
    sink = world.ask("POST", f"/stream/{stream}/sink", wanted)["id"]
    assert world.call("GET", f"/auth/stream/{stream}/sink/{sink}/poller/token").status == 422


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_what_reads_a_poller_is_not_what_signs_when_it_becomes_a_sink_with_a_url(
    world: WebhooksWorld, method: str
) -> None:
    # Given a poller, whose consumer has its token
    stream = make_stream(world)
    sink = world.ask("POST", f"/stream/{stream}/sink", {"type": "poller", "config": {}})["id"]
    path, token_of = f"/stream/{stream}/sink/{sink}", f"/auth/stream/{stream}/sink/{sink}/poller/token"
    former = world.ask("GET", token_of)["token"]
    # When it becomes a sink with a URL
    world.ask(method, path, {"type": "http", "config": {"url": "https://a.example/in"}})
    # Then the consumer can forge no signatures with its token
    shown = world.ask("GET", f"{path}/secret")["key"]
    key = shown.removeprefix("whsec_").replace("+", "-").replace("/", "_").rstrip("=")
    assert key not in former
    # And when it becomes a poller again, then neither that token nor the key reads it, but another token does
    world.ask(method, path, {"type": "poller", "config": {}})
    forged = portal_token(PROJECT, stream, key)
    fresh = world.ask("GET", token_of)["token"]
    assert len({former, forged, fresh}) == 3
    statuses = [world.call("GET", f"{path}/events", token=each).status for each in (former, forged, fresh)]
    assert statuses == [401, 401, 200]
    # And one that stays a poller keeps its token
    world.ask(method, path, {"type": "poller", "config": {}, "metadata": {"a": "b"}})
    assert world.ask("GET", token_of)["token"] == fresh
