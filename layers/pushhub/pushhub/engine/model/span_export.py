"""Where a project exports the spans of its attempts to (docs/decisions/interfaces.md)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanExport:
    """A collector that takes OTLP over HTTP.

    Attributes:
        url: Where spans are POSTed, ``http`` or ``https``, with its whole path (``/v1/traces``).
        headers: Sent with them. ``********`` stands for values that open something.
        credentials: Those values, encrypted (:class:`pushhub.engine.security.credentials.Credentials`); empty for none.
        on: Whether spans are exported now.
    """

    project: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    credentials: bytes = field(default=b"", repr=False)
    on: bool = True
