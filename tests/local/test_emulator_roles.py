"""A function makes the calls that its deployed role grants, and no others: on the emulator as on AWS."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from local.aws import Aws
from local.iam.roles import notes_of
from local.place import Place
from local.processes import wait_until
from tests.local.iam_roles import grant, make_role

HANDLER = """
import base64, boto3
from botocore.exceptions import ClientError

def handler(event, context):
    if "Records" in event:
        return {}
    given = event["given"]
    if "CiphertextBlob" in given:
        given["CiphertextBlob"] = base64.b64decode(given["CiphertextBlob"])
    try:
        getattr(boto3.client(event["service"]), event["call"])(**given)
    except ClientError as error:
        return error.response["Error"]
    return {"Code": "", "Message": ""}
"""

SEND, SEE = "sqs:SendMessage", "s3:GetObject"


@pytest.fixture(scope="module")
def aws(place: Place) -> Aws:
    return Aws(place.aws_endpoint_url)


def function(aws: Aws, name: str, role: str) -> Callable[..., dict[str, Any]]:
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("code_of_it.py", HANDLER)
    aws.functions().create_function(
        FunctionName=name,
        Runtime="python3.11",
        Role=role,
        Handler="code_of_it.handler",
        Code={"ZipFile": code.getvalue()},
        Timeout=20,
    )

    def call(service: str, call: str, **given: Any) -> dict[str, Any]:
        """The error that a call of the function ends with; its code is empty if it was made."""
        event = json.dumps({"service": service, "call": call, "given": given})
        answer: dict[str, Any] = json.loads(aws.functions().invoke(FunctionName=name, Payload=event)["Payload"].read())
        return answer

    return call


def test_a_call_that_the_role_does_not_grant_is_refused_and_noted(aws: Aws, place: Place) -> None:
    # Given a function that may send to one queue
    urls = [aws.sqs().create_queue(QueueName=each)["QueueUrl"] for each in ("granted", "other")]
    granted = "arn:aws:sqs:us-east-1:000000000000:granted"
    call = function(aws, "sender", make_role(aws, "sends", SEND, granted))
    # When it sends to that one and to another one, Then the second is refused, with the error of AWS
    assert call("sqs", "send_message", QueueUrl=urls[0], MessageBody="x")["Code"] == ""
    refused = call("sqs", "send_message", QueueUrl=urls[1], MessageBody="x")
    assert refused["Code"] == "AccessDenied"
    assert f"not authorized to perform: {SEND} on resource: {granted.replace('granted', 'other')}" in refused["Message"]
    assert [each["Attributes"]["ApproximateNumberOfMessages"] for each in (_size(aws, url) for url in urls)] == [
        "1",
        "0",
    ]
    # And both are noted
    [refusal] = notes_of(place, "refused")
    assert (refusal["function"], refusal["action"], refusal["resource"][-6:]) == ("sender", SEND, ":other")
    assert {"function": "sender", "action": SEND, "resource": granted, "condition": ""} in notes_of(place, "used")
    # When its role is changed, and nothing else, Then the next runs have the new one
    grant(aws, "sends", SEND, "*")
    assert wait_until(lambda: not call("sqs", "send_message", QueueUrl=urls[1], MessageBody="x")["Code"], 90)


def _size(aws: Aws, url: str) -> Any:
    return aws.sqs().get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])


def test_who_may_not_list_a_bucket_is_not_told_that_an_object_is_missing(aws: Aws) -> None:
    aws.s3().create_bucket(Bucket="shelf")
    call = function(aws, "reader", make_role(aws, "reads", SEE, "arn:aws:s3:::shelf/*"))
    assert call("s3", "get_object", Bucket="shelf", Key="a")["Code"] == "AccessDenied"
    grant(aws, "reads", [SEE, "s3:ListBucket"], ["arn:aws:s3:::shelf/*", "arn:aws:s3:::shelf"])
    assert wait_until(lambda: call("s3", "get_object", Bucket="shelf", Key="a")["Code"] == "NoSuchKey", 90)


def test_a_call_that_nobody_has_written_down_is_not_made(aws: Aws) -> None:
    call = function(aws, "asker", make_role(aws, "asks"))
    assert "s3:ListBuckets" in call("s3", "list_buckets")["errorMessage"]


def test_a_key_that_the_role_may_not_open_with_gives_nothing_away(aws: Aws) -> None:
    # Given a function that may seal and open for one purpose
    kms = boto3.client("kms", **aws.arguments)
    key = kms.create_key()["KeyMetadata"]["Arn"]
    call = function(
        aws, "opener", make_role(aws, "opens", "kms:Decrypt", "arn:aws:kms:us-east-1:000000000000:key/none")
    )
    wrapped = kms.generate_data_key(KeyId=key, NumberOfBytes=32)["CiphertextBlob"]
    # When it opens with another key, Then it is refused, although only the answer says which key that was
    assert call("kms", "decrypt", CiphertextBlob=base64.b64encode(wrapped).decode())["Code"] == "AccessDeniedException"


def test_a_queue_that_the_role_may_not_read_is_not_read(aws: Aws, place: Place) -> None:
    # Given a function with a mapping and without the right to delete what it takes
    url = aws.sqs().create_queue(QueueName="mapped")["QueueUrl"]
    arn = "arn:aws:sqs:us-east-1:000000000000:mapped"
    function(aws, "mapped", make_role(aws, "maps", ["sqs:ReceiveMessage", "sqs:GetQueueAttributes"], arn))
    aws.functions().create_event_source_mapping(FunctionName="mapped", EventSourceArn=arn)
    aws.sqs().send_message(QueueUrl=url, MessageBody="x")
    # Then it is not read, and that is noted
    assert wait_until(lambda: ("mapped", "sqs:DeleteMessage") in _refused(place), 90)
    assert _size(aws, url)["Attributes"]["ApproximateNumberOfMessages"] == "1"
    # When it has the right, Then it is
    grant(aws, "maps", "sqs:*", arn)
    assert wait_until(lambda: _size(aws, url)["Attributes"]["ApproximateNumberOfMessages"] == "0", 90)


def _refused(place: Place) -> set[tuple[str, str]]:
    return {(each["function"], each["action"]) for each in notes_of(place, "refused")}
