"""Endpoints: where an application's messages are sent, and which of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pushhub.base.credentials import named_like_a_secret
from pushhub.base.fields import APART, SPARSE, Setting, Stored, field_metadata
from pushhub.webhooks.model.application import RATE, UID
from pushhub.webhooks.model.event_type import seen_with
from pushhub.webhooks.model.internal_queues import OPERATIONAL_APP
from pushhub.webhooks.model.payload_filter import PayloadFilter, lets_through

if TYPE_CHECKING:
    from pushhub.base.gates import ClientCertificate
    from pushhub.base.signature_schemes import Scheme
    from pushhub.base.steps import Steps
    from pushhub.engine.model.reach import Reach
    from pushhub.webhooks.model.cloud_events import CloudEvents
    from pushhub.webhooks.model.reading import Reading

POLLER = "poller://stream"
"""The URL of a sink to which nothing is sent: its owner reads the stream."""

SENSITIVE = frozenset(
    {
        "authorization",
        "x-auth-token",
        "x-api-key",
        "www-authenticate",
        "proxy-authenticate",
        "proxy-authorization",
    }
)
"""Headers of an endpoint whose values are never shown again, in lower case."""


def is_sensitive(header: str) -> bool:
    """Whether the value of an endpoint's header is never shown again."""
    return header.lower() in SENSITIVE or named_like_a_secret(header)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointFields:
    """The fields of an endpoint that its owner sets. The uid is unique in the application."""

    url: str = field(metadata=field_metadata(Setting(means="http or https.")))
    description: str = field(default="", metadata=field_metadata(Setting(means="")))
    uid: str | None = field(default=None, metadata=field_metadata(UID))
    disabled: bool = field(default=False, metadata=field_metadata(Setting(means="Whether it gets no messages.")))
    event_types: tuple[str, ...] | None = field(
        default=None,
        metadata=field_metadata(
            Setting(means="The types it gets; null for all.", wire=("eventTypes", "filterTypes")), Stored(name="types")
        ),
    )
    channels: tuple[str, ...] | None = field(
        default=None, metadata=field_metadata(Setting(means="It gets messages in any of these; null for all."))
    )
    throttle_rate: int | None = field(default=None, metadata=field_metadata(RATE, Stored(name="rate")))
    metadata: Mapping[str, str] = field(
        default_factory=dict, metadata=field_metadata(Setting(means="The owner's own data."))
    )
    version: int = field(
        default=1,
        metadata=field_metadata(
            Setting(means="A number that the oldest clients send.", least=1, most=65_535), Stored(name="v")
        ),
    )
    filters: tuple[PayloadFilter, ...] = field(
        default=(),
        metadata=field_metadata(
            Setting(means="It gets messages that pass all of these.", hidden=True, wire=("payloadFilters",))
        ),
    )
    cloud_events: CloudEvents | None = field(
        default=None,
        metadata=field_metadata(
            Setting(means="Messages are sent as CloudEvents 1.0.", hidden=True, wire=("cloudEvents",)),
            Stored(name="events", sparse=True),
        ),
    )

    @property
    def asks_consent(self) -> bool:
        """Whether the endpoint must consent before it is sent anything."""
        return self.cloud_events is not None and self.cloud_events.consent


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion:
    """An open request for consent, which the endpoint may still give.

    Attributes:
        digest: SHA-256 of the secret in the URL that it was given, hexadecimal.
        until: How long it may answer, epoch milliseconds.
        rate: Requests per minute that it named when it was asked; None for any number.
        answered: Whether it consented; asking again creates a new question.
        problem: Why it has not consented so far, for its owner; empty if that is not known.
    """

    digest: str
    until: int
    rate: int | None = None
    answered: bool = False
    problem: str = ""

    def open_at(self, now: int) -> bool:
        """Whether it may still be answered at a time (epoch milliseconds): it is answered once."""
        return not self.answered and now < self.until


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An endpoint.

    Attributes:
        endpoint_id: See :mod:`pushhub.webhooks.model.ids`.
        reach: How far the caller reaches who set the URL.
        flags: Feature flags of the portal's token that chose the event types; None if the project itself did.
        headers: Sent with each message; names are kept as given.
        allowed_rate: Requests per minute that it consented to; None for any number.
        question: The request for its consent; None if it needs none, or consented before requests were stored.
        sealed: Its signing keys, encrypted (:class:`pushhub.base.ports.Vault`).
        signatures: The schemes that sign its requests; empty for those of its application or project.
        scheme_secrets: The secrets of those schemes, encrypted; see
            :func:`pushhub.base.signature_schemes.encode_rings`.
        oauth: How the tokens are obtained that it is sent, encrypted; see :class:`pushhub.base.oauth.Grant`.
        certificate: The certificate that its requests are sent with; None for none.
        identity: That certificate, its key and authorities, encrypted; see
            :func:`pushhub.engine.security.gates.identity_of`.
        credentials: What opens something in its URL and headers, encrypted; they show ``********`` for it.
        transforms: Whether its transformation is applied to what it is sent.
        transformation: Its code and variables, encrypted; see :mod:`pushhub.webhooks.model.transformation`.
        reads: How it reads its stream, if it is a sink of one; None for an endpoint to which messages are pushed.
        deleted: Whether it is deleted, and kept only as a record of what it received.
    """

    project: str = field(metadata=field_metadata(stored=APART))
    app_id: str = field(metadata=field_metadata(stored=APART))
    endpoint_id: str = field(metadata=field_metadata(stored=APART))
    fields: EndpointFields = field(metadata=field_metadata(stored=APART))
    allowed_rate: int | None = field(default=None, metadata=field_metadata(stored=Stored(name="allowed", sparse=True)))
    question: OpenQuestion | None = field(default=None, metadata=field_metadata(stored=SPARSE))
    signatures: tuple[Scheme, ...] = field(
        default=(), metadata=field_metadata(stored=Stored(name="signs", sparse=True))
    )
    headers: Mapping[str, str] = field(default_factory=dict)
    reach: Reach = field(metadata=field_metadata(stored=Stored(name="by")))
    flags: frozenset[str] | None = field(default=None, metadata=field_metadata(stored=SPARSE))
    sealed: bytes = field(default=b"", repr=False, metadata=field_metadata(stored=APART))
    scheme_secrets: bytes = field(default=b"", repr=False, metadata=field_metadata(stored=APART))
    oauth: bytes = field(default=b"", repr=False, metadata=field_metadata(stored=APART))
    certificate: ClientCertificate | None = field(default=None, metadata=field_metadata(stored=SPARSE))
    identity: bytes = field(default=b"", repr=False, metadata=field_metadata(stored=APART))
    credentials: bytes = field(default=b"", repr=False, metadata=field_metadata(stored=APART))
    transforms: bool = field(default=False, metadata=field_metadata(stored=SPARSE))
    transformation: bytes = field(default=b"", repr=False, metadata=field_metadata(stored=APART))
    reads: Reading | None = field(default=None, metadata=field_metadata(stored=SPARSE))
    created_at: int = field(metadata=field_metadata(stored=APART))
    updated_at: int = field(metadata=field_metadata(stored=APART))
    deleted: bool = field(default=False, metadata=field_metadata(stored=APART))
    version: int = field(default=0, metadata=field_metadata(stored=APART))

    @property
    def place(self) -> tuple[str, str, str]:
        """Its project, application and id, by which it is found."""
        return self.project, self.app_id, self.endpoint_id

    @property
    def uid(self) -> str | None:
        """The owner's own id of it."""
        return self.fields.uid

    @property
    def active(self) -> bool:
        """Whether it gets messages at all."""
        return not (self.deleted or self.fields.disabled or self.awaits_consent or self.polls)

    @property
    def polls(self) -> bool:
        """Whether it is a sink that its owner reads."""
        return self.fields.url == POLLER

    @property
    def receiver(self) -> str:
        """Its receiver, unique in the project: nobody else gets its tokens, or a connection of its own."""
        return f"{self.app_id}#{self.endpoint_id}"

    @property
    def gated(self) -> bool:
        """Whether its receiver demands something before it looks at a request."""
        return bool(self.oauth) or self.certificate is not None

    def signed_by(self, *defaults: tuple[Scheme, ...]) -> tuple[Scheme, ...]:
        """The schemes that sign its requests, ended ones too; none for Standard Webhooks alone.

        Args:
            defaults: Of its application and its project: the first that has any. What is not sent to an HTTP URL, and
                the hub's own events, are signed by Standard Webhooks.
        """
        if self.signatures:
            return self.signatures
        chosen = next(filter(None, defaults), ())
        http = not chosen or self.fields.url[:8].lower().startswith(("http://", "https://"))
        return chosen if http and self.app_id != OPERATIONAL_APP else ()

    def consented_to(self, fields: EndpointFields) -> bool:
        """Whether it has given the consent that it needs with other fields: it is asked once for each URL."""
        consented = self.fields.asks_consent and not self.awaits_consent
        return fields.asks_consent and consented and fields.url == self.fields.url

    @property
    def awaits_consent(self) -> bool:
        """Whether it has not consented yet."""
        return self.question is not None and not self.question.answered


