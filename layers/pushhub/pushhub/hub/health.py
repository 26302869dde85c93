"""How the services of mappings are doing: each is the one subscriber of the internal queue of its mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.engine.component import Component
from pushhub.engine.model.circuit import SubscriberKey
from pushhub.hub.model.internal_queues import service_queue

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.engine.model.subscriber_health import SubscriberHealth
    from pushhub.engine.waiting.health import SubscriberHealths
    from pushhub.hub.model.mapping import ServiceMapping


class ServiceHealths(Component):
    """Tells the health of a store's services."""

    healths: Callable[[], SubscriberHealths]  # Made on first use.

    def of(self, project_id: str, mappings: Sequence[ServiceMapping]) -> list[SubscriberHealth]:
        """The health of the services of some mappings, in their order."""
        from pushhub.engine.waiting.health import Watched  # noqa: PLC0415 (few requests ask for it)

        watched = [
            Watched(
                key=SubscriberKey(
                    project=project_id,
                    queue=service_queue(each.mapping_id),
                    queue_uid=each.mapping_id,
                    subscriber_id=each.mapping_id,
                ),
                tokens=each.mapping_id if each.oauth else "",
                disabled=not each.enabled,
                certificate_ends_at=each.certificate.ends_at if each.certificate else None,
            )
            for each in mappings
        ]
        return self.healths().of(project_id, watched)
