"""What the webhook of a queue reads of CloudEvents; their bytes stay as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.cloud_events import MalformedBatch, event_in, events_in
from pushhub.base.errors import Invalid
from pushhub.engine.model.trace import TRACEPARENT, TRACESTATE, Trace
from pushhub.ironmq.model.new_event import NewEvent
from pushhub.ironmq.wire.messages import webhook_message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.base.cloud_events import ArrivedEvent


def webhook_event(body: bytes, headers: Mapping[str, str]) -> NewEvent | None:
    """The event that a webhook request brings, in structured or binary mode; None if it brings something else.

    Args:
        body: The request's body.
        headers: Names in lower case.

    Raises:
        Invalid: As for any request.
    """
    event = event_in(headers, body)
    return None if event is None else _new(event, headers)


def webhook_events(body: bytes, headers: Mapping[str, str]) -> list[NewEvent]:
    """The events of a webhook request that is a batch, in order.

    Raises:
        Invalid: It is no batch, or as for any request.
    """
    try:
        return [_new(each, headers) for each in events_in(body)]
    except MalformedBatch as error:
        raise Invalid(str(error)) from error


def _new(event: ArrivedEvent, headers: Mapping[str, str]) -> NewEvent:
    message = replace(webhook_message(event.body, headers), trace=_trace(event, headers))
    return NewEvent(message=message, event_id=event.event_id, at=event.at)


def trace_of(headers: Mapping[str, str]) -> Trace | None:
    """The trace of a request by its headers: its own, or else that of the event in it (distributed tracing extension).

    Args:
        headers: Names in lower case.
    """
    if TRACEPARENT in headers:
        return Trace.of(headers)
    if f"ce-{TRACEPARENT}" in headers:
        return Trace.of({each: headers.get(f"ce-{each}", "") for each in (TRACEPARENT, TRACESTATE)})
    return None


def _trace(event: ArrivedEvent, headers: Mapping[str, str]) -> Trace | None:
    given = event.value
    return trace_of(headers) or Trace.of(
        {each: given[each] for each in (TRACEPARENT, TRACESTATE) if isinstance(given.get(each), str)}
    )
