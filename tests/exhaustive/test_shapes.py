"""Every value of every good request, replaced by every kind of value: carried out, or refused in the dialect, and never
a fault.
"""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from typing import Any

import pytest
from tests.fakes import Reply
from tests.web.described import violation
from tests.web.known_good import GOOD, NOTIFICATION, ROUTES, ask, request_to
from tests.web.protocols import Served
from tests.web.shapes import ABSENT, ODD, as_bytes, filled, places, refusal_in_dialect, with_value, world_of

from pushhub.web.api import Body


def settle(api: Served, name: str) -> None:
    """Process and show what was accepted: that is never a fault, either."""
    match name.partition(".")[0]:
        case "ironmq":
            for queue in ("q", "p", "new", "changed"):
                for shown in ("ironmq.show_queue", "ironmq.peek_messages"):
                    assert api.call(ROUTES[shown], names={"queue": queue}).status in {200, 404}
            ask(api, "ironmq.list_queues")
        case "hub":
            ask(api, "hub.push_message", {"message": "order:new", "payload": {"number": "R1", "status": "complete"}})
            api.world.run(seconds=1)
            for listed in ("mappings", "parameters", "schedulers", "integrations", "notifications"):
                ask(api, f"hub.list_{listed}")
            for queue in ("incoming", "accepted", "archived"):
                ask(api, "hub.show_queue", id=queue)
        case "webhooks":
            # Whoever asked, the project's token looks.
            shown, api.token = api.token, api.world.token
            for each in ask(api, "webhooks.list_applications").body["data"]:
                ask(api, "webhooks.list_endpoints", app=each["id"])
            ask(api, "webhooks.list_event_types")
            api.token = shown
        case _:
            ask(api, "notifications.list_subscriptions", query={"pageSize": "100"})
            ask(api, "notifications.publish", NOTIFICATION)
            api.world.send_all()


@pytest.fixture
def api(request: pytest.FixtureRequest) -> Served:
    return world_of(request.getfixturevalue("name"))


WITH_BODY = [each for each in GOOD if ROUTES[each].body in {Body.JSON, Body.JSON_OR_FORM}]
EACH_TYPE = ("null", "false", "1.5", '"x"', "[]", "{}")
"""One value of each type of JSON, which every route tries everywhere."""
MOST_SHARING = 4


@cache
def sharing() -> dict[tuple[str, str, str], list[str]]:
    """The routes of a protocol whose good bodies have the same value in the same field: the field's reader is the
    same, so that they share what else is tried there.
    """
    routes: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for name in WITH_BODY:
        for path in places(GOOD[name].body):
            key = _field(name, GOOD[name].body, path)
            if path and name not in routes[key]:
                routes[key].append(name)
    return routes


def _field(name: str, body: Any, path: tuple[Any, ...]) -> tuple[str, str, str]:
    value = body
    for key in path:
        value = value[key]
    return name.partition(".")[0], ".".join(map(str, path[-2:])), json.dumps(value)


def odd_values(name: str, body: Any, path: tuple[Any, ...]) -> list[Any]:
    """The values that a route tries at a place of its body."""
    if not path:
        return [*ODD]
    routes = sharing().get(_field(name, body, path), [name])
    shares = min(len(routes), MOST_SHARING)
    own = routes.index(name) % shares if name in routes else 0
    chosen = [odd for place, odd in enumerate(ODD) if place % shares == own or json.dumps(odd) in EACH_TYPE]
    return [*chosen, ABSENT]


def test_routes_that_share_a_field_try_every_value_in_it_together() -> None:
    for (protocol, *_), routes in sharing().items():
        assert {each.partition(".")[0] for each in routes} == {protocol}
    # Given the name of a mapping, which two routes read
    body = GOOD["hub.make_mapping"].body
    tried = {name: odd_values(name, body, ("mapping", "name")) for name in ("hub.make_mapping", "hub.change_mapping")}
    # Then each tries one value of each type, and both together every value
    written = {name: {json.dumps(each) for each in values if each is not ABSENT} for name, values in tried.items()}
    assert all(set(EACH_TYPE) <= each for each in written.values())
    assert set.union(*written.values()) == {json.dumps(each) for each in ODD}


@pytest.mark.parametrize("name", WITH_BODY)
def test_no_value_in_a_body_is_a_fault(name: str) -> None:
    good, route = GOOD[name], ROUTES[name]
    _, body, _ = request_to(world_of(name), name)
    for path in [*places(body)]:
        api = world_of(name)
        prepared = accepted = None
        for odd in odd_values(name, body, path):
            # Given the object of the request, which a refusal leaves as it is
            names, fields = prepared = prepared or good.prepare(api)
            if accepted == names:
                # What was accepted before is about to be overwritten; several objects are settled together.
                settle(api, name)
                accepted = None
            whole, query = filled(good.body, good.query, fields)
            # When one value in it is replaced
            answer = api.call(route, as_bytes(with_value(whole, path, odd)), names=names, query=query)
            # Then it is carried out, or refused in the dialect
            case = f"{path}: {str(odd)[:60]!r}: {answer}"
            assert answer.status == route.status or refusal_in_dialect(name, answer), case
            assert violation(name, answer) is None, case
            accepted = names if answer.status == route.status else accepted
            prepared = prepared if answer.status >= 400 else None
        if accepted is not None:
            settle(api, name)


