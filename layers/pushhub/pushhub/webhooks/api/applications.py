"""Webhooks API: applications."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pushhub.web.api import Auth, Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import APP, ROOT, WebhooksCall
from pushhub.webhooks.model.ids import IdPrefix
from pushhub.webhooks.wire.application import application_view, parse_application, parse_application_patch
from pushhub.webhooks.wire.page import page_view, parse_window

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksUseCases

APPS = ROOT + "/app"


def _create(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    get_if_exists = call.flag("get_if_exists", default=False)
    application, created = hub.applications.create(
        call.project, parse_application(call.fields), get_if_exists=get_if_exists
    )
    return Response(status=201 if created else 200, body=application_view(application))


def _list(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    window = parse_window(call.query, kind=IdPrefix.APPLICATION, ascending=True)
    return Response(status=200, body=page_view(hub.applications.page(call.project, window), application_view))


def _show(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return Response(status=200, body=application_view(hub.applications.application(call.project, call.app)))


def _replace(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    application, created = hub.applications.replace(call.project, call.app, parse_application(call.fields))
    return Response(status=201 if created else 200, body=application_view(application))


def _patch(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    application = hub.applications.patch(call.project, call.app, partial(parse_application_patch, call.fields))
    return Response(status=200, body=application_view(application))


def _delete(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    # First: nothing finds the keys of an application that is not there any more.
    hub.portal.close_all(hub.applications.application(call.project, call.app))
    hub.applications.delete(call.project, call.app)
    return Response(status=204, body={})


ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    Route(
        "POST",
        APPS,
        _create,
        name="webhooks.create_application",
        summary="Create an application",
        body=Body.JSON,
        query=("get_if_exists",),
        status=201,
    ),
    Route(
        "GET",
        APPS,
        _list,
        name="webhooks.list_applications",
        summary="List applications",
        query=("limit", "iterator", "order"),
    ),
    Route(
        "GET",
        APP,
        _show,
        name="webhooks.show_application",
        summary="Show an application",
        auth=Auth.PROJECT_OR_CAPABILITY,
    ),
    Route("PUT", APP, _replace, name="webhooks.replace_application", summary="Replace an application", body=Body.JSON),
    Route("PATCH", APP, _patch, name="webhooks.patch_application", summary="Change an application", body=Body.JSON),
    Route("DELETE", APP, _delete, name="webhooks.delete_application", summary="Delete an application", status=204),
)
