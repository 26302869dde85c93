"""Requests, as the hub's own description of its APIs (``/openapi.json``) has them: each example is taken; a value at a
bound that is described is taken, too; and what lies beyond it, is of another kind, or is missing, is refused without an
effect.

So the description is compared with what is done, and neither with the code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from simulation.promises.talks.shapes import IS, Shapes
from simulation.promises.talks.talk import Talk

REFUSED = {400, 413, 422}
"""What is said to values."""

URL = {"url": "https://talk-asks.example/in", "uid": "asks"}
NAMES = {
    **dict.fromkeys(("app", "endpoint", "source", "stream", "sink", "connector", "message"), "asks"),
    **{"event_type": "user.created", "consumer": "c", "destination": "asks-aws"},
}
"""What names in paths stand for."""

PREPARED: Mapping[str, Mapping[str, Any]] = {
    "POST /api/v1/app/{app}/msg/bulk-expunge": {"ids": ["msg_none"]},
    "PATCH /api/v1/app/{app}/destination/{destination}": {"type": "sqs", "config": {}},
    "PUT /api/v1/app/{app}": {"name": "Asks", "uid": "asks"},
    "PATCH /api/v1/app/{app}": {},
    "PATCH /api/v1/app/{app}/endpoint/{endpoint}": {},
    "PUT /api/v1/app/{app}/endpoint/{endpoint}": URL,
    "PUT /api/v1/operational-webhook/endpoint/{endpoint}": URL,
    "PUT /ingest/api/v1/source/{source}": {"name": "Asks", "uid": "asks", "type": "generic-webhook"},
    "PUT /ingest/api/v1/source/{source}/endpoint/{endpoint}": URL,
    "PUT /api/v1/stream/{stream}": {"name": "Asks", "uid": "asks"},
    "PUT /api/v1/stream/{stream}/sink/{sink}": {"type": "http", "config": {"url": URL["url"]}, "uid": "asks"},
}
"""Bodies instead of the examples, so that what is there keeps its name, and has no condition of its own."""

POSTS = ("/msg", "/events", "/send-example")
"""Routes whose values at their bounds other talks ask for: here nobody would get what is posted."""

NOT_TRIED = (
    *(
        "/mtls",
        "/autoconfig/",
        "/polling-endpoint/",
        "/secret/rotate",
        "/headers",
        "/signatures",
        "/import",
        "/simulate",
    ),
    *("/dashboard-access", "/integration/", "/poller/token"),
)
"""Routes whose values other talks ask for, or which need what only another route gives."""

NARROWER = {
    *(
        "origins",
        "config",
        "metadata",
        "application",
        "stream",
        "schemas",
        "headers",
        "variables",
        "code",
        "extraParams",
    ),
    *("type", "authMethod", "grantType", "logo", "language", "extraHeaders", "jwtParams", "status", "scopes"),
}
"""Where other rules are narrower than what is described, so that only what lies beyond is tried."""

TWINS = {"rateLimit": "throttleRate", "filterTypes": "eventTypes"}
"""Older names of fields: the newer one counts, where both are given."""


@dataclass(frozen=True)
class Case:
    """A request with one value that is another.

    Attributes:
        body: Its body.
        good: Whether it is taken.
    """

    body: Any
    good: bool


def webhooks(talk: Talk) -> None:
    """Each route of Svix's API that takes a body or a query."""
    talk.through(_asked, _named)


def _asked(talk: Talk) -> None:
    shapes = Shapes(talk.at("").ask("GET", "/openapi.json"))
    _prepared(talk)
    hub = talk.at("")
    operations = [
        (method, path, each)
        for method, path, each in shapes.operations()
        if path.startswith(("/api/v1", "/ingest/api/v1")) and not any(part in path for part in NOT_TRIED)
    ]
    for method, path, operation in operations:
        _query(hub, method, path, operation)
    bodies = [(*each, body) for each in operations if (body := _body(*each)) is not None]
    before = _state(talk)
    for method, path, operation, body in bodies:
        schema = _schema(operation)
        for case in _cases(shapes, schema, body):
            if not case.good:
                refused = hub.ask(method, _path(path), case.body, status=422)
                talk.is_so("what is wrong", {"detail": [...]}, {"detail": refused.get("detail", [])[:1]})
    talk.is_so("what is refused changes nothing", lambda after: after == before, _state(talk))
    for method, path, operation, body in bodies:
        if path.endswith(POSTS):
            continue
        schema = _schema(operation)
        answers = [hub.status(method, _path(path), body)]
        answers += [hub.status(method, _path(path), each.body) for each in _cases(shapes, schema, body) if each.good]
        talk.is_so(
            f"{method} {path}: what is just allowed", [], [each for each in answers if each in REFUSED or each >= 500]
        )
    _removed(talk)


LOOKED_UP = ("app", "endpoint", "message", "source", "stream", "sink", "connector", "destination", "event_type")
"""What a path names that has to be there."""

ANYBODY = ("/poller/{sink}", "/consumer/", "/attempt/{attempt}", "/integration/", "/autoconfig/", "/poller/token")
"""Parts of paths whose names stand for anything, or of whose kind there is none."""


