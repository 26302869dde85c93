"""What becomes of the members of another sender's things: each is copied, means nothing here, or is named to whoever
imports. So what a sender adds one day is not dropped silently.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_ZERO_TIME: Final = "0001-01-01T00:00:00Z"
"""What servers in Go write for no time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """The members of a kind of thing.

    Attributes:
        copied: Those that are copied, or read otherwise.
        nothing: Those that change nothing for its receiver, with the reason.
        words: What people call the others; those without a word are named as they are written.
    """

    copied: Collection[str]
    nothing: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)

    def left(self, theirs: Mapping[str, Any]) -> Iterator[str]:
        """What a thing has that is not copied, in words. A member that says nothing is left out."""
        for name, value in theirs.items():
            if name not in self.copied and name not in self.nothing and _says_something(value):
                yield self.words.get(name, name)


def not_copied(left: Collection[str]) -> list[str]:
    """The note about what is not copied; none if that is nothing."""
    return [f"not copied: {', '.join(dict.fromkeys(left))}"] if left else []


def _says_something(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(map(_says_something, value.values()))
    return bool(value) and value != _ZERO_TIME
