"""Has a sink read its stream without a new event: because it was enabled or changed, because a person wants it to, or
because an event came late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base import json_text
from pushhub.engine.component import Component
from pushhub.engine.model.message import Message
from pushhub.webhooks.messages.listing import SETTLED_MS
from pushhub.webhooks.model.internal_queues import READERS_QUEUE, READERS_UID
from pushhub.webhooks.model.message import LISTED_MS
from pushhub.webhooks.queues import READER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pushhub.base.ports import Clock
    from pushhub.engine.acceptance.accept import Accept
    from pushhub.engine.ports import MessageSink


class Kicks(Component):
    """Posts what makes sinks read."""

    accept: Accept
    messages: MessageSink
    clock: Clock

    def kick(self, project_id: str, stream_id: str, sink_ids: Sequence[str]) -> None:
        """Have sinks read up to now. When this returns, they will.

        Raises:
            Unavailable: They may or may not; call again.
        """
        if not sink_ids:
            return
        now = self.clock.now()
        bodies = [json_text.write({"stream": stream_id, "sink": each}).encode() for each in sink_ids]

        def make(ids: Sequence[str]) -> list[Message]:
            return [
                Message(
                    project=project_id,
                    queue=READERS_QUEUE,
                    queue_uid=READERS_UID,
                    message_id=each,
                    body=body,
                    body_size=len(body),
                    accepted_at=now,
                    due_at=now + SETTLED_MS + 1_000,
                    expires_at=now + LISTED_MS,
                    subscriber_ids=(READER,),
                )
                for each, body in zip(ids, bodies, strict=True)
            ]

        self.accept.new(self.messages, len(bodies), make)
