"""Pulses on DynamoDB: an item in each table that has delivery records, and what its stream says of it.

Each pulse has a partition key of its own, so one after another they come through all shards of a stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Unavailable
from pushhub.base.times import iso_time
from pushhub.cloud.table import Item, Table, number, text
from pushhub.engine.model.pulse import KEPT_S, Pulse
from pushhub.engine.model.record import PULSE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock


class DynamoDBPulses:
    """Implements :class:`pushhub.engine.records.ports.PulseStore`.

    Args:
        tables: Names of the tables; keys ``pk`` and ``sk``, time to live ``ttl``.
    """

    def __init__(self, client: DynamoDBClient, tables: Sequence[str], clock: Clock) -> None:
        self._tables = [Table(client, each, clock) for each in tables]

    def send(self, at: int) -> None:
        """A table that cannot be written to costs no other its pulse."""
        failed: Unavailable | None = None
        for each in self._tables:
            try:
                each.put(_item(at))
            except Unavailable as error:
                failed = error
        if failed is not None:
            raise failed


def is_pulse(item: Item) -> bool:
    """Whether an item of one of these tables is a pulse."""
    return bool(item["sk"]["S"] == PULSE)


def pulses_of_change(stream_record: Mapping[str, Any], table: str) -> tuple[Pulse, ...] | None:
    """The pulse that a stream record tells of, nothing when it tells of the end of one, None if it is about something
    else.

    Args:
        stream_record: As Lambda delivers it.

    Raises:
        KeyError: An image lacks an attribute.
        ValueError: An attribute has an unexpected value.
    """
    stream = stream_record["dynamodb"]
    before, after = stream.get("OldImage"), stream.get("NewImage")
    if (after or before).get("kind", {}).get("S") != PULSE:
        return None
    return (Pulse(table=table, at=int(after["accepted_at"]["N"])),) if after and not before else ()


def _item(at: int) -> Item:
    return {
        "pk": text(f"{PULSE}#{iso_time(at)}"),
        "sk": text(PULSE),
        "kind": text(PULSE),
        # Named as in messages, so that the report finds both in one scan.
        "accepted_at": number(at),
        "ttl": number(at // 1000 + KEPT_S),
    }
