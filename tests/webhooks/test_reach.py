"""Callers, destinations and routes: what the holder of a portal's token may have sent where.

The cells are made from the lists of routes, kinds of subscribers, scopes and callers, so a new one of any of them is
tested without being named here, or fails for want of an example.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.fakes import Reply
from tests.fakes.credentials import credentials
from tests.web.known_good import EVENT_TYPE, GOOD, ROUTES, WEBHOOK_ENDPOINT, ask
from tests.web.protocols import Served, served
from tests.webhooks.world import OTHER_PROJECT, WebhooksWorld

from pushhub.base.credentials import masked_url
from pushhub.base.sink_url import AWS_SCHEMES
from pushhub.engine.model.reach import Reach, Scope
from pushhub.engine.target import OUT_OF_REACH
from pushhub.sinks.kinds import KINDS
from pushhub.web.api import Auth
from pushhub.webhooks.endpoints.credentials import opened
from pushhub.webhooks.model.endpoint import Endpoint
from pushhub.webhooks.model.event_type import seen_with

TOKEN = "t0ken-that-opens-another-place"
ROLE = "arn:aws:iam::111122223333:role/hub"
DESTINATIONS: dict[str, dict[str, Scope]] = {
    "http": {"http://b.example/in": Scope.PUBLIC},
    "https": {"https://b.example/in": Scope.PUBLIC},
    "ironmq": {
        "ironmq:///inner": Scope.PROJECT,
        f"ironmq://{PROJECT}:{TOKEN}@/inner": Scope.ELSEWHERE,
        f"ironmq://{OTHER_PROJECT}:{TOKEN}@/theirs": Scope.ELSEWHERE,
        f"IronMQ://{OTHER_PROJECT}:{TOKEN}@other-hub.example/theirs": Scope.ELSEWHERE,
    },
    "ironworker": {f"ironworker://{OTHER_PROJECT}:{TOKEN}@worker.example/code": Scope.ELSEWHERE},
    "notification2": {"notification2://alarms?api=alarms": Scope.PROJECT},
    # Whose they are is proved by a key in the URL, or by the external id that is the application's own.
    **{each: {f"{each}://eu-west-1/111122223333/xyz?role={ROLE}": Scope.PUBLIC} for each in AWS_SCHEMES},
}
"""Of each kind of subscriber: URLs, and whose their destinations are."""

BARE = frozenset(each.scheme for each in KINDS if not each.carries_headers)
"""Kinds on AWS whose messages carry neither headers nor a signature."""

URLS = {url: scope for urls in DESTINATIONS.values() for url, scope in urls.items()}
OUT_OF_A_PORTALS_REACH = frozenset({Scope.PROJECT, Scope.ELSEWHERE})


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every value in a JSON value, with its path."""
    yield path, value
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in children:
        yield from places(each, (*path, key))


def with_value(whole: Any, path: tuple[Any, ...], value: Any) -> Any:
    copied = json.loads(json.dumps(whole))
    inner = copied
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return copied


ELSEWHERE = {
    *("webhooks.set_oauth", "webhooks.set_operational_oauth"),
    *("webhooks.set_application_frame", "webhooks.set_portal_frame"),
    *("webhooks.create_sink", "webhooks.replace_sink", "webhooks.patch_sink"),
    *("webhooks.create_stream_sink", "webhooks.replace_stream_sink", "webhooks.patch_stream_sink"),
    "webhooks.subscribe",
}
"""Routes whose URLs are of token servers, of pages, of queues of SQS, or of HTTP alone: no message is sent to them as
they are written, and their own tests say who may set them. And the one for which neither a project's token nor a
portal's does.
"""

SETTERS = [
    (name, path)
    for name, good in GOOD.items()
    for path, value in places(good.body)
    if isinstance(value, str) and value.partition("://")[0] in {"http", "https"} and name not in ELSEWHERE
]
"""Each place in the body of each route of all protocols that takes the URL of a destination."""

CHOOSERS = [
    (name, path)
    for name, good in GOOD.items()
    for path, value in places(good.body)
    if name not in ELSEWHERE and "url" in (good.body or {}) and path[-1:] in {("eventTypes",), ("filterTypes",)}
]
"""Each place that takes the event types of an endpoint."""

WITHHELD = ("/secret", "/headers", "/signatures", "/oauth", "/oauth-config", "/mtls", "/mtls-config", "/transformation")
"""What a portal does not even see of an endpoint out of its reach."""
PORTALS = [
    name
    for name, route in ROUTES.items()
    if name.startswith("webhooks.")
    and route.auth is not Auth.NONE
    and not any(each in route.path for each in ("{destination}", "{autoconfig}", "{stream}"))
]
"""Not of those that know endpoints on AWS only, none of which is out of a portal's reach, nor of those that take keys
of their own, nor of streams, which are no applications with endpoints.
"""


