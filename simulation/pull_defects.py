"""Defects of pull queues for :mod:`simulation.sabotage`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count, islice
from typing import Any

from pushhub.engine import bodies
from pushhub.engine.model.queue import Queue
from pushhub.ironmq import pull
from pushhub.ironmq.post import Post
from pushhub.ironmq.pull import PullQueues
from pushhub.ironmq.store import _pull_items, dynamodb_pull
from pushhub.ironmq.store.dynamodb_pull import DynamoDBPullStore
from pushhub.ironmq.store.pull_places import PullPlaces

Change = tuple[object, str, object]


def one_forgotten() -> Sequence[Change]:
    """Of the messages of a large post one gets no place."""
    real = PullPlaces.enter

    def enter(self: PullPlaces, items: Sequence[Any]) -> None:
        real(self, items[:-1] if len(items) > 4 else items)

    return [(PullPlaces, "enter", enter)]


def no_delay() -> Sequence[Change]:
    """Delayed messages are available at once."""
    real = _pull_items.first_place
    return [
        (
            dynamodb_pull,
            "first_place",
            lambda message, *nonce: real(replace(message, due_at=message.accepted_at), *nonce),
        )
    ]


def counted_from_two() -> Sequence[Change]:
    """The count of reservations is one too high from the second on."""
    real = _pull_items.decode_pull_message

    def decode(*given: Any) -> Any:
        held = real(*given)
        return replace(held, reserved_count=held.reserved_count + (held.reserved_count > 1))

    return [(dynamodb_pull, "decode_pull_message", decode)]


def never_back() -> Sequence[Change]:
    """A reservation that timed out gives nothing back."""
    real = _pull_items.place_until
    return [
        (
            dynamodb_pull,
            "place_until",
            lambda message_id, until, nonce: real(message_id, until + 10**10 if until else 0, nonce),
        )
    ]


def dead_one_early() -> Sequence[Change]:
    """A message becomes a dead letter one reservation too early."""
    real = PullQueues._moved_to_dead_letters

    def moved(self: PullQueues, queue: Queue, held: Any) -> bool:
        letters = queue.dead_letter
        less = letters and replace(letters, max_reservations=letters.max_reservations - 1)
        return real(self, replace(queue, dead_letter=less), held)

    return [(PullQueues, "_moved_to_dead_letters", moved)]


def dead_never() -> Sequence[Change]:
    """A message never becomes a dead letter."""
    return [(PullQueues, "_moved_to_dead_letters", lambda *_: False)]


def dead_are_lost() -> Sequence[Change]:
    """A dead letter is removed, and put nowhere."""
    return [(Post, "transfer", lambda *_, **__: None)]


def cut() -> Sequence[Change]:
    """Bodies end after 8 KiB."""
    real = bodies.body_of
    return [(pull, "body_of", lambda *given: real(*given)[:8192])]


def anothers_body() -> Sequence[Change]:
    """One of twenty messages has the body of the one before it."""
    real, numbers, last = bodies.body_of, count(), [b""]

    def body_of(*given: Any) -> bytes:
        before, last[0] = last[0], real(*given)
        return before if next(numbers) % 20 == 19 else last[0]

    return [(pull, "body_of", body_of)]


def released_at_once() -> Sequence[Change]:
    """The delay of a release is not waited."""
    real = PullQueues.release

    def release(self: PullQueues, queue: Queue, message_id: str, reservation_id: str, delay_s: int) -> None:
        real(self, queue, message_id, reservation_id, 0 * delay_s)

    return [(PullQueues, "release", release)]


def old_reservations_count() -> Sequence[Change]:
    """Who has a reservation that timed out may still delete."""
    return [(dynamodb_pull, "_HELD", "reservation_id = :held AND :now = :now")]


def some_deletions_in_vain() -> Sequence[Change]:
    """One of ten deletions is answered, and not made."""
    real, numbers = DynamoDBPullStore.delete, count()

    def delete(self: DynamoDBPullStore, *given: Any, **more: Any) -> None:
        if next(numbers) % 10 != 9:
            real(self, *given, **more)

    return [(DynamoDBPullStore, "delete", delete)]


def the_second_first() -> Sequence[Change]:
    """Who asks for one message gets the second one."""

    def front(self: DynamoDBPullStore, call: Any) -> list[Any]:
        found = list(islice(self._candidates(call, call.wanted + 10), call.wanted + 1))
        return found[1:] if len(found) > 1 else found

    return [(DynamoDBPullStore, "_front", front)]
