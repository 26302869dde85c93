"""Whatever is sent, the answer is well-formed: never a 500, always JSON with the right content type."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.world import PROJECT
from tests.ironmq.api.hub import Hub
from tests.web.test_json import OBJECTS, VALUES

SEGMENTS = st.one_of(
    st.sampled_from(
        [
            "q",
            "push",
            "none",
            "messages",
            "reservations",
            "webhook",
            "subscribers",
            "touch",
            "release",
            "1",
            "",
            "queues",
        ]
    ),
    st.text(max_size=8),
)
PATHS = st.lists(SEGMENTS, max_size=5).map(lambda each: "/".join(["", "3", "projects", PROJECT, "queues", *each]))
METHODS = st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE"])
BODIES = st.one_of(
    OBJECTS.map(lambda value: json.dumps(value).encode()),
    VALUES.map(lambda value: json.dumps({"queue": value, "messages": [value], "subscribers": [value]}).encode()),
    st.binary(max_size=50),
)


@settings(max_examples=100, deadline=None)
@given(method=METHODS, path=PATHS, query=st.text(max_size=12), body=BODIES)
def test_no_request_is_a_fault(method: str, path: str, query: str, body: bytes) -> None:
    # Given a hub with a pull and a push queue
    hub = Hub()
    hub.post("q", "x")
    hub.make_push("push", "https://a.example/in")
    event = hub.event("POST", "/", body, {"Authorization": f"OAuth {hub.token}", "Content-Type": "application/json"})
    event |= {"rawPath": path, "rawQueryString": query}
    event["requestContext"]["http"]["method"] = method
    # When anything at all is sent
    result = hub.api.handle(event)
    # Then it is carried out or refused, in this API's format
    assert result["statusCode"] in {200, 201, 400, 401, 403, 404, 405}
    assert result["headers"]["Content-Type"] == "application/json"
    answer: Any = json.loads(result["body"] or "{}")
    assert isinstance(answer, dict)
    assert result["statusCode"] < 400 or method == "HEAD" or answer["msg"]
    result["body"].encode()


@settings(max_examples=100, deadline=None)
@given(value=OBJECTS)
def test_settings_are_taken_whole_or_refused_whole(value: dict[str, Any]) -> None:
    # Given a queue
    hub = Hub()
    hub.make_push("q", "https://a.example/in")
    before = hub.info("q")
    # When any settings are sent
    result = hub.call("PATCH", "/queues/q", {"queue": value})
    # Then they are in effect, or nothing changed, and what is shown can always be sent back
    assert result.status in {200, 400, 403}
    after = hub.info("q")
    assert after == (result.body["queue"] if result.status == 200 else before)
    assert hub.call("PUT", "/queues/q", {"queue": after}).status == 200


@pytest.mark.parametrize("query", ["prefix", "previous"])
def test_what_is_longer_than_any_name_is_refused_before_a_table_is_asked_for_it(query: str) -> None:
    hub = Hub()
    assert hub.call("GET", f"/queues?{query}={'x' * 255}").status == 200
    result = hub.call("GET", f"/queues?{query}={'x' * 256}")
    assert (result.status, result.msg) == (400, f"{query} is longer than 255 bytes")


def test_a_project_longer_than_any_is_none_before_a_table_is_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub()
    asked = Mock(return_value=None)
    monkeypatch.setattr(hub.world.config, "queue", asked)
    result = hub.send("DELETE", f"/3/projects/{'x' * 3_000}/queues/q/messages/1?subscriber_name=s", token="")
    assert result.status == 401
    asked.assert_not_called()
