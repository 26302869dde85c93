"""Every value of every good request, replaced by every kind of value: carried out, or refused in the dialect, and never
a fault.
"""

from __future__ import annotations

import copy
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import Reply
from tests.web.described import violation
from tests.web.known_good import GOOD, NOTIFICATION, ROUTES, ask
from tests.web.protocols import Answer, Served, served

import pushhub
from pushhub.web.api import Body

HUGE = "\ue000"
"""Stands for a number that is valid in JSON but too large for Python's floats."""

ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    1.5,
    2**63,
    10**40,
    1e308,
    HUGE,
    "",
    " ",
    "x",
    "1",
    "-1",
    "nan",
    "true",
    "null",
    "[",
    "{}",
    "\x00",
    "\x7f\x85\u2028",
    "\ud800",
    "\u00fc\U0001f701",
    "%00/../{0}$#?&\"'<\\",
    "9" * 5000,
    "x" * 70_000,
    [],
    [None],
    [[]],
    [{}],
    ["x", "x"],
    {},
    {"": None},
    {"id": []},
    {"x": {"x": "x"}},
    [[[[[[[[[[["deep"]]]]]]]]]]],
)
"""Each JSON type, its extremes, and strings that have a meaning somewhere."""

ABSENT = object()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a JSON value, beginning with itself."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in children:
        yield from places(each, (*path, key))


