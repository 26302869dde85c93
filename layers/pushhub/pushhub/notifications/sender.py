"""The sender: looks at a backlog and sends what its consumers have room for.

One at a time per subscriber (the queue's FIFO group).

A look reads the backlog, sends, records what was sent, and starts over until there is nothing to do; it ends only after
a pass that began when the version it was woken for had been raised, so what was written before any wake-up of that
version is seen (see :mod:`notification_waker`).

A crash between sending and recording sends the same again; whatever was acknowledged meanwhile is noted on its
connection and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pushhub.base.conflicts import until_saved
from pushhub.base.errors import Conflict, Unavailable
from pushhub.notifications.consumers import FORGET_FROM, Disconnects, known_dead
from pushhub.notifications.log import APPEND_WITHIN_MS
from pushhub.notifications.model.backlog import MAX_HELD, WINDOW, Assigner, Backlog, Entry, absorb, record
from pushhub.notifications.model.topic import Commit, Notification, bucket_of, position_at, sequence_of
from pushhub.notifications.wire.frames import AckIds, frame

if TYPE_CHECKING:
    from pushhub.base.ports import Clock, Telemetry
    from pushhub.notifications.ports import (
        BacklogStore,
        Connection,
        ConnectionStore,
        Sockets,
        TopicStore,
        Wake,
    )
    from pushhub.notifications.waker import Waker

SENDS_PER_PASS = 250
"""Notifications sent before what was sent is recorded: what a crash may send twice."""

COMMITS_PER_PASS = 1_000
"""Commits read before what came of them is recorded."""

DEADLINE_MARGIN_MS = 4_000
"""Kept free at the end of an invocation to record what was sent."""

VOID_AFTER_MS = 2_000
"""A place in the log that is empty this long after it was taken is given up, milliseconds."""

VOIDS = 25
"""Wider holes are not filled: they are what expired notifications left behind."""

LOST_AFTER_MS = 3 * APPEND_WITHIN_MS
"""Nobody is writing into a place that was taken this long ago, milliseconds."""

_COMMITS_PER_READ = 100
_RETRY_S = 1


@dataclass(slots=True)
class _Pass:
    """One pass over a backlog: what it finds, plans and does."""

    backlog: Backlog
    connections: dict[str, Connection]
    assigner: Assigner
    up_to: int
    absorbs: bool
    """Acknowledgements came that the backlog does not know yet."""
    plan: list[tuple[str, Entry, Notification]] = field(default_factory=list)
    held: list[Entry] = field(default_factory=list)
    done: set[int] = field(default_factory=set)
    lapsed: list[tuple[int, int]] = field(default_factory=list)
    lapsed_up_to: int = -1
    """Where commits that expired one after the other end."""
    sent: dict[str, list[Entry]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    more: bool = False
    """Something was left because a window was full."""
    defer_s: int | None = None
    """Look again after so many seconds, as something is not there yet."""

    @property
    def acknowledged(self) -> frozenset[int]:
        """Acknowledgements noted on any of its connections."""
        return _noted(self.connections)

    @property
    def changes(self) -> bool:
        """Whether there is something to record."""
        moved = self.up_to > (self.backlog.next or 0)
        crowded = any(self.forgettable(each) for each in self.connections)
        return bool(self.sent or self.done or self.lapsed) or self.absorbs or moved or crowded

    def forgettable(self, connection_id: str) -> list[int]:
        """Acknowledgements of a connection that need not be noted any more once the pass is recorded.

        None while they are few.
        """
        noted = self.connections[connection_id].acknowledged
        absorbed = [each for each in noted if each < (self.backlog.next or 0)]
        return absorbed if len(absorbed) >= FORGET_FROM else []

    def lapse(self, first: int, last: int) -> None:
        """Note positions that expired, joined to the ones before."""
        if self.lapsed and first in (self.lapsed[-1][1] + 1, self.lapsed_up_to):
            first = self.lapsed.pop()[0]
        self.lapsed.append((first, last))

    def lapse_commit(self, commit: Commit) -> None:
        """Note what is left of a commit that expired; commits that follow each other make one pair,
        as there is nothing between them.
        """
        if commit.notifications:
            last = position_at(commit.sequence, len(commit.notifications) - 1)
            self.lapse(max(self.up_to, position_at(commit.sequence)), last)
        self.lapsed_up_to = position_at(commit.sequence + 1)


class NotificationSender:
    """Sends notifications.

    Args:
        topics: The logs.
        backlogs: The subscribers' backlogs.
        connections: Their connections, with what was acknowledged.
        sockets: Sends.
        disconnects: Takes dead consumers off.
        waker: Asks for another look when time is up.
        ack_ids: Makes ack ids.
        telemetry: Wide events.
        window: Unacknowledged notifications a connection may have.
    """

    def __init__(
        self,
        *,
        topics: TopicStore,
        backlogs: BacklogStore,
        connections: ConnectionStore,
        sockets: Sockets,
        disconnects: Disconnects,
        waker: Waker,
        ack_ids: AckIds,
        clock: Clock,
        telemetry: Telemetry,
        window: int = WINDOW,
    ) -> None:
        self._topics = topics
        self._backlogs = backlogs
        self._connections = connections
        self._sockets = sockets
        self._disconnects = disconnects
        self._waker = waker
        self._ack_ids = ack_ids
        self._clock = clock
        self._telemetry = telemetry
        self._window = window

    def look(self, wake: Wake, remaining_ms: Callable[[], int]) -> int | None:
        """Send what there is to send.

        Args:
            wake: The backlog to look at.
            remaining_ms: Milliseconds the invocation has left.

        Returns:
            None when the wake-up is done with, else seconds after which it has to come back.

        Raises:
            Unavailable: One of our own calls failed; the wake-up has to come back.
        """
        backlog = self._backlogs.backlog(wake.topic, wake.subscriber)
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
                backlog = self._disconnects.drop(wake.topic, wake.subscriber, connection_id)
            if backlog is not None and remaining_ms() <= DEADLINE_MARGIN_MS:
                self._waker.these([backlog])
                return None
        return None

    def _pass(self, backlog: Backlog, may_go_on: Callable[[], bool]) -> _Pass:
        """Assign and send, once."""
        connections = self._connections.connections([each.connection_id for each in backlog.consumers])
        noted = _noted(connections)
        view = absorb(backlog, noted)
        this = _Pass(
            backlog=backlog,
            connections=connections,
            assigner=Assigner(view, noted, self._window),
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
        """Assign what has to be sent again, oldest first; read only what somebody has room for.

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
        sequences = sorted({sequence_of(entry.position) for _, entry in assigned})
        commits = self._topics.commits_at(view.topic, sequences)
        for target, entry in assigned:
            commit = commits.get(sequence_of(entry.position))
            notification = commit.notification(entry.position) if commit else None
            if commit is None or notification is None or commit.expires_at <= self._clock.now():
                this.done.add(entry.position)
                this.lapse(entry.position, entry.position)
            else:
                this.plan.append((target, entry, notification))
        return complete

    def _plan_new(self, this: _Pass) -> None:
        """Assign what the log holds from ``next`` on."""
        now = self._clock.now()
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
        """Commits in order as long as there is room, up to the first place that may still be filled."""
        first = expected = sequence_of(this.up_to)
        # Who was away for long has much to pass that expired: in steps, so that each run gets on and no record is made
        # of all at once.
        while len(this.plan) < SENDS_PER_PASS and expected - first < COMMITS_PER_PASS:
            limit = max(1, min(_COMMITS_PER_READ, this.assigner.room))
            commits = self._topics.commits(this.backlog.topic, expected, limit)
            if not commits:
                return
            for commit in commits:
                if commit.sequence != expected and not self._may_pass(this, expected, commit):
                    return
                yield commit
                expected = commit.sequence + 1
            if len(commits) < limit:
                # Whatever else there is, or comes meanwhile, is for the next pass, which follows as this one moved on.
                return

    def _may_pass(self, this: _Pass, expected: int, commit: Commit) -> bool:
        """Whether the empty places before a commit will stay empty for ever."""
        since = self._clock.now() - commit.previous_at
        wait_ms = (VOID_AFTER_MS if commit.sequence - expected <= VOIDS else LOST_AFTER_MS) - since
        if wait_ms > 0:
            this.defer_s = -(-wait_ms // 1000)
            return False
        if since >= LOST_AFTER_MS:
            return True
        try:
            for sequence in range(expected, commit.sequence):
                self._topics.append(_void(commit, sequence))
        except Conflict:
            this.defer_s = _RETRY_S
            return False
        return True

    def _send(self, this: _Pass, may_go_on: Callable[[], bool]) -> None:
        """Send what was assigned, in order; what cannot be sent is held,
        and with it whatever else its consumer was to be sent.
        """
        topic = this.backlog.topic
        broken: set[str] = set()
        for target, entry, notification in this.plan:
            if target in broken or target in this.gone or not may_go_on():
                this.held.append(entry)
                continue
            ack_id = self._ack_ids.write(entry.position, target if this.backlog.shared else "")
            try:
                arrived = self._sockets.send(target, frame(ack_id, topic, notification))
            except Unavailable:
                # Recorded and tried again later: what was sent before it must not be sent once more for that.
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
        """A consumer whose handshake is not finished is not gone: look again soon."""
        now = self._clock.now()
        for connection_id in sorted(this.gone):
            consumer = this.backlog.consumer(connection_id)
            if consumer is not None and not this.sent.get(connection_id) and not known_dead(consumer, now):
                this.gone.discard(connection_id)
                this.defer_s = _RETRY_S

    def _mark_stalled(self, this: _Pass) -> bool:
        """Have acknowledgements wake the sender exactly while something waits for room.

        Whether a mark was set just now.

        Then another pass has to follow: an acknowledgement may have come before the mark.
        """
        newly = False
        full = this.assigner.full if this.more else frozenset()
        for connection_id, connection in this.connections.items():
            stalled = connection_id in full
            if stalled != connection.stalled:
                self._connections.stall(connection_id, stalled=stalled)
                newly |= stalled
        return newly

    def _recorded(self, this: _Pass) -> Backlog | None:
        """Write what came of a pass; the backlog as it is then, None when the subscriber was removed."""
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
                now=self._clock.now(),
            )
            try:
                self._backlogs.save(recorded)
            except Conflict:
                backlog = self._backlogs.backlog(backlog.topic, backlog.subscriber)
                raise
            for connection_id in this.connections:
                if positions := this.forgettable(connection_id):
                    self._connections.forget(connection_id, positions)
            return recorded

        return until_saved(once, doing="recording what was sent")

    def _report(self, this: _Pass) -> None:
        """One wide event per pass that did something."""
        count = sum(len(each) for each in this.sent.values())
        if not count and not this.gone and not this.lapsed:
            return
        backlog = this.backlog
        self._telemetry.event(
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
        self._telemetry.count("NotificationsSent", count)


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
