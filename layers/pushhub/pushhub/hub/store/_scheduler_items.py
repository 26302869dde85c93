"""Schedulers as items of the hub table."""

from __future__ import annotations

from dataclasses import asdict

from pushhub.base import json_text
from pushhub.cloud.table import Item, number, text
from pushhub.cloud.unreadable import decodes
from pushhub.hub.model.schedule import Scheduler
from pushhub.hub.store._keys import json_attribute, shard_of


def tick_key(shard: int) -> str:
    """One partition of the list of all schedulers."""
    return f"TICK#{shard}"


def encode_scheduler(scheduler: Scheduler) -> Item:
    """All attributes but the key, with its place among all schedulers."""
    return {
        "doc": json_attribute(asdict(scheduler)),
        "version": number(scheduler.version),
        "list_key": text(tick_key(shard_of(scheduler.scheduler_id))),
        "list_place": text(f"{scheduler.next_at:015d}#{scheduler.project}#{scheduler.scheduler_id}"),
    }


@decodes
def decode_scheduler(item: Item) -> Scheduler:
    """The scheduler from its item."""
    return Scheduler(**json_text.stored(item["doc"]["S"]))