def with_value(whole: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value at a place."""
    if not path:
        return value
    changed = copy.deepcopy(whole)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    if value is ABSENT:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return changed


def as_bytes(value: Any) -> bytes:
    return json.dumps(value).replace(json.dumps(HUGE), "1e999").encode()


def refusal_in_dialect(name: str, answer: Answer) -> bool:
    """Whether an error answer is one that clients of the protocol can read."""
    body = answer.body
    match name.partition(".")[0]:
        case "ironmq":
            return answer.status in {400, 401, 403, 404, 405, 413} and set(body) == {"msg"} and bool(body["msg"])
        case "hub":
            texts = [each for errors in body.get("errors", {}).values() for each in errors]
            told = isinstance(body["error"], str) and set(body) <= {"error", "errors"}
            return answer.status in {401, 404, 405, 409, 413, 422} and told and all(map(str, texts))
        case "webhooks":
            if answer.status == 422:
                return all(each["loc"] and each["msg"] and each["type"] for each in body["detail"])
            # Replacing under an unknown name creates.
            made = answer.status in {200, 201} and name.startswith(("webhooks.replace_", "webhooks.create_"))
            return made or (answer.status in {400, 401, 404, 405, 409, 413} and set(body) == {"code", "detail"})
        case _:
            # Notifications 2.0 answers some refusals with 500, each with its own name.
            refused = answer.status in {401, 404, 409, 413, 422} or body["error"] == "reliable-notification/Not Found"
            return refused and {"error", "message", "info"} <= set(body) and bool(body["message"])


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
            for each in ask(api, "webhooks.list_applications").body["data"]:
                ask(api, "webhooks.list_endpoints", app=each["id"])
            ask(api, "webhooks.list_event_types")
        case _:
            ask(api, "notifications.list_subscriptions", query={"pageSize": "100"})
            ask(api, "notifications.publish", NOTIFICATION)
            api.world.send_all()


@pytest.fixture
def api(request: pytest.FixtureRequest) -> Served:
    return world_of(request.getfixturevalue("name"))


def world_of(name: str) -> Served:
    """A new world for the protocol of a route; every endpoint in it accepts what it is sent."""
    made = served(name.partition(".")[0])
    if name.startswith("hub."):
        made.world.endpoints = defaultdict(lambda: lambda _: {})
    return made


def test_there_is_a_good_request_for_every_route_and_none_for_anything_else() -> None:
    assert set(GOOD) == set(ROUTES)


@pytest.mark.parametrize("name", GOOD)
def test_a_good_request_goes_well(api: Served, name: str) -> None:
    good = GOOD[name]
    names, fields = good.prepare(api)
    body, query = filled(good.body, good.query, fields)
    assert api.call(ROUTES[name], body, names=names, query=query).status == ROUTES[name].status


def filled(body: Any, query: Any, fields: dict[str, Any]) -> tuple[Any, Any]:
    """A good request, filled in with the results of its preparation."""
    if "token" in fields:
        return body, {**query, "token": fields["token"]}
    return ({**(body or {}), **fields} if fields else body), query


@pytest.mark.parametrize("name", [each for each in GOOD if ROUTES[each].body in {Body.JSON, Body.JSON_OR_FORM}])
def test_no_value_in_a_body_is_a_fault(name: str) -> None:
    good, route = GOOD[name], ROUTES[name]
    body, _ = filled(good.body, good.query, good.prepare(world_of(name))[1])
    for path in [*places(body)]:
        api = world_of(name)
        prepared = None
        for odd in (*ODD, *((ABSENT,) if path else ())):
            # Given the object of the request, which a refusal leaves as it is
            names, fields = prepared = prepared or good.prepare(api)
            whole, query = filled(good.body, good.query, fields)
            # When one value in it is replaced
            answer = api.call(route, as_bytes(with_value(whole, path, odd)), names=names, query=query)
            # Then it is carried out, or refused in the dialect
            told = f"{path}: {str(odd)[:60]!r}: {answer}"
            assert answer.status == route.status or refusal_in_dialect(name, answer), told
            assert violation(name, answer) is None, told
            if answer.status == route.status:
                settle(api, name)
            prepared = prepared if answer.status >= 400 else None


@pytest.mark.parametrize("name", [each for each in GOOD if ROUTES[each].query])
def test_no_value_in_a_query_is_a_fault(api: Served, name: str) -> None:
    good, route = GOOD[name], ROUTES[name]
    for field in route.query:
        prepared = None
        for odd in [each for each in ODD if isinstance(each, str)]:
            names, fields = prepared = prepared or good.prepare(api)
            body, query = filled(good.body, good.query, fields)
            answer = api.call(route, body, names=names, query={**query, field: odd})
            told = f"{field}: {str(odd)[:60]!r}: {answer}"
            assert answer.status == route.status or refusal_in_dialect(name, answer), told
            assert violation(name, answer) is None, told
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
            told = f"{segment}: {str(odd)[:60]!r}: {answer}"
            assert answer.status == route.status or refusal_in_dialect(name, answer), told
            # Without the name it would be another path
            assert not odd or violation(name, answer) is None, told
            prepared = prepared if answer.status >= 400 else None


@pytest.mark.parametrize("name", [each for each in GOOD if ROUTES[each].body is not Body.NONE])
@pytest.mark.parametrize(
    "body",
    [
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
    ],
)
def test_no_body_that_is_no_json_is_a_fault(api: Served, name: str, body: bytes) -> None:
    good, route = GOOD[name], ROUTES[name]
    names, _ = good.prepare(api)
    answer = api.call(route, body, names=names, query=good.query)
    assert answer.status == route.status or refusal_in_dialect(name, answer), answer
    assert violation(name, answer) is None, answer


READERS = {
    "ironmq": ("messages", "queues", "subscribers", "alerts", "policies", "span_settings"),
    "hub": ("objects", "mapping"),
    "notifications": ("publish", "requests", "subscriptions"),
}
"""The modules that read request bodies, by protocol."""
READ = re.compile(
    r"""(?:\b(?:text|integer|boolean|section|listed|number_in_query)\(\w+,\ |"""
    r"""(?:fields|given|source|entry|query)\.(?:text|whole|flag|number|texts|section|sections|raw|get)\()"(\w+)\""""
)


def keys(value: Any) -> Iterator[str]:
    """Every key in a JSON value."""
    for path in places(value):
        yield from (each for each in path if isinstance(each, str))


@pytest.mark.parametrize("protocol", READERS)
def test_the_good_requests_have_every_field_that_is_read(protocol: str) -> None:
    package = Path(pushhub.__file__).parent / protocol / "wire"
    read = {name for module in READERS[protocol] for name in READ.findall((package / f"{module}.py").read_text())}
    assert len(read) > 10
    sent: set[str] = set()
    for name, good in GOOD.items():
        if name.startswith(f"{protocol}."):
            sent |= {*keys(good.body), *good.query}
    # What only the preparation of a request knows, and what belongs to the handshake of a WebSocket
    sent |= {"reservation_id", "consumer"}
    assert read - sent == set()


@pytest.mark.parametrize("name", [each for each in GOOD if ROUTES[each].body is Body.JSON_OR_FORM])
def test_no_form_is_a_fault(api: Served, name: str) -> None:
    good, route = GOOD[name], ROUTES[name]
    for path in [each for each in places(good.body) if each and all(isinstance(key, str) for key in each)]:
        field = path[0] + "".join(f"[{key}]" for key in path[1:])
        for spelling in ("{}", "{}[]", "{}[x]", "{}[][x]", "{}[0][x]", "{}[", "{}]", "{}[x][y][z][a][b][c][d]"):
            for text in ("", "x", "1", "{}", "[]", "%ff", "%ed%a0%80", "%00"):
                names, _ = good.prepare(api)
                body = f"{spelling.format(field)}={text}&{field}={text}&more[]=1".encode()
                answer = api.call(route, body, names=names)
                told = f"{body!r}: {answer}"
                assert answer.status == route.status or refusal_in_dialect(name, answer), told
            assert violation(name, answer) is None, told


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
            told = f"{path}: {str(odd)[:60]!r}"
            made = api.call(ROUTES["hub.register_integration"], good.body)
            assert made.status == 201, (told, made)
            sign_up = {"parameters": {"api_key": "1"}, "enabled": ["import"]}
            signed = api.call(ROUTES["hub.sign_up"], sign_up, names={"id": made.body["id"]})
            assert signed.status == 200 or refusal_in_dialect("hub.sign_up", signed), (told, signed)
            for listed in ("mappings", "schedulers", "integrations"):
                ask(api, f"hub.list_{listed}")
