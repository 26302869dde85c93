"""Concurrent requests, and what a crash leaves behind."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest
from tests.fakes import Crash, Fault, FaultPlan, Reply
from tests.fakes.racing import together
from tests.webhooks.world import WebhooksWorld, prepared

from pushhub.base.errors import Conflict
from pushhub.engine.model.message import Message
from pushhub.webhooks.model.task import Task
from pushhub.webhooks.wiring import Webhooks

URL = "https://a.example/in"


@pytest.mark.parametrize("route", ["msg", "endpoint"])
def test_five_posts_with_one_key_at_once_make_one_thing(route: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given five clients with the same key; those that wait do not turn the clock beyond the first one's deadline
    world = WebhooksWorld()
    monkeypatch.setattr(world.clock, "sleep", time.sleep)
    app = world.make_app()
    bodies = {"msg": {"eventType": "a", "payload": {"n": 1}}, "endpoint": {"url": URL}}
    # When all of them post at once
    answers = together(
        5, lambda _: world.call("POST", f"/app/{app}/{route}", bodies[route], headers={"Idempotency-Key": "k"})
    )
    # Then one object is created, and all are told of it
    assert {each.status for each in answers} <= {201, 202}
    assert len({each.body["id"] for each in answers}) == 1
    assert len(world.ask("GET", f"/app/{app}/{route}")["data"]) == 1


STARTS = {
    "endpoint/{endpoint}/recover": {"since": "2026-11-20T00:00:00Z"},
    "endpoint/{endpoint}/replay-missing": {"since": "2026-11-20T00:00:00Z"},
    "endpoint/{endpoint}/bulk-replay": {"since": "2026-11-20T00:00:00Z"},
    "msg/expunge-all-contents": None,
}


@pytest.mark.parametrize("route", STARTS)
def test_a_task_is_one_however_often_and_whenever_its_request_is_repeated(route: str) -> None:
    # Given a task that five clients ask for at once, with one key
    world = WebhooksWorld()
    app = world.make_app()
    path, key = f"/app/{app}/{route.format(endpoint=world.make_endpoint(app))}", {"Idempotency-Key": "k"}
    answers = together(5, lambda _: world.call("POST", path, STARTS[route], headers=key))
    # When it is asked for again, while it is worked on and when it has ended
    world.run(seconds=3_600)
    answers.append(world.call("POST", path, STARTS[route], headers=key))
    # Then all got the same answer, nobody waited, and there is one task
    assert {each.status for each in answers} == {202}
    assert len({each.text for each in answers}) == 1
    [task] = world.ask("GET", "/background-task")["data"]
    assert (task["id"], task["status"]) == (answers[0].body["id"], "finished")


def test_a_key_of_a_task_is_known_for_as_long_as_other_keys() -> None:
    world = WebhooksWorld()
    app = world.make_app()
    path, key = f"/app/{app}/msg/expunge-all-contents", {"Idempotency-Key": "k"}
    first = world.ask("POST", path, headers=key)["id"]
    world.clock.advance(seconds=11 * 3600)
    assert world.ask("POST", path, headers=key)["id"] == first
    world.clock.advance(seconds=2 * 3600)
    assert world.ask("POST", path, headers=key)["id"] != first


def test_two_rotations_at_once_leave_both_keys_and_the_old_one_signing() -> None:
    world = WebhooksWorld()
    app = world.make_app()
    endpoint = world.make_endpoint(app)
    path = f"/app/{app}/endpoint/{endpoint}/secret"
    old = world.ask("GET", path)["key"]
    new = [each.body["key"] for each in together(2, lambda _: world.call("POST", f"{path}/rotate", {}))]
    current = world.ask("GET", path)["key"]
    assert current in new
    world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}})
    world.run(seconds=5)
    [request] = world.sender.requests
    # Three signatures: of both new keys and the old one
    assert len(request.headers["svix-signature"].split(" ")) == 3
    assert len({old, *new}) == 3


def test_changes_at_once_are_all_made() -> None:
    world = WebhooksWorld()
    app = world.make_app()
    endpoint = world.make_endpoint(app)
    path = f"/app/{app}/endpoint/{endpoint}"

    def change(number: int) -> Any:
        return world.call("PATCH", f"{path}/headers", {"headers": {f"X-{number}": "1"}})

    assert {each.status for each in together(4, change)} == {204}
    assert set(world.ask("GET", f"{path}/headers")["headers"]) == {"X-0", "X-1", "X-2", "X-3"}


def test_a_uid_is_given_once_however_many_ask_for_it() -> None:
    world = WebhooksWorld()
    answers = together(5, lambda _: world.call("POST", "/app", {"name": "x", "uid": "u"}))
    assert sorted(each.status for each in answers) == [201, 409, 409, 409, 409]
    answers = together(5, lambda _: world.call("POST", "/app", {"name": "x", "uid": "v"}, get_if_exists="true"))
    assert len({each.body["id"] for each in answers}) == 1


BODY, KEY = {"eventType": "a", "payload": {"n": 1}}, {"Idempotency-Key": "k"}


def posted_until_told(world: WebhooksWorld, app: str, **more: Any) -> str:
    """Post with a key as clients do, with a retry after a failure; the message's id."""
    for _ in range(4):
        try:
            answer = world.call("POST", f"/app/{app}/msg", BODY | more, headers=KEY)
        except Crash:
            continue
        if answer.status == 202:
            return str(answer.body["id"])
        assert answer.status == 500
    raise AssertionError("never taken")


