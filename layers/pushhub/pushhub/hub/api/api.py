"""The hub's API (``/api/stores/...``, hub protocol v5) as one object: requests in, responses out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pushhub.base.errors import Conflict, NotFound, RequestRefused, TooLarge, Unanswerable, Unauthorized
from pushhub.base.ids import is_project_id
from pushhub.cloud.observability import logger
from pushhub.engine.ports import ConfigStore
from pushhub.engine.tokens import Tokens
from pushhub.hub.api.call import HubCall
from pushhub.hub.intake import HubIntake
from pushhub.hub.integrations import HubIntegrations
from pushhub.hub.messages import HubMessages
from pushhub.hub.model.integration import Integration
from pushhub.hub.model.log import Location, LoggedMessage
from pushhub.hub.model.mapping import ServiceMapping
from pushhub.hub.model.notice import Notification
from pushhub.hub.model.object_ids import to_object_id
from pushhub.hub.ports import HubLog, HubSettings
from pushhub.hub.settings import HubSettingsOfStore
from pushhub.hub.wire.fields import InvalidObject
from pushhub.hub.wire.mapping import mapping_view
from pushhub.hub.wire.objects import read_pushed
from pushhub.hub.wire.views import (
    integration_view,
    message_view,
    notification_view,
    parameter_view,
    row_view,
    scheduler_view,
)
from pushhub.web.http import NO_CONTENT, MethodNotAllowed, Request, Response, Router, serve

__all__ = ["HubApi"]

MAX_REQUEST_BYTES = 2_097_152
"""The largest request body taken, in bytes (2 MiB): a message and its result must fit into one answer of this API."""

NOTIFICATIONS_SHOWN = 250
"""Notifications looked at when they are listed, the newest first."""

PER_PAGE = 25

STORE = "/api/stores/{store}"

_Handler = Callable[[HubCall], Response]


class HubApi:
    """The hub's API.

    Args:
        config: Projects and tokens.
        settings: Mappings, integrations, schedulers, parameters as stored.
        log: How messages stand.
        intake: Accepts messages.
        of_store: Changes mappings, schedulers, parameters.
        integrations: Registers endpoints.
        messages: Shows and handles messages.
    """

    def __init__(
        self,
        *,
        config: ConfigStore,
        settings: HubSettings,
        log: HubLog,
        intake: HubIntake,
        of_store: HubSettingsOfStore,
        integrations: HubIntegrations,
        messages: HubMessages,
    ) -> None:
        self._config = config
        self._tokens = Tokens(config)
        self._settings = settings
        self._log = log
        self._intake = intake
        self._of_store = of_store
        self._integrations = integrations
        self._messages = messages
        self._router: Router[_Handler] = Router(self._routes())

    @staticmethod
    def serves(path: str) -> bool:
        """Whether a path is one of this API's."""
        return path == "/api" or path.startswith("/api/")

    def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Answer an API Gateway HTTP API event. Never raises."""
        return serve(event, answer=self._answer_any_origin, refused=_refused)

    def answer(self, request: Request) -> Response:
        """Answer a request. Never raises."""
        try:
            return self._answer(request)
        except RequestRefused as error:
            return _refused(error)
        except Conflict:
            return Response(status=409, body={"error": "It was changed meanwhile. Please try again."})
        except Exception:  # noqa: BLE001 (the one place where faults end)
            logger.exception("request_failed", method=request.method)
            return Response(status=500, body={"error": "The hub could not do this. Please try again."})

    def _answer_any_origin(self, request: Request) -> Response:
        response = self.answer(request)
        return replace(response, headers={**response.headers, **_cross_origin(request)})

    def _answer(self, request: Request) -> Response:
        path = request.path.rstrip("/")
        bare = path.endswith(".json")
        path = path.removesuffix(".json")
        if request.method == "OPTIONS":
            return Response(status=NO_CONTENT, body={}, headers={"Allow": ", ".join(self._router.allowed(path))})
        handler, names = self._router.find(request.method, path)
        if len(request.body) > MAX_REQUEST_BYTES:
            raise TooLarge(MAX_REQUEST_BYTES)
        call = HubCall(request=request, names=names, bare=bare)
        if not is_project_id(call.store) or self._config.project(call.store) is None:
            raise NotFound("Store not found.")
        if not self._tokens.allow(call.store, request.headers.get("x-augury-token", "")):
            raise Unauthorized("Token is invalid.")
        return handler(call)

    def _routes(self) -> list[tuple[str, str, _Handler]]:
        """The endpoint table."""
        integration = STORE + "/integrations/{id}"
        return [
            ("POST", STORE + "/messages", self._push),
            ("GET", STORE + "/messages/{id}", self._message),
            ("PUT", STORE + "/messages/{id}", self._handle_message),
            ("GET", STORE + "/available_messages", self._available_messages),
            ("GET", STORE + "/queues", self._counts),
            ("GET", STORE + "/queues/{id}", self._queue),
            ("GET", STORE + "/notifications", self._notifications),
            ("GET", STORE + "/mappings", self._mappings),
            ("POST", STORE + "/mappings", self._make_mapping),
            ("GET", STORE + "/mappings/{id}", self._mapping),
            ("PUT", STORE + "/mappings/{id}", self._change_mapping),
            ("DELETE", STORE + "/mappings/{id}", self._delete_mapping),
            ("GET", STORE + "/schedulers", self._schedulers),
            ("POST", STORE + "/schedulers", self._make_scheduler),
            ("GET", STORE + "/schedulers/{id}", self._scheduler),
            ("PUT", STORE + "/schedulers/{id}", self._change_scheduler),
            ("DELETE", STORE + "/schedulers/{id}", self._delete_scheduler),
            ("GET", STORE + "/parameters", self._parameters),
            ("POST", STORE + "/parameters", self._make_parameter),
            ("GET", STORE + "/parameters/{id}", self._parameter),
            ("PUT", STORE + "/parameters/{id}", self._change_parameter),
            ("DELETE", STORE + "/parameters/{id}", self._delete_parameter),
            ("GET", STORE + "/integrations", self._list_integrations),
            ("POST", STORE + "/integrations", self._register),
            ("GET", integration, self._integration),
            ("PUT", integration, self._change_integration),
            ("DELETE", integration, self._delete_integration),
            ("POST", integration + "/signup", self._sign_up),
            ("GET", integration + "/enable_mappings", self._enable_mappings),
            ("GET", integration + "/disable_mappings", self._disable_mappings),
        ]

    # Messages

    def _push(self, call: HubCall) -> Response:
        message, submitted = read_pushed(call.request.body)
        accepted = self._intake.push(call.store, message)
        return Response(status=201, body={**submitted, "message_id": to_object_id(accepted.message_id)})

    def _message(self, call: HubCall) -> Response:
        details = self._messages.details(call.store, call.id)
        entry = details.entry
        mapping = self._settings.mapping(call.store, entry.mapping_id) if entry.mapping_id else None
        project = self._config.project(call.store)
        view = message_view(
            entry,
            details.content,
            mapping=mapping,
            icon_url=self._icon_of(mapping, self._settings.integrations(call.store)),
            recorded=details.recorded,
            children=details.children,
            notifications=details.notifications,
            store_name=project.name if project else "",
        )
        return Response(status=200, body=view)

    def _handle_message(self, call: HubCall) -> Response:
        wanted = {name for name in ("attempt_now", "archive") if str(call.fields.get(name)).lower() in ("true", "1")}
        if wanted == {"attempt_now"}:
            self._messages.attempt_now(call.store, call.id)
        elif wanted == {"archive"}:
            self._messages.archive(call.store, call.id)
        else:
            raise InvalidObject({"base": ["Say attempt_now=true or archive=true"]})
        return self._message(call)

    def _available_messages(self, call: HubCall) -> Response:
        return Response(status=200, body=self._settings.types(call.store))

    # Queues

    def _counts(self, call: HubCall) -> Response:
        return Response(status=200, body=self._messages.counts(call.store))

    def _queue(self, call: HubCall) -> Response:
        if call.names["id"] not in list(Location):
            raise NotFound("Queue not found.")
        page = self._messages.page(call.store, call.query(Location(call.names["id"])))
        mappings = {each.mapping_id: each for each in self._settings.mappings(call.store)}
        integrations = self._settings.integrations(call.store)

        def row(entry: LoggedMessage) -> dict[str, Any]:
            mapping = mappings.get(entry.mapping_id or "")
            return row_view(entry, mapping, self._icon_of(mapping, integrations))

        rows = [row(each) for each in page.entries]
        if call.bare:
            return Response(status=200, body=rows)
        return Response(
            status=200,
            body={
                "page": page.page,
                "pages": page.pages,
                "available_messages": self._settings.types(call.store),
                "available_consumers": [[each.name, each.mapping_id] for each in mappings.values()],
                "messages": rows,
            },
        )

    @staticmethod
    def _icon_of(mapping: ServiceMapping | None, integrations: list[Integration]) -> str | None:
        found = (each for each in integrations if mapping and each.integration_id == mapping.integration_id)
        integration = next(found, None)
        return integration.endpoint.icon_url if integration and integration.endpoint else None

    def _notifications(self, call: HubCall) -> Response:
        def wanted(each: Notification) -> bool:
            level, kind, token = (call.chosen(name) for name in ("level", "reference_type", "reference_token"))
            return (
                level in (None, each.level.value)
                and kind in (None, each.extra.get("reference_type"))
                and token in (None, each.extra.get("reference_token"))
            )

        listed = self._log.notifications(call.store, limit=NOTIFICATIONS_SHOWN)
        found = [notification_view(each) for each in listed if wanted(each)]
        page = call.query(Location.ARCHIVED).page
        rows = found[(page - 1) * PER_PAGE : page * PER_PAGE]
        if call.bare:
            return Response(status=200, body=rows)
        pages = max(1, -(-len(found) // PER_PAGE))
        return Response(status=200, body={"page": page, "pages": pages, "notifications": rows})

    # Mappings

    def _mappings(self, call: HubCall) -> Response:
        return _list([mapping_view(each, call.store) for each in self._settings.mappings(call.store)])

    def _make_mapping(self, call: HubCall) -> Response:
        mapping = self._of_store.make_mapping(call.store, call.wrapped("mapping"))
        return Response(status=201, body=mapping_view(mapping, call.store))

    def _mapping(self, call: HubCall) -> Response:
        return Response(status=200, body=mapping_view(self._of_store.mapping(call.store, call.id), call.store))

    def _change_mapping(self, call: HubCall) -> Response:
        mapping = self._of_store.change_mapping(call.store, call.id, call.wrapped("mapping"))
        return Response(status=200, body=mapping_view(mapping, call.store))

    def _delete_mapping(self, call: HubCall) -> Response:
        self._of_store.delete_mapping(call.store, call.id)
        return _NOTHING

    # Schedulers

    def _schedulers(self, call: HubCall) -> Response:
        return _list([scheduler_view(each) for each in self._settings.schedulers(call.store)])

    def _make_scheduler(self, call: HubCall) -> Response:
        scheduler = self._of_store.make_scheduler(call.store, call.wrapped("scheduler"))
        return Response(status=201, body=scheduler_view(scheduler))

    def _scheduler(self, call: HubCall) -> Response:
        return Response(status=200, body=scheduler_view(self._of_store.scheduler(call.store, call.id)))

    def _change_scheduler(self, call: HubCall) -> Response:
        scheduler = self._of_store.change_scheduler(call.store, call.id, call.wrapped("scheduler"))
        return Response(status=200, body=scheduler_view(scheduler))

    def _delete_scheduler(self, call: HubCall) -> Response:
        self._of_store.delete_scheduler(call.store, call.id)
        return _NOTHING

    # Parameters

    def _parameters(self, call: HubCall) -> Response:
        return _list([parameter_view(each) for each in self._settings.parameters(call.store)])

    def _make_parameter(self, call: HubCall) -> Response:
        parameter = self._of_store.make_parameter(call.store, call.wrapped("parameter"))
        return Response(status=201, body=parameter_view(parameter))

    def _parameter(self, call: HubCall) -> Response:
        return Response(status=200, body=parameter_view(self._of_store.parameter(call.store, call.id)))

    def _change_parameter(self, call: HubCall) -> Response:
        parameter = self._of_store.change_parameter(call.store, call.id, call.wrapped("parameter"))
        return Response(status=200, body=parameter_view(parameter))

    def _delete_parameter(self, call: HubCall) -> Response:
        self._of_store.delete_parameter(call.store, call.id)
        return _NOTHING

    # Integrations

    def _list_integrations(self, call: HubCall) -> Response:
        # There is no catalogue of integrations for everybody (``global=1``): each store registers its own.
        own = [] if call.chosen("global") else self._settings.integrations(call.store)
        return _list([integration_view(each, call.store) for each in own])

    def _register(self, call: HubCall) -> Response:
        integration = self._integrations.register(call.store, call.wrapped("integration"))
        return Response(status=201, body=integration_view(integration, call.store))

    def _integration(self, call: HubCall) -> Response:
        integration = self._integrations.integration(call.store, call.id)
        return Response(status=200, body=integration_view(integration, call.store))

    def _change_integration(self, call: HubCall) -> Response:
        integration = self._integrations.change(call.store, call.id, call.wrapped("integration"))
        return Response(status=200, body=integration_view(integration, call.store))

    def _delete_integration(self, call: HubCall) -> Response:
        self._integrations.delete(call.store, call.id)
        return _NOTHING

    def _sign_up(self, call: HubCall) -> Response:
        parameters, enabled = call.fields.get("parameters") or {}, call.fields.get("enabled") or []
        if not isinstance(parameters, dict):
            raise InvalidObject({"parameters": ["must be names and values"]})
        services = [enabled] if isinstance(enabled, str) else enabled
        if not isinstance(services, list) or not all(isinstance(each, str) for each in services):
            raise InvalidObject({"enabled": ["must be names of services"]})
        integration = self._integrations.sign_up(call.store, call.id, parameters, services)
        return Response(status=200, body=integration_view(integration, call.store))

    def _enable_mappings(self, call: HubCall) -> Response:
        self._integrations.set_enabled(call.store, call.id, enabled=True)
        return self._mappings(call)

    def _disable_mappings(self, call: HubCall) -> Response:
        self._integrations.set_enabled(call.store, call.id, enabled=False)
        return self._mappings(call)


_NOTHING = Response(status=200, body={})


def _list(items: list[dict[str, Any]]) -> Response:
    return Response(status=200, body=items)


_STATUS_OF: dict[type[RequestRefused], int] = {Unauthorized: 401, NotFound: 404, Unanswerable: 406, TooLarge: 413}
"""Refusals that say nothing but their message."""


def _refused(error: RequestRefused) -> Response:
    """The hub's error shapes."""
    match error:
        case InvalidObject():
            return Response(status=422, body={"error": error.message, "errors": error.errors})
        case MethodNotAllowed():
            return Response(status=405, body={"error": error.message}, headers={"Allow": ", ".join(error.allowed)})
        case Unauthorized() | NotFound() | Unanswerable() | TooLarge():
            status = next(status for kind, status in _STATUS_OF.items() if isinstance(error, kind))
            return Response(status=status, body={"error": error.message})
        case _:
            return Response(status=422, body={"error": "Invalid object.", "errors": {"base": [error.message]}})


def _cross_origin(request: Request) -> dict[str, str]:
    """The admin client runs in a browser on its store's own address. Nothing here goes by cookies, so any origin may ask."""
    origin = request.headers.get("origin")
    if not origin:
        return {}
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Credentials": "true",
        "Access-Control-Allow-Headers": "Content-Type, X-Augury-Token",
        "Access-Control-Allow-Methods": "GET, POST, PUT, DELETE",
        "Vary": "Origin",
    }
