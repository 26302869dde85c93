"""Sinks of streams on the wire, as Svix's ``/stream/{stream}/sink`` writes them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pushhub.base.credentials import masked_url
from pushhub.base.sink_url import parse_sink_url
from pushhub.base.times import iso_time
from pushhub.webhooks.model.ids import IdPrefix, message_id
from pushhub.webhooks.model.message import MessageFields
from pushhub.webhooks.model.reading import MOST_SIZE, MOST_WAIT_S, Reading
from pushhub.webhooks.wire.destination import PREFIX, TYPES, GivenDestination, config_view, parse_destination
from pushhub.webhooks.wire.endpoint import (
    HeaderChange,
    headers_view,
    is_http,
    parse_all_headers,
    parse_secret,
    parse_url,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.base.signing import SigningKey
    from pushhub.engine.model.message import Message
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.model.reading import Reader
    from pushhub.webhooks.wire.fields import Fields

SINK_TYPES: Mapping[str, str] = {**TYPES, "amazonS3": "s3", "kinesis": "kinesis", "poller": "poller", "http": "http"}
"""The types of sinks, and the schemes of their URLs. Svix has no ``kinesis``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenHttp:
    """What the config of a sink of the type http says; None for what it does not say.

    Attributes:
        headers: All that it is to have.
        key: With which its requests are signed.
    """

    url: str | None = None
    headers: HeaderChange | None = None
    key: SigningKey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenSink:
    """What a request says about a sink.

    Attributes:
        destination: What it has in common with destinations.
        size: Events of a batch; None for what it was.
        wait_s: Seconds that the oldest event waits; None for what it was.
        http: What the config of a sink of the type http says; nothing for another type.
    """

    destination: GivenDestination
    size: int | None
    wait_s: int | None
    http: GivenHttp = GivenHttp()

    @property
    def scheme(self) -> str:
        """Its kind."""
        return self.destination.scheme

    @property
    def settings(self) -> Mapping[str, Any]:
        """Fields of the endpoint, but its URL."""
        return self.destination.settings

    def reading(self, before: Reading) -> Reading:
        """How it is to read, given how it read before."""
        changed = {"size": self.size, "wait_s": self.wait_s}
        return replace(before, **{name: value for name, value in changed.items() if value is not None})


def parse_sink(fields: Fields, *, whole: bool) -> GivenSink:
    """Read a sink.

    Args:
        whole: Whether fields that are left out are what they are by default; otherwise they stay as they are.

    Raises:
        Refused: A type that this hub does not have (501).
    """
    destination = parse_destination(fields, whole=whole, types=SINK_TYPES)
    return GivenSink(
        destination=destination,
        http=_http(fields) if destination.scheme == "http" else GivenHttp(),
        size=fields.whole("batchSize", least=1, most=MOST_SIZE),
        wait_s=fields.whole("maxWaitSecs", least=0, most=MOST_WAIT_S),
    )


def _http(fields: Fields) -> GivenHttp:
    config = fields.section("config")
    if config is None:
        return GivenHttp()
    url = None if config.raw("url") is None else parse_url(config)
    if url is not None and not is_http(url):
        raise config.refuse("The URL must be a valid http or https URL", "url")
    headers = None if config.raw("headers") is None else parse_all_headers(config)
    return GivenHttp(url=url, headers=headers, key=parse_secret(config, "key"))


def sink_view(sink: Endpoint, reader: Reader, external_id: str, now: int) -> dict[str, Any]:
    """A sink as Svix's clients read it.

    Args:
        sink: Opened.
        reader: Where it is.
        external_id: What its role has to demand.
    """
    fields, reads = sink.fields, sink.reads or Reading()
    config: dict[str, Any]
    if sink.polls:
        kind, config = "poller", {}
    elif is_http(fields.url):
        kind, config = "http", {"url": masked_url(fields.url), "headers": headers_view(sink.headers)}
    else:
        url = parse_sink_url(fields.url)
        kind = {scheme: name for name, scheme in SINK_TYPES.items()}[url.scheme]
        config = config_view(url, external_id)
    return {
        "id": f"{PREFIX}{sink.endpoint_id.removeprefix(IdPrefix.ENDPOINT)}",
        "uid": fields.uid,
        "type": kind,
        "config": config,
        **_status_view(sink, reader, now),
        "batchSize": reads.size,
        "maxWaitSecs": reads.wait_s,
        "currentIterator": message_id(reader.position),
        "eventTypes": None if fields.event_types is None else list(fields.event_types),
        "channels": None if fields.channels is None else list(fields.channels),
        "metadata": dict(fields.metadata),
        "createdAt": iso_time(sink.created_at),
        "updatedAt": iso_time(sink.updated_at),
    }


def _status_view(sink: Endpoint, reader: Reader, now: int) -> dict[str, Any]:
    if sink.fields.disabled:
        return {"status": "disabled"}
    if not reader.reason:
        return {"status": "enabled"}
    return {"status": "retrying", "failureReason": reader.reason, "nextRetryAt": iso_time(max(reader.next_at, now))}


def read_view(message: Message, body: bytes) -> dict[str, Any]:
    """An event as a poller reads it."""
    return {
        "eventType": MessageFields.of(message).event_type,
        "payload": body.decode(errors="replace"),
        "timestamp": iso_time(message.accepted_at),
    }
