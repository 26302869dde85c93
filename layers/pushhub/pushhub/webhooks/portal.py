"""Access for the owners of applications: tokens that give access to one application for a limited time, and can be
revoked at once.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from pushhub.base.ids import is_project_id
from pushhub.webhooks.model.ids import Kind, is_id
from pushhub.webhooks.model.portal import EVERYTHING, READING, Capability, PortalAccess, named_by, portal_token
from pushhub.webhooks.model.portal_frame import MAX_ORIGINS, PortalFrame, is_origin
from pushhub.webhooks.wire.fields import NAME, Fields

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.webhooks.model.application import Application

DEFAULT_EXPIRY_S = MAX_EXPIRY_S = 604_800
MIN_EXPIRY_S = 3_600
MAX_GRACE_S = 259_200
"""The longest time that a token may remain valid after its revocation was requested, seconds."""
MAX_SESSIONS = 1_000
MAX_FLAGS = 100
_SECRET_BYTES = 24
_SESSION = re.compile(r"[a-zA-Z0-9@_\-]{1,64}")
_CAPABILITIES = {each.value: each for each in Capability}


class PortalTokens(Protocol):
    """Stores tokens' data. Reads are consistent. May raise ``Unavailable``."""

    def put_access(self, access: PortalAccess) -> None:
        """Keep a new token."""

    def shorten_access(self, access: PortalAccess) -> None:
        """Store an earlier end of a token, unless the token has been deleted."""

    def access(self, project_id: str, app_id: str, digest: str) -> PortalAccess | None:
        """A token by its digest, or None; one that expired may still be found."""

    def accesses(self, project_id: str, app_id: str) -> Iterable[PortalAccess]:
        """All tokens of an application, in no particular order."""

    def remove_accesses(self, accesses: Sequence[PortalAccess]) -> None:
        """Delete tokens; those that do not exist are ignored."""


class PortalFrames(Protocol):
    """Stores who may show portals in frames. Reads are consistent. May raise ``Unavailable``."""

    def frame(self, wanted: PortalFrame) -> PortalFrame:
        """The same frame with its stored origins; without any if there are none."""
        ...

    def put_frame(self, frame: PortalFrame) -> None:
        """Replace a frame; one without origins is removed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A new token.

    Attributes:
        token: Its text.
        frame: Public id of the frame that its portal may be shown in; empty for none.
    """

    token: str = field(repr=False)
    frame: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PortalAsk:
    """A request for a token.

    Attributes:
        capabilities: What its holder may do.
        flags: Feature flags.
        session: A name to end it by; None for none.
        expiry_s: Seconds from now.
    """

    capabilities: frozenset[Capability] = EVERYTHING
    flags: frozenset[str] = frozenset()
    session: str | None = None
    expiry_s: int = DEFAULT_EXPIRY_S


class Portal:
    """Creates, finds and revokes tokens.

    Args:
        tokens: Where they are kept.
        frames: Who may show portals in frames.
        clock: Time.
    """

    def __init__(self, *, tokens: PortalTokens, frames: PortalFrames, clock: Clock) -> None:
        self._tokens = tokens
        self._frames = frames
        self._clock = clock

    def open(self, application: Application, ask: PortalAsk) -> Opened:
        """Create a token. It is returned only this once; the hub keeps its digest."""
        now = self._clock.now()
        frame = self._frame_for(application)
        token = portal_token(application.project, application.app_id, secrets.token_urlsafe(_SECRET_BYTES))
        self._tokens.put_access(
            PortalAccess(
                project=application.project,
                app_id=application.app_id,
                digest=_digest(token),
                capabilities=ask.capabilities,
                flags=ask.flags,
                session=ask.session,
                frame=frame,
                created_at=now,
                expires_at=now + ask.expiry_s * 1000,
            )
        )
        return Opened(token=token, frame=frame)

    def origins(self, project_id: str, app_id: str = "") -> tuple[str, ...]:
        """The origins that may show an application's portal; with an empty id, those for the project's others."""
        return self._frames.frame(PortalFrame(project=project_id, app_id=app_id)).origins

    def set_origins(self, project_id: str, app_id: str, origins: tuple[str, ...]) -> None:
        """Replace the origins of an application, or with an empty id those of the project's other applications."""
        self._frames.put_frame(PortalFrame(project=project_id, app_id=app_id, origins=origins))

    def _frame_for(self, application: Application) -> str:
        """The public id of the application's own frame, else of the project's; empty if there is neither."""
        for app_id in (application.app_id, ""):
            frame = self._frames.frame(PortalFrame(project=application.project, app_id=app_id))
            if frame.origins:
                return frame.name
        return ""

    def find(self, token: str) -> PortalAccess | None:
        """What a token currently gives access to, or None.

        Read on each request, so a revoked token stops working at once.
        """
        named = named_by(token)
        if named is None or not is_project_id(named[0]) or not is_id(Kind.APPLICATION, named[1]):
            return None
        access = self._tokens.access(*named, _digest(token))
        return access if access and access.expires_at > self._clock.now() else None

    def close(self, token: str) -> None:
        """Revoke one token."""
        access = self.find(token)
        if access:
            self._tokens.remove_accesses([access])

    def expire(self, application: Application, *, grace_s: int = 0, sessions: Sequence[str] | None = None) -> None:
        """End all tokens of an application, or those of some sessions.

        Args:
            application: The application.
            grace_s: Seconds they remain valid; no token's lifetime is extended.
            sessions: Only tokens of these sessions; None for all.
        """
        ends_at = self._clock.now() + grace_s * 1000
        found = self._tokens.accesses(application.project, application.app_id)
        chosen = [each for each in found if sessions is None or each.session in sessions]
        if grace_s == 0:
            self._tokens.remove_accesses(chosen)
            return
        for each in chosen:
            if each.expires_at > ends_at:
                self._tokens.shorten_access(replace(each, expires_at=ends_at))


def parse_portal_ask(fields: Fields) -> PortalAsk:
    """Read a request for a token.

    Raises:
        Unprocessable: A field breaks a rule.
    """
    expiry = fields.whole("expiry", least=MIN_EXPIRY_S, most=MAX_EXPIRY_S)
    flags = None if fields.raw("featureFlags") == [] else fields.names("featureFlags", NAME, most=MAX_FLAGS)
    return PortalAsk(
        capabilities=_capabilities(fields),
        flags=frozenset(flags or ()),
        session=_session(fields),
        expiry_s=DEFAULT_EXPIRY_S if expiry is None else expiry,
    )


def parse_origins(fields: Fields) -> tuple[str, ...]:
    """Read who may show a portal in a frame.

    Raises:
        Unprocessable: The list is missing, too long, or has something else than origins.
    """
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
    """The seconds that tokens remain valid, and the sessions whose tokens end; None for all.

    Raises:
        Unprocessable: A field breaks a rule.
    """
    grace = fields.whole("expiry", least=0, most=MAX_GRACE_S) or 0
    if fields.raw("sessionIds") in (None, []):
        return grace, None
    return grace, fields.names("sessionIds", _SESSION, most=MAX_SESSIONS)


def _capabilities(fields: Fields) -> frozenset[Capability]:
    if fields.raw("capabilities") is None:
        return READING if fields.raw("readOnly") is True else EVERYTHING
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


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()
