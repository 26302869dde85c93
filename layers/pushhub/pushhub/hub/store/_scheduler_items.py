"""Schedulers as items of the hub table."""

from __future__ import annotations

import json
from dataclasses import asdict

from pushhub.cloud.table import Item, number, text
from pushhub.cloud.unreadable import decodes
from pushhub.hub.model.schedule import Scheduler
from pushhub.hub.store._keys import json_text, shard_of


def tick_key(shard: int) -> str:
    """One partition of the list of all schedulers."""
    return f"TICK#{shard}"


def encode_scheduler(scheduler: Scheduler) -> Item:
    """All attributes but the key, with its place among all schedulers."""
    return {
        "doc": json_text(asdict(scheduler)),
        "version": number(scheduler.version),
        "list_key": text(tick_key(shard_of(scheduler.scheduler_id))),
        "list_place": text(f"{scheduler.next_at:015d}#{scheduler.project}#{scheduler.scheduler_id}"),
    }


@decodes
def decode_scheduler(item: Item) -> Scheduler:
    """The scheduler from its item."""
    return Scheduler(**json.loads(item["doc"]["S"]))
