"""What the model of sinks finds, and what it leaves alone; what receivers on AWS take, and whose keys they know."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any
from urllib.parse import urlencode

import pytest
from simulation.account import Account
from simulation.code import CodeRuns
from simulation.promises.judgement import SECOND, Exchange, Fault, Faults, Judgement
from simulation.promises.sinks import Looked, Order, Sent, Sinks, Taken
from simulation.receivers import Form, Receiver, Trouble, troubles
from simulation.run import played
from simulation.sts import Keys
from simulation.template import stack
from simulation.weather import HOUR, Weather
from simulation.worlds.sinks import CODE, SmallSinksWorld
from tests.simulation.commands import found

from pushhub.base.ports import PushRequest
from simulation import windows

ROLE = "arn:aws:iam::111122223333:role/hub"
ALL = Order(whole=True)
KEYED = Order(keyed=True)


def sent(marker: str, at: int = 0, *, key: str = "", status: int = 202, takes: int = 1) -> Sent:
    return Sent(marker, f"body of {marker}", Exchange(at * SECOND, (at + takes) * SECOND, status), key)


def took(marker: str, at: int, *, sure: bool = True, body: str = "", group: str = "", place: str = "") -> Taken:
    return Taken(at * SECOND, marker, f"id-{marker}", body or f"body of {marker}", sure, group, place)


def judged(
    posted: Sequence[Sent], taken: Sequence[Taken], order: Order = KEYED, faults: Faults | None = None, **more: Any
) -> list[str]:
    judgement = Judgement()
    Sinks(judgement, faults or Faults(), calm=True).judge("queue", posted, taken, order, **more)
    return [each.rule for each in judgement.violations]


@pytest.mark.parametrize(
    ("posted", "taken", "order", "rule"),
    [
        ([sent("m")], [took("m", 5)], KEYED, ""),
        ([sent("m")], [], KEYED, "never arrived at a sink"),
        # What was never answered may have been lost.
        ([sent("m", status=0)], [], KEYED, ""),
        ([sent("m")], [took("m", 5, body="other")], KEYED, "other bytes at a sink"),
        ([sent("m")], [took("m", 300)], KEYED, "held up by another sink"),
        # A receiver that gave no answer is sent it again.
        ([sent("m")], [took("m", 5, sure=False), took("m", 9)], KEYED, ""),
        ([sent("m")], [took("m", 5), took("m", 9)], KEYED, "arrived again at a sink"),
        ([sent("m", key="a")], [took("m", 5, group="b")], KEYED, "in another group"),
        (
            [sent("m", 0, key="a"), sent("n", 5, key="a")],
            [took("n", 7, group="a"), took("m", 8, group="a")],
            KEYED,
            "out of order at a sink",
        ),
        # Both were under way at once: either may be first.
        ([sent("m", 0), sent("n", 0)], [took("n", 7), took("m", 8)], ALL, ""),
        ([sent("m", 0), sent("n", 5)], [took("n", 7), took("m", 8)], ALL, "out of order at a sink"),
        ([sent("m", 0), sent("n", 5)], [took("n", 7), took("m", 8)], KEYED, ""),
        # An object takes its own place.
        ([sent("m")], [took("m", 5, place="1-2"), took("m", 9, place="1-2")], ALL, ""),
        ([sent("m")], [took("m", 5, sure=False, place="1-2"), took("m", 9, place="1-3")], ALL, "in two objects"),
        # What was stored late has a second place in its stream.
        ([sent("m", takes=2)], [took("m", 5, place="1-2"), took("m", 9, place="2-3")], ALL, ""),
        ([sent("m", takes=2)], [took("m", 5), took("m", 9)], KEYED, "arrived again at a sink"),
    ],
)
def test_a_receiver_takes_what_it_is_owed(
    posted: Sequence[Sent], taken: Sequence[Taken], order: Order, rule: str
) -> None:
    assert judged(posted, taken, order) == ([rule] if rule else [])


def test_a_receiver_in_trouble_may_get_things_late() -> None:
    assert judged([sent("m")], [took("m", 900)], well_until=100 * SECOND) == []


def test_a_fault_between_two_arrivals_excuses_the_second() -> None:
    faults = Faults()
    faults.struck(Fault("crash", "crash at 6", 6 * SECOND, 6 * SECOND), 6 * SECOND, ["id-m"])
    assert judged([sent("m")], [took("m", 5), took("m", 60)], faults=faults) == []
    assert judged([sent("m"), sent("n")], [took("n", 5), took("n", 60), took("m", 7)], faults=faults) == [
        "arrived again at a sink"
    ]


@pytest.mark.parametrize(
    ("again_at", "about", "order", "excused"),
    [
        (201, "id-m", KEYED, True),
        # What comes later, the first attempt's end is known to.
        (202, "id-m", KEYED, False),
        (201, "id-n", KEYED, False),
        # A batch is begun by one order at a time.
        (201, "id-m", ALL, False),
    ],
)
def test_what_doubled_an_order_long_ago_excuses_only_what_is_under_way_at_once(
    again_at: int, about: str, order: Order, excused: bool
) -> None:
    faults = Faults()
    faults.struck(Fault("replay", "replay at 6", 6 * SECOND, 6 * SECOND), 6 * SECOND, [about])
    found = judged([sent("m")], [took("m", 200), took("m", again_at)], order, faults=faults)
    assert found == ([] if excused else ["arrived again at a sink"])


def test_a_position_is_that_of_what_has_arrived() -> None:
    far = [Looked(4 * SECOND, frozenset({"m"}))]
    assert judged([sent("m")], [took("m", 3)], ALL, looked=far) == []
    assert judged([sent("m")], [took("m", 5)], ALL, looked=far) == ["a position past what has arrived"]
    # What was stored late comes at its second place.
    assert judged([sent("m", takes=2)], [took("m", 5)], ALL, looked=far) == []


@contextmanager
def receiver(form: Form, *troubles: tuple[int, Trouble], fifo: bool = False) -> Iterator[Receiver]:
    account = Account("receiver", stack(), Weather((), "calm"))
    with account.installed():
        created = Receiver(account, account.sts, "queue.example", form, troubles, role=ROLE, fifo=fifo)
        created.external_id = "own"
        yield created


def asked(to: Receiver, *markers: str, key_id: str = "", once: str = "") -> tuple[int, Any]:
    """Send messages to a queue; the status, and what it said."""
    if not key_id:
        keys = to.sts.assume_role(RoleArn=ROLE, ExternalId="own", DurationSeconds=3_600)["Credentials"]
        key_id = keys["AccessKeyId"]
    entries = [
        {
            "Id": str(number),
            "MessageBody": json.dumps({"marker": each}),
            "MessageAttributes": {"webhook-id": {"StringValue": f"msg_{each}"}},
            "MessageGroupId": "g",
            "MessageDeduplicationId": once or each,
        }
        for number, each in enumerate(markers)
    ]
    headers = {
        "Authorization": f"AWS4-HMAC-SHA256 Credential={key_id}/20261129/eu-west-1/sqs/aws4_request",
        "X-Amz-Target": "AmazonSQS.SendMessageBatch",
    }
    body = json.dumps({"Entries": entries}).encode()
    request = PushRequest(url="https://queue.example/", method="POST", body=body, headers=headers, timeout_s=10)
    _, reply = to.asked(request, "push-1")
    return reply.status if not reply.error_class else 0, json.loads(reply.body) if reply.body else {}


def markers(of: Receiver) -> list[str]:
    return [each.marker for each in of.taken]


def test_a_queue_in_trouble_takes_half_of_a_batch_or_nothing() -> None:
    with receiver(Form.SQS, (0, Trouble.HALF)) as half:
        _, said = asked(half, "a", "b", "c")
        assert [each["Id"] for each in said["Failed"]] == ["1"]
        assert markers(half) == ["a", "c"]
    for trouble, status in ((Trouble.THROTTLES, 400), (Trouble.DENIES, 400), (Trouble.DOWN, 0), (Trouble.ERRORS, 500)):
        with receiver(Form.SQS, (0, trouble)) as refusing:
            assert asked(refusing, "a")[0] == status
            assert markers(refusing) == []


def test_a_queue_whose_answer_is_lost_has_taken_all_of_it() -> None:
    with receiver(Form.SQS, (0, Trouble.LOSES)) as losing:
        assert asked(losing, "a")[0] == 0
        assert [(each.marker, each.acknowledged) for each in losing.taken] == [("a", False)]


def test_a_fifo_queue_drops_what_it_has() -> None:
    with receiver(Form.SQS, fifo=True) as fifo:
        asked(fifo, "a")
        asked(fifo, "a")
        assert markers(fifo) == ["a"]


def test_keys_that_do_not_open_it_are_noted() -> None:
    # Given a queue whose role lets in with an external id of its own
    with receiver(Form.SQS) as queue:
        other = queue.sts.assume_role(RoleArn=ROLE, ExternalId="another", DurationSeconds=3_600)
        ended = queue.sts.assume_role(RoleArn=ROLE, ExternalId="own", DurationSeconds=0)
        # When it is shown keys of somebody else, and keys that have ended
        for keys in (other, ended):
            asked(queue, "a", key_id=keys["Credentials"]["AccessKeyId"])
        asked(queue, "a")
        # Then both were misused, and no others
        assert len(queue.misused) == 2


def test_keys_that_do_not_open_it_break_a_promise() -> None:
    with played(windows.plan(SmallSinksWorld.name)) as scene:
        assert scene.broken() == []
        world = scene.world
        assert isinstance(world, SmallSinksWorld)
        world.receivers["queue"].misused.append("keys of another")
        assert "keys that do not open it" in {each.rule for each in scene.broken()}


def test_keys_end_in_mid_batch_and_new_ones_are_asked_for_in_the_same_try() -> None:
    with receiver(Form.SQS, (0, Trouble.NONE)) as queue:
        old = queue.sts.assume_role(RoleArn=ROLE, ExternalId="own", DurationSeconds=3_600)["Credentials"]
        queue.account.scheduler.run(SECOND)
        queue.troubles.append((queue.account.scheduler.now, Trouble.KEYS))
        assert asked(queue, "a", key_id=old["AccessKeyId"])[1]["__type"].endswith("ExpiredTokenException")
        assert asked(queue, "a")[0] == 200


def test_a_topic_in_trouble_takes_half_of_what_is_published_together() -> None:
    with receiver(Form.SNS, (0, Trouble.HALF), fifo=True) as topic:
        role = topic.sts.assume_role(RoleArn=ROLE, ExternalId="own", DurationSeconds=3_600)["Credentials"]
        form = {"Action": "PublishBatch", "TopicArn": "t"}
        for number, each in enumerate("abcb"):
            place = f"PublishBatchRequestEntries.member.{number + 1}"
            form |= {f"{place}.Id": str(number), f"{place}.Message": json.dumps({"marker": each})}
            form |= {f"{place}.MessageAttributes.entry.1.Name": "webhook-id", f"{place}.MessageGroupId": "g"}
            form |= {
                f"{place}.MessageAttributes.entry.1.Value.StringValue": each,
                f"{place}.MessageDeduplicationId": each,
            }
        signed = {
            "Authorization": f"AWS4-HMAC-SHA256 Credential={role['AccessKeyId']}/20261129/eu-west-1/sns/aws4_request"
        }
        _, reply = topic.asked(
            PushRequest(
                url="https://queue.example/", method="POST", body=urlencode(form).encode(), headers=signed, timeout_s=10
            ),
            "push-1",
        )
        assert markers(topic) == ["a", "c"]
        assert reply.body.count(b"<Code>") == 2


def test_a_function_in_trouble_raises_an_error() -> None:
    with receiver(Form.LAMBDA, (0, Trouble.HALF)) as function:
        keys = function.sts.assume_role(RoleArn=ROLE, ExternalId="own", DurationSeconds=3_600)["Credentials"]
        signed = {
            "Authorization": f"AWS4-HMAC-SHA256 Credential={keys['AccessKeyId']}/20261129/eu-west-1/lambda/aws4_request"
        }
        event = json.dumps({"headers": {"webhook-id": "m"}, "body": '{"marker": "m"}'}).encode()
        request = PushRequest(url="https://queue.example/2015", method="POST", body=event, headers=signed, timeout_s=10)
        replies = [function.asked(request, "push-1")[1] for _ in range(2)]
        assert [each.headers.get("x-amz-function-error", "") for each in replies] == ["Unhandled", ""]
        assert markers(function) == ["m"]


def test_a_hub_that_loses_or_repeats_at_a_sink_is_found_out() -> None:
    found("the position before the object", "a batch that grows", "new keys will do")


def asked_of_code(marker: str) -> bytes:
    """What push asks the function that runs code, for a message."""
    given = {"payload": {"marker": marker}, "eventType": "order.paid"}
    code = {"language": "javascript", "code": CODE, "answers": "webhook", "now": 7, "seed": marker}
    return json.dumps({**code, "input": json.dumps(given)}).encode()


def answers(runs: CodeRuns, marker: str, count: int) -> list[str]:
    """What becomes of so many runs: what was lost, in a word, or the result."""
    found = []
    for _ in range(count):
        answer, takes = runs.answer(asked_of_code(marker))
        said = json.loads(answer["Payload"].read())
        assert takes == (SECOND if said.get("error") == "timeout" else 5_000)
        found.append("crash" if answer.get("FunctionError") else said.get("error") or json.dumps(said["result"]))
    return found


def test_code_gives_one_result_and_fails_as_it_is_drawn() -> None:
    # Given the code of a world, when it is run a hundred times for a message
    ran = answers(CodeRuns(Random("a")), "app-1", 100)
    # Then some runs fail in either way, as the seed has it, and the others say one thing
    assert ran == answers(CodeRuns(Random("a")), "app-1", 100)
    [result] = {*ran} - {"timeout", "crash"}
    assert {*ran} == {"timeout", "crash", result}
    assert json.loads(json.loads(result)["payload"]["json"])["drawn"][0] == 7
    # And what it cancels is nobody's
    assert {*answers(CodeRuns(Random("a")), "app-3", 100)} == {"timeout", "crash", '{"cancel": true}'}


def test_what_has_code_is_never_down_for_so_long_that_it_is_given_up() -> None:
    for seed in range(200):
        spells = troubles(Random(seed), 0.5, outages=False)
        assert spells[-1][0] <= 0.5 * HOUR
    assert any(troubles(Random(seed), 0.5)[-1][0] > 0.5 * HOUR for seed in range(200))


KMS = {
    "Effect": "Allow",
    "Action": ["kms:GenerateDataKey", "kms:Decrypt"],
    "Resource": "*",
    "Condition": {"StringEquals": {"kms:ViaService": "sqs.eu-west-1.amazonaws.com"}},
}
QUEUE = "arn:aws:sqs:eu-west-1:111122223333:orders"
SENDS = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": QUEUE}


@pytest.mark.parametrize(
    ("statements", "narrow"),
    [
        ([SENDS], True),
        ([SENDS, KMS], True),
        ([KMS], False),
        ([{**SENDS, "Resource": "*"}], False),
        ([SENDS, {**SENDS, "Action": "sqs:DeleteMessage"}], False),
        ([SENDS, {**KMS, "Condition": {}}], False),
        ([SENDS, {**KMS, "Condition": {"StringEquals": {"kms:ViaService": "s3.eu-west-1.amazonaws.com"}}}], False),
    ],
)
def test_keys_that_open_more_than_one_action_on_one_resource_are_found_out(
    statements: list[dict[str, Any]], narrow: bool
) -> None:
    keys = Keys("ASIA", ROLE, "id", 0, 1, json.dumps({"Version": "2012-10-17", "Statement": statements}))
    assert keys.open_only("sqs:SendMessage", QUEUE) is narrow
