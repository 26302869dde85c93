"""Background tasks: work on many messages that continues after the request for it was answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum


class TaskKind(StrEnum):
    """What a task does, in the words of the API."""

    RECOVER = "endpoint.recover"
    """Messages that failed and never succeeded are sent again."""
    REPLAY_MISSING = "endpoint.replay"
    """Messages that were never sent to the endpoint are sent."""
    BULK_REPLAY = "endpoint.bulk-replay"
    """Messages are sent again, whatever their status."""
    EXPUNGE = "application.purge_content"
    """The contents of all messages of an application are erased."""
    APP_STATS = "application.stats"
    EVENT_TYPES = "event-type.aggregate"


class TaskStatus(StrEnum):
    """The status of a task, in the words of the API. The API has no word for "cancelled": a cancelled task counts as
    failed.
    """

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAsk:
    """Which messages a task is about, and how fast it may work.

    Attributes:
        since: Messages made at or after this time, epoch milliseconds.
        until: Messages made before this time.
        event_types: Of these types only; empty for all.
        channel: Of this channel only.
        tag: With this tag only.
        status: Only messages with this status at the endpoint, a number of the API; None for any.
        status_code_class: Only messages whose last attempt got this class of status: 0, 100 ... 500; None for any.
        rate: Messages per second; None for as fast as possible.
        dry_run: Nothing is sent, only counted.
        apps: Ids of applications, for statistics.
        flags: Feature flags of the portal's token that asked for it; None if the project itself did.
    """

    since: int
    until: int
    event_types: tuple[str, ...] = ()
    channel: str | None = None
    tag: str | None = None
    status: int | None = None
    status_code_class: int | None = None
    rate: int | None = None
    dry_run: bool = False
    apps: tuple[str, ...] = ()
    flags: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task.

    Attributes:
        task_id: See :mod:`pushhub.webhooks.model.ids`.
        app_id: The application it is about; empty for none.
        endpoint_id: The endpoint it is about; empty for none.
        cursor: Id of the last message processed; empty before the first.
        looked: Messages that were examined.
        sent: Messages that were sent, or erased.
        result: Further results reported to its owner at the end.
    """

    project: str
    task_id: str
    kind: TaskKind
    app_id: str = ""
    endpoint_id: str = ""
    ask: TaskAsk
    status: TaskStatus = TaskStatus.RUNNING
    cursor: str = ""
    looked: int = 0
    sent: int = 0
    result: Mapping[str, object] = field(default_factory=dict)
    created_at: int
    updated_at: int
    version: int = 0

    def ended(self, status: TaskStatus, now: int, **result: object) -> Task:
        """The task in its final state."""
        return replace(self, status=status, result={**self.result, **result}, updated_at=now)


def allowance(task: Task, now: int) -> int | None:
    """How many messages a task may send now: what its rate allows since it began, minus what it has sent; None for no
    limit.
    """
    if task.ask.rate is None:
        return None
    return max(0, (now - task.created_at) * task.ask.rate // 1000 + task.ask.rate - task.sent)
