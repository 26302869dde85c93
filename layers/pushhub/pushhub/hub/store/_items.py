"""Settings and log of the hub protocol as items of the hub table.

Settings are JSON text in one attribute and are read whole. What DynamoDB has to search by gets an attribute of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.base import json_text
from pushhub.base.fields import stored_of
from pushhub.base.gates import ClientCertificate
from pushhub.base.verdict import Answer
from pushhub.cloud.documents import AS_IT_IS, NONE, Codec, Document, read_by
from pushhub.cloud.records import Record, choice
from pushhub.cloud.table import Item, number, text, texts
from pushhub.cloud.unreadable import decodes
from pushhub.engine.model.deflated import plain, stored_as
from pushhub.engine.model.message import BodyRef
from pushhub.engine.store._bodies import decode_body, encode_body
from pushhub.hub.model.filters import Filter, FilterOperator, MatchRule
from pushhub.hub.model.integration import EndpointDescription, Integration, Recommendation, Service
from pushhub.hub.model.log import HubState, Location, LoggedMessage, LogList, OpenRequest, RecordedAnswer
from pushhub.hub.model.mapping import ServiceMapping, ServiceOptions
from pushhub.hub.model.notice import Level, Notice
from pushhub.hub.model.parameters import DataType, Parameter
from pushhub.hub.store._keys import json_attribute, shard_of

if TYPE_CHECKING:
    from pushhub.engine.security.credentials import Credentials

ANSWER_KEPT_S = 86_400
"""How long an answer outlives its time before the table's TTL may take it, seconds."""


def log_key(project: str, message_id: str, sort_key: str) -> Item:
    """The key of an item that belongs to a message."""
    return {"pk": text(f"{project}#M#{message_id}"), "sk": text(sort_key)}


def list_key(project: str, listing: LogList, shard: int) -> str:
    """One partition of a list of messages."""
    return f"{project}#{listing}#{shard}"


def note_list_key(project: str, shard: int) -> str:
    """One partition of the list of a store's notifications."""
    return f"{project}#notifications#{shard}"


def note_place(at: int) -> str:
    """The position in that list where notifications of a moment begin."""
    return f"{at:015d}"


