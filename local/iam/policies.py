"""What a role's policies allow, decided as IAM decides it. Standard library only: the emulator's functions load it too.

The rules are those of the IAM User Guide ("Policy evaluation logic", "IAM JSON policy elements: Condition operators",
"Multivalued context keys"): nothing is allowed that no statement allows, and what one denies, no other can allow. Only
what the template's policies say is known here. Anything else is an error and not a guess: a right that is wrongly
understood would be found on AWS.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

Context = Mapping[str, "str | tuple[str, ...]"]
"""Condition keys of a request, in lower case. A key with several values has a tuple, also if it has only one now."""

_LOGS = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"]
_STREAMS = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams"]
_QUEUES = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
_INTERFACES = [
    *("ec2:CreateNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"),
    *("ec2:DeleteNetworkInterface", "ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses"),
]
_MANAGED = {
    "AWSLambdaBasicExecutionRole": _LOGS,
    "AWSLambdaDynamoDBExecutionRole": [*_STREAMS, *_LOGS],
    "AWSLambdaSQSQueueExecutionRole": [*_QUEUES, *_LOGS],
    "AWSLambdaVPCAccessExecutionRole": [*_LOGS, *_INTERFACES],
}
"""What AWS's own policies allow that SAM gives to the roles it makes, each on every resource of the account
(AWS Managed Policy Reference). A role that the template writes out has none of them."""
_STATEMENT = {"Sid", "Effect", "Action", "Resource", "NotResource", "Condition"}
_FOR_ALL, _FOR_ANY = "ForAllValues", "ForAnyValue"


class UnknownPolicy(ValueError):
    """A policy says something that is not known here."""


@dataclass(frozen=True)
class Need:
    """What a call needs.

    Attributes:
        action: ``dynamodb:GetItem``.
        resource: The ARN.
        context: Its condition keys.
    """

    action: str
    resource: str
    context: Context = field(default_factory=dict)


@dataclass(frozen=True, order=True)
class Right:
    """One action on one resource, as a policy grants it.

    Attributes:
        action: With its wildcards.
        resource: With its wildcards.
        condition: As JSON; empty if there is none.
    """

    action: str
    resource: str
    condition: str = ""


@dataclass(frozen=True)
class _Statement:
    allows: bool
    right: Right
    holds: Callable[[Context], bool]
    others: tuple[str, ...] = ()
    """What it is not about (``NotResource``)."""

    def is_about(self, need: Need) -> bool:
        """Whether it speaks of what a call needs; it applies if its condition holds, too."""
        if not _matches_text(self.right.action.lower(), need.action.lower()):
            return False
        left_out = any(matches_arn(each, need.resource) for each in self.others)
        return not left_out and matches_arn(self.right.resource, need.resource)


_REMEMBERED = 1_000


class Policies:
    """The identity-based policies of one role, together.

    Args:
        documents: Their documents, with everything resolved.

    Raises:
        UnknownPolicy: One says something that is not known here.
    """

    def __init__(self, documents: Iterable[Mapping[str, Any]]) -> None:
        self._statements = [each for document in documents for each in _statements(document)]
        self._about: dict[tuple[str, str], list[_Statement]] = {}

    @property
    def rights(self) -> list[Right]:
        """What is allowed, one by one."""
        return [each.right for each in self._statements if each.allows]

    def granting(self, need: Need) -> list[Right]:
        """Every right that allows a call what it needs; none if it is refused."""
        about = self._about.get((need.action, need.resource))
        if about is None:
            about = [each for each in self._statements if each.is_about(need)]
            # A role makes the same few calls again and again; only objects of buckets have many names.
            if len(self._about) < _REMEMBERED:
                self._about[need.action, need.resource] = about
        applying = [each for each in about if each.holds(need.context)]
        if not all(each.allows for each in applying):
            return []
        return [each.right for each in applying]


def _statements(document: Mapping[str, Any]) -> Iterator[_Statement]:
    # What SAM makes of a function's Policies has no version; the older language lacks variables, refused below.
    if document.get("Version", "2008-10-17") not in {"2008-10-17", "2012-10-17"}:
        raise UnknownPolicy(f"a policy of the version {document['Version']}")
    for each in listed(document["Statement"]):
        if unknown := each.keys() - _STATEMENT:
            raise UnknownPolicy(f"a statement has {', '.join(sorted(unknown))}")
        if each["Effect"] not in {"Allow", "Deny"}:
            raise UnknownPolicy(f"the effect {each['Effect']}")
        condition = each.get("Condition", {})
        holds = _condition(condition)
        restriction = json.dumps(condition, sort_keys=True) if condition else ""
        others = tuple(listed(each.get("NotResource", [])))
        if others and each["Effect"] == "Allow":
            raise UnknownPolicy("what is allowed everywhere but in some places")
        for action in listed(each["Action"]):
            for resource in ["*"] if others else listed(each["Resource"]):
                if "${" in "".join((action, resource, restriction, *others)):
                    raise UnknownPolicy(f"policy variables: {resource}")
                yield _Statement(each["Effect"] == "Allow", Right(action, resource, restriction), holds, others)


def managed(arn: str) -> Mapping[str, Any]:
    """The document of one of AWS's own policies.

    Raises:
        UnknownPolicy: It is not among those that SAM gives to functions.
    """
    actions = _MANAGED.get(arn.rpartition("/")[2])
    if actions is None:
        raise UnknownPolicy(arn)
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]}


def listed(value: Any) -> list[Any]:
    """An element of a policy that may be one value or a list of them, as a list."""
    return value if isinstance(value, list) else [value]


@lru_cache(maxsize=10_000)
def matches_arn(pattern: str, arn: str) -> bool:
    """Whether a resource of a policy stands for an ARN. ``*`` and ``?`` may be in any part, and reach over slashes and,
    in the last part, over colons.
    """
    if pattern == "*":
        return True
    wanted, given = pattern.split(":", 5), arn.split(":", 5)
    return len(wanted) == len(given) == 6 and all(map(_matches_text, wanted, given))


def _matches_text(pattern: str, value: str) -> bool:
    return bool(_compiled(pattern).fullmatch(value))


@lru_cache(maxsize=10_000)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = {"*": ".*", "?": "."}
    return re.compile("".join(parts.get(each, re.escape(each)) for each in pattern), re.DOTALL)


_OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda wanted, given: wanted == given,
    "StringLike": _matches_text,
    "ArnEquals": matches_arn,
    "ArnLike": matches_arn,
    "Bool": lambda wanted, given: wanted.lower() == given.lower(),
}


def _condition(condition: Mapping[str, Mapping[str, Any]]) -> Callable[[Context], bool]:
    """Whether every key of every operator holds."""
    tests = [
        _test(operator, key.lower(), [str(each) for each in listed(values)])
        for operator, keys in condition.items()
        for key, values in keys.items()
    ]
    return lambda context: all(each(context) for each in tests)


def _test(operator: str, key: str, wanted: Sequence[str]) -> Callable[[Context], bool]:
    if operator == "Null":
        # "true": the key is not in the request.
        return lambda context: ("true" if key not in context else "false") in [each.lower() for each in wanted]
    several, _, name = operator.rpartition(":")
    if name not in _OPERATORS or several not in {"", _FOR_ALL, _FOR_ANY}:
        raise UnknownPolicy(f"the condition operator {operator}")
    holds = _OPERATORS[name]

    def test(context: Context) -> bool:
        given = context.get(key)
        if several == "":
            if isinstance(given, tuple):
                raise UnknownPolicy(f"{operator} of {key}, which has several values")
            # A key that is not in the request is not equal to anything.
            return given is not None and any(holds(each, given) for each in wanted)
        values = () if given is None else (given,) if isinstance(given, str) else given
        # Of no values, all are as wanted, and none is.
        return (all if several == _FOR_ALL else any)(any(holds(each, value) for each in wanted) for value in values)

    return test
