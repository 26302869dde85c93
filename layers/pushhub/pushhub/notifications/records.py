"""Makes delivery records of notifications from changes of their table: the change gives the positions, the topics their
contents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pushhub.base.errors import Unavailable
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
    from pushhub.base.ports import Clock
    from pushhub.engine.model.record import DeliveryRecord
    from pushhub.notifications.model.topic import Commit, Topic
    from pushhub.notifications.ports import BacklogStore, TopicStore

_COMMITS_PER_READ = 100
_SINGLE_PER_READ = 10
"""Commits, of up to 300 KB, that are read by their places: a partition of the table gives 12 MB a second."""
_TRIES = 10
_AGAIN_S = 1.0

Found = TypeVar("Found")


class NotificationRecords(Component):
    """Makes records of changes.

    A full topic is read in several seconds, however often the table refuses: a batch that fails is begun anew, and
    holds up the records behind it.
    """

    topics: TopicStore
    backlogs: BacklogStore  # Tell what is still owed when a commit is removed by age.
    clock: Clock  # Waits until the table gives more.

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
        commits = self._at(topic, sorted(sequences))
        return tuple(records_of_backlog(change, commits, self._range(topic, passed)))

    def _at(self, topic: Topic, sequences: Sequence[int]) -> dict[int, Commit]:
        commits: dict[int, Commit] = {}
        for start in range(0, len(sequences), _SINGLE_PER_READ):
            some = sequences[start : start + _SINGLE_PER_READ]
            commits |= self._patiently(partial(self.topics.commits_at, topic, some))
        return commits

    def _patiently(self, read: Callable[[], Found]) -> Found:
        """What is read, once the table gives it."""
        for _ in range(_TRIES - 1):
            try:
                return read()
            except Unavailable as error:
                if not error.throttled:
                    raise
            self.clock.sleep(_AGAIN_S)
        return read()

    def _range(self, topic: Topic, passed: tuple[int, int] | None) -> Iterator[Commit]:
        if passed is None:
            return
        first, last = passed

        def following() -> list[Commit]:
            return self.topics.commits(topic, first, min(_COMMITS_PER_READ, last - first + 1))

        while commits := self._patiently(following):
            for commit in commits:
                if commit.sequence > last:
                    return
                yield commit
            first = commits[-1].sequence + 1
            if first > last:
                return
