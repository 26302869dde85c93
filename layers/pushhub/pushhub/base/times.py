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


def end_in_words(days_left: int) -> str:
    """When something ends, for people; 0 days: it has ended."""
    return f"ends in {days_left} day{'s' if days_left > 1 else ''}" if days_left else "has ended"
