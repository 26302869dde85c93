"""The base of every HTTP API of the hub: routes as data, and one path from an event to its response.

A protocol supplies its routes and its :class:`Dialect`: how callers are authenticated, and the responses that no
handler gives. The common steps are here, in this order: method override and bytes (:mod:`pushhub.web.http`), OPTIONS,
the route (or 404 or 405), the size of the body, the caller, the handler; then refusals, faults and HEAD.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar, Generic, TypeVar

from pushhub.base.credentials import MASK, named_like_a_secret
from pushhub.base.errors import (
    Conflict,
    Contended,
    Invalid,
    NotFound,
    Overdue,
    Overloaded,
    RequestRefused,
    SearchUnavailable,
    TooLarge,
    TryLater,
    Unauthorized,
    Unavailable,
)
from pushhub.cloud.deadline import deadline
from pushhub.cloud.observability import logger
from pushhub.web.audit import Change, Identity, audit
from pushhub.web.http import MethodNotAllowed, Request, Response, Router, serve

UseCasesT_contra = TypeVar("UseCasesT_contra", contravariant=True)
CallT = TypeVar("CallT", bound="Call")
CallT_contra = TypeVar("CallT_contra", bound="Call", contravariant=True)


class Function(StrEnum):
    """The function that serves a route's ordinary requests; the template's routes must match it."""

    INGEST = "ingest"
    """Producers."""
    CONTROL = "control"
    """Operators and consumers; it serves the routes of ``ingest`` too, for spellings that the gateway does not know."""
    PAST = "past"
    """Searches of the past: only this function may read delivery records."""


class Auth(StrEnum):
    """What a caller must show."""

    NONE = "none"
    PROJECT = "project"
    """A token of the project."""
    CAPABILITY = "capability"
    """Something the request itself holds, such as a consumer's token; the handler checks it."""
    PROJECT_OR_CAPABILITY = "project or capability"


class Body(StrEnum):
    """How the body of a request is read."""

    NONE = "none"
    """It is ignored."""
    RAW = "raw"
    """Its bytes are content, whatever they are."""
    JSON = "json"
    JSON_OR_FORM = "json or form"


@dataclass(kw_only=True)
class Call:
    """A request to one route, as handlers get it; each protocol adds what its handlers need.

    Attributes:
        names: Values of the ``{name}`` segments in the route's path.
    """

    request: Request
    names: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Route(Generic[UseCasesT_contra, CallT_contra]):
    """One method of one path.

    Attributes:
        method: In upper case. GET serves HEAD as well.
        path: With ``{name}`` segments, which match any non-empty text.
        handler: Takes the protocol's use cases and the call, returns the response.
        name: Unique among the routes of all protocols; API descriptions use it to find a route's schemas and examples.
        summary: One line, for people.
        function: The function that serves its ordinary requests.
        auth: What a caller must show.
        body: How the body is read.
        query: Names of the query fields that are read.
        status: HTTP status on success.
        takes: Whether a GET hands messages to a consumer, so that it is more than a look.
        settings: Whether what it changes is for the audit trail. Not messages: their records say what became of them.
        exact: Whether a member that is probably misspelt is refused: without what it says, too much would be sent.
    """

    method: str
    path: str
    handler: Callable[[UseCasesT_contra, CallT_contra], Response]
    name: str
    summary: str
    function: Function = Function.CONTROL
    auth: Auth = Auth.PROJECT
    body: Body = Body.NONE
    query: tuple[str, ...] = ()
    status: int = 200
    takes: bool = False
    settings: bool = True
    exact: bool = False

    @property
    def only_looks(self) -> bool:
        """Whether its requests change nothing, and hand nothing over."""
        return self.method == "GET" and not self.takes

    @property
    def is_audited(self) -> bool:
        """Whether the audit trail has its requests."""
        return self.settings and self.method != "GET"


