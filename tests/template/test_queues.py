"""Each queue has a dead-letter queue, keeps messages as long as SQS allows, and hides them long enough."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import botocore.model
import botocore.session
import pytest
from tests.template.cloudformation import (
    ROOT,
    Resource,
    function_of,
    of_type,
    own_mappings,
    parameter,
    references,
    resources,
    source,
)

from pushhub.engine.model.delivery import SETTLED, DeliveryState

FOURTEEN_DAYS_S = 1_209_600
QUEUES = of_type("AWS::SQS::Queue")
MAPPINGS = own_mappings()
WORK_QUEUES = {name: each for name, each in QUEUES.items() if "RedrivePolicy" in each}


def dead_letter_queues() -> set[str]:
    redriven = {each["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0] for each in WORK_QUEUES.values()}
    failed = {
        each["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0]
        for each in MAPPINGS.values()
        if "DestinationConfig" in each
    }
    return redriven | failed


def mappings_of(queue: str) -> dict[str, Resource]:
    return {name: each for name, each in MAPPINGS.items() if each["EventSourceArn"]["Fn::GetAtt"][0] == queue}


def longest(value: Any) -> int:
    """A number, or the most a parameter allows."""
    return int(parameter(value["Ref"])["MaxValue"]) if isinstance(value, dict) else int(value)


@pytest.mark.parametrize("name", QUEUES)
def test_each_queue_has_a_dead_letter_queue_or_is_one(name: str) -> None:
    assert name in WORK_QUEUES or name in dead_letter_queues()


@pytest.mark.parametrize("name", sorted(dead_letter_queues()))
def test_dead_letters_are_kept_14_days_in_a_queue_that_belongs_to_one_source(name: str) -> None:
    assert QUEUES[name]["MessageRetentionPeriod"] == FOURTEEN_DAYS_S
    sources = [each for each in WORK_QUEUES.values() if references(each["RedrivePolicy"]) == {name}]
    assert len(sources) <= 1


def test_dead_letters_can_be_moved_back_as_the_runbook_says() -> None:
    """What AWS asks for of ``start-message-move-task``, which neither the emulator nor moto has
    (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_StartMessageMoveTask.html).
    """
    # Given the queues whose messages the runbook moves back, and its command
    section = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8").split("\n## Redrive\n")[1]
    named, command = section.split("hold unchanged work orders", 1)
    moved = {*re.findall(r"`(\w+DeadLetters)`", named), "NotifyDeadLetters"}
    words = command.split("aws sqs start-message-move-task ", 1)[1].split("```")[0]
    # Then these are all that are dead letters of a queue: for others, a move would need a destination
    assert moved == {each["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0] for each in WORK_QUEUES.values()}
    for name in moved:
        # Each goes back to one queue, the one that it came from, of the same kind, and no policy is in the way
        (origin,) = (each for each in WORK_QUEUES.values() if references(each["RedrivePolicy"]) == {name})
        assert origin.get("FifoQueue", False) == QUEUES[name].get("FifoQueue", False)
        assert not {"RedriveAllowPolicy", "RedrivePolicy"} & QUEUES[name].keys()
    # And the command is one that SQS has, with what it needs
    model = botocore.session.get_session().get_service_model("sqs")
    operation = model.shape_for("StartMessageMoveTaskRequest")
    assert isinstance(operation, botocore.model.StructureShape)
    given = {each.replace("-", "").lower() for each in re.findall(r"--([\w-]+)", words.split("$(")[0])}
    assert given == {each.lower() for each in operation.required_members} == {"sourcearn"}
    # And no policy of a queue refuses it
    assert not of_type("AWS::SQS::QueuePolicy")


@pytest.mark.parametrize(
    ("name", "receives"),
    [
        ("PushQueue", 400),
        ("RetryQueue", 400),
        ("SlowQueue", 100),
        ("PollQueue", 100),
        ("RouteQueue", 400),
        ("ErrorsQueue", 720),
        ("NotifyQueue", 1000),
    ],
)
def test_receives_before_a_message_counts_as_poison(name: str, receives: int) -> None:
    # The attempt number lives in the hub's own state: this is a guard against poison, so it is generous.
    assert QUEUES[name]["RedrivePolicy"]["maxReceiveCount"] == receives
    # Nothing is set aside while Lambda throttles attempts, or a table is away, for half a day: each time it comes back
    # after its timeout. (Wake-ups come back sooner, and are made again.)
    if name != "NotifyQueue":
        assert receives * QUEUES[name]["VisibilityTimeout"] >= 12 * 3600


@pytest.mark.parametrize("name", WORK_QUEUES)
def test_work_is_kept_14_days_and_may_be_as_large_as_sqs_allows(name: str) -> None:
    assert QUEUES[name]["MessageRetentionPeriod"] == FOURTEEN_DAYS_S
    assert QUEUES[name]["MaximumMessageSize"] == 1_048_576


@pytest.mark.parametrize("name", WORK_QUEUES)
def test_visibility_is_the_timeout_of_the_function_and_the_batch_window_or_little_more(
    name: str,
) -> None:
    mappings = mappings_of(name)
    assert mappings
    for mapping in mappings.values():
        timeout = resources()[function_of(mapping)]["Properties"]["Timeout"]
        window = longest(mapping.get("MaximumBatchingWindowInSeconds", 0))
        # Lambda refuses a mapping of a queue that hides messages for a shorter time than its function may run.
        assert timeout + window <= QUEUES[name]["VisibilityTimeout"] <= timeout + window + 60


@pytest.mark.parametrize("name", [name for queue in WORK_QUEUES for name in mappings_of(queue)])
def test_queue_mappings_keep_only_what_failed_and_are_bounded(name: str) -> None:
    # Without ReportBatchItemFailures Lambda would delete the messages that a run says it has not done.
    assert MAPPINGS[name]["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    # MaximumConcurrency limits the polling; reserved concurrency would waste receives.
    assert MAPPINGS[name]["ScalingConfig"]["MaximumConcurrency"]


def test_the_concurrency_map_holds_each_value_of_its_parameter_as_a_number() -> None:
    allowed = parameter("PushMaximumConcurrency")["AllowedValues"]
    rows = source()["Mappings"]["PushConcurrency"]
    assert {each: row["Runs"] for each, row in rows.items()} == {str(each): each for each in allowed}
    # Lambda takes no less than two, and a larger choice never means fewer of anything.
    assert all(row["Notify"] >= 2 and row["Errors"] >= 2 for row in rows.values())
    for smaller, larger in pairwise(rows.values()):
        assert all(smaller[each] <= larger[each] for each in smaller)
    assert parameter("PushMaximumConcurrency")["Default"] in allowed


STREAM_MAPPINGS = {name: each for name, each in MAPPINGS.items() if "StreamArn" in each["EventSourceArn"]["Fn::GetAtt"]}


def test_dispatch_and_records_read_the_streams() -> None:
    read = {(each["FunctionName"]["Ref"], each["EventSourceArn"]["Fn::GetAtt"][0]) for each in STREAM_MAPPINGS.values()}
    assert read == {
        ("DispatchFunction", "MessagesTable"),
        ("RecordsFunction", "MessagesTable"),
        ("RecordsFunction", "PullTable"),
        ("RecordsFunction", "BacklogsTable"),
    }


@pytest.mark.parametrize("name", STREAM_MAPPINGS)
def test_stream_mappings_never_drop_a_record(name: str) -> None:
    mapping = STREAM_MAPPINGS[name]
    assert mapping["StartingPosition"] == "TRIM_HORIZON"
    assert mapping["MaximumRetryAttempts"] == -1
    assert mapping["MaximumRecordAgeInSeconds"] == -1
    assert mapping["BisectBatchOnFunctionError"] is True
    assert mapping["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0] in QUEUES
    # The functions raise instead: MiniStack drops what a partial response names.
    assert "FunctionResponseTypes" not in mapping


def test_records_gets_as_many_changes_at_once_as_lambda_hands_over() -> None:
    # Given changes of small messages, as the examples show them
    example = json.loads((ROOT / "events" / "records-stream-messages.json").read_text(encoding="utf-8"))["Records"]
    size = len(json.dumps(example, separators=(",", ":"))) / len(example)
    for mapping in STREAM_MAPPINGS.values():
        if mapping["FunctionName"]["Ref"] == "RecordsFunction":
            # Then a batch is about the 6 MB that a run takes
            assert mapping["BatchSize"] * size == pytest.approx(6 * 1024 * 1024, rel=0.2)
            # And by default, records, counts and lists have it within two minutes
            assert mapping["MaximumBatchingWindowInSeconds"] == {"Ref": "RecordsWindow"}
    assert 100 <= int(parameter("RecordsWindow")["Default"]) < 120


def lets_through(pattern: Any, value: Any) -> bool:
    """Whether a value matches a filter's pattern, of which ours use this much."""
    if isinstance(pattern, dict):
        return isinstance(value, dict) and all(lets_through(each, value.get(key)) for key, each in pattern.items())
    return any(value not in each["anything-but"] if isinstance(each, dict) else value == each for each in pattern)


