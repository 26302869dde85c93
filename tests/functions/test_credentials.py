"""What opens something, through the functions as Lambda runs them, and what their roles allow."""

from __future__ import annotations

from tests.cloud import aws_services as aws
from tests.fakes.verifier import symmetric, verified
from tests.functions.conftest import Functions, Sink, gateway_event
from tests.functions.test_engine import PROJECT, post
from tests.functions.test_hub import a_store
from tests.functions.test_policies import run_and_check

from pushhub.base.credentials import MASK

SECRET = symmetric("a")


def test_functions_are_allowed_to_keep_credentials_and_to_send_them(functions: Functions, sink: Sink) -> None:
    # Given a subscriber with a password, a header and a secret, set in clear and then written back as it is shown
    token = a_store()

    def call(method: str, path: str, body: object) -> None:
        path = f"/3/projects/{PROJECT}/queues/orders{path}"
        run_and_check(functions, "control", gateway_event(method, path, body, authorization=f"OAuth {token}"))

    url = sink.url.replace("://", "://shop:p4ssw0rd@")
    given = {"name": "shop", "url": url, "headers": {"Authorization": "Bearer t0ken"}, "signing": {"secret": SECRET}}
    call("PUT", "", {"queue": {"push": {"subscribers": [given]}}})
    masked = {
        **given,
        "url": sink.url.replace("://", f"://{MASK}@"),
        "headers": {"Authorization": MASK},
        "timeout": 9,
        "signing": True,
    }
    call("PUT", "/subscribers", {"subscribers": [masked]})
    # When a message is pushed
    post(b"x")
    run_and_check(functions, "dispatch", functions.stream_event())
    run_and_check(functions, "push", functions.sqs_event("PUSH_QUEUE_URL"))
    # Then it carries all, and no table holds any
    [(headers, body)] = sink.received
    assert verified(SECRET, headers, body)
    assert {name.lower(): value for name, value in headers.items()}["authorization"] == "Bearer t0ken"
    tables = [aws.CONFIG_TABLE, aws.MESSAGES_TABLE]
    content = str([functions.dynamodb.scan(TableName=each)["Items"] for each in tables])
    assert MASK in content
    assert "p4ssw0rd" not in content
    assert "t0ken" not in content
    assert SECRET.removeprefix("whsec_") not in content
    assert "a" * 32 not in content
