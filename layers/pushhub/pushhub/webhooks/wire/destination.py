"""Destinations on the wire: endpoints on AWS as Svix's ``/app/{app}/destination`` writes them.

A destination is an endpoint with a URL of AWS (:mod:`pushhub.base.sink_url`). What Svix has in its ``config`` is in
that URL, so that both APIs, exports and the console show the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Invalid
from pushhub.base.sink_url import ANY_ACCOUNT, BATCHED_SCHEMES, SinkUrl, account_of, parse_sink_url
from pushhub.base.times import iso_time
from pushhub.engine.model.subscriber_health import HealthState
from pushhub.webhooks.model.ids import IdPrefix
from pushhub.webhooks.model.refusals import Refused
from pushhub.webhooks.wire.endpoint import CHANNEL, MAX_CHANNELS, MAX_EVENT_TYPES
from pushhub.webhooks.wire.fields import NAME, Fields

if TYPE_CHECKING:
    from pushhub.engine.model.subscriber_health import SubscriberHealth
    from pushhub.webhooks.model.endpoint import Endpoint

PREFIX = "sink_"
"""What a destination's id begins with; the rest is that of the endpoint's id."""

TYPES = {"sqs": "sqs", "sns": "sns", "eventBridge": "events"}
"""The types of destinations, and the schemes of their URLs."""

DESTINATION_TYPES = {**TYPES, "pollingEndpoint": "poller"}
"""Those of applications, with the one that its owner reads."""

_OTHERS = frozenset(
    {
        *("azureBlobStorage", "otelTracing", "fifoEndpoint", "amazonS3", "googleCloudStorage"),
        *("googleCloudPubSub", "bigQuery", "clickhouse", "snowflake", "rabbitMq", "redshift", "postgres"),
        "elasticSearch",
    }
)
DETAIL_TYPE = "application/json"
"""The detail type of Svix's events, unless a destination has another."""