def calls_of_a_message(**more: Any) -> int:
    learned = FaultPlan()
    world, app, _ = prepared(learned)
    posted_until_told(world, app, **more)
    world.run(seconds=5)
    return len(learned.calls)


@pytest.mark.parametrize("more", [{}, {"payloadRetentionPeriod": 5, "eventId": "own"}], ids=["plain", "with-a-line"])
@pytest.mark.parametrize("fault", Fault)
def test_whatever_fails_once_a_message_that_was_taken_is_listed_once_and_delivered(
    fault: Fault, more: dict[str, Any]
) -> None:
    for number in range(1, calls_of_a_message(**more) + 1):
        # Given ports of which one call goes wrong
        world, app, endpoint = prepared(FaultPlan(fault, at=number))
        # When a message is posted until it is accepted, and time passes
        posted = posted_until_told(world, app, **more)
        world.run(seconds=3 * 3600)
        # Then it is there once, and the endpoint got it
        case = f"call {number}: {world.plan.calls[number - 1]}"
        assert [each["id"] for each in world.ask("GET", f"/app/{app}/msg")["data"]] == [posted], case
        assert world.sender.requests, case
        assert {each.headers["svix-id"] for each in world.sender.requests} == {posted}, case
        [message] = world.ask("GET", f"/app/{app}/endpoint/{endpoint}/msg")["data"]
        assert message["statusText"] == "success", case
        # And the attempt is shown, unless that very write failed
        attempts = world.ask("GET", f"/app/{app}/attempt/endpoint/{endpoint}")["data"]
        unlogged = fault is Fault.FAILS and world.plan.calls[number - 1] == "message_log.log_attempts"
        assert [each["statusText"] for each in attempts][:1] == ([] if unlogged else ["success"]), case
        # And when its bytes are lost it stays listed as long as any other
        if more:
            world.clock.advance(seconds=20 * 86_400)
            world.messages.lose()
            assert [each["id"] for each in world.ask("GET", f"/app/{app}/msg")["data"]] == [posted], case


def test_an_attempt_that_cannot_be_logged_is_not_made_again() -> None:
    world, app, _ = prepared(FaultPlan(Fault.FAILS, of="message_log.log_attempts"))
    posted_until_told(world, app)
    world.run(seconds=3600)
    assert len(world.sender.requests) == 1
    assert world.telemetry.counts["AttemptsUnlogged"] == 1


@pytest.mark.parametrize("fault", [None, *Fault])
@pytest.mark.parametrize(("status", "stands"), [(200, "success"), (500, "fail")])
def test_an_endpoint_that_is_disabled_while_it_is_asked_is_asked_no_more(
    fault: Fault | None, status: int, stands: str
) -> None:
    def run(plan: FaultPlan) -> tuple[WebhooksWorld, list[str]]:
        # Given a message, and an owner who disables the endpoint while it is sent
        world, app, endpoint = prepared(plan)
        calm = world.ports.build(FaultPlan()).part(Webhooks).api
        path = f"/app/{app}/endpoint/{endpoint}"

        def disable(_: object) -> None:
            world.ask("PATCH", path, {"disabled": True}, api=calm)

        world.sender.script(URL, Reply(status_code=status, meanwhile=disable), 200)
        world.ask("POST", f"/app/{app}/msg", BODY, api=calm)
        # When days pass
        world.run(seconds=72 * 3600)
        return world, [each["statusText"] for each in world.ask("GET", f"{path}/msg", api=calm)["data"]]

    learned, shown = run(FaultPlan())
    assert shown == [stands]
    assert len(learned.sender.requests) == 1
    for number in range(1, len(learned.plan.calls) + 1) if fault else ():
        world, shown = run(FaultPlan(fault, at=number))
        case = f"call {number}: {world.plan.calls[number - 1]}"
        # Then it was sent once, and nothing is left that looks as if it would be tried again
        assert len(world.sender.requests) == 1, case
        assert "sending" not in shown, case
        assert not [each for each in world.messages.all_deliveries() if not each.settled], case


