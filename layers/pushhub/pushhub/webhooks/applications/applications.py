"""Applications: created, changed and looked up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.conflicts import until_saved
from pushhub.engine.component import Component
from pushhub.webhooks.model.application import Application, ApplicationFields
from pushhub.webhooks.model.ids import IdPrefix, new_id
from pushhub.webhooks.model.internal_queues import OPERATIONAL_APP, queue_of
from pushhub.webhooks.model.page import KeyRange, Page, Window, page_of, span_of
from pushhub.webhooks.model.refusals import Refused, conflict, not_found
from pushhub.webhooks.ports import Applications, ReadApplications, UidTaken
from pushhub.webhooks.wire.fields import NAME

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.engine.projects.copies import ChangeNotes


def found_application(store: ReadApplications, project_id: str, name: str) -> Application:
    """The application with an id or uid; ``NotFound`` if there is none."""
    application = store.application(project_id, name) if NAME.fullmatch(name) else None
    if application is None:
        raise not_found()
    return application


class WebhooksApplications(Component):
    """The applications of projects. Methods raise ``NotFound`` for what is not there, and ``Refused`` (409) for a uid
    that is taken.
    """

    store: Applications
    notes: ChangeNotes
    clock: Clock

    def create(
        self, project_id: str, given: ApplicationFields, *, get_if_exists: bool = False
    ) -> tuple[Application, bool]:
        """Make an application, or find the one that has its uid.

        Args:
            get_if_exists: Whether to return an existing application with the same uid unchanged, instead of refusing.

        Returns:
            The application, and whether it was made now.
        """
        if get_if_exists and given.uid is not None:
            there = self.store.application(project_id, given.uid)
            if there is not None:
                return there, False
        try:
            return self.make(project_id, given), True
        except UidTaken:
            there = self.store.application(project_id, given.uid or "") if get_if_exists else None
            if there is None:
                raise _taken() from None
            return there, False

    def make(self, project_id: str, given: ApplicationFields) -> Application:
        """Store a new application.

        Raises:
            UidTaken: Another application has its uid.
        """
        now = self.clock.now()
        application = Application(
            project=project_id,
            app_id=new_id(IdPrefix.APPLICATION, now),
            fields=given,
            created_at=now,
            updated_at=now,
        )
        return self.store.put_application(application, None)

    def page(self, project_id: str, window: Window) -> Page[Application]:
        """A page of the project's applications."""
        found = self.store.applications(project_id, span_of(window, above=OPERATIONAL_APP, below=IdPrefix.SOURCE))
        return page_of(found, window, lambda each: each.app_id)

    def find(self, project_id: str, name: str) -> Application | None:
        """The application with an id or uid, or None."""
        return self.store.application(project_id, name) if NAME.fullmatch(name) else None

    def next_after(self, project_id: str, app_id: str) -> str | None:
        """The id of the project's first application whose id is greater, or None."""
        found = next(self.store.applications(project_id, KeyRange(above=app_id)), None)
        return found.app_id if found else None

    def application(self, project_id: str, name: str) -> Application:
        """The application with an id or uid."""
        return found_application(self.store, project_id, name)

    def named_or_brought(
        self, project_id: str, name: str, brought: Callable[[str], ApplicationFields] | None
    ) -> Application:
        """The application with an id or uid. If it does not exist, it is created.

        Args:
            brought: Reads what it is to be created with, given that name; None for nothing.
        """
        there = self.store.application(project_id, name) if NAME.fullmatch(name) else None
        if there is not None or brought is None:
            return there or found_application(self.store, project_id, name)
        try:
            return self.make(project_id, brought(name))
        except UidTaken:
            return found_application(self.store, project_id, name)

    def replace(self, project_id: str, name: str, given: ApplicationFields) -> tuple[Application, bool]:
        """Replace all fields of an application, or create it with them.

        Returns:
            The application, and whether it was made now.
        """
        there = self.find(project_id, name)
        if there is None:
            return self.create(project_id, given)[0], True
        return self._changed(project_id, there.app_id, lambda _: given), False

    def patch(
        self, project_id: str, name: str, change: Callable[[ApplicationFields], ApplicationFields]
    ) -> Application:
        """Change the fields of an application."""
        app_id = self.application(project_id, name).app_id
        return self._changed(project_id, app_id, change)

    def delete(self, project_id: str, name: str) -> Application:
        """Delete an application; its messages are no longer delivered."""
        application = self.application(project_id, name)
        self.notes.note(project_id, queue_of(application.app_id))
        if not self.store.delete_application(application):
            raise not_found()
        return application

    def _changed(
        self, project_id: str, app_id: str, change: Callable[[ApplicationFields], ApplicationFields]
    ) -> Application:

        def once() -> Application:
            before = self.application(project_id, app_id)
            after = replace(before, fields=change(before.fields), updated_at=self.clock.now())
            self.notes.note(project_id, queue_of(app_id))
            try:
                return self.store.put_application(after, before)
            except UidTaken:
                raise _taken() from None

        return until_saved(once, doing="changing an application")


def _taken() -> Refused:
    return conflict("An application with that id or uid already exists")
