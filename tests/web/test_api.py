"""The base of the HTTP APIs, tested with a small API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.fakes.gateway import http_event

from pushhub.base.errors import Conflict, Invalid, RequestRefused, TooLarge, Unauthorized, Unavailable
from pushhub.web.api import Api, Auth, Call, Dialect, Route
from pushhub.web.http import MethodNotAllowed, Request, Response

THINGS = "/things"
THING = THINGS + "/{id}"


class Plain(Dialect[Call]):
    """Names every refusal by its kind."""

    max_request_bytes = 10

    def path(self, request: Request) -> str:
        return request.path.rstrip("/")

    def admit(self, route: Route[Any, Call], request: Request, names: Mapping[str, str]) -> Call:
        if route.auth is not Auth.NONE and request.headers.get("authorization") != "good":
            raise Unauthorized
        return Call(request=request, names=names)

    def refused(self, error: RequestRefused) -> Response:
        status = {MethodNotAllowed: 405, TooLarge: 413, Unauthorized: 401, Invalid: 400}.get(type(error), 404)
        return Response(status=status, body={"refused": type(error).__name__}, headers={"X-Dialect": "plain"})

    def challenge(self, request: Request, error: Unauthorized) -> str:
        return f"Plain realm={request.path}"

    def refusal(self, error: Exception) -> RequestRefused | None:
        return Invalid("again") if isinstance(error, Conflict) else None

    def failed(self) -> Response:
        return Response(status=500, body={"failed": True})

    def options(self) -> Response:
        return Response(status=204, body={})

    def finished(self, request: Request, response: Response) -> Response:
        return Response(
            status=response.status, body=response.body, headers={**response.headers, "X-Path": request.path}
        )


class Things:
    """The use cases: records calls, or raises what the test sets."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.raised: Exception | None = None

    def ask(self, what: str, call: Call) -> Response:
        self.asked.append((what, dict(call.names)))
        if self.raised is not None:
            raise self.raised
        return Response(status=200, body={"done": what})


ROUTES: tuple[Route[Things, Call], ...] = (
    Route("GET", THINGS, lambda things, call: things.ask("list", call), name="t.list", summary="List", auth=Auth.NONE),
    Route("POST", THINGS, lambda things, call: things.ask("make", call), name="t.make", summary="Make"),
    Route("GET", THING, lambda things, call: things.ask("show", call), name="t.show", summary="Show"),
)


class World:
    """The API and its effects."""

    def __init__(self) -> None:
        self.things = Things()
        self.api = Api(routes=ROUTES, use_cases=self.things, dialect=Plain())

    def call(self, method: str, path: str, body: str = "", **headers: str) -> tuple[int, Any, dict[str, str]]:
        answer = self.api.handle(http_event(method, path, body, headers={"authorization": "good", **headers}))
        return answer["statusCode"], json.loads(answer["body"] or "null"), answer["headers"]


@pytest.fixture
def world() -> World:
    return World()


def test_a_handler_gets_the_use_cases_and_what_the_path_names(world: World) -> None:
    assert world.call("GET", "/things/a b/")[:2] == (200, {"done": "show"})
    assert world.things.asked == [("show", {"id": "a b"})]


def test_head_is_get_without_a_body(world: World) -> None:
    status, body, headers = world.call("HEAD", "/things/1")
    assert (status, body, headers["Content-Type"]) == (200, None, "application/json")
    assert world.things.asked == [("show", {"id": "1"})]


@pytest.mark.parametrize(
    ("path", "allowed"), [("/things", "GET, HEAD, OPTIONS, POST"), ("/things/1", "GET, HEAD, OPTIONS")]
)
def test_options_needs_no_caller_and_names_the_methods(world: World, path: str, allowed: str) -> None:
    status, _, headers = world.call("OPTIONS", path, authorization="bad")
    assert (status, headers["Allow"]) == (204, allowed)


@pytest.mark.parametrize("method", ["PUT", "TRACE", "BREW"])
def test_another_method_is_refused_with_those_that_there_are(world: World, method: str) -> None:
    status, body, headers = world.call(method, "/things/1", authorization="bad")
    assert (status, body) == (405, {"refused": "MethodNotAllowed"})
    assert headers["Allow"] == "GET, HEAD, OPTIONS"
    assert headers["X-Dialect"] == "plain"


@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
def test_a_path_that_is_none_is_not_found_before_anyone_is_asked_who_they_are(world: World, method: str) -> None:
    assert world.call(method, "/nothing", authorization="bad")[:2] == (404, {"refused": "NotFound"})


def test_a_body_may_be_as_large_as_the_limit_and_no_larger_whoever_sends_it(world: World) -> None:
    assert world.call("POST", "/things", "x" * 10)[0] == 200
    assert world.call("POST", "/things", "x" * 11)[:2] == (413, {"refused": "TooLarge"})
    assert world.call("POST", "/things", "x" * 11, authorization="bad")[0] == 413
    assert [what for what, _ in world.things.asked] == ["make"]


def test_only_admitted_callers_reach_a_handler(world: World) -> None:
    status, body, headers = world.call("POST", "/things", authorization="bad")
    assert (status, body) == (401, {"refused": "Unauthorized"})
    assert (headers["WWW-Authenticate"], headers["X-Dialect"]) == ("Plain realm=/things", "plain")
    assert world.things.asked == []
    assert world.call("GET", "/things", authorization="bad")[0] == 200


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (Invalid("no"), (400, {"refused": "Invalid"})),
        (Conflict(), (400, {"refused": "Invalid"})),
        (Unavailable("dynamodb:GetItem"), (500, {"failed": True})),
        (RuntimeError("secret internals"), (500, {"failed": True})),
    ],
)
def test_what_a_handler_raises_is_a_refusal_or_a_fault(world: World, error: Exception, answer: object) -> None:
    world.things.raised = error
    status, body, headers = world.call("GET", "/things")
    assert (status, body) == answer
    assert headers["X-Path"] == "/things"


def test_what_cannot_be_read_as_a_request_is_refused_in_the_dialect(world: World) -> None:
    answer = world.api.handle(http_event("GET", "/things", query="a=%ff"))
    assert (answer["statusCode"], json.loads(answer["body"])) == (400, {"refused": "Invalid"})
    assert world.things.asked == []
