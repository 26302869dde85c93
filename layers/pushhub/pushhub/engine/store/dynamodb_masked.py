"""Deliveries that show a password in the URL of a status, to be masked: those from before November 2026."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pushhub.base.credentials import masked_url
from pushhub.base.errors import Conflict
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.table import Item, Table, text
from pushhub.engine.reseal import SealedItem
from pushhub.engine.store._keys import key_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock


def masked_deliveries(client: DynamoDBClient, table: str, clock: Clock) -> Iterator[SealedItem]:
    """All deliveries with a password in a status; to be written with a mask.

    Their version stays the same, so neither records nor functions take that for a change.
    """
    store = Table(client, table, clock)
    scanned = store.scan(FilterExpression="attribute_exists(statuses)", ProjectionExpression="pk, sk, statuses")
    for item in scanned:
        masked = {target: {"M": _masked(each["M"])} for target, each in item["statuses"]["M"].items()}
        if masked != item["statuses"]["M"]:
            project, _, message_id, subscriber_id = key_of(item)
            name = f"delivery {message_id}.{subscriber_id} of project {project}"
            yield SealedItem(name, project, (), plain=True, write=partial(_write, store, item, masked))


def _masked(status: Item) -> Item:
    return {**status, "url": text(masked_url(status["url"]["S"]))} if "url" in status else status


def _write(store: Table, item: Item, masked: Item) -> None:
    try:
        store.update(
            {name: item[name] for name in ("pk", "sk")},
            UpdateExpression="SET statuses = :masked",
            ConditionExpression="statuses = :before",
            ExpressionAttributeValues={":masked": {"M": masked}, ":before": item["statuses"]},
        )
    except ConditionRefused as refused:
        raise Conflict("the delivery has changed") from refused