class Dialect(ABC, Generic[CallT]):
    """What differs from one API to another."""

    max_request_bytes: ClassVar[int]

    def path(self, request: Request) -> str:
        """The path used to find a request's route."""
        return request.path

    @abstractmethod
    def admit(self, route: Route[Any, CallT], request: Request, names: Mapping[str, str]) -> CallT:
        """Authenticate and authorize the caller; returns the call.

        Raises:
            Unauthorized: The caller may not.
        """

    def identity(self, call: CallT) -> Identity:
        """Who has made an admitted call."""
        return Identity(project=call.names.get("project", ""), kind="link")

    @abstractmethod
    def refused(self, error: RequestRefused) -> Response:
        """The response to a refused request; ``Allow``, ``Retry-After`` and ``WWW-Authenticate`` are added where
        needed.
        """

    @abstractmethod
    def challenge(self, request: Request, error: Unauthorized) -> str:
        """The value of ``WWW-Authenticate`` for a caller who was not admitted: the accepted credentials (RFC 9110,
        section 11.6.1).
        """

    def no_route(self, path: str) -> RequestRefused:
        """The refusal of a request to a path that no route has, after :meth:`path`."""
        del path
        return NotFound()

    @abstractmethod
    def failed(self) -> Response:
        """The response to a fault: says that it failed, not why."""

    @abstractmethod
    def options(self) -> Response:
        """The response to OPTIONS, apart from ``Allow``."""

    def refusal(self, error: Exception) -> RequestRefused | None:
        """The refusal that another error is reported as, or None when it is a fault."""
        del error
        return None

    def finished(self, request: Request, response: Response) -> Response:
        """The response with the headers that every response gets."""
        del request
        return response


WARNING_HEADER = "Pushhub-Warning"
"""Tells who changed settings what is odd about the change, which was made all the same."""


