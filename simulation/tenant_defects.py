"""Defects of quotas and background tasks for :mod:`simulation.sabotage`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pushhub.engine.model.quota import Mark, Quota
from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore
from pushhub.webhooks.idempotency import Repeats
from pushhub.webhooks.store.dynamodb_tasks import DynamoDBTasks

Change = tuple[object, str, object]


def a_batch_is_its_burst() -> Sequence[Change]:
    """A batch larger than the burst is paid for like the burst."""
    return [(Quota, "us", lambda quota, messages: min(messages, quota.burst) * 1_000_000 // quota.per_second)]


def paid_for_twice() -> Sequence[Change]:
    """Each message uses up the quota of two."""
    real = DynamoDBConfigStore.move_mark

    def move_mark(self: DynamoDBConfigStore, project_id: str, by_us: int, **more: Any) -> Mark:
        return real(self, project_id, 2 * by_us, **{**more, "most_us": more["most_us"] + by_us})

    return [(DynamoDBConfigStore, "move_mark", move_mark)]


def one_turn_for_all() -> Sequence[Change]:
    """One run at a time works on the tasks of all projects."""
    take, give = DynamoDBTasks.take_turn, DynamoDBTasks.give_turn_back
    return [
        (DynamoDBTasks, "take_turn", lambda store, _, **more: take(store, "all", **more)),
        (DynamoDBTasks, "give_turn_back", lambda store, _, until: give(store, "all", until)),
    ]


def keys_of_tasks_in_vain() -> Sequence[Change]:
    """A request that is repeated with its key begins another task."""
    return [(Repeats, "task", lambda _repeats, _project, _digest, task_id: task_id)]
