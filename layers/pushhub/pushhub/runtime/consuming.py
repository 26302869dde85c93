"""Messages of queues that are not the hub's, whose ARNs are parameters of the stack: read, taken in, reported.

What is not taken in is named in the answer, so it comes again, and goes to its own queue's dead letters in the end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pushhub.base.cloud_events import id_of
from pushhub.base.json_text import NotJson, read
from pushhub.base.numerals import MOST_DIGITS, digits
from pushhub.base.times import epoch_ms
from pushhub.cloud.deadline import deadline
from pushhub.cloud.observability import telemetry
from pushhub.cloud.settings import EnvironmentSetting, Settings, optional_text
from pushhub.engine.faults import described
from pushhub.engine.model.consumed import Consumed
from pushhub.engine.model.message import HOPS_HEADER, MAX_HOPS, hops_said
from pushhub.engine.model.trace import TRACEPARENT, TRACESTATE, Trace
from pushhub.runtime.invocation import failures

if TYPE_CHECKING:
    from pushhub.engine.protocol import TakesIn
    from pushhub.runtime.hub import Pushhub
    from pushhub.runtime.invocation import LambdaContext

EVENT_TYPE = "webhook-event-type"
"""The attribute that names what a message is about; this hub's own messages to queues have it."""

_TO = re.compile(r"([0-9A-Za-z_-]{1,64})/(queues|applications)/(.+)")
_SPARE_MS = 1_000


@dataclass(frozen=True, slots=True)
class WayIn:
    """Where what is consumed goes.

    Attributes:
        project: Id of a project.
        kind: ``queues`` or ``applications``.
        name: Of the queue; id or uid of the application.
    """

    project: str
    kind: str
    name: str


def _destination(name: str) -> EnvironmentSetting[WayIn | None]:
    def read_one(given: str) -> WayIn | None:
        found = _TO.fullmatch(given)
        if given and found is None:
            raise ValueError(f"must be PROJECT/queues/NAME or PROJECT/applications/NAME, not {given!r}")
        return WayIn(*found.groups()) if found else None

    return EnvironmentSetting(name, read_one, optional=True)


CONSUMED_QUEUE = optional_text("CONSUMED_QUEUE")
"""ARN of the queue whose messages are consumed."""
CONSUMED_QUEUE_TO = _destination("CONSUMED_QUEUE_TO")
CONSUMED_EVENTS = optional_text("CONSUMED_EVENTS")
"""ARN of the queue to which rules of EventBridge send."""
CONSUMED_EVENTS_TO = _destination("CONSUMED_EVENTS_TO")

SETTINGS = (CONSUMED_QUEUE, CONSUMED_QUEUE_TO, CONSUMED_EVENTS, CONSUMED_EVENTS_TO)


class Poison(ValueError):
    """A message will never be taken in. The text says why."""


