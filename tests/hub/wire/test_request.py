"""The exact request a service is sent, and the addresses that polls go to."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pushhub.base.errors import Invalid
from pushhub.base.json_text import Verbatim
from pushhub.hub.model.mapping import ServiceMapping
from pushhub.hub.model.message import HubMessage
from pushhub.hub.model.parameters import DataType, Parameter
from pushhub.hub.wire.request import checked_url, poll_address, request_body, request_headers, service_url

OBJECT_ID = "53ab0c0f1a2b3c4d5e6f7a8b"
KEY = Parameter(project="p", name="acme.api_key", value="k1", data_type=DataType.STRING, as_of=1)
LOOKUP = Parameter(
    project="p",
    name="acme.method_lookup",
    value=[{"standard": "GROUND", "fast": "AIR"}],
    data_type=DataType.LIST,
    as_of=1,
)


def mapping(url: str = "http://ep.example/base/import?x=1") -> ServiceMapping:
    return ServiceMapping(mapping_id="5" * 24, name="acme.import", url=url, token="t" * 32, messages=("a:b",))


def test_the_body_holds_message_id_payload_and_the_parameters_inside_as_an_array() -> None:
    body = request_body(HubMessage(type="order:new", payload={"order": {"number": "R1"}}), OBJECT_ID, [KEY, LOOKUP])
    assert json.loads(body) == {
        "message": "order:new",
        "message_id": OBJECT_ID,
        "payload": {
            "order": {"number": "R1"},
            "parameters": [
                {"name": "acme.api_key", "value": "k1"},
                {"name": "acme.method_lookup", "value": [{"standard": "GROUND", "fast": "AIR"}]},
            ],
        },
    }


def test_an_empty_payload_is_sent_as_an_object_and_without_parameters_when_there_are_none() -> None:
    assert request_body(HubMessage(type="a:poll", payload={}), OBJECT_ID, []) == (
        b'{"message":"a:poll","message_id":"' + OBJECT_ID.encode() + b'","payload":{}}'
    )


@pytest.mark.parametrize("given", [{"secret": "s"}, [{"name": "other.secret", "value": "s"}], "s", None])
def test_parameters_in_a_payload_never_travel_on(given: object) -> None:
    message = HubMessage(type="a:b", payload={"parameters": given, "x": 1})
    assert json.loads(request_body(message, OBJECT_ID, []))["payload"] == {"x": 1}
    assert json.loads(request_body(message, OBJECT_ID, [KEY]))["payload"]["parameters"] == [
        {"name": "acme.api_key", "value": "k1"}
    ]


def test_notification_messages_carry_their_source() -> None:
    message = HubMessage(type="notification:error", payload={"subject": "x"}, source="acme.import")
    assert json.loads(request_body(message, OBJECT_ID, []))["source"] == "acme.import"


def test_what_is_only_the_hubs_is_not_sent() -> None:
    message = HubMessage(type="a:b", payload={}, origin="store", extra={"mapping": 1}, quiet=True, delay_s=5)
    assert set(json.loads(request_body(message, OBJECT_ID, []))) == {"message", "message_id", "payload"}


def test_text_is_sent_as_utf_8() -> None:
    assert "größe ☃".encode() in request_body(HubMessage(type="a", payload={"x": "größe ☃"}), OBJECT_ID, [])


def test_headers() -> None:
    assert request_headers("t" * 32) == {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "X-Augury-Token": "t" * 32,
    }


@pytest.mark.parametrize(
    ("update_url", "address"),
    [
        ("http://other.example/poll/1", "http://other.example/poll/1"),
        ("/status/acme/1", "http://ep.example/status/acme/1"),
        ("status/1", "http://ep.example/base/status/1"),
        ("?id=1", "http://ep.example/base/import?id=1"),
        ("//cdn.example/x", "http://cdn.example/x"),
    ],
)
def test_poll_addresses_of_a_mapping_on_its_own_follow_rfc_3986(update_url: str, address: str) -> None:
    assert poll_address(update_url, mapping()) == address


def test_a_path_starts_at_the_root_of_the_host_for_services_of_an_integration_too() -> None:
    one = replace(mapping(url="https://ep.example/quickbooks/import"), integration_id="6" * 24)
    assert poll_address("/status/acme/1", one) == "https://ep.example/status/acme/1"
    assert poll_address("status/1", one) == "https://ep.example/quickbooks/status/1"
    assert poll_address("//cdn.example/x", one) == "https://cdn.example/x"


@pytest.mark.parametrize(
    "update_url",
    [
        "file:///etc/passwd",
        "gopher://ep.example/1",
        "javascript:alert(1)",
        "http://user:pass@ep.example/",
        "http://ep.example/a b",
        "http://ep.example/\r\nX: y",
        "http://[::1",
        "http://ep.example:port/",
        "http://ep.example/" + "a" * 2048,
    ],
)
def test_addresses_that_nothing_may_be_sent_to(update_url: str) -> None:
    with pytest.raises(Invalid):
        poll_address(update_url, mapping())


def test_service_urls() -> None:
    assert service_url("https://ep.example/a/", "/b") == "https://ep.example/a/b"
    assert service_url("https://ep.example", "b") == "https://ep.example/b"
    assert checked_url("https://ep.example:8443/x") == "https://ep.example:8443/x"


def test_services_get_the_payload_as_it_was_written() -> None:
    """Given a payload with numbers, spaces and escapes of its own, then all of it is sent, but parameters."""
    text = '{"total": 19.90, "at": 165000000000000000000.12, "n": [1E2, -0], "\\u0061": "\\u00e9"}'
    assert request_body(HubMessage(type="a", payload=Verbatim(text)), OBJECT_ID, []) == (
        f'{{"message":"a","message_id":"{OBJECT_ID}","payload":{text}}}'.encode()
    )
    with_parameters = text[:-1] + ', "par\\u0061meters": [{"name": "x", "value": "s"}]}'
    body = request_body(HubMessage(type="a", payload=Verbatim(with_parameters)), OBJECT_ID, [KEY])
    sent = json.loads(body, parse_float=str)["payload"]
    assert sent["total"] == "19.90"
    assert sent["at"] == "165000000000000000000.12"
    assert sent["parameters"] == [{"name": "acme.api_key", "value": "k1"}]
    assert b'"n":[1E2, -0]' in body
