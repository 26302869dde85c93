"""The REST half of Notifications 2.0 as one object: requests in, responses out."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pushhub.base.errors import NotFound, RequestRefused, TooLarge, Unauthorized
from pushhub.cloud.observability import logger
from pushhub.engine.ports import ConfigStore
from pushhub.engine.tokens import Tokens, token_hash
from pushhub.notifications.consumers import Consumers
from pushhub.notifications.publish import NotificationPublish
from pushhub.notifications.subscribers import NotificationSubscribers
from pushhub.notifications.subscriptions import NotificationSubscriptions
from pushhub.notifications.wire.errors import ERROR_TYPE, error_body, fault_body, status_of
from pushhub.notifications.wire.publish import parse_drafts
from pushhub.notifications.wire.requests import parse_token_request
from pushhub.notifications.wire.subscriptions import (
    COLLECTION_TYPE,
    SUBSCRIPTION_TYPE,
    parse_deletion,
    parse_page,
    parse_selection,
    print_collection,
    print_root,
    print_subscription,
)
from pushhub.web.http import NO_CONTENT, MethodNotAllowed, Request, Response, Router, serve
from pushhub.web.json import MAX_REQUEST_BYTES

__all__ = ["NotificationsApi"]

ROOT = "/notification2"
SUBSCRIPTIONS = ROOT + "/subscriptions"
SUBSCRIPTION = SUBSCRIPTIONS + "/{subscription}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A request whose caller is known.

    Attributes:
        request: The request.
        project: The tenant it acts for; empty where the request's own token says.
        names: What the route's pattern stands for.
    """

    request: Request
    project: str
    names: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Route:
    """A handler, and whether its caller must be a tenant's (else the request's own token is enough)."""

    answer: Callable[[_Call], Response]
    tenant: bool = True


