"""Names of the hub's internal queues, and the mappings behind them."""

from __future__ import annotations

DIALECT = "hub"
"""The dialect of the hub's services, as delivery records name it; also the scheme of the internal queues' subscribers.
"""

SERVICE_QUEUES = f"{DIALECT}/"
"""Prefix of the internal queues. Names of owners' queues never hold a slash."""

INCOMING_QUEUE = SERVICE_QUEUES + "incoming"
"""The internal queue of messages that wait to be compared with the mappings."""

INCOMING_UID = "incoming"
"""Generation of that queue; it is never made anew."""

ROUTER = "router"
"""The one subscriber of that queue: the hub itself, which compares."""


def service_queue(mapping_id: str) -> str:
    """Name of the internal queue of a mapping's accepted messages."""
    return SERVICE_QUEUES + mapping_id


def mapping_of_queue(queue: str) -> str | None:
    """The mapping behind an internal queue, or None for any other queue."""
    if not queue.startswith(SERVICE_QUEUES) or queue == INCOMING_QUEUE:
        return None
    return queue.removeprefix(SERVICE_QUEUES)
