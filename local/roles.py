"""The roles of the functions, as a template deploys them: whatever made them, the template or SAM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from local.iam import Policies, UnknownPolicy

Resources = Mapping[str, Mapping[str, Any]]
"""The resources of a template after the SAM transform, by logical id, with everything resolved and without those whose
condition is false."""

_FUNCTION, _ROLE = "AWS::Lambda::Function", "AWS::IAM::Role"
_ATTACHED = ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy")

_LOGS = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"]
_STREAMS = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams"]
_QUEUES = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
MANAGED = {
    "AWSLambdaBasicExecutionRole": _LOGS,
    "AWSLambdaDynamoDBExecutionRole": [*_STREAMS, *_LOGS],
    "AWSLambdaSQSQueueExecutionRole": [*_QUEUES, *_LOGS],
}
"""What AWS's own policies allow that SAM gives the roles it makes, on every resource of the account (AWS Managed Policy
Reference). A role that the template writes out itself has none of them."""


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
    for arn in properties.get("ManagedPolicyArns", ()):
        actions = MANAGED.get(arn.rpartition("/")[2])
        if actions is None:
            raise UnknownPolicy(f"{role} has {arn}")
        yield {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]}
    for each in resources.values():
        if each["Type"] in _ATTACHED:
            attached = each["Properties"]
            if role in [*attached.get("Roles", ()), attached.get("RoleName")]:
                yield attached["PolicyDocument"]
