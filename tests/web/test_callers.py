"""Who is admitted, in all APIs alike: what a rejected caller learns, and which credentials it is asked for."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.web.protocols import PROTOCOLS, Served, served

from pushhub.runtime.routes import all_routes
from pushhub.web.api import Auth, Route

UNKNOWN = "9" * 24
OF_PROJECTS = [each for each in all_routes() if each.auth is Auth.PROJECT]
CAPABLE = [each for each in all_routes() if each.auth in {Auth.CAPABILITY, Auth.PROJECT_OR_CAPABILITY}]


@pytest.fixture(scope="module")
def apis() -> dict[str, Served]:
    return {name: served(name) for name in PROTOCOLS}


@pytest.mark.parametrize("route", OF_PROJECTS, ids=lambda route: route.name)
def test_a_project_that_does_not_exist_looks_like_one_whose_token_is_wrong(
    apis: dict[str, Served], route: Route[Any, Any]
) -> None:
    # Given an unknown token
    api = apis[route.name.partition(".")[0]]
    reported, asked = {}, {}
    for project in (api.project, UNKNOWN):
        # When it is presented for an existing project, and for one that does not exist
        api.reads.clear()
        reported[project] = api.call(route, project=project, token="no-such-token")
        asked[project] = list(api.reads)
    # Then both get the same answer, after the same look-ups
    assert reported[api.project] == reported[UNKNOWN]
    assert reported[UNKNOWN].status == 401
    assert asked[api.project] == asked[UNKNOWN]


@pytest.mark.parametrize("route", [*OF_PROJECTS, *CAPABLE], ids=lambda route: route.name)
def test_whoever_is_not_admitted_is_told_what_to_show(apis: dict[str, Served], route: Route[Any, Any]) -> None:
    for token in ("", "no-such-token", "\u00fc"):
        answer = apis[route.name.partition(".")[0]].call(route, token=token)
        assert answer.status == 401, token
        challenges = re.split(r", (?=\w+ realm=)", answer.headers["WWW-Authenticate"])
        for each in challenges:
            # RFC 9110: auth-scheme 1*SP auth-param
            assert re.fullmatch(r"""[!#$%&'*+.^_`|~0-9A-Za-z-]+ [a-z]+="[^"]+\"""", each), each


@pytest.mark.parametrize(
    ("name", "headers", "scheme"),
    [
        ("ironmq", {}, "OAuth"),
        ("hub", {}, "X-Augury-Token"),
        ("notifications", {}, "Basic"),
        # Web applications ask for this, so that browsers show no dialog of their own
        ("notifications", {"usexbasic": "true"}, "XBasic"),
        ("notifications", {"usexbasic": "false"}, "Basic"),
        ("webhooks", {}, "Bearer"),
    ],
)
def test_the_first_scheme_is_the_one_that_clients_of_the_protocol_know(
    apis: dict[str, Served], name: str, headers: dict[str, str], scheme: str
) -> None:
    route = next(each for each in OF_PROJECTS if each.name.startswith(name))
    assert apis[name].call(route, token="wrong", headers=headers).headers["WWW-Authenticate"].split()[0] == scheme


def test_a_consumers_token_is_no_password(apis: dict[str, Served]) -> None:
    for route in all_routes():
        if route.auth is Auth.CAPABILITY:
            answer = apis["notifications"].call(route, token="wrong")
            assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, 'Bearer realm="pushhub"')


def test_nobody_else_is_told_to_show_anything(apis: dict[str, Served]) -> None:
    for route in OF_PROJECTS:
        api = apis[route.name.partition(".")[0]]
        assert "WWW-Authenticate" not in api.call(route, names={"id": "x", "queue": "none"}).headers
