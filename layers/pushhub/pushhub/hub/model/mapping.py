"""Mappings of a store: which message types go to which service, under which conditions (hub protocol v5,
"Mapping basics").
"""

from __future__ import annotations

from collections.abc import Mapping as Attributes
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pushhub.base.fields import APART, SPARSE, field_metadata
from pushhub.engine.model.backoff import Exponential
from pushhub.engine.model.queue import Attachment

if TYPE_CHECKING:
    from pushhub.base.gates import ClientCertificate
    from pushhub.hub.model.filters import Filter

MAX_PARAMETERS = 200
"""Parameters that are sent to a service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions:
    """How failures of a service are handled.

    Attributes:
        retries_allowed: Whether failures are retried at all; if not, the first failure holds the message.
        retry_base: Seconds before the first retry; the wait doubles after each further failure.
        retry_cap: Longest wait in seconds.
        max_attempts: Failed attempts after which the message is held (``parked`` on the wire); None for no limit.
        lenient: Count a 200 as a success even if its ``message_id`` is missing or wrong.
    """

    retries_allowed: bool = True
    retry_base: float = 30.0
    retry_cap: float = 3600.0
    max_attempts: int | None = None
    lenient: bool = False

    @property
    def policy(self) -> Exponential:
        """The retry policy for these options. It never gives up for good: the message is held for an operator."""
        return Exponential(
            base_s=self.retry_base,
            cap_s=self.retry_cap,
            max_attempts=self.max_attempts if self.retries_allowed else 1,
            holds=True,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceMapping:
    """One service of an endpoint, and which messages it is sent.

    Attributes:
        mapping_id: Object id.
        name: ``<integration>.<service>`` or the owner's own.
        url: Where the messages are POSTed.
        token: Sent as ``X-Augury-Token``.
        messages: Message types it wants.
        parameter_ids: Ids of the store's parameters sent with each request.
        filters: All must pass.
        identifiers: Name to path; see :func:`pushhub.hub.model.identifiers.identity_of`.
        search_fields: By which values of payloads the messages for it are found (:mod:`pushhub.engine.model.search`).
        enabled: Whether new messages are routed to it.
        required: It cannot be disabled or deleted (a service its endpoint calls required).
        integration_id: The integration it came from, or None.
        sealed: Encrypted keys for signing its requests (:class:`pushhub.engine.security.signing.Signing`); when empty,
            requests are not signed.
        signing_ends: When schemes that sign its requests end, by the header of their signature.
        oauth: How the tokens are obtained that its service is sent, encrypted; empty for no tokens.
        certificate: The certificate that its requests are sent with.
        identity: That certificate, its key and authorities, encrypted (:mod:`pushhub.engine.security.gates`).
        credentials: The token, encrypted (:class:`pushhub.engine.security.credentials.Credentials`); the token itself
            then reads ``********``.
    """

    mapping_id: str
    name: str
    url: str
    token: str
    messages: tuple[str, ...]
    parameter_ids: tuple[str, ...] = ()
    filters: tuple[Filter, ...] = ()
    identifiers: Attributes[str, str] = field(default_factory=dict)
    search_fields: tuple[str, ...] = ()
    options: ServiceOptions = field(default_factory=ServiceOptions)
    enabled: bool = True
    required: bool = False
    integration_id: str | None = None
    sealed: bytes = field(default=b"", repr=False, metadata=field_metadata(stored=APART))
    signing_ends: Attributes[str, str] = field(default_factory=dict, metadata=field_metadata(stored=SPARSE))
    oauth: bytes = field(default=b"", repr=False, metadata=field_metadata(stored=APART))
    certificate: ClientCertificate | None = field(default=None, metadata=field_metadata(stored=SPARSE))
    identity: bytes = field(default=b"", repr=False, metadata=field_metadata(stored=APART))
    credentials: bytes = field(default=b"", repr=False, metadata=field_metadata(stored=APART))
    created_at: int = 0
    version: int = 0

    def wants(self, message_type: str) -> bool:
        """Whether this service wants messages of that type at all, before filters."""
        return self.enabled and message_type in self.messages


MAPPING: Attachment[ServiceMapping] = Attachment()
"""The mapping of a service as a subscriber."""
