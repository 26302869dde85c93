"""Queue API: queues and their subscribers."""

from __future__ import annotations

from pushhub.engine.model.queue import Queue
from pushhub.ironmq.api.call import Call
from pushhub.ironmq.queues import Queues
from pushhub.ironmq.subscribers import Subscribers
from pushhub.ironmq.wire.queues import parse_page, parse_queue, render_queue, render_queue_info
from pushhub.ironmq.wire.subscribers import parse_removals, parse_subscriber_request
from pushhub.web.http import Response

__all__ = ["QueueRoutes"]


class QueueRoutes:
    """Answers requests about queues.

    Args:
        queues: The use cases of queues.
        subscribers: The use cases of subscribers.
    """

    def __init__(self, *, queues: Queues, subscribers: Subscribers) -> None:
        self._queues = queues
        self._subscribers = subscribers

    def list(self, call: Call) -> Response:
        """GET /queues: names only."""
        names = self._queues.names(call.project, parse_page(call.request.query))
        return Response(status=200, body={"queues": [{"name": name} for name in names]})

    def put(self, call: Call) -> Response:
        """PUT /queues/{queue}: make, or change if it exists; answered without counts."""
        queue = self._queues.put(call.project, call.queue, parse_queue(call.fields))
        return Response(status=200, body={"queue": render_queue(queue)})

    def show(self, call: Call) -> Response:
        """GET /queues/{queue}."""
        return self._info(self._queues.get(call.project, call.queue))

    def change(self, call: Call) -> Response:
        """PATCH /queues/{queue}."""
        return self._info(self._queues.change(call.project, call.queue, parse_queue(call.fields)))

    def delete(self, call: Call) -> Response:
        """DELETE /queues/{queue}."""
        self._queues.delete(call.project, call.queue)
        return Response(status=200, body={"msg": "Deleted"})

    def add_subscribers(self, call: Call) -> Response:
        """POST /queues/{queue}/subscribers: add, or change by name."""
        self._subscribers.add(call.project, call.queue, parse_subscriber_request(call.fields))
        return Response(status=200, body={"msg": "Updated"})

    def replace_subscribers(self, call: Call) -> Response:
        """PUT /queues/{queue}/subscribers."""
        self._subscribers.replace(call.project, call.queue, parse_subscriber_request(call.fields))
        return Response(status=200, body={"msg": "Updated"})

    def remove_subscribers(self, call: Call) -> Response:
        """DELETE /queues/{queue}/subscribers: by name."""
        self._subscribers.remove(call.project, call.queue, parse_removals(call.fields))
        return Response(status=200, body={"msg": "Updated"})

    def _info(self, queue: Queue) -> Response:
        info = self._queues.info(queue)
        return Response(
            status=200,
            body={"queue": render_queue_info(info.queue, size=info.size, total_messages=info.total_messages)},
        )
