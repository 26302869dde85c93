"""Roles of other accounts."""

from __future__ import annotations

from tests.fakes.clock import FakeClock

from pushhub.base.errors import Unavailable
from pushhub.sinks.ports import AwsKeys, RoleRefused, RoleWanted


class FakeRoles:
    """Implements :class:`pushhub.sinks.ports.AssumeRole`: a role lets in who knows the external id that it was made
    with, as its trust policy does.

    Args:
        clock: Tells when keys end.

    Attributes:
        trusting: The external id that each role demands, by its ARN. Others let nobody in.
        asked: What was asked for, in order.
        out: Whether STS is out of order.
    """

    LIFETIME_MS = 3_600_000

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.trusting: dict[str, str] = {}
        self.asked: list[RoleWanted] = []
        self.out = False

    def __call__(self, wanted: RoleWanted, /) -> tuple[AwsKeys, int]:
        self.asked.append(wanted)
        if self.out:
            raise Unavailable("sts:AssumeRole", "ServiceUnavailable")
        if self.trusting.get(wanted.role, "") != wanted.external_id:
            raise RoleRefused("AccessDenied")
        number = len(self.asked)
        keys = AwsKeys(key_id=f"ASIA{number:016}", secret="s" * 40, session=f"session-{number}")
        return keys, self._clock.now() + self.LIFETIME_MS
