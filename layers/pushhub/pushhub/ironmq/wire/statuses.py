"""Push statuses on the wire: what each subscriber of a message last answered.

The documents call the subscriber ``name``, the real service ``subscriber_name``; both are given. ``status_code``, ``msg`` and
``last_try_at`` are absent before the first try.
"""

from __future__ import annotations

from collections.abc import Mapping

from pushhub.base.times import iso_time
from pushhub.engine.model.delivery import Delivery, DeliveryState, retries_remaining
from pushhub.engine.model.message import Message
from pushhub.engine.model.queue import Queue

__all__ = ["render_statuses"]

SUCCESS = "Message was pushed successfully."
RESERVED_STATUS = 202


def render_statuses(queue: Queue, message: Message, deliveries: Mapping[str, Delivery]) -> list[dict[str, object]]:
    """One status per subscriber the message is owed to, in the order of the queue's subscribers at its acceptance.

    Args:
        queue: As it is now; a subscriber removed since is shown without name and URL.
        message: A message of a push queue.
        deliveries: Each of its deliveries by ``subscriber_id``; in unicast the one under ``*``.
    """
    return [
        _status(queue, subscriber_id, deliveries["*" if message.unicast else subscriber_id])
        for subscriber_id in message.subscriber_ids
    ]


def _status(queue: Queue, subscriber_id: str, delivery: Delivery) -> dict[str, object]:
    subscriber = queue.push.subscriber(subscriber_id) if queue.push else None
    target = delivery.status(subscriber_id)
    name = subscriber.name if subscriber else ""
    shown: dict[str, object] = {
        "name": name,
        "subscriber_name": name,
        "url": subscriber.url if subscriber else "",
        "retries_remaining": retries_remaining(delivery, queue.push.policy) if queue.push else 0,
        "tries": target.tries,
    }
    if target.status_code is not None:
        code = target.status_code
        delivered = delivery.state is DeliveryState.DELIVERED and 200 <= code < 300 and code != RESERVED_STATUS
        shown["status_code"] = code
        shown["msg"] = SUCCESS if delivered else target.message
    if target.last_try_at is not None:
        shown["last_try_at"] = iso_time(target.last_try_at)
    return shown
