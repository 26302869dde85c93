"""Event types: created, changed and looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from pushhub.base.cache import ExpiringCache
from pushhub.base.conflicts import until_saved
from pushhub.base.errors import TooMuchWork
from pushhub.engine.component import Component
from pushhub.webhooks.model.event_type import OPERATIONAL, Enforcement, EventType
from pushhub.webhooks.model.json_schema import enforceable, schema_problem
from pushhub.webhooks.model.page import Page, Window, page_of, span_of
from pushhub.webhooks.model.refusals import conflict, not_found
from pushhub.webhooks.wire.fields import NAME, size_of

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.ports import EventTypes
    from pushhub.webhooks.wire.event_type import WantedEventType

MAX_BYTES = 350_000
"""Maximum size of an event type's description and schemas, in bytes of JSON: it is kept in one item."""


_FLAGS_KEPT_MS = 30_000
_CAPACITY = 2_000


class WebhooksEventTypes(Component):
    """The event types of projects. Methods raise ``NotFound`` for what is not there or may not be seen, and
    ``Unprocessable`` for a schema that cannot be used or is too large.
    """

    store: EventTypes
    clock: Clock

    def __post_init__(self) -> None:
        self._flags: ExpiringCache[tuple[str, ...]] = ExpiringCache(
            self.clock, ttl_ms=_FLAGS_KEPT_MS, capacity=_CAPACITY
        )

    def create(self, project_id: str, name: str, wanted: WantedEventType) -> EventType:
        """Make an event type; an archived one of that name is revived with the new description and schemas.

        Raises:
            Refused: One that is not archived has the name (409).
        """

        def change(stored: EventType | None) -> EventType:
            if stored is None:
                return self._new(project_id, name, wanted)
            if not stored.archived:
                raise conflict("An event type with that name already exists", code="event_type_exists")
            return self._with(stored, wanted)

        return self._changed(project_id, name, change, wanted)

    def page(
        self, project_id: str, window: Window, *, include_archived: bool, flags: frozenset[str] | None
    ) -> Page[EventType]:
        """A page of the project's event types."""
        found: Iterator[EventType] = self.store.event_types(project_id, span_of(window))
        return page_of(
            found,
            window,
            lambda each: each.name,
            lambda each: each.seen_by(flags) and (include_archived or not each.archived),
        )

    def event_type(self, project_id: str, name: str, *, flags: frozenset[str] | None = None) -> EventType:
        """The event type of a name, archived or not."""
        found = self.store.event_type(project_id, name) if NAME.fullmatch(name) else None
        if found is None or not found.seen_by(flags):
            raise not_found()
        return found

    def replace(self, project_id: str, name: str, wanted: WantedEventType) -> tuple[EventType, bool]:
        """Replace all fields of an event type, or create it.

        Returns:
            The event type, and whether it was made now.
        """
        created = False

        def change(stored: EventType | None) -> EventType:
            nonlocal created
            created = stored is None
            return self._new(project_id, name, wanted) if stored is None else self._with(stored, wanted)

        return self._changed(project_id, name, change, wanted), created

    def check(self, name: str, wanted: WantedEventType) -> None:
        """Check that an event type could be created."""
        check_event_type(name, wanted, self.clock.now())

    def patch(self, project_id: str, name: str, wanted: WantedEventType) -> EventType:
        """Change some settings of an event type."""

        def change(stored: EventType | None) -> EventType:
            if stored is None:
                raise not_found()
            return self._with(stored, wanted)

        return self._changed(project_id, name, change, wanted)

    def delete(self, project_id: str, name: str, *, expunge: bool) -> None:
        """Archive an event type, or remove it for good."""
        self.event_type(project_id, name)
        if expunge:
            self.store.delete_event_type(project_id, name)
            return

        def change(stored: EventType | None) -> EventType:
            if stored is None:
                raise not_found()
            return replace(stored, archived=True, updated_at=self.clock.now())

        self._changed(project_id, name, change, None)

    def missing(self, project_id: str, names: Sequence[str], flags: frozenset[str] | None) -> list[str]:
        """The given names that a caller may not choose for an endpoint, because the event type is archived, does not
        exist at all, or has a feature flag that the caller lacks.
        """
        found = self.store.event_types_named(project_id, [each for each in names if each not in OPERATIONAL])
        there = {each.name for each in found if not each.archived and each.seen_by(flags)} | OPERATIONAL.keys()
        return [each for each in names if each not in there]

    def flags_for(self, endpoint: Endpoint, name: str) -> Sequence[str]:
        """The feature flags of an event type, if it matters for an endpoint whether it has any.

        A change takes effect within half a minute.
        """
        if endpoint.flags is None:
            return ()
        key = (endpoint.project, name)
        remembered = self._flags.get(key)
        if remembered is None:
            found = self.store.event_type(*key) if NAME.fullmatch(name) else None
            remembered = found.feature_flags if found else ()
            self._flags.put(key, remembered)
        return remembered

    def all(self, project_id: str, most: int) -> list[EventType]:
        """The first event types of a project, by name."""
        return list(islice(self.store.event_types(project_id, span_of(Window())), most))

    def _new(self, project_id: str, name: str, wanted: WantedEventType) -> EventType:
        return _new(project_id, name, wanted, self.clock.now())

    def _with(self, event_type: EventType, wanted: WantedEventType) -> EventType:
        return replace(event_type, updated_at=self.clock.now(), **wanted.settings)

    def _changed(
        self,
        project_id: str,
        name: str,
        change: Callable[[EventType | None], EventType],
        wanted: WantedEventType | None,
    ) -> EventType:

        def once() -> EventType:
            after = change(self.store.event_type(project_id, name))
            if wanted is not None:
                _check(after, wanted)
            return self.store.put_event_type(after)

        return until_saved(once, doing="changing an event type")


def check_event_type(name: str, wanted: WantedEventType, now: int) -> None:
    """Check that an event type could be created, or replaced.

    Raises:
        NotFound: No event type can have this name.
        Unprocessable: A schema cannot be used or is too large.
    """
    if NAME.fullmatch(name) is None:
        raise not_found()
    _check(_new("", name, wanted, now), wanted)


def _new(project_id: str, name: str, wanted: WantedEventType, now: int) -> EventType:
    return EventType(project=project_id, name=name, created_at=now, updated_at=now, **wanted.settings)


def _check(event_type: EventType, wanted: WantedEventType) -> None:
    """Check description and schemas, whether from the request or stored before."""
    size = len(event_type.description.encode()) + size_of(event_type.schemas)
    if size > MAX_BYTES:
        raise wanted.refuse(f"Description and schemas may take at most {MAX_BYTES} bytes together", "schemas")
    for version, schema in (event_type.schemas or {}).items():
        try:
            problem = schema_problem(schema)
            if problem is None and event_type.enforcement is not Enforcement.OFF:
                problem = enforceable(schema)
        except TooMuchWork:
            problem = "it is too large to be checked"
        if problem is not None:
            raise wanted.refuse(f"The JSON schema cannot be used: {problem}", "schemas", version)
