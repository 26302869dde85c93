"""Waiting requests, on DynamoDB: a few places per project,
each taken with one conditional write and given back with another.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.table import Item, Table, number, text

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock

_TRIES = 3
"""Number of random places tried: when half of them are taken, one of eight requests finds none, and nobody has to read
how many are taken.
"""


class DynamoDBWaits:
    """Implements :class:`pushhub.engine.ports.Waits`.

    Args:
        clock: Random choice of places.
        kind: What is waited for; each kind has places of its own.
        places: How many requests of a project may wait at the same time.
    """

    def __init__(self, client: DynamoDBClient, table: str, clock: Clock, *, kind: str, places: int) -> None:
        self._table = Table(client, table, clock)
        self._clock = clock
        self._kind = kind
        self._places = places

    def enter(self, project_id: str, *, now: int, until: int) -> str | None:
        holder = secrets.token_hex(8)
        first = int(self._clock.jitter() * self._places)
        for tried in range(min(_TRIES, self._places)):
            place = (first + tried) % self._places
            try:
                self._table.put(
                    self._key(project_id, place) | {"holder": text(holder), "until": number(until)},
                    ConditionExpression="attribute_not_exists(pk) OR #until <= :now OR holder = :holder",
                    ExpressionAttributeNames={"#until": "until"},
                    ExpressionAttributeValues={":now": number(now), ":holder": text(holder)},
                )
            except ConditionRefused:
                continue
            return f"{place}#{holder}"
        return None

    def leave(self, project_id: str, place: str) -> None:
        number_of, _, holder = place.partition("#")
        with suppress(ConditionRefused):
            self._table.put(
                self._key(project_id, int(number_of)) | {"holder": text(""), "until": number(0)},
                ConditionExpression="holder = :holder",
                ExpressionAttributeValues={":holder": text(holder)},
            )

    def _key(self, project_id: str, place: int) -> Item:
        return {"pk": text(f"P#{project_id}"), "sk": text(f"{self._kind}#{place}")}
