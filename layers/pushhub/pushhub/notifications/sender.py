"""The sender: processes a backlog and sends what its consumers have room for.

One at a time per subscriber (the queue's FIFO group).

A look reads the backlog, sends, records what was sent, and repeats until there is nothing left to do. It ends only
after a pass that began after the version it was woken for had been raised, so it sees everything written before any
wake-up of that version (see :mod:`pushhub.notifications.waker`).

After a crash between sending and recording, the same notifications are sent again, except those already acknowledged,
which are noted on their connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pushhub.base.conflicts import until_saved
from pushhub.base.errors import Conflict, Unavailable
from pushhub.engine.component import Component
from pushhub.notifications.connections import Connections, known_dead
from pushhub.notifications.consumers import FORGET_FROM
from pushhub.notifications.log import APPEND_WITHIN_MS
from pushhub.notifications.model.backlog import MAX_HELD, WINDOW, Assigner, Backlog, Entry, absorb, record
from pushhub.notifications.model.topic import Commit, Notification, bucket_of, position_at, sequence_of
from pushhub.notifications.wire.frames import AckIds, frame

if TYPE_CHECKING:
    from pushhub.base.ports import Clock, Telemetry
    from pushhub.notifications.ports import (
        BacklogStore,
        Connection,
        TopicStore,
        WakeUp,
    )
    from pushhub.notifications.waker import Waker

SENDS_PER_PASS = 250
"""Notifications sent before they are recorded as sent; so many may be sent twice after a crash."""

READ_PER_PASS = 4_000_000
"""Bytes of commits that are read before what was sent of them is recorded, whether they have expired or just one of
their notifications is sent. A partition of the table gives 12 MB a second: a look that reads more at once fails, and so
does the next one."""

COMMITS_PER_PASS = 1_000
"""Commits read before their outcome is recorded."""

DEADLINE_MARGIN_MS = 4_000
"""Kept free at the end of an invocation to record what was sent."""

VOID_AFTER_MS = 2_000
"""A place in the log that is still empty this long after it was reserved is voided, milliseconds."""

VOIDS = 25
"""Wider gaps are not filled: they were left by expired notifications."""

LOST_AFTER_MS = 3 * APPEND_WITHIN_MS
"""After this long, nobody can still be writing into a reserved place, milliseconds."""

_COMMITS_PER_READ = 100
_RETURNED_PER_READ = 10
"""Commits, of up to 300 KB, from which something is sent again."""
_RETRY_S = 1


@dataclass(slots=True)
class _Pass:
    """The state of one pass over a backlog: what it finds, plans and does."""

    backlog: Backlog
    connections: dict[str, Connection]
    assigner: Assigner
    up_to: int
    absorbs: bool
    """Some acknowledgements are not in the backlog yet."""
    plan: list[tuple[str, Entry, Notification]] = field(default_factory=list)
    read: int = 0
    """Bytes of the commits that were read."""
    held: list[Entry] = field(default_factory=list)
    done: set[int] = field(default_factory=set)
    lapsed: list[tuple[int, int]] = field(default_factory=list)
    lapsed_up_to: int = -1
    """End of the last run of consecutive expired commits."""
    sent: dict[str, list[Entry]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    more: bool = False
    """Something was left because a window was full."""
    defer_s: int | None = None
    """Look again after this many seconds, as something is not there yet."""

    @property
    def acknowledged(self) -> frozenset[int]:
        """All acknowledgements noted on the backlog's connections."""
        return _noted(self.connections)

    @property
    def changes(self) -> bool:
        """Whether there is something to record."""
        moved = self.up_to > (self.backlog.next or 0)
        crowded = any(self.forgettable(each) for each in self.connections)
        return bool(self.sent or self.done or self.lapsed) or self.absorbs or moved or crowded

    def forgettable(self, connection_id: str) -> list[int]:
        """Acknowledgements of a connection that need not stay noted once the pass is recorded.

        Empty while there are only a few.
        """
        noted = self.connections[connection_id].acknowledged
        absorbed = [each for each in noted if each < (self.backlog.next or 0)]
        return absorbed if len(absorbed) >= FORGET_FROM else []

    def lapse(self, first: int, last: int) -> None:
        """Record expired positions, merged with the preceding ones."""
        if self.lapsed and first in (self.lapsed[-1][1] + 1, self.lapsed_up_to):
            first = self.lapsed.pop()[0]
        self.lapsed.append((first, last))

    def lapse_commit(self, commit: Commit) -> None:
        """Record the remaining positions of an expired commit. Consecutive commits are merged into one pair, as there
        is nothing between them.
        """
        if commit.notifications:
            last = position_at(commit.sequence, len(commit.notifications) - 1)
            self.lapse(max(self.up_to, position_at(commit.sequence)), last)
        self.lapsed_up_to = position_at(commit.sequence + 1)


