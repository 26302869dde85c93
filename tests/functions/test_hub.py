"""The hub protocol's functions as Lambda runs them, and what their roles allow."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.fakes.large_bodies import large_text
from tests.functions.conftest import Functions, as_json, gateway_event, started, turn_clock, whole
from tests.functions.test_engine import PROJECT
from tests.functions.test_policies import run_and_check
from tests.stack.hub_endpoint import TOKEN, HubEndpoint

from pushhub.engine.model.project import Project
from pushhub.engine.projects.projects import Projects

STORE = f"/api/stores/{PROJECT}"


def a_store() -> str:
    """A project; its token."""
    whole().engine.ports.config.put_project(Project(project_id=PROJECT, created_at=1))
    return Projects(config=whole().engine.ports.config, clock=whole().engine.ports.clock).make_token(PROJECT)


def request(token: str, method: str, path: str, body: Any = None) -> dict[str, Any]:
    """An HTTP API event."""
    return gateway_event(method, STORE + path, body, x_augury_token=token)


def called(functions: Functions, token: str, method: str, path: str, body: Any = None) -> Any:
    answer = as_json(functions.invoke("control", request(token, method, path, body)))
    assert answer["statusCode"] < 300, answer
    return json.loads(answer["body"])


def new_messages(functions: Functions, seen: set[str]) -> dict[str, Any]:
    """The stream's new records since the last time."""
    event = functions.stream_event()
    event["Records"] = [each for each in event["Records"] if each["dynamodb"]["NewImage"]["pk"]["S"] not in seen]
    seen |= {each["dynamodb"]["NewImage"]["pk"]["S"] for each in event["Records"]}
    return event


def test_a_hub_message_through_all_functions_each_allowed_what_it_does(functions: Functions) -> None:
    token = a_store()
    with HubEndpoint() as endpoint:
        # Given an endpoint with a synchronous and an asynchronous service
        integration = {"name": "acme", "url": endpoint.url, "category": "custom", "token": TOKEN}
        run_and_check(functions, "control", request(token, "POST", "/integrations", {"integration": integration}))
        [created] = called(functions, token, "GET", "/integrations")
        sign_up = {"parameters": {"api_key": "k" * 20}, "enabled": ["import", "later"]}
        run_and_check(functions, "control", request(token, "POST", f"/integrations/{created['id']}/signup", sign_up))
        # When a large message is pushed, routed, delivered, and polled
        message = {"message": "order:new", "payload": {"number": "R1", "text": large_text(20_000)}}
        run_and_check(functions, "ingest", request(token, "POST", "/messages", message))
        seen: set[str] = set()
        for name, queue in (("push", "ROUTE_QUEUE_URL"), ("poll", "POLL_QUEUE_URL")):
            run_and_check(functions, "dispatch", new_messages(functions, seen))
            run_and_check(functions, name, functions.sqs_event(queue))
        # Started now, so that its sender uses the true time.
        functions.handlers["poll"] = started("poll")
        turn_clock(seconds=3)
        moved = functions.sqs.receive_message(QueueUrl=functions.queue_urls["POLL_QUEUE_URL"], WaitTimeSeconds=4)
        functions.sqs.change_message_visibility(
            QueueUrl=functions.queue_urls["POLL_QUEUE_URL"],
            ReceiptHandle=moved["Messages"][0]["ReceiptHandle"],
            VisibilityTimeout=0,
        )
        # The clock is ahead of the sender's, so the second poll is due as soon as the first is answered.
        run_and_check(functions, "poll", functions.sqs_event("POLL_QUEUE_URL"))
        # Then everything is as requested, and shown
        assert [each.path for each in endpoint.seen] in (
            ["/import", "/later", "/status/R1", "/status/R1"],
            ["/later", "/import", "/status/R1", "/status/R1"],
        )
    archived = called(functions, token, "GET", "/queues/archived.json")
    assert sorted(each["consumer"] for each in archived) == ["acme.import", "acme.later"]
    for each in archived:
        run_and_check(functions, "control", request(token, "GET", f"/messages/{each['id']}"))
    assert called(functions, token, "GET", "/queues") == {
        "incoming": 0,
        "pending": 0,
        "failing": 0,
        "scheduled": 0,
        "parked": 0,
        "archived": 3,
    }


@pytest.mark.parametrize("act", ["attempt_now", "archive"])
def test_a_failure_a_person_and_a_large_page_of_html(functions: Functions, act: str) -> None:
    token = a_store()
    with HubEndpoint() as endpoint:
        mapping = {
            "name": "x",
            "url": f"{endpoint.url}/flaky",
            "token": TOKEN,
            "messages": ["a:b"],
            "filters": [{"path": "payload.text", "operator": "match", "value": "^L+$"}],
            "identifiers": {"text": "payload.text"},
        }
        run_and_check(functions, "control", request(token, "POST", "/mappings", {"mapping": mapping}))
        called(functions, token, "POST", "/messages", {"message": "a:b", "payload": {"text": "LL"}})
        seen: set[str] = set()
        for name, queue in (("push", "ROUTE_QUEUE_URL"), ("poll", "POLL_QUEUE_URL")):
            run_and_check(functions, "dispatch", new_messages(functions, seen))
            run_and_check(functions, name, functions.sqs_event(queue))
        [row] = called(functions, token, "GET", "/queues/accepted.json")
        assert row["state"] == "failing"
        run_and_check(functions, "control", request(token, "PUT", f"/messages/{row['id']}", {act: True}))
        shown = called(functions, token, "GET", f"/messages/{row['id']}")
        assert shown["queue_name"] == ("accepted" if act == "attempt_now" else "archived")


def test_every_other_route_of_the_api_is_allowed_what_it_does(functions: Functions) -> None:
    token = a_store()
    scheduler = {"scheduler": {"count": 1, "interval": "minutes", "key": "a:poll"}}
    run_and_check(functions, "control", request(token, "POST", "/schedulers", scheduler))
    run_and_check(functions, "control", request(token, "POST", "/parameters", {"name": "a.key", "value": "1"}))
    [parameter] = called(functions, token, "GET", "/parameters")
    [created] = called(functions, token, "GET", "/schedulers")
    for path in ("/available_messages", "/notifications", "/mappings", "/queues/incoming", "/queues/accepted"):
        run_and_check(functions, "control", request(token, "GET", path))
    # The ticks run on wake's schedule
    turn_clock(seconds=61)
    run_and_check(functions, "wake", {})
    assert functions.stream_event()["Records"][0]["dynamodb"]["NewImage"]["queue"] == {"S": "hub/incoming"}
    run_and_check(functions, "control", request(token, "DELETE", f"/schedulers/{created['id']}"))
    run_and_check(functions, "control", request(token, "DELETE", f"/parameters/{parameter['id']}"))


@pytest.mark.parametrize(
    ("accept", "status"), [("text/html,application/xhtml+xml", 302), ("*/*", 404), ("application/json", 404)]
)
def test_the_base_url_leads_a_browser_to_the_console(functions: Functions, accept: str, status: int) -> None:
    event = request("", "GET", "") | {"rawPath": "/", "headers": {"accept": accept}}
    answer = as_json(functions.invoke("control", event))
    assert answer["statusCode"] == status
    assert answer["headers"].get("Location") == ("/console" if status == 302 else None)
