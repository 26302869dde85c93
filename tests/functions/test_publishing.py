"""Publishing as Lambda runs it: producers come to ingest, and its role allows what it does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.functions.conftest import Functions, as_json, gateway_event
from tests.functions.test_hub import a_store
from tests.functions.test_policies import run_and_check

NOTIFICATION = {"api": "alarms", "source": "1", "action": "CREATE", "data": {"text": "hot"}}


def request(token: str, method: str, path: str, body: Any = None) -> dict[str, Any]:
    """An HTTP API event."""
    return gateway_event(method, "/notification2" + path, body, authorization=f"Bearer {token}")


def called(functions: Functions, name: str, event: dict[str, Any]) -> Any:
    answer = as_json(functions.invoke(name, event))
    assert answer["statusCode"] < 300, answer
    return json.loads(answer["body"])


@pytest.mark.parametrize("persistent", [True, False])
def test_a_notification_is_published_by_ingest_with_what_it_is_allowed(functions: Functions, persistent: bool) -> None:
    # Given a subscription and a consumer of it
    token = a_store()
    rule = {"context": "tenant", "subscription": "orders", "nonPersistent": not persistent}
    run_and_check(functions, "control", request(token, "POST", "/subscriptions", rule))
    consumer = {"subscription": "orders", "subscriber": "shop", "nonPersistent": not persistent}
    shown = called(functions, "control", request(token, "POST", "/token", consumer))["token"]
    context = {"eventType": "CONNECT", "routeKey": "$connect", "connectionId": "a"}
    event = {"requestContext": context, "queryStringParameters": {"token": shown}}
    assert functions.invoke("consumers", event) == {"statusCode": 200}
    # When notifications are published, one and many, then ingest has the rights for that
    run_and_check(functions, "ingest", request(token, "POST", "/notifications", NOTIFICATION))
    assert [call.operation for call in functions.calls if call.service == "sqs"]
    run_and_check(functions, "ingest", request(token, "POST", "/notifications", [NOTIFICATION] * 100))
    # And for refusing them
    assert functions.invoke("ingest", request("wrong", "POST", "/notifications", NOTIFICATION))["statusCode"] == 401