def _named(talk: Talk) -> None:
    """Each route that shows something shows the same by the hub's ids and by its owner's; by a name that nothing has it
    is not found, whichever of a path's names that is.
    """
    shapes = Shapes(talk.at("").ask("GET", "/openapi.json"))
    _prepared(talk)
    hub, ids = talk.at(""), _ids(talk)
    endpoints = {
        "/operational-webhook/": str(talk.ask("GET", "/operational-webhook/endpoint/asks")["id"]),
        "/source/": str(talk.at("/ingest/api/v1").ask("GET", "/source/asks/endpoint/asks")["id"]),
        "/app/": ids["endpoint"],
    }
    compared = 0
    for method, path, _ in shapes.operations():
        names = [each[1:-1] for each in path.split("/") if each.startswith("{")]
        known = path.startswith(("/api/v1", "/ingest/api/v1")) and {*names} <= {*LOOKED_UP}
        if method != "GET" or not names or not known or any(each in path for each in ANYBODY):
            continue
        by_uid, by_id = (
            hub.answered(method, each) for each in (_path(path), _path(path, {**ids, **_of(path, endpoints)}))
        )
        expected = (by_uid.status, _steady(by_uid.body))
        hub.is_so(
            f"{path} by ids", lambda each, expected=expected: each == expected, (by_id.status, _steady(by_id.body))
        )
        compared += by_uid.status == HTTPStatus.OK
        for name in names:
            hub.ask("GET", _path(path, {name: "none"}), status=404, shows={"code": str, "detail": str})
    talk.is_so("so many", lambda count: count >= MOST_COMPARED, compared)
    talk.is_so(
        "the one message", 1, len(talk.ask("GET", "/app/asks/msg", shows={"data": [{"eventId": "asks"}]})["data"])
    )
    _removed(talk)


MOST_COMPARED = 20
"""Routes that show something of what was prepared, at least."""


def _ids(talk: Talk) -> Mapping[str, str]:
    """What the hub calls what was prepared."""
    ingest = talk.at("/ingest/api/v1")
    of = {"app": "/app/asks", "endpoint": "/app/asks/endpoint/asks", "message": "/app/asks/msg/asks"}
    of |= {"stream": "/stream/asks", "sink": "/stream/asks/sink/asks", "connector": "/connector/asks"}
    of |= {"destination": "/app/asks/destination/asks-aws"}
    found = {name: str(talk.ask("GET", path)["id"]) for name, path in of.items()}
    return {**found, "source": str(ingest.ask("GET", "/source/asks")["id"])}


def _of(path: str, endpoints: Mapping[str, str]) -> dict[str, str]:
    """The endpoint that a path is about."""
    return next(({"endpoint": endpoint} for kind, endpoint in endpoints.items() if kind in path), {})


def _steady(body: Any) -> Any:
    """An answer without what is another one at each moment."""
    if not isinstance(body, Mapping):
        return body
    return {name: each for name, each in body.items() if name not in {"seenAt", "until"}}


def _path(path: str, ids: Mapping[str, str] | None = None) -> str:
    names = {**NAMES, **(ids or {})}
    return "/".join(names.get(each[1:-1], "asks") if each.startswith("{") else each for each in path.split("/"))


def _body(method: str, path: str, operation: Mapping[str, Any]) -> Any:
    example = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
    return PREPARED.get(f"{method} {path}", example)


def _schema(operation: Mapping[str, Any]) -> Mapping[str, Any]:
    return operation["requestBody"]["content"]["application/json"]["schema"]  # type: ignore[no-any-return]


def _query(hub: Talk, method: str, path: str, operation: Mapping[str, Any]) -> None:
    """Numbers at and beyond their bounds, and words that are none of those that are described."""
    for each in operation.get("parameters", ()):
        schema, name = each.get("schema", {}), each["name"]
        if each["in"] != "query" or method != "GET" or path.endswith("/sink/{sink}/events"):
            continue
        for bound, beside in (("minimum", -1), ("maximum", 1)):
            if bound in schema:
                there = f"{_path(path)}?{name}="
                status = hub.status(method, f"{there}{schema[bound]}")
                hub.is_so(f"{there}{schema[bound]}", True, status not in REFUSED)
                hub.refused(method, f"{there}{schema[bound] + beside}", status=422)
        if "enum" in schema:
            refused = hub.status(method, f"{_path(path)}?{name}=neither")
            hub.is_so(f"{path}?{name}=neither", True, refused in REFUSED)
            for word in schema["enum"]:
                hub.is_so(
                    f"{path}?{name}={word}", True, hub.status(method, f"{_path(path)}?{name}={word}") not in REFUSED
                )


