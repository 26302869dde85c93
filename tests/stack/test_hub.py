"""The hub protocol on the running stack, with an endpoint that a user could have written."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
import requests
from tests.stack.hub_endpoint import TOKEN, HubEndpoint
from tests.stack.project import unique, until
from tests.stack.running import RunningStack
from tests.stack.side_by_side import SideBySide

pytestmark = pytest.mark.stack

WAIT_S = 180.0
"""How long something may take while everything runs on two processors, seconds."""
EARLY_S = 0.1
"""How far the clocks of test and hub may differ, seconds."""


@dataclass(frozen=True)
class Shop:
    """A store as its storefront and its admin client see it."""

    base_url: str
    store: str
    token: str
    endpoint: HubEndpoint

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> requests.Response:
        """One request with the store's token."""
        url = f"{self.base_url}/api/stores/{self.store}{path}"
        headers = {"X-Augury-Token": self.token}
        return requests.request(method, url, json=body, params=query, headers=headers, timeout=60)

    def get(self, path: str, **query: Any) -> Any:
        """The answer to a GET."""
        answer = self.call("GET", path, **query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def map(self, message_type: str, path: str, **fields: Any) -> dict[str, Any]:
        """A mapping of a type to a path of the endpoint."""
        mapping = {
            "name": f"acme{path.replace('/', '.')}",
            "url": self.endpoint.url + path,
            "token": TOKEN,
            "messages": [message_type],
            **fields,
        }
        answer = self.call("POST", "/mappings", {"mapping": mapping})
        assert answer.status_code == 201, answer.text
        created: dict[str, Any] = answer.json()
        return created

    def push(self, message_type: str, **payload: Any) -> str:
        """Push a message; returns its id."""
        answer = self.call("POST", "/messages", {"message": message_type, "payload": payload})
        assert answer.status_code == 201, answer.text
        message_id: str = answer.json()["message_id"]
        return message_id

    def message(self, message_id: str) -> dict[str, Any]:
        """A message with everything about it."""
        shown: dict[str, Any] = self.get(f"/messages/{message_id}")
        return shown

    def copies(self, message_id: str, states: list[str]) -> list[dict[str, Any]]:
        """Wait until the copies of an incoming message are in these states (in any order)."""

        def reached() -> list[dict[str, Any]] | None:
            children = self.message(message_id)["children"]
            if sorted(each["state"] for each in children) != sorted(states):
                return None
            return [self.message(each["id"]) for each in children]

        return until(reached, WAIT_S, lambda: f"wanted {states}, there is {self.message(message_id)}")

    def of_type(self, message_type: str, count: int) -> list[dict[str, Any]]:
        """Wait until this many incoming messages of a type are archived."""

        def reached() -> list[dict[str, Any]] | None:
            rows = self.get("/queues/archived.json", source="incoming", message=message_type)
            assert len(rows) <= count
            return rows if len(rows) == count else None

        return until(reached, WAIT_S, lambda: f"wanted {count} of {message_type}")


scenarios = SideBySide[Shop]()


@pytest.fixture(scope="module")
def together(request: pytest.FixtureRequest, stack: RunningStack) -> Iterator[None]:
    project = stack.make_project()
    with HubEndpoint() as endpoint:
        shop = Shop(stack.base_url, project.project_id, project.token, endpoint)
        # The first cold starts take seconds on a busy machine.
        shop.map("warm:up", "/take")
        shop.copies(shop.push("warm:up"), ["completed"])
        with scenarios.running(request, shop):
            yield


@scenarios.test
def test_an_order_flows_through_an_integration(shop: Shop) -> None:
    # Given an endpoint registered by its URL, and signed up for
    registered = shop.call(
        "POST",
        "/integrations",
        {"integration": {"name": "acme", "url": shop.endpoint.url, "category": "custom", "token": TOKEN}},
    )
    assert registered.status_code == 201, registered.text
    integration = registered.json()
    assert (integration["state"], integration["display"]) == ("ready", "Acme")
    signed = shop.call(
        "POST",
        f"/integrations/{integration['id']}/signup",
        {"parameters": {"api_key": "k1"}, "enabled": ["import", "later"]},
    )
    assert signed.status_code == 200
    number = unique("R")
    # When an order is pushed twice
    first = shop.push("order:new", number=number)
    copies = shop.copies(first, ["completed", "completed"])
    shop.copies(shop.push("order:new", number=number), ["completed"])
    # Then the synchronous service got it, as one message, with the parameter inside
    imported, *repeated = shop.endpoint.of("/import", number=number)
    assert all(each.body == imported.body for each in repeated)
    assert imported.headers["content-type"] == "application/json"
    assert imported.body == {
        "message": "order:new",
        "message_id": imported.body["message_id"],
        "payload": {"number": number, "parameters": [{"name": "acme.api_key", "value": "k1"}]},
    }
    by_name = {each["consumer"]: each for each in copies}
    assert by_name["acme.import"]["id"] == imported.body["message_id"]
    assert by_name["acme.import"]["result"]["received"] is True
    # And the asynchronous one was posted to, then polled with the whole message, never before its delay
    posts, polls = shop.endpoint.of("/later", number=number), shop.endpoint.of(f"/status/{number}")
    [post] = [each for each in posts if each.body["message_id"] == by_name["acme.later"]["id"]]
    of_first = [each for each in polls if each.body["message_id"] == post.body["message_id"]]
    assert len(of_first) >= 1
    for poll in of_first:
        # Parameters are current; everything else is the message as it was posted.
        payload = {key: value for key, value in poll.body["payload"].items() if key != "parameters"}
        assert {**poll.body, "payload": payload} == {**post.body, "payload": {"number": number}}
        assert poll.headers["x-augury-token"] == TOKEN
    assert all(later.at - earlier.at >= 2 - EARLY_S for earlier, later in pairwise([post, *of_first]))
    # And what their answers asked for happened once
    shop.of_type("order:imported", 1)
    [parameter] = until(
        lambda: [each for each in shop.get("/parameters") if each["name"] == "acme.last_order"],
        WAIT_S,
        lambda: "the parameter is not there",
    )
    assert parameter["value"] == number
    [note] = until(
        lambda: [each for each in shop.get("/notifications.json") if each["subject"] == f"Imported {number}"],
        WAIT_S,
        lambda: "the notification is not there",
    )
    assert (note["occurrences"], note["origin"]) == (1, "acme.import")
    known = {"order:new", "order:imported", "notification:info"}
    until(lambda: known <= set(shop.get("/available_messages")), WAIT_S, lambda: str(shop.get("/available_messages")))


@scenarios.test
def test_a_scheduler_ticks(shop: Shop) -> None:
    shop.map("acme:poll", "/take")
    before = time.monotonic()
    created = shop.call("POST", "/schedulers", {"scheduler": {"count": 1, "interval": "minutes", "key": "acme:poll"}})
    assert created.status_code == 201, created.text
    until(
        lambda: [each for each in shop.endpoint.of("/take") if each.body["message"] == "acme:poll"] or None,
        200,
        lambda: "no tick",
    )
    assert time.monotonic() - before > 50
    assert shop.call("DELETE", f"/schedulers/{created.json()['id']}").status_code == 200
