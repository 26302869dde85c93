"""Settings of webhooks as items: keys, and the value as JSON in one attribute, ``doc``.

================  =======================  ==================================
item              pk                       sk
================  =======================  ==================================
application       ``P#{project}``          ``APP#{app id}``
its uid           ``P#{project}``          ``APPUID#{uid}``
event type        ``P#{project}``          ``TYPE#{name}``
endpoint          ``A#{project}#{app}``    ``EP#{endpoint id}``
deleted endpoint  ``A#{project}#{app}``    ``EPX#{endpoint id}``
its uid           ``A#{project}#{app}``    ``EPUID#{uid}``
that it is off    ``P#{project}``          ``OFF#{app id}#{endpoint id}``
idempotency key   ``I#{project}#{digest}`` ``KEY``
line of a list    ``L#{project}#{app}``    ``M#{engine's id}``
read late         ``L#{project}#{app}``    ``N#{position}``
its event id      ``L#{project}#{app}``    ``E#{event id}``
attempts          ``T#{project}#{ep id}``  ``T#{id of the last}``
================  =======================  ==================================

A message whose bytes are kept as long as it is listed needs no line. Attempts that ended together share an item.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pushhub.base.signature_schemes import Scheme
from pushhub.cloud.table import Item, number, text
from pushhub.engine.model.reach import Reach
from pushhub.webhooks.model.application import Application, ApplicationFields
from pushhub.webhooks.model.cloud_events import CloudEvents, Mode
from pushhub.webhooks.model.endpoint import Endpoint, EndpointFields, OpenQuestion
from pushhub.webhooks.model.event_type import Enforcement, EventType
from pushhub.webhooks.model.payload_filter import Operator, PayloadFilter
from pushhub.webhooks.model.redaction import Redaction

if TYPE_CHECKING:
    from pushhub.webhooks.model.page import Span


def project_pk(project_id: str) -> str:
    """Partition of what belongs to a project."""
    return f"P#{project_id}"


def app_pk(project_id: str, app_id: str) -> str:
    """Partition of what belongs to an application."""
    return f"A#{project_id}#{app_id}"


def key(pk: str, sk: str) -> Item:
    """The key of an item."""
    return {"pk": text(pk), "sk": text(sk)}


def between(pk: str, prefix: str, span: Span) -> dict[str, Any]:
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
    return text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def encode_application(application: Application) -> Item:
    """Attributes of an application except its key, its version and the count of changes of its endpoints."""
    fields, redaction = application.fields, application.fields.redaction
    return {
        "doc": doc(
            {
                "name": fields.name,
                "uid": fields.uid,
                "rate": fields.throttle_rate,
                "metadata": dict(fields.metadata),
                **({"hidden": [redaction.payload, redaction.answers]} if redaction != Redaction() else {}),
                **({"found_by": fields.search_fields} if fields.search_fields else {}),
                **({"portal_consent": True} if fields.portal_consent else {}),
                **({"eager": True} if fields.eager else {}),
                "at": [application.created_at, application.updated_at],
            }
        )
    }


def decode_application(item: Item) -> Application:
    """The application from its item."""
    value = json.loads(item["doc"]["S"])
    return Application(
        project=item["pk"]["S"].removeprefix("P#"),
        app_id=item["sk"]["S"].removeprefix("APP#"),
        fields=ApplicationFields(
            name=value["name"],
            uid=value["uid"],
            throttle_rate=value["rate"],
            metadata=value["metadata"],
            redaction=_redaction(value.get("hidden")),
            search_fields=tuple(value.get("found_by", ())),
            portal_consent=value.get("portal_consent", False),
            eager=value.get("eager", False),
        ),
        created_at=value["at"][0],
        updated_at=value["at"][1],
        version=int(item["version"]["N"]),
        endpoints=int(item["endpoints"]["N"]),
    )


def encode_endpoint(endpoint: Endpoint) -> Item:
    """All attributes of an endpoint but its key."""
    fields = endpoint.fields
    item = {
        "version": number(endpoint.version),
        "sealed": {"B": endpoint.sealed},
        **({"credentials": {"B": endpoint.credentials}} if endpoint.credentials else {}),
        **({"scheme_secrets": {"B": endpoint.scheme_secrets}} if endpoint.scheme_secrets else {}),
        "doc": doc(
            {
                "url": fields.url,
                "description": fields.description,
                "uid": fields.uid,
                "disabled": fields.disabled,
                "types": fields.event_types,
                "channels": fields.channels,
                "rate": fields.throttle_rate,
                "metadata": dict(fields.metadata),
                "v": fields.version,
                "filters": [[each.path, each.operator, each.value] for each in fields.filters],
                **({"events": _events(fields.cloud_events)} if fields.cloud_events else {}),
                **({"allowed": endpoint.allowed_rate} if endpoint.allowed_rate else {}),
                **({"question": _question(endpoint.question)} if endpoint.question else {}),
                **({"signs": [each.encode() for each in endpoint.signatures]} if endpoint.signatures else {}),
                "headers": dict(endpoint.headers),
                "by": endpoint.reach,
                **({} if endpoint.flags is None else {"flags": sorted(endpoint.flags)}),
                "at": [endpoint.created_at, endpoint.updated_at],
            }
        ),
    }
    if endpoint.deleted:
        del item["sealed"]
        item["deleted"] = {"BOOL": True}
    return item


def decode_endpoint(item: Item) -> Endpoint:
    """The endpoint from its item."""
    value = json.loads(item["doc"]["S"])
    _, project, app_id = item["pk"]["S"].split("#")
    return Endpoint(
        project=project,
        app_id=app_id,
        endpoint_id=item["sk"]["S"].partition("#")[2],
        fields=EndpointFields(
            url=value["url"],
            description=value["description"],
            uid=value["uid"],
            disabled=value["disabled"],
            event_types=None if value["types"] is None else tuple(value["types"]),
            channels=None if value["channels"] is None else tuple(value["channels"]),
            throttle_rate=value["rate"],
            metadata=value["metadata"],
            version=value["v"],
            filters=tuple(
                PayloadFilter(path=path, operator=Operator(operator), value=given)
                for path, operator, given in value.get("filters", ())
            ),
            cloud_events=_cloud_events(value.get("events")),
        ),
        # Before the reach was stored, a portal could set any URL.
        reach=Reach(value.get("by", Reach.PORTAL)),
        flags=frozenset(value["flags"]) if "flags" in value else None,
        headers=value["headers"],
        allowed_rate=value.get("allowed"),
        question=_decode_question(value.get("question")),
        sealed=bytes(item["sealed"]["B"]) if "sealed" in item else b"",
        signatures=tuple(map(Scheme.decode, value.get("signs", ()))),
        scheme_secrets=bytes(item["scheme_secrets"]["B"]) if "scheme_secrets" in item else b"",
        credentials=bytes(item["credentials"]["B"]) if "credentials" in item else b"",
        created_at=value["at"][0],
        updated_at=value["at"][1],
        deleted="deleted" in item,
        version=int(item["version"]["N"]),
    )


def _redaction(value: Any) -> Redaction:
    return Redaction() if value is None else Redaction(payload=tuple(value[0]), answers=tuple(value[1]))


def _cloud_events(value: Any) -> CloudEvents | None:
    if value is None:
        return None
    mode, consent, *more = value
    return CloudEvents(mode=Mode(mode), consent=consent, callback=bool(more))


def _events(wanted: CloudEvents) -> list[object]:
    return [wanted.mode, wanted.consent, *([True] if wanted.callback else [])]


def _question(question: OpenQuestion) -> list[object]:
    return [
        question.digest,
        question.until,
        question.rate,
        question.answered,
        *([question.problem] if question.problem else []),
    ]


def _decode_question(value: Any) -> OpenQuestion | None:
    if value is None:
        return None
    digest, until, rate, answered, *problem = value
    return OpenQuestion(digest=digest, until=until, rate=rate, answered=answered, problem="".join(problem))


def encode_event_type(event_type: EventType) -> Item:
    """All attributes of an event type but its key."""
    return {
        "version": number(event_type.version),
        "doc": doc(
            {
                "description": event_type.description,
                "archived": event_type.archived,
                "deprecated": event_type.deprecated,
                "schemas": event_type.schemas,
                "flags": event_type.feature_flags,
                "group": event_type.group_name,
                "enforcement": event_type.enforcement,
                "at": [event_type.created_at, event_type.updated_at],
            }
        ),
    }


def decode_event_type(item: Item) -> EventType:
    """The event type from its item."""
    value = json.loads(item["doc"]["S"])
    return EventType(
        project=item["pk"]["S"].removeprefix("P#"),
        name=item["sk"]["S"].removeprefix("TYPE#"),
        description=value["description"],
        archived=value["archived"],
        deprecated=value["deprecated"],
        schemas=value["schemas"],
        feature_flags=tuple(value["flags"]),
        group_name=value["group"],
        enforcement=Enforcement(value.get("enforcement", Enforcement.OFF)),
        created_at=value["at"][0],
        updated_at=value["at"][1],
        version=int(item["version"]["N"]),
    )
