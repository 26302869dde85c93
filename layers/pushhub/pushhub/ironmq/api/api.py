"""The queue API (IronMQ v3) as one object: requests in, responses out. Both HTTP functions serve it whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pushhub.base.errors import RequestRefused, TooLarge, Unauthorized
from pushhub.base.ports import CheckUrl, Clock
from pushhub.cloud.observability import logger
from pushhub.engine.ports import BodyStore, ConfigStore, MessageStore
from pushhub.engine.target import Targets
from pushhub.engine.tokens import Tokens
from pushhub.ironmq.acknowledge import Acknowledge
from pushhub.ironmq.api.call import Call
from pushhub.ironmq.api.messages import MessageRoutes
from pushhub.ironmq.api.queues import QueueRoutes
from pushhub.ironmq.ports import LineStore
from pushhub.ironmq.post import Post
from pushhub.ironmq.pull import Lines
from pushhub.ironmq.push_messages import PushMessages
from pushhub.ironmq.queues import Queues
from pushhub.ironmq.subscribers import Registration, Subscribers
from pushhub.ironmq.wire.errors import FAULT_MESSAGE, status_of
from pushhub.web.http import MethodNotAllowed, Request, Response, Router, serve
from pushhub.web.json import MAX_REQUEST_BYTES

__all__ = ["IronApi"]

API_VERSION = "3"
QUEUES = "/3/projects/{project}/queues"
QUEUE = QUEUES + "/{queue}"
MESSAGES = QUEUE + "/messages"
MESSAGE = MESSAGES + "/{message}"


@dataclass(frozen=True, slots=True)
class _Route:
    """A handler and how its requests are read.

    Attributes:
        answer: The handler.
        json_body: Whether a body is JSON; if not, it is raw or ignored.
        without_token: Whether the handler itself decides about requests without a valid token.
        public: Whether no token is asked for.
    """

    answer: Callable[[Call], Response]
    json_body: bool = True
    without_token: bool = False
    public: bool = False


class IronApi:
    """The queue API.

    Args:
        post: Posts messages.
        targets: All kinds of subscribers.
        config: Projects, tokens, queues.
        messages: Messages of push queues.
        lines: Lines of pull queues.
        bodies: Large bodies.
        clock: Time.
        check_url: The egress guard's check of a subscriber URL at registration.
    """

    def __init__(
        self,
        *,
        post: Post,
        targets: Targets,
        config: ConfigStore,
        messages: MessageStore,
        lines: LineStore,
        bodies: BodyStore,
        clock: Clock,
        check_url: CheckUrl,
    ) -> None:
        self._tokens = Tokens(config)
        registration = Registration(targets=targets, config=config, check_url=check_url, clock=clock)
        queues = Queues(config=config, messages=messages, lines=lines, registration=registration, clock=clock)
        push_messages = PushMessages(messages=messages, bodies=bodies, clock=clock)
        about_queues = QueueRoutes(queues=queues, subscribers=Subscribers(config=config, registration=registration))
        about_messages = MessageRoutes(
            post=post,
            queues=queues,
            lines=Lines(config=config, lines=lines, bodies=bodies, post=post, clock=clock),
            push_messages=push_messages,
            acknowledge=Acknowledge(config=config, messages=messages, push_messages=push_messages, clock=clock),
        )
        self._router = Router(_routes(about_queues, about_messages))

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
            # The caller learns that it failed, the log learns why; the query stays out of it, as clients put tokens into it.
            logger.exception("request_failed", method=request.method, path=request.path)
            return Response(status=500, body={"msg": FAULT_MESSAGE})

    def _answer(self, request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response(status=200, body={"msg": "OK"}, headers=_allow(self._router.allowed(request.path)))
        route, names = self._router.find(request.method, request.path)
        if len(request.body) > MAX_REQUEST_BYTES:
            raise TooLarge(MAX_REQUEST_BYTES)
        call = Call(request=request, names=names, json_body=route.json_body)
        if not route.public:
            call.authorized = self._tokens.allow(call.project, call.token())
            if not (call.authorized or route.without_token):
                raise Unauthorized
        return route.answer(call)


def _routes(queues: QueueRoutes, messages: MessageRoutes) -> list[tuple[str, str, _Route]]:
    """The endpoint table."""
    return [
        ("GET", "/version", _Route(_version, json_body=False, public=True)),
        ("GET", QUEUES, _Route(queues.list, json_body=False)),
        ("PUT", QUEUE, _Route(queues.put)),
        ("GET", QUEUE, _Route(queues.show, json_body=False)),
        ("PATCH", QUEUE, _Route(queues.change)),
        ("DELETE", QUEUE, _Route(queues.delete)),
        ("POST", QUEUE + "/subscribers", _Route(queues.add_subscribers)),
        ("PUT", QUEUE + "/subscribers", _Route(queues.replace_subscribers)),
        ("DELETE", QUEUE + "/subscribers", _Route(queues.remove_subscribers)),
        ("POST", MESSAGES, _Route(messages.post)),
        ("GET", MESSAGES, _Route(messages.peek, json_body=False)),
        ("DELETE", MESSAGES, _Route(messages.delete_many)),
        ("POST", QUEUE + "/webhook", _Route(messages.webhook, json_body=False)),
        ("POST", QUEUE + "/reservations", _Route(messages.reserve)),
        ("GET", MESSAGE, _Route(messages.show, json_body=False)),
        ("DELETE", MESSAGE, _Route(messages.delete, without_token=True)),
        ("POST", MESSAGE + "/touch", _Route(messages.touch)),
        ("POST", MESSAGE + "/release", _Route(messages.release)),
        ("GET", MESSAGE + "/subscribers", _Route(messages.statuses, json_body=False)),
    ]


def _version(_: Call) -> Response:
    return Response(status=200, body={"version": API_VERSION})


def _allow(methods: tuple[str, ...]) -> dict[str, str]:
    return {"Allow": ", ".join(methods)}


def _refused(error: RequestRefused) -> Response:
    if isinstance(error, MethodNotAllowed):
        return Response(status=405, body={"msg": error.message}, headers=_allow(error.allowed))
    return Response(status=status_of(error), body={"msg": error.message})
