"""Notifications are found and listed by the catalogue, as messages of queues are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.engine.component import Component
from pushhub.engine.model.search import Found
from pushhub.notifications.model.records import DIALECT
from pushhub.notifications.model.topic import Commit, Topic, sequence_of

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.engine.model.search import IndexEntry
    from pushhub.notifications.ports import TopicStore

KIND = "topic"

PUBLISHED = "published"
"""State of every notification: who has got it is in the backlogs of its subscribers, and not looked up."""


_KEPT = 8
"""Commits, of up to 300 KB, that are kept in memory: one is asked for up to a hundred times in a row."""


class TopicFinder(Component):
    """Implements :class:`pushhub.engine.ports.Finder` for notifications."""

    kind = KIND
    topics: TopicStore
    clock: Clock

    def __post_init__(self) -> None:
        self._kept: dict[tuple[Topic, int], Commit] = {}

    def found(self, entry: IndexEntry) -> Found | None:
        """The notification, until it expires."""
        name, kind, position = entry.queue.removeprefix(f"{DIALECT}/"), entry.queue_uid[:1], int(entry.queue_uid[1:])
        topic = Topic(project=entry.project, name=name, non_persistent=kind == "v")
        commit = self._commit(topic, sequence_of(position))
        notification = commit.notification(position) if commit else None
        if commit is None or notification is None or commit.expires_at <= self.clock.now():
            return None
        return Found(
            kind=KIND,
            of=name,
            message_id=notification.message_id,
            field=entry.field,
            receivers=(),
            accepted_at=commit.accepted_at,
            state=PUBLISHED,
            type=f"{notification.api} {notification.action}".strip(),
            content=notification.body.encode(errors="surrogatepass"),
        )

    def _commit(self, topic: Topic, sequence: int) -> Commit | None:
        """A commit; what is kept of it stays true, as commits do not change."""
        commit = self._kept.get((topic, sequence)) or self.topics.commits_at(topic, [sequence]).get(sequence)
        if commit is not None:
            self._kept = dict([*self._kept.items(), ((topic, sequence), commit)][-_KEPT:])
        return commit
