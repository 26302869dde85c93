"""Endpoints on AWS, as Svix's API knows them: destinations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.errors import Invalid
from pushhub.base.sink_url import parse_sink_url
from pushhub.engine.component import Component
from pushhub.webhooks.endpoints.credentials import opened
from pushhub.webhooks.model.endpoint import POLLER, EndpointFields
from pushhub.webhooks.model.internal_queues import queue_of
from pushhub.webhooks.model.refusals import Unprocessable, not_found, unprocessable
from pushhub.webhooks.wire.destination import endpoint_name, is_destination, url_of
from pushhub.webhooks.wire.endpoint import EndpointChange, NewEndpoint, is_http

if TYPE_CHECKING:
    from pushhub.base.sink_url import SinkUrl
    from pushhub.engine.security.credentials import Credentials
    from pushhub.engine.security.external_ids import ExternalIds
    from pushhub.webhooks.endpoints.endpoints import WebhooksEndpoints
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.model.page import Page, Window
    from pushhub.webhooks.model.rights import Rights
    from pushhub.webhooks.wire.destination import GivenDestination


class Destinations(Component):
    """The destinations of applications: those of their endpoints whose URL is one of AWS, and those that are polled.
    What is returned is opened.

    Methods raise ``NotFound`` for what is not there, and ``Unprocessable`` for what breaks a rule.
    """

    endpoints: WebhooksEndpoints
    credentials: Credentials
    external_ids: ExternalIds

    def external_id(self, project_id: str, app_id: str) -> str:
        """What a role has to demand that an application's destinations are reached with."""
        return self.external_ids.of(project_id, queue_of(app_id))

    @property
    def principal(self) -> str:
        """Who assumes such a role."""
        return self.external_ids.principal

    def create(self, application: Application, given: GivenDestination, rights: Rights) -> Endpoint:
        """Make a destination."""
        with in_config():
            fields = EndpointFields(url=self._url(application, given, None), **given.settings)
            wanted = NewEndpoint(fields=fields, key=None, headers={})
            return self._opened(self.endpoints.create(application, wanted, tuple, rights))

    def page(self, project_id: str, app: str, window: Window) -> Page[Endpoint]:
        """A page of an application's destinations: those among a page of its endpoints."""
        page = self.endpoints.page(project_id, app, window)
        return replace(page, items=[self._opened(each) for each in page.items if is_destination(each)])

    def find(self, application: Application, name: str) -> Endpoint | None:
        """The destination with an id or uid, or None."""
        found = self.endpoints.find(application, endpoint_name(name))
        return self._opened(found) if found is not None and is_destination(found) else None

    def destination(self, application: Application, name: str) -> Endpoint:
        """The destination with an id or uid."""
        found = self.find(application, name)
        if found is None:
            raise not_found()
        return found

    def update(
        self, application: Application, there: Endpoint, given: GivenDestination, rights: Rights, *, whole: bool
    ) -> Endpoint:
        """Change a destination.

        Args:
            there: Opened.
            whole: Whether nothing of its config stays that is not given.
        """

        def url(stored: str) -> str:
            aws = None if whole or stored == POLLER or is_http(stored) else parse_sink_url(stored)
            return self._url(application, given, aws if aws is not None and aws.scheme == given.scheme else None)

        with in_config():
            change = EndpointChange(settings={**given.settings, "url": url(there.fields.url)}, url=url)
            return self._opened(self.endpoints.update(application, there, change, rights))

    def _url(self, application: Application, given: GivenDestination, stored: SinkUrl | None) -> str:
        if given.scheme == "poller":
            return POLLER
        external_id = self.external_id(application.project, application.app_id)
        try:
            return url_of(given, stored, app_id=application.app_id, external_id=external_id)
        except Invalid as error:
            raise unprocessable(error.message, "body", "config") from error

    def _opened(self, endpoint: Endpoint) -> Endpoint:
        return opened(endpoint, self.credentials)


@contextmanager
def in_config() -> Iterator[None]:
    """Refusals of a URL, where its owner wrote it."""
    try:
        yield
    except Unprocessable as error:
        problems = [
            replace(each, where=("body", "config")) if each.where == ("body", "url") else each
            for each in error.problems
        ]
        raise Unprocessable(problems) from error
