"""Consumers and notify as Lambda runs them, with the use cases in memory behind them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.fakes import Crash, Fault, FaultPlan
from tests.functions.conftest import Context, started
from tests.notifications.world import PROJECT, NotificationWorld

from pushhub.base.errors import Unavailable
from pushhub.notifications.model.topic import Topic
from pushhub.notifications.store.sqs_wakes import encode_wake

TOPIC = Topic(project=PROJECT, name="orders")


class Lambda:
    """The two handlers in front of one world."""

    def __init__(self, world: NotificationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = world
        monkeypatch.setattr("pushhub.runtime.hub.start", lambda _: world.whole)

    def invoke(self, name: str, event: dict[str, Any]) -> Any:
        return started(name).handler(event, Context())

    def socket(
        self, kind: str, connection_id: str = "a", *, body: str = "", query: dict[str, str] | None = None
    ) -> Any:
        context = {"eventType": kind, "routeKey": "$connect", "connectionId": connection_id}
        event = {
            "requestContext": context,
            "body": body,
            "queryStringParameters": query,
            "multiValueQueryStringParameters": {name: [value] for name, value in (query or {}).items()},
        }
        return self.invoke("consumers", event)

    def frame(self, data: bytes, connection_id: str = "a") -> Any:
        """A frame as the template's mapping delivers it."""
        context = {"eventType": "MESSAGE", "routeKey": "$default", "connectionId": connection_id}
        body = base64.b64encode(data).decode()
        return self.invoke("consumers", {"requestContext": context, "body": body, "isBase64Encoded": True})

    def wakes(self, *bodies: str, waited_ms: int = 0, receives: int = 1) -> Any:
        sent_at = self.world.clock.now() - waited_ms
        attributes = {"SentTimestamp": str(sent_at), "ApproximateReceiveCount": str(receives)}
        records = [
            {"messageId": f"m{number}", "receiptHandle": f"h{number}", "body": body, "attributes": attributes}
            for number, body in enumerate(bodies)
        ]
        return self.invoke("notify", {"Records": records})


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> Lambda:
    world = NotificationWorld()
    world.rule()
    return Lambda(world, monkeypatch)


def test_a_connection_begins_acknowledges_and_ends(functions: Lambda) -> None:
    world = functions.world
    assert functions.socket("CONNECT", query={"token": world.token(), "consumer": "x"}) == {"statusCode": 200}
    world.sockets.opened("a")
    world.publish(1)
    world.send_all()
    (frame,) = world.frames("a")
    # An answer with a body would be sent to the client.
    assert functions.socket("MESSAGE", body=frame.ack_id) == {"statusCode": 200}
    assert functions.socket("DISCONNECT") == {"statusCode": 200}
    (backlog,) = world.backlogs.backlogs(TOPIC)
    assert (backlog.consumers, backlog.returned) == ((), ())


@pytest.mark.parametrize("query", [None, {}, {"token": "x"}, {"consumer": "x"}])
def test_a_bad_token_is_401(functions: Lambda, query: dict[str, str] | None) -> None:
    answer = functions.socket("CONNECT", query=query)
    assert answer["statusCode"] == 401
    assert json.loads(answer["body"])["message"]


def test_a_second_consumer_is_409_and_trouble_503(functions: Lambda) -> None:
    world = functions.world
    functions.socket("CONNECT", query={"token": world.token()})
    world.sockets.opened("a")
    assert functions.socket("CONNECT", "b", query={"token": world.token()})["statusCode"] == 409
    world._plan = FaultPlan(Fault.FAILS, of="topics.admit")
    world.start()
    assert functions.socket("CONNECT", "c", query={"token": world.token("other")})["statusCode"] == 503


def test_a_frame_that_cannot_be_worked_on_is_worked_on_again(functions: Lambda) -> None:
    # Given an acknowledgement that cannot be noted
    world = functions.world
    world.connect("a")
    world.publish(1)
    world.send_all()
    world._plan = FaultPlan(Fault.FAILS, of="connections.acknowledge")
    world.start()
    ack_id = world.frames("a")[0].ack_id.encode()
    # When it is handled, then Lambda gets the error and repeats the asynchronous run
    with pytest.raises(Unavailable):
        functions.frame(ack_id)
    # And the second run records it
    assert functions.frame(ack_id) == {"statusCode": 200}
    world.disconnect("a")
    world.connect("b")
    world.send_all()
    assert world.frames("b") == []


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\x00", b"=" * 16, "\u2028".encode()])
def test_frames_that_say_nothing_are_ignored(functions: Lambda, data: bytes) -> None:
    functions.world.connect("a")
    assert functions.frame(data) == {"statusCode": 200}


def test_a_handshake_with_two_tokens_is_401(functions: Lambda) -> None:
    # Given a valid token that occurs twice, as API Gateway delivers it
    token = functions.world.token()
    event = {
        "requestContext": {"eventType": "CONNECT", "routeKey": "$connect", "connectionId": "a"},
        "queryStringParameters": {"token": token},
        "multiValueQueryStringParameters": {"token": [token, token]},
    }
    assert functions.invoke("consumers", event)["statusCode"] == 401
    event["multiValueQueryStringParameters"] = {"token": [token]}
    assert functions.invoke("consumers", event)["statusCode"] == 200


