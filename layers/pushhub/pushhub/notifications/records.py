"""Makes delivery records of notifications from changes of their table: the change gives the positions, the topics their
contents.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pushhub.engine.component import Component
from pushhub.notifications.model.records import (
    BacklogChange,
    CommitChange,
    needed_of_change,
    records_of_backlog,
    records_of_commit,
    records_of_expiry,
)

if TYPE_CHECKING:
    from pushhub.engine.model.record import DeliveryRecord
    from pushhub.notifications.model.topic import Commit, Topic
    from pushhub.notifications.ports import BacklogStore, TopicStore

_COMMITS_PER_READ = 100


class NotificationRecords(Component):
    """Makes records of changes."""

    topics: TopicStore
    backlogs: BacklogStore  # Tell what is still owed when a commit is removed by age.

    def of(self, change: BacklogChange | CommitChange) -> tuple[DeliveryRecord, ...]:
        """The records of one change, in order. Deterministic: a repetition gives the same ones."""
        if isinstance(change, CommitChange):
            if not change.removed:
                return tuple(records_of_commit(change.commit))
            backlogs = self.backlogs.backlogs(change.commit.topic) if change.commit.owed_to else []
            return tuple(records_of_expiry(change.commit, backlogs, change.changed_at))
        sequences, passed = needed_of_change(change)
        if change.before is None or (not sequences and passed is None):
            return ()
        topic = change.before.topic
        commits = self.topics.commits_at(topic, sorted(sequences))
        return tuple(records_of_backlog(change, commits, self._range(topic, passed)))

    def _range(self, topic: Topic, passed: tuple[int, int] | None) -> Iterator[Commit]:
        if passed is None:
            return
        first, last = passed
        while commits := self.topics.commits(topic, first, min(_COMMITS_PER_READ, last - first + 1)):
            for commit in commits:
                if commit.sequence > last:
                    return
                yield commit
            first = commits[-1].sequence + 1
            if first > last:
                return
