"""The roles of the functions, as a template deploys them: whatever made them, the template or SAM."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from local.iam import Policies, managed
from local.place import Place

Resources = Mapping[str, Mapping[str, Any]]
"""The resources of a template after the SAM transform, by logical id, with everything resolved and without those whose
condition is false."""

_FUNCTION, _ROLE = "AWS::Lambda::Function", "AWS::IAM::Role"
_ATTACHED = ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy")


def policies_of_functions(resources: Resources) -> dict[str, Policies]:
    """What each function may do, by its logical id.

    Raises:
        UnknownPolicy: A policy says something that the evaluation does not know.
    """
    found = {}
    for name, resource in resources.items():
        if resource["Type"] == _FUNCTION:
            role = resource["Properties"]["Role"]
            found[name] = Policies(_documents(str(role).rpartition("/")[2], resources))
    return found


def _documents(role: str, resources: Resources) -> Iterator[Mapping[str, Any]]:
    """The documents of a role's policies, given its logical id."""
    properties = resources[role]["Properties"]
    yield from (each["PolicyDocument"] for each in properties.get("Policies", ()))
    yield from map(managed, properties.get("ManagedPolicyArns", ()))
    for each in resources.values():
        if each["Type"] in _ATTACHED:
            attached = each["Properties"]
            if role in [*attached.get("Roles", ()), attached.get("RoleName")]:
                yield attached["PolicyDocument"]


def notes_of(place: Place, name: str) -> list[dict[str, Any]]:
    """What was noted in a running stack: what was ``refused``, or ``used`` for the first time."""
    file = place.rights / name
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
