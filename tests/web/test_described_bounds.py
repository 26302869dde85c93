"""Every bound that the OpenAPI document states of a request's values: what lies at it is taken, what lies beyond it is
refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest
from tests.web.known_good import GOOD, ROUTES, request_to, values_in
from tests.web.shapes import ABSENT, as_bytes, places, with_value, world_of

from pushhub.runtime.documentation import describe
from pushhub.web.api import Body

WITH_BODY = [each for each in GOOD if ROUTES[each].body in {Body.JSON, Body.JSON_OR_FORM}]
WITH_QUERY = [each for each in GOOD if ROUTES[each].query]

REFUSED = frozenset({400, 413, 422})
"""What is said to values; a value at its bound may name something that is not there."""

NARROWER: Mapping[str, str] = {
    "alert.threshold": "by its measure: a share is 100 at most",
    "mapping.options.retry_base": "no longer than the longest wait",
    "scheduler.count": "with its unit, a period of a year at most",
    "subscriptionFilter.typeFilter": "an expression",
    "origins": "each is a host",
    "integration.url": "a host and no path",
    "after": "a cursor",
}
"""Where other rules are narrower than the bound, so that only what lies beyond it is tried."""

WIDER: Mapping[str, str] = {
    "expiresInMinutes": "what is longer than a year is a year",
    "per_page": "more than fit on a page are a page",
    "parameter.name": "a parameter keeps its name",
    "application": "one that is there is left as it is",
}
"""Where a value beyond the bound is not refused, so that only the bound is tried."""

SAME: Mapping[str, str] = {
    "rateLimit": "throttleRate",
    "throttleRate": "rateLimit",
    "filterTypes": "eventTypes",
    "eventTypes": "filterTypes",
}
"""The other name of a field, which is read instead where a request has both."""


@cache
def operations() -> dict[str, Any]:
    return {each["operationId"]: each for methods in describe()["paths"].values() for each in methods.values()}


def alternatives(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A schema, what it refers to, and the schemas of which it is any."""
    if "$ref" in schema:
        found: Any = describe()
        for name in schema["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        yield from alternatives(found)
    yield schema
    for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from alternatives(each)


def schemas_at(schema: Mapping[str, Any], path: tuple[Any, ...]) -> list[Mapping[str, Any]]:
    """What is described at a place of a request."""
    found = [*alternatives(schema)]
    for key in path:
        inner = [
            each["items"] if isinstance(key, int) else each["properties"][key]
            for each in found
            if (isinstance(key, int) and "items" in each) or key in each.get("properties", ())
        ]
        found = [one for each in inner for one in alternatives(each)]
    return found


def bounds(schema: Mapping[str, Any], value: Any, zero: int) -> Iterator[tuple[str, Any, Any]]:
    """The bounds of a value: the value at each, and the one just beyond it; below 1 that is ``zero``."""
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None:
        yield "minimum", least, zero if least == 1 else least - 1
    if most is not None:
        yield "maximum", most, most + 1
    if isinstance(value, str) and not {"enum", "pattern", "format"} & {*schema}:
        if "maxLength" in schema:
            longest = schema["maxLength"]
            yield "maxLength", value.ljust(longest, "x"), value.ljust(longest + 1, "x")
        if schema.get("minLength") == 1:
            yield "minLength", value, ""
    if isinstance(value, list) and value and "maxItems" in schema:
        several = [another(value[0], number) for number in range(schema["maxItems"] + 1)]
        yield "maxItems", several[:-1], several


def another(item: Any, number: int) -> Any:
    """An item of a list that is none of the others."""
    if isinstance(item, dict):
        return {name: each + number if type(each) is int else each for name, each in item.items()}
    if isinstance(item, str):
        return str(int(item) + number) if item.isdigit() else f"{item}{number}"
    return item


def beginnings(path: tuple[Any, ...]) -> set[str]:
    """A place by its names, and the places that it is in."""
    names = [str(each) for each in path if not isinstance(each, int)]
    return {".".join(names[:length]) for length in range(1, len(names) + 1)}


@pytest.mark.parametrize("name", WITH_BODY)
def test_bodies_have_the_described_bounds(name: str) -> None:
    content = operations()[name].get("requestBody", {}).get("content", {})
    schema: Mapping[str, Any] = next((each["schema"] for each in content.values()), {})
    route = ROUTES[name]
    # IronMQ takes 0 for nothing where 1 is the least
    zero = -1 if name.startswith("ironmq.") else 0
    for path, value in values_in(name):
        for each in schemas_at(schema, path):
            for bound, inside, outside in bounds(each, value, zero):
                for at, taken in ((inside, True), (outside, False)):
                    if beginnings(path) & {*(NARROWER if taken else WIDER)}:
                        continue
                    # Given the object of a good request
                    api = world_of(name)
                    names, whole, query = request_to(api, name)
                    if path and (twin := (*path[:-1], SAME.get(path[-1]))) in {*places(whole)}:
                        whole = with_value(whole, twin, ABSENT)
                    # When one value in it lies at a bound, or just beyond it
                    answer = api.call(route, as_bytes(with_value(whole, path, at)), names=names, query=query)
                    # Then it is taken, or refused
                    case = f"{path}: {bound} {each[bound]}, {str(at)[:60]!r}: {answer}"
                    assert (answer.status not in REFUSED) if taken else (answer.status >= 400), case


@pytest.mark.parametrize("name", WITH_QUERY)
def test_queries_have_the_described_bounds(name: str) -> None:
    good, route = GOOD[name], ROUTES[name]
    for field in operations()[name].get("parameters", ()):
        if field["in"] != "query":
            continue
        for each in alternatives(field["schema"]):
            for bound, inside, outside in bounds(each, good.query.get(field["name"]), -1):
                for at, taken in ((inside, True), (outside, False)):
                    if field["name"] in (NARROWER if taken else WIDER):
                        continue
                    api = world_of(name)
                    names, body, query = request_to(api, name)
                    answer = api.call(route, body, names=names, query={**query, field["name"]: str(at)})
                    case = f"{field['name']}: {bound} {each[bound]}, {str(at)[:60]!r}: {answer}"
                    assert (answer.status not in REFUSED) if taken else (answer.status >= 400), case
