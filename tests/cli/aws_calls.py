"""The rights that the AWS calls of typed commands need, for comparison with :mod:`cli.operators.rights`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import boto3
import click
import pytest
from botocore.exceptions import ClientError
from cli.operators.rights import RIGHTS, Right, covers
from tests.cloud import aws_services as aws
from tests.notifications.store import aws_notifications

PLACES = {
    aws.CONFIG_TABLE: "ConfigTable",
    aws.MESSAGES_TABLE: "MessagesTable",
    aws.PULL_TABLE: "PullTable",
    aws.SCHEDULE_TABLE: "ScheduleTable",
    aws.HUB_TABLE: "HubTable",
    aws.WEBHOOKS_TABLE: "WebhooksTable",
    aws_notifications.BACKLOGS_TABLE: "BacklogsTable",
    aws.BUCKET: "BodiesBucket",
    "records": "RecordsBucket",
    "notify": "NotifyFunction",
    "report": "ReportJob",
    "acme-report": "ReportJob",
}
"""Logical ids in the template by name in the tests."""
FIXED = {
    "DescribeStacks": ("cloudformation:DescribeStacks", "Stack"),
    "GetFunctionConfiguration": ("lambda:GetFunctionConfiguration", "Functions"),
    "GetRole": ("iam:GetRole", "FunctionRoles"),
    "SimulatePrincipalPolicy": ("iam:SimulatePrincipalPolicy", "OperatorRole"),
    "GetAccountSettings": ("lambda:GetAccountSettings", "*"),
    "GetAccount": ("apigateway:GET", "ApiAccount"),
    "DescribeLimits": ("dynamodb:DescribeLimits", "*"),
    "DescribeAlarms": ("cloudwatch:DescribeAlarms", "*"),
    "GetServiceQuota": ("servicequotas:GetServiceQuota", "*"),
    "GetAWSDefaultServiceQuota": ("servicequotas:GetAWSDefaultServiceQuota", "*"),
    "ListRequestedServiceQuotaChangeHistoryByQuota": (
        "servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota",
        "*",
    ),
    "ListSubscriptionsByTopic": ("sns:ListSubscriptionsByTopic", "AlarmTopic"),
    "GetQueueAttributes": ("sqs:GetQueueAttributes", "SetAside"),
    "ListEventSourceMappings": ("lambda:ListEventSourceMappings", "*"),
    "CreateEventSourceMapping": ("lambda:CreateEventSourceMapping", "StreamReaders"),
    "DeleteEventSourceMapping": ("lambda:DeleteEventSourceMapping", "StreamReaders"),
    "Decrypt": ("kms:Decrypt", "Keys"),
    "Encrypt": ("kms:Encrypt", "Keys"),
    "GenerateDataKey": ("kms:GenerateDataKey", "Keys"),
}
"""Calls whose resource does not depend on what they are given."""
ACTIONS = {
    "Invoke": "lambda:InvokeFunction",
    "GetBucketEncryption": "s3:GetEncryptionConfiguration",
    "HeadObject": "s3:GetObject",
    "ListObjectsV2": "s3:ListBucket",
    "ListObjectVersions": "s3:ListBucketVersions",
    "DescribeTimeToLive": "dynamodb:DescribeTimeToLive",
}
"""IAM's names for calls that have another one."""
FREE = {"GetCallerIdentity", "AssumeRole"}
"""Calls that need no right of the role: the first is allowed to everybody, the second is how it is taken on."""

WITH_THEIR_OWN = {"signing-secret copy"}
"""Commands that act with the rights of whoever deploys, as the role of the stack as it was has other ones."""


def rights_of(service: str, operation: str, given: dict[str, Any]) -> Iterator[Right]:
    """What a call needs."""
    if operation in FREE:
        return
    if operation in FIXED:
        yield Right(*FIXED[operation])
        return
    action = ACTIONS.get(operation, f"{service}:{operation}")
    if "RequestItems" in given:
        yield from (Right(action, PLACES[each]) for each in given["RequestItems"])
    elif "TransactItems" in given:
        for each in given["TransactItems"]:
            for kind, item in each.items():
                name = "ConditionCheckItem" if kind == "ConditionCheck" else f"{kind}Item"
                yield Right(f"dynamodb:{name}", PLACES[item["TableName"]])
    elif operation == "DeleteObjects":
        for each in given["Delete"]["Objects"]:
            place = f"{PLACES[given['Bucket']]}/{each['Key']}"
            # "You must always specify the s3:DeleteObject permission" (the operation's documentation in botocore).
            yield Right("s3:DeleteObject", place)
            if "VersionId" in each:
                yield Right("s3:DeleteObjectVersion", place)
    elif operation == "CopyObject":
        source = given["CopySource"]
        yield Right("s3:GetObject", f"{PLACES[source['Bucket']]}/{source['Key']}")
        yield Right("s3:PutObject", f"{PLACES[given['Bucket']]}/{given['Key']}")
    elif "Bucket" in given:
        yield Right(action, PLACES[given["Bucket"]] + (f"/{given['Key']}" if "Key" in given else ""))
    elif "TableName" in given:
        index = f"/index/{given['IndexName']}" if "IndexName" in given else ""
        yield Right(action, PLACES[given["TableName"]] + index)
    else:
        name = given.get("FunctionName") or given["JobName"]
        yield Right(action, PLACES.get(name, name))


@dataclass
class Calls:
    """What typed commands have needed.

    Attributes:
        needed: The rights, by command.
        unforeseen: Those among them that the table does not have.
    """

    needed: dict[str, set[Right]] = field(default_factory=dict)
    unforeseen: list[tuple[str, Right]] = field(default_factory=list)

    def note(self, command: str, service: str, operation: str, given: dict[str, Any]) -> None:
        """A command makes a call."""
        if command in WITH_THEIR_OWN:
            return
        for right in rights_of(service, operation, given):
            self.needed.setdefault(command, set()).add(right)
            if not any(covers(each, right) for each in RIGHTS.get(command, ())):
                self.unforeseen.append((command, right))


def watched(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    """Note every call of the clients that commands make from now on, before it is made or faked."""
    real = boto3.session.Session.client

    def client(session: Any, *arguments: Any, **options: Any) -> Any:
        created = real(session, *arguments, **options)
        context = click.get_current_context(silent=True)
        if context is not None:
            command = context.command_path.removeprefix("pushhub ")
            service = created.meta.service_model.service_name

            def call(operation: str, given: dict[str, Any]) -> Any:
                calls.note(command, service, operation, given)
                try:
                    return type(created)._make_api_call(created, operation, given)
                except ClientError as error:
                    if service == "s3" and error.response["Error"]["Code"] in ("NoSuchKey", "404"):
                        # Without it S3 would have said that it is forbidden.
                        calls.note(command, service, "ListObjectsV2", {"Bucket": given["Bucket"]})
                    raise

            created._make_api_call = call
        return created

    monkeypatch.setattr(boto3.session.Session, "client", client)
