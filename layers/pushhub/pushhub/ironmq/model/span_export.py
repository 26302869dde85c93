"""How a project's export of spans fares, for its owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.span_export import SpanExport

HOURS = 24
"""Hours whose spans are counted for the owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownExport:
    """A project's export, and how it fares.

    Attributes:
        exported: Spans that the collector took in the last :data:`HOURS`.
        dropped: Spans that it did not take, and that were given up.
        waiting: The oldest request that is still to be tried again; None if all is well.
    """

    export: SpanExport
    exported: int
    dropped: int
    waiting: Delivery | None
