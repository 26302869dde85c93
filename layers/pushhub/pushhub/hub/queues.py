"""The internal queues of the hub, made of the mappings as they are at the moment: there is one truth about a mapping, and it is the mapping."""

from __future__ import annotations

from dataclasses import dataclass

from pushhub.engine.model.backoff import Exponential
from pushhub.engine.model.queue import Dialect, PushSettings, Queue, QueueType, Subscriber
from pushhub.engine.ports import ConfigStore
from pushhub.hub.model.mapping import ServicePush
from pushhub.hub.model.message import INCOMING_QUEUE, INCOMING_UID, ROUTER, mapping_of_queue
from pushhub.hub.ports import HubSettings
from pushhub.hub.wire.request import ANSWER_SECONDS

__all__ = ["HubQueues", "IncomingPush"]

ROUTING_SECONDS = 30
"""How long comparing a message with the mappings may take at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingPush(PushSettings):
    """The push settings of the incoming queue: comparing is tried until it is done."""

    @property
    def policy(self) -> Exponential:
        """Without end."""
        return Exponential(base_s=1, cap_s=60, parks=True)


_INCOMING = IncomingPush(
    subscribers=(
        Subscriber(
            subscriber_id=ROUTER, name=ROUTER, url="hub:incoming", dialect=Dialect.HUB, timeout_s=ROUTING_SECONDS
        ),
    )
)


class HubQueues:
    """Knows the internal queues, and all others from the configuration store.

    Args:
        config: Owners' queues.
        settings: Mappings.
    """

    def __init__(self, *, config: ConfigStore, settings: HubSettings) -> None:
        self._config = config
        self._settings = settings

    def queue(self, project_id: str, name: str, *, fresh: bool = False) -> Queue | None:
        """The queue, or None when there is none (for an internal one: its mapping was deleted)."""
        if name == INCOMING_QUEUE:
            return _queue(project_id, name, INCOMING_UID, _INCOMING)
        mapping_id = mapping_of_queue(name)
        if mapping_id is None:
            return self._config.queue(project_id, name, fresh=fresh)
        mapping = self._settings.mapping(project_id, mapping_id)
        if mapping is None:
            return None
        service = Subscriber(
            subscriber_id=mapping_id,
            name=mapping.name,
            url=mapping.url,
            dialect=Dialect.HUB,
            timeout_s=ANSWER_SECONDS,
        )
        return _queue(project_id, name, mapping_id, ServicePush(subscribers=(service,), mapping=mapping))


def _queue(project_id: str, name: str, uid: str, push: PushSettings) -> Queue:
    return Queue(
        project=project_id,
        name=name,
        uid=uid,
        line_uid=uid,
        type=QueueType.MULTICAST,
        push=push,
        # Nothing is signed with it: services of the hub get no reservations.
        secret="",
        created_at=0,
    )
