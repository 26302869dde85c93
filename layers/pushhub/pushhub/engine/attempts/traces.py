"""Traces on their way: from a producer's request to each attempt (docs/decisions/interfaces.md)."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.engine.model.trace import Span, Traces

if TYPE_CHECKING:
    from pushhub.engine.model.trace import Trace
    from pushhub.engine.ports import ProjectStore
    from pushhub.engine.target import PushOrder


def passed_on(projects: ProjectStore, order: PushOrder, *, own: bool) -> Trace | None:
    """The trace as an attempt passes it on: with the attempt as the parent of what follows. None for no trace.

    Args:
        projects: Knows to whom the project passes traces on; read only if the message has one.
        order: The attempt.
        own: Whether the receiver is the project's own, not an endpoint of an application.
    """
    trace = order.message.trace
    if trace is None:
        return None
    project = projects.project(order.message.project)
    wanted = project.traces if project else Traces.OFF
    if wanted is Traces.OFF or (wanted is Traces.OWN and not own):
        return None
    return replace(trace, parent_id=span_id(order))


def span_id(order: PushOrder) -> str:
    """The id of an attempt's span: 16 hex characters that follow from what is recorded of the attempt."""
    name = f"{order.delivery.delivery_id}/{order.attempt}/{order.delivery.asked_at or ''}"
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def span_of(order: PushOrder) -> Span | None:
    """An attempt's place in the message's trace; None without one whose spans are kept."""
    trace = order.message.trace
    if trace is None or not trace.sampled:
        return None
    return Span(trace_id=trace.trace_id, parent_id=trace.parent_id, span_id=span_id(order))


def trace_headers(projects: ProjectStore, order: PushOrder, *, own: bool) -> dict[str, str]:
    """The headers of :func:`passed_on`; none without a trace."""
    trace = passed_on(projects, order, own=own)
    return {} if trace is None else trace.headers
