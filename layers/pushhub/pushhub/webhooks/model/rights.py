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
        reads_secrets: Whether it may read the secrets of endpoints. Whoever may not cannot have them sent to another
            host, either, where it could read them.
    """

    reach: Reach
    flags: frozenset[str] | None = None
    reads_secrets: bool = True