def portal(api: Served, app: str, **asked: Any) -> str:
    """A new token that opens an application."""
    return str(ask(api, "webhooks.portal_access", asked, app=app).body["token"])


def stored(api: Served) -> list[Endpoint]:
    """Every endpoint of the hub."""
    return list(api.world.ports.endpoints._endpoints.values())


def test_there_are_examples_of_every_kind_of_subscriber_and_routes_that_take_urls() -> None:
    hub = WebhooksWorld().hub
    assert set(DESTINATIONS) == set(hub.engine.targets.schemes)
    assert {scope for scope in Scope if scope is not Scope.APPLICATION} == set(URLS.values())
    assert {"webhooks.create_endpoint", "webhooks.replace_endpoint", "webhooks.patch_endpoint"} <= {
        name for name, _ in SETTERS
    }
    assert len(SETTERS) >= 9
    assert len(CHOOSERS) >= 6


@pytest.mark.parametrize("url", URLS)
def test_the_scope_of_a_url_is_whose_its_destination_is(url: str) -> None:
    targets = WebhooksWorld().hub.engine.targets
    assert targets.scope(url) is URLS[url]
    assert targets.scope(f"webhooks:{url}") is URLS[url]
    assert targets.scope("unheard-of://place") is Scope.ELSEWHERE


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize(("name", "path"), SETTERS, ids=str)
def test_a_portal_registers_nothing_that_is_out_of_its_reach(name: str, path: tuple[Any, ...], url: str) -> None:
    # Given a portal's token of a project that uses every protocol
    hub = served("webhooks")
    app = ask(hub, "webhooks.create_application", {"name": "Acme"}).body["id"]
    protocol = name.partition(".")[0]
    api = served(protocol)
    names, fields = GOOD[name].prepare(api)
    if protocol == "webhooks":
        token = portal(api, names["app"], featureFlags=["beta"]) if "app" in names else portal(api, _app(api))
    else:
        token = portal(hub, app)
    before = stored(api) if protocol == "webhooks" else None
    # When it presents the token on a route that takes a URL
    body = with_value({**GOOD[name].body, **fields}, path, url)
    if url.partition(":")[0] in BARE:
        # Such events carry neither headers nor a signature.
        body = {each: value for each, value in body.items() if each not in ("headers", "secret")}
        if {"app", "endpoint"} <= names.keys():
            ask(api, "webhooks.set_headers", {"headers": {}}, app=names["app"], endpoint=names["endpoint"])
    answer = api.call(ROUTES[name], body, names=names, token=token)
    # Then only a portal's own routes take it, and no destination but a public one
    if protocol != "webhooks":
        assert answer.status == 401
        return
    if ROUTES[name].auth is Auth.PROJECT:
        assert answer.status == 403
    elif URLS[url] in OUT_OF_A_PORTALS_REACH:
        assert (answer.status, answer.body["detail"][0]["loc"][:2]) == (422, ["body", "url"])
    else:
        assert answer.status == ROUTES[name].status
        assert [each.reach for each in stored(api) if each.fields.url == url] == [Reach.PORTAL]
        return
    assert stored(api) == before


def _app(api: Served) -> str:
    return str(ask(api, "webhooks.create_application", {"name": "Other"}).body["id"])


