"""Changes of endpoints: stored, noted for those that have copies, and told to their owners."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from pushhub.base.conflicts import until_saved
from pushhub.base.errors import Conflict
from pushhub.engine.component import Component
from pushhub.webhooks.endpoints.credentials import opened
from pushhub.webhooks.model.internal_queues import queue_of
from pushhub.webhooks.model.refusals import Refused, conflict, not_found
from pushhub.webhooks.ports import Endpoints, UidTaken

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.engine.projects.copies import ChangeNotes
    from pushhub.engine.security.credentials import Credentials
    from pushhub.webhooks.endpoints.signatures import EndpointSignatures
    from pushhub.webhooks.model.endpoint import Endpoint


class Tell(Protocol):
    """Sends an event about a change of an endpoint."""

    def __call__(self, event: str, endpoint: Endpoint, /, **more: object) -> None:
        """Send an event with the endpoint after the change."""


class EndpointChanges(Component):
    """Stores endpoints."""

    store: Endpoints
    notes: ChangeNotes
    signatures: EndpointSignatures
    credentials: Credentials
    tell: Tell  # Called with an event and the changed endpoint.
    hurry: Callable[[Endpoint], None]  # Called with an endpoint whose limits have changed.
    clock: Clock

    def create(self, endpoint: Endpoint) -> Endpoint:
        """Store a new endpoint and send its event.

        Raises:
            NotFound: There is no such application any more.
        """
        try:
            stored = self.store.put_endpoint(endpoint, None)
        except UidTaken:
            raise _taken() from None
        except Conflict:
            raise not_found() from None
        self.tell("endpoint.created", stored)
        return stored

    def delete(self, find: Callable[[], Endpoint]) -> Endpoint:
        """Delete the endpoint that ``find`` returns, which is called again if it has changed, and send its event."""

        def once() -> Endpoint:
            there = find()
            self.notes.note(there.project, queue_of(there.app_id))
            self.store.delete_endpoint(there)
            return there

        deleted = until_saved(once, doing="deleting an endpoint")
        self.tell("endpoint.deleted", deleted)
        return deleted

    def update(self, there: Endpoint, change: Callable[[Endpoint], Endpoint]) -> Endpoint:
        """Make a change and send its event; enabling or disabling gets an additional event of its own."""
        after = self.change(there, change)
        if (after.fields.throttle_rate, after.allowed_rate) != (there.fields.throttle_rate, there.allowed_rate):
            self.hurry(after)
        self.tell("endpoint.updated", after)
        if after.fields.disabled and not there.fields.disabled:
            self.tell("endpoint.disabled", after, trigger="manual")
        if there.fields.disabled and not after.fields.disabled:
            self.tell("endpoint.enabled", after)
        return after

    def change(self, there: Endpoint, change: Callable[[Endpoint], Endpoint]) -> Endpoint:
        """Make a change, of the endpoint as it is stored now and opened."""
        before = there

        def once() -> Endpoint:
            nonlocal before
            current = self.signatures.without_ended(opened(before, self.credentials))
            after = replace(change(current), updated_at=self.clock.now())
            self.notes.note(there.project, queue_of(there.app_id))
            try:
                return self.store.put_endpoint(after, before)
            except UidTaken:
                raise _taken() from None
            except Conflict:
                fresh = self.store.endpoint(there.project, there.app_id, there.endpoint_id)
                if fresh is None:
                    raise not_found() from None
                before = fresh
                raise

        return until_saved(once, doing="changing an endpoint")


def _taken() -> Refused:
    return conflict("An endpoint with that id or uid already exists")
