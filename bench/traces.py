"""What a trace costs a message in CPU: nothing without one, less than 30 microseconds with one.

    .venv/bin/python -m bench.traces [--rounds 15] [--save docs/figures/traces.md]

On the way of a message with one subscriber, the producer's headers are read, the message, with the trace or without,
is stored and read from the work order that carries it, and the attempt gets its headers and, if the project exports
spans, the span that is stored with it. That is all that a delivery waits for. Spans are made from the delivery records
by the function that writes these, 60 attempts to a request; the last row is that, by attempt. The rows take turns,
round after round, and the medians of the rounds are compared with the first row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from bench.harness import Page, cells, cpu_medians
from pushhub.base.verdict import Answer, Verdict
from pushhub.engine.model.backoff import FixedDelay
from pushhub.engine.model.delivery import Delivery, after_attempt, opening, with_span
from pushhub.engine.model.message import Message
from pushhub.engine.model.records import record_of_delivery
from pushhub.engine.model.trace import Trace, Traces
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.store._delivery_items import decode_delivery, encode_delivery
from pushhub.engine.store._message_items import encode_fields
from pushhub.engine.traces import span_of, trace_headers
from pushhub.ironmq.model.spans import MOST_ATTEMPTS, requests_of

CALLS = 500
"""Calls of a row in a round."""
AFTERWARDS = "its spans, afterwards"
AT = 1_800_000_000_000
PLAIN: dict[str, str] = {"content-type": "application/json"}
TRACED = PLAIN | {
    "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "tracestate": "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
}
ANSWER = Answer(status_code=200, message="", started_at=AT, finished_at=AT + 40, bytes_out=500, bytes_in=2)
PROJECTS: Any = SimpleNamespace(project=lambda _: SimpleNamespace(traces=Traces.OWN))
"""Whose traces are passed on, as it is remembered for half a minute."""


def order_of(message: Message, delivery: Delivery) -> Any:
    """What of an attempt's order traces look at."""
    return SimpleNamespace(message=message, delivery=delivery, attempt=1)


def on_its_way(headers: dict[str, str], *, exported: bool = False) -> Callable[[], Delivery]:
    """What is done for a message: posted, stored, carried, attempted, its outcome stored."""

    def work() -> Delivery:
        message = Message(
            project="5f0000000000000000000001",
            queue="orders",
            queue_uid="0a1b2c3d4e5f",
            message_id="6112035678239908289",
            body=b"{}",
            body_size=2,
            accepted_at=AT,
            due_at=AT,
            expires_at=AT + 3_600_000,
            subscriber_ids=("a1a2a3a4a5a6",),
            trace=Trace.of(headers),
        )
        encode_fields(message)
        carried = WorkOrder.decode(WorkOrder.carrying(message, "a1a2a3a4a5a6").encode()).message
        assert carried is not None
        delivery = opening(carried, "a1a2a3a4a5a6")
        order = order_of(carried, delivery)
        span = span_of(order) if exported else None
        trace_headers(PROJECTS, order, own=True)
        after = after_attempt(
            delivery, ANSWER, Verdict.DELIVERED, policy=FixedDelay(retries=3, delay_s=60), reserve_ms=60_000, jitter=0
        )
        after = with_span(after, span)
        encode_delivery(after)
        return after

    return work


def spans() -> Callable[[], object]:
    """Makes a request for sixty attempts from their records."""
    delivery = decode_delivery(encode_delivery(on_its_way(TRACED, exported=True)()))
    record = record_of_delivery(None, delivery, AT)
    assert record is not None
    records = [replace(record, message_id=f"{number}") for number in range(MOST_ATTEMPTS)]

    def make() -> object:
        return [*requests_of(records, lambda queue, message: (queue, None, message))]

    return make


ROWS: dict[str, tuple[Callable[[], object], int]] = {
    "no trace": (on_its_way(PLAIN), CALLS),
    "a trace": (on_its_way(TRACED), CALLS),
    "a trace, exported": (on_its_way(TRACED, exported=True), CALLS),
}


def main() -> None:
    """Measure, print and save."""
    page = Page("What traces cost", __doc__, rounds=15)
    found = cpu_medians({**ROWS, AFTERWARDS: (spans(), 5)}, page.options.rounds)
    first = found["no trace"]
    rows = [[name, *cells(".1f", found[name], found[name] - first), f"{found[name] / first:.2f}"] for name in ROWS]
    rows.append([AFTERWARDS, f"{found[AFTERWARDS] / MOST_ATTEMPTS:.1f}", "", ""])
    page.table(["a message with", "µs", "µs more", "to the first row"], rows)
    page.save()


if __name__ == "__main__":
    main()