@pytest.mark.parametrize(
    "names", [[""], [" "], ["one", "one"], ["one", "two"], ["a" * 256]], ids=lambda each: str(each)[:20]
)
def test_a_handshake_with_a_consumer_that_names_nobody_is_refused(functions: Lambda, names: list[str]) -> None:
    # Given a valid token, and a name that is blank, there twice or too long
    token = functions.world.token()
    event = {
        "requestContext": {"eventType": "CONNECT", "routeKey": "$connect", "connectionId": "a"},
        "queryStringParameters": {"token": token, "consumer": names[-1]},
        "multiValueQueryStringParameters": {"token": [token], "consumer": names},
    }
    # Then the handshake is refused with the reason, and makes no subscriber
    answer = functions.invoke("consumers", event)
    assert answer["statusCode"] == 422
    assert json.loads(answer["body"])["message"].startswith("consumer ")
    assert functions.world.backlogs.backlogs(TOPIC) == []


def test_a_frame_that_names_a_route_is_a_frame_all_the_same(functions: Lambda) -> None:
    functions.world.connect("a")
    assert functions.socket("MESSAGE", body='{"action":"$disconnect"}') == {"statusCode": 200}
    (backlog,) = functions.world.backlogs.backlogs(TOPIC)
    assert backlog.consumer("a") is not None


def test_a_batch_is_one_look_for_each_subscriber(functions: Lambda) -> None:
    world = functions.world
    for name in ("one", "two"):
        world.connect(name, world.token(name))
    world.publish(1)
    bodies = [encode_wake(each) for each in world.queue.sent]
    answer = functions.wakes(*bodies, bodies[0])
    assert answer == {"batchItemFailures": []}
    assert world.numbers("one") == world.numbers("two") == [1]
    assert len(world.telemetry.named("notifications_sent")) == 2


def test_what_has_to_come_back_is_kept_and_what_is_no_wake_up_too(functions: Lambda) -> None:
    world = functions.world
    world.connect("fine", world.token("fine"))
    # A handshake that has not finished
    world.consumers.connect(world.token("early"), "", "early")
    world.publish(1)
    fine, early = world.queue.sent[-2:] if world.queue.sent[-1].subscriber == "early" else world.queue.sent[:-3:-1]
    answer = functions.wakes(encode_wake(fine), encode_wake(early), "not a wake-up")
    kept = {each["itemIdentifier"] for each in answer["batchItemFailures"]}
    assert kept == {"m1", "m2"} if fine.subscriber == "fine" else {"m0", "m2"}
    assert world.numbers("fine") == [1]


@pytest.mark.parametrize("error", [Fault.FAILS, None])
def test_one_subscriber_s_trouble_is_kept_and_leaves_the_others_alone(
    functions: Lambda, monkeypatch: pytest.MonkeyPatch, error: Fault | None
) -> None:
    world = functions.world
    for name in ("one", "two"):
        world.connect(name, world.token(name))
    world.publish(1)
    wakes = {each.subscriber: each for each in world.queue.sent}
    if error is None:
        real = world.sender.look

        def look(wake: Any, remaining_ms: Any) -> Any:
            if wake.subscriber == "one":
                raise RuntimeError("a fault of the hub")
            return real(wake, remaining_ms)

        monkeypatch.setattr(world.sender, "look", look)
    else:
        world._plan = FaultPlan(error, of="backlogs.backlog")
        world.start()
    answer = functions.wakes(encode_wake(wakes["one"]), encode_wake(wakes["two"]))
    assert len(answer["batchItemFailures"]) == 1
    assert len(world.numbers("one")) + len(world.numbers("two")) == 1
    assert world.telemetry.counts["LooksFailed"] == 1


def test_wake_ups_of_a_run_that_died_come_back_when_it_could_not_go_on_any_more(functions: Lambda) -> None:
    # Given a wake-up, which the queue would hide for more than a minute
    world = functions.world
    world.connect("a")
    world.send_all()
    world.publish(1)
    received = world.queue.receive()
    assert received is not None
    # When the process of its run, which had ten seconds, dies
    world._plan = FaultPlan(Fault.CRASHES_BEFORE, of="sockets.send")
    world.start()
    with pytest.raises(Crash):
        world.notifications.sender_batch.run([received], lambda: 10_000)
    world._plan = FaultPlan()
    world.start()
    # Then it comes back soon after those ten seconds, not before, and the waiting notification is sent
    at = world.queue.next_at()
    assert at is not None
    assert 10_000 < at - world.clock.now() <= 12_000
    world.send_all()
    assert world.numbers("a") == [1]


def test_the_schedule_checks_idle_connections(functions: Lambda) -> None:
    functions.world.connect("a")
    functions.world.clock.advance(seconds=300)
    assert functions.invoke("notify", {"source": "aws.scheduler", "detail": "{}"}) == {}
    assert functions.world.sockets.closed == ["a"]


@pytest.mark.parametrize(
    ("waited_s", "receives", "late"), [(299, 1, False), (301, 1, True), (900, 2, False)], ids=["soon", "late", "again"]
)
def test_wake_ups_that_no_run_took_up_in_time_are_counted(
    functions: Lambda, capsys: pytest.CaptureFixture[str], waited_s: int, receives: int, late: bool
) -> None:
    # Given a wake-up that has waited; one that was received before was made to wait
    functions.world.connect("one", functions.world.token("one"))
    functions.world.publish(1)
    body = encode_wake(functions.world.queue.sent[0])
    functions.wakes(body, waited_ms=waited_s * 1000, receives=receives)
    assert ('"WorkLate":[1.0]' in capsys.readouterr().out.replace(" ", "")) is late
