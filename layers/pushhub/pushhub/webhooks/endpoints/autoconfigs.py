"""Autoconfigurations: made, and used by consumers to set up their endpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from pushhub.base.signing import parse_key
from pushhub.engine.component import Component
from pushhub.webhooks.model.autoconfig import Autoconfig, autoconfig_token, signing_secret
from pushhub.webhooks.model.endpoint import POLLER, EndpointFields
from pushhub.webhooks.model.ids import IdPrefix, is_id, new_id
from pushhub.webhooks.model.portal import NOTHING
from pushhub.webhooks.model.refusals import conflict, not_found
from pushhub.webhooks.wire.endpoint import EndpointChange, NewEndpoint, Rotation

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.base.signing_change import WantedSignature
    from pushhub.webhooks.applications.portal import Portal
    from pushhub.webhooks.endpoints.endpoints import WebhooksEndpoints
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.model.rights import Rights

GRACE_S = 86_400
"""How long the endpoint's previous secret also signs after a consumer has come with a new token, seconds."""


class AutoconfigStore(Protocol):
    """Stores autoconfigurations. Reads are consistent. May raise ``Unavailable``."""

    def autoconfig(self, project_id: str, app_id: str, autoconfig_id: str) -> Autoconfig | None:
        """The autoconfiguration, or None."""

    def put_autoconfig(self, autoconfig: Autoconfig) -> None:
        """Keep a new autoconfiguration."""

    def change_autoconfig(self, before: Autoconfig, after: Autoconfig) -> bool:
        """Keep an autoconfiguration in another state; False, and nothing changes, if it has been deleted or changed."""

    def delete_autoconfig(self, autoconfig: Autoconfig) -> None:
        """Delete an autoconfiguration; does nothing if it does not exist."""


