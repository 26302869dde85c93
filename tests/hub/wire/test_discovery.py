"""``endpoint.json``, as real endpoints write it and as broken ones do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pushhub.base.verdict import Answer
from pushhub.hub.model.filters import Filter, FilterOperator
from pushhub.hub.model.integration import EndpointDescription
from pushhub.hub.model.mapping import ServiceOptions
from pushhub.hub.wire.discovery import DESCRIPTION_LIMIT, description_url, read_description


def described(body: Any, *, status: int = 200, error_class: str = "") -> EndpointDescription:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_description(
        Answer(status_code=status, message="Reason", error_class=error_class, body=raw, started_at=0, finished_at=1)
    )


MANDRILL: dict[str, Any] = {
    "name": "mandrill",
    "display": "Mandrill",
    "description": "Sends transactional emails",
    "help": "http://guides.example/mandrill",
    "icon_url": "http://icons.example/mandrill.png",
    "services": [
        {
            "name": "order_confirmation",
            "path": "/order_confirmation",
            "description": "Send order confirmation emails",
            "requires": {"parameters": [{"name": "api_key", "description": "Key", "data_type": "string"}]},
            "recommends": {
                "messages": ["order:new", "order:updated"],
                "identifiers": {"order_number": "payload.order.number"},
                "filters": [{"path": "payload.order.status", "operator": "eq", "value": "complete"}],
                "options": {"retries_allowed": True},
            },
            "produces": {"messages": [{"message": "email:sent", "schema": "/email.sent.json"}]},
        },
        {
            "name": "feed_status",
            "path": "/feed_status",
            "required": True,
            "requires": {"paramaters": [{"name": "seller_id"}]},
            "recommends": {"messages": ["amazon:feed:status"], "schedule": {"count": 1, "interval": "hour"}},
        },
    ],
}


def test_a_real_description() -> None:
    endpoint = described(MANDRILL)
    confirmation, feed = endpoint.services
    assert (endpoint.display, endpoint.errors) == ("Mandrill", ())
    assert confirmation.parameters == ("api_key",)
    assert confirmation.recommends.messages == ("order:new", "order:updated")
    assert confirmation.recommends.identifiers == (("order_number", "payload.order.number"),)
    assert confirmation.recommends.filters == (
        Filter(path="payload.order.status", operator=FilterOperator.EQ, value="complete"),
    )
    assert confirmation.description["produces"] == MANDRILL["services"][0]["produces"]
    assert feed.required
    assert feed.parameters == ("seller_id",)
    assert feed.recommends.every == (1, "hour")


def test_older_names_are_understood() -> None:
    older = {
        "services": [
            {
                "name": "import",
                "path": "/import",
                "recommends": {
                    "keys": ["order:new"],
                    "event_key": {"order_number": "payload.order.actual.number"},
                    "options": {"allow_retries": False},
                },
            }
        ]
    }
    (service,) = described(older).services
    assert service.recommends.messages == ("order:new",)
    assert service.recommends.identifiers == (("order_number", "payload.order.actual.number"),)
    assert service.recommends.options == ServiceOptions(retries_allowed=False)


def test_a_broken_service_is_left_out_and_named_and_the_others_work() -> None:
    endpoint = described(
        {
            "services": [
                {"name": "good", "path": "/good"},
                {"path": "/nameless"},
                {"name": "pathless"},
                "text",
                {"name": "odd", "path": "/odd", "recommends": {"filters": [{"path": "x", "operator": "like"}]}},
                {"name": "late", "path": "/late", "recommends": {"schedule": {"count": 1, "interval": "fortnight"}}},
                {"name": "good", "path": "/again"},
            ]
        }
    )
    assert [each.path for each in endpoint.services] == ["/good"]
    assert [error.partition(":")[0] for error in endpoint.errors] == [
        "service number 2",
        "service pathless",
        "service number 4",
        "service odd",
        "service late",
        "service good is listed twice; the first one is used",
    ]


MANY_FILTERS: dict[str, Any] = {"path": "/x", "recommends": {"filters": [{"path": "a"}] * 50}}


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"<html>", 200, "not valid JSON"),
        (b"[]", 200, "not an object"),
        ({}, 200, "lists no services"),
        ({"services": {"a": 1}}, 200, "lists no services"),
        (b"gone", 404, "404"),
        (b" " * (DESCRIPTION_LIMIT + 1), 200, "larger than"),
        (b"[" * 50_000, 200, "nested deeper"),
        ({"services": [MANY_FILTERS | {"name": f"s{n}"} for n in range(99)]}, 200, "can be kept"),
    ],
)
def test_a_description_that_is_none_says_why(body: Any, status: int, reason: str) -> None:
    endpoint = described(body, status=status)
    assert endpoint.services == ()
    assert len(endpoint.errors) == 1
    assert reason in endpoint.errors[0]


def test_an_endpoint_that_does_not_answer() -> None:
    assert described(b"", status=0, error_class="timeout").errors == ("endpoint.json could not be read: Reason",)


def test_where_descriptions_lie() -> None:
    assert description_url("http://ep.example/a/") == "http://ep.example/a/endpoint.json"
