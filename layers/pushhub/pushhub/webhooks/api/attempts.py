"""Webhooks API: attempts, and the messages sent to endpoints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from pushhub.base.steps import Steps
from pushhub.web.api import Auth, Body, Route
from pushhub.web.health import health_view
from pushhub.web.http import Response
from pushhub.webhooks.api.call import APP, ENDPOINT, WebhooksCall
from pushhub.webhooks.api.messages import MESSAGE, message_query
from pushhub.webhooks.messages.attempts import AttemptedMessage, AttemptQuery, Destination, Stats
from pushhub.webhooks.messages.messages import LIST_STEPS
from pushhub.webhooks.model.event_type import MOST_EXAMPLES, Example
from pushhub.webhooks.model.ids import IdPrefix, message_id
from pushhub.webhooks.wire.attempt import (
    attempt_view,
    destination_view,
    parse_status,
    parse_status_class,
    status_view,
)
from pushhub.webhooks.wire.fields import moment_in_query
from pushhub.webhooks.wire.message import message_view
from pushhub.webhooks.wire.page import page_view, parse_times, parse_window

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksUseCases
    from pushhub.webhooks.model.attempt import LoggedAttempt
    from pushhub.webhooks.model.page import Window

ATTEMPT = MESSAGE + "/attempt/{attempt}"
QUERY = (
    *("limit", "iterator", "status", "status_code_class", "channel", "tag", "before", "after", "event_types"),
    *("with_content", "with_msg", "expanded_statuses"),
)


def _window(hub: WebhooksUseCases, call: WebhooksCall, kind: IdPrefix) -> Window:
    window = parse_window(call.query, kind=kind, ascending=False, ordered=False)
    return parse_times(call.query, window, hub.clock.now())


def _query(call: WebhooksCall) -> AttemptQuery:
    return AttemptQuery(
        messages=message_query(call),
        status=parse_status(call.query),
        status_class=parse_status_class(call.query),
    )


def _viewer(hub: WebhooksUseCases, call: WebhooksCall) -> Callable[[LoggedAttempt], dict[str, object]]:
    """A view of attempts as the query requests. An invalid query is refused even if there are no attempts."""
    url_as_shown = hub.endpoints.url_as_shown(call.caller.reach)
    with_message, with_content = call.flag("with_msg", default=False), call.flag("with_content", default=True)

    def view(attempt: LoggedAttempt) -> dict[str, object]:
        message = None
        if with_message:
            found = hub.messages.message(call.project, attempt.app_id, message_id(attempt.engine_id))
            message = message_view(found, {})
        return attempt_view(attempt, url_as_shown, with_content=with_content, message=message)

    return view


def _of_endpoint(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    window, view = _window(hub, call, IdPrefix.ATTEMPT), _viewer(hub, call)
    page = hub.attempts.of_endpoint(call.project, call.app, call.endpoint, window, _query(call))
    return Response(status=200, body=page_view(page, view))


def _of_message(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    window, view = _window(hub, call, IdPrefix.ATTEMPT), _viewer(hub, call)
    page = hub.attempts.of_message(
        call.project,
        call.app,
        call.message,
        window,
        _query(call),
        endpoint=call.names.get("endpoint") or call.query.get("endpoint_id", ""),
    )
    return Response(status=200, body=page_view(page, view))


def _messages_of(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    window = _window(hub, call, IdPrefix.MESSAGE)
    with_content = call.flag("with_content", default=True)
    page = hub.attempts.messages_of(call.project, call.app, call.endpoint, window, _query(call))
    redaction, steps = hub.messages.redaction(call.project, call.app), Steps(LIST_STEPS)
    endpoint = hub.endpoints.endpoint(call.project, call.app, call.endpoint)
    (health,) = hub.health.of_endpoints(call.project, call.app, [endpoint])
    now = hub.clock.now()

    def view(each: AttemptedMessage) -> dict[str, object]:
        payload = hub.messages.payload(each.message, redaction, steps) if with_content else {}
        next_at = health.next_attempt(each.next_at, now)
        return {**message_view(each.message, payload), **status_view(each.status, next_at)}

    return Response(status=200, body=page_view(page, view))


def _destinations(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    window = parse_window(call.query, kind=IdPrefix.ENDPOINT, ascending=True, ordered=False)
    page = hub.attempts.destinations(call.project, call.app, call.message, window)
    url_as_shown = hub.endpoints.url_as_shown(call.caller.reach)
    endpoints = [each.endpoint for each in page.items]
    pairs = zip(endpoints, hub.health.of_endpoints(call.project, call.app, endpoints), strict=True)
    healths = {endpoint.endpoint_id: health for endpoint, health in pairs}
    now = hub.clock.now()

    def view(each: Destination) -> dict[str, object]:
        health = healths[each.endpoint.endpoint_id]
        next_at = health.next_attempt(each.next_at, now)
        return {**destination_view(each.endpoint, each.status, next_at, url_as_shown), "health": health_view(health)}

    return Response(status=200, body=page_view(page, view))


def _show(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    attempt = hub.attempts.attempt(call.project, call.app, call.message, call.names["attempt"])
    return Response(status=200, body=_viewer(hub, call)(attempt))


def _expunge(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.attempts.expunge(call.project, call.app, call.message, call.names["attempt"])
    return Response(status=204, body={})


def _resend(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    sent = hub.resending.resend(call.project, call.app, call.message, call.endpoint, flags=call.caller.flags)
    return Response(status=202, body={} if sent else {"skipped": "endpoint_disabled"})


def _attempt_stats(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    counted = asdict(_counted(hub, call))
    return Response(status=200, body={name: counted[name] for name in ("success", "fail", "canceled")})


def _stats(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return Response(status=200, body=asdict(_counted(hub, call)))


def _counted(hub: WebhooksUseCases, call: WebhooksCall) -> Stats:
    since, until = moment_in_query(call.query, "since"), moment_in_query(call.query, "until")
    return hub.attempts.stats(call.project, call.app, call.endpoint, since=since, until=until)


def _example(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    example = Example(
        event_type=call.fields.name("eventType"),
        index=call.fields.whole("exampleIndex", least=0, most=MOST_EXAMPLES) or 0,
        payload=call.fields.raw("payload"),
    )
    posted = hub.examples.send(call.project, call.app, call.endpoint, example)
    return Response(status=200, body=message_view(posted.message, {}))


_route = partial(Route, auth=Auth.PROJECT_OR_CAPABILITY)

ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    _route(
        "GET",
        APP + "/attempt/endpoint/{endpoint}",
        _of_endpoint,
        name="webhooks.list_attempts_of_endpoint",
        summary="List the attempts to an endpoint",
        query=QUERY,
    ),
    _route(
        "GET",
        APP + "/attempt/msg/{message}",
        _of_message,
        name="webhooks.list_attempts_of_message",
        summary="List the attempts for a message",
        query=(*QUERY, "endpoint_id"),
    ),
    _route(
        "GET",
        MESSAGE + "/attempt",
        _of_message,
        name="webhooks.list_attempts",
        summary="List the attempts for a message (old clients)",
        query=QUERY,
    ),
    _route(
        "GET",
        MESSAGE + "/endpoint/{endpoint}/attempt",
        _of_message,
        name="webhooks.list_attempts_at_endpoint",
        summary="List the attempts for a message to one endpoint",
        query=QUERY,
    ),
    _route(
        "GET",
        ENDPOINT + "/msg",
        _messages_of,
        name="webhooks.list_attempted_messages",
        summary="List the messages that were sent to an endpoint",
        query=("limit", "iterator", "status", "channel", "tag", "before", "after", "event_types", "with_content"),
    ),
    _route(
        "GET",
        MESSAGE + "/endpoint",
        _destinations,
        name="webhooks.list_destinations",
        summary="List the endpoints that a message was sent to or waits for",
        query=("limit", "iterator"),
    ),
    _route(
        "GET",
        ATTEMPT,
        _show,
        name="webhooks.show_attempt",
        summary="Show an attempt",
        query=("with_content", "with_msg", "expanded_statuses"),
    ),
    Route(
        "DELETE",
        ATTEMPT + "/content",
        _expunge,
        name="webhooks.expunge_attempt",
        summary="Delete the stored answer to an attempt",
        status=204,
    ),
    _route(
        "POST",
        MESSAGE + "/endpoint/{endpoint}/resend",
        _resend,
        name="webhooks.resend_message",
        summary="Send a message to an endpoint again",
        status=202,
    ),
    _route(
        "GET",
        ENDPOINT + "/stats",
        _stats,
        name="webhooks.show_stats",
        summary="Count the attempts to an endpoint",
        query=("since", "until"),
    ),
    _route(
        "GET",
        ENDPOINT + "/attempt-stats",
        _attempt_stats,
        name="webhooks.show_attempt_stats",
        summary="Count the finished attempts to an endpoint",
        query=("since", "until"),
    ),
    Route(
        "POST",
        ENDPOINT + "/send-example",
        _example,
        name="webhooks.send_example",
        summary="Send an example of an event type to an endpoint",
        body=Body.JSON,
    ),
)
