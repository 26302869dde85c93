"""Settings from the environment, checked when a function starts so that a wrong one fails at once, by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


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
class EnvironmentSetting(Generic[T]):
    """A setting that a function may have.

    Attributes:
        name: The environment variable.
        read: Parses the text; its ``ValueError`` says what is wrong.
        optional: Whether it may be absent; it is then read as an empty text.
    """

    name: str
    read: Callable[[str], T]
    optional: bool = False


def text(name: str) -> EnvironmentSetting[str]:
    """A text that must not be empty."""
    return EnvironmentSetting(name, str)


def optional_text(name: str) -> EnvironmentSetting[str]:
    """A text; empty when not set."""
    return EnvironmentSetting(name, str, optional=True)


def listed(name: str) -> EnvironmentSetting[tuple[str, ...]]:
    """A comma-separated list; empty when not set."""
    return EnvironmentSetting(
        name, lambda given: tuple(each.strip() for each in given.split(",") if each.strip()), optional=True
    )


def number(name: str, *, least: int, most: int) -> EnvironmentSetting[int]:
    """An integer within bounds."""

    def read(given: str) -> int:
        try:
            value = int(given)
        except ValueError as error:
            raise ValueError(f"is not a whole number: {given!r}") from error
        if not least <= value <= most:
            raise ValueError(f"must be {least} to {most}, not {value}")
        return value

    return EnvironmentSetting(name, read)


def one_of(name: str, *values: str) -> EnvironmentSetting[str]:
    """One of a few words."""

    def read(given: str) -> str:
        if given not in values:
            raise ValueError(f"must be one of {', '.join(values)}, not {given!r}")
        return given

    return EnvironmentSetting(name, read)


def url(name: str) -> EnvironmentSetting[str]:
    """An http(s) URL, stored without a trailing slash."""

    def read(given: str) -> str:
        if not given.startswith(("http://", "https://")):
            raise ValueError(f"is not an http(s) URL: {given!r}")
        return given.rstrip("/")

    return EnvironmentSetting(name, read)


class Settings:
    """The settings of one function, all read and checked on creation.

    Args:
        declared: The function's settings. Asking for any other is an error, so that none is missing in the template
            unnoticed.
        environ: The environment to read them from.

    Raises:
        MissingSettingError: One is absent or unusable.
    """

    def __init__(self, declared: Collection[EnvironmentSetting[Any]], environ: Mapping[str, str] = os.environ) -> None:
        self._values: dict[str, Any] = {each.name: _value(each, environ) for each in declared}

    def __getitem__(self, setting: EnvironmentSetting[T]) -> T:
        """The value of a setting.

        Raises:
            MissingSettingError: The function does not have it.
        """
        if setting.name not in self._values:
            raise MissingSettingError(setting.name, "is not among the settings of this function")
        value: T = self._values[setting.name]
        return value

    def get(self, setting: EnvironmentSetting[T], default: T) -> T:
        """The value of a setting that only some of the functions have."""
        return self[setting] if setting.name in self._values else default


def _value(setting: EnvironmentSetting[Any], environ: Mapping[str, str]) -> object:
    given = environ.get(setting.name, "")
    if not given and not setting.optional:
        raise MissingSettingError(setting.name, "is not set")
    try:
        return setting.read(given)
    except ValueError as error:
        raise MissingSettingError(setting.name, str(error)) from error
