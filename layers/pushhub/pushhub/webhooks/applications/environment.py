"""A project's configuration besides applications, as one document that another project can import."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from pushhub.base.times import iso_time
from pushhub.engine.component import Component
from pushhub.webhooks.model.page import Page, Window
from pushhub.webhooks.wire.connector import connector_view
from pushhub.webhooks.wire.event_type import WantedEventType, event_type_as_described, event_type_view

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.webhooks.applications.connectors import Connectors
    from pushhub.webhooks.model.connector import ConnectorFields
    from pushhub.webhooks.model.event_type import EventType

VERSION = 1
_PAGE = 250


class TypesOfProjects(Protocol):
    """The event types of projects."""

    def page(
        self, project_id: str, window: Window, *, include_archived: bool, flags: frozenset[str] | None
    ) -> Page[EventType]:
        """A page of them."""

    def check(self, name: str, wanted: WantedEventType) -> None:
        """Check that one could be created. Raises ``Unprocessable`` if not."""

    def replace(self, project_id: str, name: str, wanted: WantedEventType) -> tuple[EventType, bool]:
        """Replace all fields of one, or create it."""

    def delete(self, project_id: str, name: str, *, expunge: bool) -> None:
        """Archive one, or remove it for good."""


def _differs(stored: EventType | None, described: Mapping[str, Any]) -> bool:
    """Whether an event type differs from its description in a document."""
    if stored is None or stored.archived:
        return True
    shown = event_type_view(stored, with_schemas=True)
    names = {
        "description",
        "deprecated",
        "schemas",
        *(each for each in ("groupName", "featureFlags") if each in described),
    }
    return any(shown.get(name) != described.get(name) for name in names)


def _as_shown(described: Mapping[str, Any]) -> dict[str, Any]:
    """An event type that would be created or changed; its fields are in snake case, as clients read them."""
    names = {"groupName": "group_name", "featureFlags": "feature_flags"}
    return {names.get(name, name): value for name, value in described.items()}


class Environments(Component):
    """Exports and imports a project's configuration."""

    event_types: TypesOfProjects
    connectors: Callable[[], Connectors]
    clock: Clock

    def export(self, project_id: str) -> dict[str, object]:
        """All event types with their schemas, including archived ones, and all connectors. There are no other
        settings.
        """
        return {
            "version": VERSION,
            "createdAt": iso_time(self.clock.now()),
            "eventTypes": [event_type_view(each, with_schemas=True) for each in self._all(project_id)],
            "settings": None,
            "connectors": [connector_view(each) for each in self.connectors().all(project_id)],
        }

    def take_in(
        self,
        project_id: str,
        event_types: Iterable[tuple[str, WantedEventType]],
        connectors: Sequence[ConnectorFields],
    ) -> None:
        """Add or replace event types and connectors; nothing is deleted.

        Raises:
            Unprocessable: One of them breaks a rule; then none is imported.
        """
        given = []
        for name, wanted in event_types:
            self.event_types.check(name, wanted)
            given.append((name, wanted))
        self.connectors().take_in(project_id, connectors)
        for name, wanted in given:
            self.event_types.replace(project_id, name, wanted)

    def take_in_openapi(
        self, project_id: str, described: Sequence[Mapping[str, Any]], *, dry: bool, replace_all: bool
    ) -> tuple[list[str], list[dict[str, Any]] | None]:
        """Create and change event types as an OpenAPI document describes them; archived ones in it are revived.

        Args:
            described: The event types of the document, in the format of requests.
            dry: Whether to change nothing.
            replace_all: Whether to archive all others.

        Returns:
            The names of those that were created, changed or archived, and, for a dry run, those that would be created
            or changed.

        Raises:
            Unprocessable: One of them breaks a rule; then none is imported.
        """
        stored = {each.name: each for each in self._all(project_id)}
        wanted = [each for each in described if _differs(stored.get(each["name"]), each)]
        given = [self._checked(each, stored.get(each["name"])) for each in wanted]
        names = {each["name"] for each in described}
        gone = [name for name, each in stored.items() if replace_all and not each.archived and name not in names]
        if dry:
            return [], [_as_shown(each) for each in wanted]
        for each in given:
            self.event_types.replace(project_id, *each)
        for name in gone:
            self.event_types.delete(project_id, name, expunge=False)
        return [*(each["name"] for each in wanted), *gone], None

    def _checked(self, described: Mapping[str, Any], stored: EventType | None) -> tuple[str, WantedEventType]:
        """A valid event type with its name; whether its schema is enforced stays as it is, or is set meanwhile."""
        name, wanted = described["name"], event_type_as_described(described, stored.enforcement if stored else None)
        self.event_types.check(name, wanted)
        settings = {field: each for field, each in wanted.settings.items() if field != "enforcement"}
        return name, replace(wanted, settings=settings)

    def _all(self, project_id: str) -> Iterator[EventType]:
        after: str | None = None
        while True:
            window = Window(limit=_PAGE, after=after)
            page = self.event_types.page(project_id, window, include_archived=True, flags=None)
            yield from page.items
            if page.done:
                return
            after = page.last
