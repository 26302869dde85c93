"""With ``GradualDeployment``, runs of ingest, control and push pass to a new version by and by, and go back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.template.cloudformation import ROOT, deployed, of_type, parameter, references, source

from local import deployable, template

GRADUAL = ("Ingest", "Control", "Push")
HOW = "Canary10Percent5Minutes"
MADE = {f"{name}{kind}" for name in GRADUAL for kind in ("Version", "Live", "Deployments", "ReleaseErrors")}


def gradual(how: str = HOW, **more: str) -> dict[str, Any]:
    return deployed(GradualDeployment=how, **more)


def test_it_is_off_by_default_and_adds_only_what_it_needs() -> None:
    without, there = deployed(), gradual()
    assert parameter("GradualDeployment")["Default"] == "none"
    assert there.keys() - without.keys() == MADE | {"Deployments", "DeploymentsRole"}
    changed = {name for name in without if without[name] != there[name]}
    pushes = {name for name in without if name.startswith("PushFunction")}
    assert changed == {
        *(f"{name}Function" for name in GRADUAL),
        *(f"{name}{kind}" for name in ("Ingest", "Control") for kind in ("Integration", "Permission")),
        *pushes,
    }


def test_whatever_runs_one_of_the_three_runs_the_version_that_is_live() -> None:
    there = gradual()
    for name in ("Ingest", "Control"):
        assert there[f"{name}Integration"]["Properties"]["IntegrationUri"] == {"Ref": f"{name}Live"}
        assert there[f"{name}Permission"]["Properties"]["FunctionName"] == {"Ref": f"{name}Live"}
        # The gateway may call the version before it does
        assert there[f"{name}Integration"]["DependsOn"] == [f"{name}Permission"]
    sources = {name: each for name, each in there.items() if each["Type"] == "AWS::Lambda::EventSourceMapping"}
    of_push = {name for name, each in sources.items() if references(each) & {"PushLive", "PushFunction"}}
    assert len(of_push) == 3
    assert {json.dumps(sources[name]["Properties"]["FunctionName"]) for name in of_push} == {'{"Ref": "PushLive"}'}


def test_each_release_is_another_version_and_the_former_ones_stay() -> None:
    for name in GRADUAL:
        version = source()["Resources"][f"{name}Version"]
        assert (version["DeletionPolicy"], version["UpdateReplacePolicy"]) == ("Retain", "Retain")
    made = [deployable.deployable(ROOT / "template.yaml", Path("template.json"), each) for each in ("one", "two")]
    differ = {name for name in made[0]["Resources"] if made[0]["Resources"][name] != made[1]["Resources"][name]}
    # Lambda makes no version of a function that is as it was
    assert differ == {f"{name}{kind}" for name in GRADUAL for kind in ("Version", "Function")}
    assert made[1]["Resources"]["PushVersion"]["Properties"]["Description"] == "two"
    assert "(two)" in json.dumps(made[1]["Resources"]["PushFunction"]["Properties"]["Description"])


def test_a_release_is_named_when_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployable, "release_now", lambda: "1a2b3c4-20261126T101500Z")
    assert deployable.main([str(tmp_path / "template.json")]) == 0
    written = json.loads((tmp_path / "template.json").read_text())
    assert written["Resources"]["IngestVersion"]["Properties"]["Description"] == "1a2b3c4-20261126T101500Z"
    monkeypatch.undo()
    assert len(deployable.release_now().rpartition("-")[2]) == len("20261126T101500Z")


def test_alarms_of_the_hub_stop_it_and_those_of_the_new_version_alone() -> None:
    there = gradual()
    for name in GRADUAL:
        group = there[f"{name}Deployments"]["Properties"]
        alarms = {each["Name"]["Ref"] for each in group["AlarmConfiguration"]["Alarms"]}
        assert alarms == {f"{name}ReleaseErrors", "FunctionErrors", "HubFaults", "ApiServerErrors"}
        assert group["AlarmConfiguration"]["Enabled"] is True
        assert group["AlarmConfiguration"]["IgnorePollAlarmFailure"] is False
        assert {"DEPLOYMENT_STOP_ON_ALARM", "DEPLOYMENT_FAILURE"} <= {*group["AutoRollbackConfiguration"]["Events"]}
        policy = source()["Resources"][f"{name}Live"]["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"]
        assert policy == {
            "ApplicationName": {"Ref": "Deployments"},
            "DeploymentGroupName": {"Ref": f"{name}Deployments"},
        }
        alarm = there[f"{name}ReleaseErrors"]["Properties"]
        dimensions = {each["Name"]: each["Value"] for each in alarm["Dimensions"]}
        assert dimensions["ExecutedVersion"] == {"Fn::GetAtt": [f"{name}Version", "Version"]}
        assert dimensions["Resource"] == {"Fn::Join": [":", [{"Ref": f"{name}Function"}, "live"]]}


def test_a_repair_while_an_alarm_rings_is_not_stopped_by_it() -> None:
    for name in GRADUAL:
        group = gradual("AllAtOnce")[f"{name}Deployments"]["Properties"]
        assert group["AlarmConfiguration"]["Enabled"] is False
        assert group["DeploymentConfigName"] == {"Fn::Sub": "CodeDeployDefault.Lambda${GradualDeployment}"}


def test_codedeploy_may_move_these_aliases_and_look_at_alarms() -> None:
    [policy] = gradual()["DeploymentsRole"]["Properties"]["Policies"]
    move, look = policy["PolicyDocument"]["Statement"]
    assert references(move["Resource"]) == {f"{name}Function" for name in GRADUAL}
    assert {each.partition(":")[0] for each in move["Action"]} == {"lambda"}
    assert look == {"Effect": "Allow", "Action": ["cloudwatch:DescribeAlarms"], "Resource": "*"}


def test_the_address_of_producers_stays_when_it_is_turned_on() -> None:
    """A URL of an alias is another one, so that of the function stays, and calls its newest code."""
    before, after = deployed(ProducersUrl="true"), gradual(ProducersUrl="true")
    assert {name for name in before if name.startswith("IngestUrl") and before[name] != after[name]} == set()


def test_no_other_function_has_versions() -> None:
    assert {*of_type("AWS::Lambda::Alias")} == {f"{name}Live" for name in GRADUAL}
    assert template.load(ROOT / "template.yaml")["Resources"]["PushVersion"]["Properties"]["Description"] == "unknown"
