"""Eager messages: ingest sends their first orders itself, and the stream's come later (docs/decisions/acceptance.md).

Ingest may die before it has sent them, so the stream's orders are sent all the same, but for what has been begun when
the stream is read; and only one of the two may make the first attempt. Nothing is written to decide which one: time
keeps them apart. Ingest's order is void once :data:`GOOD_FOR_MS` have passed since the message was accepted, and the
stream's comes when an attempt that began until then is over and recorded. It finds that attempt, and ends.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.engine.model.message import Eager

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pushhub.engine.model.message import Message
    from pushhub.engine.model.queue import Subscriber

GOOD_FOR_MS = 15_000
"""How long ingest's order may begin an attempt, from the message's acceptance."""

FRESH_MS = 1_000
"""How long after a message's acceptance ingest's order, received for the first time, is taken at its word: nothing is
read to see whether somebody has begun, or the message's owner has taken it back."""

MARGIN_S = 15
"""Time to record an attempt, and for clocks that differ."""

MOST_ORDERS = 100
"""Most orders that ingest sends for one request; a larger post is in no hurry, and its producer should not wait."""


def eager(message: Message, subscribers: Iterable[Subscriber]) -> Message:
    """A message of an eager queue as it is stored: with what ingest will order itself.

    That is only what would be attempted at once: not what is delayed or has an ordering key, and not deliveries to
    subscribers that are paused, disabled, or limited.

    Args:
        message: The message, not stored yet.
        subscribers: Those it is owed to.
    """
    if message.ordering is not None or message.due_at > message.accepted_at:
        return message
    asked = [*subscribers]
    if not message.unicast:
        asked = [each for each in asked if not (each.paused or each.disabled or each.limits)]
    if not asked:
        return message
    again_s = GOOD_FOR_MS // 1000 + max(each.timeout_s for each in asked) + MARGIN_S
    ids = ("*",) if message.unicast else tuple(each.subscriber_id for each in asked)
    return replace(message, eager=Eager(subscriber_ids=ids, again_s=again_s))
