"""What a deployment claims to have made is looked for; here in an AWS that lacks some of it."""

from __future__ import annotations

from typing import Any, cast

import pytest
from botocore.exceptions import ClientError
from local.aws import Aws
from local.deploy.deployer import missing

RESOURCES: dict[str, dict[str, Any]] = {
    "Greet": {"Type": "AWS::Lambda::Function"},
    "Mapping": {"Type": "AWS::Lambda::EventSourceMapping"},
    "Work": {"Type": "AWS::SQS::Queue"},
    "Role": {"Type": "AWS::IAM::Role"},
    "Api": {"Type": "AWS::ApiGatewayV2::Api"},
    "Route": {"Type": "AWS::ApiGatewayV2::Route", "Properties": {"ApiId": {"Ref": "Api"}}},
    "OtherRoute": {"Type": "AWS::ApiGatewayV2::Route", "Properties": {"ApiId": {"Ref": "Api"}}},
    "Table": {"Type": "AWS::DynamoDB::Table"},
    "Changes": {
        "Type": "AWS::Lambda::EventSourceMapping",
        "Properties": {"FunctionName": {"Ref": "Greet"}, "EventSourceArn": {"Fn::GetAtt": ["Table", "StreamArn"]}},
    },
    "Sometimes": {"Type": "AWS::KMS::Key", "Condition": "HasKey"},
}


class Client:
    """All services in one; what is set to an error code is missing."""

    def __init__(self, **answers: Any) -> None:
        created = [{"LogicalResourceId": name, "PhysicalResourceId": f"id-{name}"} for name in RESOURCES]
        self.answers: dict[str, Any] = {
            "describe_stack_resources": {"StackResources": created[:-1]},
            "get_function": {"Configuration": {"State": "Active"}},
            "get_event_source_mapping": {"State": "Enabled"},
            "list_event_source_mappings": {
                "EventSourceMappings": [{"EventSourceArn": "arn:table/id-Table/stream/1", "State": "Enabled"}]
            },
            "describe_table": {"Table": {"TableStatus": "ACTIVE"}},
            "get_queue_attributes": {"Attributes": {"QueueArn": "arn"}},
            "get_routes": {"Items": [{}, {}]},
            "get_integrations": {"Items": []},
            "get_stages": {"Items": []},
            **answers,
        }

    def __getattr__(self, name: str) -> Any:
        def call(**_: Any) -> Any:
            answer = self.answers[name]
            if isinstance(answer, str):
                raise ClientError({"Error": {"Code": answer, "Message": "none"}}, name)
            return answer

        return call


class Everything:
    """Makes the same client for each service."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def __getattr__(self, name: str) -> Any:
        return lambda: self.client


def find(**answers: Any) -> list[str]:
    return missing(cast(Aws, Everything(Client(**answers))), "stack", RESOURCES, {})


def test_when_all_is_there_nothing_is_missing() -> None:
    # Given all is there (but for what a condition leaves out), when it is looked for, then nothing is missing
    assert find() == []


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        (
            {"get_function": "ResourceNotFoundException"},
            "Greet (AWS::Lambda::Function) does not exist or is not active",
        ),
        (
            {"get_function": {"Configuration": {"State": "Pending"}}},
            "Greet (AWS::Lambda::Function) does not exist or is not active",
        ),
        (
            {"get_event_source_mapping": {"State": "Disabled"}},
            "Mapping (AWS::Lambda::EventSourceMapping) does not exist or is not active",
        ),
        (
            {"get_queue_attributes": "AWS.SimpleQueueService.NonExistentQueue"},
            "Work (AWS::SQS::Queue) does not exist or is not active",
        ),
        ({"get_routes": {"Items": [{}]}}, "Api has 1 of 2 AWS::ApiGatewayV2::Route"),
    ],
)
def test_what_is_missing_is_named(answers: dict[str, Any], found: str) -> None:
    # Given something that is not there or does not work, when it is looked for, then it is named
    assert find(**answers) == [found]


def test_what_was_never_made_is_named() -> None:
    # Given a stack that dropped resources, when they are looked for, then they are named
    created = [{"LogicalResourceId": name, "PhysicalResourceId": name} for name in ("Greet", "Mapping", "Work", "Role")]
    assert find(describe_stack_resources={"StackResources": created}) == [
        "Api was not made",
        "Route was not made",
        "OtherRoute was not made",
        "Table was not made",
        "Changes was not made",
    ]


@pytest.mark.parametrize(
    "there",
    [
        [],
        [{"EventSourceArn": "arn:table/id-Table/stream/2", "State": "Disabled"}],
        [{"EventSourceArn": "arn:table/id-Tables/stream/2", "State": "Enabled"}],
    ],
)
def test_a_stream_may_be_read_by_another_mapping_since_its_table_was_restored(there: list[dict[str, str]]) -> None:
    # Given the deployed mappings are gone, when another one reads the table's stream, then only the first is missing
    gone = {"get_event_source_mapping": "ResourceNotFoundException"}
    first = "Mapping (AWS::Lambda::EventSourceMapping) does not exist or is not active"
    assert find(**gone) == [first]
    # And when none does, or it is off, or reads another table's, both are
    none = {**gone, "list_event_source_mappings": {"EventSourceMappings": there}}
    assert find(**none) == [first, first.replace("Mapping ", "Changes ", 1)]
