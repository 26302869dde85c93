"""What comes to the URLs of sources and is not accepted, as their owners see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pushhub.base.signature_check import Doubt

MOST_OF_AN_AGENT = 200


class Why(StrEnum):
    """Why a request was turned away, besides the doubts of :class:`pushhub.base.signature_check.Doubt`."""

    DUPLICATE = "duplicate"
    """Its sender's id was there before; it is answered as if it had been accepted."""
    LOOP = "loop"
    """It has passed too many sources and queues of hubs."""


REASONS: tuple[str, ...] = (*Doubt, *Why)
"""All of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """A request that was turned away.

    Attributes:
        why: One of :data:`REASONS`.
        at: When, epoch milliseconds.
        address: Whence.
        agent: Its ``User-Agent``, cut.
    """

    why: str
    at: int
    address: str = ""
    agent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnedAway:
    """What was turned away in a day.

    Attributes:
        day: Days since 1970, UTC.
        counts: How many requests, by reason.
        last: The last of them.
    """

    day: int
    counts: Mapping[str, int]
    last: Turned
