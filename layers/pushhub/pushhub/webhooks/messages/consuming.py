"""Takes in, for applications, what the hub consumes from other people's queues and buses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.json_text import NotJson, read
from pushhub.base.webhook_senders import as_id, as_type
from pushhub.engine.component import Component
from pushhub.engine.projects.suspension import refuse_suspended
from pushhub.webhooks.model.ids import IdPrefix, is_id
from pushhub.webhooks.model.message import LISTED_MS, MessageFields
from pushhub.webhooks.model.refusals import not_found
from pushhub.webhooks.wire.message import NewWebhook

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pushhub.engine.model.consumed import Consumed
    from pushhub.engine.ports import ProjectStore
    from pushhub.webhooks.applications.applications import WebhooksApplications
    from pushhub.webhooks.messages.posting import WebhooksPosting
    from pushhub.webhooks.model.application import Application

UNNAMED = "consumed"
"""The event type of what does not say what it is about."""


class ApplicationTakesIn(Component):
    """Implements :class:`pushhub.engine.protocol.TakesIn`; an application is named by its id or uid."""

    applications: WebhooksApplications
    posting: WebhooksPosting
    projects: ProjectStore

    def take_in(self, project_id: str, name: str, messages: Sequence[Consumed]) -> list[Exception | None]:
        """See the port."""
        refuse_suspended(self.projects, project_id)
        if is_id(IdPrefix.STREAM, name):
            # What is consumed comes in no order that a stream could keep.
            raise not_found()
        application = self.applications.application(project_id, name)
        return [self._failure(application, each) for each in messages]

    def _failure(self, application: Application, consumed: Consumed) -> Exception | None:
        try:
            self.posting.once(application, _new(consumed))
        except Exception as error:  # noqa: BLE001 (the caller is told; it must not touch the others)
            return error
        return None


def _new(consumed: Consumed) -> NewWebhook:
    try:
        value = read(consumed.body, last_wins=True)
        content_type = "application/json"
    except NotJson:
        value, content_type = None, "text/plain; charset=utf-8"
    return NewWebhook(
        fields=MessageFields(
            event_type=as_type(consumed.event_type or UNNAMED),
            event_id=as_id(consumed.event_id),
            content_type=content_type,
            ordering_key=consumed.order_key,
        ),
        payload=value if isinstance(value, dict) else {},
        payload_text="",
        body=consumed.body,
        retention_ms=LISTED_MS,
        application=None,
        trace=consumed.trace,
        hops=consumed.hops,
    )