class Autoconfigs(Component):
    """The autoconfigurations of applications. Methods raise ``NotFound`` for what is not there."""

    store: AutoconfigStore
    portal: Portal  # Keeps their keys.
    endpoints: WebhooksEndpoints
    base_url: str
    clock: Clock

    def create(self, application: Application, flags: frozenset[str]) -> tuple[Autoconfig, str]:
        """Make an autoconfiguration.

        Returns:
            It, and the token for its consumer, which is returned only this once.
        """
        now = self.clock.now()
        autoconfig = Autoconfig(
            project=application.project,
            app_id=application.app_id,
            autoconfig_id=new_id(IdPrefix.AUTOCONFIG, now),
            created_at=now,
        )
        self.store.put_autoconfig(autoconfig)
        return autoconfig, self._token(application, autoconfig, flags)

    def autoconfig(self, application: Application, autoconfig_id: str) -> Autoconfig:
        """One autoconfiguration of an application."""
        named = is_id(IdPrefix.AUTOCONFIG, autoconfig_id)
        found = self.store.autoconfig(application.project, application.app_id, autoconfig_id) if named else None
        if found is None:
            raise not_found()
        return found

    def rotate(self, application: Application, autoconfig_id: str) -> tuple[Autoconfig, str]:
        """Make another token. The one before sets up nothing any more; the endpoint goes on as it is, until a consumer
        comes with the new one.
        """
        found = self.autoconfig(application, autoconfig_id)
        flags = self.portal.flags_of(application, autoconfig_id)
        token = self._token(application, found, flags)
        if self.store.autoconfig(application.project, application.app_id, autoconfig_id) is None:
            # It was deleted meanwhile, perhaps after its token was looked for.
            self.portal.close_key(application, autoconfig_id)
            raise not_found()
        return found, token

    def delete(self, application: Application, autoconfig_id: str) -> None:
        """Delete an autoconfiguration, and take back its token. The endpoint stays."""
        found = self.autoconfig(application, autoconfig_id)
        self.portal.close_key(application, autoconfig_id)
        self.store.delete_autoconfig(found)
        # And one that was made meanwhile.
        self.portal.close_key(application, autoconfig_id)

    def subscribe(
        self,
        application: Application,
        autoconfig_id: str,
        key: str,
        wanted: tuple[NewEndpoint, EndpointChange],
        *,
        signatures: Callable[[], Sequence[WantedSignature]],
        rights: Rights,
    ) -> Endpoint:
        """Set up the endpoint, or change the one that was set up before.

        Args:
            key: That of the consumer's token.
            wanted: The endpoint, as a new one and as a change of the present one.

        Raises:
            Unprocessable: A field breaks a rule.
            Refused: The uid is another endpoint's (409).
        """
        found, (new, change) = self.autoconfig(application, autoconfig_id), wanted
        secret = parse_key(signing_secret(key))
        there = self._set_up(application, found, polls=False)
        if there is None:
            found = self._begun(found)
            fields = replace(new.fields, uid=new.fields.uid or autoconfig_id)
            endpoint = self.endpoints.create(
                application,
                replace(new, fields=fields, key=secret),
                signatures,
                rights,
                endpoint_id=found.begun_id,
            )
        else:
            endpoint = self.endpoints.update(application, there, change, rights)
            if self.endpoints.keys(endpoint).current != secret:
                rotation = Rotation(key=secret, grace_s=GRACE_S)
                endpoint, _ = self.endpoints.rotate(
                    application.project, application.app_id, endpoint.endpoint_id, rotation
                )
        self._bind(found, endpoint)
        return endpoint

    def subscribe_poller(
        self, application: Application, autoconfig_id: str, settings: Mapping[str, Any], rights: Rights
    ) -> Endpoint:
        """Set up the polling endpoint, or change the one that was set up before.

        Args:
            settings: All of its fields but its URL.

        Raises:
            Unprocessable: A field breaks a rule.
            Refused: The uid is another endpoint's, or an endpoint was set up that is no polling one (409).
        """
        found = self.autoconfig(application, autoconfig_id)
        there = self._set_up(application, found, polls=True)
        if there is None:
            found = self._begun(found)
            fields = EndpointFields(url=POLLER, **{**settings, "uid": settings.get("uid") or autoconfig_id})
            endpoint = self.endpoints.create(
                application,
                NewEndpoint(fields=fields, key=None, headers={}),
                tuple,
                rights,
                endpoint_id=found.begun_id,
            )
        else:
            endpoint = self.endpoints.update(application, there, EndpointChange(settings=settings), rights)
        self._bind(found, endpoint)
        return endpoint

    def _set_up(self, application: Application, found: Autoconfig, *, polls: bool) -> Endpoint | None:
        """The endpoint that was set up before; a 409 if it is one of the other kind."""
        # If setting it up is interrupted, it is found again: by the id that was noted before, or, if it has no other
        # uid, by the autoconfiguration's.
        names = filter(None, (found.endpoint_id, found.begun_id, found.autoconfig_id))
        there = next(filter(None, (self.endpoints.find(application, each) for each in names)), None)
        if there is not None and there.polls != polls:
            raise conflict("This autoconfiguration has set up an endpoint of another kind")
        return there

    def _begun(self, found: Autoconfig) -> Autoconfig:
        """The autoconfiguration with the id of an endpoint that is about to be made, noted before it is."""
        begun = replace(found, begun_id=new_id(IdPrefix.ENDPOINT, self.clock.now()))
        if not self.store.change_autoconfig(found, begun):
            raise conflict("It was set up by another request at the same time")
        return begun

    def _bind(self, found: Autoconfig, endpoint: Endpoint) -> None:
        if found.endpoint_id != endpoint.endpoint_id:
            bound = replace(found, endpoint_id=endpoint.endpoint_id, polls=endpoint.polls, begun_id="")
            self.store.change_autoconfig(found, bound)

    def _token(self, application: Application, autoconfig: Autoconfig, flags: frozenset[str]) -> str:
        key = self.portal.open_key(application, autoconfig.autoconfig_id, flags, capabilities=NOTHING)
        return autoconfig_token(autoconfig, key, self.base_url)
