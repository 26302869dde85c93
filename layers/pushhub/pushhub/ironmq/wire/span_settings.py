"""Where a project exports the spans of its attempts to, on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.base.credentials import masked_headers, user_of
from pushhub.base.errors import Invalid
from pushhub.base.times import iso_time
from pushhub.engine.model.span_export import SpanExport
from pushhub.ironmq.wire.headers import subscriber_headers_of
from pushhub.ironmq.wire.urls import check_callable
from pushhub.web.json import boolean, section, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.engine.model.delivery import Delivery
    from pushhub.ironmq.model.span_export import ShownExport

MAX_COLLECTOR_URL = 2_000
MAX_COLLECTOR_HEADERS = 10
MAX_COLLECTOR_HEADER = 2_000
"""Characters of a header's value."""

_OURS = frozenset({"content-type", "content-encoding"})


def parse_span_export(project_id: str, fields: Mapping[str, Any]) -> SpanExport:
    """Read where spans are to be exported to."""
    given = section(fields, "traces")
    if given is None:
        raise Invalid("traces is required")
    url = (text(given, "url") or "").strip()
    if not 0 < len(url) <= MAX_COLLECTOR_URL:
        raise Invalid(f"url must have 1 to {MAX_COLLECTOR_URL} characters")
    if url.partition(":")[0].lower() not in ("http", "https"):
        raise Invalid("url must begin with https:// or http://")
    if user_of(url) is not None:
        raise Invalid("url may not hold a user name or password; give a header authorization")
    check_callable(url)
    headers = subscriber_headers_of(section(given, "headers"))
    if len(headers) > MAX_COLLECTOR_HEADERS:
        raise Invalid(f"There can be at most {MAX_COLLECTOR_HEADERS} headers")
    for name, value in headers.items():
        if name.lower() in _OURS:
            raise Invalid(f"Header {name} cannot be set")
        if len(value) > MAX_COLLECTOR_HEADER:
            raise Invalid(f"Header {name} may have at most {MAX_COLLECTOR_HEADER} characters")
    on = boolean(given, "on") if given.get("on") is not None else True
    return SpanExport(project=project_id, url=url, headers=headers, on=on)


def render_span_export(shown: ShownExport | None) -> dict[str, object] | None:
    """What is set and how it fares, without the values of headers; None for nothing."""
    if shown is None:
        return None
    export = shown.export
    return {
        "url": export.url,
        "headers": masked_headers(export.headers),
        "on": export.on,
        "exported": shown.exported,
        "dropped": shown.dropped,
        "failing": None if shown.waiting is None else _failing(shown.waiting),
    }


def _failing(delivery: Delivery) -> dict[str, object]:
    status = delivery.status(delivery.subscriber_id)
    return {
        "since": iso_time(delivery.accepted_at),
        "status_code": status.status_code or 0,
        "message": status.message,
        "next_try_at": None if delivery.due_at is None else iso_time(delivery.due_at),
    }
