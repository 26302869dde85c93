"""Logs and functions' settings are encrypted with a key of the operator's, if there is one."""

from __future__ import annotations

import json

from tests.template.cloudformation import deployed, of_type, walk

ARN = "arn:aws:kms:eu-west-1:123456789012:key/3"
KEY = {"Ref": "LogsKeyArn"}


def test_every_log_group_and_function_uses_the_key_and_its_role_may_open_with_it() -> None:
    there = deployed(LogsKeyArn=ARN)
    for name, each in there.items():
        if each["Type"] == "AWS::Logs::LogGroup":
            assert each["Properties"]["KmsKeyId"] == KEY, name
        if each["Type"] == "AWS::Lambda::Function":
            assert each["Properties"]["KmsKeyArn"] == KEY, name
            role = there[each["Properties"]["Role"]["Fn::GetAtt"][0]]
            if name == "TransformFunction":
                role = there["LogsKeyPolicy"]
            elif name != "ConsoleFunction":
                assert {"Ref": "FunctionKeysPolicy"} in role["Properties"]["ManagedPolicyArns"], name
                role = there["FunctionKeysPolicy"]
            rights = [one for one in walk(role) if isinstance(one, dict) and one.get("Resource") == KEY]
            assert [one["Action"] for one in rights] == [["kms:Decrypt"]], name


def test_without_it_nothing_mentions_a_key_of_logs() -> None:
    assert "LogsKeyArn" not in json.dumps(deployed())
    assert len(of_type("AWS::Logs::LogGroup")) > len(of_type("AWS::Lambda::Function"))
