"""Moves the messages of a pull queue to another server with IronMQ's API: reserve, post, and only then delete.

A run that ends in the middle, however it ends, loses nothing: what was posted and not yet deleted comes back when its
reservation ends, and is moved a second time.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import click

from ..answers import Odd, sections, text
from ..rest import Refused, Rest, Unreachable

__all__ = ["End", "Shovel"]

BATCH: Final = 100
"""How many messages are reserved at a time: the most that IronMQ gives."""
POST_BYTES: Final = 1_000_000
"""Bytes of bodies in one post, so that a post with JSON's escapes stays below what servers take."""
RESERVED_S: Final = 600
"""Seconds for which messages are reserved: longer than all tries of a post."""
TRIES: Final = 6
LONGEST_WAIT_S: Final = 30.0
_LATER = frozenset({408, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """A queue, and how to reach it."""

    rest: Rest
    queue: str

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """A request below the queue, with the token as IronMQ's own servers want it."""
        shown = {"Authorization": f"OAuth {self.rest.token}"}
        return self.rest.call(method, self.rest.queue(self.queue, path), body, headers=shown)


@dataclass(frozen=True, slots=True)
class _Reserved:
    """A reserved message; ``exact``: its bytes, if they are no text (an addition of this hub)."""

    message_id: str
    reservation_id: str
    body: str
    exact: bytes | None

    @classmethod
    def of(cls, given: dict[str, Any]) -> _Reserved:
        exact = None
        if given.get("body_base64"):
            try:
                exact = base64.b64decode(text(given, "body_base64"), validate=True)
            except ValueError:
                raise Odd("a message's body is not base64") from None
        return cls(text(given, "id"), text(given, "reservation_id"), text(given, "body"), exact)


@dataclass(kw_only=True)
class Shovel:
    """Moves messages.

    Attributes:
        say: Told what a person should know.
        twice: Messages that could not be deleted where they came from after they were posted.
    """

    source: End
    target: End
    say: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep
    twice: int = 0

    def waiting(self) -> int:
        """How many messages the source says it has; 0 without such a queue."""
        try:
            answer = self.source.call("GET", "")
        except Refused as error:
            if error.status == 404:
                return 0
            raise
        queue = answer.get("queue", answer) if isinstance(answer, dict) else {}
        size = queue.get("size") if isinstance(queue, dict) else None
        if isinstance(queue, dict) and queue.get("type") not in (None, "pull"):
            raise click.ClickException(f"{self.source.queue} is a push queue: only pull queues can be moved")
        if not isinstance(size, int):
            raise Odd("its queue has no size")
        return size

    def run(self) -> Iterator[int]:
        """Move until nothing can be reserved any more; yields how many were moved at a time.

        Raises:
            click.ClickException: A server refuses, or does not answer after all tries. What was reserved and not moved
                has been released, or comes back when its reservation ends.
        """
        while reserved := self._reserve():
            left = list(reserved)
            try:
                while left:
                    part = _fitting(left)
                    self._post(part)
                    left = left[len(part) :]
                    self._delete(part)
                    yield len(part)
            except BaseException:
                self._release(left)
                raise

    def _reserve(self) -> list[_Reserved]:
        asked = {"n": BATCH, "timeout": RESERVED_S, "wait": 0, "delete": False}
        answer = self._often(self.source, "POST", "/reservations", asked)
        return [_Reserved.of(each) for each in sections(answer, "messages")]

    def _post(self, part: Sequence[_Reserved]) -> None:
        if part[0].exact is not None:
            self._often(self.target, "POST", "/webhook", part[0].exact)
        else:
            self._often(self.target, "POST", "/messages", {"messages": [{"body": each.body} for each in part]})

    def _delete(self, moved: Sequence[_Reserved]) -> None:
        ids = [{"id": each.message_id, "reservation_id": each.reservation_id} for each in moved]
        try:
            self._often(self.source, "DELETE", "/messages", {"ids": ids})
        except Refused as error:
            # Their reservation may have ended meanwhile; they are still there, and here as well.
            self.twice += len(moved)
            self.say(f"{len(moved)} messages were moved and are still there, so they will come twice: {error.message}")

    def _release(self, kept: Sequence[_Reserved]) -> None:
        """Give back what was not moved, so that nobody has to wait until its reservation ends. Tried once."""
        for each in kept:
            try:
                body = {"reservation_id": each.reservation_id}
                self.source.call("POST", f"/messages/{each.message_id}/release", body)
            except click.ClickException:
                self.say(f"what was not moved comes back by itself in {RESERVED_S // 60} minutes at most")
                return

    def _often(self, end: End, method: str, path: str, body: Any) -> Any:
        """A request, repeated while the server is too busy or does not answer. A repeated post may come twice."""
        for number in range(TRIES):
            try:
                return end.call(method, path, body)
            except (Refused, Unreachable) as error:
                later = isinstance(error, Unreachable) or error.status in _LATER
                if not later or number == TRIES - 1:
                    raise
                self.say(f"{error.message}; trying again")
            self.sleep(min(LONGEST_WAIT_S, 2.0**number))
        raise AssertionError


def _fitting(reserved: Sequence[_Reserved]) -> list[_Reserved]:
    """The first ones, at least one, that fit into one post; what is no text goes alone."""
    part: list[_Reserved] = []
    size = 0
    for each in reserved:
        if each.exact is not None:
            return part or [each]
        size += len(each.body.encode())
        if part and size > POST_BYTES:
            break
        part.append(each)
    return part
