"""Several messages of one subscriber in one call: each has an outcome of its own."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs

import pytest
from tests.engine.world import World, subscribers
from tests.sinks.examples import ACCOUNT

from pushhub.base.ports import PushRequest
from pushhub.base.verdict import Answer, Verdict
from pushhub.engine.model.answer_rules import Asked, Stops
from pushhub.engine.model.delivery import opening
from pushhub.engine.target import Outcome, PushOrder

KINDS = ("sqs", "sns", "events")
KEY = "AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEYab"
LASTING = {"sqs": "InvalidMessageContents", "sns": "InvalidParameter", "events": "MalformedDetail"}
THROTTLED = {"sqs": "RequestThrottled", "sns": "Throttled", "events": "ThrottlingException"}


class Service:
    """A service that holds the first call until the others wait, and then answers each message as it is told.

    Args:
        scheme: Its kind.
        codes: The error for messages with these bodies.
        whole: The error for a call for several messages; none if empty.
    """

    def __init__(self, scheme: str, codes: dict[str, str], whole: str = "") -> None:
        self._scheme = scheme
        self._codes = codes
        self._whole = whole
        self.wait: Callable[[], None] = lambda: None
        self.calls: list[list[str]] = []
        self._lock = threading.Lock()

    def send(self, request: PushRequest) -> Answer:
        """Answer a call."""
        bodies, several = self._bodies(request)
        with self._lock:
            self.calls.append(bodies)
            is_first = len(self.calls) == 1
        if is_first:
            self.wait()
        status, body = 200, self._answer(bodies, several)
        if several and self._whole:
            status, body = 400, json.dumps({"__type": f"com.amazonaws.sqs#{self._whole}"}).encode()
            if self._scheme == "sns":
                body = f"<ErrorResponse><Error><Code>{self._whole}</Code></Error></ErrorResponse>".encode()
        elif not several and self._scheme != "events" and bodies[0] in self._codes:
            code = self._codes[bodies[0]]
            status = 400
            body = json.dumps({"__type": code}).encode() if self._scheme == "sqs" else f"<Code>{code}</Code>".encode()
        return Answer(
            status_code=status,
            message="",
            body=body[: request.answer_limit],
            started_at=1,
            finished_at=2,
            bytes_out=len(request.body),
        )

    def _bodies(self, request: PushRequest) -> tuple[list[str], bool]:
        if self._scheme == "sns":
            form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
            place = "PublishBatchRequestEntries.member"
            several = form["Action"] == "PublishBatch"
            numbers = [number for number in range(1, 11) if f"{place}.{number}.Id" in form]
            assert [form[f"{place}.{each}.Id"] for each in numbers] == [str(each - 1) for each in numbers]
            return [form[f"{place}.{each}.Message"] for each in numbers] if several else [form["Message"]], several
        said = json.loads(request.body)
        if self._scheme == "events":
            return [each["Detail"] for each in said["Entries"]], len(said["Entries"]) > 1
        several = request.headers["X-Amz-Target"] == "AmazonSQS.SendMessageBatch"
        entries = said["Entries"] if several else [said]
        if several:
            assert [each["Id"] for each in entries] == [str(number) for number in range(len(entries))]
        return [each["MessageBody"] for each in entries], several

    def _answer(self, bodies: Sequence[str], several: bool) -> bytes:
        coded = [(number, self._codes.get(body, "")) for number, body in enumerate(bodies)]
        if self._scheme == "events":
            entries = [{"ErrorCode": code} if code else {"EventId": "e"} for _, code in coded]
            return json.dumps({"FailedEntryCount": 0, "Entries": entries}).encode()
        if not several:
            return b"{}"
        good = [number for number, code in coded if not code]
        bad = [(number, code) for number, code in coded if code and code != "silence"]
        if self._scheme == "sqs":
            failed = [{"Id": str(number), "Code": code, "SenderFault": True} for number, code in bad]
            return json.dumps({"Successful": [{"Id": str(each)} for each in good], "Failed": failed}).encode()
        done = "".join(f"<member><MessageId>m</MessageId><Id>{each}</Id></member>" for each in good)
        failed_text = "".join(f"<member><Id>{number}</Id><Code>{code}</Code></member>" for number, code in bad)
        return f"<R><Successful>{done}</Successful><Failed>{failed_text}</Failed></R>".encode()


def outcomes(
    scheme: str, bodies: Sequence[str], codes: dict[str, str], whole: str = ""
) -> tuple[dict[str, Outcome], Service]:
    """What becomes of messages that are attempted at the same time, the first of which holds up the others."""
    world = World()
    service = Service(scheme, codes, whole)
    world.ports.sender = service
    url = f"{scheme}://{KEY}@eu-west-1/{ACCOUNT}/orders"
    queue = world.make_queue("q", subscribers(url))
    target = world.hub.engine.targets.of(f"{scheme}:")
    push = queue.push
    assert push is not None
    [subscriber] = push.subscribers

    def order(body: str) -> PushOrder:
        [message_id] = world.post("q", body.encode())
        [message] = [each for each in world.messages.all_messages() if each.message_id == message_id]
        return PushOrder(
            queue=queue,
            push=push,
            subscriber=subscriber,
            message=message,
            body=body.encode(),
            delivery=opening(message, subscriber.subscriber_id),
        )

    orders = [order(each) for each in bodies]
    lanes = target._together._lanes  # type: ignore[attr-defined]

    def until_all_wait() -> None:
        while sum(map(len, lanes.values())) < len(bodies) - 1:
            pass

    service.wait = until_all_wait
    with ThreadPoolExecutor(len(orders)) as pool:
        first = pool.submit(target.deliver, orders[0])
        while not lanes and not first.done():
            pass
        others = [pool.submit(target.deliver, each) for each in orders[1:]]
        found = [each.result(60) for each in (first, *others)]
    return dict(zip(bodies, found, strict=True)), service


def asked(outcome: Outcome) -> Asked:
    """What an outcome asks for."""
    assert outcome.asked is not None
    return outcome.asked


def body(number: object) -> str:
    """A body that event buses take as it is."""
    return f'{{"n": "{number}"}}'


@pytest.mark.parametrize("scheme", KINDS)
def test_ten_that_wait_together_are_one_call(scheme: str) -> None:
    # Given eleven messages of one subscriber that are tried at the same time
    bodies = [body(number) for number in range(11)]
    found, service = outcomes(scheme, bodies, {})
    # Then there were two calls: the first one, and one for the ten that came meanwhile
    assert [len(each) for each in service.calls] == [1, 10]
    assert sorted(service.calls[0] + service.calls[1]) == sorted(bodies)
    # And each was delivered
    assert {each.verdict for each in found.values()} == {Verdict.DELIVERED}


@pytest.mark.parametrize("scheme", KINDS)
def test_half_a_batch_fails_each_in_its_own_way(scheme: str) -> None:
    # Given a service that takes one message of a batch, never another one, is too busy for a third, and does not
    # mention a fourth
    never, busy, other = body("never"), body("busy"), body("other")
    codes = {never: LASTING[scheme], busy: THROTTLED[scheme], other: "InternalFailure"}
    found, service = outcomes(scheme, [body(0), body(1), never, busy, other], codes)
    assert [len(each) for each in service.calls] == [1, 4]
    # Then each has its own outcome
    assert found[body(0)].verdict is found[body(1)].verdict is Verdict.DELIVERED
    assert {found[each].verdict for each in (never, busy, other)} == {Verdict.FAILED}
    assert (asked(found[never]).stops, asked(found[never]).reason) == (Stops.DELIVERY, "unfit")
    assert asked(found[busy]).stops is None
    assert 5_000 <= asked(found[busy]).wait_ms <= 10_000
    assert asked(found[other]).wait_ms == 0
    assert found[other].answer.message == "InternalFailure"


@pytest.mark.parametrize("scheme", ["sqs", "sns"])
def test_what_an_answer_does_not_mention_is_tried_again(scheme: str) -> None:
    silent = body("silent")
    found, _ = outcomes(scheme, [body(0), body(1), silent], {silent: "silence"})
    assert found[silent].verdict is Verdict.FAILED
    assert asked(found[silent]).stops is None
    assert found[body(1)].verdict is Verdict.DELIVERED


@pytest.mark.parametrize("scheme", ["sqs", "sns"])
def test_a_call_that_is_refused_as_a_whole_ends_nobodys_delivery(scheme: str) -> None:
    # Given a service that refuses every call for several, as if one of them made all of it wrong
    never = body("never")
    found, service = outcomes(scheme, [body(0), body(1), never], {never: LASTING[scheme]}, whole=LASTING[scheme])
    # Then each is asked for by itself, and only the one that is never taken ends
    assert [len(each) for each in service.calls] == [1, 2, 1, 1]
    assert found[body(1)].verdict is Verdict.DELIVERED
    assert asked(found[never]).stops is Stops.DELIVERY


@pytest.mark.parametrize("scheme", KINDS)
def test_a_call_that_fails_as_a_whole_is_a_try_of_each(scheme: str) -> None:
    found, service = outcomes(scheme, [body(0), body(1), body(2)], {}, whole="ServiceUnavailable")
    assert [len(each) for each in service.calls] == [1, 2]
    assert found[body(1)].verdict is found[body(2)].verdict is Verdict.FAILED
    assert asked(found[body(1)]).stops is None
