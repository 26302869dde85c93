"""The emulator runs functions as AWS does: their answers, log lines, time limits, and their way through a stream."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from typing import Any

import pytest
from local.aws import Aws
from local.place import Place
from tests.local.iam_roles import make_role

HANDLER = """
import os, boto3, json, time
queue = boto3.client("sqs")
def handler(event, context):
    time.sleep(event.get("sleep", 0))
    if "writes" in event:
        os.write(1, event["writes"].encode())
    print("first line")
    print("second line")
    if event.get("fail"):
        raise ValueError("on purpose")
    keys = [each["dynamodb"]["Keys"]["k"]["S"] for each in event.get("Records", [])]
    if "poison" in keys and not os.path.exists(os.environ["CURED"]):
        raise ValueError("poison")
    for key in keys:
        queue.send_message(QueueUrl=os.environ["QUEUE"], MessageBody=key)
    return {"size": len(json.dumps(event)), "answer": "x" * event.get("answer", 0)}
"""


@pytest.fixture(scope="module")
def aws(place: Place) -> Aws:
    aws = Aws(place.aws_endpoint_url)
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("code_of_it.py", HANDLER)
    url = aws.sqs().create_queue(QueueName="seen")["QueueUrl"]
    aws.functions().create_function(
        FunctionName="echo",
        Runtime="python3.11",
        Role=make_role(aws),
        Handler="code_of_it.handler",
        Code={"ZipFile": code.getvalue()},
        Timeout=2,
        Environment={"Variables": {"QUEUE": url, "CURED": str(place.home / "cured")}},
    )
    return aws


def run(aws: Aws, **event: object) -> tuple[dict[str, Any], list[str]]:
    """A function's answer, and its log lines."""
    answer = aws.functions().invoke(FunctionName="echo", Payload=json.dumps(event), LogType="Tail")
    return json.loads(answer["Payload"].read()), base64.b64decode(answer["LogResult"]).decode().splitlines()


def test_a_run_answers_with_its_own_log_lines_and_no_others(aws: Aws) -> None:
    # Given runs one after the other on one process, When each has printed two lines, Then each has these
    for _ in range(3):
        answer, lines = run(aws)
        assert answer == {"size": 2, "answer": ""}
        assert lines == ["first line", "second line"]


@pytest.mark.parametrize(
    "writes", ['{"status": "ok", "result": "forged"}', "\x00pushhub: end of the log of ", "no end of a line, é"]
)
def test_what_a_function_writes_past_python_is_its_log_and_no_answer(aws: Aws, writes: str) -> None:
    # When a function writes to its standard output by itself, even what an answer or the end of a log looks like
    answer, lines = run(aws, writes=f"{writes}\n")
    # Then it is answered by what it returns, with its lines, and the next run has its own
    assert answer["answer"] == ""
    assert lines[-2:] == ["first line", "second line"]
    assert run(aws)[1] == ["first line", "second line"]


def test_events_and_answers_may_be_larger_than_a_pipe_holds(aws: Aws) -> None:
    answer, _ = run(aws, padding="y" * 3_000_000, answer=3_000_000)
    assert len(answer["answer"]) == 3_000_000
    assert answer["size"] > 3_000_000


def test_a_function_that_fails_says_why_and_the_next_run_is_not_harmed(aws: Aws) -> None:
    # When one run fails and another takes too long
    failed, lines = run(aws, fail=True)
    late, _ = run(aws, sleep=60)
    # Then each says so, and the next one answers
    assert failed["errorMessage"] == "on purpose"
    assert lines[:2] == ["first line", "second line"]
    assert "Traceback" in lines[2]
    assert late["errorMessage"] == "Task timed out after 2.00 seconds"
    assert run(aws)[0] == {"size": 2, "answer": ""}


def test_a_record_that_fails_comes_again_and_holds_up_no_other_lane(aws: Aws, place: Place) -> None:
    # Given a table whose stream is read in four lanes, and one record that no run gets through
    table = aws.dynamodb().create_table(
        TableName="table",
        KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    )["TableDescription"]
    aws.functions().create_event_source_mapping(
        FunctionName="echo",
        EventSourceArn=table["LatestStreamArn"],
        StartingPosition="TRIM_HORIZON",
        BatchSize=1,
        ParallelizationFactor=4,
    )
    keys = ["poison", *(f"k{number}" for number in range(20))]
    for key in keys:
        aws.dynamodb().put_item(TableName="table", Item={"k": {"S": key}})
    # When those of the other lanes have come
    seen: list[str] = []

    def receive_until(count: int) -> None:
        url = aws.sqs().get_queue_url(QueueName="seen")["QueueUrl"]
        for _ in range(60):
            if len(seen) >= count:
                break
            answer = aws.sqs().receive_message(QueueUrl=url, WaitTimeSeconds=1, MaxNumberOfMessages=10)
            seen.extend(each["Body"] for each in answer.get("Messages", []))

    receive_until(8)
    assert len(seen) >= 8
    assert "poison" not in seen
    # And the fault is mended, then nothing was passed over, and nothing comes twice
    (place.home / "cured").touch()
    receive_until(len(keys))
    assert sorted(seen) == sorted(keys)


def test_what_is_inserted_by_a_statement_comes_through_the_stream_once(aws: Aws) -> None:
    # Given a table with a stream
    database = aws.dynamodb()
    table = database.create_table(
        TableName="inserted",
        KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    )["TableDescription"]
    # When two items are inserted, one of them a second time
    item = {"k": {"S": "one"}, "m": {"M": {"n": {"N": "1"}}}}
    other = {"k": {"S": "it's two"}, "m": {"M": {}}}
    statement = "INSERT INTO \"inserted\" VALUE {'k': ?, 'm': ?}"
    statements: list[Any] = [{"Statement": statement, "Parameters": [*each.values()]} for each in (item, other, item)]
    answer = database.batch_execute_statement(Statements=statements)
    # Then the second is refused, and the stream has what is in the table
    assert [each.get("Error", {}).get("Code") for each in answer["Responses"]] == [None, None, "DuplicateItem"]
    assert database.get_item(TableName="inserted", Key={"k": {"S": "it's two"}})["Item"] == other
    streams = aws.dynamodb_streams()
    arn = table["LatestStreamArn"]
    (shard,) = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    iterator = streams.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")[
        "ShardIterator"
    ]
    records = streams.get_records(ShardIterator=iterator)["Records"]
    assert [(each["eventName"], each["dynamodb"]["NewImage"]) for each in records] == [
        ("INSERT", item),
        ("INSERT", other),
    ]
