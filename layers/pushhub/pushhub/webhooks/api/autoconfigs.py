"""Webhooks API: autoconfigurations."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pushhub.base.times import iso_time
from pushhub.web.api import Auth, Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import APP, WebhooksCall
from pushhub.webhooks.model.autoconfig import PREFIX
from pushhub.webhooks.model.ids import IdPrefix
from pushhub.webhooks.model.refusals import insufficient
from pushhub.webhooks.wire.destination import PREFIX as PREFIX_OF_DESTINATIONS
from pushhub.webhooks.wire.destination import destination_view, parse_destination
from pushhub.webhooks.wire.endpoint import endpoint_view, parse_endpoint, parse_new_endpoint
from pushhub.webhooks.wire.portal import parse_flags
from pushhub.webhooks.wire.signatures import parse_signatures

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksUseCases
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.autoconfig import Autoconfig

ALL = APP + "/autoconfig"
ONE = ALL + "/{autoconfig}"


def _application(hub: WebhooksUseCases, call: WebhooksCall) -> Application:
    return hub.applications.application(call.project, call.app)


def _with_token(autoconfig: Autoconfig, token: str, status: int) -> Response:
    shown = {"id": autoconfig.autoconfig_id, "token": token, "createdAt": iso_time(autoconfig.created_at)}
    return Response(status=status, body=shown)


def _create(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    flags = parse_flags(call.fields)
    return _with_token(*hub.autoconfigs().create(_application(hub, call), flags), 201)


def _show(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    found = hub.autoconfigs().autoconfig(_application(hub, call), call.names["autoconfig"])
    shown = {
        "id": found.autoconfig_id,
        "tokenCensored": f"{PREFIX}********",
        "status": "active" if found.endpoint_id else "pending",
        "createdAt": iso_time(found.created_at),
    }
    return Response(status=200, body={**shown, **_bound(found)})


def _bound(autoconfig: Autoconfig) -> dict[str, str]:
    """What it has set up: an endpoint, or a polling endpoint, which is a destination."""
    if not autoconfig.endpoint_id:
        return {}
    if autoconfig.polls:
        return {"destId": PREFIX_OF_DESTINATIONS + autoconfig.endpoint_id.removeprefix(IdPrefix.ENDPOINT)}
    return {"endpId": autoconfig.endpoint_id}


def _rotate(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    return _with_token(*hub.autoconfigs().rotate(_application(hub, call), call.names["autoconfig"]), 200)


def _delete(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    hub.autoconfigs().delete(_application(hub, call), call.names["autoconfig"])
    return Response(status=204, body={})


def _subscribe(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    if call.caller.holder != call.names["autoconfig"]:
        raise insufficient()
    fields = call.fields
    endpoint = hub.autoconfigs().subscribe(
        _application(hub, call),
        call.names["autoconfig"],
        call.request.headers["authorization"].strip().partition(" ")[2].strip(),
        (parse_new_endpoint(fields), parse_endpoint(fields)),
        signatures=partial(parse_signatures, fields),
        rights=call.rights,
    )
    return Response(status=200, body=endpoint_view(endpoint, hub.endpoints.url_as_shown(call.caller.reach)))


def _subscribe_poller(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    if call.caller.holder != call.names["autoconfig"]:
        raise insufficient()
    given = parse_destination(call.fields, whole=True)
    if given.scheme != "poller":
        raise call.fields.refuse("An autoconfiguration sets up an endpoint, or a pollingEndpoint", "type")
    application = _application(hub, call)
    endpoint = hub.autoconfigs().subscribe_poller(application, call.names["autoconfig"], given.settings, call.rights)
    return Response(status=200, body=destination_view(endpoint, "", None))


SECRET_ANSWERS = frozenset({"webhooks.create_autoconfig", "webhooks.rotate_autoconfig"})
"""POSTs whose answers hold what opens something: they are kept sealed for repeated requests."""

ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    Route(
        "POST",
        ALL,
        _create,
        name="webhooks.create_autoconfig",
        summary="Create a token with which a consumer sets up its endpoint",
        body=Body.JSON,
        status=201,
    ),
    Route(
        "GET",
        ONE,
        _show,
        name="webhooks.show_autoconfig",
        summary="Show an autoconfiguration",
        auth=Auth.PROJECT_OR_CAPABILITY,
    ),
    Route("DELETE", ONE, _delete, name="webhooks.delete_autoconfig", summary="Delete an autoconfiguration", status=204),
    Route(
        "POST",
        ONE + "/rotate",
        _rotate,
        name="webhooks.rotate_autoconfig",
        summary="Give an autoconfiguration a new token",
    ),
    Route(
        "PUT",
        ONE + "/endpoint",
        _subscribe,
        name="webhooks.subscribe",
        summary="Set up the endpoint of an autoconfiguration",
        auth=Auth.PROJECT_OR_CAPABILITY,
        body=Body.JSON,
    ),
    Route(
        "PUT",
        ONE + "/destination",
        _subscribe_poller,
        name="webhooks.subscribe_poller",
        summary="Set up the polling endpoint of an autoconfiguration",
        auth=Auth.PROJECT_OR_CAPABILITY,
        body=Body.JSON,
    ),
)