def _without_headers(api: Served, names: dict[str, str]) -> None:
    """Take the headers of an endpoint, so that it may become a topic."""
    if "endpoint" in names:
        of_application = "webhooks.set_headers" if "app" in names else "webhooks.replace_operational_headers"
        name = "webhooks.set_source_headers" if "source" in names else of_application
        assert api.call(ROUTES[name], {"headers": {}}, names=names).status == ROUTES[name].status


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize(("name", "path"), [each for each in SETTERS if each[0].startswith("webhooks.")], ids=str)
def test_a_token_of_the_project_registers_all_of_them(name: str, path: tuple[Any, ...], url: str) -> None:
    api = served("webhooks")
    names, _ = GOOD[name].prepare(api)
    body = with_value(GOOD[name].body, path, url)
    if not api.world.hub.engine.targets.carries_headers(url):
        # What has no headers, as topics, has no signatures either.
        body = {field: value for field, value in body.items() if field not in ("headers", "secret")}
        _without_headers(api, names)
    answer = api.call(ROUTES[name], body, names=names)
    assert answer.status == ROUTES[name].status
    kept = [opened(each, credentials()) for each in stored(api)]
    assert [each.reach for each in kept if each.fields.url == url] == [Reach.PROJECT]


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("reach", Reach)
def test_what_is_stored_is_delivered_only_within_the_reach_of_whoever_set_it(reach: Reach, url: str) -> None:
    # Given an endpoint that was stored when nothing was checked
    world = WebhooksWorld()
    world.sender.script("https://b.example/in", Reply())
    app = world.make_app()
    [endpoint] = _set_all(world, app, url, reach)
    # When a message is posted, and resent by the project
    message = world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}})["id"]
    world.run(seconds=2)
    world.call("POST", f"/app/{app}/msg/{message}/endpoint/{endpoint.endpoint_id}/resend")
    world.run(seconds=2)
    # Then nothing leaves, and its attempts say why, if it is out of the reach of whoever set it
    attempts = world.ask("GET", f"/app/{app}/attempt/msg/{message}")["data"]
    refused = reach is Reach.PORTAL and URLS[url] in OUT_OF_A_PORTALS_REACH
    assert attempts
    assert {each["response"] == OUT_OF_REACH for each in attempts} == {refused}
    if refused:
        assert world.sender.requests == []
        assert world.config.queue(PROJECT, "inner") is None
        # Until a token of the project sets the URL
        world.ask("PATCH", f"/app/{app}/endpoint/{endpoint.endpoint_id}", {"url": url})
        world.ask("POST", f"/app/{app}/msg/{message}/endpoint/{endpoint.endpoint_id}/resend")
        world.run(seconds=2)
        attempts = world.ask("GET", f"/app/{app}/attempt/msg/{message}")["data"]
        assert {each["response"] for each in attempts} > {OUT_OF_REACH}


def _set_all(world: WebhooksWorld, app: str, url: str, reach: Reach) -> list[Endpoint]:
    """Endpoints of an application with a URL, whoever set it."""
    created = world.make_endpoint(app, uid="inner")
    there = world.ports.endpoints.endpoint(PROJECT, app, created)
    assert there is not None
    fields = replace(there.fields, url=url)
    return [world.ports.endpoints.put_endpoint(replace(there, fields=fields, reach=reach), there)]


def test_hosts_that_the_operator_opened_to_a_project_are_not_open_to_its_portals(world: WebhooksWorld) -> None:
    # Given a project with a host of its own, and endpoints there that the project and a portal made
    world.config.put_project(replace(_project(world), allowed_targets=("10.0.0.5",)))
    app = world.make_app()
    token = str(world.ask("POST", f"/auth/app-portal-access/{app}", {})["token"])
    for uid, by in (("theirs", world.token), ("portals", token)):
        world.ask("POST", f"/app/{app}/endpoint", {"url": f"http://10.0.0.5/{uid}", "uid": uid}, token=by)
    # When a message is sent, then the guard is told so
    world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}})
    world.run(seconds=1)
    allowed = {each.url: each.allowed_targets for each in world.sender.requests}
    assert allowed == {"http://10.0.0.5/theirs": ("10.0.0.5",), "http://10.0.0.5/portals": ()}
    # A portal that sets the URL that is there takes nothing from it; the project confirms what a portal set
    world.ask("PATCH", f"/app/{app}/endpoint/theirs", {"url": "http://10.0.0.5/theirs"}, token=token)
    world.ask("PATCH", f"/app/{app}/endpoint/portals", {"url": "http://10.0.0.5/portals"})
    found = [world.ports.endpoints.endpoint(PROJECT, app, uid) for uid in ("theirs", "portals")]
    assert [each.reach for each in found if each] == [Reach.PROJECT] * 2
    # And one that a portal moves is the portal's
    world.ask("PUT", f"/app/{app}/endpoint/theirs", {"url": "http://10.0.0.6/", "uid": "theirs"}, token=token)
    moved = world.ports.endpoints.endpoint(PROJECT, app, "theirs")
    assert moved is not None
    assert moved.reach is Reach.PORTAL


def _project(world: WebhooksWorld) -> Any:
    return world.config.project(PROJECT)


