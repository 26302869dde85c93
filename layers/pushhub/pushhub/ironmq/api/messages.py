"""Queue API: messages of pull and push queues."""

from __future__ import annotations

from collections.abc import Sequence

from pushhub.base.errors import Invalid, Unauthorized
from pushhub.engine.model.message import NewMessage
from pushhub.engine.model.queue import Queue
from pushhub.ironmq.acknowledge import Acknowledge
from pushhub.ironmq.api.call import Call
from pushhub.ironmq.post import Post
from pushhub.ironmq.pull import Lines
from pushhub.ironmq.push_messages import PushMessages
from pushhub.ironmq.queues import Queues
from pushhub.ironmq.wire.messages import (
    Deletion,
    parse_deletion,
    parse_deletions,
    parse_messages,
    parse_peek,
    parse_release,
    parse_reserve,
    parse_touch,
    render_message,
    webhook_message,
)
from pushhub.ironmq.wire.statuses import render_statuses
from pushhub.web.http import Response, accepts_gzip

__all__ = ["MessageRoutes"]


class MessageRoutes:
    """Answers requests about messages.

    Args:
        post: Accepts messages.
        queues: Finds and clears queues.
        lines: Messages of pull queues.
        push_messages: Messages of push queues.
        acknowledge: Acknowledgements of pushes.
    """

    def __init__(
        self,
        *,
        post: Post,
        queues: Queues,
        lines: Lines,
        push_messages: PushMessages,
        acknowledge: Acknowledge,
    ) -> None:
        self._post = post
        self._queues = queues
        self._lines = lines
        self._push_messages = push_messages
        self._acknowledge = acknowledge

    def post(self, call: Call) -> Response:
        """POST /queues/{queue}/messages."""
        return self._posted(call, parse_messages(call.fields))

    def webhook(self, call: Call) -> Response:
        """POST /queues/{queue}/webhook: the body as it is."""
        return self._posted(call, [webhook_message(call.request.body, call.request.headers)])

    def _posted(self, call: Call, messages: Sequence[NewMessage]) -> Response:
        ids = self._post.post(call.project, call.queue, messages)
        return Response(status=201, body={"ids": ids, "msg": "Messages put on queue."})

    def reserve(self, call: Call) -> Response:
        """POST /queues/{queue}/reservations."""
        request = parse_reserve(call.fields)
        taken = self._lines.reserve(self._pull_queue(call), request, compressed=accepts_gzip(call.request))
        return Response(status=200, body={"messages": [each.shown(reserved=True) for each in taken]})

    def peek(self, call: Call) -> Response:
        """GET /queues/{queue}/messages. Of a push queue: what waits after a failed attempt."""
        count = parse_peek(call.request.query)
        queue = self._queues.get(call.project, call.queue)
        if queue.is_push:
            return Response(status=200, body={"messages": self._push_messages.peek(queue, count)})
        shown = [each.shown(reserved=False) for each in self._lines.peek(queue, count)]
        return Response(status=200, body={"messages": shown})

    def show(self, call: Call) -> Response:
        """GET /queues/{queue}/messages/{message}; of a push queue with ``push_statuses``."""
        queue = self._queues.get(call.project, call.queue)
        if not queue.is_push:
            return Response(status=200, body={"message": self._lines.get(queue, call.message_id).shown(reserved=False)})
        pushed = self._push_messages.get(queue, call.message_id)
        shown = render_message(call.message_id, self._push_messages.body(pushed.message), reserved_count=0)
        shown["push_statuses"] = render_statuses(queue, pushed.message, pushed.deliveries)
        return Response(status=200, body={"message": shown})

    def statuses(self, call: Call) -> Response:
        """GET /queues/{queue}/messages/{message}/subscribers."""
        queue = self._queues.get(call.project, call.queue)
        if not queue.is_push:
            raise Invalid("Pull queues cannot have subscribers")
        pushed = self._push_messages.get(queue, call.message_id)
        return Response(status=200, body={"subscribers": render_statuses(queue, pushed.message, pushed.deliveries)})

    def touch(self, call: Call) -> Response:
        """POST /queues/{queue}/messages/{message}/touch."""
        reservation_id, timeout_s = parse_touch(call.fields)
        renewed = self._lines.touch(self._pull_queue(call), call.message_id, reservation_id, timeout_s)
        return Response(status=200, body={"reservation_id": renewed, "msg": "Touched"})

    def release(self, call: Call) -> Response:
        """POST /queues/{queue}/messages/{message}/release."""
        reservation_id, delay_s = parse_release(call.fields)
        self._lines.release(self._pull_queue(call), call.message_id, reservation_id, delay_s)
        return Response(status=200, body={"msg": "Released"})

    def delete(self, call: Call) -> Response:
        """DELETE /queues/{queue}/messages/{message}: delete, or acknowledge a push (also without a token)."""
        if call.authorized:
            deletion = parse_deletion(call.message_id, call.fields, call.request.query)
            self._delete(self._queues.get(call.project, call.queue), [deletion])
        else:
            self._acknowledge.run_without_token(call.project, call.queue, _capability(call))
        return Response(status=200, body={"msg": "Deleted"})

    def delete_many(self, call: Call) -> Response:
        """DELETE /queues/{queue}/messages: those of ``ids``, or all when there is no such field."""
        deletions = parse_deletions(call.fields)
        if deletions is None:
            self._queues.clear(call.project, call.queue)
            return Response(status=200, body={"msg": "Cleared"})
        self._delete(self._queues.get(call.project, call.queue), deletions)
        return Response(status=200, body={"msg": "Deleted"})

    def _delete(self, queue: Queue, deletions: Sequence[Deletion]) -> None:
        if not queue.is_push:
            self._lines.delete(queue, deletions)
            return
        for each in deletions:
            if each.reservation_id is not None:
                self._acknowledge.check(queue, each)
            elif each.subscriber_name is not None:
                raise Invalid("A reservation_id is required")
            else:
                self._push_messages.get(queue, each.message_id)
        for each in deletions:
            if each.reservation_id is not None:
                self._acknowledge.run(queue, each)
            else:
                self._push_messages.delete(queue, each.message_id)

    def _pull_queue(self, call: Call) -> Queue:
        queue = self._queues.get(call.project, call.queue)
        if queue.is_push:
            raise Invalid("Messages of push queues cannot be reserved")
        return queue


def _capability(call: Call) -> Deletion:
    """What a request without a valid token shows instead: a reservation."""
    try:
        deletion = parse_deletion(call.names["message"], call.fields, call.request.query)
    except Invalid as error:
        raise Unauthorized from error
    if deletion.reservation_id is None:
        raise Unauthorized
    return deletion
