"""Queue API: queues and their subscribers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.ironmq.api.call import QUEUE, QUEUES
from pushhub.ironmq.queues.queues import subscriber_called
from pushhub.ironmq.wire.project import render_seen
from pushhub.ironmq.wire.queues import parse_page, parse_queue, render_queue, render_queue_info
from pushhub.ironmq.wire.subscribers import parse_named, parse_removals, parse_replay, parse_subscriber_request
from pushhub.web.api import Body, Route
from pushhub.web.health import health_view
from pushhub.web.http import Response
from pushhub.web.json import boolean, flag_in_query

if TYPE_CHECKING:
    from pushhub.engine.model.queue import Queue
    from pushhub.ironmq.api.call import IronCall
    from pushhub.ironmq.api.use_cases import IronUseCases

SUBSCRIBERS = QUEUE + "/subscribers"


def _list(hub: IronUseCases, call: IronCall) -> Response:
    page = parse_page(call.request.query)
    if flag_in_query(call.request.query, "health"):
        return Response(status=200, body={"queues": [*map(render_seen, hub.overviews().page(call.project, page))]})
    names = hub.queues.names(call.project, page)
    return Response(status=200, body={"queues": [{"name": name} for name in names]})


def _put(hub: IronUseCases, call: IronCall) -> Response:
    settings = parse_queue(call.fields)
    if boolean(call.fields, "dry_run"):
        return Response(
            status=200, body={"queue": render_queue(hub.queues.planned(call.project, call.queue, settings))}
        )
    queue = hub.queues.put(call.project, call.queue, settings)
    left = {"left": hub.conversion().run(queue)} if settings.convert and queue.converted_at else {}
    return Response(status=200, body={"queue": render_queue(queue) | left})


def _show(hub: IronUseCases, call: IronCall) -> Response:
    return _info(hub, hub.queues.get(call.project, call.queue))


def _change(hub: IronUseCases, call: IronCall) -> Response:
    change = hub.queues.planned_change if boolean(call.fields, "dry_run") else hub.queues.change
    return _info(hub, change(call.project, call.queue, parse_queue(call.fields)))


def _info(hub: IronUseCases, queue: Queue) -> Response:
    info = hub.queues.info(queue)
    body = render_queue_info(info.queue, size=info.size, total_messages=info.total_messages)
    if queue.converted_at and (left := hub.conversion().left(queue)):
        body["left"] = left
    return Response(status=200, body={"queue": body})


def _delete(hub: IronUseCases, call: IronCall) -> Response:
    hub.queues.delete(call.project, call.queue)
    return Response(status=200, body={"msg": "Deleted"})


def _add_subscribers(hub: IronUseCases, call: IronCall) -> Response:
    hub.subscribers.add(call.project, call.queue, parse_subscriber_request(call.fields))
    return Response(status=200, body={"msg": "Updated"})


def _replace_subscribers(hub: IronUseCases, call: IronCall) -> Response:
    hub.subscribers.replace(call.project, call.queue, parse_subscriber_request(call.fields))
    return Response(status=200, body={"msg": "Updated"})


def _remove_subscribers(hub: IronUseCases, call: IronCall) -> Response:
    hub.subscribers.remove(call.project, call.queue, parse_removals(call.fields))
    return Response(status=200, body={"msg": "Updated"})


def _replay(hub: IronUseCases, call: IronCall) -> Response:
    request = parse_replay(call.fields)
    queue = hub.queues.get(call.project, call.queue)
    replayed = hub.replay().run(queue, subscriber_called(queue, request.subscriber), request)
    body = {"looked": replayed.looked, "found": replayed.found, "replayed": replayed.replayed, "after": replayed.cursor}
    return Response(status=200, body={**body, "msg": "Counted" if request.dry_run else "Replayed"})


def _pause(hub: IronUseCases, call: IronCall) -> Response:
    hub.subscribers.pause(call.project, call.queue, parse_named(call.fields), paused=True)
    return Response(status=200, body={"msg": "Paused"})


def _resume(hub: IronUseCases, call: IronCall) -> Response:
    hub.subscribers.pause(call.project, call.queue, parse_named(call.fields), paused=False)
    return Response(status=200, body={"msg": "Resumed"})


def _health(hub: IronUseCases, call: IronCall) -> Response:
    healths = hub.subscribers.health(hub.queues.get(call.project, call.queue))
    return Response(
        status=200,
        body={
            "waiting": sum(health.owed.waiting for _, health in healths),
            "complete": all(health.owed.complete for _, health in healths),
            "subscribers": [
                {"name": each.name, "health": health_view(health)}
                for each, health in healths
                if each.subscriber_id != "*"
            ],
        },
    )


ROUTES: tuple[Route[IronUseCases, IronCall], ...] = (
    Route(
        "GET",
        QUEUES,
        _list,
        name="ironmq.list_queues",
        summary="List the names of queues",
        query=("per_page", "previous", "prefix", "health"),
    ),
    Route(
        "PUT",
        QUEUE,
        _put,
        name="ironmq.put_queue",
        summary="Create or change a queue; the answer has no counts",
        body=Body.JSON,
    ),
    Route("GET", QUEUE, _show, name="ironmq.show_queue", summary="Show a queue with its counts"),
    Route("PATCH", QUEUE, _change, name="ironmq.change_queue", summary="Change a queue", body=Body.JSON),
    # Very old IronMQ clients put the token into the body, even here.
    Route(
        "DELETE", QUEUE, _delete, name="ironmq.delete_queue", summary="Delete a queue and its messages", body=Body.JSON
    ),
    Route(
        "POST",
        SUBSCRIBERS,
        _add_subscribers,
        name="ironmq.add_subscribers",
        summary="Add subscribers, or change them by name",
        body=Body.JSON,
    ),
    Route(
        "PUT",
        SUBSCRIBERS,
        _replace_subscribers,
        name="ironmq.replace_subscribers",
        summary="Replace all subscribers",
        body=Body.JSON,
    ),
    Route(
        "DELETE",
        SUBSCRIBERS,
        _remove_subscribers,
        name="ironmq.remove_subscribers",
        summary="Remove subscribers by name",
        body=Body.JSON,
    ),
    Route(
        "POST",
        QUEUE + "/pause",
        _pause,
        name="ironmq.pause",
        summary="Pause a subscriber: what it is owed waits",
        body=Body.JSON,
    ),
    Route(
        "POST",
        QUEUE + "/resume",
        _resume,
        name="ironmq.resume",
        summary="Resume a paused subscriber",
        body=Body.JSON,
    ),
    Route("GET", QUEUE + "/health", _health, name="ironmq.show_health", summary="Show how each subscriber is doing"),
    Route(
        "POST",
        QUEUE + "/replay",
        _replay,
        name="ironmq.replay",
        summary="Retry what a subscriber missed, page by page",
        body=Body.JSON,
    ),
)
