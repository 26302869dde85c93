"""Access for the owners of applications: tokens that give access to one application for a limited time, and can be
revoked at once.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from pushhub.base.ids import is_project_id
from pushhub.engine.component import Component
from pushhub.webhooks.model.ids import is_application
from pushhub.webhooks.model.portal import EVERYTHING, NEVER, READING, PortalAccess, named_by, portal_token
from pushhub.webhooks.model.portal_frame import PortalFrame

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.portal import Capability, PortalAsk

_SECRET_BYTES = 24


class PortalTokens(Protocol):
    """Stores tokens' data. Reads are consistent. May raise ``Unavailable``."""

    def put_access(self, access: PortalAccess) -> None:
        """Keep a new token."""

    def change_access(self, access: PortalAccess) -> None:
        """Replace what is stored of a token, unless it has been deleted, or ends sooner by now (in seconds)."""

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
        frame: Public id of the frame that its portal may be shown in; empty for none.
    """

    token: str = field(repr=False)
    frame: str


class Portal(Component):
    """Creates, finds and revokes tokens."""

    tokens: PortalTokens
    frames: PortalFrames
    clock: Clock

    def open(self, application: Application, ask: PortalAsk) -> Opened:
        """Create a token. It is returned only this once; the hub keeps its digest."""
        now = self.clock.now()
        frame = self._frame_for(application)
        token = portal_token(application.project, application.app_id, secrets.token_urlsafe(_SECRET_BYTES))
        self.tokens.put_access(
            PortalAccess(
                project=application.project,
                app_id=application.app_id,
                digest=digest_of_token(token),
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
        return self.frames.frame(PortalFrame(project=project_id, app_id=app_id)).origins

    def set_origins(self, project_id: str, app_id: str, origins: tuple[str, ...]) -> None:
        """Replace the origins of an application, or with an empty id those of the project's other applications."""
        self.frames.put_frame(PortalFrame(project=project_id, app_id=app_id, origins=origins))

    def _frame_for(self, application: Application) -> str:
        """The public id of the application's own frame, else of the project's; empty if there is neither."""
        for app_id in (application.app_id, ""):
            frame = self.frames.frame(PortalFrame(project=application.project, app_id=app_id))
            if frame.origins:
                return frame.name
        return ""

    def find(self, token: str) -> PortalAccess | None:
        """What a token currently gives access to, or None.

        Read on each request, so a revoked token stops working at once.
        """
        named = named_by(token)
        if named is None or not is_project_id(named[0]) or not is_application(named[1]):
            return None
        access = self.tokens.access(*named, digest_of_token(token))
        return access if access and access.expires_at > self.clock.now() else None

    def open_key(
        self,
        application: Application,
        holder: str,
        flags: frozenset[str],
        *,
        capabilities: frozenset[Capability] = EVERYTHING,
    ) -> str:
        """Create the key of an integration or an autoconfiguration, in place of the one before. It is returned only
        this once.

        Args:
            holder: Its id.
        """
        token = portal_token(application.project, application.app_id, secrets.token_urlsafe(_SECRET_BYTES))
        former = {each.digest for each in self._keys_of(application, holder)}
        self.tokens.put_access(
            PortalAccess(
                project=application.project,
                app_id=application.app_id,
                digest=digest_of_token(token),
                capabilities=capabilities,
                flags=flags,
                holder=holder,
                created_at=self.clock.now(),
                expires_at=NEVER,
            )
        )
        # Only then: whoever is interrupted has the key before, and of two that come together the later one stays.
        found = sorted(self._keys_of(application, holder), key=lambda each: (each.created_at, each.digest))
        latest = [each for each in found if each.digest not in former][-1:]
        self.tokens.remove_accesses([each for each in found if each not in latest])
        return token

    def poller_access(self, stream: Application, secret: str) -> PortalAccess | None:
        """The token of a poller with a secret; None if it has ended, or was never made."""
        access = self.tokens.access(stream.project, stream.app_id, _digest_of(stream, secret))
        return access if access is not None and access.expires_at > self.clock.now() else None

    def open_poller(self, stream: Application, sink_id: str, secret: str, expires_at: int) -> PortalAccess:
        """Make the token of a poller, with a new secret that the sink keeps."""
        opened = PortalAccess(
            project=stream.project,
            app_id=stream.app_id,
            digest=_digest_of(stream, secret),
            capabilities=READING,
            holder=sink_id,
            created_at=self.clock.now(),
            expires_at=expires_at,
        )
        self.tokens.put_access(opened)
        return opened

    def end_pollers(self, stream: Application, sink_id: str, *, but: Callable[[], str], grace_s: int) -> str:
        """End the tokens of a poller but one.

        Args:
            but: Finds the secret of the one that stays; called when the others are known, so none of them is newer.
            grace_s: Seconds that the others remain valid.

        Returns:
            The digest of the one that stays.
        """
        ends_at = self.clock.now() + grace_s * 1000
        found = self._keys_of(stream, sink_id)
        stays = _digest_of(stream, but())
        others = [each for each in found if each.digest != stays]
        if grace_s == 0:
            self.tokens.remove_accesses(others)
            return stays
        for each in others:
            self.tokens.change_access(replace(each, expires_at=min(each.expires_at, ends_at)))
        return stays

    def flags_of(self, application: Application, holder: str) -> frozenset[str]:
        """The feature flags of a key; none if there is no key."""
        return next((each.flags for each in self._keys_of(application, holder)), frozenset())

    def change_flags(self, application: Application, holder: str, flags: frozenset[str]) -> None:
        """Give a key other feature flags."""
        for each in self._keys_of(application, holder):
            self.tokens.change_access(replace(each, flags=flags))

    def close_key(self, application: Application, holder: str) -> None:
        """Revoke a key."""
        self.tokens.remove_accesses(self._keys_of(application, holder))

    def close_all(self, application: Application) -> None:
        """Revoke all tokens and keys of an application that is about to be deleted."""
        found = self.tokens.accesses(application.project, application.app_id)
        self.tokens.remove_accesses([*found])

    def _keys_of(self, application: Application, holder: str) -> list[PortalAccess]:
        found = self.tokens.accesses(application.project, application.app_id)
        return [each for each in found if each.holder == holder]

    def close(self, token: str) -> None:
        """Revoke one token."""
        access = self.find(token)
        if access:
            self.tokens.remove_accesses([access])

    def expire(self, application: Application, *, grace_s: int = 0, sessions: Sequence[str] | None = None) -> None:
        """End all tokens of an application's portal, or those of some sessions. Keys of integrations stay.

        Args:
            grace_s: Seconds they remain valid; no token's lifetime is extended.
            sessions: Only tokens of these sessions; None for all.
        """
        ends_at = self.clock.now() + grace_s * 1000
        found = self.tokens.accesses(application.project, application.app_id)
        portals = [each for each in found if not each.holder]
        chosen = [each for each in portals if sessions is None or each.session in sessions]
        if grace_s == 0:
            self.tokens.remove_accesses(chosen)
            return
        for each in chosen:
            if each.expires_at > ends_at:
                self.tokens.change_access(replace(each, expires_at=ends_at))


def _digest_of(stream: Application, secret: str) -> str:
    return digest_of_token(portal_token(stream.project, stream.app_id, secret))


def digest_of_token(token: str) -> str:
    """SHA-256 of a token, hexadecimal: what is stored of it."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()
