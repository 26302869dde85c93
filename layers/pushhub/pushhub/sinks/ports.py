"""What subscribers on AWS need from outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsKeys:
    """What signs requests.

    Attributes:
        session: Goes with temporary keys; empty for others.
    """

    key_id: str
    secret: str = field(repr=False)
    session: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleWanted:
    """A role to be assumed for one subscriber.

    Attributes:
        role: Its ARN.
        external_id: The hub's, for whoever named the role.
        session: The name under which the role's account sees the calls.
        policy: JSON; bounds what the credentials can do.
    """

    role: str
    external_id: str
    session: str
    policy: str


class RoleRefused(Exception):
    """A role cannot be assumed, for a reason that its owner can change.

    Args:
        code: What STS calls it.
    """

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class AssumeRole(Protocol):
    """Asks for temporary keys."""

    def __call__(self, wanted: RoleWanted, /) -> tuple[AwsKeys, int]:
        """The keys, and when they end, epoch milliseconds.

        Raises:
            RoleRefused: The role does not let the hub in.
        """


class Sign(Protocol):
    """Signs a request to a service."""

    def __call__(
        self,
        keys: AwsKeys,
        *,
        service: str,
        region: str,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
    ) -> Mapping[str, str]:
        """The headers to send, those given among them."""