_QUEUE = re.compile(r"https://sqs\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/([0-9]{12})/([A-Za-z0-9_.-]+)")
_OWN_PATH = re.compile(r"/([0-9]{12})/([A-Za-z0-9_.-]+)")
_TOPIC = re.compile(r"arn:aws[a-z-]*:sns:([a-z0-9-]+):([0-9]{12}):([A-Za-z0-9_.-]+)")
_BUS = re.compile(r"arn:aws[a-z-]*:events:([a-z0-9-]+):([0-9]{12}):event-bus/([A-Za-z0-9_./-]+)")
_BUS_NAME = re.compile(r"[A-Za-z0-9_./-]{1,256}")
_UID = re.compile(r"(?!sink_)[a-zA-Z0-9_-]{1,60}")
_CONFIG = ("region", "accessKeyId", "secretAccessKey", "roleArn", "externalId", "endpointUrl", "detailType", "prefix")
_PLACE = {"sqs": "queueUrl", "sns": "topicArn", "events": "eventBusName", "s3": "bucket", "kinesis": "streamName"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenDestination:
    """What a request says about a destination.

    Attributes:
        scheme: Its kind.
        settings: Fields of the endpoint, but its URL.
        config: What was sent of ``config``, without what is null.
    """

    scheme: str
    settings: Mapping[str, Any]
    config: Mapping[str, str]


def endpoint_name(name: str) -> str:
    """The id or uid of the endpoint that a destination with an id or uid is."""
    return f"{IdPrefix.ENDPOINT}{name.removeprefix(PREFIX)}" if name.startswith(PREFIX) else name


def as_endpoint(iterator: str) -> str:
    """The iterator of a list of destinations as one of endpoints."""
    back = iterator.startswith("-")
    return f"-{endpoint_name(iterator[1:])}" if back else endpoint_name(iterator)


def is_destination(endpoint: Endpoint) -> bool:
    """Whether an endpoint is a destination."""
    return endpoint.reads is None and endpoint.fields.url.partition(":")[0] in DESTINATION_TYPES.values()


def parse_destination(fields: Fields, *, whole: bool, types: Mapping[str, str] = DESTINATION_TYPES) -> GivenDestination:
    """Read a destination.

    Args:
        whole: Whether fields that are left out are what they are by default; otherwise they stay as they are.
        types: The types that may be asked for, and the schemes of their URLs.

    Raises:
        Refused: A type that this hub does not have (501).
    """
    scheme = _scheme(fields, types)
    read: dict[str, Any] = {}
    if whole or fields.has("uid"):
        read["uid"] = _uid(fields)
    if whole or fields.raw("status") is not None:
        read["disabled"] = _status(fields) == "disabled"
    if whole or fields.has("eventTypes"):
        # An empty list means all.
        given = fields.raw("eventTypes")
        read["event_types"] = None if given == [] else fields.names("eventTypes", NAME, most=MAX_EVENT_TYPES)
    if whole or fields.has("channels"):
        given = fields.raw("channels")
        read["channels"] = None if given == [] else fields.names("channels", CHANNEL, most=MAX_CHANNELS)
    if whole or fields.has("metadata"):
        read["metadata"] = fields.texts_by_name("metadata")
    fields.whole("batchSize", least=1, most=1_000)
    fields.whole("maxWaitSecs", least=0, most=300)
    return GivenDestination(scheme=scheme, settings=read, config=_config(fields, scheme))


def _scheme(fields: Fields, types: Mapping[str, str]) -> str:
    given = fields.text("type")
    if given in types:
        return types[given]
    if given in _OTHERS:
        raise not_implemented(f"destinations of the type {given}")
    raise fields.refuse(f"The type must be one of {', '.join(types)}", "type")


def not_implemented(feature: str) -> Refused:
    """A 501: something that Svix has, by its name."""
    return Refused(501, "not_implemented", f"This hub does not offer {feature} (see docs/destinations.md)")


def _uid(fields: Fields) -> str | None:
    uid = fields.raw("uid")
    if uid is None:
        return None
    if not isinstance(uid, str) or _UID.fullmatch(uid) is None or uid.startswith(IdPrefix.ENDPOINT):
        raise fields.refuse(
            "A uid must have 1 to 60 letters, digits, hyphens and underscores, and not begin with sink_", "uid"
        )
    return uid


def _status(fields: Fields) -> str:
    status = fields.raw("status")
    if status not in (None, "enabled", "disabled"):
        raise fields.refuse("The status must be enabled or disabled", "status")
    return status or "enabled"


def _config(fields: Fields, scheme: str) -> dict[str, str]:
    if fields.has("config") and fields.raw("config") is None:
        raise fields.refuse("A JSON object is required", "config")
    section = fields.section("config")
    if section is None or scheme not in _PLACE:
        return {}
    names = (_PLACE[scheme], *_CONFIG)
    found = {name: section.optional_text(name, most=2_048) for name in names}
    return {name: value for name, value in found.items() if value}


def url_of(given: GivenDestination, stored: SinkUrl | None, *, app_id: str, external_id: str) -> str:
    """The URL of a destination.

    Args:
        stored: That of the destination as it is; None for a new one, or if all of it is given.
        app_id: Its application.
        external_id: The application's.

    Raises:
        Invalid: The config could not be right.
    """
    config = {**(_config_of(stored) if stored is not None else {}), **given.config}
    if stored is not None:
        # Whoever gives another kind of credentials means it instead of the present one.
        if "roleArn" in given.config and "accessKeyId" not in given.config:
            config = {name: value for name, value in config.items() if name not in ("accessKeyId", "secretAccessKey")}
        elif "accessKeyId" in given.config and "roleArn" not in given.config:
            config.pop("roleArn", None)
            if config["accessKeyId"] != stored.key_id and "secretAccessKey" not in given.config:
                config.pop("secretAccessKey", None)
    role = config.get("roleArn", "")
    if "externalId" in given.config and (not role or given.config["externalId"] != external_id):
        raise Invalid("externalId is chosen by this hub, goes with a roleArn, and can be left out: GET .../external-id")
    if ("accessKeyId" in config) != ("secretAccessKey" in config):
        raise Invalid("accessKeyId and secretAccessKey go together")
    region, account, name = _place(given.scheme, config)
    if config.get("region", region) != region:
        raise Invalid(f"region is another one than that of {_PLACE[given.scheme]}")
    options = {} if given.scheme in BATCHED_SCHEMES else {"body": "envelope"}
    if given.scheme == "s3" and "prefix" in config:
        options["prefix"] = config["prefix"]
    if given.scheme == "events":
        options |= {"source": f"svix-webhooks-{app_id}", "detailType": config.get("detailType", DETAIL_TYPE)}
    written = SinkUrl(
        scheme=given.scheme,
        region=region,
        account=account,
        name=name,
        key_id=config.get("accessKeyId", ""),
        secret=config.get("secretAccessKey", ""),
        role=role,
        endpoint=config.get("endpointUrl", "").rstrip("/"),
        options=options,
    ).text
    # What reads differently than it was written would be something else than was asked for.
    parse_sink_url(written)
    return written


def _place(scheme: str, config: Mapping[str, str]) -> tuple[str, str, str]:
    """Region, account and name."""
    given = config.get(_PLACE[scheme], "")
    if scheme in BATCHED_SCHEMES:
        if "region" not in config:
            raise Invalid("region is required")
        return config["region"], ANY_ACCOUNT, given
    if scheme == "sqs":
        return _queue(given, config)
    found = (_TOPIC if scheme == "sns" else _BUS).fullmatch(given)
    if found is not None:
        return found[1], found[2], found[3]
    if scheme == "sns":
        raise Invalid("topicArn must be the ARN of a topic: arn:aws:sns:eu-west-1:123456789012:NAME")
    role = config.get("roleArn", "")
    if _BUS_NAME.fullmatch(given) is None or not role:
        raise Invalid("eventBusName must be the ARN of a bus; its name alone will do with a role of the bus's account")
    if "region" not in config:
        raise Invalid("region is required with the name of a bus")
    return config["region"], account_of(role), given


def _queue(given: str, config: Mapping[str, str]) -> tuple[str, str, str]:
    found = _QUEUE.fullmatch(given)
    if found is not None:
        return found[1], found[2], found[3]
    endpoint = config.get("endpointUrl", "").rstrip("/")
    own = _OWN_PATH.fullmatch(given.removeprefix(endpoint)) if endpoint and given.startswith(endpoint) else None
    if own is None:
        raise Invalid("queueUrl must be https://sqs.REGION.amazonaws.com/ACCOUNT/NAME, or begin with the endpointUrl")
    if "region" not in config:
        raise Invalid("region is required with an endpointUrl")
    return config["region"], own[1], own[2]


def config_view(url: SinkUrl, external_id: str) -> dict[str, str]:
    """The ``config`` of a URL as it is shown: without the secret."""
    config = {name: value for name, value in _config_of(url).items() if name != "secretAccessKey"}
    return {**config, "externalId": external_id} if url.role else config


def _config_of(url: SinkUrl) -> dict[str, str]:
    """The ``config`` of a URL, with the secret."""
    named = {
        _PLACE[url.scheme]: _place_of(url),
        "region": url.region,
        "accessKeyId": url.key_id,
        "secretAccessKey": url.secret,
        "roleArn": url.role,
        "endpointUrl": url.endpoint,
        "detailType": url.options.get("detailType", "") if url.scheme == "events" else "",
        "prefix": url.options.get("prefix", "") if url.scheme == "s3" else "",
    }
    return {name: value for name, value in named.items() if value}


def _place_of(url: SinkUrl) -> str:
    if url.scheme in BATCHED_SCHEMES:
        return url.name
    if url.scheme == "sqs":
        return f"{url.endpoint or f'https://sqs.{url.region}.{url.domain}'}/{url.account}/{url.name}"
    path = f"event-bus/{url.name}" if url.scheme == "events" else url.name
    return f"arn:{url.partition}:{url.scheme}:{url.region}:{url.account}:{path}"


_STATUSES = {
    HealthState.SUSPENDED: "paused",
    HealthState.PAUSED: "paused",
    HealthState.CIRCUIT_OPEN: "retrying",
    HealthState.FAILING: "retrying",
    HealthState.CATCHING_UP: "retrying",
    HealthState.RETRYING: "retrying",
}
"""Svix's words for what is the matter with an enabled destination."""


def _status_view(endpoint: Endpoint, health: SubscriberHealth | None) -> dict[str, Any]:
    if endpoint.fields.disabled:
        return {"status": "disabled"}
    status = _STATUSES.get(health.state, "enabled") if health is not None else "enabled"
    if health is None or status == "enabled":
        return {"status": status}
    until = {} if health.until is None else {"nextRetryAt": iso_time(health.until)}
    return {"status": status, "failureReason": health.reason or health.text, **until}


def destination_view(endpoint: Endpoint, external_id: str, health: SubscriberHealth | None) -> dict[str, Any]:
    """A destination as Svix's clients read it. Messages are sent one by one, and there is no place in a log.

    Args:
        endpoint: With what its URL hides.
        external_id: The application's.
        health: How it is doing; None if nobody asks.
    """
    fields = endpoint.fields
    kind, config = "pollingEndpoint", dict[str, str]()
    if not endpoint.polls:
        url = parse_sink_url(fields.url)
        config = config_view(url, external_id)
        if url.scheme == "events":
            config.setdefault("detailType", DETAIL_TYPE)
        kind = {scheme: name for name, scheme in TYPES.items()}[url.scheme]
    return {
        "id": f"{PREFIX}{endpoint.endpoint_id.removeprefix(IdPrefix.ENDPOINT)}",
        "uid": fields.uid,
        "type": kind,
        "config": config,
        **_status_view(endpoint, health),
        "batchSize": 1,
        "maxWaitSecs": 0,
        "currentIterator": "",
        "eventTypes": None if fields.event_types is None else list(fields.event_types),
        "channels": None if fields.channels is None else list(fields.channels),
        "metadata": dict(fields.metadata),
        "createdAt": iso_time(endpoint.created_at),
        "updatedAt": iso_time(endpoint.updated_at),
    }
