"""What a caller of the webhooks API may choose for an endpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pushhub.engine.model.reach import Reach


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """The rights of a caller.

    Attributes:
        reach: Where it may have messages sent.
        flags: Feature flags of an application's token; None for the organization's, which sees all event types.
    """

    reach: Reach
    flags: frozenset[str] | None = None
