"""A sender that answers by script instead of by HTTP."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import responses

from tests.fakes.clock import FakeClock

from pushhub.base.ports import PushRequest
from pushhub.base.verdict import Answer


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One scripted answer.

    Attributes:
        status_code: HTTP status; leave 0 with an ``error_class``.
        body: The answer's body.
        headers: The answer's headers, names in lower case.
        error_class: As in :class:`pushhub.base.verdict.Answer`.
        message: One line; made from the status when empty.
        takes_ms: How long the exchange takes; the clock advances by that.
        meanwhile: Called while the request is open (e.g. to acknowledge before answering).
    """

    status_code: int = 0
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    error_class: str = ""
    message: str = ""
    takes_ms: int = 0
    meanwhile: Callable[[PushRequest], None] | None = None


class FakeSender:
    """Answers each URL by its script; the script's last reply repeats for ever.

    Args:
        clock: Provides the answers' times, and advances by ``takes_ms``.
        default: Answer for URLs without a script.

    Attributes:
        requests: Every request made, in order.
    """

    def __init__(self, clock: FakeClock, default: Reply | int = 200) -> None:
        self._clock = clock
        self._default = _reply(default)
        self._scripts: dict[str, list[Reply]] = {}
        self._lock = threading.Lock()
        self.requests: list[PushRequest] = []

    def script(self, url: str, *replies: Reply | int) -> None:
        """Set what a URL answers, in order; a bare number stands for that status."""
        self._scripts[url] = [_reply(each) for each in replies]

    def requests_to(self, url: str) -> list[PushRequest]:
        """The requests made to one URL, in order."""
        return [each for each in self.requests if each.url == url]

    def send(self, request: PushRequest) -> Answer:
        with self._lock:
            self.requests.append(request)
            script = self._scripts.get(request.url) or [self._default]
            reply = script.pop(0) if len(script) > 1 else script[0]
        started_at = self._clock.now()
        if reply.meanwhile is not None:
            reply.meanwhile(request)
        finished_at = self._clock.advance(ms=reply.takes_ms)
        body = reply.body[: request.answer_limit]
        return Answer(
            status_code=reply.status_code,
            message=reply.message or reply.error_class or responses.get(reply.status_code, ""),
            error_class=reply.error_class,
            body=body,
            headers=dict(reply.headers),
            started_at=started_at,
            finished_at=finished_at,
            bytes_out=len(request.body),
            bytes_in=len(body),
        )


def _reply(reply: Reply | int) -> Reply:
    return Reply(status_code=reply) if isinstance(reply, int) else reply
