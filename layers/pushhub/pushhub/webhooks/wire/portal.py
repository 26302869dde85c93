"""Requests for tokens of the owners of applications, and of frames, on the wire."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pushhub.webhooks.model.portal import DEFAULT_EXPIRY_S, EVERYTHING, READING, Capability, PortalAsk
from pushhub.webhooks.model.portal_frame import MAX_ORIGINS, is_origin
from pushhub.webhooks.wire.fields import NAME

if TYPE_CHECKING:
    from pushhub.webhooks.wire.fields import Fields

MAX_EXPIRY_S = DEFAULT_EXPIRY_S
MIN_EXPIRY_S = 3_600
MAX_GRACE_S = 259_200
"""The longest time that a token may remain valid after its revocation was requested, seconds."""
MAX_POLLER_S = 31_536_000
"""How long a poller's token may be valid, seconds."""
MAX_OLD_POLLER_S = 86_400
DEFAULT_OLD_POLLER_S = 300
MAX_SESSIONS = 1_000
MAX_FLAGS = 100
_SESSION = re.compile(r"[a-zA-Z0-9@_\-]{1,64}")
_CAPABILITIES = {each.value: each for each in Capability}


def parse_portal_ask(fields: Fields) -> PortalAsk:
    """Read a request for a token."""
    expiry = fields.whole("expiry", least=MIN_EXPIRY_S, most=MAX_EXPIRY_S)
    return PortalAsk(
        capabilities=_capabilities(fields),
        flags=parse_flags(fields),
        session=_session(fields),
        expiry_s=DEFAULT_EXPIRY_S if expiry is None else expiry,
    )


def parse_flags(fields: Fields) -> frozenset[str]:
    """Read the feature flags of a token."""
    flags = None if fields.raw("featureFlags") == [] else fields.names("featureFlags", NAME, most=MAX_FLAGS)
    return frozenset(flags or ())


def parse_origins(fields: Fields) -> tuple[str, ...]:
    """Read who may show a portal in a frame."""
    given = fields.raw("origins")
    if not isinstance(given, list) or len(given) > MAX_ORIGINS:
        raise fields.refuse(f"A list of up to {MAX_ORIGINS} origins is required", "origins")
    if not all(isinstance(each, str) and is_origin(each) for each in given):
        raise fields.refuse(
            "An origin is https://, a host in lower case and a port if it is not 443, and nothing else; http:// is"
            " possible for localhost alone",
            "origins",
        )
    return tuple(dict.fromkeys(given))


def parse_expire(fields: Fields) -> tuple[int, tuple[str, ...] | None]:
    """The seconds that tokens remain valid, and the sessions whose tokens end; None for all."""
    grace = fields.whole("expiry", least=0, most=MAX_GRACE_S) or 0
    if fields.raw("sessionIds") in (None, []):
        return grace, None
    return grace, fields.names("sessionIds", _SESSION, most=MAX_SESSIONS)


def parse_poller_rotation(fields: Fields) -> tuple[int | None, int]:
    """The seconds that a poller's new token is valid, None for ever; and those that the one before remains so."""
    expiry = fields.whole("expiry", least=1, most=MAX_POLLER_S)
    grace = fields.whole("oldTokenExpiry", least=0, most=MAX_OLD_POLLER_S)
    return expiry, DEFAULT_OLD_POLLER_S if grace is None else grace


def _capabilities(fields: Fields) -> frozenset[Capability]:
    only_to_read = fields.raw("readOnly") is not None and fields.flag("readOnly", default=False)
    if fields.raw("capabilities") is None:
        return READING if only_to_read else EVERYTHING
    if fields.raw("capabilities") == []:
        return READING
    names = fields.names("capabilities", NAME, most=len(_CAPABILITIES)) or ()
    unknown = [each for each in names if each not in _CAPABILITIES]
    if unknown:
        raise fields.refuse(f"There is no capability {unknown[0]}", "capabilities")
    return frozenset(_CAPABILITIES[each] for each in names) | READING


def _session(fields: Fields) -> str | None:
    session = fields.optional_text("sessionId", least=1, most=64)
    if session is not None and _SESSION.fullmatch(session) is None:
        raise fields.refuse("A session must have 1 to 64 letters, digits and @ _ -", "sessionId")
    return session
