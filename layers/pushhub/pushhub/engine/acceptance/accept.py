"""The single entry point for messages: assigns ids, stores bodies, and makes each message of the hub's own only once.

The protocol decides what a message is and where it goes; once a call returns, the hub owes it. A push message is one
durable write, and the table's stream is the outbox that dispatch reads (docs/decisions/acceptance.md). Large bodies are
written first, so a stored message always has its bytes.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pushhub.base.errors import Conflict, Unavailable
from pushhub.base.ids import MessageIds, derived_message_id
from pushhub.engine.component import Component
from pushhub.engine.model.deflated import stored_as, stored_size
from pushhub.engine.ports import BodyStore, Once

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.base.ports import Clock
    from pushhub.engine.acceptance.ports import Workers
    from pushhub.engine.model.deflated import StoredBody
    from pushhub.engine.model.message import BodyRef, Message

INLINE_BODY_LIMIT = 8_192
"""Bodies that take up to this many bytes, compressed if that helps, are stored in the table with their message, larger
ones in the bodies bucket.
"""

ID_ROUNDS = 5
"""How often new ids are tried when one is already taken by another message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedBody:
    """A body that is stored, or small enough to be stored with its message.

    Attributes:
        inline: As it is stored with its message, or None when the bytes are stored at ``ref``.
        ref: Claim-check, or None when the body is in ``inline``.
        size: Bytes that were posted.
    """

    inline: StoredBody | None
    ref: BodyRef | None
    size: int


class Sink(Protocol):
    """Where messages are written: the store of push queues, or a protocol's own store."""

    def accept(self, messages: Sequence[Message]) -> None:
        """Write messages durably. Safe to repeat with the same messages.

        Raises:
            Conflict: An id belongs to another message; none of them was written.
        """

    def accept_once(self, message: Message) -> Once:
        """Write a message the hub makes itself (``cause`` set) unless its id is taken."""


class Ids(Component):
    """Makes the ids of messages."""

    workers: Workers  # Assigns this process its number when the first id is made.
    clock: Clock  # Ids rise with it.

    def __post_init__(self) -> None:
        self._ids: MessageIds | None = None

    def next(self) -> str:
        """A new id: 19 decimal digits, greater than any this process made before."""
        if self._ids is None:
            self._ids = MessageIds(self.workers.next_worker())
        return self._ids.next(self.clock.now())


class Accept:
    """Accepts messages."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids

    def next_id(self) -> str:
        """See :meth:`Ids.next`."""
        return self._ids.next()

    def new(self, sink: Sink, count: int, make: Callable[[Sequence[str]], Sequence[Message]]) -> Sequence[Message]:
        """Accept what a producer posted.

        Args:
            make: Builds the messages from the given ids; called again if an id turns out to be taken.

        Raises:
            Unavailable: The effect is unknown; the producer has to post again.
        """
        for _ in range(ID_ROUNDS):
            messages = make([self.next_id() for _ in range(count)])
            try:
                sink.accept(messages)
            except Conflict:
                continue
            return messages
        raise Unavailable("finding free message ids")

    def once(self, sink: Sink, make: Callable[[str], Message], *, cause: str, at: int) -> tuple[Message, Once]:
        """See :func:`accept_once`."""
        return accept_once(sink, make, cause=cause, at=at)


class AcceptBodies(Accept):
    """Accepts messages whose bodies may be large.

    Args:
        bodies: Where large bodies are stored, for as long as the protocol keeps its messages.
        clock: Dates what is stored.
    """

    def __init__(self, ids: Ids, *, bodies: BodyStore, clock: Clock) -> None:
        super().__init__(ids)
        self._bodies = bodies
        self._clock = clock

    def placed(self, project_id: str, bodies: Sequence[bytes]) -> list[PlacedBody]:
        """Write those bodies that are large, all into one object."""
        kept = [(each, stored_as(each)) for each in bodies]
        large = [body for body, stored in kept if stored_size(stored) > INLINE_BODY_LIMIT]
        refs = iter(self._bodies.put(project_id, large, self._clock.now()) if large else ())
        return [
            PlacedBody(inline=None, ref=next(refs), size=len(body))
            if stored_size(stored) > INLINE_BODY_LIMIT
            else PlacedBody(inline=stored, ref=None, size=len(body))
            for body, stored in kept
        ]


def accept_once(sink: Sink, make: Callable[[str], Message], *, cause: str, at: int) -> tuple[Message, Once]:
    """Accept a message made by the hub itself; repeating the call does not make it again.

    Args:
        make: Builds the message from the given id and the cause.
        cause: What it is made for: the same on each repetition for the same reason, and never used for another.
        at: When the cause happened, epoch milliseconds; the same on each repetition.

    Returns:
        The message, and whether it was written now or already existed.
    """
    for bump in itertools.count():
        message = make(derived_message_id(at, cause, bump))
        once = sink.accept_once(message)
        if once is not Once.TAKEN:
            return message, once
    raise AssertionError("unreachable: itertools.count() does not end")
