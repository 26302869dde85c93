"""Webhooks API: background tasks, and the requests that start them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pushhub.web.api import Auth, Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import APP, ENDPOINT, ROOT, WebhooksCall
from pushhub.webhooks.model.ids import IdPrefix, is_id
from pushhub.webhooks.model.internal_queues import OPERATIONAL_APP
from pushhub.webhooks.model.task import Task, TaskAsk, TaskKind, TaskStatus
from pushhub.webhooks.wire.fields import bad_request
from pushhub.webhooks.wire.page import page_view, parse_window
from pushhub.webhooks.wire.task import USAGE_MS, begun_view, parse_replay, parse_usage, task_view

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksUseCases

TASKS = ROOT + "/background-task"
TASK = TASKS + "/{task}"

UNKEPT = frozenset(
    f"webhooks.{name}" for name in ("recover", "replay_missing", "bulk_replay", "expunge_all", "count_by_app")
)
"""Routes that start a task: a repeated request is known by the id of its task, and needs no kept answer."""


def _replay(kind: TaskKind, hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    ask = parse_replay(call.fields, hub.clock.now(), filtered=kind is TaskKind.BULK_REPLAY)
    ask = replace(ask, flags=call.caller.flags)
    endpoint = hub.endpoints.endpoint(call.project, call.app, call.endpoint)
    app_id, endpoint_id = endpoint.app_id, endpoint.endpoint_id
    begun = hub.tasks.begin(call.project, kind, ask, app_id=app_id, endpoint_id=endpoint_id, key=call.repeatable)
    return _begun(begun)


def _expunge_all(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    application = hub.applications.application(call.project, call.app)
    ask = TaskAsk(since=0, until=hub.clock.now() + 1)
    app_id = application.app_id
    return _begun(hub.tasks.begin(call.project, TaskKind.EXPUNGE, ask, app_id=app_id, key=call.repeatable))


def _count_apps(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    since, until, named = parse_usage(call.fields)
    apps = {
        name: hub.applications.find(call.project, name)
        for name in named
        if name != OPERATIONAL_APP and not is_id(IdPrefix.STREAM, name)
    }
    found = tuple(sorted({each.app_id for each in apps.values() if each is not None}))
    if named and not found:
        raise call.fields.refuse("None of the applications exists", "appIds")
    ask = TaskAsk(since=since, until=until, apps=found)
    begun = hub.tasks.begin(call.project, TaskKind.APP_STATS, ask, key=call.repeatable)
    unresolved = [name for name in dict.fromkeys(named) if apps.get(name) is None]
    return Response(status=202, body={**begun_view(begun), "unresolvedAppIds": unresolved})


def _count_event_types(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    now = hub.clock.now()
    ask = TaskAsk(since=now - USAGE_MS, until=now + 1)
    return _begun(hub.tasks.begin(call.project, TaskKind.EVENT_TYPES, ask, key=call.repeatable))


def _begun(task: Task) -> Response:
    return Response(status=202, body=begun_view(task))


def _list(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    window = parse_window(call.query, kind=IdPrefix.TASK, ascending=False)
    kind, status = call.query.get("task", ""), call.query.get("status", "")
    if kind and kind not in {each.value for each in TaskKind}:
        raise bad_request("task must be a kind of background task")
    if status and status not in {each.value for each in TaskStatus}:
        raise bad_request("status must be a status of background tasks")
    return Response(
        status=200, body=page_view(hub.tasks.page(call.project, window, kind=kind, status=status), task_view)
    )


def _show(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return Response(status=200, body=task_view(hub.tasks.task(call.project, call.names["task"])))


def _cancel(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return Response(status=200, body=task_view(hub.tasks.cancel(call.project, call.names["task"])))


_begin = partial(Route, "POST", auth=Auth.PROJECT_OR_CAPABILITY, body=Body.JSON, status=202)

ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    _begin(
        ENDPOINT + "/recover",
        partial(_replay, TaskKind.RECOVER),
        name="webhooks.recover",
        summary="Send messages again that failed and never succeeded",
        exact=True,
    ),
    _begin(
        ENDPOINT + "/replay-missing",
        partial(_replay, TaskKind.REPLAY_MISSING),
        name="webhooks.replay_missing",
        summary="Send messages that were never sent to an endpoint",
        exact=True,
    ),
    _begin(
        ENDPOINT + "/bulk-replay",
        partial(_replay, TaskKind.BULK_REPLAY),
        name="webhooks.bulk_replay",
        summary="Send messages again, whatever their results",
        exact=True,
    ),
    Route(
        "POST",
        APP + "/msg/expunge-all-contents",
        _expunge_all,
        name="webhooks.expunge_all",
        summary="Delete the payloads of all messages of an application",
        status=202,
    ),
    Route(
        "POST",
        ROOT + "/stats/usage/app",
        _count_apps,
        name="webhooks.count_by_app",
        settings=False,
        summary="Count messages by application",
        body=Body.JSON,
        status=202,
    ),
    Route(
        "PUT",
        ROOT + "/stats/usage/event-types",
        _count_event_types,
        name="webhooks.count_by_event_type",
        settings=False,
        summary="Count the messages of the last 28 days by event type",
        status=202,
    ),
    Route(
        "GET",
        TASKS,
        _list,
        name="webhooks.list_tasks",
        summary="List background tasks",
        query=("status", "task", "limit", "iterator", "order"),
    ),
    Route("GET", TASK, _show, name="webhooks.show_task", summary="Show a background task"),
    Route("POST", TASK + "/cancel", _cancel, name="webhooks.cancel_task", summary="Cancel a background task"),
)
