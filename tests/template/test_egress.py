"""Strangers are called from fixed addresses if subnets are given, and from anywhere if not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.template.cloudformation import deployed, parameter

from pushhub.cloud.settings import MissingSettingError
from pushhub.engine.wiring import ALLOWED_TARGETS, SETTINGS
from pushhub.runtime.control import ADDRESSES
from pushhub.runtime.hub import settings_of
from pushhub.runtime.source_addresses import PATH, SourceAddresses

ONLY_CHECKS = {"ingest"}
"""Checks URLs of what is made along with a post, and calls nobody."""
GIVEN = {"EgressSubnetIds": "subnet-1,subnet-2", "EgressSecurityGroupIds": "sg-1"}


def vpc_of(resources: dict[str, Any]) -> set[str]:
    functions = {name: each for name, each in resources.items() if each["Type"] == "AWS::Lambda::Function"}
    return {name for name, each in functions.items() if "VpcConfig" in each["Properties"]}


def test_what_calls_strangers_runs_in_the_subnets_and_nothing_else_does() -> None:
    # Those that have the guard's setting, without which no request can be made
    callers = {function for function, settings in SETTINGS.items() if ALLOWED_TARGETS in settings} - ONLY_CHECKS
    there = deployed(**GIVEN)
    assert vpc_of(there) == {f"{each.capitalize()}Function" for each in callers}
    assert vpc_of(deployed()) == set()
    for name in vpc_of(there):
        config = there[name]["Properties"]["VpcConfig"]
        assert config["SubnetIds"] == {"Fn::Split": [",", {"Ref": "EgressSubnetIds"}]}
        assert config["SecurityGroupIds"] == {"Fn::Split": [",", {"Ref": "EgressSecurityGroupIds"}]}


def test_nothing_else_changes() -> None:
    before, after = deployed(), deployed(**GIVEN)
    assert before.keys() == after.keys()
    changed = {name for name in before if before[name] != after[name]}
    assert changed - {"FunctionBoundary"} == {f"{name}Function" for name in ("Push", "Poll", "Control")}
    assert not [name for name in changed if "VpcConfig" in json.dumps(before[name])]


def test_network_interfaces_can_be_made_only_if_functions_are_in_the_vpc() -> None:
    """SAM gives roles AWSLambdaVPCAccessExecutionRole wherever there may be a VPC; the boundary takes it back."""
    assert '"ec2:*"' in json.dumps(deployed()["FunctionBoundary"])
    assert "ec2" not in json.dumps(deployed(**GIVEN)["FunctionBoundary"])


def answered(monkeypatch: pytest.MonkeyPatch, method: str = "GET", **settings: str) -> dict[str, Any]:
    for name in ("SOURCE_ADDRESSES", "NEXT_SOURCE_ADDRESSES", "NEXT_SOURCE_ADDRESSES_FROM"):
        monkeypatch.setenv(name, settings.get(name, ""))
    event = {"rawPath": PATH, "headers": {}, "requestContext": {"stage": "$default", "http": {"method": method}}}
    return SourceAddresses().handle(event)


def test_receivers_are_told_the_addresses_and_what_they_will_be(monkeypatch: pytest.MonkeyPatch) -> None:
    assert json.loads(answered(monkeypatch)["body"]) == {"version": 1, "fixed": False, "prefixes": [], "upcoming": []}
    answer = answered(
        monkeypatch,
        SOURCE_ADDRESSES="203.0.113.7,203.0.113.16/28",
        NEXT_SOURCE_ADDRESSES="198.51.100.1,2001:db8::/56",
        NEXT_SOURCE_ADDRESSES_FROM="2027-01-01T01:00+01:00",
    )
    assert json.loads(answer["body"]) == {
        "version": 1,
        "fixed": True,
        "prefixes": ["203.0.113.7/32", "203.0.113.16/28"],
        "upcoming": [{"from": "2027-01-01T00:00:00Z", "prefixes": ["198.51.100.1/32", "2001:db8::/56"]}],
    }
    assert answer["headers"]["Cache-Control"] == "public, max-age=3600"
    assert answered(monkeypatch, "HEAD")["statusCode"] == 200
    assert answered(monkeypatch, "POST")["statusCode"] == 405
    assert f"{PATH}/" in ADDRESSES


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SOURCE_ADDRESSES", "300.1.1.1"),
        ("SOURCE_ADDRESSES", "203.0.113.7/24"),
        ("NEXT_SOURCE_ADDRESSES", "nonsense"),
        ("NEXT_SOURCE_ADDRESSES_FROM", "tomorrow"),
        ("NEXT_SOURCE_ADDRESSES_FROM", "2027-01-01T00:00"),
    ],
)
def test_control_does_not_start_with_addresses_that_are_none(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    assert name in {each.name for each in settings_of("control")}
    with pytest.raises(MissingSettingError, match=name):
        answered(monkeypatch, **{name: value})


def test_all_of_it_is_off_by_default() -> None:
    for name in (*GIVEN, "SourceAddresses", "NextSourceAddresses", "NextSourceAddressesFrom"):
        assert parameter(name)["Default"] == ""
