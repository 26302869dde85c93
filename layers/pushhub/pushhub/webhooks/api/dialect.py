"""What is specific to the webhooks API: authentication, error format, CORS for any origin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from pushhub.base.errors import (
    Conflict,
    Invalid,
    NotFound,
    Overloaded,
    ProjectSuspended,
    RequestRefused,
    TooLarge,
    TryLater,
    Unanswerable,
    Unauthorized,
)
from pushhub.engine.projects.suspension import refuse_suspended
from pushhub.engine.projects.tokens import TOKEN_ID, token_hash
from pushhub.web.api import Auth, Dialect, Route
from pushhub.web.audit import Identity
from pushhub.web.http import NO_CONTENT, MethodNotAllowed, Request, Response
from pushhub.webhooks.api.call import Caller, WebhooksCall
from pushhub.webhooks.model.ids import IdPrefix, is_id
from pushhub.webhooks.model.not_offered import not_offered
from pushhub.webhooks.model.portal import PortalAccess, capability_for, is_only_looking, named_by
from pushhub.webhooks.model.refusals import Refused, Unprocessable, insufficient, not_found
from pushhub.webhooks.wire.destination import endpoint_name
from pushhub.webhooks.wire.fields import NAME

if TYPE_CHECKING:
    from pushhub.engine.ports import ProjectDirectory
    from pushhub.engine.target import Targets
    from pushhub.webhooks.ports import ReadApplications, ReadEndpoints

MAX_REQUEST_BYTES = 2_097_152
"""The largest request body accepted, in bytes (2 MiB)."""

FRAME_HEADER = "pushhub-portal-frame"
"""The public id of the frame that a portal's page is in, if it is in one."""

CODES: tuple[tuple[type[RequestRefused], int, str], ...] = (
    (Unauthorized, 401, "authentication_failed"),
    (ProjectSuspended, 403, "project_suspended"),
    (NotFound, 404, "not_found"),
    (MethodNotAllowed, 405, "method_not_allowed"),
    (Unanswerable, 406, "not_acceptable"),
    (TooLarge, 413, "payload_too_large"),
    (TryLater, 429, "too_many_requests"),
    (Overloaded, 503, "overloaded"),
    (Invalid, 400, "generic_error"),
)
"""Refusals that all protocols know, with the status and the code of each."""


class FindAccess(Protocol):
    """Knows the tokens of the owners of applications."""

    def find(self, token: str) -> PortalAccess | None:
        """What a token currently gives access to, or None."""


READS = "webhooks.read_stream_sink"
"""The only route that the token of a poller opens."""

OF_CONSUMERS = frozenset({"webhooks.lease", "webhooks.acknowledge"})
"""Routes that the key of an autoconfiguration opens; they look whether the polling endpoint is its own."""


def _refuse_stream(names: Mapping[str, str]) -> None:
    """Refuse, as ``NotFound``, a stream where an application is named: streams have routes of their own, which keep
    their order and know how sinks read.
    """
    if is_id(IdPrefix.STREAM, names.get("app", "")):
        raise not_found()


def _is_name(text: str) -> bool:
    return NAME.fullmatch(text) is not None