@pytest.mark.parametrize("state", DeliveryState)
@pytest.mark.parametrize("kind", ["message", "delivery"])
@pytest.mark.parametrize("name", ["INSERT", "MODIFY", "REMOVE"])
def test_records_is_shown_what_has_a_record(name: str, kind: str, state: DeliveryState) -> None:
    # Given a change of the messages table
    image = {"kind": {"S": kind}, "state": {"S": state.value}}
    images = {"INSERT": ("NewImage",), "MODIFY": ("OldImage", "NewImage"), "REMOVE": ("OldImage",)}[name]
    change = {"eventName": name, "dynamodb": dict.fromkeys(images, image)}
    (mapping,) = (
        each
        for each in STREAM_MAPPINGS.values()
        if (each["FunctionName"]["Ref"], each["EventSourceArn"]["Fn::GetAtt"][0])
        == ("RecordsFunction", "MessagesTable")
    )
    # Then records gets it, unless it is the end of a message or of what was settled before
    patterns = [json.loads(each["Pattern"]) for each in mapping["FilterCriteria"]["Filters"]]
    reported = name != "REMOVE" or (kind == "delivery" and state not in SETTLED)
    assert any(lets_through(each, change) for each in patterns) == reported


def test_dispatch_is_run_for_new_messages_only() -> None:
    (mapping,) = (each for each in STREAM_MAPPINGS.values() if each["FunctionName"]["Ref"] == "DispatchFunction")
    (pattern,) = mapping["FilterCriteria"]["Filters"]
    assert json.loads(pattern["Pattern"]) == {
        "eventName": ["INSERT"],
        "dynamodb": {"NewImage": {"kind": {"S": ["message"]}}},
    }