@pytest.mark.parametrize("name", [each for each in GOOD if ROUTES[each].query])
def test_no_value_in_a_query_is_a_fault(api: Served, name: str) -> None:
    good, route = GOOD[name], ROUTES[name]
    for field in route.query:
        prepared = None
        for odd in [each for each in ODD if isinstance(each, str)]:
            names, fields = prepared = prepared or good.prepare(api)
            body, query = filled(good.body, good.query, fields)
            answer = api.call(route, body, names=names, query={**query, field: odd})
            case = f"{field}: {str(odd)[:60]!r}: {answer}"
            assert answer.status == route.status or refusal_in_dialect(name, answer), case
            assert violation(name, answer) is None, case
            prepared = prepared if answer.status >= 400 else None


@pytest.mark.parametrize("name", GOOD)
def test_no_name_in_a_path_is_a_fault(api: Served, name: str) -> None:
    good, route = GOOD[name], ROUTES[name]
    for segment in [each[1:-1] for each in route.path.split("/") if each.startswith("{")]:
        prepared = None
        for odd in [each for each in ODD if isinstance(each, str)]:
            names, fields = prepared = prepared or good.prepare(api)
            body, query = filled(good.body, good.query, fields)
            answer = api.call(route, body, names={**names, segment: odd}, query=query)
            case = f"{segment}: {str(odd)[:60]!r}: {answer}"
            assert answer.status == route.status or refusal_in_dialect(name, answer), case
            # Without the name it would be another path
            assert not odd or violation(name, answer) is None, case
            prepared = prepared if answer.status >= 400 else None


NO_JSON = (
    b"",
    b" ",
    b"{",
    b"\xff",
    b'{"a": 1, "a": 2}',
    b"[" * 100_000,
    b"NaN",
    b'"\\ud800"',
    b"\xef\xbb\xbf{}",
    b"a=%ff&b[=1",
)


@pytest.mark.parametrize("name", [each for each in GOOD if ROUTES[each].body is not Body.NONE])
def test_no_body_that_is_no_json_is_a_fault(api: Served, name: str) -> None:
    good, route = GOOD[name], ROUTES[name]
    prepared = None
    for body in NO_JSON:
        names, _ = prepared = prepared or good.prepare(api)
        answer = api.call(route, body, names=names, query=good.query)
        case = f"{body[:20]!r}: {answer}"
        assert answer.status == route.status or refusal_in_dialect(name, answer), case
        assert violation(name, answer) is None, case
        prepared = prepared if answer.status >= 400 else None


@pytest.mark.parametrize("name", [each for each in GOOD if ROUTES[each].body is Body.JSON_OR_FORM])
def test_no_form_is_a_fault(api: Served, name: str) -> None:
    good, route = GOOD[name], ROUTES[name]
    prepared = None
    for path in [each for each in places(good.body) if each and all(isinstance(key, str) for key in each)]:
        field = path[0] + "".join(f"[{key}]" for key in path[1:])
        for spelling in ("{}", "{}[]", "{}[x]", "{}[][x]", "{}[0][x]", "{}[", "{}]", "{}[x][y][z][a][b][c][d]"):
            for text in ("", "x", "1", "{}", "[]", "%ff", "%ed%a0%80", "%00"):
                names, _ = prepared = prepared or good.prepare(api)
                body = f"{spelling.format(field)}={text}&{field}={text}&more[]=1".encode()
                answer = api.call(route, body, names=names)
                case = f"{body!r}: {answer}"
                assert answer.status == route.status or refusal_in_dialect(name, answer), case
                prepared = prepared if answer.status >= 400 else None
            assert violation(name, answer) is None, case


DESCRIPTION = {
    "name": "acme",
    "display": "Acme",
    "icon_url": "https://acme.example/icon.png",
    "services": [
        {
            "name": "import",
            "path": "/import",
            "required": True,
            "requires": {"parameters": [{"name": "api_key", "data_type": "integer", "value": 1}]},
            "recommends": {
                "messages": ["order:new"],
                "identifiers": {"number": "payload.order.number"},
                "filters": [{"path": "payload.status", "operator": "eq", "value": "complete"}],
                "options": {"retries_allowed": False},
                "schedule": {"count": 1, "interval": "hour"},
            },
        }
    ],
}


def test_nothing_that_an_endpoint_says_of_itself_is_a_fault() -> None:
    good = GOOD["hub.register_integration"]
    for path in [*places(DESCRIPTION)]:
        api = world_of("hub.register_integration")
        for odd in (*ODD, *((ABSENT,) if path else ())):
            # Given an endpoint that describes itself with one odd value
            good.prepare(api)
            content = as_bytes(with_value(DESCRIPTION, path, odd))
            api.world.sender.script("https://acme.example/endpoint.json", Reply(status_code=200, body=content))
            # When it is registered, signed up for, and shown, then that is carried out or refused
            case = f"{path}: {str(odd)[:60]!r}"
            created = api.call(ROUTES["hub.register_integration"], good.body)
            assert created.status == 201, (case, created)
            sign_up = {"parameters": {"api_key": "1"}, "enabled": ["import"]}
            signed = api.call(ROUTES["hub.sign_up"], sign_up, names={"id": created.body["id"]})
            assert signed.status == 200 or refusal_in_dialect("hub.sign_up", signed), (case, signed)
            for listed in ("mappings", "schedulers", "integrations"):
                ask(api, f"hub.list_{listed}")
