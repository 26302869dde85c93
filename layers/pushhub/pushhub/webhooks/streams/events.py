"""Events of streams, as producers post them: stored in their order, and owed to the sinks that want them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.engine.component import Component
from pushhub.webhooks.messages.listing import LATE_MS, SETTLED_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.base.ports import Clock
    from pushhub.engine.projects.quotas import Quotas
    from pushhub.webhooks.messages.intake import WebhooksIntake
    from pushhub.webhooks.messages.recipients import Recipients
    from pushhub.webhooks.model.application import ApplicationFields
    from pushhub.webhooks.streams.kicks import Kicks
    from pushhub.webhooks.streams.streams import WebhooksStreams
    from pushhub.webhooks.wire.message import NewWebhook

DUE_MS = SETTLED_MS + 1_000
"""When an event's orders are due, milliseconds after its id was made: a sink can read it then, as nothing can appear
before it any more.
"""


class StreamEvents(Component):
    """Accepts events."""

    streams: WebhooksStreams
    recipients: Recipients
    intake: WebhooksIntake
    quotas: Callable[[], Quotas]  # Bounds what producers post; made when one does.
    kicks: Callable[[], Kicks]  # Made when an event comes late.
    clock: Clock

    def post(
        self,
        project_id: str,
        name: str,
        events: Sequence[NewWebhook],
        brought: Callable[[str], ApplicationFields] | None,
    ) -> None:
        """Accept events in the order in which they are given. When this returns, all of them are stored.

        Args:
            brought: Reads the stream to create if there is none with that name; None for none.

        Raises:
            NotFound: There is no such stream, and none to create.
            QuotaExceeded: The project posts more than it may.
            Unavailable: Some of the events may have been accepted, or all of them; post again.
        """
        self.quotas().take(project_id, len(events))
        stream = self.streams.named_or_brought(project_id, name, brought)
        owed = [self.recipients.owed(stream, each) for each in events]
        posted = self.intake.posted_together(stream, events, owed, wait_ms=DUE_MS)
        if self.clock.now() - posted[0].accepted_at > LATE_MS:
            # Some sink may have passed their places already: their second ones are behind those of their orders.
            self.kicks().kick(project_id, stream.app_id, sorted(set().union(*owed)))
