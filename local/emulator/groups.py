"""Which messages of a queue are handed out next: nobody's stand behind another one's backlog.

On AWS, fair queues hand out those of a group that has many in flight after those of others, and a run is nearly always
free. Here runs are few, as each is a process. So messages of owners with the fewest in flight come first, some runs are
kept for owners with none in flight, and a run that asks for further messages itself gets none of theirs.

Nothing here knows MiniStack; :mod:`local.emulator.process` has its queues ask.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from contextvars import ContextVar
from enum import Enum, auto
from typing import Any

Message = dict[str, Any]

SPARE_RUNS = 2
"""Runs of a mapping beyond its limit, for owners that have nothing in flight."""
MANY = 10
"""Messages in flight from which on an owner's further ones do not share a run with those of owners that have none."""
LEFT_S = 0.5
"""How long a new message of an owner that has none in flight is left to those who hand out. The run that they start for
it has a process of its own; a run that asks for further messages is busy with another one's, at that one's priority."""


class For(Enum):
    """For what messages are taken."""

    RUN = auto()
    SPARE_RUN = auto()
    """One beyond the limit."""
    CALLER = auto()
    """Somebody who asks for them, such as a run with threads to spare."""


TAKEN_FOR = ContextVar("TAKEN_FOR", default=For.CALLER)
"""For what messages are taken now."""


def owner(message: Message) -> str:
    """Whose a message is: its group's, whose name may have a part of the owner's after a dot; empty for no group."""
    return str(message.get("group_id") or "").partition(".")[0]


def in_turn(messages: Sequence[Message], taken_for: For, now: float, most: int = 10) -> list[Message]:
    """The messages that may be taken now, those to be taken first at the start.

    Args:
        messages: All of a queue, in flight or not.
        taken_for: What for.
        now: The time, in seconds.
        most: How many at the most.
    """
    in_flight = Counter(owner(each) for each in messages if each["visible_at"] > now and each.get("receive_count"))
    due = [each for each in messages if each["visible_at"] <= now]
    if taken_for is For.CALLER:
        due = [
            each for each in due if not owner(each) or in_flight[owner(each)] or each.get("sent_at", 0) + LEFT_S <= now
        ]
    elif taken_for is For.SPARE_RUN:
        due = [each for each in due if not in_flight[owner(each)]]
    first = heapq.nsmallest(most, due, key=lambda each: in_flight[owner(each)])
    if taken_for is For.RUN and first and not in_flight[owner(first[0])]:
        return [each for each in first if in_flight[owner(each)] <= MANY]
    return first
