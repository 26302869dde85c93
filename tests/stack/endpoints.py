"""Subscribers that follow a test's script and keep exactly what they were sent."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import requests
from tests.hostile import HostileEndpoint, Peer, Received

__all__ = ["Endpoint", "Push", "Recorder", "Step", "redirecting", "slowly"]

WAIT_SECONDS = 120.0
"""How long a push may take to arrive on a loaded machine, seconds."""


@dataclass(kw_only=True)
class Push:
    """One request to an endpoint.

    Attributes:
        received: Its bytes.
        at: When it had been read completely, in seconds of the monotonic clock.
        answered_at: When its answer was sent; 0 before.
    """

    received: Received
    at: float
    answered_at: float = 0.0

    @property
    def body(self) -> bytes:
        """The exact body."""
        return self.received.body

    @property
    def headers(self) -> dict[str, str]:
        """Headers by name as spelled on the wire."""
        return dict(self.received.headers)

    @property
    def message_id(self) -> str:
        """``Iron-Message-Id``."""
        return self.headers["Iron-Message-Id"]

    @property
    def message_url(self) -> str:
        """``Iron-Subscriber-Message-Url``, with the capability in its query."""
        return self.headers["Iron-Subscriber-Message-Url"]

    @property
    def reservation(self) -> dict[str, str]:
        """The body of an acknowledgement."""
        return {
            "reservation_id": self.headers["Iron-Reservation-Id"],
            "subscriber_name": self.headers["Iron-Subscriber-Name"],
        }

    def acknowledge(self, *, by_url: bool = False, token: str = "", body: Any = None) -> requests.Response:
        """Acknowledge the push.

        Args:
            by_url: With a bare DELETE of the URL as it was sent; otherwise by a JSON body, and without the query.
            token: Sent as ``Authorization``, if any.
            body: Instead of :attr:`reservation`.
        """
        headers = {"Authorization": f"OAuth {token}"} if token else {}
        if by_url:
            return requests.delete(self.message_url, headers=headers, timeout=40)
        url = self.message_url.partition("?")[0]
        return requests.delete(url, json=self.reservation if body is None else body, headers=headers, timeout=40)


Step = int | Callable[[Peer, Push], bool]
"""What to do with one push: a status to answer, or a function that answers and returns whether the connection stays
open.
"""


def slowly(seconds: float, step: Step = 200) -> Step:
    """Do the step after a delay."""

    def wait_first(peer: Peer, push: Push) -> bool:
        peer.stopping.wait(seconds)
        return _do(step, peer, push)

    return wait_first


def redirecting(status: int, location: str) -> Step:
    """Answer a redirect."""
    return lambda peer, _: peer.answer(status=f"{status} Elsewhere", headers=f"Location: {location}\r\n")


def _do(step: Step, peer: Peer, push: Push) -> bool:
    return peer.answer(status=f"{step} As Told") if isinstance(step, int) else step(peer, push)


@dataclass(kw_only=True)
class Endpoint:
    """One URL and its script.

    Attributes:
        url: Where to push to.
        steps: What to do with each push in turn; the last step is repeated.
        pushes: Pushes received.
    """

    url: str
    steps: Sequence[Step]
    pushes: list[Push] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def __call__(self, peer: Peer) -> bool:
        """Handle one push; a behaviour of :class:`tests.hostile.HostileEndpoint`."""
        push = Push(received=peer.request, at=time.monotonic())
        with self._changed:
            step = self.steps[min(len(self.pushes), len(self.steps) - 1)]
            self.pushes.append(push)
            self._changed.notify_all()
        try:
            return _do(step, peer, push)
        finally:
            push.answered_at = time.monotonic()

    def wait(self, count: int = 1, seconds: float = WAIT_SECONDS) -> list[Push]:
        """Wait until this many pushes have arrived; returns all that arrived."""
        with self._changed:
            self._changed.wait_for(lambda: len(self.pushes) >= count, seconds)
            came = list(self.pushes)
        assert len(came) >= count, f"{len(came)} of {count} pushes came to {self.url} within {seconds} s"
        return came


class Recorder:
    """A server of endpoints, to be used as a context manager. Thread-safe, as scenarios run side by side."""

    def __init__(self) -> None:
        self._server = HostileEndpoint({})
        self._numbers = itertools.count()

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.__exit__(kind, error, at)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._server.port

    def endpoint(self, *steps: Step, path: str = "") -> Endpoint:
        """A new endpoint.

        Args:
            steps: See :class:`Endpoint`; 200 for every push if there are none.
            path: Its path and query, when they matter; no other endpoint may share the first segment.
        """
        name = path.partition("/")[0].partition("?")[0] or f"e{next(self._numbers)}"
        endpoint = Endpoint(url=self._server.url(path or name), steps=steps or (200,))
        assert self._server.behaviours.setdefault(name, endpoint) is endpoint
        return endpoint

    def arrivals(self) -> int:
        """Total number of requests received."""
        return len(self._server.requests)
