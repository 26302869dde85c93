"""Streams: created, changed and looked up. A stream is an application whose events its sinks read in order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.conflicts import until_saved
from pushhub.engine.component import Component
from pushhub.webhooks.model.application import Application, ApplicationFields
from pushhub.webhooks.model.ids import IdPrefix, new_id
from pushhub.webhooks.model.internal_queues import queue_of
from pushhub.webhooks.model.page import Page, Window, page_of, span_of
from pushhub.webhooks.model.refusals import Refused, conflict, not_found
from pushhub.webhooks.ports import Applications, UidTaken
from pushhub.webhooks.wire.fields import NAME

if TYPE_CHECKING:
    from collections.abc import Callable

    from pushhub.base.ports import Clock
    from pushhub.engine.projects.copies import ChangeNotes


class WebhooksStreams(Component):
    """The streams of projects, named by id or uid. Methods raise ``NotFound`` for what is not there, and ``Refused``
    (409) for a uid that is taken.
    """

    store: Applications
    notes: ChangeNotes
    clock: Clock

    def create(self, project_id: str, given: ApplicationFields) -> Application:
        """Make a stream."""
        now = self.clock.now()
        stream = Application(
            project=project_id,
            app_id=new_id(IdPrefix.STREAM, now),
            fields=given,
            created_at=now,
            updated_at=now,
        )
        try:
            return self.store.put_application(stream, None)
        except UidTaken:
            raise _taken() from None

    def page(self, project_id: str, window: Window) -> Page[Application]:
        """A page of the project's streams."""
        found = self.store.applications(project_id, span_of(window, above=IdPrefix.STREAM))
        return page_of(found, window, lambda each: each.app_id)

    def find(self, project_id: str, name: str) -> Application | None:
        """The stream with an id or uid, or None."""
        return self.store.stream(project_id, name) if NAME.fullmatch(name) else None

    def stream(self, project_id: str, name: str) -> Application:
        """The stream with an id or uid."""
        found = self.find(project_id, name)
        if found is None:
            raise not_found("Stream")
        return found

    def named_or_brought(
        self, project_id: str, name: str, brought: Callable[[str], ApplicationFields] | None
    ) -> Application:
        """The stream with an id or uid. If it does not exist, it is created.

        Args:
            brought: Reads what it is to be created with, given that name; None for nothing.
        """
        there = self.find(project_id, name)
        if there is not None or brought is None:
            return there or self.stream(project_id, name)
        try:
            return self.create(project_id, brought(name))
        except Refused:
            # Somebody else has made it meanwhile.
            return self.stream(project_id, name)

    def replace(self, project_id: str, name: str, given: ApplicationFields) -> tuple[Application, bool]:
        """Replace all fields of a stream, or create it with them.

        Returns:
            The stream, and whether it was made now.
        """
        there = self.find(project_id, name)
        if there is None:
            return self.create(project_id, given), True
        return self._changed(project_id, there.app_id, lambda _: given), False

    def patch(
        self, project_id: str, name: str, change: Callable[[ApplicationFields], ApplicationFields]
    ) -> Application:
        """Change the fields of a stream."""
        return self._changed(project_id, self.stream(project_id, name).app_id, change)

    def delete(self, project_id: str, name: str) -> None:
        """Delete a stream; its events are no longer read."""
        stream = self.stream(project_id, name)
        self.notes.note(project_id, queue_of(stream.app_id))
        if not self.store.delete_application(stream):
            raise not_found("Stream")

    def _changed(
        self, project_id: str, stream_id: str, change: Callable[[ApplicationFields], ApplicationFields]
    ) -> Application:
        def once() -> Application:
            before = self.stream(project_id, stream_id)
            after = replace(before, fields=change(before.fields), updated_at=self.clock.now())
            self.notes.note(project_id, queue_of(stream_id))
            try:
                return self.store.put_application(after, before)
            except UidTaken:
                raise _taken() from None

        return until_saved(once, doing="changing a stream")


def _taken() -> Refused:
    return conflict("A stream with that uid already exists")
