"""Signed subscribers through the functions as Lambda runs them, and what their roles allow."""

from __future__ import annotations

import json

from tests.cloud import aws_services as aws
from tests.fakes.verifier import symmetric, verified
from tests.functions.conftest import Functions, Sink, whole
from tests.functions.test_engine import PROJECT, post
from tests.functions.test_policies import run_and_check

from pushhub.engine.model.project import Project
from pushhub.engine.projects.projects import Projects


def test_functions_are_allowed_to_keep_the_secret_of_a_subscriber_and_to_sign_with_it(
    functions: Functions, sink: Sink
) -> None:
    # Given a subscriber with signing, and then with another secret
    ports = whole().engine.ports
    ports.config.put_project(Project(project_id=PROJECT, created_at=1))
    token = Projects(config=ports.config, clock=ports.clock).make_token(PROJECT)
    for letter in "ab":
        signed = {"name": "shop", "url": sink.url, "signing": {"secret": symmetric(letter)}}
        event = {
            "rawPath": f"/3/projects/{PROJECT}/queues/orders",
            "rawQueryString": "",
            "headers": {"authorization": f"OAuth {token}", "content-type": "application/json"},
            "body": json.dumps({"queue": {"push": {"subscribers": [signed]}}}),
            "isBase64Encoded": False,
            "requestContext": {"stage": "$default", "http": {"method": "PUT", "sourceIp": "127.0.0.1"}},
        }
        run_and_check(functions, "control", event)
    # When a message is pushed to it, then it can verify that with either, and no role lacks a right
    post(b"x")
    run_and_check(functions, "dispatch", functions.stream_event())
    run_and_check(functions, "push", functions.sqs_event("PUSH_QUEUE_URL"))
    [(headers, body)] = sink.received
    assert verified(symmetric("a"), headers, body)
    assert verified(symmetric("b"), headers, body)
    # And the table contains neither secret
    [stored] = [each for each in functions.dynamodb.scan(TableName=aws.CONFIG_TABLE)["Items"] if "push" in each]
    assert symmetric("a").removeprefix("whsec_") not in str(stored)
    assert b"b" * 32 not in stored["push"]["M"]["subscribers"]["L"][0]["M"]["sealed"]["B"]
