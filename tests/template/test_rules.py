"""What parameters cannot be deployed together: the template's rules are tried as CloudFormation evaluates them.

CloudFormation checks each parameter by itself first (``AllowedPattern``, ``AllowedValues``), and then every rule whose
condition holds, or that has none; each of its assertions has to hold. Source: "CloudFormation template Rules syntax".
"""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
from tests.template.cloudformation import references, source

RULES: dict[str, Any] = source()["Rules"]
PARAMETERS: dict[str, Any] = source()["Parameters"]
GIVEN = {
    "DomainName": "hub.example.com",
    "CertificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/0f1e2d3c-0000-4000-8000-000000000000",
    "WebAclArn": "arn:aws:wafv2:us-east-1:123456789012:global/webacl/hub/0f1e2d3c-0000-4000-8000-000000000000",
    "EdgeDistribution": "true",
    "EgressSubnetIds": "subnet-0a1b2c3d,subnet-0a1b2c3e",
    "EgressSecurityGroupIds": "sg-0a1b2c3d",
    "SourceAddresses": "203.0.113.7",
    "NextSourceAddresses": "198.51.100.1",
    "NextSourceAddressesFrom": "2027-01-01T00:00:00Z",
    "ConsumedQueueArn": "arn:aws:sqs:eu-central-1:123456789012:orders.fifo",
    "ConsumedQueueTo": "5f0000000000000000000001/queues/orders",
    "ConsumedEventsArn": "arn:aws:sqs:eu-central-1:123456789012:events",
    "ConsumedEventsTo": "5f0000000000000000000001/applications/shop",
}
"""A value of each parameter that a rule names; the other one is its default, as if it was not given."""
NEEDS = {
    ("DomainName", "CertificateArn"),
    ("CertificateArn", "DomainName"),
    ("WebAclArn", "EdgeDistribution"),
    ("EgressSubnetIds", "EgressSecurityGroupIds"),
    ("EgressSecurityGroupIds", "EgressSubnetIds"),
    ("SourceAddresses", "EgressSubnetIds"),
    ("NextSourceAddresses", "NextSourceAddressesFrom"),
    ("NextSourceAddressesFrom", "NextSourceAddresses"),
    ("ConsumedQueueArn", "ConsumedQueueTo"),
    ("ConsumedEventsArn", "ConsumedEventsTo"),
}
"""What does nothing, or something else than meant, without what (docs/deploy.md)."""


def value(said: Any, chosen: dict[str, str]) -> Any:
    """What an expression of a rule comes to."""
    if not isinstance(said, dict):
        return said
    [(function, given)] = said.items()
    match function:
        case "Ref":
            return chosen[given]
        case "Fn::Equals":
            one, other = (value(each, chosen) for each in given)
            return one == other
        case "Fn::Not":
            [one] = given
            return not value(one, chosen)
        case "Fn::And":
            return all(value(each, chosen) for each in given)
        case "Fn::Or":
            return any(value(each, chosen) for each in given)
        case "Fn::Contains":
            some, one = (value(each, chosen) for each in given)
            return one in some
    raise NotImplementedError(function)


def refused(chosen: dict[str, str]) -> list[str]:
    """What CloudFormation answers to these parameters."""
    return [
        each["AssertDescription"]
        for rule in RULES.values()
        if value(rule.get("RuleCondition", True), chosen)
        for each in rule["Assertions"]
        if not value(each["Assert"], chosen)
    ]


def default(name: str) -> str:
    return str(PARAMETERS[name].get("Default", ""))


@pytest.mark.parametrize("name", GIVEN)
def test_each_value_passes_by_itself(name: str) -> None:
    for each in (GIVEN[name], default(name)):
        assert re.fullmatch(PARAMETERS[name].get("AllowedPattern", ".*"), each)
        assert each in PARAMETERS[name].get("AllowedValues", [each])


def test_every_parameter_that_a_rule_names_is_tried() -> None:
    assert references(RULES) == GIVEN.keys()


def test_a_combination_is_refused_if_it_lacks_what_it_needs_and_only_then() -> None:
    # Given every combination of parameters that are given and that are not
    for given in product([False, True], repeat=len(GIVEN)):
        there = {name for name, is_given in zip(GIVEN, given, strict=True) if is_given}
        lacking = {(one, other) for one, other in NEEDS if one in there and other not in there}
        # When it is deployed
        refusal = refused({name: GIVEN[name] if name in there else default(name) for name in GIVEN})
        # Then there is one answer for each thing that is lacking, which names it and what needs it
        assert len(refusal) == len(lacking), there
        assert all(any(one in each and other in each for each in refusal) for one, other in lacking), refusal
