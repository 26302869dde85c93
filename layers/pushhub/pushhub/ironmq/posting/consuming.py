"""Takes in, for queues, what the hub consumes from other people's queues and buses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.errors import NotFound
from pushhub.engine.component import Component
from pushhub.engine.model.message import NewMessage
from pushhub.engine.projects.suspension import refuse_suspended
from pushhub.ironmq.model.new_event import NewEvent
from pushhub.ironmq.wire.names import check_queue_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pushhub.engine.model.consumed import Consumed
    from pushhub.engine.ports import ProjectStore
    from pushhub.ironmq.posting.post import Post


class QueueTakesIn(Component):
    """Implements :class:`pushhub.engine.protocol.TakesIn`; an unknown queue is created as a pull queue."""

    post: Post
    projects: ProjectStore

    def take_in(self, project_id: str, name: str, messages: Sequence[Consumed]) -> list[Exception | None]:
        """See the port."""
        if self.projects.project(project_id) is None:
            raise NotFound
        refuse_suspended(self.projects, project_id)
        check_queue_name(name)
        outcomes = self.post.take_in(project_id, name, [_new(each) for each in messages])
        return [each if isinstance(each, Exception) else None for each in outcomes]


def _new(consumed: Consumed) -> NewEvent:
    message = NewMessage(body=consumed.body, hops=consumed.hops, order_key=consumed.order_key, trace=consumed.trace)
    return NewEvent(message=message, event_id=consumed.event_id, at=consumed.at)
