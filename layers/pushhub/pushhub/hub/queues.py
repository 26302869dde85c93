"""The internal queues of the hub, derived from the current mappings: the mapping is the only source of truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.engine.model.backoff import Exponential
from pushhub.engine.model.queue import PushSettings, Subscriber, internal_queue
from pushhub.hub.model.internal_queues import DIALECT, INCOMING_QUEUE, INCOMING_UID, ROUTER, mapping_of_queue
from pushhub.hub.model.mapping import MAPPING
from pushhub.hub.wire.request import ANSWER_SECONDS

if TYPE_CHECKING:
    from pushhub.engine.model.queue import Queue
    from pushhub.hub.ports import ReadMapping

ROUTING_SECONDS = 30
"""How long comparing a message with the mappings may take at most."""


_INCOMING = PushSettings(
    subscribers=(Subscriber(subscriber_id=ROUTER, name=ROUTER, url=f"{DIALECT}:incoming", timeout_s=ROUTING_SECONDS),),
    # Retries never end: whatever prevents the comparison is for us, or for the owner of a filter, to fix.
    retry=Exponential(base_s=1, cap_s=900, holds=True),
)


class HubQueues:
    """Implements :class:`pushhub.engine.ports.AttemptQueues` for the internal queues; each is read anew."""

    def __init__(self, *, settings: ReadMapping) -> None:
        self._settings = settings

    def queue(self, project_id: str, name: str, *, since: int | None = None) -> Queue | None:  # noqa: ARG002 (read anew)
        """The queue, or None when there is none: its mapping was deleted."""
        if name == INCOMING_QUEUE:
            return internal_queue(project_id, name, INCOMING_UID, _INCOMING)
        mapping_id = mapping_of_queue(name)
        mapping = self._settings.mapping(project_id, mapping_id) if mapping_id else None
        if mapping_id is None or mapping is None:
            return None
        service = Subscriber(
            subscriber_id=mapping_id,
            name=mapping.name,
            url=f"{DIALECT}:{mapping.url}",
            timeout_s=ANSWER_SECONDS,
            attached=MAPPING.to(mapping),
        )
        push = PushSettings(subscribers=(service,), retry=mapping.options.policy)
        return internal_queue(project_id, name, mapping_id, push)