def consume(hub: Pushhub, settings: Settings, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Messages of a queue: take them in.

    Those of a FIFO queue are taken in in the order of their groups; behind one that fails, the rest of its group waits.

    Returns:
        Those that have to come again.
    """
    arn = event["Records"][0]["eventSourceARN"]
    if arn == settings[CONSUMED_EVENTS]:
        to, as_consumed = settings[CONSUMED_EVENTS_TO], _of_event
    else:
        to, as_consumed = settings[CONSUMED_QUEUE_TO], _of_message
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for record in event["Records"]:
        group = record["attributes"].get("MessageGroupId")
        groups.setdefault(f"G{group}" if group else record["messageId"], []).append(record)
    with deadline.within((context.get_remaining_time_in_millis() - _SPARE_MS) / 1000):
        keep: set[str] = set()
        while groups:
            turn = {key: records[0] for key, records in groups.items()}
            failed = _taken(hub, to, {key: _read(record, as_consumed) for key, record in turn.items()})
            for key, error in failed.items():
                telemetry.count("MessagesNotConsumed")
                reason = {"reason": str(error)} if isinstance(error, Poison) else described(error)
                telemetry.event("message_not_consumed", sqs_id=turn[key]["messageId"], source=arn, **reason)
                keep |= {each["messageId"] for each in groups[key]}
            groups = {key: left[1:] for key, left in groups.items() if key not in failed and left[1:]}
    return failures(keep)


def _taken(hub: Pushhub, to: WayIn | None, messages: Mapping[str, Consumed | Poison]) -> dict[str, Exception]:
    """Take in one message of each group; returns those that were not, and why."""
    failed: dict[str, Exception] = {key: each for key, each in messages.items() if isinstance(each, Poison)}
    good = {key: each for key, each in messages.items() if isinstance(each, Consumed)}
    if not good:
        return failed
    if to is None:
        return failed | dict.fromkeys(good, Poison("nothing is to be consumed from here"))
    try:
        outcomes: Sequence[Exception | None] = _of(hub, to.kind).take_in(to.project, to.name, [*good.values()])
    except Exception as error:  # noqa: BLE001 (told by the caller; none of them is lost)
        outcomes = [error] * len(good)
    return failed | {key: error for key, error in zip(good, outcomes, strict=True) if error is not None}


def _of(hub: Pushhub, kind: str) -> TakesIn:
    (make,) = (each.takes_in[kind] for each in hub.engine.protocols if kind in each.takes_in)
    return make()


def _read(record: Mapping[str, Any], as_consumed: Any) -> Consumed | Poison:
    try:
        consumed: Consumed = as_consumed(record)
    except Poison as error:
        return error
    except (KeyError, TypeError, ValueError) as error:
        return Poison(str(error))
    return consumed if consumed.hops < MAX_HOPS else Poison(f"it has passed {MAX_HOPS} queues; taken for a loop")


def _of_message(record: Mapping[str, Any]) -> Consumed:
    """A message as its sender wrote it.

    The id that a sender gave it for deduplication is its id, unless SQS has made it of the body: the same body may be
    sent again another day.
    """
    body = record["body"].encode()
    given = {name: each.get("stringValue") or "" for name, each in record.get("messageAttributes", {}).items()}
    return Consumed(
        body=body,
        event_id=_own_id(record["attributes"], body) or record["messageId"],
        at=_sent_at(record["attributes"]),
        event_type=given.get(EVENT_TYPE, ""),
        order_key=record["attributes"].get("MessageGroupId"),
        hops=hops_said(given.get(HOPS_HEADER, "")),
        trace=Trace.of({each: given[each] for each in (TRACEPARENT, TRACESTATE) if each in given}),
    )


def _sent_at(attributes: Mapping[str, str]) -> int:
    sent_at = digits(attributes["SentTimestamp"], MOST_DIGITS)
    if sent_at is None:
        raise Poison("SQS did not say when it was sent")
    return sent_at


def _own_id(attributes: Mapping[str, str], body: bytes) -> str:
    from hashlib import sha256  # noqa: PLC0415 (few queues are FIFO)

    given = attributes.get("MessageDeduplicationId", "")
    if not given or given == sha256(body).hexdigest():
        return ""
    return id_of(attributes.get("MessageGroupId", ""), given)


def _of_event(record: Mapping[str, Any]) -> Consumed:
    """An event of EventBridge, as the bus has written it."""
    body = record["body"].encode()
    try:
        event = read(body, last_wins=True)
    except NotJson as error:
        raise Poison(f"it is no event of EventBridge: {error}") from error
    named = {each: event.get(each) for each in ("id", "time", "detail-type")} if isinstance(event, dict) else {}
    if not named or not all(isinstance(each, str) and each for each in named.values()):
        raise Poison("it is no event of EventBridge")
    return Consumed(
        body=body,
        event_id=str(named["id"]),
        at=epoch_ms(str(named["time"])),
        event_type=str(named["detail-type"]),
        order_key=record["attributes"].get("MessageGroupId"),
    )
