"""Dates in headers of HTTP."""

from __future__ import annotations

import re
from datetime import UTC
from email.utils import parsedate_to_datetime

_LEAP = re.compile(r"(?<=:[0-9]{2}):60\b")


def http_date_ms(value: str) -> int | None:
    """Epoch milliseconds of a date in a header; None if it is none.

    It is in GMT whether it says so or not, and may name a leap second (RFC 9110, section 5.6.7), which is read as the
    second before.
    """
    try:
        date = parsedate_to_datetime(_LEAP.sub(":59", value))
        return round((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
