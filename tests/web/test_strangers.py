"""Requests that call a stranger, in all APIs: which ones do, and that a project has a few of them at a time."""

from __future__ import annotations

from collections import defaultdict

import pytest
from tests.engine.world import PROJECT
from tests.web.known_good import GOOD, ROUTES
from tests.web.protocols import Served, served

WAITING = {"hub.register_integration", "hub.change_integration"}
"""Routes whose answer needs a stranger's."""


def world_of(name: str) -> Served:
    """A new world whose API notes what it sends."""
    created = served(name.partition(".")[0], noted=("sender",))
    if name.startswith("hub."):
        created.world.endpoints = defaultdict(lambda: lambda _: {})
    return created


@pytest.mark.parametrize("name", GOOD)
def test_no_request_waits_for_a_stranger_unless_its_answer_needs_it_and_its_project_has_few_of_them(name: str) -> None:
    # Given a good request to any route
    api, good = world_of(name), GOOD[name]
    names, fields = good.prepare(api)
    body = {**(good.body or {}), **fields} if fields and "token" not in fields else good.body
    query = {**good.query, "token": fields["token"]} if "token" in fields else good.query
    # When its project waits for as many strangers as it may
    calls = api.world.ports.calls
    now = api.world.clock.now()
    places = [calls.enter(PROJECT, now=now, until=now + 60_000) for _ in range(8)]
    assert None not in places
    api.reads.clear()
    answer = api.call(ROUTES[name], body, names=names, query=query)
    # Then it sends nothing, and is carried out unless it has to
    assert "send" not in api.reads
    if name not in WAITING:
        assert answer.status == ROUTES[name].status
        return
    assert (answer.status, answer.headers["Retry-After"]) == (429, "10")
    # And it is carried out when one of the others is over
    calls.leave(PROJECT, places[0])
    assert api.call(ROUTES[name], body, names=names, query=query).status == ROUTES[name].status
    assert api.reads.count("send") == 1
    assert len(calls.waiting[PROJECT]) == 7
