"""Names and values that are longer than DynamoDB's keys are refused, or not found, as anything else that is not there.

The stores' stand-ins take keys of any length; the simulator's model of DynamoDB takes those that AWS takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlencode

import pytest
from simulation.account import HttpAnswer, Operator
from tests.simulation.random_callers import SET_UP, RandomCallers, Tenant
from tests.web.known_good import GOOD, Good
from tests.web.shapes import places, with_value

from pushhub.engine.projects.projects import Projects
from pushhub.runtime.routes import all_routes
from pushhub.web.api import Auth, Route


class Callers(RandomCallers):
    """A tenant who calls each route with a long text in each place."""

    def __init__(self) -> None:
        super().__init__(1)
        self.failures: dict[str, int] = {}
        self.asked = 0

    def call_all(self, call: Callable[[Tenant, Route[Any, Any]], None]) -> None:
        """Make a tenant who has something of everything, and call each route."""
        account, scheduler = self.account, self.account.scheduler
        with account.installed():
            operator = Operator(account)
            projects = Projects(config=operator.config, clock=operator.clock)
            project = projects.make("one").project_id
            tenant = Tenant(project, projects.make_token(project))
            scheduler.spawn(partial(self._set_up, tenant))
            scheduler.run(SET_UP)
            assert tenant.tokens
            for route in all_routes():
                scheduler.spawn(partial(call, tenant, route))
            scheduler.run(20 * SET_UP)

    def in_paths(self, text: str, tenant: Tenant, route: Route[Any, Any]) -> None:
        """Call a route with a text in place of each name of its path."""
        named = [each for each in re.findall(r"\{(\w+)\}", route.path) if each not in {"project", "store"}]
        good = GOOD.get(route.name, Good()).body
        body = None if good is None and route.method == "GET" else good or {}
        query = f"?token={tenant.tokens[0]}" if route.auth is Auth.CAPABILITY else ""
        for each in named:
            names = dict.fromkeys(named, "none") | {each: text}
            self._note(f"{route.name} {each}", self._ask(tenant, tenant, route, names, body, query=query))

    def in_values(self, text: str, tenant: Tenant, route: Route[Any, Any]) -> None:
        """Call a route with a text in place of each value of its good body and query."""
        good = GOOD.get(route.name, Good())
        names = {"id": "accepted"} if route.name == "hub.show_queue" else {}
        for each in re.findall(r"\{(\w+)\}", route.path):
            before = route.path.partition("/{" + each + "}")[0].format(**names)
            names[each] = names.get(each) or self._name(tenant, before, each, None, spared=False)
        for place in places(good.body):
            if place:
                answer = self._ask(tenant, tenant, route, names, with_value(good.body, place, text))
                self._note(f"{route.name} {place}", answer)
        for name in good.query:
            query = "?" + urlencode({**good.query, name: text})
            body = None if route.method == "GET" else good.body
            self._note(f"{route.name} ?{name}", self._ask(tenant, tenant, route, names, body, query=query))

    def _note(self, what: str, answer: HttpAnswer) -> None:
        self.asked += 1
        # Notifications 2.0 answers some refusals with 500, each with its own name.
        if answer.status >= 500 and "reliable-notification" not in str(answer.body):
            self.failures[what] = answer.status


@pytest.mark.parametrize("length", [1_030, 2_100])
def test_a_name_that_is_too_long_for_a_key_is_no_fault(length: int) -> None:
    callers = Callers()
    callers.call_all(partial(callers.in_paths, "x" * length))
    assert callers.asked > 100
    assert callers.failures == {}


@pytest.mark.parametrize("length", [1_030, 2_100])
def test_a_value_that_is_too_long_for_a_key_is_no_fault(length: int) -> None:
    callers = Callers()
    callers.call_all(partial(callers.in_values, "x" * length))
    assert callers.asked > 500
    assert callers.failures == {}
