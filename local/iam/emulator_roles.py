"""The roles of functions, as the emulator has deployed them. Runs in the emulator's process.

MiniStack keeps a role's policies and does not ask them. A function's process does (:mod:`local.iam.function_rights`),
and here the mappings of queues and streams do, which read with the function's role.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any

from ministack.services import iam  # type: ignore[import-not-found]

from .calls import needs_of_mapping
from .function_rights import Notes
from .policies import Policies

NOTES = os.environ.get("PUSHHUB_RIGHTS", "")
"""The folder in which is noted what was refused, and what was used."""
REMEMBERED_S = 1.0
"""How long a role's policies are taken as they were."""

_OF_AWS = "arn:aws:iam::aws:"
_known: dict[str, tuple[float, list[Any]]] = {}
_mapped: dict[str, Notes] = {}


def documents_of(role: str) -> list[Any]:
    """The documents of a role's policies, given its ARN; none if there is no such role."""
    read_at, documents = _known.get(role, (0.0, []))
    if time.monotonic() - read_at > REMEMBERED_S:
        found = iam._roles.get(role.rpartition("/")[2]) or {}
        documents = [json.loads(each) for each in found.get("InlinePolicies", {}).values()]
        # AWS's own do not count: the boundary takes back what they allow beyond the stack. MiniStack keeps none.
        own = [each for each in found.get("AttachedPolicies", []) if not each.startswith(_OF_AWS)]
        documents += [_document(arn) for arn in own]
        _known[role] = time.monotonic(), documents
    return documents


def _document(policy: str) -> Any:
    """The document of a managed policy of the stack."""
    versions = iam._policies[policy]["Versions"].values()
    return json.loads(next(each["Document"] for each in versions if each["IsDefaultVersion"]))


def may_read(mapping: Mapping[str, Any], function: Mapping[str, Any]) -> bool:
    """Whether a function may read what an event source mapping is for. AWS makes no other mapping.

    Args:
        mapping: As Lambda lists it.
        function: The function's configuration.
    """
    policies = Policies(documents_of(function["Role"]))
    name = function["FunctionName"]
    notes = _mapped.setdefault(name, Notes(NOTES, name))
    may = True
    for need in needs_of_mapping(mapping):
        granting = policies.granting(need)
        if granting:
            notes.used(granting)
        else:
            notes.refused(need)
            may = False
    return may