class NotificationsApi:
    """Subscriptions, tokens, publishing.

    Args:
        config: Projects and their tokens.
        subscriptions: Publishing rules.
        publishing: Publishes.
        subscribers: Tokens for consumers, and unsubscribing.
        consumers: Asked what a handshake would be answered.
        base_url: Public base URL of this hub.
    """

    def __init__(
        self,
        *,
        config: ConfigStore,
        subscriptions: NotificationSubscriptions,
        publishing: NotificationPublish,
        subscribers: NotificationSubscribers,
        consumers: Consumers,
        base_url: str,
    ) -> None:
        self._config = config
        self._tokens = Tokens(config)
        self._subscriptions = subscriptions
        self._publishing = publishing
        self._subscribers = subscribers
        self._consumers = consumers
        self._base_url = base_url
        self._router = Router(
            [
                ("GET", ROOT, _Route(self._root)),
                ("POST", SUBSCRIPTIONS, _Route(self._create)),
                ("GET", SUBSCRIPTIONS, _Route(self._list)),
                ("DELETE", SUBSCRIPTIONS, _Route(self._delete_selected)),
                ("GET", SUBSCRIPTION, _Route(self._show)),
                ("DELETE", SUBSCRIPTION, _Route(self._delete)),
                ("POST", ROOT + "/notifications", _Route(self._publish)),
                ("POST", ROOT + "/token", _Route(self._token)),
                ("GET", ROOT + "/token", _Route(self._verify, tenant=False)),
                ("POST", ROOT + "/unsubscribe", _Route(self._unsubscribe, tenant=False)),
                ("GET", ROOT + "/consumer", _Route(self._handshake, tenant=False)),
            ]
        )

    def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Answer an API Gateway HTTP API event. Never raises."""
        return serve(event, answer=self.answer, refused=_refused)

    def answer(self, request: Request) -> Response:
        """Answer a request. Never raises."""
        try:
            return self._answer(request)
        except RequestRefused as error:
            return _refused(error)
        except Exception:  # noqa: BLE001 (the one place where faults end)
            # The URL stays out of the log, as it may hold a token.
            logger.exception("request_failed", method=request.method)
            return Response(status=500, body=fault_body(), headers={"Content-Type": ERROR_TYPE})

    def _answer(self, request: Request) -> Response:
        # Clients write some paths with a slash at the end.
        path = request.path.rstrip("/") or "/"
        if request.method == "OPTIONS":
            return Response(status=200, body={}, headers={"Allow": ", ".join(self._router.allowed(path))})
        route, names = self._router.find(request.method, path)
        if len(request.body) > MAX_REQUEST_BYTES:
            raise TooLarge(MAX_REQUEST_BYTES)
        project = self._tenant(request.headers.get("authorization", "")) if route.tenant else ""
        return route.answer(_Call(request=request, project=project, names=names))

    def _tenant(self, authorization: str) -> str:
        """The project a request acts for: Basic ``project/user:token``, or Bearer ``token``.

        Raises:
            Unauthorized: Neither, or a token that is not the project's.
        """
        scheme, _, credentials = authorization.strip().partition(" ")
        project: str | None = None
        token = credentials.strip()
        if scheme.lower() == "bearer" and token:
            project = self._config.project_of(token_hash(token))
        elif scheme.lower() == "basic":
            try:
                user, _, token = base64.b64decode(credentials, validate=True).decode().partition(":")
            except (binascii.Error, ValueError) as error:
                raise _bad_credentials() from error
            project = user.partition("/")[0]
        if project is None or not self._tokens.allow(project, token):
            raise _bad_credentials()
        return project

    def _root(self, _: _Call) -> Response:
        return Response(status=200, body=print_root(self._base_url))

    def _create(self, call: _Call) -> Response:
        rule = self._subscriptions.create(call.project, call.request.body)
        body = print_subscription(rule, self._base_url)
        return Response(
            status=201, body=body, headers={"Content-Type": SUBSCRIPTION_TYPE, "Location": str(body["self"])}
        )

    def _list(self, call: _Call) -> Response:
        selection, page = parse_selection(call.request.query), parse_page(call.request.query)
        rules = self._subscriptions.select(call.project, selection)
        return Response(
            status=200,
            body=print_collection(rules, selection, page, self._base_url),
            headers={"Content-Type": COLLECTION_TYPE},
        )

    def _show(self, call: _Call) -> Response:
        rule = self._subscriptions.get(call.project, call.names["subscription"])
        return Response(
            status=200, body=print_subscription(rule, self._base_url), headers={"Content-Type": SUBSCRIPTION_TYPE}
        )

    def _delete(self, call: _Call) -> Response:
        self._subscriptions.delete(call.project, call.names["subscription"])
        return Response(status=NO_CONTENT, body={})

    def _delete_selected(self, call: _Call) -> Response:
        self._subscriptions.delete_selected(call.project, parse_deletion(call.request.query))
        return Response(status=NO_CONTENT, body={})

    def _publish(self, call: _Call) -> Response:
        ids = self._publishing.publish(call.project, parse_drafts(call.request.body))
        return Response(status=201, body={"ids": ids})

    def _token(self, call: _Call) -> Response:
        request = parse_token_request(call.request.body, call.project)
        return Response(status=200, body={"token": self._subscribers.token(request)})

    def _verify(self, call: _Call) -> Response:
        claims = self._subscribers.verify(call.request.query.get("token", ""))
        return Response(status=200, body=claims.as_fields())

    def _unsubscribe(self, call: _Call) -> Response:
        self._subscribers.unsubscribe(call.request.query.get("token", ""))
        return Response(status=200, body={"result": "DONE"})

    def _handshake(self, call: _Call) -> Response:
        """What a WebSocket handshake would be answered; an accepted one belongs to the WebSocket API."""
        self._consumers.may_connect(call.request.query.get("token", ""))
        body = {**fault_body(), "error": "general/upgradeRequired", "message": "WebSocket handshake expected"}
        return Response(status=426, body=body, headers={"Upgrade": "websocket", "Content-Type": ERROR_TYPE})


def _bad_credentials() -> Unauthorized:
    return Unauthorized("Invalid credentials! : Bad credentials")


def _refused(error: RequestRefused) -> Response:
    headers = {"Content-Type": ERROR_TYPE}
    if isinstance(error, MethodNotAllowed):
        body = {**error_body(error), "error": "general/methodNotAllowed"}
        return Response(status=405, body=body, headers=headers | {"Allow": ", ".join(error.allowed)})
    if type(error) is NotFound:
        return Response(status=404, body={**error_body(error), "error": "general/notFound"}, headers=headers)
    return Response(status=status_of(error), body=error_body(error), headers=headers)
