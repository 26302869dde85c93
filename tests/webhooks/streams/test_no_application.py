"""A stream's id names no application: whatever route takes one answers as for an application that is not there."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.web.known_good import GOOD, ROUTES, STREAM_SINK, ask
from tests.web.protocols import Served, served
from tests.webhooks.streams.test_streams import make_stream
from tests.webhooks.world import WebhooksWorld

from pushhub.base.errors import NotFound
from pushhub.engine.model.consumed import Consumed
from pushhub.web.api import Auth
from pushhub.webhooks.model.ids import IdPrefix, new_id
from pushhub.webhooks.wiring import Webhooks

TAKING = [name for name, route in ROUTES.items() if "{app}" in route.path]
"""Every route of every protocol that takes an application's id."""


def _state(api: Served) -> Any:
    ports = api.world.ports
    return (
        list(ports.endpoints._endpoints.values()),
        sorted(each["id"] for each in ask(api, "webhooks.list_applications").body["data"]),
        ask(api, "webhooks.list_streams").body["data"],
    )


def test_all_routes_are_read() -> None:
    assert len(TAKING) > 70
    assert {"webhooks.patch_endpoint", "webhooks.create_message", "webhooks.show_public_keys"} <= set(TAKING)


@pytest.mark.parametrize("name", TAKING)
def test_every_route_of_an_application_refuses_a_stream(name: str) -> None:
    # Given a stream with a sink and an event, and a request that is good for an application
    api = served("webhooks")
    names, more = GOOD[name].prepare(api)
    api.token = api.world.token
    api.call(ROUTES["webhooks.replace_event_type"], {"description": ""}, names={"event_type": "user.created"})
    stream = ask(api, "webhooks.create_stream", {"name": "Orders"}).body["id"]
    sink = ask(api, "webhooks.create_stream_sink", STREAM_SINK, stream=stream).body["id"]
    event = {"eventType": "user.created", "payload": "{}"}
    ask(api, "webhooks.create_stream_events", {"events": [event]}, stream=stream)
    own = ask(api, "webhooks.list_stream_events", stream=stream).body["data"][0]["id"]
    portal = ask(api, "webhooks.stream_access", {}, stream=stream).body["token"]
    before = _state(api)
    # When it names the stream, and what is the stream's
    route, good = ROUTES[name], GOOD[name]
    named = {**names, "app": stream}
    for key, value in (("endpoint", sink.replace("sink_", "ep_")), ("destination", sink), ("message", own)):
        if key in named:
            named[key] = value
    body, query = good.body, dict(good.query)
    if isinstance(body, dict):
        body = {**body, **more}
    else:
        query |= more
    # Then it is answered as for an application that is not there, whoever asks
    answer = api.call(route, body, names=named, query=query)
    assert (answer.status, answer.body) == (404, {"code": "not_found", "detail": "Entity not found"})
    if route.auth is not Auth.NONE:
        missing = {**named, "app": new_id(IdPrefix.APPLICATION, api.world.clock.now())}
        theirs = [api.call(route, body, names=each, query=query, token=portal).status for each in (named, missing)]
        assert theirs == [403 if route.auth is Auth.PROJECT else 404] * 2
    # And nothing has changed
    assert _state(api) == before


def test_usage_is_not_counted_for_a_stream_as_for_an_application(world: WebhooksWorld) -> None:
    stream, app = make_stream(world), world.make_app()
    asked = {"since": "2026-11-10T00:00:00Z", "until": "2026-11-18T00:00:00Z", "appIds": [stream, app]}
    assert world.ask("POST", "/stats/usage/app", asked)["unresolvedAppIds"] == [stream]


def test_what_is_consumed_goes_into_no_stream(world: WebhooksWorld) -> None:
    stream = make_stream(world)
    consumed = Consumed(body=b"{}", event_type="a", event_id="1", at=world.clock.now())
    with pytest.raises(NotFound):
        world.hub.part(Webhooks).takes_in.take_in(PROJECT, stream, [consumed])
    assert world.ask("GET", f"/stream/{stream}/events")["data"] == []


def test_no_application_is_named_like_a_stream(world: WebhooksWorld) -> None:
    uid = new_id(IdPrefix.STREAM, world.clock.now())
    assert world.call("POST", "/app", {"name": "x", "uid": uid}).status == 422


def test_a_streams_events_are_listed_and_erased(world: WebhooksWorld) -> None:
    # Given a stream with a sink, and two events, of which one has to go
    stream = make_stream(world)
    path = f"/stream/{stream}/sink"
    sink = world.ask("POST", path, {"type": "poller", "config": {}})["id"]
    events = [{"eventType": "order.paid", "payload": f'{{"n": {each}}}'} for each in range(2)]
    world.ask("POST", f"/stream/{stream}/events", {"events": events})
    second, first = world.ask("GET", f"/stream/{stream}/events")["data"]
    assert (first["payload"], second["payload"]) == ({"n": 0}, {"n": 1})
    # When its payload is deleted
    assert world.call("DELETE", f"/stream/{stream}/events/{first['id']}/content").status == 204
    world.run(seconds=10)
    # Then the sink does not get it, and the list says that it is gone
    assert [each["payload"] for each in world.ask("GET", f"{path}/{sink}/events")["data"]] == ['{"n": 1}']
    assert world.ask("GET", f"/stream/{stream}/events")["data"][1]["payload"] == {"expired": True}
    # And an owner's token looks, and erases nothing
    token = world.ask("POST", f"/auth/stream-portal-access/{stream}", {})["token"]
    assert world.call("GET", f"/stream/{stream}/events", token=token).status == 200
    assert world.call("DELETE", f"/stream/{stream}/events/{second['id']}/content", token=token).status == 403


def test_an_external_id_is_the_streams_own(world: WebhooksWorld) -> None:
    first, second = (world.ask("GET", f"/stream/{make_stream(world)}/external-id") for _ in range(2))
    assert first["externalId"] != second["externalId"]
    assert first["principal"] == second["principal"]
