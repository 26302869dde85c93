"""Queue API: information for a project about itself, whatever protocol its messages used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.ironmq.wire.names import check_queue_name
from pushhub.ironmq.wire.project import (
    parse_hours,
    parse_subscriber,
    render_activity,
    render_outages,
    render_overview,
    render_subscriber_activity,
    render_table,
    render_verdict,
)
from pushhub.ironmq.wire.search import parse_events, parse_search, render_events, render_hits
from pushhub.web.api import Route
from pushhub.web.http import Response

if TYPE_CHECKING:
    from pushhub.ironmq.api.call import IronCall
    from pushhub.ironmq.api.use_cases import IronUseCases

PROJECT = "/3/projects/{project}"
REPORT = PROJECT + "/report"


def _report(hub: IronUseCases, call: IronCall) -> Response:
    return Response(status=200, body={"report": render_verdict(hub.report().verdict(call.project))})


def _table(hub: IronUseCases, call: IronCall) -> Response:
    return Response(status=200, body=render_table(hub.report().table(call.project, call.names["table"])))


def _activity(hub: IronUseCases, call: IronCall) -> Response:
    return Response(
        status=200, body=render_activity(hub.activity().lately(call.project, parse_hours(call.request.query)))
    )


def _at_subscriber(hub: IronUseCases, call: IronCall) -> Response:
    query = call.request.query
    subscriber_id = query.get("subscriber", "")
    if "queue" in query:
        queue = check_queue_name(query["queue"])
        subscriber_id = hub.queues.subscriber(call.project, queue, subscriber_id).subscriber_id
    activity = hub.activity().at_subscriber(call.project, subscriber_id, parse_hours(query))
    return Response(status=200, body=render_subscriber_activity(activity))


def _outages(hub: IronUseCases, call: IronCall) -> Response:
    queue, subscriber = parse_subscriber(call.request.query)
    return Response(status=200, body=render_outages(hub.report().outages(call.project, queue, subscriber)))


def _search(hub: IronUseCases, call: IronCall) -> Response:
    query = parse_search(call.request.query)
    return Response(status=200, body=render_hits(hub.search().run(call.project, query.value, query.after, query.count)))


def _events(hub: IronUseCases, call: IronCall) -> Response:
    return Response(status=200, body=render_events(hub.events().run(call.project, parse_events(call.request.query))))


def _overview(hub: IronUseCases, call: IronCall) -> Response:
    previous = call.request.query.get("previous", "")
    seen = hub.overviews().run(call.project, check_queue_name(previous) if previous else "")
    return Response(status=200, body=render_overview(seen))


def _external_id(hub: IronUseCases, call: IronCall) -> Response:
    ids = hub.external_ids()
    return Response(status=200, body={"external_id": ids.of(call.project), "principal": ids.principal})


ROUTES: tuple[Route[IronUseCases, IronCall], ...] = (
    Route(
        "GET",
        PROJECT + "/search",
        _search,
        name="ironmq.search",
        summary="Find messages by a value in them",
        query=("value", "limit", "after"),
    ),
    Route(
        "GET",
        PROJECT + "/events",
        _events,
        name="ironmq.list_events",
        summary="List what was accepted, newest first",
        query=("kind", "of", "in_state", "subscriber", "type", "since", "until", "limit", "after"),
    ),
    Route(
        "GET",
        PROJECT + "/overview",
        _overview,
        name="ironmq.show_overview",
        summary="Show what waits in all queues",
        query=("previous",),
    ),
    Route(
        "GET",
        PROJECT + "/activity",
        _activity,
        name="ironmq.show_activity",
        summary="Show the project's activity by hour",
        query=("hours",),
    ),
    Route(
        "GET",
        PROJECT + "/activity/subscriber",
        _at_subscriber,
        name="ironmq.show_subscriber_activity",
        summary="Show a subscriber's activity by hour",
        query=("queue", "subscriber", "hours"),
    ),
    Route(
        "GET",
        PROJECT + "/outages",
        _outages,
        name="ironmq.show_outages",
        summary="Show when a subscriber was down, and what longer retries would have reached",
        query=("queue", "subscriber"),
    ),
    Route(
        "GET",
        PROJECT + "/external-id",
        _external_id,
        name="ironmq.show_external_id",
        summary="Show what a role has to demand that the project's queues push with",
    ),
    Route(
        "GET",
        REPORT,
        _report,
        name="ironmq.show_report",
        summary="Show whether all of the project's messages are accounted for",
    ),
    Route(
        "GET",
        REPORT + "/{table}",
        _table,
        name="ironmq.show_report_table",
        summary="Show the project's rows of a table of the delivery report",
    ),
)