class Api(Generic[UseCasesT_contra, CallT]):
    """An HTTP API: requests in, responses out.

    Args:
        warnings: Says what is odd about a change of settings that was made, from the route's name and the body
            (:class:`pushhub.web.misspelt.Misspelt`); None where nothing is.
    """

    def __init__(
        self,
        *,
        routes: Iterable[Route[UseCasesT_contra, CallT]],
        use_cases: UseCasesT_contra,
        dialect: Dialect[CallT],
        warnings: Callable[[str, bytes], Sequence[str]] | None = None,
    ) -> None:
        self._warnings = warnings
        self._router = Router((each.method, each.path, each) for each in routes)
        self._use_cases = use_cases
        self._dialect = dialect

    def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Answer an API Gateway HTTP API event. Never raises."""
        return serve(event, answer=self.answer, refused=self._refused)

    def answer(self, request: Request) -> Response:
        """Answer a request. Never raises."""
        return self._dialect.finished(request, self._answer(request))

    def _answer(self, request: Request) -> Response:
        try:
            return self._handled(request)
        except Unauthorized as error:
            return _with_header(self._refused(error), "WWW-Authenticate", self._dialect.challenge(request, error))
        except RequestRefused as error:
            return self._refused(error)
        except Exception as error:  # noqa: BLE001 (the one place where faults end)
            if refusal := self._dialect.refusal(error):
                return self._refused(refusal)
            if passes(error):
                logger.warning("request_shed", method=request.method, path=self._to_log(request), error=str(error))
                return self._refused(Overloaded())
            # The caller is told that it failed, the log why. The query is not logged, as clients put tokens into it.
            logger.exception("request_failed", method=request.method, path=self._to_log(request))
            return self._dialect.failed()

    def _to_log(self, request: Request) -> str:
        """The path of a request without those of its parts that open something by themselves, as of a source's URL."""
        path = request.path
        try:
            _, names = self._router.find(request.method, self._dialect.path(request))
        except RequestRefused:
            return path
        for name, text in names.items():
            if named_like_a_secret(name):
                path = path.replace(text, MASK)
        return path

    def _handled(self, request: Request) -> Response:
        path = self._dialect.path(request)
        if request.method == "OPTIONS" and not self._router.has("OPTIONS", path):
            return _allowing(self._dialect.options(), self._router.allowed(path))
        try:
            route, names = self._router.find(request.method, path)
        except NotFound:
            raise self._dialect.no_route(path) from None
        if len(request.body) > self._dialect.max_request_bytes:
            raise TooLarge(self._dialect.max_request_bytes)
        call = self._dialect.admit(route, request, names)
        if route.exact and (warnings := self._warned_of(route, request)):
            raise Invalid("; ".join(warnings))
        if not route.is_audited:
            return route.handler(self._use_cases, call)
        response = route.handler(self._use_cases, call) if audit.trail is None else self._audited(route, call)
        return self._warned(route, request, response)

    def _warned(self, route: Route[UseCasesT_contra, CallT], request: Request, response: Response) -> Response:
        """The response to a change of settings, with what is odd about it."""
        warnings = self._warned_of(route, request)
        return _with_header(response, WARNING_HEADER, "; ".join(warnings)) if warnings else response

    def _warned_of(self, route: Route[UseCasesT_contra, CallT], request: Request) -> Sequence[str]:
        return self._warnings(route.name, request.body) if self._warnings and route.body is Body.JSON else ()

    def _audited(self, route: Route[UseCasesT_contra, CallT], call: CallT) -> Response:
        """Carry out a request that changes something, between two entries of the audit trail."""
        change, request = Change(who=self._dialect.identity(call)), call.request
        viewed = None if request.method == "POST" else self._view(call)
        names = {name: MASK if named_like_a_secret(name) else value for name, value in call.names.items()}
        audit.asked(
            change,
            action=route.name,
            where={"address": request.source_ip, "agent": request.headers.get("user-agent", "")[:200]},
            what=f"{request.method} {route.path.format_map(names)}",
            body=request.body,
            before=viewed,
        )
        try:
            response = route.handler(self._use_cases, call)
        except RequestRefused as error:
            audit.ended(change, status=self._dialect.refused(error).status)
            raise
        except Exception:
            audit.ended(change, status=None)
            raise
        created = response.body.get("id") if isinstance(response.body, Mapping) else None
        audit.ended(
            change,
            status=response.status,
            created=created if isinstance(created, str) else "",
            after=self._view_after(call) if request.method in ("PUT", "PATCH") else None,
        )
        return response

    def _view_after(self, call: CallT) -> Any:
        """The same after a change, which is done whether it can be seen or not."""
        try:
            return self._view(call)
        except Exception:  # noqa: BLE001 (the caller's answer does not depend on it)
            logger.exception("audit_view_failed", path=call.request.path)
            return None

    def _view(self, call: CallT) -> Any:
        """What a GET of the same path shows; None if there is nothing to see."""
        try:
            route, _ = self._router.find("GET", self._dialect.path(call.request))
            if not route.only_looks:
                return None
            looking = replace(call, request=replace(call.request, method="GET", body=b""))
            return route.handler(self._use_cases, looking).body
        except RequestRefused:
            return None

    def _refused(self, error: RequestRefused) -> Response:
        response = self._dialect.refused(error)
        if isinstance(error, TryLater | Overloaded):
            return _with_header(response, "Retry-After", str(error.retry_after_s))
        return _allowing(response, error.allowed) if isinstance(error, MethodNotAllowed) else response


def passes(error: Exception) -> bool:
    """Whether the same request will probably succeed a little later: its time was over, others wrote first, a service
    was asked too often, or what it needs is no part of the hub.
    """
    passing = Overdue | Contended | Conflict | SearchUnavailable
    return isinstance(error, passing) or (isinstance(error, Unavailable) and (error.throttled or deadline.is_near))


def _allowing(response: Response, methods: Iterable[str]) -> Response:
    return _with_header(response, "Allow", ", ".join(methods))


def _with_header(response: Response, name: str, value: str) -> Response:
    return replace(response, headers={**response.headers, name: value})
