"""What the webhook of a queue reads of a CloudEvent; its bytes stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pushhub.base.json_text import NotJson, read
from pushhub.engine.model.trace import TRACEPARENT, TRACESTATE, Trace

if TYPE_CHECKING:
    from collections.abc import Mapping

STRUCTURED: Final = "application/cloudevents+json"


def webhook_trace(body: bytes, headers: Mapping[str, str]) -> Trace | None:
    """The trace of a webhook request: of its own header, or else of the event in it (distributed tracing extension).

    Args:
        body: The request's body; looked into only if it is an event in structured mode.
        headers: Names in lower case.
    """
    if TRACEPARENT in headers:
        return Trace.of(headers)
    if f"ce-{TRACEPARENT}" in headers:
        return Trace.of({each: headers.get(f"ce-{each}", "") for each in (TRACEPARENT, TRACESTATE)})
    if not headers.get("content-type", "").lower().startswith(STRUCTURED):
        return None
    try:
        event = read(body, last_wins=True)
    except NotJson:
        return None
    given = event if isinstance(event, dict) else {}
    return Trace.of({each: given[each] for each in (TRACEPARENT, TRACESTATE) if isinstance(given.get(each), str)})
