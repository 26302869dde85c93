"""The hub protocol on the running stack, with an endpoint that a user could have written."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
import requests
from tests.fakes.verifier import symmetric, verified
from tests.stack.hub_endpoint import TOKEN, HubEndpoint
from tests.stack.project import unique, until
from tests.stack.running import RunningStack
from tests.stack.side_by_side import SideBySide

pytestmark = pytest.mark.stack

WAIT_S = 90.0
"""How long something may take while everything runs on two processors, seconds."""

HOSTILE = {
    "html": "not valid JSON",
    "wrong-id": "message_id is another one",
    "no-id": "message_id is missing",
    "huge": "larger than 2097152 bytes",
    "deep": "nested deeper than 100 levels",
    "no-messages": "messages[1] is not an object",
    "many": "messages holds 10000 elements, more than the 1000 allowed",
    "scheme": "update_url must be an http or https URL",
    "negative": "delay is not from 0",
    "endless": "delay is not from 0",
}


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
        made: dict[str, Any] = answer.json()
        return made

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
    made = stack.make_project()
    with HubEndpoint() as endpoint:
        shop = Shop(stack.base_url, made.project_id, made.token, endpoint)
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
    # Then the synchronous service got it once, with the parameter inside
    [imported] = shop.endpoint.of("/import", number=number)
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
    assert all(later.at - earlier.at >= 2 for earlier, later in pairwise([post, *of_first]))
    # And what their answers asked for happened once
    shop.of_type("order:imported", 1)
    [parameter] = [each for each in shop.get("/parameters") if each["name"] == "acme.last_order"]
    assert parameter["value"] == number
    [note] = [each for each in shop.get("/notifications.json") if each["subject"] == f"Imported {number}"]
    assert (note["occurrences"], note["origin"]) == (1, "acme.import")
    assert {"order:new", "order:imported", "notification:info"} <= set(shop.get("/available_messages"))


@scenarios.test
def test_a_signed_mapping_sends_what_its_service_can_verify(shop: Shop) -> None:
    secret = symmetric()
    mapping = shop.map("signed:one", "/take", signing={"secret": secret})
    assert mapping["signing"] is True
    shop.copies(shop.push("signed:one", größe="☃"), ["completed"])
    [seen] = shop.endpoint.of("/take", größe="☃")
    assert verified(secret, seen.headers, seen.raw)
    assert not verified(symmetric("x"), seen.headers, seen.raw)


@scenarios.test
def test_a_failing_endpoint_is_shown_backs_off_and_gets_the_message_in_the_end(shop: Shop) -> None:
    shop.map("flaky:one", "/flaky", options={"retry_base": 2, "retry_cap": 4})
    incoming = shop.push("flaky:one", größe="☃")
    [failing] = shop.copies(incoming, ["failing"])
    assert failing["result"] == "<h1>Internal Server Error</h1>"
    assert failing["last_answer"]["content_type"] == "text/html"
    assert failing["last_error"].startswith("HTTP 500")
    # (it is False while the next request is under way)
    until(lambda: shop.message(failing["id"])["can_attempt"] or None, WAIT_S, lambda: "nobody may have it attempted")
    until(lambda: len(shop.endpoint.of("/flaky")) >= 3 or None, WAIT_S, lambda: "no retries")
    shop.endpoint.broken = False
    shop.copies(incoming, ["completed"])
    tries = shop.endpoint.of("/flaky")
    gaps = [later.at - earlier.at for earlier, later in pairwise(tries)]
    assert gaps[0] >= 2
    assert all(gap >= 4 - 0.1 for gap in gaps[1:])
    assert {each.body["payload"]["größe"] for each in tries} == {"☃"}
    assert len({each.body["message_id"] for each in tries}) == 1


@scenarios.test
def test_a_parked_message_waits_for_a_person_and_its_notification_is_raised_once(shop: Shop) -> None:
    shop.map("stock:take", "/refuse", options={"retries_allowed": False})
    [parked] = shop.copies(shop.push("stock:take"), ["parked"])
    assert parked["last_error"] == "HTTP 500: Out of stock"
    answer = shop.call("PUT", f"/messages/{parked['id']}", {"attempt_now": True})
    assert answer.status_code == 200
    until(
        lambda: shop.message(parked["id"])["notifications"][0]["occurrences"] == 2 or None,
        WAIT_S,
        lambda: "it was not attempted again",
    )
    [raised] = shop.of_type("notification:error", 1)
    assert raised["parent_id"] == parked["id"]
    archived = shop.call("PUT", f"/messages/{parked['id']}", {"archive": True}).json()
    assert (archived["queue_name"], archived["state"]) == ("archived", "never_processed")
    assert len(shop.endpoint.of("/refuse")) == 2


@scenarios.test
def test_a_message_that_its_service_works_on_is_not_posted_again_and_an_archive_says_what_came_of_it(
    shop: Shop,
) -> None:
    # Given a service that is working on two messages
    shop.map("held:one", "/held")
    pushed = [shop.push("held:one", number=unique("n")) for _ in range(2)]

    def locked() -> list[dict[str, Any]] | None:
        found = [shop.message(copy["id"]) for each in pushed for copy in shop.message(each)["children"]]
        return found if len(found) == 2 and all(each["locked_at"] for each in found) else None

    tried, archived = until(locked, WAIT_S, lambda: "they were not shown as locked")
    rows = {each["id"]: each for each in shop.get("/queues/accepted.json", message="held:one")}
    assert {each["locked_at"] for each in rows.values()} == {tried["locked_at"], archived["locked_at"]}

    # When a person asks for an attempt of one, and archives the other
    refused = shop.call("PUT", f"/messages/{tried['id']}", {"attempt_now": True})
    assert (tried["can_attempt"], refused.status_code) == (False, 422)
    assert tried["locked_at"] in refused.json()["errors"]["base"][0]
    answer = shop.call("PUT", f"/messages/{archived['id']}", {"archive": True})
    assert (answer.status_code, answer.json()["queue_name"]) == (200, "archived")

    # Then each is posted once, and both show what came of that
    shop.endpoint.let_go.set()
    shop.of_type("held:done", 2)
    assert [each["state"] for each in shop.copies(tried["parent_id"], ["completed"])] == ["completed"]
    until(
        lambda: "with 200; what the answer asks for was carried out" in shop.message(archived["id"])["reason"] or None,
        WAIT_S,
        lambda: str(shop.message(archived["id"])["reason"]),
    )
    assert len(shop.endpoint.of("/held")) == 2


@scenarios.test
def test_an_answer_compressed_unasked_is_a_success(shop: Shop) -> None:
    shop.map("zipped:one", "/zipped")
    [done] = shop.copies(shop.push("zipped:one"), ["completed"])
    assert done["result"] == {"message_id": done["id"]}


@scenarios.test
def test_a_delay_without_an_address_posts_again(shop: Shop) -> None:
    shop.map("slow:one", "/postpone")
    number = unique("n")
    [done] = shop.copies(shop.push("slow:one", number=number), ["completed"])
    first, second = shop.endpoint.of("/postpone", number=number)
    assert second.at - first.at >= 3
    assert (first.body, done["attempts"]) == (second.body, 0)


@scenarios.test
def test_hostile_answers_are_failures_with_a_reason_and_nothing_comes_of_them(shop: Shop) -> None:
    ids = {}
    for kind in HOSTILE:
        shop.map(f"hostile:{kind}", f"/hostile/{kind}", options={"retries_allowed": False})
        ids[kind] = shop.push(f"hostile:{kind}")
    for kind, reason in HOSTILE.items():
        [parked] = shop.copies(ids[kind], ["parked"])
        assert reason in parked["last_error"], kind
        assert parked["children"] == []
    assert shop.get("/queues/archived.json", source="incoming", message="never:made") == []


@scenarios.test
def test_the_egress_guard_holds_for_polls(shop: Shop) -> None:
    shop.map("hostile:inside", "/hostile/inside", options={"retries_allowed": False})
    [parked] = shop.copies(shop.push("hostile:inside"), ["parked"])
    assert parked["last_answer"]["polled"] == "http://169.254.169.254/latest"
    assert parked["last_answer"]["error"] == "refused_by_guard"
    assert len(shop.endpoint.of("/hostile/inside")) == 1


@scenarios.test
def test_filters_with_patterns_and_paths_with_stars(shop: Shop) -> None:
    shop.map(
        "shipment:ready",
        "/take",
        filters=[
            {"path": "payload.items.*.sku", "operator": "match", "value": "^A[0-9]+$", "match_rule": "any"},
            {"path": "payload.total", "operator": "gt", "value": "10"},
        ],
    )
    wanted = {"items": [{"sku": "B1"}, {"sku": "A7"}], "total": 12}
    ids = [shop.push("shipment:ready", **each) for each in (wanted, {**wanted, "total": 9}, {**wanted, "items": []})]
    shop.copies(ids[0], ["completed"])
    for each in ids[1:]:
        until(lambda: shop.message(each)["queue_name"] == "archived" or None, WAIT_S, lambda: "not routed")  # noqa: B023
        assert shop.message(each)["state"] == "never_processed"


@scenarios.test
def test_a_scheduler_ticks(shop: Shop) -> None:
    shop.map("acme:poll", "/take")
    made = shop.call("POST", "/schedulers", {"scheduler": {"count": 1, "interval": "minutes", "key": "acme:poll"}})
    assert made.status_code == 201, made.text
    pushed = time.monotonic()
    until(
        lambda: [each for each in shop.endpoint.of("/take") if each.body["message"] == "acme:poll"] or None,
        200,
        lambda: "no tick",
    )
    assert time.monotonic() - pushed > 50
    assert shop.call("DELETE", f"/schedulers/{made.json()['id']}").status_code == 200


def test_records_tell_a_messages_whole_life(stack: RunningStack) -> None:
    made = stack.make_project()
    with HubEndpoint() as endpoint:
        shop = Shop(stack.base_url, made.project_id, made.token, endpoint)
        # Given a message that failed once, and one that was polled twice
        shop.map("order:new", "/later")
        shop.map("order:new", "/refuse", options={"retries_allowed": False})
        shop.copies(shop.push("order:new", number=unique("R")), ["completed", "parked"])
        # When their records have been written
        expected = [
            ("accepted", None, None, "hub"),
            ("accepted", None, None, "hub"),
            ("accepted", None, None, "hub"),
            ("attempt", "delivered", "delivered", "hub"),
            ("attempt", "failed", "held", "hub"),
            ("attempt", "poll", "polling", "hub"),
            ("poll", "delivered", "delivered", "hub"),
            ("poll", "poll", "polling", "hub"),
        ]

        def life() -> list[tuple[Any, ...]] | None:
            of_orders = [each for each in records(stack, made.project_id) if each["message_id"] in messages(shop)]
            told = [tuple(each.get(name) for name in ("kind", "verdict", "state", "dialect")) for each in of_orders]
            return told if len(told) >= len(expected) else None

        # Then each event is there once
        assert sorted(until(life, WAIT_S, lambda: "records are missing"), key=str) == sorted(expected, key=str)


def messages(shop: Shop) -> set[str]:
    """Decimal ids of the order and its copies, as records have them."""
    rows = [
        *shop.get("/queues/archived.json", message="order:new", source="incoming"),
        *shop.get("/queues/archived.json", message="order:new", source="accepted"),
        *shop.get("/queues/accepted.json", message="order:new"),
    ]
    return {str(int(row["id"][8:], 16)) for row in rows}


def records(stack: RunningStack, project_id: str) -> list[dict[str, Any]]:
    """Every delivery record of a project."""
    s3, bucket = stack.aws.s3(), stack.outputs["RecordsBucketName"]
    found: list[dict[str, Any]] = []
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="records/"):
        for item in page.get("Contents", []):
            lines = gzip.decompress(s3.get_object(Bucket=bucket, Key=item["Key"])["Body"].read()).splitlines()
            found += [each for each in map(json.loads, lines) if each.get("project") == project_id]
    return found


def test_refusals_as_the_protocol_says_them(stack: RunningStack) -> None:
    store = f"{stack.base_url}/api/stores/{stack.project_id}"
    message = {"message": "a:b", "payload": {}}
    wrong = requests.post(f"{store}/messages", json=message, headers={"X-Augury-Token": "x"}, timeout=30)
    assert (wrong.status_code, wrong.json()) == (401, {"error": "Token is invalid."})
    headers = {"X-Augury-Token": stack.token}
    unknown = requests.post(
        f"{stack.base_url}/api/stores/{'9' * 24}/messages", json=message, headers=headers, timeout=30
    )
    assert (unknown.status_code, unknown.json()) == (401, {"error": "Token is invalid."})
    invalid = requests.post(f"{store}/messages", json={"payload": []}, headers=headers, timeout=30)
    assert invalid.status_code == 422
    assert invalid.json()["error"] == "Invalid object."
    assert set(invalid.json()["errors"]) == {"message", "payload"}
