"""Every JSON type at every known key of every request: refused or accepted, never a fault."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings
from tests.notifications.api.test_api import Client, subscribe
from tests.notifications.world import NotificationWorld

SUBSCRIPTION = {
    "context": "mo",
    "subscription": "orders",
    "source": {"id": "1"},
    "subscriptionFilter": {"apis": ["events"], "typeFilter": "'a' or 'b'"},
    "fragmentsToCopy": ["a"],
    "nonPersistent": False,
}
TOKEN = {
    "subscription": "orders",
    "subscriber": "app",
    "expiresInMinutes": 1,
    "type": "notification",
    "signed": True,
    "shared": False,
    "nonPersistent": False,
}
NOTIFICATION = {
    "api": "events",
    "source": {"id": "1"},
    "action": "CREATE",
    "data": {"type": "a", "source": {"id": "1"}},
}
BINARY = {"api": "events", "source": "1", "action": "CREATE", "data_base64": "AA=="}
REQUESTS: dict[str, list[dict[str, Any]]] = {
    "/notification2/subscriptions": [SUBSCRIPTION, {**SUBSCRIPTION, "context": "tenant"}],
    "/notification2/token": [TOKEN],
    "/notification2/notifications": [NOTIFICATION, BINARY],
}
SHAPES: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1.5,
    1e308,
    10**400,
    "",
    " ",
    "x" * 300,
    "\U0001f600" * 200,
    "\u2028",
    "'",
    "*",
    [],
    [None],
    [[]],
    [{}],
    ["x", 1],
    {},
    {"id": None},
    {"id": []},
    {"id": {}},
    {"id": "\U0001f600" * 200},
    {"type": []},
    {"type": {}},
    {"a": [{"b": None}]},
]


def places(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The path of every key in an object, including nested objects."""
    if not isinstance(value, dict):
        return []
    return [found for key in value for found in [(*path, key), *places(value[key], (*path, key))]]


def put(request: Any, path: tuple[str, ...], shape: Any) -> Any:
    """The request with another value at a path."""
    if not path:
        return shape
    return {**request, path[0]: put(request[path[0]], path[1:], shape)}


def a_client() -> Client:
    """A client with subscriptions that use every field of a notification."""
    client = Client(NotificationWorld())
    subscribe(client, subscriptionFilter={"typeFilter": "'a' or 'b'"}, fragmentsToCopy=["x"])
    subscribe(client, context="mo", source={"id": "1"}, subscription="other", subscriptionFilter={"apis": ["*"]})
    client.world.connect("a")
    return client


@pytest.mark.parametrize(
    ("path", "request_body", "place"),
    [
        pytest.param(path, request, place, id=f"{path}-{number}-{'.'.join(place)}")
        for path, requests in REQUESTS.items()
        for number, request in enumerate(requests)
        for place in [(), *places(request)]
    ],
)
def test_no_type_at_any_key_is_a_fault(path: str, request_body: Any, place: tuple[str, ...]) -> None:
    client = a_client()
    for shape in SHAPES:
        answer = client.call("POST", path, put(request_body, place, shape))
        assert answer.status < 500, (shape, answer)
        assert answer.status < 300 or answer.body["message"]


@pytest.mark.parametrize("kind", [["a"], {"a": 1}, [], {}, 1, None, True])
def test_a_notification_whose_type_is_no_text_is_of_no_type_and_keeps_its_batch(kind: Any) -> None:
    # Given a subscription with a type filter, and a batch with an odd notification between two that fit
    client = a_client()
    batch = [
        {"api": "events", "source": "2", "data": {"type": each, "n": number}}
        for number, each in enumerate(["a", kind, "b"])
    ]
    # When it is published, then those that fit arrive
    assert client.call("POST", "/notification2/notifications", batch).status == 201
    client.world.send_all()
    bodies = [json.loads(each.body) for each in client.world.frames("a")]
    assert [each["type"] for each in bodies] == ["a", "b"]


@pytest.mark.parametrize("depth", [100, *range(850, 1000, 7), 5_000, 100_000])
def test_deep_nesting_is_taken_or_refused(depth: int) -> None:
    client = a_client()
    for data in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        for body in (
            f'{{"api": "events", "source": "1", "data": {data}}}',
            f'{{"api": "events", "source": {data}, "data": 1}}',
            data,
        ):
            assert client.call("POST", "/notification2/notifications", body).status in (201, 413, 422)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KNOWN = sorted({place[-1] for requests in REQUESTS.values() for each in requests for place in places(each)})


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    path=st.sampled_from(sorted(REQUESTS)),
    body=st.dictionaries(st.sampled_from(KNOWN), JSON, max_size=4) | JSON,
)
def test_whatever_is_posted_is_no_fault(path: str, body: Any) -> None:
    answer = a_client().call("POST", path, json.dumps(body))
    assert answer.status < 500
