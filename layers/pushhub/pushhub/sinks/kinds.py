"""The kinds of subscribers on AWS. A new one is a module in ``wire/`` and a line here."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pushhub.sinks.model.kind import Kind


@dataclass(frozen=True, slots=True)
class KindOffer:
    """A kind, whose module is loaded when it is first used: most hubs use none.

    Attributes:
        scheme: The scheme of its URLs.
        module: Its module in ``wire/``.
        name: Its class.
        carries_headers: Whether headers and signatures go with its messages.
    """

    scheme: str
    module: str
    name: str
    carries_headers: bool = True

    def load(self) -> Kind:
        """The kind."""
        kind: Kind = getattr(import_module(f"pushhub.sinks.wire.{self.module}"), self.name)()
        return kind


KINDS = (
    KindOffer("sqs", "sqs", "Sqs"),
    KindOffer("sns", "sns", "Sns"),
    KindOffer("events", "event_buses", "EventBuses", carries_headers=False),
    KindOffer("lambda", "functions", "Functions"),
    KindOffer("s3", "s3", "Buckets", carries_headers=False),
    KindOffer("kinesis", "kinesis", "DataStreams", carries_headers=False),
)
