"""What an owner's code makes of several messages that are handed over together. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class BatchFormat(StrEnum):
    """How the parts are written together."""

    LINES = "jsonl"
    JSON = "json"
    RAW = "raw"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchContent:
    """What takes the place of the messages of a batch.

    Attributes:
        parts: Lines, elements of a list, or records; of :attr:`BatchFormat.RAW` as one text, the only one.
        name: What an object is to be called; empty for a name of the hub's own.
    """

    parts: tuple[bytes, ...] = field(repr=False)
    format: BatchFormat = BatchFormat.LINES
    name: str = ""

    @property
    def whole(self) -> bytes:
        """All of it as one text."""
        if self.format is BatchFormat.JSON:
            return b"[" + b",".join(self.parts) + b"]"
        return (
            b"".join(each + b"\n" for each in self.parts)
            if self.format is BatchFormat.LINES
            else b"\n".join(self.parts)
        )
