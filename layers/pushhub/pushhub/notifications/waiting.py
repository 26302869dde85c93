"""What waits for the subscribers of a topic: whom an operator has to wake before the topic is full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.engine.component import Component
from pushhub.notifications.model.backlog import Backlog, absorb
from pushhub.notifications.model.topic import Commit, Head, Topic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pushhub.notifications.log import TopicLog
    from pushhub.notifications.ports import BacklogStore, Connection, ConnectionStore, TopicStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What waits for a subscriber.

    Attributes:
        shared: Whether several consumers may be connected.
        consumers: How many are.
        unacknowledged: Notifications that they were sent and have not acknowledged.
        size: Bytes of the topic from the oldest notification that the subscriber needs on, as the topic's limit counts.
        oldest_at: When that one was accepted, epoch milliseconds; None when nothing waits.
    """

    topic: Topic
    subscriber: str
    shared: bool
    consumers: int
    unacknowledged: int
    size: int
    oldest_at: int | None


class NotificationsWaiting(Component):
    """Tells what waits for subscribers.

    How many notifications wait is not told: that would mean to read all of them.
    """

    topics: TopicStore
    backlogs: BacklogStore
    connections: ConnectionStore  # What their consumers acknowledged.
    log: TopicLog  # Finds the oldest notification that is needed.

    def of(self, project_id: str, name: str) -> list[Waiting]:
        """What waits for each subscriber of the topics of a name, persistent and not.

        Args:
            name: The subscription's.
        """
        topics = (Topic(project=project_id, name=name, non_persistent=each) for each in (False, True))
        return [each for topic in topics for each in self._of_topic(topic)]

    def _of_topic(self, topic: Topic) -> Sequence[Waiting]:
        backlogs = self.backlogs.backlogs(topic)
        head = self.topics.head(topic) if backlogs else None
        if head is None:
            return []
        # What was acknowledged is in a backlog only when a good deal of it has gathered.
        connections = self.connections.connections([each.connection_id for one in backlogs for each in one.consumers])
        seen = [absorb(each, _noted(each, connections)) for each in backlogs]
        # Most need the same.
        commits = {each: self.log.oldest_needed(topic, each, head) for each in {one.oldest for one in seen}}
        return [_waiting(each, commits[each.oldest], head) for each in seen]


def _noted(backlog: Backlog, connections: Mapping[str, Connection]) -> frozenset[int]:
    found = (connections.get(each.connection_id) for each in backlog.consumers)
    return frozenset[int]().union(*(each.acknowledged for each in found if each))


def _waiting(backlog: Backlog, oldest: Commit | None, head: Head) -> Waiting:
    return Waiting(
        topic=backlog.topic,
        subscriber=backlog.subscriber,
        shared=backlog.shared,
        consumers=len(backlog.consumers),
        unacknowledged=sum(len(each.unacknowledged) for each in backlog.consumers),
        size=_size(backlog, oldest, head),
        oldest_at=oldest.accepted_at if oldest else None,
    )


def _size(backlog: Backlog, oldest: Commit | None, head: Head) -> int:
    if oldest is None:
        return 0
    done = sum(each.size for position, each in oldest.positions if position < (backlog.oldest or 0))
    # The commit may be newer than the head that was read before it.
    return max(0, head.size - oldest.size_before - done)
