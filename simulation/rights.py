"""Which rights of the functions' roles nobody uses: ``make rights``, after the suites.

The suites keep what was used: worlds of the simulator, ``tests/functions`` and every stack of ``tests/stack``. A right
that is in no such list is either one too many, or named here with the reason why no suite can use it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from fnmatch import fnmatchcase

from local.roles import Granted, kept

from simulation.roles import roles

UNUSABLE = {
    "* logs:* *": "Lambda writes the log itself",
    "past glue:* *": "Athena reads the catalog for the caller, and there is no Athena outside AWS",
    "past s3:* recordsbucket/searches/*": "Athena writes what it found, as the caller",
    "past s3:GetBucketLocation *": "Athena asks where the bucket is, as the caller",
    "sweep glue:* *": "there is no Glue outside AWS",
    "sweep events:* *": "a quiet night is told to EventBridge, which the simulator does not have",
}
"""Why no suite uses a right: its function, action and resource, with wildcards."""


def granted() -> set[Granted]:
    """Every right of the roles of the stack on one machine."""
    found = roles(PastSearch="objects")
    return {Granted.of(name, right) for name, role in found.items() for right in role.policies.rights}


def unused(used: Iterable[Granted]) -> list[Granted]:
    """The rights that are neither used nor named."""
    return sorted(each for each in granted() - {*used} if not _named(each))


def _named(right: Granted) -> bool:
    told = f"{right.function} {right.action} {right.resource}"
    return any(fnmatchcase(told, each) for each in UNUSABLE)


def main() -> int:
    """Print them."""
    used = kept()
    if not used:
        print("no suite has kept what it used: run some first")
        return 1
    found = unused(used)
    for each in found:
        print(f"{each.function}: {each.action} on {each.resource} {each.condition}".rstrip())
    print(f"{len(granted())} rights, {len(found)} of them neither used nor named")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