@pytest.mark.parametrize("url", [url for url, scope in URLS.items() if scope in OUT_OF_A_PORTALS_REACH])
def test_a_portal_sees_that_a_tenants_endpoint_is_there_and_no_more(url: str) -> None:
    # Given an endpoint of the tenant, with an attempt and a secret in its URL, and the same after it moved
    api = served("webhooks")
    names, _ = GOOD["webhooks.list_destinations"].prepare(api)
    token, one = portal(api, names["app"], featureFlags=["beta"]), names["endpoint"]
    _without_headers(api, names)
    ask(api, "webhooks.patch_endpoint", {"url": url}, app=names["app"], endpoint=one)
    body = {"eventType": "user.created", "payload": {"a": {"b": [1]}}, "channels": ["a"]}
    names["message"] = ask(api, "webhooks.create_message", body, app=names["app"]).body["id"]
    api.world.run(seconds=1)
    created = ask(api, "webhooks.list_attempts_of_message", app=names["app"], message=names["message"]).body["data"]
    connector = ask(api, "webhooks.create_connector", GOOD["webhooks.create_connector"].body).body["id"]
    polled = ask(api, "webhooks.create_sink", {"type": "pollingEndpoint"}, app=names["app"]).body["id"]
    names |= {"attempt": created[0]["id"], "event_type": "user.created", "connector": connector, "sink": polled}
    assert created[0]["url"] == masked_url(url)
    kept = [each for each in stored(api) if each.endpoint_id == one]
    # When a portal's token is presented on every route that it may use
    for name in PORTALS:
        route = ROUTES[name]
        if route.auth is Auth.PROJECT or name == "webhooks.logout":
            continue
        answer = api.call(route, GOOD[name].body, names=names, token=token)
        # Then it looks at the endpoint, without what opens the place behind it, and nothing else
        case = f"{name}: {answer}"
        assert url not in json.dumps(answer.body), case
        assert TOKEN not in json.dumps(answer.body), case
        touches = "{endpoint}" in route.path and (route.method != "GET" or route.path.endswith(WITHHELD))
        if touches:
            assert (answer.status, answer.body["code"]) == (403, "insufficient access"), case
        elif route.method == "GET":
            assert answer.status == 200, case
    assert [each for each in stored(api) if each.endpoint_id == one] == kept
    shown = api.call(ROUTES["webhooks.show_endpoint"], names=names, token=token).body
    assert shown["url"] == f"{url.partition(':')[0]}://hidden"
    # And its old attempts stay hidden when it has moved to a public place
    ask(api, "webhooks.patch_endpoint", {"url": "https://b.example/in"}, app=names["app"], endpoint=one)
    listed = api.call(ROUTES["webhooks.list_attempts_of_message"], names=names, token=token).body["data"]
    assert url not in json.dumps(listed)
    assert api.call(ROUTES["webhooks.patch_endpoint"], {"description": "x"}, names=names, token=token).status == 200


def test_a_portals_change_that_loses_a_race_does_not_take_the_tenants_endpoint(world: WebhooksWorld, app: str) -> None:
    # Given an endpoint that the tenant aims at a queue while a portal's change is on its way
    token = str(world.ask("POST", f"/auth/app-portal-access/{app}", {})["token"])
    endpoint = world.make_endpoint(app)
    path, store = f"/app/{app}/endpoint/{endpoint}", world.ports.endpoints
    put = store.put_endpoint

    def raced(after: Endpoint, before: Endpoint | None) -> Endpoint:
        store.put_endpoint = put  # type: ignore[method-assign]
        world.ask("PATCH", path, {"url": "ironmq:///inner"})
        return put(after, before)

    for method, body in (("PATCH", {"url": "https://b.example/in"}), ("PUT", {"url": "https://b.example/in"})):
        world.ask("PATCH", path, {"url": "https://a.example/in"})
        store.put_endpoint = raced  # type: ignore[method-assign,assignment]
        assert world.call(method, path, body, token=token).status == 403
        assert world.ask("GET", path)["url"] == "ironmq:///inner"


# Event types behind a feature flag


@pytest.mark.parametrize("flags", [[], ["other"], ["beta"], ["other", "beta"]])
@pytest.mark.parametrize(("name", "path"), CHOOSERS, ids=str)
def test_a_portal_chooses_no_event_type_whose_flag_it_lacks(name: str, path: tuple[Any, ...], flags: list[str]) -> None:
    api = served("webhooks")
    ask(api, "webhooks.create_event_type", EVENT_TYPE)
    names, _ = GOOD[name].prepare(api)
    if "endpoint" in names and "app" in names:
        api.call(ROUTES["webhooks.patch_endpoint"], {"eventTypes": None}, names=names)
    app = names.get("app") or _app(api)
    body = {"url": WEBHOOK_ENDPOINT["url"], path[-1]: GOOD[name].body[path[-1]]}
    answer = api.call(ROUTES[name], body, names=names, token=portal(api, app, featureFlags=flags))
    if ROUTES[name].auth is Auth.PROJECT:
        assert answer.status == 403
        return
    if "beta" in flags:
        assert answer.status == ROUTES[name].status
    else:
        assert (answer.status, answer.body["detail"][0]["loc"]) == (422, ["body", "eventTypes"])
    # What the tenant chose stays
    if "endpoint" in names:
        api.call(ROUTES["webhooks.patch_endpoint"], {"eventTypes": ["user.created"]}, names=names)
        kept = api.call(ROUTES[name], body, names=names, token=portal(api, app))
        assert kept.status == ROUTES[name].status


