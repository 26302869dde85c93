"""The engine's Lambda entry points: read the event, call the use case, map the result."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Overdue, Unavailable, Unreadable
from pushhub.cloud.observability import telemetry
from pushhub.engine.faults import described
from pushhub.runtime.invocation import behind, failures
from pushhub.runtime.sqs_batch import LATE_MS, queue_name, read_orders

if TYPE_CHECKING:
    from pushhub.engine.model.message import Message
    from pushhub.engine.ports import WorkQueue
    from pushhub.engine.protocol import Tick
    from pushhub.runtime.hub import Pushhub
    from pushhub.runtime.invocation import LambdaContext

POISON_WAIT_S = 1
"""Seconds until a message that is no order comes again."""

BEHIND_MS = 60_000
"""How old an accepted message is at most when it is dispatched."""

ERRORS_LATE_MS = 600_000
"""How long exhausted deliveries wait at most for their error queue."""


def push_batch(hub: Pushhub, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """SQS push, SQS retry and SQS route: attempt the batch.

    The response lists the messages that have to be redelivered.
    """
    ports, name = hub.engine.ports, queue_name(event)
    late_ms = None if name == ports.retry_queue.name else LATE_MS
    orders, poison = read_orders(event, now=ports.clock.now(), telemetry=telemetry, late_ms=late_ms)
    if name == ports.route_queue.name:
        push, source = hub.engine.route, ports.route_queue
    else:
        # The slow lane is poll's, but for a moment of the deployment that gives it to it.
        others = (each for each in (ports.retry_queue, ports.slow_queue) if each.name == name)
        push, source = hub.engine.push, next(others, ports.push_queue)
    _hand_back(poison, source)
    keep = push.run(orders, source=source, remaining_ms=context.get_remaining_time_in_millis)
    return failures(keep | poison.keys())


def poll_batch(hub: Pushhub, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """SQS poll and SQS slow: poll the endpoints of the batch for the results of their messages (hub protocol), and make
    the attempts that may take long, or are for slow subscribers.
    """
    ports = hub.engine.ports
    orders, poison = read_orders(event, now=ports.clock.now(), telemetry=telemetry)
    if queue_name(event) == ports.slow_queue.name:
        push, source = hub.engine.slow, ports.slow_queue
    else:
        push, source = hub.engine.poll, ports.poll_queue
    _hand_back(poison, source)
    keep = push.run(orders, source=source, remaining_ms=context.get_remaining_time_in_millis)
    return failures(keep | poison.keys())


def _hand_back(poison: Mapping[str, str], source: WorkQueue) -> None:
    """Make messages that are not work orders visible again soon, so that they reach the dead-letter queue, where they
    are seen, within minutes.
    """
    if not poison:
        return
    try:
        source.defer([(receipt, POISON_WAIT_S) for receipt in poison.values()])
    except Unavailable:
        # They become visible again when the queue's own timeout ends.
        telemetry.count("CallsFailed")


def dispatch_inserted(hub: Pushhub, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """Stream of the messages table: queue what was inserted.

    An unreadable record is set aside as a whole, so that it neither blocks its shard nor gets lost. If something cannot
    be queued, the error is raised: the stream then redelivers the batch from its start. Duplicates are harmless.
    """
    from pushhub.engine.store.dynamodb_messages import RESTORED, decode_message  # noqa: PLC0415 (not needed by the other functions)

    behind_ms = behind(event, hub.engine.ports.clock.now())
    if behind_ms > BEHIND_MS:
        telemetry.count("DispatchBehind")
        telemetry.event("dispatch_behind", behind_ms=behind_ms)
    messages: list[Message] = []
    for record in event["Records"]:
        try:
            image = record["dynamodb"]["NewImage"]
            if RESTORED not in image:
                messages.append(decode_message(image))
        except (KeyError, ValueError, TypeError, Unreadable) as error:
            telemetry.count("StreamRecordsPoisoned")
            telemetry.event("stream_record_poisoned", event_id=record.get("eventID"), **described(error))
            hub.engine.ports.set_aside(json.dumps(record, default=str))
    hub.engine.dispatch.run(messages)
    return failures([])


def wake_due(hub: Pushhub, event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    """Schedule, each minute: send pulses, make the ticks of schedulers (hub protocol), then queue deliveries that are
    due, and every five minutes look at the queues of dead letters.

    A run may start another one for a busy shard of the schedule (``{"shard": 7}``), which wakes that shard only. A run
    for a project (``{"project": id}``) does only what was begun for this project.
    """
    # Ticks come first: they are few and must be on time. Waking uses all remaining time while deliveries return after
    # an outage; ticks may take up to half of the time, should there be that many. Those that have much to do in an
    # outage come last.
    remaining_ms = context.get_remaining_time_in_millis
    if "shard" in event:
        return {"woken": hub.engine.wake.run(remaining_ms, shard=int(event["shard"]))}
    if "project" in event:
        work = [make() for protocol in hub.engine.protocols for make in protocol.project_work]
        return {"worked": sum(each.run_project(str(event["project"]), remaining_ms) for each in work)}
    half = remaining_ms() // 2
    ticks: list[Callable[[], Tick]] = [make for protocol in hub.engine.protocols for make in protocol.ticks]
    ticks += [lambda: hub.engine.wake_ups, lambda: hub.engine.recover]
    minute = _Parts()
    minute.run(hub.engine.pulses.run)
    ticked = 0
    for make in ticks:
        spared = half if make is ticks[-1] else half + _spared_ms(remaining_ms() - half)
        ticked += minute.run(partial(_tick, make, remaining_ms, spared))
    woken = minute.run(lambda: hub.engine.wake.run(remaining_ms))
    # Last: what a look at queues finds is for a person, and waits for none of the others.
    minute.run(hub.engine.queue_levels.run)
    minute.end()
    return {"woken": woken, "ticked": ticked}


TICK_MARGIN_MS = 10_000
"""What ticks keep free of the time that they are given, most of them."""

SPARED_MS = 5_000
"""What a tick leaves to those behind it: whoever has a thousand schedulers, or an outage, does not hold up the alerts
and tasks of others.
"""


def _spared_ms(left_ms: int) -> int:
    """How much of the time of ticks one leaves to those behind it; half of what it can use, if that is less."""
    return min(SPARED_MS, max(0, left_ms - TICK_MARGIN_MS) // 2)


def _tick(make: Callable[[], Tick], remaining_ms: Callable[[], int], spared_ms: int) -> int:
    return make().run(lambda: remaining_ms() - spared_ms)


class _Parts:
    """Parts of a run that have nothing to do with one another: one that fails stops none of the others."""

    def __init__(self) -> None:
        self._failed: Exception | None = None

    def run(self, part: Callable[[], int | None]) -> int:
        """Do a part; returns how much was done."""
        try:
            return part() or 0
        except Exception as error:  # noqa: BLE001 (told at once, and raised when every part has had its turn)
            telemetry.event("part_failed", **described(error))
            self._failed = error
            return 0

    def end(self) -> None:
        """Raise what the last part that failed did."""
        if self._failed is not None:
            raise self._failed


GLUE = "aws.glue"
"""Who tells of the ends of the report's runs."""

