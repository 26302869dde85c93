"""Events as headers and as JSON, without a hub around them."""

from __future__ import annotations

import base64
import json

import pytest

from pushhub.webhooks.model.cloud_events import CloudEvent


def event(data: bytes, content_type: str = "application/json") -> CloudEvent:
    return CloudEvent(
        identifier="msg_1",
        source="https://hub.example/api/v1/app/app_1",
        type="invoice.paid",
        time=1_700_000_000_000,
        content_type=content_type,
        data=data,
    )


def test_attributes_go_in_headers_and_the_content_type_does_not() -> None:
    """Given an event, then its headers hold every attribute under ``ce-``, in text that needs no escaping."""
    assert event(b"{}").headers == {
        "ce-specversion": "1.0",
        "ce-id": "msg_1",
        "ce-source": "https://hub.example/api/v1/app/app_1",
        "ce-type": "invoice.paid",
        "ce-time": "2023-11-14T22:13:20.000Z",
    }


@pytest.mark.parametrize("media", ["application/json", "application/JSON; charset=utf-8", "application/problem+json"])
def test_json_stands_in_a_structured_event_as_the_text_it_was(media: str) -> None:
    """Given data that is JSON, when it is put into a structured event, then not even a space of it changes."""
    text = b'{"b": 1.0,  "a":"\\u00fc"}'
    structured = event(text, media).structured
    assert structured.endswith(b',"data":' + text + b"}")
    assert json.loads(structured)["datacontenttype"] == media


@pytest.mark.parametrize("data", [b"", b"{", b'{"a": NaN}', b"\xff", b"[" * 100_000], ids=lambda data: repr(data[:9]))
def test_what_only_calls_itself_json_goes_as_base64(data: bytes) -> None:
    """Given data that a reader of the event could not parse, then the event can be parsed and the bytes are whole."""
    structured = json.loads(event(data).structured)
    assert base64.b64decode(structured["data_base64"]) == data
    assert "data" not in structured


def test_text_goes_as_text_and_bytes_as_base64() -> None:
    """Given data that is not JSON, then it becomes a string if it is text at all."""
    assert json.loads(event("grüß dich".encode(), "text/plain").structured)["data"] == "grüß dich"
    assert json.loads(event(b"\xff\x00", "text/plain").structured)["data_base64"] == "/wA="
