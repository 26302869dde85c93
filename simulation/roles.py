"""The roles of the functions in the simulated account: what they grant, what was used of that, and what was refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from botocore.exceptions import ClientError
from local.deploy import template as sam
from local.iam.calls import AccountPlace, needs, needs_of_answer, needs_of_mapping, refusal
from local.iam.policies import Need, Policies, Right
from local.iam.roles import policies_of_functions

from simulation.template import BASE_URL, Resolver, template, with_parameters

PLACE = AccountPlace("us-east-1", "000000000000", "WebSocketApi", "PastWorkGroup")
_PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::Region": PLACE.region,
    "AWS::AccountId": PLACE.account,
    "AWS::StackName": "pushhub",
    "AWS::URLSuffix": "amazonaws.com",
}
_MAPPING = "AWS::Lambda::EventSourceMapping"
_REFERENCE = re.compile(r"\$\{([^}!]+)\}")

Call = Callable[..., Any]


class RoleLacks(Exception):
    """An event source may not be made: AWS refuses a mapping whose function may not read what it is for."""


@dataclass
class Role:
    """The role of a function.

    Attributes:
        function: Name of its folder.
        policies: What it grants.
        used: The rights that were used.
        refused: What was refused, in the order in which it was.
    """

    function: str
    policies: Policies
    used: set[Right] = field(default_factory=set)
    refused: list[Need] = field(default_factory=list)

    def guarded(self, service: str, call: str, real: Call) -> Call:
        """A call of a service that is refused as AWS would.

        Args:
            service: As boto3 names it.
            call: The method of its client.
        """
        operation = "".join(each.capitalize() for each in call.split("_"))

        def guarded_operation(**given: Any) -> Any:
            self.require(service, operation, needs(service, operation, given, PLACE))
            try:
                answer = real(**given)
            except ClientError as error:
                response: dict[str, Any] = {**error.response}
                self.require(service, operation, needs_of_answer(service, operation, given, response, PLACE))
                raise
            self.require(service, operation, needs_of_answer(service, operation, given, answer, PLACE))
            return answer

        return guarded_operation

    def require(self, service: str, operation: str, needed: list[Need]) -> None:
        """Note what is used.

        Raises:
            ClientError: Something is not granted.
        """
        for each in needed:
            granting = self.policies.granting(each)
            if not granting:
                self.refused.append(each)
                raise ClientError({"Error": refusal(service, each, self._caller)}, operation)  # type: ignore[typeddict-item]
            self.used.update(granting)

    @property
    def _caller(self) -> str:
        return f"arn:aws:sts::{PLACE.account}:assumed-role/{self.function}/{self.function}"


class ArnResolver(Resolver):
    """Resolves values as CloudFormation does, to ARNs in the simulated account."""

    def value(self, value: Any) -> Any:
        """A value with nothing left in it that is to be resolved."""
        resolved = super().value(value)
        if isinstance(resolved, list):
            return [each for each in resolved if each != "AWS::NoValue"]
        if isinstance(resolved, dict):
            return {name: each for name, each in resolved.items() if each != "AWS::NoValue"}
        return resolved

    def _ref(self, name: str) -> Any:
        if name in _PSEUDO:
            return _PSEUDO[name]
        resource = self._resources.get(name)
        if resource is not None and resource["Type"] == "AWS::SNS::Topic":
            return PLACE.arn("sns", name)
        return self._parameters.get(name, name)

    def _getatt(self, argument: Any) -> Any:
        name, _, attribute = argument.partition(".") if isinstance(argument, str) else (argument[0], "", argument[1])
        if attribute == "StreamArn":
            return f"{PLACE.table(name)}/stream/2026-11-20T00:00:00.000"
        if attribute != "Arn":
            return f"{BASE_URL}/{name}" if attribute == "ApiEndpoint" else name
        kind = self._resources[name]["Type"]
        return _ARNS[kind](name) if kind in _ARNS else f"arn:aws::::{kind}/{name}"

    def _sub(self, argument: Any) -> Any:
        text, names = (argument, {}) if isinstance(argument, str) else argument

        def referred(found: re.Match[str]) -> str:
            name = found[1]
            if name in names:
                return str(self.value(names[name]))
            return str(self._getatt(name) if "." in name else self._ref(name))

        return _REFERENCE.sub(referred, text)

    def _split(self, argument: Any) -> list[str]:
        between, text = argument
        return str(self.value(text)).split(between)


_ARNS: Mapping[str, Callable[[str], str]] = {
    "AWS::DynamoDB::Table": PLACE.table,
    "AWS::SQS::Queue": lambda name: PLACE.arn("sqs", name),
    "AWS::S3::Bucket": lambda name: f"arn:aws:s3:::{name}",
    "AWS::KMS::Key": PLACE.key,
    "AWS::Lambda::Function": PLACE.function,
    "AWS::IAM::Role": lambda name: f"arn:aws:iam::{PLACE.account}:role/{name}",
    "AWS::Logs::LogGroup": lambda name: PLACE.arn("logs", f"log-group:{name}:*"),
}


@cache
def _transformed() -> str:
    """The template after the SAM transform, as JSON."""
    source = deepcopy(template())
    code = {name: ("packages", name) for name in sam.code_folders(source)}
    return json.dumps(sam.transform(source, code))


@cache
def _deployed(given: str) -> dict[str, Any]:
    template = json.loads(_transformed())
    resolver = ArnResolver(template, json.loads(given))
    return {
        name: resolver.value(each)
        for name, each in template["Resources"].items()
        if "Condition" not in each or resolver.holds({"Condition": each["Condition"]})
    }


def deployed(**parameters: Any) -> dict[str, Any]:
    """The resources of the simulated account with these parameters, by logical id, with everything resolved."""
    return _deployed(json.dumps(with_parameters(parameters), sort_keys=True))


def roles(**parameters: Any) -> dict[str, Role]:
    """The roles of the functions, by the names of their folders.

    Raises:
        RoleLacks: A function may not read what one of its event sources is for.
    """
    resources = deployed(**parameters)
    granted = policies_of_functions(resources)
    names = {name: folder.strip("/").rpartition("/")[2] for name, (_, folder) in sam.code_folders(template()).items()}
    found = {name: Role(names[name], policies) for name, policies in granted.items() if name in names}
    mappings = [each["Properties"] for each in resources.values() if each["Type"] == _MAPPING]
    for mapping in mappings:
        role = found[mapping["FunctionName"]]
        for need in needs_of_mapping(mapping):
            granting = role.policies.granting(need)
            if not granting:
                raise RoleLacks(f"{role.function} may not {need.action} on {need.resource}")
            role.used.update(granting)
    return {each.function: each for each in found.values()}
