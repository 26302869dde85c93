"""Sending messages to endpoints once more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.errors import Forbidden
from pushhub.webhooks.applications.applications import found_application
from pushhub.webhooks.endpoints.endpoints import found_endpoint
from pushhub.webhooks.model.event_type import seen_with
from pushhub.webhooks.model.refusals import Gone, Refused

if TYPE_CHECKING:
    from pushhub.engine.attempts.resend import Resend
    from pushhub.engine.ports import StoredMessages
    from pushhub.webhooks.messages.messages import WebhooksMessages
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.model.message import ListedMessage
    from pushhub.webhooks.ports import Endpoints, ReadApplications


class WebhooksResending:
    """Sends messages again. All are named by the hub's id or the owner's own.

    Args:
        flags_for: See :meth:`pushhub.webhooks.applications.event_types.WebhooksEventTypes.flags_for`.
    """

    def __init__(
        self,
        *,
        applications: ReadApplications,
        endpoints: Endpoints,
        messages: WebhooksMessages,
        deliveries: StoredMessages,
        resend: Resend,
        flags_for: Callable[[Endpoint, str], Sequence[str]],
    ) -> None:
        self._applications = applications
        self._endpoints = endpoints
        self._messages = messages
        self._deliveries = deliveries
        self._resend = resend
        self._flags_for = flags_for

    def resend(
        self, project_id: str, app: str, name: str, endpoint: str, *, flags: frozenset[str] | None = None
    ) -> bool:
        """Send a message to an endpoint once more, immediately, regardless of the endpoint's filters.

        Args:
            flags: Feature flags of the caller's token; None for the project's, which may send everything everywhere.

        Returns:
            Whether it is sent: nothing is sent to a disabled endpoint.

        Raises:
            NotFound: No such application, message or endpoint.
            Gone: The message's bytes are gone (400).
            Refused: The message was never owed to the endpoint, and the caller could not choose its event type (403).
        """
        application = found_application(self._applications, project_id, app)
        message = self._messages.of(application, name)
        to = found_endpoint(self._endpoints, application, endpoint)
        if flags is not None and not self._may_be_sent(message, to, flags):
            raise Refused(403, "forbidden", "The event type of the message has a feature flag that the token lacks")
        stored = self._messages.stored(message)
        if not to.active:
            return False
        try:
            self._resend.ask(stored, to.endpoint_id)
        except Forbidden:
            raise Gone from None
        return True

    def _may_be_sent(self, message: ListedMessage, to: Endpoint, flags: frozenset[str]) -> bool:
        """Whether a portal may have a message sent to an endpoint: it was owed to it, or the portal could choose it."""
        if seen_with(flags, self._flags_for(replace(to, flags=flags), message.fields.event_type)):
            return True
        stored = self._messages.stored(message)
        owed = to.endpoint_id in stored.delivery_subscribers
        return owed or self._deliveries.delivery(stored.delivery_key(to.endpoint_id)) is not None