SWEEP_PARTS = 24
"""Parts of the messages table. Each is swept once a day; sweep's schedule has so many runs a day."""

DAY_MS = 86_400_000


def sweep_part(hub: Pushhub, event: dict[str, Any], context: LambdaContext) -> dict[str, int]:
    """Schedule, each hour: scan this hour's part of the messages table, and decide once a night whether the delivery
    report has something to prove.

    When run by hand, ``{"everything": true}`` has everything go on that the schedule's table held, too. It scans the
    whole table, or with ``{"part": 3, "parts": 24}`` beside it one part: of a large table no run sees the end.

    EventBridge: a run of the delivery report has failed. It is only counted, where an alarm watches it.
    """
    if event.get("source") == GLUE:
        telemetry.count("ReportFailed")
        telemetry.event("report_failed", run=event["detail"]["jobRunId"], state=event["detail"]["state"])
        return {"swept": 0}
    part, parts = hub.engine.ports.clock.now() // (DAY_MS // SWEEP_PARTS) % SWEEP_PARTS, SWEEP_PARTS
    everything = event.get("everything") is True
    if everything:
        part, parts = event.get("part", 0), event.get("parts", 1)
    swept = hub.engine.sweep.run(part, parts, context.get_remaining_time_in_millis, schedule_lost=everything)
    if everything:
        # Nobody waits for a quarter of an hour for the answer.
        telemetry.event("swept", part=part, parts=parts, deliveries=swept)
    elif hub.engine.nights is not None:
        hub.engine.nights.run()
    return {"swept": swept}


def handle_errors(hub: Pushhub, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """SQS errors: post exhausted deliveries to their error queues, as one batch.

    A failed one is redelivered, and finally goes to the dead-letter queue.
    """
    handlers = [protocol.exhausted() for protocol in hub.engine.protocols if protocol.exhausted]
    now = hub.engine.ports.clock.now()
    orders, poison = read_orders(event, now=now, telemetry=telemetry, late_ms=ERRORS_LATE_MS)
    keep = {*poison}
    repeated = {each.order.key for each in orders if each.receive_count > 1}
    for handler in handlers:
        failed = handler.run(
            [each.order for each in orders], repeated=repeated, remaining_ms=context.get_remaining_time_in_millis
        )
        for each in orders:
            error = failed.get(each.order.key)
            if error is not None:
                if not isinstance(error, Overdue):
                    telemetry.count("CallsFailed" if isinstance(error, Unavailable) else "PushFaults")
                telemetry.event("exhausted_unhandled", **described(error), sqs_id=each.sqs_id, **each.order.identity)
                keep.add(each.sqs_id)
    return failures(keep)
