"""The time format used everywhere: in answers, error messages and delivery records."""

from __future__ import annotations

from datetime import UTC, datetime


def epoch_ms(iso: str) -> int:
    """Epoch milliseconds of a time in the format of :func:`iso_time`.

    Raises:
        ValueError: It has another format.
    """
    return round(datetime.fromisoformat(iso).timestamp() * 1000)


def iso_time(epoch_ms: int) -> str:
    """Epoch milliseconds as ``2026-11-21T05:34:16.123Z``."""
    moment = datetime.fromtimestamp(epoch_ms // 1000, UTC).replace(tzinfo=None)
    return f"{moment.isoformat()}.{epoch_ms % 1000:03d}Z"