def _cases(shapes: Shapes, schema: Mapping[str, Any], body: Any) -> Iterator[Case]:
    """The request with each value that is described to be just allowed, and just not."""
    schema = shapes.resolved(schema)
    for name in schema.get("required", ()):
        yield Case({key: each for key, each in body.items() if key != name}, good=False)
    for name, inner in schema.get("properties", {}).items():
        inner = shapes.resolved(inner)  # noqa: PLW2901
        without = {key: each for key, each in body.items() if key not in {name, TWINS.get(name, name)}}
        for value, good in _values(shapes, inner):
            if not good or name not in NARROWER:
                yield Case({**without, name: value}, good)
        if "properties" in inner and name not in NARROWER:
            some = body.get(name) or {}
            for case in _cases(shapes, inner, some):
                yield Case({**without, name: case.body}, case.good)


def _values(shapes: Shapes, schema: Mapping[str, Any]) -> Iterator[tuple[Any, bool]]:
    """Values of a member, each with whether it is taken."""
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not kinds:
        return
    # Nothing, and the first of these that is of another kind
    every: tuple[Any, ...] = (7, "word", {})
    others = [value for value in every if not any(IS[kind](value) for kind in kinds)]
    yield from ((value, False) for value in ([None] if "null" not in kinds else []) + others[:1])
    for bound, beside in (("minimum", -1), ("maximum", 1)):
        if bound in schema:
            yield schema[bound], True
            yield schema[bound] + beside, False
    if "enum" in schema:
        yield "none of them", False
        yield from ((each, True) for each in schema["enum"])
    for bound, beside in (("minLength", -1), ("maxLength", 1)):
        if bound in schema and "pattern" not in schema:
            yield schema[bound] * "x", True
            yield (schema[bound] + beside) * "x", False
    if "pattern" in schema:
        yield "a b", False
        yield 256 * "u" + "v", False
    if "items" in schema and "string" in (shapes.resolved(schema["items"]).get("type"),):
        yield [1], False
        most = schema.get("maxItems")
        if most is not None and most <= 100:
            yield [f"n{number}" for number in range(most)], True
            yield [f"n{number}" for number in range(most + 1)], False
        if schema.get("minItems"):
            yield [], False


def _prepared(talk: Talk) -> None:
    """One of each kind, of one name."""
    ingest = talk.at("/ingest/api/v1")
    for host in ("talk-asks", "acme", "ops", "login"):
        talk.listen(f"{host}.example", lambda _: (200, b""))
    talk.ask("POST", "/event-type", {"name": "user.created", "description": "d"}, status=201)
    talk.ask("POST", "/app", {"name": "Asks", "uid": "asks"}, status=201)
    for path in ("/app/asks/endpoint", "/operational-webhook/endpoint"):
        talk.ask("POST", path, URL, status=201)
    role = "arn:aws:iam::123456789012:role/pushhub"
    queue = {"queueUrl": "https://sqs.eu-west-1.amazonaws.com/123456789012/orders", "roleArn": role}
    destination = {"type": "sqs", "config": queue, "uid": "asks-aws", "status": "disabled"}
    talk.ask("POST", "/app/asks/destination", destination, status=201)
    ingest.ask("POST", "/source", {"name": "Asks", "uid": "asks", "type": "generic-webhook"}, status=201)
    ingest.ask("POST", "/source/asks/endpoint", URL, status=201)
    talk.ask("POST", "/stream", {"name": "Asks", "uid": "asks"}, status=201)
    sink = {"type": "http", "config": {"url": URL["url"]}, "uid": "asks"}
    talk.ask("POST", "/stream/asks/sink", sink, status=201)
    connector = {"name": "Asks", "uid": "asks", "transformation": "function handler(webhook) { return webhook }"}
    talk.ask("POST", "/connector", connector, status=201)
    talk.ask("POST", "/app/asks/msg", {"eventType": "user.created", "payload": {}, "eventId": "asks"}, status=202)
    talk.sleep(10)


def _state(talk: Talk) -> str:
    """What is stored of it all."""
    hub = talk.at("")
    lists = (
        *(
            "/app",
            "/app/asks/endpoint",
            "/app/asks/destination",
            "/app/asks/msg",
            "/app/asks/integration",
            "/event-type",
        ),
        *("/operational-webhook/endpoint", "/connector", "/stream", "/stream/asks/sink", "/stream/asks/events"),
        *("/background-task", "/portal/frame", "/app/asks/portal/frame"),
    )
    state = [hub.ask("GET", f"/api/v1{each}") for each in lists]
    state += [hub.ask("GET", f"/ingest/api/v1/source{each}") for each in ("", "/asks/endpoint")]
    return json.dumps(state)


def _removed(talk: Talk) -> None:
    """All that was made, also by requests that were taken."""
    ingest = talk.at("/ingest/api/v1")
    for one, path in (
        *((talk, each) for each in ("/app", "/stream", "/connector", "/operational-webhook/endpoint")),
        (ingest, "/source"),
    ):
        for each in one.ask("GET", f"{path}?limit=250")["data"]:
            one.ask("DELETE", f"{path}/{each['id']}", status=204)
    for each in talk.ask("GET", "/event-type?limit=250&include_archived=true")["data"]:
        talk.ask("DELETE", f"/event-type/{each['name']}?expunge=true", status=204)
    talk.ask("PUT", "/portal/frame", {"origins": []})


__all__ = ["webhooks"]
