"""The emulator of these tests asks a role's policies as they are deployed, from their first moment on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from tests.sam.toolbox import REGION, Emulator, emulator

pytestmark = [pytest.mark.slow, pytest.mark.stack]

ROLE = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sts:AssumeRole"}]}
MESSAGES = [{"Id": "0", "MessageBody": "hello"}]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with emulator(tmp_path_factory.mktemp("emulator")) as started:
        yield started


def client(running: Emulator, service: Any, **credentials: str) -> Any:
    """A client of the one who deploys, or of a role."""
    keys = credentials or {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    return boto3.client(service, endpoint_url=running.url, region_name=REGION, **keys)  # type: ignore[call-overload]


def acting(running: Emulator, service: str, *rights: dict[str, Any]) -> Any:
    """A client of a role with these rights."""
    iam = client(running, "iam")
    name = f"role-{len(iam.list_roles()['Roles'])}"
    arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(ROLE))["Role"]["Arn"]
    document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **each} for each in rights]}
    iam.put_role_policy(RoleName=name, PolicyName="rights", PolicyDocument=json.dumps(document))
    taken = client(running, "sts").assume_role(RoleArn=arn, RoleSessionName="test")["Credentials"]
    return client(
        running,
        service,
        aws_access_key_id=taken["AccessKeyId"],
        aws_secret_access_key=taken["SecretAccessKey"],
        aws_session_token=taken["SessionToken"],
    )


def test_the_right_on_a_message_is_that_on_several_and_on_no_other_operation(running: Emulator) -> None:
    url = client(running, "sqs").create_queue(QueueName="queue")["QueueUrl"]
    sqs = acting(running, "sqs", {"Action": "sqs:SendMessage", "Resource": "*"})
    assert sqs.send_message_batch(QueueUrl=url, Entries=MESSAGES)["Successful"]
    with pytest.raises(ClientError, match="AccessDenied"):
        sqs.receive_message(QueueUrl=url)


def test_a_condition_whose_key_is_unknown_is_passed_over_and_no_other(running: Emulator) -> None:
    client(running, "s3").create_bucket(Bucket="bucket")
    unknown, other = {"Null": {"s3:if-none-match": "false"}}, {"StringEquals": {"aws:PrincipalType": "User"}}
    with_unknown = acting(running, "s3", {"Action": "s3:PutObject", "Resource": "*", "Condition": unknown})
    with_unknown.put_object(Bucket="bucket", Key="k", Body=b"")
    with_both = acting(running, "s3", {"Action": "s3:PutObject", "Resource": "*", "Condition": unknown | other})
    with pytest.raises(ClientError, match="AccessDenied"):
        with_both.put_object(Bucket="bucket", Key="k", Body=b"")


def test_a_bucket_that_asks_for_tls_takes_requests_without_it(running: Emulator) -> None:
    s3 = client(running, "s3")
    s3.create_bucket(Bucket="with-tls")
    deny = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": "arn:aws:s3:::with-tls/*"}
    deny["Condition"] = {"Bool": {"aws:SecureTransport": "false"}}  # type: ignore[assignment]
    s3.put_bucket_policy(Bucket="with-tls", Policy=json.dumps({"Version": "2012-10-17", "Statement": [deny]}))
    acting(running, "s3", {"Action": "s3:PutObject", "Resource": "*"}).put_object(Bucket="with-tls", Key="k", Body=b"")
