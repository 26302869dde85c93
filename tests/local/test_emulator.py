"""The emulator keeps what it was told, over a stop, a crash and a full disk, and says what it could not keep."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from local.aws import Aws
from local.emulator import lifecycle
from local.errors import LocalError
from local.place import HOST, Place
from local.processes import wait_until
from local.state import snapshots
from mypy_boto3_dynamodb import DynamoDBClient


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(
        home=tmp_path / "home",
        port=free_port(),
        aws_port=free_port(),
        emulator_python=Place.from_environment().emulator_python,
    )
    yield place
    lifecycle.abandon(place)


def started(place: Place) -> DynamoDBClient:
    lifecycle.start(place)
    client = Aws(place.aws_endpoint_url).dynamodb()
    if "table" not in client.list_tables()["TableNames"]:
        client.create_table(
            TableName="table",
            KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
    return client


def put(client: DynamoDBClient, key: str) -> None:
    client.put_item(TableName="table", Item={"k": {"S": key}})


def keys(client: DynamoDBClient) -> set[str]:
    return {item["k"]["S"] for item in client.scan(TableName="table")["Items"]}


def records_of(aws: Aws, stream: str) -> list[tuple[str, str, datetime]]:
    """What a table's stream tells: events, keys and times."""
    streams = aws.dynamodb_streams()
    shard = streams.describe_stream(StreamArn=stream)["StreamDescription"]["Shards"][0]["ShardId"]
    position = streams.get_shard_iterator(StreamArn=stream, ShardId=shard, ShardIteratorType="TRIM_HORIZON")
    records = streams.get_records(ShardIterator=position["ShardIterator"])["Records"]
    return [
        (each["eventName"], each["dynamodb"]["Keys"]["k"]["S"], each["dynamodb"]["ApproximateCreationDateTime"])
        for each in records
    ]


def kill(place: Place) -> None:
    pid = lifecycle.daemon(place).pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: lifecycle.daemon(place).pid() is None, 90)


def test_a_clean_stop_keeps_everything_and_nothing_is_said(place: Place) -> None:
    # Given an emulator with tables, queues and objects
    put(started(place), "kept")
    aws = Aws(place.aws_endpoint_url)
    url = aws.sqs().create_queue(QueueName="q")["QueueUrl"]
    aws.sqs().send_message(QueueUrl=url, MessageBody="kept")
    aws.s3().create_bucket(Bucket="bucket")
    aws.s3().put_object(Bucket="bucket", Key="k", Body=b"kept")
    # When it stops and starts
    assert lifecycle.stop(place)
    assert lifecycle.rolled_back(place) == ""
    # Then all is there
    assert keys(started(place)) == {"kept"}
    assert aws.sqs().receive_message(QueueUrl=url)["Messages"][0]["Body"] == "kept"
    assert aws.s3().get_object(Bucket="bucket", Key="k")["Body"].read() == b"kept"


def test_a_killed_emulator_has_lost_nothing_and_that_is_said(place: Place) -> None:
    # Given an emulator that is killed some time after a snapshot
    client = started(place)
    stream = client.update_table(
        TableName="table", StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    )["TableDescription"]["LatestStreamArn"]
    aws = Aws(place.aws_endpoint_url)
    url = aws.sqs().create_queue(QueueName="q")["QueueUrl"]
    put(client, "before")
    put(client, "removed")
    assert lifecycle.save(place) == ""
    put(client, "after")
    client.update_item(
        TableName="table",
        Key={"k": {"S": "before"}},
        UpdateExpression="SET v = :v",
        ExpressionAttributeValues={":v": {"S": "changed"}},
    )
    client.delete_item(TableName="table", Key={"k": {"S": "removed"}})
    aws.sqs().send_message_batch(
        QueueUrl=url, Entries=[{"Id": each, "MessageBody": each, "MessageGroupId": "g"} for each in ("a", "b")]
    )
    records_before = records_of(aws, stream)
    assert [each[:2] for each in records_before] == [
        *[("INSERT", each) for each in ("before", "removed", "after")],
        ("MODIFY", "before"),
        ("REMOVE", "removed"),
    ]
    kill(place)
    # When it is about to be started, then it is said that it ended so, and that nothing is lost by that
    said = lifecycle.rolled_back(place)
    assert "ended without saving" in said
    assert "everything is as it was at the last change" in said
    # And so it is, however often it is killed
    for _ in range(2):
        client = started(place)
        assert keys(client) == {"before", "after"}
        assert client.get_item(TableName="table", Key={"k": {"S": "before"}})["Item"]["v"] == {"S": "changed"}
        # with the times at which it happened, which delivery records have
        assert records_of(aws, stream) == records_before
        kill(place)
    started(place)
    taken = aws.sqs().receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=2)["Messages"]
    assert [each["Body"] for each in taken] == ["a", "b"]
    # And what is changed after that is kept by the next stop
    put(client, "last")
    assert lifecycle.stop(place)
    assert lifecycle.rolled_back(place) == ""
    assert keys(started(place)) == {"before", "after", "last"}