class WebhooksDialect(Dialect[WebhooksCall]):
    """Svix API v1: Bearer tokens, errors as ``{"code", "detail"}``, and callers in browsers.

    Args:
        portal: Tokens of application owners; created when the first such token is presented.
        applications: Finds the application in the path, for callers limited to one.
        endpoints: Finds the endpoint in the path, for the same callers.
        targets: Says which endpoints are out of their reach.
    """

    max_request_bytes = MAX_REQUEST_BYTES

    def __init__(
        self,
        *,
        tokens: ProjectDirectory,
        portal: Callable[[], FindAccess],
        applications: ReadApplications,
        endpoints: ReadEndpoints,
        targets: Callable[[], Targets],
    ) -> None:
        self._endpoints = endpoints
        self._targets = targets
        self._tokens = tokens
        self._portal = portal
        self._applications = applications

    def path(self, request: Request) -> str:
        """The path without the trailing slash that old clients add."""
        return request.path.rstrip("/") or "/"

    def admit(self, route: Route[Any, WebhooksCall], request: Request, names: Mapping[str, str]) -> WebhooksCall:
        """Admit a caller with a valid token, if it may use the route and the application."""
        if route.auth is Auth.NONE:
            _refuse_stream(names)
            return WebhooksCall(request=request, names=names, caller=Caller(project=""))
        caller = self.caller(request.headers.get("authorization", ""))
        if not route.only_looks:
            refuse_suspended(self._tokens, caller.project)
        # The portal's page says in which frame it is: a token made for another one, or for none, opens nothing there.
        if request.headers.get(FRAME_HEADER, caller.frame) != caller.frame:
            raise Refused(403, "insufficient access", "This token is not for a portal in this frame")
        if caller.app_id is not None:
            self._admit_application(caller, caller.app_id, route, request.method, names)
            named = not names.keys().isdisjoint(("app", "stream"))
            # Where it is not named, nothing else finds out that it was deleted while the token was made.
            if not named and self._applications.application(caller.project, caller.app_id) is None:
                raise Unauthorized("Invalid token")
        _refuse_stream(names)
        return WebhooksCall(request=request, names=names, caller=caller)

    def caller(self, authorization: str) -> Caller:
        """The caller that a header ``Authorization`` names."""
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        if scheme.lower() == "bearer" and named_by(token):
            return self._portal_caller(token)
        project = self._tokens.project_of(token_hash(token)) if scheme.lower() == "bearer" and token else None
        if project is None:
            raise Unauthorized("Invalid token")
        return Caller(project=project)

    def _portal_caller(self, token: str) -> Caller:
        access = self._portal().find(token)
        if access is None:
            raise Unauthorized("Invalid token")
        capabilities = frozenset[str](access.capabilities)
        return Caller(
            project=access.project,
            app_id=access.app_id,
            flags=access.flags,
            capabilities=capabilities,
            frame=access.frame,
            holder=access.holder,
        )

    def _admit_application(
        self, caller: Caller, app_id: str, route: Route[Any, WebhooksCall], method: str, names: Mapping[str, str]
    ) -> None:
        """Check that a caller with an application's token stays within that application, its capabilities and its
        reach: it may look at an endpoint that is out of its reach, but neither change it nor send anything to it.

        Raises:
            Refused: The route is reserved for the organization, needs a capability that the token lacks, or is about
                an endpoint out of reach (403).
            NotFound: The path names another application.
        """
        if route.auth is Auth.PROJECT:
            raise insufficient()
        _refuse_stream(names)
        if "app" in names and names["app"] != app_id:
            found = self._applications.application(caller.project, names["app"]) if _is_name(names["app"]) else None
            if found is None or found.app_id != app_id:
                raise not_found()
        if "stream" in names and names["stream"] != app_id:
            named = self._applications.stream(caller.project, names["stream"]) if _is_name(names["stream"]) else None
            if named is None or named.app_id != app_id:
                raise not_found()
        if is_id(IdPrefix.ENDPOINT, caller.holder):
            self._admit_poller(caller, app_id, route, names)
            return
        if is_id(IdPrefix.AUTOCONFIG, caller.holder) and route.name in OF_CONSUMERS:
            return
        if "autoconfig" in names:
            if caller.holder != names["autoconfig"]:
                raise not_found() if caller.holder else insufficient()
            return
        needed = capability_for(method, route.path.split("/"))
        if caller.capabilities is not None and needed not in caller.capabilities:
            raise insufficient()
        if "endpoint" in names and not is_only_looking(route.method, route.path.split("/")):
            name = names["endpoint"]
            endpoint = self._endpoints.endpoint(caller.project, app_id, name) if NAME.fullmatch(name) else None
            if endpoint is not None and not self._targets().within(caller.reach, endpoint.fields.url):
                raise insufficient()

    def _admit_poller(
        self, caller: Caller, app_id: str, route: Route[Any, WebhooksCall], names: Mapping[str, str]
    ) -> None:
        """Check that a caller with the token of a poller reads that poller's events and does nothing else."""
        if route.name != READS:
            raise insufficient()
        name = endpoint_name(names["sink"])
        found = self._endpoints.endpoint(caller.project, app_id, name) if _is_name(name) else None
        if found is None or found.endpoint_id != caller.holder:
            raise not_found()

    def identity(self, call: WebhooksCall) -> Identity:
        """The organization's token, or that of an application's owner."""
        caller, shown = call.caller, call.request.headers.get("authorization", "").strip().partition(" ")[2].strip()
        if not caller.project:
            return Identity(project=call.names.get("project", ""), kind="link")
        kind = "token" if caller.app_id is None else "portal"
        return Identity(project=caller.project, kind=kind, token=token_hash(shown)[:TOKEN_ID], app=caller.app_id or "")

    def refused(self, error: RequestRefused) -> Response:
        """Validation errors are a list without a code; all others have a code and a text."""
        if isinstance(error, Unprocessable):
            problems = [{"loc": list(each.where), "msg": each.text, "type": each.kind} for each in error.problems]
            return Response(status=422, body={"detail": problems})
        if isinstance(error, Refused):
            return Response(status=error.status, body={"code": error.code, "detail": error.message})
        status, code = next(
            ((status, code) for kind, status, code in CODES if isinstance(error, kind)), (400, "generic_error")
        )
        return Response(status=status, body={"code": code, "detail": error.message})

    def challenge(self, request: Request, error: Unauthorized) -> str:
        """A token of the project."""
        del request, error
        return 'Bearer realm="pushhub"'

    def refusal(self, error: Exception) -> RequestRefused | None:
        """When a write loses a race, the caller has to retry."""
        return (
            Refused(409, "conflict", "It was changed by another request at the same time")
            if isinstance(error, Conflict)
            else None
        )

    def no_route(self, path: str) -> RequestRefused:
        """What Svix's cloud would have there is named, if it is that."""
        feature = not_offered(path)
        if feature is None:
            return NotFound()
        detail = f"This hub does not offer {feature} (see docs/webhooks.md, Differences from Svix)"
        return Refused(501, "not_implemented", detail)

    def failed(self) -> Response:
        """A 500, as JSON: clients parse every answer."""
        return Response(status=500, body={"code": "server_error", "detail": "Internal error. Please try again."})

    def options(self) -> Response:
        """A preflight gets the same headers as every response."""
        return Response(status=NO_CONTENT, body={})

    def finished(self, request: Request, response: Response) -> Response:
        """Portals run in browsers on their owners' origins. No cookies are used here, so any origin is allowed."""
        origin = request.headers.get("origin")
        if not origin:
            return response
        asked = request.headers.get("access-control-request-headers", "")
        cross_origin = {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Headers": asked or "Authorization, Content-Type, Idempotency-Key",
            "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
            "Access-Control-Max-Age": "600",
            "Vary": "Origin",
        }
        return replace(response, headers={**response.headers, **cross_origin})
