"""Background tasks on DynamoDB: ``TASK#{task id}`` in the project's partition, and a mark for each unfinished one in a
single partition for all projects; another one says which projects' tasks are being worked on. Also counts of
operational events.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pushhub.base import json_text
from pushhub.base.errors import Conflict, Unreadable
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.table import Item, TableStore, WritesRefused, number, text
from pushhub.cloud.unreadable import decodes, readable
from pushhub.webhooks.model.task import Task, TaskAsk, TaskKind, TaskStatus
from pushhub.webhooks.store._items import between, doc, key, project_pk

if TYPE_CHECKING:
    from pushhub.webhooks.model.page import KeyRange

_PREFIX = "TASK#"
_RUNNING = "RUNNING"
_PAGE = 100
_KEPT_S = 91 * 86_400
"""Tasks are listed for 90 days."""
_COUNTED_S = 3_600
"""Counts of a minute are kept this long."""


class DynamoDBTasks(TableStore):
    """Implements :class:`pushhub.webhooks.resending.tasks.TaskStore`."""

    def task(self, project_id: str, task_id: str) -> Task | None:
        item = self._table.get(key(project_pk(project_id), _PREFIX + task_id))
        return _decoded(item) if item else None

    def tasks(self, project_id: str, span: KeyRange) -> Iterator[Task]:
        if span.empty:
            return
        items = self._table.items(Limit=_PAGE, **between(project_pk(project_id), _PREFIX, span))
        for task in readable(items, _decoded):
            if span.has(task.task_id):
                yield task

    def put_task(self, task: Task) -> Task:
        """See the port. The write that ends the task also removes the mark, so a running task always has one."""
        raised = replace(task, version=task.version + 1)
        put: dict[str, Any] = {"Item": _encoded(raised), "ConditionExpression": "attribute_not_exists(pk)"}
        if task.version:
            put |= {
                "ConditionExpression": "#version = :before",
                "ExpressionAttributeNames": {"#version": "version"},
                "ExpressionAttributeValues": {":before": number(task.version)},
            }
        mark = _mark(task.project, task.task_id)
        writes: list[tuple[str, dict[str, Any]]] = [("Put", put)]
        if task.version == 0:
            writes.append(("Put", {"Item": mark}))
        if task.status is not TaskStatus.RUNNING:
            writes.append(("Delete", {"Key": mark}))
        try:
            self._table.write_together(writes)
        except WritesRefused as refused:
            raise Conflict(f"task {task.task_id} changed") from refused
        return raised

    def running_tasks(self, project_id: str) -> Iterator[Task]:
        for task_id in self._running(project_id):
            try:
                task = self.task(project_id, task_id)
            except Unreadable:
                continue
            if task is not None:
                yield task
            else:
                # Both are stored and removed together, so this task is older than tasks are kept.
                self._table.delete(_mark(project_id, task_id))

    def projects_with_tasks(self) -> list[str]:
        marks = self._table.items(
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": text(_RUNNING)},
            ConsistentRead=True,
        )
        return list(dict.fromkeys(each["sk"]["S"].partition("#")[0] for each in marks))

    def take_turn(self, project_id: str, *, now: int, until: int) -> bool:
        try:
            self._table.put(
                _turn(project_id) | {"until": number(until), "ttl": number(until // 1000 + 3600)},
                ConditionExpression="attribute_not_exists(pk) OR #until <= :now",
                ExpressionAttributeNames={"#until": "until"},
                ExpressionAttributeValues={":now": number(now)},
            )
        except ConditionRefused:
            return False
        return True

    def has_turn(self, project_id: str, *, now: int) -> bool:
        item = self._table.get(_turn(project_id))
        return item is not None and int(item["until"]["N"]) > now

    def give_turn_back(self, project_id: str, until: int) -> None:
        with suppress(ConditionRefused):
            self._table.delete(
                _turn(project_id),
                ConditionExpression="#until = :until",
                ExpressionAttributeNames={"#until": "until"},
                ExpressionAttributeValues={":until": number(until)},
            )

    def _running(self, project_id: str) -> list[str]:
        marks = self._table.items(
            KeyConditionExpression="pk = :pk AND begins_with(sk, :project)",
            ExpressionAttributeValues={":pk": text(_RUNNING), ":project": text(f"{project_id}#")},
            ConsistentRead=True,
        )
        return [each["sk"]["S"].partition("#")[2] for each in marks]


class DynamoDBOperationalCounts(TableStore):
    """Implements :class:`pushhub.webhooks.operational.operational.OperationalCounts`."""

    def count(self, project_id: str, what: str, minute: int) -> int:
        item = self._table.update(
            key(f"TOLD#{project_id}#{what}", str(minute)),
            UpdateExpression="ADD #count :one SET #ttl = :ttl",
            ExpressionAttributeNames={"#count": "count", "#ttl": "ttl"},
            ExpressionAttributeValues={":one": number(1), ":ttl": number(minute * 60 + _COUNTED_S)},
        )
        return int(item["count"]["N"])


def _mark(project_id: str, task_id: str) -> Item:
    return key(_RUNNING, f"{project_id}#{task_id}")


def _turn(project_id: str) -> Item:
    return key(_RUNNING + "-TURNS", project_id)


def _encoded(task: Task) -> Item:
    ask = task.ask
    value = {
        "kind": task.kind,
        "app": task.app_id,
        "endpoint": task.endpoint_id,
        "window": [ask.since, ask.until],
        "types": ask.event_types,
        "channel": ask.channel,
        "tag": ask.tag,
        "only": [ask.status, ask.status_code_class],
        "rate": ask.rate,
        "dry": ask.dry_run,
        "apps": ask.apps,
        "flags": None if ask.flags is None else sorted(ask.flags),
        "status": task.status,
        "cursor": task.cursor,
        "count": [task.looked, task.sent],
        "result": dict(task.result),
        # Versions that had a lease for each task read this field.
        "lease": 0,
        "at": [task.created_at, task.updated_at],
    }
    return key(project_pk(task.project), _PREFIX + task.task_id) | {
        "version": number(task.version),
        "doc": doc(value),
        "ttl": number(task.created_at // 1000 + _KEPT_S),
    }


@decodes
def _decoded(item: Item) -> Task:
    value = json_text.stored(item["doc"]["S"])
    return Task(
        project=item["pk"]["S"].removeprefix("P#"),
        task_id=item["sk"]["S"].removeprefix(_PREFIX),
        kind=TaskKind(value["kind"]),
        app_id=value["app"],
        endpoint_id=value["endpoint"],
        ask=TaskAsk(
            since=value["window"][0],
            until=value["window"][1],
            event_types=tuple(value["types"]),
            channel=value["channel"],
            tag=value["tag"],
            status=value["only"][0],
            status_code_class=value["only"][1],
            rate=value["rate"],
            dry_run=value["dry"],
            apps=tuple(value["apps"]),
            flags=None if value.get("flags") is None else frozenset(value["flags"]),
        ),
        status=TaskStatus(value["status"]),
        cursor=value["cursor"],
        looked=value["count"][0],
        sent=value["count"][1],
        result=value["result"],
        created_at=value["at"][0],
        updated_at=value["at"][1],
        version=int(item["version"]["N"]),
    )
