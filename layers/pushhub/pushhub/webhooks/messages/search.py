"""Messages of applications are found by fields that their owner names, as those of queues are
(docs/decisions/interfaces.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.credentials import masked_url
from pushhub.base.json_text import write
from pushhub.engine.component import Component
from pushhub.engine.model.delivery import opening
from pushhub.engine.model.search import Found, IndexEntry, Receiver
from pushhub.webhooks.model.internal_queues import app_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.ports import StoredMessages
    from pushhub.webhooks.messages.messages import WebhooksMessages
    from pushhub.webhooks.messages.ports import MessageLog
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.ports import ReadApplications, ReadEndpoints

KIND = "application"

REMOVED = "removed endpoint"
"""What an endpoint that is gone is called."""


class WebhooksFinder(Component):
    """Implements :class:`pushhub.engine.ports.Finder` for messages of applications."""

    kind = KIND
    applications: ReadApplications
    endpoints: ReadEndpoints
    log: MessageLog
    messages: StoredMessages
    shown: Callable[[], WebhooksMessages]  # Show payloads; made on first use.
    now: Callable[[], int]

    def found(self, entry: IndexEntry) -> Found | None:
        """The message, unless its payload is erased or gone, or the field is withheld now."""
        application = self.applications.application(entry.project, app_of(entry.queue_uid))
        if application is None or (entry.field and application.fields.redaction.covers(entry.field)):
            return None
        listed = self.log.listed(entry.project, application.app_id, entry.message_id)
        if listed is None or not listed.has_payload(self.now()):
            return None
        stored = self.messages.message_with_deliveries(listed.key)
        if stored is None:
            return None
        message, begun = stored
        deliveries = {each.subscriber_id: each for each in begun}
        receivers = [
            self._receiver(application, deliveries.get(each) or opening(message, each))
            for each in dict.fromkeys((*message.delivery_subscribers, *deliveries))
        ]
        return Found(
            kind=KIND,
            of=application.app_id,
            name=application.fields.name,
            message_id=listed.message_id,
            field=entry.field,
            receivers=receivers,
            accepted_at=listed.accepted_at,
            type=listed.fields.event_type,
            content=write(self.shown().payload(listed, application.fields.redaction)).encode(errors="surrogatepass"),
        )

    def _receiver(self, application: Application, delivery: Delivery) -> Receiver:
        """An endpoint by its description, or its URL."""
        endpoint = self.endpoints.endpoint(application.project, application.app_id, delivery.subscriber_id)
        url = masked_url(endpoint.fields.url) if endpoint else ""
        name = endpoint.fields.description if endpoint else REMOVED
        return Receiver(delivery.subscriber_id, name or url, delivery.state.value, url)
