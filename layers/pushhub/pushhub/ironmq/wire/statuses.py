"""Push statuses on the wire: the last answer of each subscriber of a message.

The documentation calls the subscriber ``name``, the real service ``subscriber_name``; both are given. ``status_code``,
``msg`` and ``last_try_at`` are absent before the first try. ``status`` is present only if the message expired first.
``state`` and ``next_try_at`` are our additions: the state of the delivery (in unicast, the one delivery for all
subscribers), and when this subscriber is asked next; not there while it is paused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.base.credentials import masked_url
from pushhub.base.errors import Invalid
from pushhub.base.times import iso_time
from pushhub.engine.model.delivery import Delivery, DeliveryState, known_attempts, retries_remaining
from pushhub.ironmq.wire.cursors import MAX_LOOKED_AT, parse_cursor
from pushhub.web.json import number_in_query

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pushhub.engine.model.message import Message
    from pushhub.engine.model.queue import Queue

SUCCESS = "Message was pushed successfully."
RESERVED_STATUS = 202
NOT_ACKNOWLEDGED = "Not acknowledged in time"
EXPIRED = "expired"
STATES = (DeliveryState.RETRYING.value, DeliveryState.RESERVED.value, DeliveryState.EXHAUSTED.value)
"""States of deliveries that can be listed: those that failed and were not delivered. No others are in an index."""

NEVER_TRIED = "Message expired before it was pushed"


def render_statuses(queue: Queue, message: Message, deliveries: Mapping[str, Delivery]) -> list[dict[str, object]]:
    """One status per subscriber the message is owed to, in the order the queue's subscribers had at its acceptance.

    Args:
        queue: Its current state. Subscribers already asked are shown as they were at that time, others as they are now.
        message: A message of a push queue.
        deliveries: Its deliveries by ``subscriber_id``; in unicast, the single one under ``*``.
    """
    return [
        _status(queue, subscriber_id, deliveries["*" if message.unicast else subscriber_id])
        for subscriber_id in message.subscriber_ids
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateQuery:
    """A query for deliveries of a queue.

    Attributes:
        state: Retrying, reserved or exhausted.
        count: How many deliveries to look at.
        after: Cursor from the previous answer; None to begin.
    """

    state: DeliveryState
    count: int
    after: str | None


def parse_state_query(query: Mapping[str, str]) -> StateQuery:
    """Read a query for deliveries.

    Raises:
        Invalid: Unknown state, too many deliveries, or an invalid cursor.
    """
    state = query.get("state", "")
    if state not in STATES:
        raise Invalid(f"state must be one of {', '.join(STATES)}")
    count = number_in_query(query, "count", default=MAX_LOOKED_AT)
    if not 1 <= count <= MAX_LOOKED_AT:
        raise Invalid(f"count must be from 1 to {MAX_LOOKED_AT}")
    return StateQuery(state=DeliveryState(state), count=count, after=parse_cursor(query.get("after")))


def render_deliveries(
    queue: Queue, deliveries: Iterable[Delivery], values: Mapping[str, Mapping[str, str]]
) -> list[dict[str, object]]:
    """Deliveries with their messages' ids, each in the form of its subscriber's status.

    Args:
        values: Values of the queue's named fields, by message.
    """
    return [
        {
            "message_id": each.message_id,
            "accepted_at": iso_time(each.accepted_at),
            **_status(queue, each.targets[each.cursor], each),
            **({"fields": dict(values.get(each.message_id, {}))} if queue.search_fields else {}),
        }
        for each in deliveries
    ]


def render_attempts(queue: Queue, deliveries: Iterable[Delivery]) -> tuple[list[dict[str, object]], int]:
    """The attempts of a message's deliveries in the order in which they began, and how many are no longer known."""
    found: list[dict[str, object]] = []
    forgotten = 0
    for each in deliveries:
        known = known_attempts(each)
        forgotten += each.attempts - len(known)
        found += [
            {
                "subscriber_name": asked_as(queue, attempt.subscriber_id, each)[0],
                "number": attempt.number,
                "started_at": iso_time(attempt.started_at),
                "took_ms": attempt.took_ms,
                "status_code": attempt.status_code,
                "msg": attempt.message,
                "answer": attempt.answer,
                "result": attempt.verdict.value,
                "manual": attempt.manual,
            }
            for attempt in known
        ]
    return sorted(found, key=lambda attempt: (str(attempt["started_at"]), attempt["number"])), forgotten


def _status(queue: Queue, subscriber_id: str, delivery: Delivery) -> dict[str, object]:
    target = delivery.status(subscriber_id)
    name, url = asked_as(queue, subscriber_id, delivery)
    shown: dict[str, object] = {
        "name": name,
        "subscriber_name": name,
        "url": url,
        "retries_remaining": retries_remaining(delivery, queue.push.policy_of(delivery.subscriber_id))
        if queue.push
        else 0,
        "tries": target.tries,
        "state": delivery.state.value,
    }
    ahead = delivery.due_at is not None and not delivery.settled and delivery.targets[delivery.cursor] == subscriber_id
    if ahead and delivery.due_at is not None and not _is_paused(queue, subscriber_id):
        shown["next_try_at"] = iso_time(delivery.due_at)
    if target.status_code is not None:
        code = target.status_code
        delivered = delivery.state is DeliveryState.DELIVERED and 200 <= code < 300 and code != RESERVED_STATUS
        shown["status_code"] = code
        shown["msg"] = SUCCESS if delivered else answer_message(delivery, subscriber_id)
    if target.last_try_at is not None:
        shown["last_try_at"] = iso_time(target.last_try_at)
    if delivery.state is DeliveryState.EXPIRED:
        shown["status"] = EXPIRED
        shown.setdefault("msg", NEVER_TRIED)
    return shown


def _is_paused(queue: Queue, subscriber_id: str) -> bool:
    subscriber = queue.push.subscriber(subscriber_id) if queue.push else None
    return subscriber is not None and subscriber.paused


def answer_message(delivery: Delivery, subscriber_id: str) -> str:
    """A description of a subscriber's last answer."""
    status = delivery.status(subscriber_id)
    given_up = delivery.state in (DeliveryState.EXHAUSTED, DeliveryState.EXPIRED)
    if status.status_code is None:
        return NEVER_TRIED if delivery.state is DeliveryState.EXPIRED else ""
    return NOT_ACKNOWLEDGED if given_up and status.status_code == RESERVED_STATUS else status.message


def asked_as(queue: Queue, subscriber_id: str, delivery: Delivery) -> tuple[str, str]:
    """Name and URL of a subscriber: as they were when it was last asked, otherwise as they are now, or were when it was
    removed.

    Both are empty if it was removed so long ago that its queue no longer remembers it.
    """
    status = delivery.status(subscriber_id)
    if status.url is not None:
        return status.name or "", masked_url(status.url)
    subscriber = queue.push.subscriber(subscriber_id) or queue.push.once(subscriber_id) if queue.push else None
    return (subscriber.name, masked_url(subscriber.url)) if subscriber else ("", "")
