"""What commands of all kinds print."""

from __future__ import annotations

from typing import Any

NO_QUEUE = "the hub says 404: Queue not found"
REFUSED, WRONG_USAGE = 1, 2
HUB = "https://hub.example"


def would(*words: str) -> Any:
    """What a dry run prints: the request that it does not send."""
    return [{"would": lambda each: all(word in each for word in words)}]


__all__ = ["HUB", "NO_QUEUE", "REFUSED", "WRONG_USAGE", "would"]
