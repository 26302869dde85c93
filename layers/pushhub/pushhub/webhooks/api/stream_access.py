"""Webhooks API: access to streams for their owners and for pollers, in the paths of Svix's ``/auth/stream``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pushhub.base.times import iso_time
from pushhub.web.api import Auth, Body, Route
from pushhub.web.http import Response
from pushhub.webhooks.api.call import ROOT, WebhooksCall
from pushhub.webhooks.api.portal import opened_view
from pushhub.webhooks.model.ids import IdPrefix
from pushhub.webhooks.model.portal import NEVER, portal_token
from pushhub.webhooks.model.refusals import Refused, conflict, unprocessable
from pushhub.webhooks.wire.endpoint import Rotation
from pushhub.webhooks.wire.portal import parse_expire, parse_poller_rotation, parse_portal_ask

if TYPE_CHECKING:
    from pushhub.webhooks.api.use_cases import WebhooksUseCases
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.model.portal import PortalAccess

STREAM = ROOT + "/auth/stream/{stream}"
TOKEN = STREAM + "/sink/{sink}/poller/token"
NOTHING = Response(status=204, body={})


def _stream(hub: WebhooksUseCases, call: WebhooksCall) -> Application:
    return hub.streams().stream(call.project, call.stream)


def _access(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    ask, stream = parse_portal_ask(call.fields), _stream(hub, call)
    return opened_view(hub, stream.app_id, hub.portal.open(stream, ask))


def _logout(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    if call.caller.app_id is None or not call.caller.app_id.startswith(IdPrefix.STREAM):
        raise Refused(403, "insufficient access", "Only the token of a stream can be ended in this way")
    hub.portal.close(call.request.headers["authorization"].strip().partition(" ")[2].strip())
    return NOTHING


def _expire(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    grace_s, sessions = parse_expire(call.fields)
    hub.portal.expire(_stream(hub, call), grace_s=grace_s, sessions=sessions)
    return NOTHING


def _poller(hub: WebhooksUseCases, stream: Application, name: str) -> Endpoint:
    sink = hub.sinks().sink(stream, name)
    if not sink.polls:
        raise unprocessable("Only a sink of the type poller has a token", "path", "sink")
    return sink


def _secret(hub: WebhooksUseCases, sink: Endpoint) -> str:
    """The secret of a poller's token: its own signing key, with which nothing is signed."""
    key = hub.signatures().secret(sink).removeprefix("whsec_")
    return key.replace("+", "-").replace("/", "_").rstrip("=")


def _view(stream: Application, access: PortalAccess, secret: str) -> Response:
    ends = {} if access.expires_at == NEVER else {"expiresAt": iso_time(access.expires_at)}
    return Response(
        status=200,
        body={
            "token": portal_token(stream.project, stream.app_id, secret),
            "id": access.digest[:16],
            "createdAt": iso_time(access.created_at),
            **ends,
        },
    )


def _token(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    stream = _stream(hub, call)
    sink = _poller(hub, stream, call.names["sink"])
    secret = _secret(hub, sink)
    access = hub.portal.poller_access(stream, secret)
    # One that has ended is forgotten after a while, and looks as if it was never made: whoever has it shall not be let
    # in again. So where there is none, it is another one.
    return _view(stream, access, secret) if access is not None else _view(stream, *_opened(hub, stream, sink, NEVER))


def _rotate(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    stream = _stream(hub, call)
    sink = _poller(hub, stream, call.names["sink"])
    expiry_s, grace_s = parse_poller_rotation(call.fields)
    expires_at = NEVER if expiry_s is None else hub.clock.now() + expiry_s * 1000
    access, secret = _opened(hub, stream, sink, expires_at)
    stays = hub.portal.end_pollers(
        stream,
        sink.endpoint_id,
        but=lambda: _secret(hub, _poller(hub, stream, sink.endpoint_id)),
        grace_s=grace_s,
    )
    if stays != access.digest:
        raise conflict("It was given another token by another request at the same time")
    return _view(stream, access, secret)


def _opened(hub: WebhooksUseCases, stream: Application, sink: Endpoint, expires_at: int) -> tuple[PortalAccess, str]:
    """A new token of a poller, and its secret."""
    rotated, _ = hub.endpoints.rotate(*sink.place, Rotation(key=None, grace_s=0))
    secret = _secret(hub, rotated)
    return hub.portal.open_poller(stream, sink.endpoint_id, secret, expires_at), secret


SECRET_ANSWERS = frozenset({"webhooks.rotate_poller_token"})
"""Routes whose answers hold a token that is kept sealed for repeated requests."""

UNKEPT = frozenset({"webhooks.stream_access"})
"""Routes whose answers contain a token that is not stored: a repeated request gets a new token, which is harmless."""

_route = partial(Route, "POST")

ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    _route(
        ROOT + "/auth/stream-portal-access/{stream}",
        _access,
        name="webhooks.stream_access",
        summary="Create a token that opens one stream",
        body=Body.JSON,
    ),
    _route(
        ROOT + "/auth/stream-logout",
        _logout,
        name="webhooks.stream_logout",
        summary="End the token of this request, which is that of a stream",
        auth=Auth.PROJECT_OR_CAPABILITY,
        status=204,
    ),
    _route(
        STREAM + "/expire-all",
        _expire,
        name="webhooks.expire_stream",
        summary="End the tokens of a stream",
        body=Body.JSON,
        status=204,
    ),
    Route(
        "GET",
        TOKEN,
        _token,
        name="webhooks.show_poller_token",
        summary="Show the token with which a poller is read",
    ),
    _route(
        TOKEN + "/rotate",
        _rotate,
        name="webhooks.rotate_poller_token",
        summary="Give a poller another token",
        body=Body.JSON,
    ),
)
