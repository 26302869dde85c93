"""Settings from the environment, checked when a function starts so that a wrong one fails at once and by name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["MissingSettingError", "Settings"]


class MissingSettingError(Exception):
    """A setting is absent or unusable.

    Args:
        name: The environment variable.
        problem: What is wrong with it.
    """

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"environment variable {name} {problem}")
        self.name = name


@dataclass(frozen=True, slots=True)
class Settings:
    """Reads what a function asks for; what it never asks for need not be set.

    Args:
        environ: Usually ``os.environ``.
    """

    environ: Mapping[str, str]

    @classmethod
    def from_environment(cls) -> Settings:
        """The settings of this process."""
        return cls(os.environ)

    def text(self, name: str) -> str:
        """A text that must be there and not be empty.

        Raises:
            MissingSettingError: It is not.
        """
        value = self.environ.get(name, "")
        if not value:
            raise MissingSettingError(name, "is not set")
        return value

    def optional(self, name: str) -> str:
        """A text that may be absent; empty then."""
        return self.environ.get(name, "")

    def number(self, name: str, *, least: int, most: int) -> int:
        """A whole number within bounds.

        Raises:
            MissingSettingError: Absent, no number, or out of bounds.
        """
        text = self.text(name)
        try:
            value = int(text)
        except ValueError as error:
            raise MissingSettingError(name, f"is not a whole number: {text!r}") from error
        if not least <= value <= most:
            raise MissingSettingError(name, f"must be {least} to {most}, not {value}")
        return value

    def listed(self, name: str) -> tuple[str, ...]:
        """A comma-separated list; empty when not set."""
        return tuple(each.strip() for each in self.environ.get(name, "").split(",") if each.strip())

    def base_url(self) -> str:
        """``PUBLIC_BASE_URL`` without a trailing slash.

        Raises:
            MissingSettingError: Absent, or not an http(s) URL.
        """
        url = self.text("PUBLIC_BASE_URL").rstrip("/")
        if not url.startswith(("http://", "https://")):
            raise MissingSettingError("PUBLIC_BASE_URL", f"is not an http(s) URL: {url!r}")
        return url
