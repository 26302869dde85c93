"""Messages of the hub: content, types, parameters, notifications and mappings."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pushhub.base.json_text import Verbatim
from pushhub.hub.model.internal_queues import INCOMING_QUEUE, mapping_of_queue, service_queue
from pushhub.hub.model.mapping import ServiceMapping, ServiceOptions
from pushhub.hub.model.message import HubMessage, is_message_type
from pushhub.hub.model.notice import Level, message_type, notification_id
from pushhub.hub.model.parameters import DataType, Parameter, data_type_of, parameter_id, sent_parameters
from pushhub.hub.queues import HubQueues

FULL = HubMessage(
    type="order:new",
    payload={"order": {"number": "R1", "größe": "☃", "total": 1.0}},
    source="acme.import",
    origin="store",
    extra={"store_name": "x"},
    quiet=True,
    delay_s=120,
)


@pytest.mark.parametrize("message", [FULL, HubMessage(type="a", payload={})])
def test_a_message_survives_being_stored(message: HubMessage) -> None:
    stored = HubMessage.decode(message.encode())
    assert (stored.data, stored.type, stored.source, stored.origin) == (
        message.payload,
        message.type,
        message.source,
        message.origin,
    )
    assert (stored.quiet, stored.delay_s, stored.extra.keys()) == (message.quiet, message.delay_s, message.extra.keys())
    assert stored.encode() == message.encode()


def test_a_payload_is_stored_and_sent_as_it_was_written() -> None:
    """Given a payload whose numbers Python would write differently, then they stay, wherever it goes."""
    text = '{ "total": 19.90,  "at": 165000000000000000000.12, "n": [1E2, -0] }'
    stored = HubMessage.decode(HubMessage(type="a", payload=Verbatim(text), extra={"x": Verbatim("1.0")}).encode())
    assert (stored.payload_text, stored.extra) == (text, {"x": Verbatim("1.0")})
    assert stored.as_sent("5" * 24)["payload"] == {"total": 19.9, "at": 1.65e20, "n": [100.0, 0]}


def test_services_see_type_id_payload_and_source_only() -> None:
    assert FULL.as_sent("5" * 24) == {
        "message": "order:new",
        "message_id": "5" * 24,
        "payload": FULL.payload,
        "source": "acme.import",
    }
    assert "source" not in HubMessage(type="a", payload={}).as_sent("5" * 24)


@pytest.mark.parametrize(
    "value", ["order:new", "order:confirmation:sent", "acme:order:poll", "notification:info", "x", "ü:ö"]
)
def test_message_types(value: str) -> None:
    assert is_message_type(value)


@pytest.mark.parametrize("value", ["", " ", "order new", "order\nnew", "a" * 201, None, 5, ["order:new"], "a\u2028b"])
def test_no_message_types(value: object) -> None:
    assert not is_message_type(value)


def test_internal_queues_belong_to_mappings() -> None:
    assert mapping_of_queue(service_queue("5" * 24)) == "5" * 24
    assert mapping_of_queue(INCOMING_QUEUE) is None
    assert mapping_of_queue("orders") is None


def test_parameters_travel_as_an_array_of_names_and_values() -> None:
    one = Parameter(project="p", name="acme.lookup", value=[{"standard": "G"}], data_type=DataType.LIST, as_of=1)
    assert sent_parameters([one]) == [{"name": "acme.lookup", "value": [{"standard": "G"}]}]
    assert one.parameter_id == parameter_id("p", "acme.lookup") != parameter_id("q", "acme.lookup")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, DataType.BOOLEAN),
        (1, DataType.INTEGER),
        (1.5, DataType.FLOAT),
        ([], DataType.LIST),
        ({"a": 1}, DataType.LIST),
        ("x", DataType.STRING),
        (None, DataType.STRING),
    ],
)
def test_types_of_values_nobody_declared(value: object, kind: DataType) -> None:
    assert data_type_of(value) is kind


def test_a_notification_is_the_same_for_its_message_level_and_subject() -> None:
    one = notification_id("p", "1", Level.ERROR, "Out of stock")
    assert one == notification_id("p", "1", Level.ERROR, "Out of stock")
    others = {
        notification_id("q", "1", Level.ERROR, "Out of stock"),
        notification_id("p", "2", Level.ERROR, "Out of stock"),
        notification_id("p", "1", Level.WARN, "Out of stock"),
        notification_id("p", "1", Level.ERROR, "Out of order"),
    }
    assert one not in others
    assert len(others) == 4
    assert message_type(Level.ERROR) == "notification:error"


def a_mapping(**changes: object) -> ServiceMapping:
    fields: dict[str, object] = {
        "mapping_id": "5" * 24,
        "name": "acme.import",
        "url": "https://acme.example/import",
        "token": "t" * 32,
        "messages": ("order:new",),
    }
    return ServiceMapping(**{**fields, **changes})  # type: ignore[arg-type]


def test_a_mapping_wants_its_types_while_it_is_enabled() -> None:
    assert a_mapping().wants("order:new")
    assert not a_mapping().wants("order:updated")
    assert not a_mapping(enabled=False).wants("order:new")


def test_a_mappings_back_off_is_exponential_without_end_and_leaves_the_end_to_a_person() -> None:
    mapping = a_mapping()
    queues = HubQueues(settings=SimpleNamespace(mapping=lambda *_: mapping))
    queue = queues.queue("p", service_queue(mapping.mapping_id))
    assert queue is not None
    push = queue.push
    assert push is not None
    assert [push.policy.wait_ms(tries, 0.0) for tries in (1, 2, 3)] == [30_000, 60_000, 120_000]
    assert push.policy.wait_ms(10_000, 1.0) == 3_600_000
    assert push.policy.holds
    assert ServiceOptions(retries_allowed=False).policy.wait_ms(1, 0.0) is None
    assert ServiceOptions(max_attempts=3).policy.wait_ms(3, 0.0) is None
    assert ServiceOptions(max_attempts=3).policy.wait_ms(2, 0.0) == 60_000
