"""The roles of the functions, as a template deploys them, whether it writes them out or SAM makes them; and which of
their rights were used.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from local.deploy import deployer
from local.iam.policies import Policies, Right, managed
from local.place import REPOSITORY, Place

USED = REPOSITORY / "build" / "rights"
"""Where suites keep what was used."""

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
    """The documents of a role's policies, given its logical id.

    A boundary takes back what AWS's own policies allow beyond the stack (``FunctionBoundary``); within it, the
    function's policies have to suffice. So they do not count where there is one.
    """
    properties = resources[role]["Properties"]
    yield from (each["PolicyDocument"] for each in properties.get("Policies", ()))
    for arn in properties.get("ManagedPolicyArns", ()):
        if arn in resources:
            yield resources[arn]["Properties"]["PolicyDocument"]
        elif "PermissionsBoundary" not in properties:
            yield managed(arn)
    for each in resources.values():
        if each["Type"] in _ATTACHED:
            attached = each["Properties"]
            if role in [*attached.get("Roles", ()), attached.get("RoleName")]:
                yield attached["PolicyDocument"]


@dataclass(frozen=True, order=True)
class Granted:
    """A right of a function, under the names of the template, wherever it was deployed.

    Attributes:
        function: Name of its folder.
        action: With its wildcards.
        resource: The last part of the ARN, with logical ids in lower case.
        condition: As JSON; empty if there is none.
    """

    function: str
    action: str
    resource: str
    condition: str = ""

    @classmethod
    def of(cls, function: str, right: Right) -> Granted:
        """The same right, from a deployment.

        Args:
            function: Name of the folder, or of the deployed function.
            right: With ARNs of that deployment.
        """
        named = _DEPLOYED.sub(r"\1", right.resource.lower().split(":", 5)[-1]).removesuffix(".fifo")
        resource = _KEY.sub("key/webhookskey", named).replace(deployer.WEBSOCKET_API, "websocketapi")
        folder = _DEPLOYED.sub(r"\1", function.lower()).removesuffix("function")
        return cls(folder, right.action, resource, right.condition)


_DEPLOYED = re.compile(r"pushhub-([a-z]+)-[0-9a-z]+")
"""The name that CloudFormation gives to a resource of the stack on one machine."""
_KEY = re.compile(r"key/[0-9a-f-]{36}")

_kept: set[Granted] = set()


def keep(used: Iterable[Granted], folder: Path = USED) -> None:
    """Keep that rights were used, for whoever asks which were not (:mod:`simulation.rights`)."""
    new = set(used) - _kept
    if not new:
        return
    _kept.update(new)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(each)) + "\n" for each in sorted(new))


def kept(folder: Path = USED) -> set[Granted]:
    """Every right that was used in a suite since the folder was emptied."""
    lines = [
        line for file in sorted(folder.glob("*.jsonl")) for line in file.read_text(encoding="utf-8").split("\n") if line
    ]
    return {Granted(**json.loads(line)) for line in lines}


def used_in(place: Place) -> set[Granted]:
    """The rights that functions used in a running stack."""
    return {
        Granted.of(each["function"], Right(each["action"], each["resource"], each["condition"]))
        for each in notes_of(place, "used")
    }


def notes_of(place: Place, name: str) -> list[dict[str, Any]]:
    """What was noted in a running stack: what was ``refused``, or ``used`` for the first time."""
    file = place.rights / name
    return [json.loads(line) for line in file.read_text().split("\n") if line] if file.exists() else []
