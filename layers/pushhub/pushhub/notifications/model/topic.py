"""Topics of Notifications 2.0: an ordered log of commits, and the notifications in them.

A publish call appends one *commit* of up to a hundred notifications. A topic numbers its commits without gaps, so a
reader can tell a commit that is not written yet from the end of the log. A *position* names one notification: the
commit's sequence and the index in it, packed into one integer that increases in publishing order.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

COMMIT_NOTIFICATIONS = 100
"""Notifications one commit may hold; also what one publish request may hold."""

COMMIT_BYTES = 300_000
"""Bytes of notifications one commit may hold; a table item is limited to 400 KB."""

_INDEX_BITS = 7
_BUCKETS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """What subscribers read. A persistent and a non-persistent topic with the same name are two topics (Notifications
    2.0).

    Attributes:
        name: Name of the subscription(s) that feed it; letters and digits.
        non_persistent: Whether a subscriber that reconnects starts anew at the latest notification.
    """

    project: str
    name: str
    non_persistent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """One notification in a topic.

    Attributes:
        message_id: The id returned to its publisher.
        api: ``measurements``, ``events`` ...: the second part of the description header.
        source: The object it is about: the third part.
        action: ``CREATE``, ``UPDATE`` or ``DELETE``.
        body: One line of text: JSON, or base64 for binary data.
    """

    message_id: str
    api: str
    source: str
    action: str
    body: str

    @property
    def size(self) -> int:
        """Bytes it counts as in a backlog."""
        return len(self.body.encode()) + len(self.source.encode()) + len(self.api) + len(self.action)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The current state of a topic.

    Attributes:
        sequence: Sequence of the last reserved commit, 0 before the first.
        size: Total bytes ever committed.
        ceiling: ``size`` at which the backlog counts as full.
        reserved_at: When the last commit was reserved, epoch milliseconds.
        subscribers: Ids of the subscribers that every new commit is owed to.
    """

    uid: str
    sequence: int = 0
    size: int = 0
    ceiling: int = 0
    reserved_at: int = 0
    subscribers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A place in a topic's log, reserved by one publisher.

    Attributes:
        sequence: Sequence of the commit to write.
        size_before: Bytes committed to the topic before it.
        reserved_at: When, epoch milliseconds, by the publisher's clock.
        previous_at: When the place before it was reserved.
        subscribers: Ids of the subscribers the commit is owed to.
    """

    topic_uid: str
    sequence: int
    size_before: int
    reserved_at: int
    previous_at: int
    subscribers: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What one publish call put into a topic. Immutable. A commit without notifications marks a place that will not be
    filled.

    Attributes:
        sequence: Its number in the topic, from 1, without gaps.
        notifications: In order.
        expires_at: Epoch milliseconds from which it is no longer delivered.
        previous_at: When the place before it was reserved, epoch milliseconds.
        size_before: Bytes committed to the topic before it.
        owed_to: Ids of the subscribers it is owed to, sorted.
    """

    topic: Topic
    topic_uid: str
    sequence: int
    notifications: tuple[Notification, ...]
    accepted_at: int
    expires_at: int
    previous_at: int
    size_before: int
    owed_to: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of its notifications."""
        return sum(each.size for each in self.notifications)

    @property
    def positions(self) -> Iterator[tuple[int, Notification]]:
        """Each notification with its position."""
        return ((position_at(self.sequence, index), each) for index, each in enumerate(self.notifications))

    def notification(self, position: int) -> Notification | None:
        """The notification at a position of this commit, or None."""
        index = position & ((1 << _INDEX_BITS) - 1)
        if sequence_of(position) != self.sequence or index >= len(self.notifications):
            return None
        return self.notifications[index]


def position_at(sequence: int, index: int = 0) -> int:
    """The position of a notification.

    Args:
        sequence: Sequence of its commit.
        index: Its index in the commit, below 128.
    """
    return (sequence << _INDEX_BITS) | index


def sequence_of(position: int) -> int:
    """The commit a position lies in."""
    return position >> _INDEX_BITS


def place_in_topic(topic: Topic, position: int) -> str:
    """What stands for a queue's generation where the catalogue lists notifications: whether the topic is volatile, and
    the place of the notification.
    """
    return f"{'v' if topic.non_persistent else 'p'}{position}"


def bucket_of(source: str) -> int:
    """The bucket (of 65,536) a source falls into: consumers of a shared subscriber divide the buckets among them."""
    return zlib.crc32(source.encode("utf-8", "surrogatepass")) % _BUCKETS


class Line(NamedTuple):
    """A notification of a publish request, and its number in the request. Numbers increase within a topic."""

    number: int
    notification: Notification


def chunked(lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """The notifications of one publish request, split into commit-sized chunks."""
    chunk: list[Line] = []
    size = 0
    for each in lines:
        if chunk and (len(chunk) == COMMIT_NOTIFICATIONS or size + each.notification.size > COMMIT_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(each)
        size += each.notification.size
    if chunk:
        yield chunk