def test_records_is_not_run_for_acknowledgements_and_heads() -> None:
    (mapping,) = (
        each for each in STREAM_MAPPINGS.values() if each["EventSourceArn"]["Fn::GetAtt"][0] == "BacklogsTable"
    )
    patterns = [json.loads(each["Pattern"]) for each in mapping["FilterCriteria"]["Filters"]]
    # A pulse is shown when it is sent, and not when it goes
    assert patterns == [
        {"dynamodb": {"NewImage": {"kind": {"S": ["commit", "backlog", "pulse"]}}}},
        {"dynamodb": {"OldImage": {"kind": {"S": ["commit", "backlog"]}}}},
    ]


def test_records_is_shown_messages_of_pull_queues_and_not_their_places() -> None:
    (mapping,) = (each for each in STREAM_MAPPINGS.values() if each["EventSourceArn"]["Fn::GetAtt"][0] == "PullTable")
    assert [each["Pattern"] for each in mapping["FilterCriteria"]["Filters"]] == [
        '{"dynamodb":{"Keys":{"sk":{"S":["M"]}}}}',
        '{"dynamodb":{"NewImage":{"kind":{"S":["pulse"]}}}}',
    ]


def test_wake_ups_are_in_order_per_subscriber_and_dropped_by_their_own_id_only() -> None:
    queue = QUEUES["NotifyQueue"]
    assert queue["FifoQueue"] is QUEUES["NotifyDeadLetters"]["FifoQueue"] is True
    assert queue["ContentBasedDeduplication"] is False
    assert (queue["DeduplicationScope"], queue["FifoThroughputLimit"]) == ("messageGroup", "perMessageGroupId")
