"""The routes of all protocols as data, and the template's API against them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from tests.fakes.ports import FakePorts
from tests.template.test_functions import routes_of

from pushhub.hub.api.posting import ROUTES as HUB_POSTING
from pushhub.ironmq.api.messages import POSTING as IRON_POSTING
from pushhub.ironmq.api.past import ROUTES as PAST
from pushhub.notifications.api.publishing import ROUTES as PUBLISHING
from pushhub.runtime.apis import handle
from pushhub.runtime.routes import all_routes
from pushhub.web.api import Auth, Body, Function, Route
from pushhub.webhooks.api.arrivals import ROUTES as ARRIVING
from pushhub.webhooks.api.posting import ROUTES as POSTING

ROUTES = all_routes()
BROUGHT = {each.name: each for each in FakePorts().build().engine.protocols}


def protocol(route: Route[Any, Any]) -> str:
    return route.name.partition(".")[0]


def test_every_protocol_has_routes_and_no_two_are_the_same() -> None:
    assert {protocol(each) for each in ROUTES} == set(BROUGHT) - {"sinks"}, (
        "subscribers on AWS have no API of their own"
    )
    assert len({each.name for each in ROUTES}) == len(ROUTES)
    # Paths that differ only in the names of their segments are the same.
    assert len({(each.method, re.sub(r"\{\w+\}", "{}", each.path)) for each in ROUTES}) == len(ROUTES)


def test_a_route_says_what_a_reader_asks() -> None:
    for route in ROUTES:
        assert re.fullmatch(r"[a-z]+\.[a-z_]+", route.name)
        assert re.fullmatch(r"[A-Z][^\n.]+", route.summary), route.name
        assert re.fullmatch(r"(/[\w-]+|/\{\w+\})+", route.path), route.name
        assert route.method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, route.name
        assert route.method != "GET" or route.body is Body.NONE, route.name
        assert route.auth in Auth, route.name
        assert 200 <= route.status < 300 or route.name == "notifications.consume"


class Named:
    """An API that answers with its protocol's name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        return {"name": self._name}


def owner(path: str, kind: str) -> str:
    """The protocol whose API of a kind serves a path."""
    mounted = [
        {prefix: lambda name=name: Named(name) for prefix in getattr(brought, kind)}
        for name, brought in BROUGHT.items()
    ]
    return str(handle(mounted, {"rawPath": path})["name"])


@pytest.mark.parametrize("kind", ["apis", "producer_apis"])
def test_a_path_leads_to_its_own_protocol(kind: str) -> None:
    assert [each.name for each in ROUTES if owner(each.path, kind) != protocol(each)] == []


@pytest.mark.parametrize(
    ("path", "whose"),
    [
        ("/apis/x", "ironmq"),
        ("/notification2", "notifications"),
        ("/notification2/", "notifications"),
        ("/notification2x", "ironmq"),
        ("/", "ironmq"),
        ("", "ironmq"),
        ("nothing", "ironmq"),
    ],
)
def test_a_path_that_only_looks_like_anothers_is_ironmqs(path: str, whose: str) -> None:
    assert owner(path, "apis") == owner(path, "producer_apis") == whose


def test_what_svix_clients_ask_for_elsewhere_is_refused_in_their_words() -> None:
    assert owner("/ingest/api/v1/source", "apis") == "webhooks"
    assert owner("/ingest/x", "apis") == "ironmq"


def test_the_gateway_sends_producers_to_ingest_searches_of_records_to_past_and_everyone_else_to_control() -> None:
    # Given the routes that producers ask for, and those for which records are read
    producers = {f"{each.method} {each.path}" for each in ROUTES if each.function is Function.INGEST}
    past = {f"{each.method} {each.path}" for each in ROUTES if each.function is Function.PAST}
    # Then the template's API has exactly those and the files of console and reference, and all else is control's
    files = ("/console", "/console/{proxy+}", "/docs", "/docs/{proxy+}")
    console = {f"ANY {each}": "ConsoleFunction" for each in files}
    assert routes_of("HttpApi") == (
        dict.fromkeys(producers, "IngestFunction")
        | dict.fromkeys(past, "PastFunction")
        | console
        | {"$default": "ControlFunction"}
    )
    assert {each.name for each in PAST} == {each.name for each in ROUTES if each.function is Function.PAST}
    assert {each.method for each in ROUTES if each.function is Function.INGEST} == {"POST"}


def test_ingest_serves_what_the_gateway_sends_it() -> None:
    sent = {each for each in ROUTES if each.function is Function.INGEST}
    assert {*IRON_POSTING, *HUB_POSTING, *PUBLISHING, *POSTING, *ARRIVING} >= sent
    assert {*HUB_POSTING, *PUBLISHING, *POSTING, *ARRIVING} == {each for each in sent if protocol(each) != "ironmq"}
    # A method override reaches every method of a path
    assert {each.path for each in IRON_POSTING} == {each.path for each in sent if protocol(each) == "ironmq"}
