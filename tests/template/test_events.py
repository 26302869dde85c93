"""events/ holds a realistic event for each function and each of its triggers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.template.cloudformation import ROOT, called_by, function_of, of_type, own_mappings, source

from pushhub.engine.model.work import WorkOrder
from pushhub.engine.store._delivery_items import decode_delivery
from pushhub.engine.store.dynamodb_messages import decode_message
from pushhub.ironmq.store._pull_items import decode_pull_message
from pushhub.notifications.store._items import decode_backlog, decode_commit
from pushhub.notifications.store.sqs_wakes import decode_wake
from pushhub.runtime import scripts
from pushhub.web.http import request_from_event

EVENTS = sorted((ROOT / "events").glob("*.json"))
FUNCTIONS = {name.removesuffix("Function").lower(): name for name in of_type("AWS::Lambda::Function")}


INVOKED = "invoke"
"""The trigger of a function that others call."""


def event_in(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return read


def trigger_of(event: dict[str, Any]) -> str:
    """The route or resource that produces such an event."""
    if "code" in event:
        return INVOKED
    if "requestContext" in event:
        return str(event["requestContext"]["routeKey"])
    if "Records" in event:
        arns = {record["eventSourceARN"] for record in event["Records"]}
        (arn,) = arns
        name = arn.split("/")[1] if ":dynamodb:" in arn else arn.split(":")[-1]
        return str(name.split("-")[1].removesuffix(".fifo"))
    return str(event["resources"][0].rsplit("/", 1)[-1].split("-")[1])


def triggers() -> set[tuple[str, str]]:
    """Each function with each of its triggers, according to the template."""
    found = set()
    for mapping in own_mappings().values():
        found.add((function_of(mapping), mapping["EventSourceArn"]["Fn::GetAtt"][0]))
    for mapping in of_type("AWS::Lambda::EventSourceMapping").values():
        # Queues that are not the stack's are named after the parameter.
        if "Ref" in mapping["EventSourceArn"]:
            found.add((function_of(mapping), mapping["EventSourceArn"]["Ref"].removesuffix("Arn")))
    for route in of_type("AWS::ApiGatewayV2::Route").values():
        integration = route["Target"]["Fn::Sub"].removeprefix("integrations/${").removesuffix("}")
        found.add((called_by(integration), route["RouteKey"]))
    for url in of_type("AWS::Lambda::Url").values():
        found.add((url["TargetFunctionArn"]["Fn::GetAtt"][0], "$default"))
    for name, schedule in of_type("AWS::Scheduler::Schedule").items():
        found.add((schedule["Target"]["Arn"]["Fn::GetAtt"][0], name))
    # What has a trigger may be called, too, with the same event.
    return found | {(name, INVOKED) for name in called_by_others() - {function for function, _ in found}}


def called_by_others() -> set[str]:
    """The functions that other functions may call."""
    roles = {f"{name}Role" for name in FUNCTIONS.values()}
    allowed = {
        (owner, resource["Fn::GetAtt"][0])
        for owner, role in of_type("AWS::IAM::Role").items()
        for policy in role.get("Policies", ())
        for statement in policy.get("PolicyDocument", {}).get("Statement", ())
        if isinstance(statement, dict) and "lambda:InvokeFunction" in statement.get("Action", ())
        for resource in [statement["Resource"]]
        if "Fn::GetAtt" in resource
    }
    return {name for owner, name in allowed if owner in roles - {f"{name}Role"}}


def test_the_event_of_a_function_that_others_call_is_what_they_ask_it_for(request: pytest.FixtureRequest) -> None:
    # (the process that runs code stays until the function's own ends)
    request.addfinalizer(scripts._sandbox.close)
    asked = event_in(ROOT / "events" / "transform-invoke-code.json")
    assert scripts.run(asked, None)["result"]["payload"] == {"json": '{"text":"order.paid: R154085346"}'}


def test_there_is_an_event_for_each_function_and_trigger_and_none_for_anything_else() -> None:
    shown = {(FUNCTIONS[path.name.split("-")[0]], trigger_of(event_in(path))) for path in EVENTS}
    assert shown == triggers()


WORK = [each for each in EVENTS if "-sqs-" in each.name and not each.name.startswith(("notify-", "ingest-"))]


@pytest.mark.parametrize("path", WORK, ids=lambda path: path.stem)
def test_work_orders_can_be_read(path: Path) -> None:
    for record in event_in(path)["Records"]:
        order = WorkOrder.decode(record["body"])
        assert order.group == record["attributes"]["MessageGroupId"]
        assert order.key.project == "5b6c2f1d9e8a4c7b3d2e1f0a"


def test_wake_ups_can_be_read() -> None:
    for record in event_in(ROOT / "events" / "notify-sqs-wakes.json")["Records"]:
        wake = decode_wake(record["body"])
        assert wake.subscriber_uid == record["attributes"]["MessageGroupId"]
        assert f"{wake.subscriber_uid}.{wake.version}" == record["attributes"]["MessageDeduplicationId"]


@pytest.mark.parametrize("path", [each for each in EVENTS if "-stream-" in each.name], ids=lambda path: path.stem)
def test_stream_images_can_be_read(path: Path) -> None:
    decoders: dict[str, Any] = {
        "message": decode_message,
        "delivery": decode_delivery,
        "line": decode_pull_message,
        "commit": decode_commit,
        "backlog": decode_backlog,
    }
    for record in event_in(path)["Records"]:
        change = record["dynamodb"]
        images = [change[name] for name in ("NewImage", "OldImage") if name in change]
        assert len(images) == {"INSERT": 1, "MODIFY": 2, "REMOVE": 1}[record["eventName"]]
        for image in images:
            assert decoders[image["kind"]["S"]](image)
            assert {name: image[name] for name in ("pk", "sk")} == change["Keys"]


def test_dispatch_is_shown_only_what_its_filter_lets_through() -> None:
    for record in event_in(ROOT / "events" / "dispatch-stream-messages.json")["Records"]:
        assert record["eventName"] == "INSERT"
        assert record["dynamodb"]["NewImage"]["kind"] == {"S": "message"}


@pytest.mark.parametrize("path", [each for each in EVENTS if "-http-" in each.name], ids=lambda path: path.stem)
def test_requests_can_be_read(path: Path) -> None:
    event = event_in(path)
    request = request_from_event(event)
    project = "5b6c2f1d9e8a4c7b3d2e1f0a"
    of_project = (
        f"/3/projects/{project}/queues",
        f"/3/projects/{project}/past",
        f"/api/stores/{project}/",
        "/notification2/",
        "/api/v1/app/",
        f"/ingest/in/{project}/",
        "/console",
        "/docs",
    )
    assert request.path.startswith(of_project)
    assert event["requestContext"]["stage"] == source()["Resources"]["HttpApiStage"]["Properties"]["StageName"]
    if event["routeKey"] != "$default":
        route = event["routeKey"].replace("+}", "}").format(**event.get("pathParameters", {}))
        assert route in (f"{request.method} {request.path}", f"ANY {request.path}")
