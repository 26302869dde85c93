"""Each function's role allows every AWS call that the function makes: the emulator would not tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from samtranslator.yaml_helper import yaml_parse
from tests.adapters import aws_services as aws
from tests.functions.conftest import Call, Functions, Sink
from tests.functions.test_engine import a_push_queue, post, turn_clock

ROOT = Path(__file__).parents[2]

RESOURCES = {
    aws.CONFIG_TABLE: "ConfigTable",
    aws.MESSAGES_TABLE: "MessagesTable",
    aws.LINES_TABLE: "LinesTable",
    aws.HUB_TABLE: "HubTable",
    aws.BUCKET: "BodiesBucket",
    "push_queue": "PushQueue",
    "retry_queue": "RetryQueue",
    "poll_queue": "PollQueue",
    "errors_queue": "ErrorsQueue",
    "dispatch_failures": "DispatchFailures",
}
"""Name in the tests: logical id in the template."""

IAM_ACTIONS = {
    "SendMessageBatch": ["sqs:SendMessage"],
    "ChangeMessageVisibilityBatch": ["sqs:ChangeMessageVisibility"],
    "TransactWriteItems": ["dynamodb:PutItem"],
    "HeadBucket": ["s3:ListBucket"],
}
"""Where the IAM action is not called like the operation."""


def allowed(role: str) -> set[tuple[str, str]]:
    """(action, logical id) pairs a role allows; indexes count as their table."""
    template: Any = yaml_parse((ROOT / "template.yaml").read_text())
    pairs: set[tuple[str, str]] = set()
    for policy in template["Resources"][role]["Properties"]["Policies"]:
        for statement in policy["PolicyDocument"]["Statement"]:
            if "Action" not in statement:
                continue  # conditional: the key of an encrypted deployment
            actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
            text = json.dumps(statement["Resource"])
            pairs |= {(action, name) for action in actions for name in RESOURCES.values() if f'"{name}"' in text}
            pairs |= {(action, name) for action in actions for name in RESOURCES.values() if f"${{{name}" in text}
    return pairs


def needed(calls: list[Call]) -> set[tuple[str, str]]:
    """(action, logical id) pairs that calls need."""
    pairs: set[tuple[str, str]] = set()
    for call in calls:
        actions = IAM_ACTIONS.get(call.operation, [f"{call.service}:{call.operation}"])
        for name in targets(call.parameters):
            pairs |= {(action, RESOURCES[name]) for action in actions}
    return pairs


def targets(parameters: dict[str, Any]) -> set[str]:
    """Names of the tables, buckets and queues a call is about."""
    if "RequestItems" in parameters:
        return set(parameters["RequestItems"])
    if "TransactItems" in parameters:
        return {operation["TableName"] for item in parameters["TransactItems"] for operation in item.values()}
    for key in ("TableName", "Bucket"):
        if key in parameters:
            return {parameters[key]}
    return {parameters["QueueUrl"].rpartition("/")[2]}


def lambdas_own(calls: list[Call]) -> list[Call]:
    """Only what the function called, not what the test did in its place."""
    return [call for call in calls if call.operation not in {"ReceiveMessage", "Scan", "CreateQueue", "CreateTable"}]


@pytest.mark.parametrize("retries_delay", [3, 5000])
def test_the_engine_is_allowed_what_it_does(functions: Functions, sink: Sink, retries_delay: int) -> None:
    # Given messages of both kinds, a subscriber that fails, and a fan-out into a pull queue
    a_push_queue(sink.url, retries=1, retries_delay=retries_delay)
    sink.status = 500
    post(b"x", b"L" * 20_000)
    event = functions.stream_event()
    # When each function does its part, then its role allows every call
    run_and_check(functions, "dispatch", event)
    run_and_check(functions, "push", functions.sqs_event("PUSH_QUEUE_URL"))
    turn_clock(seconds=retries_delay + 1)
    if retries_delay > 900:
        run_and_check(functions, "wake", {})
    else:
        moved = functions.sqs.receive_message(QueueUrl=functions.queue_urls["RETRY_QUEUE_URL"], WaitTimeSeconds=4)
        assert moved["Messages"]
        functions.sqs.change_message_visibility(
            QueueUrl=functions.queue_urls["RETRY_QUEUE_URL"],
            ReceiptHandle=moved["Messages"][0]["ReceiptHandle"],
            VisibilityTimeout=0,
        )
    run_and_check(functions, "push", functions.sqs_event("RETRY_QUEUE_URL"))
    run_and_check(functions, "errors", functions.sqs_event("ERRORS_QUEUE_URL"))


def run_and_check(functions: Functions, name: str, event: dict[str, Any]) -> None:
    functions.forget()
    assert event.get("Records", [1]), f"nothing for {name} to do"
    functions.invoke(name, event)
    own = lambdas_own(functions.calls)
    assert own
    missing = needed(own) - allowed(f"{name.capitalize()}Role")
    assert not missing, f"{name} may not {sorted(missing)}"
