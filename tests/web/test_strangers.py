"""Requests that call a stranger, in all APIs: which ones do, and that a project has a few of them at a time."""

from __future__ import annotations

import pytest
from tests.engine.world import PROJECT
from tests.web.known_good import GOOD, ROUTES, request_to
from tests.web.shapes import world_of

WAITING = {"hub.register_integration", "hub.change_integration"}
"""Routes whose answer needs a stranger's."""


@pytest.mark.parametrize("name", GOOD)
def test_no_request_waits_for_a_stranger_unless_its_answer_needs_it_and_its_project_has_few_of_them(name: str) -> None:
    # Given a good request to any route
    api = world_of(name, noted=("sender",))
    names, body, query = request_to(api, name)
    # When its project waits for as many strangers as it may
    calls = api.world.ports.calls
    now = api.world.clock.now()
    held = [calls.enter(PROJECT, now=now, until=now + 60_000) for _ in range(8)]
    assert None not in held
    api.reads.clear()
    answer = api.call(ROUTES[name], body, names=names, query=query)
    # Then it sends nothing, and is carried out unless it has to
    assert "send" not in api.reads
    if name not in WAITING:
        assert answer.status == ROUTES[name].status
        return
    assert (answer.status, answer.headers["Retry-After"]) == (429, "10")
    # And it is carried out when one of the others is over
    calls.leave(PROJECT, held[0])
    assert api.call(ROUTES[name], body, names=names, query=query).status == ROUTES[name].status
    assert api.reads.count("send") == 1
    assert len(calls.waiting[PROJECT]) == 7
