"""Background tasks on the wire."""

from __future__ import annotations

from collections.abc import Mapping

from pushhub.base.times import iso_time
from pushhub.webhooks.model.task import Task, TaskAsk, TaskKind, TaskStatus
from pushhub.webhooks.wire.fields import NAME, Fields

MAX_SPAN_MS = (14 * 86_400 + 300) * 1000
"""How far back a request may reach, unless it sets ``unlimited``."""
MAX_RATE = 65_535
MAX_TYPES = 100
MAX_APPS = 1_000
USAGE_MS = 28 * 86_400_000
"""The longest period for which messages are counted."""
_STATUSES = 4
_CLASSES = (0, 100, 200, 300, 400, 500)


def parse_replay(fields: Fields, now: int, *, filtered: bool = False) -> TaskAsk:
    """Which messages a request asks for.

    ``unlimited``, ``rate`` and ``dryRun`` are the hub's own; Svix's API has no such fields.

    Args:
        filtered: Whether it may choose by types, channel, tag and status.
    """
    since, until = fields.required_moment("since"), fields.moment("until")
    until = now if until is None else until
    if since >= until and fields.raw("until") is not None:
        raise fields.refuse("since must be before until", "since")
    unlimited = fields.flag("unlimited", default=False)
    if until - since > MAX_SPAN_MS and not unlimited:
        raise fields.refuse("since must be at most 14 days before until", "since")
    ask = TaskAsk(
        since=since,
        until=until,
        rate=fields.whole("rate", least=1, most=MAX_RATE),
        dry_run=fields.flag("dryRun", default=False),
    )
    return _filtered(ask, fields) if filtered else ask


def _filtered(ask: TaskAsk, fields: Fields) -> TaskAsk:
    status_class = fields.whole("statusCodeClass", least=0, most=500)
    if status_class is not None and status_class not in _CLASSES:
        raise fields.refuse("The class must be 0, 100, 200, 300, 400 or 500", "statusCodeClass")
    types = fields.names("eventTypes", NAME, most=MAX_TYPES)
    return TaskAsk(
        since=ask.since,
        until=ask.until,
        rate=ask.rate,
        dry_run=ask.dry_run,
        event_types=types or (),
        channel=fields.optional_text("channel", least=1, most=128),
        tag=fields.optional_text("tag", least=1, most=128),
        status=fields.whole("status", least=0, most=_STATUSES),
        status_code_class=status_class,
    )


def parse_usage(fields: Fields) -> tuple[int, int, tuple[str, ...]]:
    """The period in which messages are counted, and the applications (ids or uids) they belong to; empty for all."""
    since, until = fields.required_moment("since"), fields.required_moment("until")
    if not 0 < until - since <= USAGE_MS:
        raise fields.refuse("since must be before until, by at most 28 days", "since")
    named = None if fields.raw("appIds") == [] else fields.names("appIds", NAME, most=MAX_APPS)
    return since, until, named or ()


def begun_view(task: Task) -> dict[str, object]:
    """The answer to the request that starts a task."""
    return {
        "id": task.task_id,
        "status": task.status,
        "task": task.kind,
        "updatedAt": iso_time(task.updated_at),
    }


def task_view(task: Task) -> dict[str, object]:
    """A task as it is shown."""
    return {**begun_view(task), "data": _data(task)}


def _data(task: Task) -> Mapping[str, object]:
    if task.kind in (TaskKind.APP_STATS, TaskKind.EVENT_TYPES):
        return task.result
    counted = "messagesFound" if task.ask.dry_run else "messagesSent"
    shown: dict[str, object] = {counted: task.sent, "messagesLooked": task.looked}
    if task.ask.dry_run:
        shown["dryRun"] = True
    if task.status is not TaskStatus.RUNNING:
        shown |= task.result
    return shown
