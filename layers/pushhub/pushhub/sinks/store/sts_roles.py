"""Roles of other accounts, assumed through STS with the hub's own role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Unavailable
from pushhub.cloud.calls import aws_call, code_of
from pushhub.sinks.ports import AwsKeys, RoleRefused, RoleWanted

if TYPE_CHECKING:
    from collections.abc import Callable

LIFETIME_S = 3600
"""How long keys last: a role that is assumed with another role's keys gives none for longer."""

_REFUSED = frozenset(
    {
        *(
            "AccessDenied",
            "AccessDeniedException",
            "ValidationError",
            "MalformedPolicyDocument",
            "PackedPolicyTooLarge",
        ),
        *("RegionDisabledException", "InvalidParameterValue"),
    }
)


class StsRoles:
    """Implements :class:`pushhub.sinks.ports.AssumeRole`.

    Args:
        client: Makes the client of STS, on the first use.
    """

    def __init__(self, client: Callable[[], Any]) -> None:
        self._client = client

    def __call__(self, wanted: RoleWanted, /) -> tuple[AwsKeys, int]:
        """See the port."""
        try:
            with aws_call("sts:AssumeRole"):
                answer = self._client().assume_role(
                    RoleArn=wanted.role,
                    RoleSessionName=wanted.session,
                    ExternalId=wanted.external_id,
                    DurationSeconds=LIFETIME_S,
                    Policy=wanted.policy,
                )
        except Unavailable as error:
            code = code_of(error)
            if code in _REFUSED:
                raise RoleRefused(code) from error
            raise
        given = answer["Credentials"]
        keys = AwsKeys(key_id=given["AccessKeyId"], secret=given["SecretAccessKey"], session=given["SessionToken"])
        return keys, round(given["Expiration"].timestamp() * 1000)
