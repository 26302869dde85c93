"""Tokens of an application's owner, for a portal in a browser: their permissions and lifetime."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum

from pushhub.base.fields import APART, SPARSE, field_metadata

_PREFIXES = {"appsk": "app_", "srcsk": "src_", "strmsk": "strm_"}
"""What a token begins with, and the prefix of the id of the application, source or stream that it opens."""
_GATES = frozenset({"oauth", "oauth-config", "mtls", "mtls-config"})
_TRANSFORMATION, _CONNECTOR = "transformation", "connector"
_SECRETS = frozenset({"secret", "signatures", *_GATES})
_KEPT_FROM_VIEW = frozenset({"secret", "signatures", "headers", _TRANSFORMATION, *_GATES})
_ATTEMPTS = frozenset({"resend", "recover", "replay-missing", "bulk-replay", "send-example"})


class Capability(StrEnum):
    """What the holder of a token may do, in the words of the API."""

    VIEW_BASE = "ViewBase"
    VIEW_SECRET = "ViewEndpointSecret"  # noqa: S105 (a name)
    MANAGE_SECRET = "ManageEndpointSecret"  # noqa: S105 (a name)
    MANAGE_TRANSFORMATIONS = "ManageTransformations"
    CREATE_ATTEMPTS = "CreateAttempts"
    MANAGE_ENDPOINT = "ManageEndpoint"


EVERYTHING = frozenset(Capability)
NOTHING = frozenset[Capability]()
READING = frozenset({Capability.VIEW_BASE})

NEVER = 253_370_764_800_000
"""When the key of an integration or an autoconfiguration expires, epoch milliseconds: with the year 9999."""

DEFAULT_EXPIRY_S = 604_800
"""How long a token opens its application unless its request says less, seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortalAsk:
    """A request for a token.

    Attributes:
        session: A name to end it by; None for none.
        expiry_s: Seconds from now.
    """

    capabilities: frozenset[Capability] = EVERYTHING
    flags: frozenset[str] = frozenset()
    session: str | None = None
    expiry_s: int = DEFAULT_EXPIRY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class PortalAccess:
    """The stored data of a token.

    Attributes:
        app_id: The one application it opens.
        digest: SHA-256 of the token, hexadecimal; the token itself is not stored.
        flags: Feature flags; event types that have one are shown only if it is among these.
        session: The owner's own name for the session, used to end it; None for none.
        frame: Public id of the frame that its portal may be shown in; empty for none.
        holder: Id of the integration or autoconfiguration whose key it is; empty for a portal's token.
        expires_at: Epoch milliseconds from which it gives no access.
    """

    project: str = field(metadata=field_metadata(stored=APART))
    app_id: str = field(metadata=field_metadata(stored=APART))
    digest: str = field(repr=False, metadata=field_metadata(stored=APART))
    capabilities: frozenset[Capability] = EVERYTHING
    flags: frozenset[str] = frozenset()
    session: str | None = None
    frame: str = field(default="", metadata=field_metadata(stored=SPARSE))
    holder: str = field(default="", metadata=field_metadata(stored=SPARSE))
    created_at: int = field(metadata=field_metadata(stored=APART))
    expires_at: int = field(metadata=field_metadata(stored=APART))


def portal_token(project_id: str, app_id: str, secret: str) -> str:
    """The text of a token: it names its project and application, so one read finds it."""
    kind, _, rest = app_id.partition("_")
    return "_".join((f"{kind}sk", project_id, rest, secret))


def named_by(token: str) -> tuple[str, str] | None:
    """The project and the application's id that a token names; None for a text that is no such token.

    Neither has to exist.
    """
    parts = token.split("_", 3)
    if len(parts) != 4 or parts[0] not in _PREFIXES or not all(parts):
        return None
    return parts[1], _PREFIXES[parts[0]] + parts[2]


def capability_for(method: str, segments: Collection[str]) -> Capability:
    """The capability that a portal's request needs."""
    if "auth" in segments:
        return Capability.VIEW_BASE
    if _TRANSFORMATION in segments or _CONNECTOR in segments:
        return Capability.MANAGE_TRANSFORMATIONS
    if not _SECRETS.isdisjoint(segments):
        return Capability.VIEW_SECRET if method == "GET" else Capability.MANAGE_SECRET
    if method in ("GET", "HEAD"):
        return Capability.VIEW_BASE
    return Capability.CREATE_ATTEMPTS if not _ATTEMPTS.isdisjoint(segments) else Capability.MANAGE_ENDPOINT


def is_only_looking(method: str, segments: Collection[str]) -> bool:
    """Whether a portal's request about an endpoint only looks at what may be seen of any endpoint."""
    return method == "GET" and _KEPT_FROM_VIEW.isdisjoint(segments)
