"""What a project has besides applications, as one document that another project can take in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from pushhub.base.ports import Clock
from pushhub.base.times import iso_time
from pushhub.webhooks.model.event_type import EventType
from pushhub.webhooks.model.page import Page, Window
from pushhub.webhooks.wire.event_type import event_type_view, parse_event_type
from pushhub.webhooks.wire.fields import Fields

__all__ = ["Environments", "TypesOfProjects"]

VERSION = 1
MAX_IMPORTED = 1_000
"""Event types that one request brings."""
_PAGE = 250


class TypesOfProjects(Protocol):
    """The event types of projects."""

    def page(
        self, project_id: str, window: Window, *, include_archived: bool, flags: frozenset[str] | None
    ) -> Page[EventType]:
        """A part of them."""
        ...

    def replace(self, project_id: str, name: str, fields: Fields) -> tuple[EventType, bool]:
        """Replace all fields of one, or make it."""
        ...


class Environments:
    """Gives and takes what a project has.

    Args:
        event_types: Event types.
        clock: Time.
    """

    def __init__(self, *, event_types: TypesOfProjects, clock: Clock) -> None:
        self._event_types = event_types
        self._clock = clock

    def export(self, project_id: str) -> dict[str, object]:
        """All event types with their schemas, archived ones too. There are no other settings, and no connectors."""
        return {
            "version": VERSION,
            "createdAt": iso_time(self._clock.now()),
            "eventTypes": [event_type_view(each, with_schemas=True) for each in self._all(project_id)],
            "settings": None,
            "connectors": [],
        }

    def take_in(self, project_id: str, fields: Fields) -> None:
        """Add or replace the event types of a document; nothing is deleted. Settings and connectors in it are left aside.

        Raises:
            Unprocessable: One of them breaks a rule; then none is taken.
        """
        listed = fields.raw("eventTypes")
        if listed is None:
            return
        if not isinstance(listed, list) or len(listed) > MAX_IMPORTED:
            raise fields.refuse(f"A list of at most {MAX_IMPORTED} event types is required", "eventTypes")
        given = [Fields(each, "body", "eventTypes", str(number)) for number, each in enumerate(listed)]
        for each in given:
            each.name("name")
            parse_event_type(each)
        for each in given:
            self._event_types.replace(project_id, each.name("name"), each)

    def _all(self, project_id: str) -> Iterator[EventType]:
        after: str | None = None
        while True:
            window = Window(limit=_PAGE, after=after)
            page = self._event_types.page(project_id, window, include_archived=True, flags=None)
            yield from page.items
            if page.done:
                return
            after = page.last