def test_changes_that_cannot_be_noted_are_kept_from_the_next_snapshot_on(place: Place) -> None:
    # Given a journal that cannot be written any more
    client = started(place)
    assert lifecycle.save(place) == ""
    root = place.state / "emulator"
    root.rename(root.with_name("away"))
    put(client, "first")
    root.write_text("no folder")
    assert lifecycle.save(place) != ""
    put(client, "second")
    # When there is room again, and a snapshot is taken
    root.unlink()
    root.with_name("away").rename(root)
    assert lifecycle.save(place) == ""
    put(client, "third")
    kill(place)
    # Then all is there
    assert keys(started(place)) == {"first", "second", "third"}


def test_changes_that_are_not_noted_are_a_problem_that_is_told_until_there_is_a_snapshot(place: Place) -> None:
    # Given an emulator whose files may not grow any more
    client = started(place)
    assert lifecycle.save(place) == ""
    assert "failed" not in lifecycle.saved(place)
    pid = lifecycle.daemon(place).pid()
    assert pid
    limits = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, limits[1]))
    # When something is changed, then that is done, and told
    put(client, "not noted")
    assert "File too large" in lifecycle.saved(place)["failed"]
    # And once they may, a snapshot has it, and all is well
    resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)
    assert lifecycle.save(place) == ""
    assert "failed" not in lifecycle.saved(place)
    put(client, "noted")
    kill(place)
    assert keys(started(place)) == {"not noted", "noted"}


def test_snapshots_are_taken_in_between(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given an emulator that takes one every quarter of a second, instead of every minute
    real = lifecycle.environment
    monkeypatch.setattr(lifecycle, "environment", lambda place: real(place) | {"PUSHHUB_SNAPSHOT_SECONDS": "0.25"})
    client = started(place)
    put(client, "kept")
    put_at = time.time()

    def saved_since() -> bool:
        latest = snapshots.latest(place.state / "emulator")
        return latest is not None and latest.taken_at > put_at

    # When it is killed after the next one (which a loaded machine takes its time for)
    assert wait_until(saved_since, 240)
    kill(place)
    # Then nothing is lost
    assert keys(started(place)) == {"kept"}


def test_an_emulator_that_is_killed_before_its_first_snapshot_has_lost_everything_and_that_is_said(
    place: Place,
) -> None:
    started(place)
    kill(place)
    assert "before it had saved anything" in lifecycle.rolled_back(place)


def test_a_state_that_cannot_be_saved_is_not_stopped_and_nothing_is_lost(place: Place) -> None:
    # Given an emulator that has saved once, and then cannot write any more
    client = started(place)
    put(client, "before")
    assert lifecycle.save(place) == ""
    put(client, "after")
    root = place.state / "emulator"
    shutil.move(root, root.with_name("away"))
    root.write_text("no folder")
    # When it is stopped
    with pytest.raises(LocalError, match=r"was not stopped, because its state cannot be saved \(.*File exists.*\)"):
        lifecycle.stop(place)
    # Then it runs on with all it has, works, and tells what is the matter
    put(client, "later")
    assert keys(client) == {"before", "after", "later"}
    assert "File exists" in lifecycle.saved(place)["failed"]
    assert "File exists" in lifecycle.save(place)
    # And when there is room again, it stops and keeps everything
    root.unlink()
    shutil.move(root.with_name("away"), root)
    assert lifecycle.stop(place)
    assert lifecycle.rolled_back(place) == ""
    assert keys(started(place)) == {"before", "after", "later"}


def test_a_damaged_snapshot_is_left_out_and_that_is_said(place: Place) -> None:
    # Given two snapshots, the newer of which is damaged on the disk
    client = started(place)
    put(client, "older")
    assert lifecycle.save(place) == ""
    put(client, "newer")
    assert lifecycle.stop(place)
    newest = snapshots.newest(place.state / "emulator")
    assert newest is not None
    with (newest.folder / "dynamodb.json").open("r+b") as file:
        file.truncate(100)
    # When it is started
    said = lifecycle.rolled_back(place)
    # Then it goes back to the one before, and what changed since is made again
    assert "damaged" in said
    assert "everything is as it was at the last change" in said
    assert keys(started(place)) == {"older", "newer"}


def test_a_state_of_which_nothing_is_whole_is_not_replaced_by_an_empty_one(place: Place) -> None:
    # Given a snapshot that is damaged, and no other
    started(place)
    assert lifecycle.stop(place)
    for file in (place.state / "emulator").glob("snapshot-*/dynamodb.json"):
        file.write_bytes(b"")
    # When the emulator is about to be started, then the person has to decide
    with pytest.raises(LocalError, match="damaged: 'make clean' starts anew"):
        lifecycle.rolled_back(place)


def test_an_object_that_could_not_be_written_is_a_failure(place: Place) -> None:
    # Given a bucket whose folder is not one any more, as on a broken disk
    lifecycle.start(place)
    s3 = Aws(place.aws_endpoint_url).s3()
    s3.create_bucket(Bucket="bucket")
    (folder,) = (place.state / "s3").glob("*/bucket")
    folder.rmdir()
    folder.write_text("no folder")
    # When an object is put into it, then that fails
    with pytest.raises(s3.exceptions.ClientError):
        s3.put_object(Bucket="bucket", Key="k", Body=b"lost")