def _pairs(given: list[list[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(map(tuple, given))


_FILTERS = {
    "Filter": Document(Filter, {"FilterOperator": read_by(FilterOperator), "MatchRule": read_by(MatchRule)}).kind
}
_OPTIONS = {"ServiceOptions": Document(ServiceOptions).kind}
_CERTIFICATE = {"ClientCertificate": Document(ClientCertificate).kind}
_MAPPING = Document(ServiceMapping, {**_FILTERS, **_OPTIONS, **_CERTIFICATE, "Attributes[str, str]": AS_IT_IS})
SEALED = ("sealed", "oauth", "identity", "credentials")
"""Attributes of a mapping that are encrypted; left out if empty."""
_RECOMMENDATION = Document(
    Recommendation,
    {**_FILTERS, **_OPTIONS, "tuple[tuple[str, str], ...]": read_by(_pairs), "tuple[int, str]": read_by(tuple)},
)
_SERVICE = Document(Service, {"Recommendation": _RECOMMENDATION.kind})
_DESCRIPTION = Document(EndpointDescription, {"Service": _SERVICE.kind})
_INTEGRATION = Document(Integration, {"EndpointDescription": _DESCRIPTION.kind})


def encode_mapping(mapping: ServiceMapping) -> Item:
    """All attributes but the key."""
    return _encoded(_MAPPING.encode(mapping), **{name: getattr(mapping, name) for name in SEALED})


def _encoded(fields: dict[str, Any], **encrypted: bytes) -> Item:
    """Fields as JSON; those that are encrypted in attributes of their own."""
    apart = {name: {"B": value} for name, value in encrypted.items() if value}
    return {"doc": json_attribute(fields), "version": number(fields["version"]), **apart}


@decodes
def decode_mapping(item: Item) -> ServiceMapping:
    """The mapping from its item."""
    apart = {name: _encrypted(item, name) for name in SEALED}
    mapping: ServiceMapping = _MAPPING.decode(json_text.stored(item["doc"]["S"]), **apart)
    return mapping


def _encrypted(item: Item, name: str) -> bytes:
    return bytes(item[name]["B"]) if name in item else b""


def encode_integration(integration: Integration) -> Item:
    """All attributes but the key."""
    return _encoded(_INTEGRATION.encode(integration), credentials=integration.credentials)


@decodes
def decode_integration(item: Item) -> Integration:
    """The integration from its item."""
    found = json_text.stored(item["doc"]["S"])
    integration: Integration = _INTEGRATION.decode(found, credentials=_encrypted(item, "credentials"))
    return integration


def encode_parameter(parameter: Parameter, credentials: Credentials) -> Item:
    """All attributes but the key."""
    value = {"": {"value": json_text.write(parameter.value)}}
    return {
        "name": text(parameter.name),
        "sealed": {"B": credentials.seal(parameter.project, value)},
        "data_type": text(parameter.data_type),
        "as_of": number(parameter.as_of),
    }


@decodes
def decode_parameter(item: Item, project: str, credentials: Credentials) -> Parameter:
    """The parameter from its item."""
    value = credentials.open(project, bytes(item["sealed"]["B"]))[""]["value"]
    return Parameter(
        project=project,
        name=item["name"]["S"],
        value=json_text.read(value, last_wins=True, exact=True),
        data_type=DataType(item["data_type"]["S"]),
        as_of=int(item["as_of"]["N"]),
    )


_ENTRY = Record(LoggedMessage, {"Location": choice(Location), "HubState": choice(HubState)})
OPTIONAL_OF_ENTRY = tuple(name for name, annotation, *_ in stored_of(LoggedMessage) if annotation.endswith(NONE))
"""Attributes of a log entry that only some have."""


def encode_entry(entry: LoggedMessage) -> Item:
    """All attributes of a log entry but its key and children."""
    return _ENTRY.encode(entry) | {
        "list_key": text(list_key(entry.project, entry.listing, shard_of(entry.message_id))),
        "list_place": text(entry.message_id),
    }


@decodes
def decode_entry(item: Item) -> LoggedMessage:
    """The log entry from its item."""
    project, _, message_id = item["pk"]["S"].split("#")
    children = tuple(each["S"] for each in item["children"]["L"]) if "children" in item else ()
    entry: LoggedMessage = _ENTRY.decode(item, project=project, message_id=message_id, children=children)
    return entry


_REF = Codec(
    lambda ref: texts([ref.key, str(ref.offset), str(ref.length)]),
    lambda found: BodyRef(key=found["L"][0]["S"], offset=int(found["L"][1]["S"]), length=int(found["L"][2]["S"])),
)
_RECORDED = Record(RecordedAnswer, {"BodyRef": _REF})


def encode_answer(recorded: RecordedAnswer) -> Item:
    """All attributes but the key."""
    answer = recorded.answer
    item = _RECORDED.encode(recorded) | {
        "code": number(answer.status_code),
        "message": text(answer.message),
        "error_class": text(answer.error_class),
        "headers": json_attribute(answer.headers),
        "started_at": number(answer.started_at),
        "finished_at": number(answer.finished_at),
        "bytes_out": number(answer.bytes_out),
        "bytes_in": number(answer.bytes_in),
        "body_size": number(len(answer.body)),
    }
    item |= encode_body(stored_as(answer.body))
    if recorded.expires_at is not None:
        item["ttl"] = number(recorded.expires_at // 1000 + ANSWER_KEPT_S)
    return item


@decodes
def decode_answer(item: Item) -> RecordedAnswer:
    """The recorded answer from its item."""
    answer = Answer(
        status_code=int(item["code"]["N"]),
        message=item["message"]["S"],
        error_class=item["error_class"]["S"],
        body=plain(decode_body(item, int(item["body_size"]["N"])) or b""),
        headers=json_text.stored(item["headers"]["S"]),
        started_at=int(item["started_at"]["N"]),
        finished_at=int(item["finished_at"]["N"]),
        bytes_out=int(item["bytes_out"]["N"]),
        bytes_in=int(item["bytes_in"]["N"]),
    )
    recorded: RecordedAnswer = _RECORDED.decode(item, answer=answer)
    return recorded


_OPEN_REQUEST = Record(OpenRequest)


def encode_open_request(request: OpenRequest) -> Item:
    """All attributes but the key."""
    return {**_OPEN_REQUEST.encode(request), "ttl": number(request.ends_at // 1000 + ANSWER_KEPT_S)}


@decodes
def decode_open_request(item: Item) -> OpenRequest:
    """The noted request from its item."""
    request: OpenRequest = _OPEN_REQUEST.decode(item)
    return request


_NOTICE = Record(
    Notice,
    {"Level": choice(Level), "dict[str, Any]": Codec(json_attribute, lambda found: json_text.stored(found["S"]))},
)


def encode_notification(notification: Notice) -> Item:
    """All attributes but the key."""
    place = f"{note_place(notification.logged_at)}#{notification.notification_id}"
    return _NOTICE.encode(notification) | {
        "list_key": text(note_list_key(notification.project, shard_of(notification.notification_id))),
        "list_place": text(place),
    }


@decodes
def decode_notification(item: Item) -> Notice:
    """The notification from its item."""
    project, _, message_id = item["pk"]["S"].split("#")
    notice: Notice = _NOTICE.decode(item, project=project, message_id=message_id)
    return notice