@pytest.mark.parametrize("flags", [[], ["other"], ["beta"]])
def test_all_event_types_of_a_portal_are_those_that_it_may_see(world: WebhooksWorld, flags: list[str]) -> None:
    # Given event types with and without a flag, and endpoints for all types that a portal and the tenant made
    for name, of_type in (("open", {}), ("hidden", {"featureFlags": ["beta"]})):
        world.ask("POST", "/event-type", {"name": name, "description": "x", **of_type})
    app = world.make_app()
    token = str(world.ask("POST", f"/auth/app-portal-access/{app}", {"featureFlags": flags})["token"])
    world.make_endpoint(app, "https://t.example/")
    created = world.ask("POST", f"/app/{app}/endpoint", {"url": "https://p.example/"}, token=token)["id"]
    # When messages of both are posted, and what is missing is replayed
    began = world.clock.now()
    for name in ("open", "hidden", "unknown"):
        world.ask("POST", f"/app/{app}/msg", {"eventType": name, "payload": {}})
    world.run(seconds=2)
    since = {"since": "2026-11-10T00:00:00Z"}
    world.ask("POST", f"/app/{app}/endpoint/{created}/replay-missing", since, token=token)
    world.run(seconds=70)
    assert world.clock.now() > began
    # Then the portal's gets those that its token showed
    got = [each.url for each in world.sender.requests]
    assert got.count("https://t.example/") == 3
    assert got.count("https://p.example/") == (3 if seen_with(frozenset(flags), ["beta"]) else 2)
    # Until the tenant chooses
    world.ask("PATCH", f"/app/{app}/endpoint/{created}", {"filterTypes": None})
    world.ask("POST", f"/app/{app}/msg", {"eventType": "hidden", "payload": {}})
    world.run(seconds=2)
    assert [each.url for each in world.sender.requests][len(got) :].count("https://p.example/") == 1


@pytest.mark.parametrize("flags", [[], ["beta"]])
def test_a_portal_has_nothing_sent_again_that_was_not_sent_and_that_it_could_not_choose(flags: list[str]) -> None:
    # Given a message behind a flag that one of the tenant's endpoints got, and an endpoint of a portal's
    world = WebhooksWorld()
    world.ask("POST", "/event-type", {"name": "hidden", "description": "x", "featureFlags": ["beta"]})
    app = world.make_app()
    token = str(world.ask("POST", f"/auth/app-portal-access/{app}", {"featureFlags": flags})["token"])
    theirs = world.make_endpoint(app, "https://t.example/")
    created = world.ask("POST", f"/app/{app}/endpoint", {"url": "https://p.example/"}, token=token)["id"]
    world.ask("PATCH", f"/app/{app}/endpoint/{created}", {"channels": ["other"]})
    message = world.ask("POST", f"/app/{app}/msg", {"eventType": "hidden", "payload": {}})["id"]
    world.run(seconds=2)
    may = bool(flags)
    # When the portal has it sent to its own, alone or with all others, Then it comes if the flag was there
    again = world.call("POST", f"/app/{app}/msg/{message}/endpoint/{created}/resend", {}, token=token)
    assert again.status == (202 if may else 403)
    since = {"since": "2026-11-10T00:00:00Z"}
    for endpoint in (created, theirs):
        world.ask("POST", f"/app/{app}/endpoint/{endpoint}/bulk-replay", since, token=token)
        world.run(seconds=70)
    got = [each.url for each in world.sender.requests]
    assert ("https://p.example/" in got) == may
    # And what the tenant had sent somewhere can be sent there again
    assert got.count("https://t.example/") == 2
    again = world.call("POST", f"/app/{app}/msg/{message}/endpoint/{theirs}/resend", {}, token=token)
    assert again.status == 202
    # And the tenant sends what it likes
    world.ask("POST", f"/app/{app}/msg/{message}/endpoint/{created}/resend", {})
