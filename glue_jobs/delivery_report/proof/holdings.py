"""The messages and pulses in the tables, as DynamoDB returns them: only keys and times, no bodies.

Pure except for the client that it is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from pushhub.engine.model.record import PULSE

_KINDS: Final = {
    "messages": ("message", ("queue",)),
    "lines": ("line", ("queue", "entry")),
    "topics": ("commit", ("topic_uid",)),
}
"""What is read of each table: items of a kind, and what else of them than their keys and time."""


def entries(
    client: Any, tables: Mapping[str, str], *, since: datetime, until: datetime, segment: int, segments: int
) -> Iterator[dict[str, Any]]:
    """What a part of the tables holds of the messages accepted from one time on and before another one, and of the
    pulses sent then, as :data:`.ledger.ENTRY` describes it.

    Args:
        tables: Their names by ``messages``, ``lines`` and ``topics``.
    """
    within = {
        ":since": {"N": str(round(since.timestamp() * 1000))},
        ":until": {"N": str(round(until.timestamp() * 1000) - 1)},
    }
    for which, table in tables.items():
        kind, more = _KINDS[which]
        pages = client.get_paginator("scan").paginate(
            TableName=table,
            Segment=segment,
            TotalSegments=segments,
            Select="SPECIFIC_ATTRIBUTES",
            ProjectionExpression=", ".join(("pk, sk, accepted_at", *(f"#{each}" for each in more))),
            FilterExpression="#kind IN (:kind, :pulse) AND accepted_at BETWEEN :since AND :until",
            ExpressionAttributeNames={"#kind": "kind", **{f"#{each}": each for each in more}},
            ExpressionAttributeValues={**within, ":kind": {"S": kind}, ":pulse": {"S": PULSE}},
        )
        for page in pages:
            for item in page["Items"]:
                yield _pulse(table, item) if item["sk"]["S"] == PULSE else _entry(kind, item)


def _pulse(table: str, item: Mapping[str, Any]) -> dict[str, Any]:
    return {"queue": table, "queue_uid": PULSE, "accepted_ms": int(item["accepted_at"]["N"])}


def _entry(kind: str, item: Mapping[str, Any]) -> dict[str, Any]:
    pk, sk, accepted = item["pk"]["S"], item["sk"]["S"], int(item["accepted_at"]["N"])
    if kind == "commit":
        project, _, _, topic = pk.split("#", 3)
        entry = {"project": project, "queue": topic, "queue_uid": item["topic_uid"]["S"], "id": str(int(sk))}
    else:
        project, uid, message_id = pk.rsplit("#", 2)
        # Messages that can be listed share the partitions of their queue; their ids are the sort keys.
        message_id = message_id if sk == "M" else sk
        # What the hub puts into a pull queue may come there a second time, and says which time it is.
        stay = f"{message_id}~{item['entry']['S']}" if "entry" in item else message_id
        entry = {"project": project, "queue": item["queue"]["S"], "queue_uid": uid, "id": stay}
    return {**entry, "accepted_ms": accepted}
