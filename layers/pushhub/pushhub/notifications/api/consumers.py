"""REST API: the routes that consumers use besides their connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.base.times import iso_time
from pushhub.notifications.api.call import ROOT, NotificationsCall
from pushhub.notifications.wire.errors import ERROR_TYPE, fault_body
from pushhub.notifications.wire.requests import parse_consumer_name, parse_token_request
from pushhub.notifications.wire.subscriptions import parse_name
from pushhub.web.api import Auth, Body, Route
from pushhub.web.http import Response

if TYPE_CHECKING:
    from pushhub.notifications.api.use_cases import NotificationsUseCases
    from pushhub.notifications.waiting import Waiting


def _token(hub: NotificationsUseCases, call: NotificationsCall) -> Response:
    request = parse_token_request(call.request.body, call.project)
    return Response(status=200, body={"token": hub.subscribers.token(request, issued_by=call.issued_by)})


def _verify(hub: NotificationsUseCases, call: NotificationsCall) -> Response:
    claims = hub.subscribers.verify(call.request.query.get("token", ""))
    return Response(status=200, body=claims.as_fields())


def _unsubscribe(hub: NotificationsUseCases, call: NotificationsCall) -> Response:
    hub.subscribers.unsubscribe(call.request.query.get("token", ""))
    return Response(status=200, body={"result": "DONE"})


def _subscribers(hub: NotificationsUseCases, call: NotificationsCall) -> Response:
    found = hub.waiting.of(call.project, parse_name(call.request.query.get("subscription")))
    return Response(status=200, body={"subscribers": [_printed(each) for each in found]})


def _printed(waiting: Waiting) -> dict[str, Any]:
    """What waits for a subscriber, on the wire. An addition to Notifications 2.0."""
    return {
        "subscription": waiting.topic.name,
        "nonPersistent": waiting.topic.non_persistent,
        "subscriber": waiting.subscriber,
        "shared": waiting.shared,
        "consumers": waiting.consumers,
        "unacknowledged": waiting.unacknowledged,
        "bytes": waiting.size,
        "oldest": None if waiting.oldest_at is None else iso_time(waiting.oldest_at),
    }


def _handshake(hub: NotificationsUseCases, call: NotificationsCall) -> Response:
    """The response a WebSocket handshake would get. Real handshakes go to the WebSocket API."""
    name = parse_consumer_name([value for key, value in call.request.pairs if key == "consumer"])
    hub.consumers.may_connect(call.request.query.get("token", ""), name)
    body = {**fault_body(), "error": "general/upgradeRequired", "message": "WebSocket handshake expected"}
    return Response(status=426, body=body, headers={"Upgrade": "websocket", "Content-Type": ERROR_TYPE})


ROUTES: tuple[Route[NotificationsUseCases, NotificationsCall], ...] = (
    Route(
        "POST",
        ROOT + "/token",
        _token,
        name="notifications.create_token",
        settings=False,
        summary="Create a token for a consumer",
        body=Body.JSON,
    ),
    Route(
        "GET",
        ROOT + "/token",
        _verify,
        name="notifications.show_token",
        summary="Show the contents of a consumer's token",
        auth=Auth.CAPABILITY,
        query=("token",),
    ),
    Route(
        "POST",
        ROOT + "/unsubscribe",
        _unsubscribe,
        name="notifications.unsubscribe",
        summary="Remove the subscriber of a consumer's token",
        auth=Auth.CAPABILITY,
        query=("token",),
    ),
    Route(
        "GET",
        ROOT + "/subscribers",
        _subscribers,
        name="notifications.list_subscribers",
        summary="Show what waits for subscribers",
        query=("subscription",),
    ),
    Route(
        "GET",
        ROOT + "/consumer",
        _handshake,
        name="notifications.consume",
        summary="Receive notifications (a WebSocket handshake)",
        auth=Auth.CAPABILITY,
        query=("token", "consumer"),
        status=426,
    ),
)
