"""Webhooks API: event types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.web.api import Auth, Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import ROOT, WebhooksCall
from pushhub.webhooks.model.refusals import not_found
from pushhub.webhooks.wire.event_type import event_type_view, parse_event_type, parse_event_type_patch
from pushhub.webhooks.wire.fields import NAME
from pushhub.webhooks.wire.openapi import described_event_types
from pushhub.webhooks.wire.page import page_view, parse_window

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksUseCases
    from pushhub.webhooks.model.event_type import EventType

TYPES = ROOT + "/event-type"
TYPE = TYPES + "/{event_type}"


def _shown(event_type: EventType, status: int = 200) -> Response:
    return Response(status=status, body=event_type_view(event_type, with_schemas=True))


def _create(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return _shown(hub.event_types.create(call.project, call.fields.name("name"), parse_event_type(call.fields)), 201)


def _list(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    page = hub.event_types.page(
        call.project,
        parse_window(call.query, kind=None, ascending=True, ordered=False),
        include_archived=call.flag("include_archived", default=False),
        flags=call.caller.flags,
    )
    with_schemas = call.flag("with_content", default=False)
    return Response(status=200, body=page_view(page, lambda each: event_type_view(each, with_schemas=with_schemas)))


def _show(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return _shown(hub.event_types.event_type(call.project, call.names["event_type"], flags=call.caller.flags))


def _replace(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    name = call.names["event_type"]
    if NAME.fullmatch(name) is None:
        raise not_found()
    event_type, created = hub.event_types.replace(call.project, name, parse_event_type(call.fields))
    return _shown(event_type, 201 if created else 200)


def _patch(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    # One that is not there is told before anything that is wrong with the request.
    name = hub.event_types.event_type(call.project, call.names["event_type"]).name
    return _shown(hub.event_types.patch(call.project, name, parse_event_type_patch(call.fields)))


def _delete(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.event_types.delete(call.project, call.names["event_type"], expunge=call.flag("expunge", default=False))
    return Response(status=204, body={})


def _import_openapi(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    described = described_event_types(call.fields)
    dry, replace_all = (call.fields.raw(name) is True for name in ("dryRun", "replaceAll"))
    modified, to_modify = hub.environments.take_in_openapi(call.project, described, dry=dry, replace_all=replace_all)
    data = {"modified": modified, **({} if to_modify is None else {"to_modify": to_modify})}
    return Response(status=200, body={"data": data})


ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    Route(
        "POST",
        TYPES,
        _create,
        name="webhooks.create_event_type",
        summary="Create an event type",
        body=Body.JSON,
        status=201,
    ),
    Route(
        "GET",
        TYPES,
        _list,
        name="webhooks.list_event_types",
        summary="List event types",
        auth=Auth.PROJECT_OR_CAPABILITY,
        query=("limit", "iterator", "order", "include_archived", "with_content"),
    ),
    Route(
        "POST",
        TYPES + "/import/openapi",
        _import_openapi,
        name="webhooks.import_openapi",
        summary="Create and change event types from an OpenAPI document",
        exact=True,
        body=Body.JSON,
    ),
    Route(
        "GET",
        TYPE,
        _show,
        name="webhooks.show_event_type",
        summary="Show an event type",
        auth=Auth.PROJECT_OR_CAPABILITY,
    ),
    Route("PUT", TYPE, _replace, name="webhooks.replace_event_type", summary="Replace an event type", body=Body.JSON),
    Route("PATCH", TYPE, _patch, name="webhooks.patch_event_type", summary="Change an event type", body=Body.JSON),
    Route(
        "DELETE",
        TYPE,
        _delete,
        name="webhooks.delete_event_type",
        summary="Archive or delete an event type",
        query=("expunge",),
        status=204,
    ),
)
