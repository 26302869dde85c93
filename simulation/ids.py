"""The ids of messages that a text names: orders, stream records, parameters of calls."""

from __future__ import annotations

import re

_ID = re.compile(r"\b[0-9]{19}\b")


def ids_in(text: str) -> list[str]:
    """The ids of messages that a text names."""
    return [*dict.fromkeys(_ID.findall(text))]
