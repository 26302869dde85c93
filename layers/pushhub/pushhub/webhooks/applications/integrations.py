"""Integrations: made, changed, and given keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from pushhub.engine.component import Component
from pushhub.webhooks.model.ids import IdPrefix, is_id, new_id
from pushhub.webhooks.model.integration import AppIntegration, AppIntegrationFields
from pushhub.webhooks.model.page import KeyRange, Page, Window, page_of, span_of
from pushhub.webhooks.model.refusals import conflict, not_found

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.webhooks.applications.portal import Portal
    from pushhub.webhooks.model.application import Application

MOST = 500
"""Integrations of one application at most."""


class AppIntegrationStore(Protocol):
    """Stores integrations. Reads are consistent. May raise ``Unavailable``."""

    def integration(self, project_id: str, app_id: str, integration_id: str) -> AppIntegration | None:
        """The integration, or None."""

    def integrations(self, project_id: str, app_id: str, span: KeyRange) -> Iterator[AppIntegration]:
        """The integrations of an application with ids in a span, in its direction, read page by page on demand."""

    def put_integration(self, integration: AppIntegration) -> None:
        """Keep a new integration."""

    def change_integration(self, integration: AppIntegration) -> bool:
        """Replace an integration; False if there is none any more."""

    def delete_integration(self, integration: AppIntegration) -> None:
        """Delete an integration; does nothing if it does not exist."""


class AppIntegrations(Component):
    """The integrations of applications. Methods raise ``NotFound`` for what is not there."""

    store: AppIntegrationStore
    portal: Portal  # Keeps their keys.
    clock: Clock

    def create(self, application: Application, given: AppIntegrationFields) -> AppIntegration:
        """Make an integration. It has no key yet.

        Raises:
            Refused: The application has too many (409).
        """
        there = sum(1 for _ in self.store.integrations(application.project, application.app_id, KeyRange()))
        if there >= MOST:
            raise conflict(f"An application may have at most {MOST} integrations", code="too_many_integrations")
        now = self.clock.now()
        integration = AppIntegration(
            project=application.project,
            app_id=application.app_id,
            integration_id=new_id(IdPrefix.INTEGRATION, now),
            fields=given,
            created_at=now,
            updated_at=now,
        )
        self.store.put_integration(integration)
        return integration

    def page(self, application: Application, window: Window) -> Page[AppIntegration]:
        """A page of an application's integrations."""
        found = self.store.integrations(application.project, application.app_id, span_of(window))
        return page_of(found, window, lambda each: each.integration_id)

    def integration(self, application: Application, integration_id: str) -> AppIntegration:
        """One integration of an application."""
        found = (
            self.store.integration(application.project, application.app_id, integration_id)
            if is_id(IdPrefix.INTEGRATION, integration_id)
            else None
        )
        if found is None:
            raise not_found()
        return found

    def replace(self, application: Application, integration_id: str, given: AppIntegrationFields) -> AppIntegration:
        """Replace what is said of an integration. Its key has the new feature flags at once."""
        before = self.integration(application, integration_id)
        after = replace(before, fields=given, updated_at=self.clock.now())
        if not self.store.change_integration(after):
            raise not_found()
        self.portal.change_flags(application, integration_id, frozenset(given.flags))
        self._key_follows(application, integration_id, given.flags)
        return after

    def rotate_key(self, application: Application, integration_id: str) -> str:
        """Give an integration a new key, which is returned only this once. The one before opens nothing any more."""
        found = self.integration(application, integration_id)
        key = self.portal.open_key(application, integration_id, frozenset(found.fields.flags))
        if not self._key_follows(application, integration_id, found.fields.flags):
            # It was deleted meanwhile, perhaps after its keys were looked for.
            self.portal.close_key(application, integration_id)
            raise not_found()
        return key

    def _key_follows(self, application: Application, integration_id: str, flags: Sequence[str]) -> bool:
        """Give a key the feature flags that its integration was given meanwhile; False if that is gone.

        Args:
            flags: Those that it has.
        """
        while True:
            there = self.store.integration(application.project, application.app_id, integration_id)
            if there is None or there.fields.flags == flags:
                return there is not None
            flags = there.fields.flags
            self.portal.change_flags(application, integration_id, frozenset(flags))

    def delete(self, application: Application, integration_id: str) -> None:
        """Delete an integration, and take back its key."""
        found = self.integration(application, integration_id)
        # The key first: if this is interrupted, the integration is still there to be deleted.
        self.portal.close_key(application, integration_id)
        self.store.delete_integration(found)
        # And one that was given to it meanwhile.
        self.portal.close_key(application, integration_id)
