"""A model of STS: roles of other people's accounts, whose keys end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from simulation.dynamodb import service_error


@dataclass(frozen=True)
class Keys:
    """Keys of a role.

    Attributes:
        key_id: The public half.
        role: The ARN of their role.
        external_id: With which it was assumed.
        given_at: When they were given, epoch milliseconds.
        ends_at: When they end, epoch milliseconds.
        policy: The session policy that bounds them.
    """

    key_id: str
    role: str
    external_id: str
    given_at: int
    ends_at: int
    policy: str = ""

    def open_only(self, action: str, resource: str) -> bool:
        """Whether they open nothing but one action on one resource, and the encryption of what its service is sent."""
        statements = json.loads(self.policy)["Statement"] if self.policy else []
        own, via = {"Effect": "Allow", "Action": action, "Resource": resource}, f"{action.partition(':')[0]}."
        return own in statements and all(each == own or _encrypts(each, via) for each in statements)


def _encrypts(statement: Mapping[str, Any], via: str) -> bool:
    """Whether a statement is about keys of KMS alone, as a service uses them whose name begins so."""
    service = statement.get("Condition", {}).get("StringEquals", {}).get("kms:ViaService", "")
    return {*statement["Action"]} <= {"kms:GenerateDataKey", "kms:Decrypt"} and service.startswith(via)


class Sts:
    """Roles that let in whoever shows their external id; one that has none lets in everybody.

    Args:
        now_ms: Its clock, epoch milliseconds.

    Attributes:
        external_ids: By the ARN of the role.
        closed: The ARNs of roles that let nobody in.
        given: The keys that were given, by their public half.
        asked: How often keys of each role were asked for.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.now_ms = now_ms
        self.external_ids: dict[str, str] = {}
        self.closed: set[str] = set()
        self.given: dict[str, Keys] = {}
        self.asked: Counter[str] = Counter()

    def lets_in(self, role: str, everybody: bool) -> int:
        """Have a role let everybody in from now on, or nobody; how often its keys were asked for until now."""
        if everybody:
            self.closed.discard(role)
        else:
            self.closed.add(role)
        return self.asked[role]

    def assume_role(self, **asked: Any) -> dict[str, Any]:
        """AssumeRole."""
        role, external_id = asked["RoleArn"], asked["ExternalId"]
        self.asked[role] += 1
        if role in self.closed or self.external_ids.get(role, external_id) != external_id:
            raise service_error("AccessDenied", "AssumeRole")
        now = self.now_ms()
        ends_at = now + asked["DurationSeconds"] * 1000
        keys = Keys(f"ASIA{len(self.given):016d}", role, external_id, now, ends_at, asked.get("Policy", ""))
        self.given[keys.key_id] = keys
        credentials = {
            "AccessKeyId": keys.key_id,
            "SecretAccessKey": "secret",
            "SessionToken": f"session-{keys.key_id}",
        }
        return {"Credentials": {**credentials, "Expiration": datetime.fromtimestamp(ends_at / 1000, UTC)}}
