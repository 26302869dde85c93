"""Which rights of the functions' roles nobody uses: ``make rights``, after the suites.

The suites keep what was used: worlds of the simulator, ``tests/functions`` and every stack of ``tests/stack``. A right
that is in no such list is either one too many, or named here with the reason why no suite uses it.

What some suite has used once is in ``used_rights.txt``, with which a test compares the template: a new right is refused
there until a suite has used it, or it is named here. ``make rights`` writes the list anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from local.iam.roles import Granted, kept

from simulation.roles import roles

LISTED = Path(__file__).with_name("used_rights.txt")

UNUSED = {
    "past glue:* *": "Athena reads the catalog for the caller, and there is no Athena outside AWS",
    "past s3:* recordsbucket/searches/*": "Athena writes what it found, as the caller",
    "past s3:GetBucketLocation *": "Athena asks where the bucket is, as the caller",
    "sweep glue:* *": "there is no Glue outside AWS",
    "sweep events:* *": "a quiet night is told to EventBridge, which the simulator does not have",
    "push kms:GenerateDataKey key/*": "a service's token is sealed with the present key, its grant with a former one "
    "(engine/security/oauth.py, cloud/vault.py)",
    "push s3:PutObject bodiesbucket/hub/*": "a result above 8 KB, or a child message with such a body "
    "(hub/recorded_answers.py, hub/intake.py)",
    "wake s3:PutObject bodiesbucket/hub/*": "a tick of a scheduler whose message is above 8 KB (hub/ticks.py)",
    "wake dynamodb:Query table/hubtable": "which services sign, when a project's signature scheme ends (hub/ends.py)",
    "wake dynamodb:UpdateItem table/hubtable": "a store is told that a certificate or a scheme of a service ends "
    "(hub/ends.py)",
    "wake dynamodb:UpdateItem table/configtable": "a tick counts for its project's quota (engine/projects/quotas.py)",
    "wake dynamodb:UpdateItem table/webhookstable": "an organization is told of an end or a finished task, at most so "
    "often a minute (webhooks/operational/operational.py)",
    "wake s3:GetObject bodiesbucket/webhooks/*": "a task erases payloads above 8 KB (webhooks/messages/messages.py)",
    "wake s3:PutObject bodiesbucket/webhooks/*": "a task erases payloads above 8 KB (webhooks/messages/messages.py)",
    "wake s3:ListBucket bodiesbucket": "such a payload may be gone, and without it S3 answers 403 and not 404",
    "wake sqs:SendMessage routequeue": "a message that is to be routed was due later than SQS can delay "
    "(engine/acceptance/order_queues.py)",
}
"""Why no suite uses a right: its function, action and resource, with wildcards."""

SAME_CODE = {"poll": "push"}
"""Functions that do with other queues what another does: a right that the other uses, they may."""


def granted() -> set[Granted]:
    """Every right of the roles of the stack on one machine."""
    found = roles(PastSearch="objects")
    return {Granted.of(name, right) for name, role in found.items() for right in role.policies.rights}


def unused(used: Iterable[Granted]) -> list[Granted]:
    """The rights that are neither used nor named."""
    known = {*used}
    return sorted(each for each in granted() - known if not (_named(each) or _is_used_by_another(each, known)))


def listed() -> set[Granted]:
    """The rights that suites have used, as they were written down."""
    lines = LISTED.read_text(encoding="utf-8").splitlines()
    return {Granted(*line.split("\t")) for line in lines}


def reason(right: Granted) -> str | None:
    """The line of :data:`UNUSED` that names a right."""
    name = f"{right.function} {right.action} {right.resource}"
    return next((each for each in UNUSED if fnmatchcase(name, each)), None)


def _named(right: Granted) -> bool:
    other = SAME_CODE.get(right.function)
    return bool(reason(right) or (other and reason(_of(right, other))))


def _is_used_by_another(right: Granted, used: set[Granted]) -> bool:
    other = SAME_CODE.get(right.function)
    return other is not None and _of(right, other) in used


def _of(right: Granted, function: str) -> Granted:
    return Granted(function, right.action, right.resource, right.condition)


def main() -> int:
    """Print them, and write down what was used."""
    used = (kept() | listed()) & granted()
    lines = ("\t".join((each.function, each.action, each.resource, each.condition)) for each in sorted(used))
    LISTED.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    found = unused(used)
    for each in found:
        print(f"{each.function}: {each.action} on {each.resource} {each.condition}".rstrip())
    print(f"{len(granted())} rights, {len(found)} of them neither used nor named")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
