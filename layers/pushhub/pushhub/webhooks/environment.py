"""A project's configuration besides applications, as one document that another project can import."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from pushhub.base.errors import Invalid
from pushhub.base.times import iso_time
from pushhub.webhooks.model.page import Page, Window
from pushhub.webhooks.wire.event_type import event_type_view
from pushhub.webhooks.wire.fields import Fields, bad_request
from pushhub.webhooks.wire.openapi import event_types_of, parse_openapi

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.webhooks.model.event_type import EventType

VERSION = 1
MAX_IMPORTED = 1_000
"""Maximum number of event types in one request."""
_PAGE = 250


class TypesOfProjects(Protocol):
    """The event types of projects."""

    def page(
        self, project_id: str, window: Window, *, include_archived: bool, flags: frozenset[str] | None
    ) -> Page[EventType]:
        """A page of them."""

    def check(self, fields: Fields) -> None:
        """Check that one could be created from some fields. Raises ``Unprocessable`` if not."""

    def replace(self, project_id: str, name: str, fields: Fields) -> tuple[EventType, bool]:
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


class Environments:
    """Exports and imports a project's configuration.

    Args:
        event_types: Event types.
        clock: Time.
    """

    def __init__(self, *, event_types: TypesOfProjects, clock: Clock) -> None:
        self._event_types = event_types
        self._clock = clock

    def export(self, project_id: str) -> dict[str, object]:
        """All event types with their schemas, including archived ones.

        There are no other settings, and no connectors.
        """
        return {
            "version": VERSION,
            "createdAt": iso_time(self._clock.now()),
            "eventTypes": [event_type_view(each, with_schemas=True) for each in self._all(project_id)],
            "settings": None,
            "connectors": [],
        }

    def take_in(self, project_id: str, fields: Fields) -> None:
        """Add or replace the event types of a document; nothing is deleted.

        Settings and connectors in it are ignored.

        Raises:
            Unprocessable: One of them breaks a rule; then none is imported.
        """
        listed = fields.raw("eventTypes")
        if listed is None:
            return
        if not isinstance(listed, list) or len(listed) > MAX_IMPORTED:
            raise fields.refuse(f"A list of at most {MAX_IMPORTED} event types is required", "eventTypes")
        given = [Fields(each, "body", "eventTypes", str(number)) for number, each in enumerate(listed)]
        for each in given:
            self._event_types.check(each)
        for each in given:
            self._event_types.replace(project_id, each.name("name"), each)

    def take_in_openapi(self, project_id: str, fields: Fields) -> tuple[list[str], list[dict[str, Any]] | None]:
        """Create and change event types as an OpenAPI document describes them; archived ones in it are revived.

        Returns:
            The names of those that were created, changed or archived, and, for a ``dryRun``, those that would be
            created or changed.

        Raises:
            Refused: Neither ``spec`` nor ``specRaw`` is given, or both are (400).
            Unprocessable: The document cannot be read, or an event type in it breaks a rule; then none is imported.
        """
        if (fields.raw("spec") is None) is (fields.raw("specRaw") is None):
            raise bad_request("Give either spec or specRaw")
        try:
            described = event_types_of(parse_openapi(fields))
        except Invalid as error:
            raise fields.refuse(error.message, "spec") from error
        dry, replace_all = (fields.raw(name) is True for name in ("dryRun", "replaceAll"))
        stored = {each.name: each for each in self._all(project_id)}
        wanted = [each for each in described if _differs(stored.get(each["name"]), each)]
        given = [self._checked(each, stored.get(each["name"])) for each in wanted]
        names = {each["name"] for each in described}
        gone = [name for name, each in stored.items() if replace_all and not each.archived and name not in names]
        if dry:
            return [], [_as_shown(each) for each in wanted]
        for each in given:
            self._event_types.replace(project_id, each.name("name"), each)
        for name in gone:
            self._event_types.delete(project_id, name, expunge=False)
        return [*(each["name"] for each in wanted), *gone], None

    def _checked(self, described: Mapping[str, Any], stored: EventType | None) -> Fields:
        """The validated fields of an event type; whether its schema is enforced stays as it is."""
        kept = {"schemaEnforcement": stored.enforcement.value} if stored else {}
        fields = Fields({**described, **kept}, "body", "spec", "webhooks", str(described["name"]))
        self._event_types.check(fields)
        return fields

    def _all(self, project_id: str) -> Iterator[EventType]:
        after: str | None = None
        while True:
            window = Window(limit=_PAGE, after=after)
            page = self._event_types.page(project_id, window, include_archived=True, flags=None)
            yield from page.items
            if page.done:
                return
            after = page.last
