"""Queue API: messages of pull and push queues."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pushhub.base.cloud_events import is_batch
from pushhub.base.errors import Invalid, Unauthorized
from pushhub.engine.model.trace import Trace
from pushhub.ironmq.api.call import QUEUE
from pushhub.ironmq.wire.cloud_events import trace_of, webhook_event, webhook_events
from pushhub.ironmq.wire.errors import NO_SUBSCRIBERS
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
from pushhub.ironmq.wire.statuses import parse_state_query, render_attempts, render_deliveries, render_statuses
from pushhub.web.api import Auth, Body, Function, Route
from pushhub.web.http import Response, accepts_gzip

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.engine.model.message import NewMessage
    from pushhub.engine.model.queue import Queue
    from pushhub.ironmq.api.call import IronCall
    from pushhub.ironmq.api.use_cases import IronUseCases
    from pushhub.web.http import Request

POSTED = "Messages put on queue."
MESSAGES = QUEUE + "/messages"
MESSAGE = MESSAGES + "/{message}"


def _post(hub: IronUseCases, call: IronCall) -> Response:
    return _posted(hub, call, parse_messages(call.fields), Trace.of(call.request.headers))


def _webhook(hub: IronUseCases, call: IronCall) -> Response:
    request = call.request
    check = partial(_check_sender, hub, request)
    if is_batch(request.headers):
        events = webhook_events(request.body, request.headers)
        ids = hub.post.post_events(call.project, call.queue, events, check)
        # Azure's client takes no other status for success.
        return Response(status=200, body={"ids": ids, "msg": POSTED})
    event = webhook_event(request.body, request.headers)
    if event is not None:
        return Response(
            status=201,
            body={"ids": hub.post.post_events(call.project, call.queue, [event], check), "msg": POSTED},
        )
    message = webhook_message(request.body, request.headers)
    return _posted(hub, call, [message], trace_of(request.headers), check)


def _check_sender(hub: IronUseCases, request: Request, queue: Queue) -> None:
    target = f"{request.path}?{request.raw_query}" if request.raw_query else request.path
    hub.senders.check(queue, target, request.headers, request.body)


def _posted(
    hub: IronUseCases,
    call: IronCall,
    messages: Sequence[NewMessage],
    trace: Trace | None,
    check: Callable[[Queue], None] | None = None,
) -> Response:
    traced = messages if trace is None else [replace(each, trace=trace) for each in messages]
    ids = hub.post.post(call.project, call.queue, traced, check)
    return Response(status=201, body={"ids": ids, "msg": POSTED})


def _reserve(hub: IronUseCases, call: IronCall) -> Response:
    request = parse_reserve(call.fields)
    taken = hub.pull.reserve(_pull_queue(hub, call), request, compressed=accepts_gzip(call.request))
    return Response(status=200, body={"messages": [each.shown(reserved=True) for each in taken]})


def _peek(hub: IronUseCases, call: IronCall) -> Response:
    count = parse_peek(call.request.query)
    queue = hub.queues.get(call.project, call.queue)
    compressed = accepts_gzip(call.request)
    if queue.is_push:
        return Response(status=200, body={"messages": hub.push_messages.peek(queue, count, compressed=compressed)})
    shown = [each.shown(reserved=False) for each in hub.pull.peek(queue, count, compressed=compressed)]
    return Response(status=200, body={"messages": shown})


def _show(hub: IronUseCases, call: IronCall) -> Response:
    queue = hub.queues.get(call.project, call.queue)
    if not queue.is_push:
        return Response(status=200, body={"message": hub.pull.get(queue, call.message_id).shown(reserved=False)})
    pushed = hub.push_messages.get(queue, call.message_id)
    shown = render_message(call.message_id, hub.push_messages.body(pushed.message), reserved_count=0)
    shown["push_statuses"] = render_statuses(queue, pushed.message, pushed.deliveries)
    return Response(status=200, body={"message": shown})


def _statuses(hub: IronUseCases, call: IronCall) -> Response:
    queue = hub.queues.get(call.project, call.queue)
    if not queue.is_push:
        raise Invalid(NO_SUBSCRIBERS)
    pushed = hub.push_messages.statuses(queue, call.message_id)
    return Response(status=200, body={"subscribers": render_statuses(queue, pushed.message, pushed.deliveries)})


def _attempts(hub: IronUseCases, call: IronCall) -> Response:
    queue = hub.queues.get(call.project, call.queue)
    if not queue.is_push:
        raise Invalid(NO_SUBSCRIBERS)
    pushed = hub.push_messages.statuses(queue, call.message_id)
    attempts, forgotten = render_attempts(queue, pushed.deliveries.values())
    return Response(status=200, body={"attempts": attempts, "forgotten": forgotten})


def _deliveries(hub: IronUseCases, call: IronCall) -> Response:
    query = parse_state_query(call.request.query)
    queue = hub.queues.get(call.project, call.queue)
    if not queue.is_push:
        raise Invalid("Pull queues have no deliveries")
    found, cursor = hub.push_messages.in_state(queue, query.state, count=query.count, after=query.after)
    return Response(
        status=200,
        body={"deliveries": render_deliveries(queue, found, hub.search().values(queue, found)), "after": cursor},
    )


def _touch(hub: IronUseCases, call: IronCall) -> Response:
    reservation_id, timeout_s = parse_touch(call.fields)
    renewed = hub.pull.touch(_pull_queue(hub, call), call.message_id, reservation_id, timeout_s)
    return Response(status=200, body={"reservation_id": renewed, "msg": "Touched"})


def _release(hub: IronUseCases, call: IronCall) -> Response:
    reservation_id, delay_s = parse_release(call.fields)
    hub.pull.release(_pull_queue(hub, call), call.message_id, reservation_id, delay_s)
    return Response(status=200, body={"msg": "Released"})


def _delete(hub: IronUseCases, call: IronCall) -> Response:
    if call.authorized:
        deletion = parse_deletion(call.message_id, call.fields, call.request.query)
        _delete_all(hub, hub.queues.get(call.project, call.queue), [deletion])
    else:
        hub.acknowledge.run_without_token(call.project, call.queue, _capability(call))
    return Response(status=200, body={"msg": "Deleted"})


def _delete_many(hub: IronUseCases, call: IronCall) -> Response:
    deletions = parse_deletions(call.fields)
    if deletions is None:
        hub.queues.clear(call.project, call.queue)
        return Response(status=200, body={"msg": "Cleared"})
    _delete_all(hub, hub.queues.get(call.project, call.queue), deletions)
    return Response(status=200, body={"msg": "Deleted"})


def _delete_all(hub: IronUseCases, queue: Queue, deletions: Sequence[Deletion]) -> None:
    if not queue.is_push:
        hub.pull.delete(queue, deletions)
        return
    for each in deletions:
        if each.reservation_id is not None:
            hub.acknowledge.check(queue, each)
        elif each.subscriber_name is not None:
            raise Invalid("A reservation_id is required")
        else:
            hub.push_messages.check_deletion(queue, each.message_id)
    for each in deletions:
        if each.reservation_id is not None:
            hub.acknowledge.run(queue, each)
        else:
            hub.push_messages.delete(queue, each.message_id)


def _pull_queue(hub: IronUseCases, call: IronCall) -> Queue:
    queue = hub.queues.get(call.project, call.queue)
    if queue.is_push:
        raise Invalid("Messages of push queues cannot be reserved")
    return queue


def _capability(call: IronCall) -> Deletion:
    """The capability that a request without a valid token presents instead: a reservation."""
    try:
        deletion = parse_deletion(call.names["message"], call.fields, call.request.query)
    except Invalid as error:
        raise Unauthorized from error
    if deletion.reservation_id is None:
        raise Unauthorized
    return deletion


ROUTES: tuple[Route[IronUseCases, IronCall], ...] = (
    Route(
        "POST",
        MESSAGES,
        _post,
        name="ironmq.post_messages",
        settings=False,
        summary="Post messages to a queue",
        function=Function.INGEST,
        body=Body.JSON,
        status=201,
    ),
    Route(
        "POST",
        QUEUE + "/webhook",
        _webhook,
        name="ironmq.post_webhook",
        settings=False,
        summary="Post a body unchanged as one message",
        function=Function.INGEST,
        body=Body.RAW,
        status=201,
    ),
    Route(
        "GET",
        MESSAGES,
        _peek,
        name="ironmq.peek_messages",
        summary="Show messages without reserving them; for a push queue those that wait after a failed attempt",
        query=("n",),
    ),
    Route(
        "DELETE",
        MESSAGES,
        _delete_many,
        name="ironmq.delete_messages",
        settings=False,
        summary="Delete or acknowledge the listed messages, or clear the queue",
        body=Body.JSON,
    ),
    Route(
        "POST",
        QUEUE + "/reservations",
        _reserve,
        name="ironmq.reserve_messages",
        settings=False,
        summary="Reserve messages of a pull queue",
        body=Body.JSON,
    ),
    Route(
        "GET",
        MESSAGE,
        _show,
        name="ironmq.show_message",
        summary="Show a message; for a push queue with the statuses of its pushes",
    ),
    Route(
        "DELETE",
        MESSAGE,
        _delete,
        name="ironmq.delete_message",
        settings=False,
        summary="Delete a message, or acknowledge a push",
        auth=Auth.PROJECT_OR_CAPABILITY,
        body=Body.JSON,
        query=("reservation_id", "subscriber_name"),
    ),
    Route(
        "POST",
        MESSAGE + "/touch",
        _touch,
        name="ironmq.touch_message",
        settings=False,
        summary="Extend a reservation",
        body=Body.JSON,
    ),
    Route(
        "POST",
        MESSAGE + "/release",
        _release,
        name="ironmq.release_message",
        settings=False,
        summary="Release a reserved message",
        body=Body.JSON,
    ),
    Route(
        "GET",
        QUEUE + "/deliveries",
        _deliveries,
        name="ironmq.list_deliveries",
        summary="List the deliveries of a push queue that have failed and not arrived, by state",
        query=("state", "count", "after"),
    ),
    Route(
        "GET",
        MESSAGE + "/subscribers",
        _statuses,
        name="ironmq.show_push_statuses",
        summary="Show the statuses of a message's pushes",
    ),
    Route(
        "GET",
        MESSAGE + "/attempts",
        _attempts,
        name="ironmq.list_attempts",
        summary="List the attempts to push a message, oldest first",
    ),
)

POSTING = tuple(
    each for each in ROUTES if each.path in {posted.path for posted in ROUTES if posted.function is Function.INGEST}
)
"""The paths that producers post to, with their other methods: a POST reaches those with a method override."""
