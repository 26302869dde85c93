"""Settings of webhooks as items: keys, and the value as JSON in one attribute, ``doc``.

================  =======================  ==================================
item              pk                       sk
================  =======================  ==================================
application       ``P#{project}``          ``APP#{app id}``
its uid           ``P#{project}``          ``APPUID#{uid}``, ``SRCUID#{uid}`` of a source,
                                           ``STRMUID#{uid}`` of a stream
what came to it   ``R#{project}#{source}`` ``{day}``
event type        ``P#{project}``          ``TYPE#{name}``
connector         ``P#{project}``          ``CONN#{id}``
its uid           ``P#{project}``          ``CONNUID#{uid}``
endpoint          ``A#{project}#{app}``    ``EP#{endpoint id}``
deleted endpoint  ``A#{project}#{app}``    ``EPX#{endpoint id}``
its uid           ``A#{project}#{app}``    ``EPUID#{uid}``
integration       ``A#{project}#{app}``    ``INTEG#{integration id}``
where a sink is   ``A#{project}#{app}``    ``READER#{endpoint id}``
autoconfiguration ``A#{project}#{app}``    ``AUTOCONF#{id}``
token, or key     ``A#{project}#{app}``    ``PORTAL#{digest}``
that it is off    ``P#{project}``          ``OFF#{app id}#{endpoint id}``
idempotency key   ``I#{project}#{digest}`` ``KEY``
line of a list    ``L#{project}#{app}``    ``M#{engine's id}``
read late         ``L#{project}#{app}``    ``N#{position}``
its event id      ``L#{project}#{app}``    ``E#{event id}``
attempts          ``T#{project}#{ep id}``  ``T#{id of the last}``
certificate's end ``ENDS``                 ``{at}#{project}#{app}#{ep id}#{digest}``
scheme's end      ``SCHEME-ENDS``          ``{at}#{project}#{app}#{ep id}#{name}``
================  =======================  ==================================

A message whose bytes are kept as long as it is listed needs no line. Attempts that ended together share an item.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from pushhub.base import json_text
from pushhub.base.gates import ClientCertificate
from pushhub.base.signature_schemes import Scheme
from pushhub.cloud.documents import Codec, Document, read_by
from pushhub.cloud.table import Item, number, text
from pushhub.cloud.unreadable import decodes
from pushhub.engine.model.reach import Reach
from pushhub.webhooks.model.application import Application, ApplicationFields
from pushhub.webhooks.model.cloud_events import CloudEvents, Mode
from pushhub.webhooks.model.endpoint import Endpoint, EndpointFields, OpenQuestion
from pushhub.webhooks.model.event_type import Enforcement, EventType
from pushhub.webhooks.model.payload_filter import Operator, PayloadFilter
from pushhub.webhooks.model.reading import Reading
from pushhub.webhooks.model.redaction import Redaction
from pushhub.webhooks.model.source import Source, TokenDigest

if TYPE_CHECKING:
    from pushhub.webhooks.model.page import KeyRange


def project_pk(project_id: str) -> str:
    """Partition of what belongs to a project."""
    return f"P#{project_id}"


def app_pk(project_id: str, app_id: str) -> str:
    """Partition of what belongs to an application."""
    return f"A#{project_id}#{app_id}"


def key(pk: str, sk: str) -> Item:
    """The key of an item."""
    return {"pk": text(pk), "sk": text(sk)}


def between(pk: str, prefix: str, span: KeyRange) -> dict[str, Any]:
    """A consistent query of the items of a span, both bounds included,
    whose sort keys are a prefix ending in ``#`` and the span's keys.
    """
    last = prefix[:-1] + "$"
    return {
        "KeyConditionExpression": "pk = :pk AND sk BETWEEN :low AND :high",
        "ExpressionAttributeValues": {
            ":pk": text(pk),
            ":low": text(prefix + (span.above or "")),
            ":high": text(last if span.below is None else prefix + span.below),
        },
        "ScanIndexForward": span.up,
        "ConsistentRead": True,
    }


def doc(value: Any) -> dict[str, str]:
    """A value as an attribute."""
    return text(json_text.write(value))


_APPLICATION = Document(
    ApplicationFields,
    {
        "Redaction": Codec(
            lambda value: [value.payload, value.answers],
            lambda found: Redaction(payload=tuple(found[0]), answers=tuple(found[1])),
        )
    },
)
_SOURCE = Document(
    Source,
    {
        "Scheme": Codec(Scheme.encode, Scheme.decode),
        "TokenDigest": Codec(lambda value: [value.digest, value.ends_at], lambda found: TokenDigest(*found)),
    },
)
_ENDPOINT_FIELDS = Document(
    EndpointFields,
    {
        "PayloadFilter": Codec(
            lambda value: [value.path, value.operator, value.value],
            lambda found: PayloadFilter(path=found[0], operator=Operator(found[1]), value=found[2]),
        ),
        "CloudEvents": Codec(
            lambda value: [value.mode, value.consent, *([True] if value.callback else [])],
            lambda found: CloudEvents(mode=Mode(found[0]), consent=found[1], callback=bool(found[2:])),
        ),
    },
)
_ENDPOINT = Document(
    Endpoint,
    {
        "OpenQuestion": Codec(
            lambda value: [value.digest, value.until, value.rate, value.answered, *filter(None, [value.problem])],
            lambda found: OpenQuestion(
                digest=found[0], until=found[1], rate=found[2], answered=found[3], problem="".join(found[4:])
            ),
        ),
        "Scheme": Codec(Scheme.encode, Scheme.decode),
        "ClientCertificate": Codec(
            lambda value: [value.digest, value.subject, value.ends_at, value.private_ca, value.fingerprint],
            lambda found: ClientCertificate(
                **dict(zip(("digest", "subject", "ends_at", "private_ca", "fingerprint"), found, strict=True))
            ),
        ),
        "Reach": read_by(Reach),
        "Reading": Codec(
            lambda value: [value.size, value.wait_s], lambda found: Reading(size=found[0], wait_s=found[1])
        ),
    },
)
_SEALED = ("scheme_secrets", "oauth", "identity", "credentials", "transformation")
"""Attributes with what is encrypted, besides the signing keys; left out if empty."""
_EVENT_TYPE = Document(EventType, {"Enforcement": read_by(Enforcement)})


def encode_application(application: Application) -> Item:
    """Attributes of an application except its key, its version and the count of changes of its endpoints."""
    at = [application.created_at, application.updated_at]
    signs = {"signs": [each.encode() for each in application.signatures]} if application.signatures else {}
    takes = {"source": encode_source(application.source)} if application.source else {}
    return {"doc": doc({**_APPLICATION.encode(application.fields), **signs, **takes, "at": at})}


def encode_source(source: Source) -> dict[str, Any]:
    """What makes an application a source, as it is stored with it."""
    return {**_SOURCE.encode(source), "sealed": base64.b64encode(source.sealed).decode()}


def decode_source(found: dict[str, Any]) -> Source:
    """What :func:`encode_source` wrote."""
    source: Source = _SOURCE.decode(found, sealed=base64.b64decode(found["sealed"]))
    return source


@decodes
def decode_application(item: Item) -> Application:
    """The application from its item."""
    value = json_text.stored(item["doc"]["S"])
    return Application(
        project=item["pk"]["S"].removeprefix("P#"),
        app_id=item["sk"]["S"].removeprefix("APP#"),
        fields=_APPLICATION.decode(value),
        signatures=tuple(map(Scheme.decode, value.get("signs", ()))),
        source=decode_source(value["source"]) if "source" in value else None,
        created_at=value["at"][0],
        updated_at=value["at"][1],
        version=int(item["version"]["N"]),
        endpoints=int(item["endpoints"]["N"]),
    )


def encode_endpoint(endpoint: Endpoint) -> Item:
    """All attributes of an endpoint but its key."""
    secrets = {name: getattr(endpoint, name) for name in _SEALED}
    at = [endpoint.created_at, endpoint.updated_at]
    return {
        "version": number(endpoint.version),
        **({"deleted": {"BOOL": True}} if endpoint.deleted else {"sealed": {"B": endpoint.sealed}}),
        **{name: {"B": value} for name, value in secrets.items() if value},
        "doc": doc({**_ENDPOINT_FIELDS.encode(endpoint.fields), **_ENDPOINT.encode(endpoint), "at": at}),
    }


@decodes
def decode_endpoint(item: Item) -> Endpoint:
    """The endpoint from its item."""
    # Before the reach was stored, a portal could set any URL.
    value = {"by": Reach.PORTAL, **json_text.stored(item["doc"]["S"])}
    _, project, app_id = item["pk"]["S"].split("#")
    endpoint: Endpoint = _ENDPOINT.decode(
        value,
        project=project,
        app_id=app_id,
        endpoint_id=item["sk"]["S"].partition("#")[2],
        fields=_ENDPOINT_FIELDS.decode(value),
        **{name: bytes(item[name]["B"]) for name in ("sealed", *_SEALED) if name in item},
        created_at=value["at"][0],
        updated_at=value["at"][1],
        deleted="deleted" in item,
        version=int(item["version"]["N"]),
    )
    return endpoint


def encode_event_type(event_type: EventType) -> Item:
    """All attributes of an event type but its key."""
    at = [event_type.created_at, event_type.updated_at]
    return {"version": number(event_type.version), "doc": doc({**_EVENT_TYPE.encode(event_type), "at": at})}


@decodes
def decode_event_type(item: Item) -> EventType:
    """The event type from its item."""
    value = json_text.stored(item["doc"]["S"])
    event_type: EventType = _EVENT_TYPE.decode(
        value,
        project=item["pk"]["S"].removeprefix("P#"),
        name=item["sk"]["S"].removeprefix("TYPE#"),
        created_at=value["at"][0],
        updated_at=value["at"][1],
        version=int(item["version"]["N"]),
    )
    return event_type
