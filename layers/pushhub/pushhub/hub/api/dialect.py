"""What is specific to the hub's API: authentication, error format, CORS for any origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import (
    Conflict,
    Forbidden,
    NotFound,
    Overloaded,
    RequestRefused,
    TooLarge,
    TryLater,
    Unanswerable,
    Unauthorized,
)
from pushhub.engine.projects.suspension import refuse_suspended
from pushhub.engine.projects.tokens import TOKEN_ID, is_allowed, token_hash
from pushhub.hub.api.call import HubCall
from pushhub.hub.wire.fields import InvalidObject
from pushhub.hub.wire.hops import TakenForALoop
from pushhub.web.api import Dialect, Route
from pushhub.web.audit import Identity
from pushhub.web.http import NO_CONTENT, MethodNotAllowed, Request, Response

if TYPE_CHECKING:
    from pushhub.engine.ports import ProjectDirectory

MAX_REQUEST_BYTES = 2_097_152
"""The largest request body accepted, in bytes (2 MiB): a message and its result must fit into one response."""


class ChangedMeanwhile(RequestRefused):
    """Somebody else changed the same thing at the same time."""

    def __init__(self) -> None:
        super().__init__("It was changed by another request at the same time. Please try again.")


_STATUSES: tuple[tuple[type[RequestRefused], int], ...] = (
    (Unauthorized, 401),
    (Forbidden, 403),
    (NotFound, 404),
    (MethodNotAllowed, 405),
    (Unanswerable, 406),
    (ChangedMeanwhile, 409),
    (TooLarge, 413),
    (TryLater, 429),
    (Overloaded, 503),
    (TakenForALoop, 508),
)
"""Refusals that say nothing but their message."""


class HubDialect(Dialect[HubCall]):
    """Hub protocol v5: tokens in ``X-Augury-Token``, errors as ``{"error": ...}``, and callers in browsers."""

    max_request_bytes = MAX_REQUEST_BYTES

    def __init__(self, config: ProjectDirectory) -> None:
        self._config = config

    def path(self, request: Request) -> str:
        """The path without a trailing slash and without ``.json``."""
        return request.path.rstrip("/").removesuffix(".json")

    def admit(self, route: Route[Any, HubCall], request: Request, names: Mapping[str, str]) -> HubCall:
        """Every route belongs to a store. An unknown store gets the same refusal as a wrong token."""
        call = HubCall(request=request, names=names, bare=request.path.rstrip("/").endswith(".json"))
        if not is_allowed(self._config, call.store, request.headers.get("x-augury-token", "")):
            raise Unauthorized("Token is invalid.")
        if not route.only_looks:
            refuse_suspended(self._config, call.store)
        return call

    def identity(self, call: HubCall) -> Identity:
        """The store's token."""
        shown = call.request.headers.get("x-augury-token", "")
        return Identity(project=call.store, token=token_hash(shown)[:TOKEN_ID])

    def refused(self, error: RequestRefused) -> Response:
        """``error``, plus ``errors`` by field for an invalid object."""
        if isinstance(error, InvalidObject):
            return Response(status=422, body={"error": error.message, "errors": error.errors})
        status = next((status for kind, status in _STATUSES if isinstance(error, kind)), None)
        if status is None:
            return Response(status=422, body={"error": "Invalid object.", "errors": {"base": [error.message]}})
        return Response(status=status, body={"error": error.message})

    def challenge(self, request: Request, error: Unauthorized) -> str:
        """Names the token's header instead of a scheme, so that no browser shows a password dialog."""
        del request, error
        return 'X-Augury-Token realm="pushhub"'

    def refusal(self, error: Exception) -> RequestRefused | None:
        """When a write loses a race, the caller has to retry."""
        return ChangedMeanwhile() if isinstance(error, Conflict) else None

    def failed(self) -> Response:
        """A 500."""
        return Response(status=500, body={"error": "The hub could not do this. Please try again."})

    def options(self) -> Response:
        """A preflight gets the same headers as every response."""
        return Response(status=NO_CONTENT, body={})

    def finished(self, request: Request, response: Response) -> Response:
        """The admin client runs in a browser, on its store's own origin.

        No cookies are used here, so any origin is allowed.
        """
        origin = request.headers.get("origin")
        if not origin:
            return response
        cross_origin = {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Credentials": "true",
            "Access-Control-Allow-Headers": "Content-Type, X-Augury-Token",
            "Access-Control-Allow-Methods": "GET, POST, PUT, DELETE",
            "Vary": "Origin",
        }
        return replace(response, headers={**response.headers, **cross_origin})
