"""With ``GradualDeployment``, runs of ingest, control and push pass to a new version by and by, and go back."""

from __future__ import annotations

import json
from typing import Any

from local.deploy import template
from tests.template.cloudformation import deployed, of_type, parameter, references, source, whole

GRADUAL = ("Ingest", "Control", "Push")
HOW = "Canary10Percent5Minutes"


def gradual(how: str = HOW, **more: str) -> dict[str, Any]:
    return deployed(GradualDeployment=how, **more)


def with_preference(how: str) -> dict[str, Any]:
    """As CloudFormation transforms it with the parameter: SAM's transform looks at its value."""
    written = whole()
    written["Parameters"] = {
        **written["Parameters"],
        "GradualDeployment": {**written["Parameters"]["GradualDeployment"], "Default": how},
    }
    code = dict.fromkeys(template.code_folders(written), ("artifacts", "package.zip"))
    resources: dict[str, Any] = template.transform(written, code)["Resources"]
    return resources


def test_it_is_off_by_default_and_adds_only_what_it_needs() -> None:
    without, there = deployed(), gradual()
    assert parameter("GradualDeployment")["Default"] == "none"
    assert there.keys() - without.keys() == {f"{name}ReleaseErrors" for name in GRADUAL}
    changed = {name for name in without if without[name] != there[name]}
    pushes = {name for name in without if name.startswith("PushFunction") and "EventSourceArn" in str(without[name])}
    assert changed == {
        *(f"{name}{kind}" for name in ("Ingest", "Control") for kind in ("Integration", "Permission")),
        *pushes,
    }
    resources = {name for name, each in with_preference("none").items() if "CodeDeploy" in json.dumps(each)}
    assert resources == set()


def test_whatever_runs_one_of_the_three_runs_the_version_that_is_live() -> None:
    there = gradual()
    for name in ("Ingest", "Control"):
        live = {"Ref": f"{name}FunctionAliaslive"}
        assert there[f"{name}Integration"]["Properties"]["IntegrationUri"] == live
        assert there[f"{name}Permission"]["Properties"]["FunctionName"] == live
        # The gateway may call the version before it does
        assert there[f"{name}Integration"]["DependsOn"] == [f"{name}Permission"]
    sources = [each for each in there.values() if each["Type"] == "AWS::Lambda::EventSourceMapping"]
    of_push = [each for each in sources if references(each) & {"PushFunctionAliaslive", "PushFunction"}]
    assert len(of_push) == 3
    assert all(each["Properties"]["FunctionName"] == {"Ref": "PushFunctionAliaslive"} for each in of_push)


def versions(layer: str) -> dict[str, Any]:
    """Logical ids of versions by function, with the layer's package at a place."""
    written = whole()
    code = dict.fromkeys(template.code_folders(written), ("artifacts", "handler.zip"))
    code["PushhubLayer"] = ("artifacts", layer)
    resources = template.transform(written, code)["Resources"]
    return {
        each["Properties"]["FunctionName"]["Ref"]: (name, each.get("DeletionPolicy"))
        for name, each in resources.items()
        if each["Type"] == "AWS::Lambda::Version"
    }


def test_another_layer_is_another_version_and_the_former_ones_stay() -> None:
    # Given two releases that differ in the layer alone, where the hub's code is
    before, after = versions("one.zip"), versions("two.zip")
    # Then each has a version of its own, by its name, and CloudFormation keeps the former one
    assert before.keys() == after.keys() == {f"{name}Function" for name in GRADUAL}
    for name, (version, policy) in before.items():
        assert version != after[name][0]
        assert policy == "Retain"
    assert versions("one.zip") == before


def test_alarms_of_the_hub_stop_it_and_those_of_the_new_version_alone() -> None:
    resources = with_preference(HOW)
    names = {
        each["Properties"]["AlarmName"]["Fn::Sub"]
        for each in resources.values()
        if each["Type"] == "AWS::CloudWatch::Alarm"
    }
    for name in GRADUAL:
        group = resources[f"{name}FunctionDeploymentGroup"]["Properties"]
        condition, watched, _ = group["AlarmConfiguration"]["Fn::If"]
        assert condition == "LooksAtAlarms"
        own, *others = [each["Name"] for each in watched["Alarms"]]
        assert own == {"Ref": f"{name}ReleaseErrors"}
        # By their names: they look at what would otherwise wait for them
        reported = {each["Fn::Sub"] for each in others}
        assert reported == {
            f"${{AWS::StackName}}-{each}" for each in ("FunctionErrors", "HubFaults", "ApiServerErrors")
        }
        assert reported <= names
        assert {"DEPLOYMENT_STOP_ON_ALARM", "DEPLOYMENT_FAILURE"} <= {*group["AutoRollbackConfiguration"]["Events"]}
        assert "CodeDeployLambdaAliasUpdate" in resources[f"{name}FunctionAliaslive"]["UpdatePolicy"]
        dimensions = {
            each["Name"]: each["Value"] for each in resources[f"{name}ReleaseErrors"]["Properties"]["Dimensions"]
        }
        (version,) = references(dimensions["ExecutedVersion"])
        assert resources[version]["Properties"]["FunctionName"] == {"Ref": f"{name}Function"}
        assert dimensions["Resource"] == {"Fn::Sub": f"${{{name}Function}}:live"}


def test_a_repair_while_an_alarm_rings_is_not_stopped_by_it() -> None:
    for name in GRADUAL:
        group = with_preference("AllAtOnce")[f"{name}FunctionDeploymentGroup"]["Properties"]
        assert not group["AlarmConfiguration"]["Fn::If"][2].get("Alarms")
        assert "AllAtOnce" in json.dumps(group["DeploymentConfigName"])


def test_every_way_of_codedeploy_is_one() -> None:
    rollouts = source()["Mappings"]["Rollouts"]
    assert list(rollouts) == parameter("GradualDeployment")["AllowedValues"]
    assert rollouts.pop("none")["Enabled"] is False
    assert all(each == {"Enabled": True, "Type": name} for name, each in rollouts.items())


def test_the_address_of_producers_stays_when_it_is_turned_on() -> None:
    """A URL of an alias is another one, so that of the function stays, and calls its newest code."""
    before, after = deployed(ProducersUrl="true"), gradual(ProducersUrl="true")
    assert {name for name in before if name.startswith("IngestUrl") and before[name] != after[name]} == set()


def test_no_other_function_has_versions() -> None:
    assert {*of_type("AWS::Lambda::Alias")} == {f"{name}FunctionAliaslive" for name in GRADUAL}
