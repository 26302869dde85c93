"""Notifications: what each subscriber's consumers must be sent, from what was published and answered, which connections
they had, what came on them, and what they acknowledged.

A notification comes with its bytes. After a reconnect, exactly what was not acknowledged comes again, in order and
before anything new, and what was acknowledged never; of a shared subscriber, whoever is connected gets it. On one
connection each comes once, and no more than a window of them is unacknowledged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from simulation.promises.judgement import SECOND, Faults, Judgement, moment

WINDOW = 1_000
AGAIN_S = 90
"""A connection that lasts so long has been sent what was not acknowledged."""

GONE_S = 720
"""A client that vanishes without a word is known to be gone after so long: the gateway closes what says nothing for ten
minutes, and the hub, if it is not told, looks at it soon after.
"""

NOTED_S = 5
"""So long after it was sent, an acknowledgement on a connection that stays open has certainly been heard."""

OTHER_BYTES, NOT_AGAIN, AGAIN = "other bytes than were published", "not sent again", "sent after its acknowledgement"
OUT_OF_ORDER, TOO_MANY = "sent again out of order", "more than its window"
NEVER_PUBLISHED, TWICE = "sent and never published", "twice on one connection"


@dataclass(frozen=True)
class Connection:
    """A consumer's connection.

    Attributes:
        name: Its name.
        opened: When its consumer knew that it is open, microseconds.
        ended: When it ended; the end of the run if it did not.
        vanished: Whether its consumer was gone then without a word.
    """

    name: str
    opened: int
    ended: int
    vanished: bool = False


@dataclass(frozen=True)
class Frame:
    """What came on a connection.

    Attributes:
        at: When, microseconds.
        connection: Where.
        position: Its place in the topic.
        key: Which notification it says it is.
        content: What it holds.
        acknowledged: When its consumer sent the acknowledgement, or None.
        noted: When that was certainly heard; None if it was not, or nobody knows.
    """

    at: int
    connection: str
    position: int
    key: tuple[int, int]
    content: str
    acknowledged: int | None = None
    noted: int | None = None


class Notifications:
    """Judges a run.

    Args:
        judgement: Where the facts go.
        faults: What the fault plan did, under the name "" where it struck what sends and hears.
        ends: When the run ended, microseconds.
    """

    def __init__(self, judgement: Judgement, faults: Faults, *, ends: int) -> None:
        self._judgement = judgement
        self._faults = faults
        self._ends = ends

    def judge(
        self,
        contents: Mapping[tuple[int, int], str],
        frames: Sequence[Frame],
        connections: Sequence[Connection],
        *,
        shared: bool,
    ) -> None:
        """Judge a subscriber.

        Args:
            contents: What was posted, whether that was answered or not.
            frames: What came, in order of time.
            connections: All of its connections.
            shared: Whether it has several consumers.
        """
        by_name = {each.name: each for each in connections}
        by_position: dict[int, list[Frame]] = defaultdict(list)
        for each in frames:
            about = f"p{each.key[0]}n{each.key[1]}"
            known = contents.get(each.key)
            self._judgement.fact(known is not None, NEVER_PUBLISHED, about, f"on {each.connection}")
            detail = f"on {each.connection} at {moment(each.at)}: {each.content[:60]!r}"
            self._judgement.fact(known == each.content, OTHER_BYTES, about, detail)
            by_position[each.position].append(each)
        for came in by_position.values():
            self._never_again(came)
            self._again(came, connections, by_name, shared=shared)
        for connection in connections:
            own = [each for each in frames if each.connection == connection.name]
            self._once(own)
            self._window(connection, own)
            if not shared:
                self._in_order(connection, own, by_position)

    def _never_again(self, came: Sequence[Frame]) -> None:
        """Once an acknowledgement was heard, it never comes again."""
        noted = min((each.noted for each in came if each.noted is not None), default=None)
        for each in came if noted is not None else ():
            late = noted is not None and each.at > noted
            # A call that took long excuses nothing.
            struck = self._faults.on("", (noted or 0) - 60 * SECOND, each.at)
            because = [fault for fault in struck if fault.kind != "slow"][-1:]
            about = f"p{each.key[0]}n{each.key[1]}"
            detail = f"on {each.connection} at {moment(each.at)}, noted at {moment(noted or 0)}"
            self._judgement.fact(not late, AGAIN, about, detail, because)

    def _again(
        self,
        came: Sequence[Frame],
        connections: Sequence[Connection],
        by_name: Mapping[str, Connection],
        *,
        shared: bool,
    ) -> None:
        """What nobody acknowledged comes again on the next connection that lasts long enough."""
        for place, last in enumerate(came):
            if last.acknowledged is not None:
                return
            following = came[place + 1].at if place + 1 < len(came) else self._ends
            connection = by_name.get(last.connection)
            ended = connection.ended if connection is not None else self._ends
            if shared and connection is not None and connection.vanished:
                # Whoever else is connected gets it once that is known; a consumer that comes back is known at once.
                ended += GONE_S * SECOND
            about = f"p{last.key[0]}n{last.key[1]}"
            for each in connections:
                begins = max(each.opened, ended)
                due = begins + AGAIN_S * SECOND
                if each.name == last.connection or each.ended < due:
                    continue
                because = self._faults.delaying("", last.at, max(due, last.at))[-1:]
                detail = f"came on {last.connection} until {moment(ended)}, not on {each.name}, since {moment(begins)}"
                self._judgement.fact(following <= due, NOT_AGAIN, about, detail, because)
                break

    def _once(self, own: Sequence[Frame]) -> None:
        """Whoever is connected is sent each once; only a sender that does not know what it has sent sends it again."""
        before: dict[int, Frame] = {}
        for each in own:
            first = before.setdefault(each.position, each)
            because = () if first is each else self._faults.on("", first.at - SECOND, each.at + SECOND)[-1:]
            detail = f"on {each.connection} at {moment(first.at)} and {moment(each.at)}"
            self._judgement.fact(first is each, TWICE, f"p{each.key[0]}n{each.key[1]}", detail, because)
            before[each.position] = each

    def _window(self, connection: Connection, own: Sequence[Frame]) -> None:
        times = [(each.at, 1) for each in own]
        times += [(each.acknowledged, -1) for each in own if each.acknowledged is not None]
        count = most = 0
        for _, step in sorted(times):
            count += step
            most = max(most, count)
        self._judgement.fact(most <= WINDOW, TOO_MANY, connection.name, f"{most} unacknowledged")

    def _in_order(self, connection: Connection, own: Sequence[Frame], came: Mapping[int, Sequence[Frame]]) -> None:
        """What comes again comes before what is new."""
        new_at: Frame | None = None
        for each in own:
            old = came[each.position][0].connection != connection.name
            if old and new_at is not None and new_at.position < each.position:
                # A later one that is new to this subscriber came first: both are in order all the same.
                continue
            kept = not old or new_at is None
            detail = f"on {connection.name}: {each.position} after {new_at.position if new_at else 0}, which was new"
            because = self._faults.on("", connection.opened - 60 * SECOND, each.at)[-1:]
            self._judgement.fact(kept, OUT_OF_ORDER, f"p{each.key[0]}n{each.key[1]}", detail, because)
            if not old and new_at is None:
                new_at = each
