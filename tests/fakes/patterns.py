"""Regular expressions of filters, without a process for them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pushhub.hub.model.filters import Asked, PatternTimeout

ENDLESS = "(a|aa)+$"
"""A pattern that takes for ever on a text that almost matches."""


def re_matches(asked: Sequence[Asked]) -> list[list[bool]]:
    """Runs patterns in this process, except the one that takes for ever."""
    for pattern, _ in asked:
        if pattern == ENDLESS:
            raise PatternTimeout(pattern)
    return [[re.search(pattern, text) is not None for text in texts] for pattern, texts in asked]