def wants(
    endpoint: Endpoint,
    event_type: str,
    channels: Collection[str],
    payload: Mapping[str, Any] | None = None,
    *,
    type_flags: Sequence[str],
    steps: Steps | None = None,
) -> bool:
    """Whether an endpoint gets a message.

    Args:
        event_type: Of the message.
        channels: Channels of the message; a message without channels does not match an endpoint that names some.
        payload: Payload of the message; None to ignore the payload filters.
        type_flags: Feature flags of the event type. An endpoint that a portal subscribed to all types gets only those
            that the portal may see.
        steps: Spent by the payload filters; None for a budget of their own.

    Raises:
        TooMuchWork: The steps are used up.
    """
    return endpoint.active and selects(endpoint, event_type, channels, payload, type_flags=type_flags, steps=steps)


def selects(
    endpoint: Endpoint,
    event_type: str,
    channels: Collection[str],
    payload: Mapping[str, Any] | None = None,
    *,
    type_flags: Sequence[str] = (),
    steps: Steps | None = None,
) -> bool:
    """Whether an endpoint's filters let a message through, whether it gets messages at present or not; see
    :func:`wants`.
    """
    fields = endpoint.fields
    return (
        (seen_with(endpoint.flags, type_flags) if fields.event_types is None else event_type in fields.event_types)
        and (fields.channels is None or not set(fields.channels).isdisjoint(channels))
        and (payload is None or lets_through(fields.filters, payload, steps))
    )
