"""Every kind of value, and where in a good request one can stand."""

from __future__ import annotations

import copy
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from tests.web.protocols import Answer, Served, served

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


def world_of(name: str, noted: Sequence[str] = ()) -> Served:
    """A new world for the protocol of a route; every endpoint in it accepts what it is sent."""
    created = served(name.partition(".")[0], noted=noted)
    if name.startswith("hub."):
        created.world.endpoints = defaultdict(lambda: lambda _: {})
    return created


def filled(body: Any, query: Any, fields: dict[str, Any]) -> tuple[Any, Any]:
    """A good request, filled in with the results of its preparation."""
    if "token" in fields:
        return body, {**query, "token": fields["token"]}
    return ({**(body or {}), **fields} if fields else body), query


def refusal_in_dialect(name: str, answer: Answer) -> bool:
    """Whether an error answer is one that clients of the protocol can read."""
    body = answer.body
    match name.partition(".")[0]:
        case "ironmq":
            return answer.status in {400, 401, 403, 404, 405, 413} and set(body) == {"msg"} and bool(body["msg"])
        case "hub":
            texts = [each for errors in body.get("errors", {}).values() for each in errors]
            reported = isinstance(body["error"], str) and set(body) <= {"error", "errors"}
            return answer.status in {401, 404, 405, 409, 413, 422} and reported and all(map(str, texts))
        case "webhooks":
            if answer.status == 422:
                return all(each["loc"] and each["msg"] and each["type"] for each in body["detail"])
            # Replacing under an unknown name creates.
            created = answer.status in {200, 201} and name.startswith(("webhooks.replace_", "webhooks.create_"))
            # What only Svix has is named.
            missing = answer.status == 501 and body["code"] == "not_implemented"
            refused = missing or answer.status in {400, 401, 404, 405, 409, 413}
            return created or (refused and set(body) == {"code", "detail"})
        case _:
            # Notifications 2.0 answers some refusals with 500, each with its own name.
            refused = answer.status in {401, 404, 409, 413, 422} or body["error"] == "reliable-notification/Not Found"
            return refused and {"error", "message", "info"} <= set(body) and bool(body["message"])
