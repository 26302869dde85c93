"""Stops the running stack from doing its work, so that the work can be examined:
its event source mappings and schedules are disabled until they are released.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from local.aws import Aws

WORKERS = ("Dispatch", "Push", "Poll", "Errors", "Notify", "Records")
"""Functions whose work waits. What is recorded later is recorded all the same: streams keep it."""
_SETTLE_S = 1.0


def hold(aws: Aws, outputs: Mapping[str, str]) -> None:
    """Let the work of :data:`WORKERS` wait, in all projects, and the schedules as well."""
    functions = {outputs[f"{name}FunctionName"] for name in WORKERS}
    for mapping in _mappings(aws):
        if mapping["FunctionArn"].rpartition(":")[2] in functions:
            aws.functions().update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
    _switch_schedules(aws, "ENABLED", "DISABLED")
    # A poll that has just begun may still receive something.
    time.sleep(_SETTLE_S)


def release(aws: Aws) -> bool:
    """Let everything work again; return whether anything had been held."""
    held = [mapping["UUID"] for mapping in _mappings(aws) if mapping["State"] != "Enabled"]
    for uuid in held:
        aws.functions().update_event_source_mapping(UUID=uuid, Enabled=True)
    return _switch_schedules(aws, "DISABLED", "ENABLED") or bool(held)


def is_held(aws: Aws) -> bool:
    """Whether work is kept waiting."""
    return any(mapping["State"] != "Enabled" for mapping in _mappings(aws))


def _mappings(aws: Aws) -> list[dict[str, Any]]:
    return [dict(each) for each in aws.functions().list_event_source_mappings()["EventSourceMappings"]]


def _switch_schedules(aws: Aws, old: str, new: str) -> bool:
    client = aws.scheduler()
    switched = False
    for listed in client.list_schedules()["Schedules"]:
        if listed["State"] != old:
            continue
        schedule = client.get_schedule(Name=listed["Name"])
        kept: dict[str, Any] = {name: each for name, each in schedule.items() if name not in _SAID_BY_AWS}
        client.update_schedule(**kept | {"State": new})
        switched = True
    return switched


_SAID_BY_AWS = ("Arn", "CreationDate", "LastModificationDate", "ResponseMetadata")
