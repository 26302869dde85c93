"""The only exception that a person at the terminal sees, as one line."""

from __future__ import annotations

__all__ = ["LocalError"]


class LocalError(Exception):
    """Something that stops a command; its text is one complete line that says what is wrong and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
