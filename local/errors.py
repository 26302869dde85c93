"""What a person at the terminal sees."""

from __future__ import annotations

from collections.abc import Callable

Say = Callable[[str], None]
"""Tells the person one line."""


class LocalError(Exception):
    """Something that stops a command; its text is one complete line that says what is wrong and what to do.

    Whatever is called by a command may raise it, and does not say so again.
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
