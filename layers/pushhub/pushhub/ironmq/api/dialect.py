"""How the queue API (IronMQ v3) admits callers, and how it answers what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.base.errors import RequestRefused, Unauthorized
from pushhub.engine.projects.suspension import refuse_suspended
from pushhub.engine.projects.tokens import TOKEN_ID, is_allowed, token_hash
from pushhub.ironmq.api.call import IronCall
from pushhub.ironmq.wire.errors import FAULT_MESSAGE, status_of
from pushhub.web.api import Auth, Body, Dialect, Route
from pushhub.web.audit import Identity
from pushhub.web.http import Request, Response
from pushhub.web.json import MAX_REQUEST_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.engine.ports import ProjectDirectory


LONGEST_PROJECT = 100
"""No project has a longer id, and no table takes a key that is much longer; characters."""


class IronDialect(Dialect[IronCall]):
    """IronMQ v3: a token in the header, the query or the body, and errors as ``{"msg": ...}``."""

    max_request_bytes = MAX_REQUEST_BYTES

    def __init__(self, config: ProjectDirectory) -> None:
        self._config = config

    def admit(self, route: Route[Any, IronCall], request: Request, names: Mapping[str, str]) -> IronCall:
        """Require a token of the project, or the capability that the handler accepts instead."""
        call = IronCall(request=request, names=names, json_body=route.body is Body.JSON)
        if route.auth is Auth.NONE:
            return call
        call.authorized = is_allowed(self._config, call.project, call.token())
        may_be_capable = route.auth is Auth.PROJECT_OR_CAPABILITY and len(call.project) <= LONGEST_PROJECT
        if not (call.authorized or may_be_capable):
            raise Unauthorized
        if call.authorized and not route.only_looks:
            refuse_suspended(self._config, call.project)
        return call

    def identity(self, call: IronCall) -> Identity:
        """The project's token."""
        return Identity(project=call.project, token=token_hash(call.token())[:TOKEN_ID])

    def refused(self, error: RequestRefused) -> Response:
        """Answer with a status and ``msg``."""
        return Response(status=status_of(error), body={"msg": error.message})

    def challenge(self, request: Request, error: Unauthorized) -> str:
        """IronMQ's own scheme, followed by the one that most clients know."""
        del request, error
        return 'OAuth realm="pushhub", Bearer realm="pushhub"'

    def failed(self) -> Response:
        """Always 500: clients take 503 and 504 as an invitation to repeat the request."""
        return Response(status=500, body={"msg": FAULT_MESSAGE})

    def options(self) -> Response:
        """Answered without a token, too."""
        return Response(status=200, body={"msg": "OK"})