class NotificationSender(Component):
    """Sends notifications."""

    topics: TopicStore
    backlogs: BacklogStore
    connections: Connections  # Their connections, with what was acknowledged.
    waker: Waker  # Asks for another look when time is up.
    ack_ids: AckIds
    clock: Clock
    telemetry: Telemetry
    window: int = WINDOW  # Unacknowledged notifications a connection may have.

    def look(self, wake: WakeUp, remaining_ms: Callable[[], int]) -> int | None:
        """Send everything that can be sent now.

        Args:
            wake: The wake-up that names the backlog.
            remaining_ms: Milliseconds the invocation has left.

        Returns:
            None when the wake-up is done, else the seconds after which it must be redelivered.

        Raises:
            Unavailable: One of our own calls failed; the wake-up must be redelivered.
        """
        backlog = self.backlogs.backlog(wake.topic, wake.subscriber)
        while backlog is not None and backlog.uid == wake.subscriber_uid and backlog.consumers:
            done = self._pass(backlog, lambda: remaining_ms() > DEADLINE_MARGIN_MS)
            self._report(done)
            newly_stalled = self._mark_stalled(done)
            if done.defer_s is not None and not done.changes and not done.gone:
                return done.defer_s
            if not done.changes and not done.gone and not newly_stalled and backlog.version > wake.version:
                return None
            backlog = self._recorded(done)
            for connection_id in done.gone:
                backlog = self.connections.drop(wake.topic, wake.subscriber, connection_id)
            if backlog is not None and remaining_ms() <= DEADLINE_MARGIN_MS:
                self.waker.these([backlog])
                return None
        return None

    def _pass(self, backlog: Backlog, may_go_on: Callable[[], bool]) -> _Pass:
        """Assign and send, once."""
        connections = self.connections.kept.connections([each.connection_id for each in backlog.consumers])
        noted = _noted(connections)
        view = absorb(backlog, noted)
        this = _Pass(
            backlog=backlog,
            connections=connections,
            assigner=Assigner(view, noted, self.window),
            up_to=view.next or 0,
            absorbs=view is not backlog,
        )
        this.gone = {each.connection_id for each in backlog.consumers if each.connection_id not in connections}
        if not this.gone:
            if self._plan_returned(this, view):
                self._plan_new(this)
            self._send(this, may_go_on)
        return this

    def _plan_returned(self, this: _Pass, view: Backlog) -> bool:
        """Assign what has to be sent again, oldest first; read only what a consumer has room for.

        Returns:
            Whether all of it was dealt with, so that newer notifications may follow in this pass.
        """
        assigned: list[tuple[str, Entry]] = []
        complete = True
        for entry in view.returned:
            if this.assigner.done(entry):
                this.done.add(entry.position)
            elif len(assigned) == SENDS_PER_PASS:
                complete = False
            elif target := this.assigner.assign(entry):
                assigned.append((target, entry))
            else:
                this.more = True
        of_commit: dict[int, list[tuple[str, Entry]]] = {}
        for target, entry in assigned:
            of_commit.setdefault(sequence_of(entry.position), []).append((target, entry))
        left = sorted(of_commit)
        while left and this.read < READ_PER_PASS:
            looked_at, left = left[:_RETURNED_PER_READ], left[_RETURNED_PER_READ:]
            commits = self.topics.commits_at(view.topic, looked_at)
            this.read += sum(each.size for each in commits.values())
            for sequence in looked_at:
                for target, entry in of_commit[sequence]:
                    self._plan_again(this, target, entry, commits.get(sequence))
        # What was not read is still returned
        return complete and not left

    def _plan_again(self, this: _Pass, target: str, entry: Entry, commit: Commit | None) -> None:
        """Send something again, unless it is gone or has expired."""
        notification = commit.notification(entry.position) if commit else None
        if commit is None or notification is None or commit.expires_at <= self.clock.now():
            this.done.add(entry.position)
            this.lapse(entry.position, entry.position)
        else:
            this.plan.append((target, entry, notification))

    def _plan_new(self, this: _Pass) -> None:
        """Assign notifications from the log, from ``next`` on."""
        now = self.clock.now()
        for commit in self._commits(this):
            if commit.expires_at <= now:
                this.lapse_commit(commit)
            elif not self._assign_commit(this, commit):
                return
            this.up_to = position_at(commit.sequence + 1)

    def _assign_commit(self, this: _Pass, commit: Commit) -> bool:
        """Assign one commit; False when nothing more is to be assigned in this pass."""
        for position, notification in commit.positions:
            if position < this.up_to:
                continue
            entry = Entry(position, bucket_of(notification.source))
            if not this.assigner.done(entry):
                waiting = len(this.held) + len(this.backlog.returned)
                if this.assigner.room == 0 or waiting >= MAX_HELD:
                    this.more = True
                    return False
                if len(this.plan) == SENDS_PER_PASS:
                    return False
                if target := this.assigner.assign(entry):
                    this.plan.append((target, entry, notification))
                else:
                    this.held.append(entry)
                    this.more = True
            this.up_to = position + 1
        return True

    def _commits(self, this: _Pass) -> Iterator[Commit]:
        """Commits in order while there is room, up to the first place that may still be filled."""
        first = expected = sequence_of(this.up_to)
        # After a long absence, many expired positions have to be skipped. This is done in steps, so that each run makes
        # progress and they do not all end up in one record.
        while len(this.plan) < SENDS_PER_PASS and this.read < READ_PER_PASS and expected - first < COMMITS_PER_PASS:
            limit = max(1, min(_COMMITS_PER_READ, this.assigner.room))
            commits = self.topics.commits(this.backlog.topic, expected, limit)
            if not commits:
                return
            for commit in commits:
                if commit.sequence != expected and not self._may_pass(this, expected, commit):
                    return
                this.read += commit.size
                yield commit
                expected = commit.sequence + 1
            if len(commits) < limit:
                # Anything else is left to the next pass, which follows because this one made progress.
                return

    def _may_pass(self, this: _Pass, expected: int, commit: Commit) -> bool:
        """Whether the empty places before a commit will stay empty for ever."""
        since = self.clock.now() - commit.previous_at
        wait_ms = (VOID_AFTER_MS if commit.sequence - expected <= VOIDS else LOST_AFTER_MS) - since
        if wait_ms > 0:
            this.defer_s = -(-wait_ms // 1000)
            return False
        if since >= LOST_AFTER_MS:
            return True
        try:
            for sequence in range(expected, commit.sequence):
                self.topics.append(_void(commit, sequence))
        except Conflict:
            this.defer_s = _RETRY_S
            return False
        return True

    def _send(self, this: _Pass, may_go_on: Callable[[], bool]) -> None:
        """Send what was assigned, in order. If a notification cannot be sent, it is held along with everything else
        assigned to that consumer.
        """
        topic = this.backlog.topic
        broken: set[str] = set()
        for target, entry, notification in this.plan:
            if target in broken or target in this.gone or not may_go_on():
                this.held.append(entry)
                continue
            ack_id = self.ack_ids.write(entry.position, target if this.backlog.shared else "")
            try:
                arrived = self.connections.sockets.send(target, frame(ack_id, topic, notification))
            except Unavailable:
                # The failure is recorded and retried later, so that what was sent before it is not sent again.
                broken.add(target)
                this.defer_s = _RETRY_S
                this.held.append(entry)
                continue
            if arrived:
                this.sent.setdefault(target, []).append(entry)
            else:
                this.gone.add(target)
                this.held.append(entry)
        self._spare_newcomers(this)

    def _spare_newcomers(self, this: _Pass) -> None:
        """A consumer whose handshake is not finished is not gone: check again soon."""
        now = self.clock.now()
        for connection_id in sorted(this.gone):
            consumer = this.backlog.consumer(connection_id)
            if consumer is not None and not this.sent.get(connection_id) and not known_dead(consumer, now):
                this.gone.discard(connection_id)
                this.defer_s = _RETRY_S

    def _mark_stalled(self, this: _Pass) -> bool:
        """Set or clear the marks that make acknowledgements wake the sender: set only while something waits for room.

        Returns whether a mark was newly set.

        If so, another pass must follow, as an acknowledgement may have arrived before the mark.
        """
        newly = False
        full = this.assigner.full if this.more else frozenset()
        for connection_id, connection in this.connections.items():
            stalled = connection_id in full
            if stalled != connection.stalled:
                self.connections.kept.stall(connection_id, stalled=stalled)
                newly |= stalled
        return newly

    def _recorded(self, this: _Pass) -> Backlog | None:
        """Write the result of a pass; returns the resulting backlog, None when the subscriber was removed."""
        backlog: Backlog | None = this.backlog

        def once() -> Backlog | None:
            nonlocal backlog
            if backlog is None or backlog.uid != this.backlog.uid:
                return None
            recorded = record(
                absorb(backlog, this.acknowledged),
                sent=this.sent,
                held=this.held,
                done=this.done,
                lapsed=this.lapsed,
                up_to=this.up_to,
                now=self.clock.now(),
            )
            try:
                self.backlogs.save(recorded)
            except Conflict:
                backlog = self.backlogs.backlog(backlog.topic, backlog.subscriber)
                raise
            for connection_id in this.connections:
                if positions := this.forgettable(connection_id):
                    self.connections.kept.forget(connection_id, positions)
            return recorded

        return until_saved(once, doing="recording what was sent")

    def _report(self, this: _Pass) -> None:
        """One wide event per pass that did something."""
        count = sum(len(each) for each in this.sent.values())
        if not count and not this.gone and not this.lapsed:
            return
        backlog = this.backlog
        self.telemetry.event(
            "notifications_sent",
            project=backlog.topic.project,
            topic=backlog.topic.name,
            subscriber=backlog.subscriber,
            subscriber_uid=backlog.uid,
            sent=count,
            consumers=len(backlog.consumers),
            gone=len(this.gone),
            lapsed=len(this.lapsed),
            waiting=this.more,
        )
        self.telemetry.count("NotificationsSent", count)


def _noted(connections: Mapping[str, Connection]) -> frozenset[int]:
    return frozenset().union(*(each.acknowledged for each in connections.values()))


def _void(after: Commit, sequence: int) -> Commit:
    return Commit(
        topic=after.topic,
        topic_uid=after.topic_uid,
        sequence=sequence,
        notifications=(),
        accepted_at=after.previous_at,
        expires_at=after.expires_at,
        previous_at=after.previous_at,
        size_before=after.size_before,
    )
