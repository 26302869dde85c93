"""Builds one OpenAPI 3.1 document from the routes and descriptions of all APIs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from pushhub.web.api import Auth, Body, Route

if TYPE_CHECKING:
    from pushhub.web.description import ApiDescription, Described, Named, Schema

OPENAPI = "3.1.0"
FORM_TYPE = "application/x-www-form-urlencoded"
FORBIDDEN = 403
SUSPENDED = "The project is suspended"
"""What every route may answer that does more than look."""
UNAUTHORIZED = HTTPStatus.UNAUTHORIZED.value


class Undescribed(LookupError):
    """A route, or a name in its path or query, has no description."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} has no description: add it to the api/description.py of its protocol")


def document(
    apis: Iterable[tuple[Sequence[Route[Any, Any]], ApiDescription]], *, title: str, version: str, means: str
) -> dict[str, Any]:
    """The document.

    Args:
        apis: Each API's routes and description.
        means: The introduction for readers; may contain Markdown.

    Raises:
        Undescribed: Something is not described.
    """
    paths: dict[str, dict[str, Any]] = {}
    tags: list[dict[str, str]] = []
    schemes: dict[str, Schema] = {}
    schemas: dict[str, Schema] = {}
    for routes, api in apis:
        tags.append({"name": api.tag, "description": api.means})
        schemes |= api.credentials
        schemas |= api.schemas
        for route in routes:
            paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, api)
    return {
        "openapi": OPENAPI,
        "info": {"title": title, "version": version, "description": means},
        "servers": [{"url": "/", "description": "This hub"}],
        "tags": tags,
        "paths": paths,
        "components": {"securitySchemes": schemes, "schemas": schemas},
    }


def _operation(route: Route[Any, Any], api: ApiDescription) -> dict[str, Any]:
    described = api.routes.get(route.name)
    if described is None:
        raise Undescribed(f"the route {route.name}")
    operation: dict[str, Any] = {
        "operationId": route.name,
        "tags": [api.tag],
        "summary": route.summary,
        "security": [{}] if route.auth is Auth.NONE else [{name: []} for name in api.shown[route.auth]] or [{}],
        "parameters": _parameters(route, api, described),
        "responses": _responses(route, api, described),
    }
    if described.means:
        operation["description"] = described.means
    if route.body is not Body.NONE and described.request is not None:
        operation["requestBody"] = _request(route, described)
    return operation


def _parameters(route: Route[Any, Any], api: ApiDescription, described: Described) -> list[dict[str, Any]]:
    in_path = [each[1:-1] for each in route.path.split("/") if each.startswith("{")]
    return [
        *(_parameter(name, "path", _named(api.names, name, route)) for name in in_path),
        *(
            _parameter(name, "query", _named(api.query, name, route), example=described.asked.get(name))
            for name in route.query
        ),
        *(_parameter(name, "header", each) for name, each in described.headers.items()),
    ]


def _named(known: Mapping[str, Named], name: str, route: Route[Any, Any]) -> Named:
    # The meaning of a name may depend on the route: "ironmq.peek_messages:n" takes precedence over "n".
    found = known.get(f"{route.name}:{name}") or known.get(name)
    if found is None:
        raise Undescribed(f"{name} of the route {route.name}")
    return found


def _parameter(name: str, place: str, named: Named, example: Any = None) -> dict[str, Any]:
    shown = named.example if example is None else example
    return {
        "name": name,
        "in": place,
        "required": place == "path" or named.required,
        "description": named.means,
        "schema": named.schema,
        **({} if shown is None else {"example": shown}),
    }


def _request(route: Route[Any, Any], described: Described) -> dict[str, Any]:
    content = {"schema": described.request, **({} if described.sent is None else {"example": described.sent})}
    types = {described.request_type: content}
    if route.body is Body.JSON_OR_FORM:
        types[FORM_TYPE] = {"schema": described.request}
    # openapi-python-client 0.29 makes a module that cannot be imported of a required body with two content types.
    needed = len(types) == 1 and bool(described.request and "required" in described.request)
    return {"content": types, **({"required": True} if needed else {})}


def _responses(route: Route[Any, Any], api: ApiDescription, described: Described) -> dict[str, Any]:
    good: dict[str, Any] = {"description": HTTPStatus(route.status).phrase}
    if described.answer is not None:
        shown = {} if described.answered is None else {"example": described.answered}
        good["content"] = {described.answer_type: {"schema": described.answer, **shown}}
    responses = {str(route.status): good}
    responses |= {str(status): {**good, "description": HTTPStatus(status).phrase} for status in described.also}
    refusals = {**api.refusals, **described.refusals}
    if route.auth is Auth.CAPABILITY or (route.auth is not Auth.NONE and not route.only_looks):
        refusals[FORBIDDEN] = "; or ".join(filter(None, [refusals.get(FORBIDDEN), SUSPENDED]))
    for status, reason in sorted(refusals.items()):
        of_tokens = status in {UNAUTHORIZED, FORBIDDEN} and status not in described.refusals
        if (of_tokens and route.auth is Auth.NONE) or status == route.status:
            continue
        shape = api.refusal_shapes.get(status, api.refusal)
        content = {api.refusal_type: {"schema": shape, "example": api.refused(status, reason)}}
        responses[str(status)] = {"description": reason, "content": content}
    return responses
