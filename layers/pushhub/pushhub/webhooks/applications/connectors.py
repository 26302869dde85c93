"""Connectors: made, changed, and shown to those who make endpoints from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from pushhub.base.conflicts import until_saved
from pushhub.engine.component import Component
from pushhub.webhooks.model.connector import Connector, ConnectorFields, ConnectorProduct
from pushhub.webhooks.model.ids import IdPrefix, new_id
from pushhub.webhooks.model.page import KeyRange, Page, Window, page_of, span_of
from pushhub.webhooks.model.refusals import conflict, not_found, unprocessable
from pushhub.webhooks.ports import UidTaken
from pushhub.webhooks.wire.connector import connector_bytes
from pushhub.webhooks.wire.fields import NAME

if TYPE_CHECKING:
    from pushhub.base.ports import Clock

MAX_CONNECTOR_BYTES = 350_000
"""Maximum size of a connector, in bytes of JSON: it is kept in one item."""
PAGE_BYTES = 4_000_000
"""A page of a list ends before it is larger: what Lambda answers has at most 6 MB."""


class ConnectorStore(Protocol):
    """Stores connectors. Reads are consistent. May raise ``Unavailable``."""

    def connector(self, project_id: str, name: str) -> Connector | None:
        """The connector with that id or uid, or None."""

    def connectors(self, project_id: str, span: KeyRange) -> Iterator[Connector]:
        """The connectors of a project with ids in a span, in its direction, read page by page on demand."""

    def put_connector(self, connector: Connector) -> Connector:
        """Store a connector in place of its version (0 for a new one); returns it with its version raised.

        Raises:
            Conflict: The stored one has another version, or is gone.
            UidTaken: Another connector of the project has the new one's uid.
        """

    def delete_connector(self, connector: Connector) -> None:
        """Delete a connector, and free its uid; does nothing if it does not exist."""


class Connectors(Component):
    """The connectors of projects. Methods raise ``NotFound`` for what is not there or may not be seen, and
    ``Unprocessable`` for one that is too large.
    """

    store: ConnectorStore
    clock: Clock

    def create(self, project_id: str, given: ConnectorFields) -> Connector:
        """Make a connector.

        Raises:
            Refused: Another one has its uid (409).
        """
        now = self.clock.now()
        connector = Connector(
            project=project_id,
            connector_id=new_id(IdPrefix.CONNECTOR, now),
            fields=of_fit_size(given),
            created_at=now,
            updated_at=now,
            code_updated_at=now,
        )
        try:
            return self.store.put_connector(connector)
        except UidTaken:
            raise conflict("A connector with that uid already exists") from None

    def page(
        self, project_id: str, window: Window, *, product: ConnectorProduct | None, flags: frozenset[str] | None
    ) -> Page[Connector]:
        """A page of the project's connectors, which may be short without being the last one.

        Args:
            product: Only those that are meant for it; None for all.
            flags: Feature flags of an application's token; None for the organization's.
        """
        found = self.store.connectors(project_id, span_of(window))

        def wanted(each: Connector) -> bool:
            return each.seen_by(flags) and product in (None, each.fields.product)

        page = page_of(found, window, lambda each: each.connector_id, wanted)
        return _of_a_size(page, window)

    def connector(self, project_id: str, name: str, *, flags: frozenset[str] | None = None) -> Connector:
        """The connector with an id or uid."""
        found = self.store.connector(project_id, name) if NAME.fullmatch(name) else None
        if found is None or not found.seen_by(flags):
            raise not_found()
        return found

    def replace(
        self, project_id: str, name: str, change: Callable[[ConnectorFields | None, str], ConnectorFields]
    ) -> tuple[Connector, bool]:
        """Replace what is said of a connector, or make one with a uid.

        Args:
            change: Given what is said of it before (None for a new one), and its name in the path.

        Returns:
            The connector, and whether it was made now.
        """
        if NAME.fullmatch(name) is None:
            raise not_found()
        if self.store.connector(project_id, name) is None:
            if name.startswith(IdPrefix.CONNECTOR):
                raise not_found()
            return self.create(project_id, change(None, name)), True
        return self.patch(project_id, name, lambda before: change(before, name)), False

    def patch(self, project_id: str, name: str, change: Callable[[ConnectorFields], ConnectorFields]) -> Connector:
        """Change what is said of a connector. Endpoints that were made from it stay as they are."""

        def once() -> Connector:
            before = self.connector(project_id, name)
            now = self.clock.now()
            fields = of_fit_size(change(before.fields))
            code_at = before.code_updated_at if fields.code == before.fields.code else now
            return self.store.put_connector(replace(before, fields=fields, updated_at=now, code_updated_at=code_at))

        return until_saved(once, doing="changing a connector")

    def delete(self, project_id: str, name: str) -> None:
        """Delete a connector. Endpoints that were made from it stay as they are."""
        self.store.delete_connector(self.connector(project_id, name))

    def all(self, project_id: str) -> Iterator[Connector]:
        """All connectors of a project, the oldest first."""
        return self.store.connectors(project_id, KeyRange())

    def take_in(self, project_id: str, given: Iterable[ConnectorFields]) -> None:
        """Add connectors, or replace those with the same uid, or without one the same name; nothing is deleted.

        Raises:
            Unprocessable: One of them is too large; then none is taken in.
        """
        checked = [of_fit_size(each) for each in given]
        known = [*self.all(project_id)] if checked else []
        by_uid = {each.fields.uid: each.connector_id for each in known if each.fields.uid is not None}
        by_name = {each.fields.name: each.connector_id for each in known if each.fields.uid is None}
        for each in checked:
            there = by_name.get(each.name) if each.uid is None else by_uid.get(each.uid)
            if there is None:
                there = self.create(project_id, each).connector_id
                (by_name if each.uid is None else by_uid)[each.uid or each.name] = there
            else:
                self.patch(project_id, there, lambda _, wanted=each: wanted)  # type: ignore[misc]


def of_fit_size(fields: ConnectorFields) -> ConnectorFields:
    """What is said of a connector, if it is not too large; ``Unprocessable`` otherwise."""
    if connector_bytes(fields) > MAX_CONNECTOR_BYTES:
        raise unprocessable(f"A connector may take at most {MAX_CONNECTOR_BYTES} bytes as JSON", "body")
    return fields


def _of_a_size(page: Page[Connector], window: Window) -> Page[Connector]:
    """A page without what would make it too large: that is on the next one."""
    items = [*page.items][::-1] if window.backwards else [*page.items]
    size, fitting = 0, list[Connector]()
    for each in items:
        size += connector_bytes(each.fields)
        if fitting and size > PAGE_BYTES:
            break
        fitting.append(each)
    if len(fitting) == len(items):
        return page
    if window.backwards:
        fitting.reverse()
        return Page(items=fitting, first=fitting[0].connector_id, last=page.last, done=False)
    return Page(items=fitting, first=page.first, last=fitting[-1].connector_id, done=False)
