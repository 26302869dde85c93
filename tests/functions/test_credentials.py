"""What opens something, through the functions as Lambda runs them, and what their roles allow."""

from __future__ import annotations

import json

from tests.cloud import aws_services as aws
from tests.functions.conftest import Functions, Sink, whole
from tests.functions.test_engine import PROJECT, post
from tests.functions.test_policies import run_and_check

from pushhub.base.credentials import MASK
from pushhub.engine.model.project import Project
from pushhub.engine.projects.projects import Projects


def test_functions_are_allowed_to_keep_credentials_and_to_send_them(functions: Functions, sink: Sink) -> None:
    # Given subscribers with a password and a header, set in clear and then written back as they are shown
    ports = whole().engine.ports
    ports.config.put_project(Project(project_id=PROJECT, created_at=1))
    token = Projects(config=ports.config, clock=ports.clock).make_token(PROJECT)

    def call(method: str, path: str, body: object) -> None:
        event = {
            "rawPath": f"/3/projects/{PROJECT}/queues/orders{path}",
            "rawQueryString": "",
            "headers": {"authorization": f"OAuth {token}", "content-type": "application/json"},
            "body": json.dumps(body),
            "isBase64Encoded": False,
            "requestContext": {"stage": "$default", "http": {"method": method, "sourceIp": "127.0.0.1"}},
        }
        run_and_check(functions, "control", event)

    url = sink.url.replace("://", "://shop:p4ssw0rd@")
    given = {"name": "shop", "url": url, "headers": {"Authorization": "Bearer t0ken"}}
    call("PUT", "", {"queue": {"push": {"subscribers": [given]}}})
    masked = {**given, "url": sink.url.replace("://", f"://{MASK}@"), "headers": {"Authorization": MASK}, "timeout": 9}
    call("PUT", "/subscribers", {"subscribers": [masked]})
    # When a message is pushed
    post(b"x")
    run_and_check(functions, "dispatch", functions.stream_event())
    run_and_check(functions, "push", functions.sqs_event("PUSH_QUEUE_URL"))
    # Then it carries both, and no table holds either
    [(headers, _)] = sink.received
    assert {name.lower(): value for name, value in headers.items()}["authorization"] == "Bearer t0ken"
    tables = [aws.CONFIG_TABLE, aws.MESSAGES_TABLE]
    content = str([functions.dynamodb.scan(TableName=each)["Items"] for each in tables])
    assert MASK in content
    assert "p4ssw0rd" not in content
    assert "t0ken" not in content