@pytest.mark.parametrize("fault", [None, *Fault])
def test_a_resend_in_the_middle_of_a_retry_is_made_besides_and_the_message_arrives(fault: Fault | None) -> None:
    def run(plan: FaultPlan) -> tuple[WebhooksWorld, list[tuple[int, str]], str]:
        # Given a message whose first try failed, and a person who asks for another one while the second is under way
        world, app, endpoint = prepared(plan)
        calm = world.ports.build(FaultPlan()).part(Webhooks).api
        message = str(world.ask("POST", f"/app/{app}/msg", BODY, api=calm)["id"])

        def resend(_: object) -> None:
            world.ask("POST", f"/app/{app}/msg/{message}/endpoint/{endpoint}/resend", api=calm)

        world.sender.script(URL, 500, Reply(status_code=500, meanwhile=resend), 200)
        # When time passes
        world.run(seconds=6 * 3600)
        attempts = world.ask("GET", f"/app/{app}/attempt/msg/{message}", api=calm)["data"]
        [stands] = world.ask("GET", f"/app/{app}/endpoint/{endpoint}/msg", api=calm)["data"]
        assert "nextAttempt" not in stands
        return world, [(each["triggerType"], each["statusText"]) for each in attempts], stands["statusText"]

    learned, attempts, stands = run(FaultPlan())
    assert sorted(attempts) == [(0, "fail"), (0, "fail"), (1, "success")]
    assert stands == "success"
    for number in range(1, len(learned.plan.calls) + 1) if fault else ():
        world, attempts, stands = run(FaultPlan(fault, at=number))
        case = f"call {number}: {world.plan.calls[number - 1]}"
        assert stands == "success", case
        # A try whose outcome was lost is made again; nothing else follows.
        assert len(world.sender.requests) <= 4, case
        assert sum(trigger for trigger, _ in attempts) <= 2, case


def test_resends_that_are_asked_for_before_one_begins_are_one() -> None:
    world, app, endpoint = prepared(FaultPlan())
    message = str(world.ask("POST", f"/app/{app}/msg", BODY)["id"])
    world.run(seconds=5)
    path = f"/app/{app}/msg/{message}/endpoint/{endpoint}/resend"
    assert {each.status for each in together(5, lambda _: world.call("POST", path))} == {202}
    world.run(seconds=600)
    assert len(world.sender.requests) == 2
    # After that, the next resend is a new one
    world.ask("POST", path)
    world.run(seconds=5)
    assert len(world.sender.requests) == 3


def test_a_message_whose_id_is_taken_by_one_that_is_gone_when_it_is_read_is_taken_in_the_next_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given a store that says once that the id is taken, by a message that nobody finds
    world = WebhooksWorld()
    app = world.make_app()
    real, refusals = world.messages.accept, [Conflict("taken")]

    def accept(messages: Sequence[Message]) -> None:
        if refusals:
            raise refusals.pop()
        real(messages)

    monkeypatch.setattr(world.messages, "accept", accept)
    # Then a message is accepted all the same
    answer = world.call("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {"n": 1}})
    assert answer.status == 202
    assert [each["id"] for each in world.ask("GET", f"/app/{app}/msg")["data"]] == [answer.body["id"]]
    # And where that never ends, the producer is asked to come again
    refusals.extend(Conflict("taken") for _ in range(1_000))
    answer = world.call("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {"n": 2}})
    assert (answer.status, answer.body["code"]) == (503, "overloaded")
    assert int(answer.headers["Retry-After"]) >= 1


def test_a_task_whose_id_is_taken_by_one_that_is_gone_when_it_is_read_is_made_in_the_next_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = WebhooksWorld()
    app = world.make_app()
    path = f"/app/{app}/endpoint/{world.make_endpoint(app)}/recover"
    store = world.hub.part(Webhooks).tasks.store
    real, refusals = store.put_task, [Conflict("taken")]

    def put_task(task: Task) -> None:
        if refusals:
            raise refusals.pop()
        real(task)

    monkeypatch.setattr(store, "put_task", put_task)
    assert world.call("POST", path, {"since": "2026-11-20T00:00:00Z"}).status == 202
    assert not refusals
