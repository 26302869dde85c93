"""Puts a table that was lost in place of itself: what a restored table lacks, and who reads its stream.

DynamoDB restores a table without its stream, time to live, point-in-time recovery and protection, and the event source
mappings of the former stream do not read the new one
(https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/pointintimerecovery_howitworks.html).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import click

from .deployment import Deployment

READERS = ("DispatchFunctionName", "RecordsFunctionName")
"""The stack's outputs that name the functions that read streams."""
KEPT = (
    "BatchSize",
    "MaximumBatchingWindowInSeconds",
    "ParallelizationFactor",
    "BisectBatchOnFunctionError",
    "MaximumRetryAttempts",
    "MaximumRecordAgeInSeconds",
    "DestinationConfig",
    "FilterCriteria",
)
"""What a mapping of a new stream takes over from the one of the former stream."""


@dataclass(frozen=True)
class Table:
    """A table as the template makes it; a test holds the two together.

    Attributes:
        output: The stack's output that names it.
        streamed: Whether functions read its stream.
        ttl: The attribute with the time to live; empty for none.
        index: Its global index: name, partition key, sort key, type of the sort key, projection; empty for none.
    """

    output: str
    streamed: bool = False
    ttl: str = "ttl"
    index: tuple[str, ...] = ()


TABLES = {
    "config": Table("ConfigTableName", ttl=""),
    "messages": Table(
        "MessagesTableName", streamed=True, index=("unsettled", "unsettled_queue", "unsettled_key", "S", "KEYS_ONLY")
    ),
    "schedule": Table("ScheduleTableName"),
    "pull": Table("PullTableName", streamed=True),
    "hub": Table("HubTableName", index=("listed", "list_key", "list_place", "S", "ALL")),
    "webhooks": Table("WebhooksTableName"),
    "backlogs": Table("BacklogsTableName", streamed=True, index=("idle", "idle_shard", "check_at", "N", "KEYS_ONLY")),
}
"""The tables by the names that operators use."""

STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
KEYS = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]


def described(table: Table) -> dict[str, Any]:
    """Keys and index of a table, as DynamoDB is told them."""
    attributes = [("pk", "S"), ("sk", "S")]
    if not table.index:
        return {"AttributeDefinitions": _typed(attributes), "KeySchema": KEYS}
    name, partition, sort, kind, projection = table.index
    keys = [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]
    index = {"IndexName": name, "KeySchema": keys, "Projection": {"ProjectionType": projection}}
    return {
        "AttributeDefinitions": _typed([*attributes, (partition, "S"), (sort, kind)]),
        "KeySchema": KEYS,
        "GlobalSecondaryIndexes": [index],
    }


def _typed(attributes: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in attributes]


def put_in_place(hub: Deployment, table: Table, *, empty: bool) -> Iterator[str]:
    """Give a table what it lacks; says what was done, step by step. What is already as it should be is left.

    Args:
        empty: Make it, without items, if it does not exist.
    """
    tables, name = hub.client("dynamodb"), hub.outputs[table.output]
    chosen = _parameters(hub)
    found = _found(tables, name)
    if found is None:
        if not empty:
            raise click.ClickException(f"there is no table {name}: restore it first, or say --empty")
        key = chosen.get("KmsKeyArn")
        sealed = {"SSESpecification": {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": key}} if key else {}
        # What is written before a stream is switched on is never in it.
        stream = {"StreamSpecification": STREAM} if table.streamed else {}
        tables.create_table(TableName=name, BillingMode="PAY_PER_REQUEST", **described(table), **sealed, **stream)
        tables.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 120})
        yield f"made {name}, empty"
    found = tables.describe_table(TableName=name)["Table"]
    if table.streamed and not found.get("StreamSpecification", {}).get("StreamEnabled"):
        found = tables.update_table(TableName=name, StreamSpecification=STREAM)["TableDescription"]
        yield "switched its stream on"
        tables.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 120})
    if table.ttl:
        now = tables.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        if now.get("TimeToLiveStatus") not in ("ENABLED", "ENABLING"):
            wanted = {"Enabled": True, "AttributeName": table.ttl}
            tables.update_time_to_live(TableName=name, TimeToLiveSpecification=wanted)
            yield f"switched its time to live on ({table.ttl})"
    backups = tables.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    if backups.get("PointInTimeRecoveryDescription", {}).get("PointInTimeRecoveryStatus") != "ENABLED":
        recovery = {"PointInTimeRecoveryEnabled": True}
        tables.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification=recovery)
        yield "switched its point-in-time recovery on"
    if chosen.get("DeletionProtection") == "true" and not found.get("DeletionProtectionEnabled"):
        tables.update_table(TableName=name, DeletionProtectionEnabled=True)
        yield "protected it against deletion"
    if table.streamed:
        yield from _read_anew(hub, found["TableArn"], tables.describe_table(TableName=name)["Table"]["LatestStreamArn"])


def _found(tables: Any, name: str) -> dict[str, Any] | None:
    try:
        table: dict[str, Any] = tables.describe_table(TableName=name)["Table"]
    except tables.exceptions.ResourceNotFoundException:
        return None
    return table


def _parameters(hub: Deployment) -> Mapping[str, str]:
    """What the operator chose for the stack; nothing for a local one, which has no stack."""
    if not hub.name:
        return {}
    (stack,) = hub.client("cloudformation").describe_stacks(StackName=hub.name)["Stacks"]
    return {each["ParameterKey"]: each["ParameterValue"] for each in stack.get("Parameters", [])}


def _read_anew(hub: Deployment, table_arn: str, stream: str) -> Iterator[str]:
    """Have the functions that read the former stream read this one."""
    functions, reading = hub.client("lambda"), 0
    for output in READERS:
        name = hub.outputs[output]
        pages = functions.get_paginator("list_event_source_mappings").paginate(FunctionName=name)
        ours = [
            each
            for page in pages
            for each in page["EventSourceMappings"]
            if each["EventSourceArn"].startswith(f"{table_arn}/stream/")
        ]
        former = [each for each in ours if each["EventSourceArn"] != stream]
        reading += len(ours) - len(former)
        for each in former:
            if len(ours) == len(former):
                functions.create_event_source_mapping(
                    EventSourceArn=stream,
                    FunctionName=name,
                    StartingPosition="TRIM_HORIZON",
                    **{key: each[key] for key in KEPT if each.get(key) is not None},
                )
                reading += 1
                yield f"{name} reads its stream"
            functions.delete_event_source_mapping(UUID=each["UUID"])
            yield f"removed {name}'s mapping of the former stream"
    if not reading:
        raise click.ClickException(
            f"no function has a mapping of a stream of {table_arn}, whose settings could be taken"
        )
