"""Webhooks API: showing and expunging messages."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pushhub.base.steps import Steps
from pushhub.web.api import Auth, Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import APP, WebhooksCall
from pushhub.webhooks.messages.messages import LIST_STEPS, MessageQuery
from pushhub.webhooks.model.ids import IdPrefix
from pushhub.webhooks.wire.endpoint import CHANNEL, MAX_CHANNELS
from pushhub.webhooks.wire.message import message_view
from pushhub.webhooks.wire.page import page_view, parse_times, parse_window

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksUseCases
    from pushhub.webhooks.model.message import ListedMessage
    from pushhub.webhooks.wire.fields import Fields

MESSAGES = APP + "/msg"
MESSAGE = MESSAGES + "/{message}"
MOST_EXPUNGED = 1_000
QUERY = ("limit", "iterator", "channel", "tag", "before", "after", "event_types", "with_content")


def message_query(call: WebhooksCall) -> MessageQuery:
    """Which messages a query looks for."""
    return MessageQuery(
        event_types=call.listed("event_types"), channel=call.query.get("channel", ""), tag=call.query.get("tag", "")
    )


def _list(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    window = parse_window(call.query, kind=IdPrefix.MESSAGE, ascending=False, ordered=False)
    window = parse_times(call.query, window, hub.clock.now())
    with_content = call.flag("with_content", default=True)
    page = hub.messages.page(call.project, call.app, window, message_query(call))
    redaction, steps = hub.messages.redaction(call.project, call.app), Steps(LIST_STEPS)

    def view(message: ListedMessage) -> dict[str, object]:
        return message_view(message, hub.messages.payload(message, redaction, steps) if with_content else {})

    return Response(status=200, body=page_view(page, view))


def _show(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    message = hub.messages.message(call.project, call.app, call.message)
    with_content = call.flag("with_content", default=True)
    redaction = hub.messages.redaction(call.project, call.app)
    shown = message_view(message, hub.messages.payload(message, redaction) if with_content else {})
    return Response(status=200, body=shown)


def _expunge(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.messages.expunge(call.project, call.app, call.message)
    return Response(status=204, body={})


def _expunge_several(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    done = hub.messages.expunge_all(call.project, call.app, _names(call.fields))
    results = {name: "expunged" if there else "not-found" for name, there in done.items()}
    return Response(status=200, body={"results": results})


def _names(fields: Fields) -> list[str]:
    ids = fields.raw("ids")
    if ids is None:
        return []
    if not isinstance(ids, list) or not all(isinstance(each, str) for each in ids) or len(ids) > MOST_EXPUNGED:
        raise fields.refuse(f"A list of up to {MOST_EXPUNGED} ids is required", "ids")
    return [each for each in ids if each.isascii()]


def _precheck(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    event_type = call.fields.name("eventType")
    channels = call.fields.names("channels", CHANNEL, most=MAX_CHANNELS) or ()
    return Response(status=200, body={"active": hub.posting.wanted(call.project, call.app, event_type, channels)})


_route = partial(Route, auth=Auth.PROJECT_OR_CAPABILITY)

ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    _route("GET", MESSAGES, _list, name="webhooks.list_messages", summary="List messages", query=QUERY),
    Route(
        "POST",
        MESSAGES + "/bulk-expunge",
        _expunge_several,
        name="webhooks.expunge_messages",
        summary="Delete the payloads of several messages",
        body=Body.JSON,
    ),
    Route(
        "POST",
        MESSAGES + "/precheck/active",
        _precheck,
        name="webhooks.precheck_message",
        settings=False,
        summary="Check whether any endpoint would get a message",
        body=Body.JSON,
    ),
    _route(
        "GET",
        MESSAGE,
        _show,
        name="webhooks.show_message",
        summary="Show a message",
        query=("with_content",),
    ),
    Route(
        "DELETE",
        MESSAGE + "/content",
        _expunge,
        name="webhooks.expunge_message",
        summary="Delete the payload of a message",
        status=204,
    ),
)
