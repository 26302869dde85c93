"""Messages on their way through the hub: routed, delivered, failed, polled, postponed, parked, reported."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.fakes import Reply
from tests.hub.api.hub_store import Store
from tests.hub.world import URL, HubWorld

from pushhub.base.errors import Unreadable
from pushhub.engine.model.delivery import resume
from pushhub.hub.model.filters import Filter, FilterOperator
from pushhub.hub.model.log import HubState, Location
from pushhub.hub.model.mapping import MAX_PARAMETERS, ServiceOptions
from pushhub.hub.model.object_ids import to_object_id
from pushhub.hub.model.parameters import DataType, Parameter
from pushhub.hub.model.schedule import Scheduler
from pushhub.hub.router import ROUTING_MS
from pushhub.hub.ticks import BATCH
from pushhub.hub.wire.answer import ANSWER_LIMIT

DAY = 86_400
HOUR = 3_600_000


def in_turn(*answers: Any) -> Any:
    """An endpoint that gives these answers in turn, and repeats the last one."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def test_a_message_goes_as_a_copy_of_its_own_to_each_mapping_that_wants_it(world: HubWorld) -> None:
    # Given two mappings of order:new and one of something else
    world.map("order:new", "order:updated")
    world.map("order:new", url="https://b.example/x", token="b" * 32)
    world.map("order:updated", url="https://c.example/x")
    # When a message is pushed
    incoming = world.push_message("order:new", order={"number": "R1"})
    world.run(seconds=5)
    # Then each of the two got it once, with its own id
    assert sorted(url for url, _ in world.asked) == [URL, "https://b.example/x"]
    bodies = [body for _, body in world.asked]
    assert all(each["message"] == "order:new" for each in bodies)
    assert all(each["payload"] == {"order": {"number": "R1"}} for each in bodies)
    assert len({incoming, *(each["message_id"] for each in bodies)}) == 3
    # And the incoming one is archived, with the copies as its children
    entry = world.entry(incoming)
    assert (entry.location, entry.shown_state) == (Location.ARCHIVED, HubState.COMPLETED)
    copies = world.copies(incoming)
    assert {to_object_id(each.message_id) for each in copies} == {each["message_id"] for each in bodies}
    assert {each.parent_id for each in copies} == {entry.message_id}
    assert {(each.location, each.state) for each in copies} == {(Location.ARCHIVED, HubState.COMPLETED)}


def test_the_request_is_the_protocols(world: HubWorld) -> None:
    key = Parameter(project=PROJECT, name="acme.api_key", value="k1", data_type=DataType.STRING, as_of=1)
    world.settings.set_parameter(key)
    world.settings.set_parameter(replace(key, name="other.key", value="secret"))
    world.map("order:new", parameter_ids=(key.parameter_id, "f" * 24))
    world.push_message("order:new", order={})
    world.run(seconds=5)
    [request] = world.sender.requests
    assert request.method == "POST"
    assert request.timeout_s == 180
    assert request.answer_limit == ANSWER_LIMIT + 1
    assert request.headers["X-Augury-Token"] == "t" * 32
    assert request.headers["Content-Type"] == "application/json"
    assert json.loads(request.body)["payload"] == {
        "order": {},
        "parameters": [{"name": "acme.api_key", "value": "k1"}],
    }


def test_a_message_that_nobody_wants_is_skipped_and_archived(world: HubWorld) -> None:
    world.map("order:new", enabled=False)
    incoming = world.push_message("order:new")
    world.run(seconds=5)
    entry = world.entry(incoming)
    assert (entry.location, entry.shown_state) == (Location.ARCHIVED, HubState.NEVER_PROCESSED)
    assert world.asked == []
    assert world.settings.types(PROJECT) == ["order:new"]


def test_filters_come_before_identifiers(world: HubWorld) -> None:
    # Given the shipment:ready story: a service that wants complete orders only, and each order once
    world.map(
        "order:new",
        filters=(Filter(path="payload.order.status", operator=FilterOperator.EQ, value="complete"),),
        identifiers={"number": "payload.order.number"},
    )
    # When the same order comes incomplete, complete, and complete again
    for status in ("cart", "complete", "complete"):
        world.push_message("order:new", order={"number": "R1", "status": status})
        world.run(seconds=1)
    # Then the filtered message did not claim the identity, and the last one was not sent
    assert [body["payload"]["order"]["status"] for body in world.asked_at()] == ["complete"]
    world.push_message("order:new", order={"number": "R2", "status": "complete"})
    world.run(seconds=1)
    assert len(world.asked) == 2


def test_a_copy_that_fails_keeps_its_identity(world: HubWorld) -> None:
    world.map("order:new", says=lambda _: 500, identifiers={"number": "payload.order.number"})
    for _ in range(2):
        world.push_message("order:new", order={"number": "R1"})
    world.run(seconds=5)
    assert len(world.asked) == 1


@pytest.mark.parametrize("value", ["(a{1000}){0,3}b$", "a(?=b)"], ids=["large", "unusable"])
def test_a_pattern_that_nobody_could_run_filters_nothing_out(world: HubWorld, value: str) -> None:
    # Given a mapping whose pattern takes too many steps, and another one that wants the same messages
    slow = Filter(path="payload.text", operator=FilterOperator.MATCH, value=value)
    mapping = world.map("order:new", name="slow.service", filters=(slow,))
    world.map("order:new", url="https://b.example/x")
    # When a message comes
    incoming = world.push_message("order:new", text="a" * 9_000 + "b")
    world.run(seconds=3600)
    # Then the other one gets it once, the message waits for the first, and the owner gets one notification
    assert [url for url, _ in world.asked] == ["https://b.example/x"]
    entry = world.entry(incoming)
    assert (entry.location, entry.state) == (Location.INCOMING, HubState.PENDING)
    [notification] = world.log.notifications_of(PROJECT, entry.message_id)
    assert notification.subject == "Not yet sent to slow.service"
    # When the pattern can be run, the message arrives there, too, and nowhere again
    working = replace(slow, value="b$")
    [stored] = [each for each in world.settings.mappings(PROJECT) if each.mapping_id == mapping.mapping_id]
    world.settings.put_mapping(PROJECT, replace(stored, filters=(working,)))
    world.run(seconds=3600)
    assert [url for url, _ in world.asked] == ["https://b.example/x", URL]
    assert world.entry(incoming).location is Location.ARCHIVED
    assert len(world.entry(incoming).children) == 2


def test_filters_that_take_too_many_steps_for_a_message_hold_up_nobody_else(world: HubWorld) -> None:
    # Given a mapping with filters that take more steps than there are for this message, and another one
    costly = tuple(Filter(path="payload.rows.*.*", operator=FilterOperator.NEQ, value=str(each)) for each in range(50))
    world.map("order:new", name="costly.service", filters=costly)
    world.map("order:new", url="https://b.example/x")
    # When a message comes
    incoming = world.push_message("order:new", rows=[["x"] * 100] * 100)
    world.run(seconds=3600)
    # Then the other one gets it once, and the owner is told about the first
    assert [url for url, _ in world.asked] == ["https://b.example/x"]
    [notification] = world.log.notifications_of(PROJECT, world.entry(incoming).message_id)
    assert notification.subject == "Not yet sent to costly.service"
    assert "too many steps" in notification.description


@pytest.mark.parametrize("deleted", [True, False])
def test_a_copy_is_shown_although_its_mapping_is_gone_when_routing_ends(world: HubWorld, deleted: bool) -> None:
    # Given a message that one mapping has got, and another one cannot be compared with
    unusable = Filter(path="payload.text", operator=FilterOperator.MATCH, value="a(?=b)")
    other = world.map("order:new", name="slow.service", filters=(unusable,))
    mapping = world.map("order:new", url="https://b.example/x")
    incoming = world.push_message("order:new", text="ab")
    world.run(seconds=5)
    [copy] = world.entry(incoming).children
    # When the first mapping is deleted or disabled, and then the message is sent to the other one
    [stored] = [each for each in world.settings.mappings(PROJECT) if each.mapping_id == mapping.mapping_id]
    if deleted:
        world.settings.delete_mapping(PROJECT, mapping.mapping_id)
    else:
        world.settings.put_mapping(PROJECT, replace(stored, enabled=False))
    [stored] = [each for each in world.settings.mappings(PROJECT) if each.mapping_id == other.mapping_id]
    world.settings.put_mapping(PROJECT, replace(stored, filters=()))
    world.run(seconds=3600)
    # Then both copies are what the message led to
    assert [url for url, _ in world.asked] == ["https://b.example/x", URL]
    assert len(world.entry(incoming).children) == 2
    assert copy in world.entry(incoming).children


def test_routing_goes_on_where_its_time_ended(world: HubWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given many mappings, and a store that takes long to say whether an identity is free
    for number in range(10):
        world.map("order:new", url=f"https://{number}.example/x", identifiers={"number": "payload.number"})
    claim = world.settings.claim

    def slowly(*asked: Any) -> str:
        world.clock.advance(ms=ROUTING_MS // 3)
        return claim(*asked)

    monkeypatch.setattr(world.settings, "claim", slowly)
    # When a message comes
    incoming = world.push_message("order:new", number="R1")
    world.step()
    # Then no run exceeds its time for comparing
    assert len(world.entry(incoming).children) == 3
    # And in the end every service has the message once
    world.run(seconds=3600)
    assert sorted(url for url, _ in world.asked) == [f"https://{number}.example/x" for number in range(10)]
    assert world.entry(incoming).location is Location.ARCHIVED


def test_a_message_that_goes_nowhere_says_why(world: HubWorld) -> None:
    complete = Filter(path="payload.status", operator=FilterOperator.EQ, value="complete")
    world.map("order:new", name="acme.import", filters=(complete,), identifiers={"number": "payload.number"})
    unwanted, filtered = world.push_message("order:gone"), world.push_message("order:new", status="cart")
    first = world.push_message("order:new", status="complete", number="R1")
    world.run(seconds=5)
    again = world.push_message("order:new", status="complete", number="R1")
    world.run(seconds=5)
    assert world.entry(unwanted).why_not == "No mapping wants order:gone"
    assert world.entry(filtered).why_not == "Filtered out by acme.import"
    assert world.entry(first).why_not is None
    assert world.entry(again).why_not == f"acme.import already has message {first} with the same identifiers"
    assert world.copies(first)[0].why_not is None


def test_failures_back_off_exponentially_without_end_and_keep_the_id(world: HubWorld) -> None:
    world.map("order:new", says=lambda _: 500)
    incoming = world.push_message()
    start = world.clock.now()
    world.run(seconds=2 * DAY)
    # 30 s doubling to the cap of an hour: 30 60 120 240 480 960 1920, then hourly
    [copy] = world.copies(incoming)
    assert (copy.location, copy.state) == (Location.ACCEPTED, HubState.FAILING)
    assert copy.last_error == "HTTP 500 Internal Server Error"
    assert 50 < len(world.asked) < 56
    assert copy.attempts == len(world.asked)
    assert len({body["message_id"] for body in world.asked_at()}) == 1
    assert copy.attempt_at is not None
    assert copy.attempt_at > start + 47 * 3_600_000


def test_an_endpoint_that_comes_back_gets_the_message(world: HubWorld) -> None:
    world.map("order:new", says=in_turn(503, Reply(error_class="timeout"), 404, {"code": 1}))
    incoming = world.push_message()
    world.run(seconds=300)
    assert len(world.asked) == 4
    [copy] = world.copies(incoming)
    assert (copy.location, copy.state, copy.attempts, copy.last_error) == (
        Location.ARCHIVED,
        HubState.COMPLETED,
        3,
        None,
    )


def test_without_retries_the_first_failure_parks_until_a_person_decides(world: HubWorld) -> None:
    world.map("order:new", says=in_turn(500, 500, {}), options=ServiceOptions(retries_allowed=False))
    incoming = world.push_message()
    world.run(seconds=30 * DAY)
    assert len(world.asked) == 1
    [copy] = world.copies(incoming)
    assert (copy.location, copy.state, copy.next_at) == (Location.ACCEPTED, HubState.PARKED, None)
    for attempts in (2, 3):
        # When a person asks for a try, it is tried once
        [delivery] = world.deliveries(copy.message_id)
        world.messages.save(resume(delivery, world.clock.now()))
        world.run(seconds=3600)
        assert len(world.asked) == attempts
    [copy] = world.copies(incoming)
    assert copy.state is HubState.COMPLETED


def test_a_maximum_of_attempts_parks(world: HubWorld) -> None:
    world.map("order:new", says=lambda _: 500, options=ServiceOptions(max_attempts=3))
    incoming = world.push_message()
    world.run(seconds=DAY)
    assert len(world.asked) == 3
    assert world.copies(incoming)[0].state is HubState.PARKED


def test_a_deleted_mapping_archives_what_it_was_owed(world: HubWorld) -> None:
    mapping = world.map("order:new", says=lambda _: 500)
    incoming = world.push_message()
    world.run(seconds=5)
    world.settings.delete_mapping(PROJECT, mapping.mapping_id)
    world.run(seconds=60)
    [copy] = world.copies(incoming)
    assert (copy.location, copy.state) == (Location.ARCHIVED, HubState.NEVER_PROCESSED)
    assert (copy.consumer, copy.why_not) == ("acme.import", "Its mapping was deleted")
    assert len(world.asked) == 1


def test_an_answer_with_children_puts_them_onto_the_incoming_queue(world: HubWorld) -> None:
    sent = {"message": "email:sent", "payload": {"to": "a", "parameters": [{"name": "k", "value": "s"}]}, "ref": 7}
    world.map("order:new", says=lambda _: {"messages": [sent, {"message": "x:y", "payload": {}}]})
    world.map("email:sent", url="https://b.example/mail")
    incoming = world.push_message()
    world.run(seconds=5)
    # The child is routed like any other message, without its parent's fields
    [body] = world.asked_at("https://b.example/mail")
    assert (body["message"], body["payload"]) == ("email:sent", {"to": "a"})
    [copy] = world.copies(incoming)
    [child, unwanted] = world.log.entries(PROJECT, copy.children)
    assert (child.type, child.parent_id) == ("email:sent", copy.message_id)
    assert unwanted.shown_state is HubState.NEVER_PROCESSED
    assert world.log.last_answer(PROJECT, copy.message_id) is not None


def test_a_delayed_child_is_delivered_later_and_shown_as_scheduled(world: HubWorld) -> None:
    child = {"message": "shipment:check", "payload": {}, "delay": 7200}
    world.map("order:new", says=lambda _: {"messages": [child]})
    world.map("shipment:check", url="https://b.example/x")
    world.push_message()
    world.run(seconds=7199)
    assert world.asked_at("https://b.example/x") == []
    [incoming_child] = world.of_type("shipment:check")
    [copy] = world.copies(to_object_id(incoming_child.message_id))
    assert (copy.location, copy.state) == (Location.ACCEPTED, HubState.SCHEDULED)
    world.run(seconds=120)
    assert len(world.asked_at("https://b.example/x")) == 1


def test_parameters_returned_are_sent_with_later_messages_of_the_whole_integration(world: HubWorld) -> None:
    returned = [{"name": "acme.watermark", "value": "2013-08-16"}, {"name": "lookup", "value": [{"a": 1}]}]
    world.map("order:poll", integration_id="1" * 24, says=in_turn({"parameters": returned}, {}))
    world.map("order:new", url="https://acme.example/new", integration_id="1" * 24)
    world.map("order:new", url="https://b.example/x")
    world.push_message("order:poll")
    world.run(seconds=5)
    world.push_message("order:poll")
    world.push_message("order:new")
    world.run(seconds=5)
    expected = [
        {"name": "acme.watermark", "value": "2013-08-16"},
        {"name": "lookup", "value": [{"a": 1}]},
    ]
    assert [body["payload"] for body in world.asked_at()] == [{}, {"parameters": expected}]
    assert world.asked_at("https://acme.example/new")[0]["payload"] == {"parameters": expected}
    assert world.asked_at("https://b.example/x")[0]["payload"] == {}
    [lookup] = [each for each in world.settings.parameters(PROJECT) if each.name == "lookup"]
    assert lookup.data_type is DataType.LIST


def test_a_retry_sees_parameters_as_they_are_then(world: HubWorld) -> None:
    key = Parameter(project=PROJECT, name="acme.key", value="old", data_type=DataType.STRING, as_of=1)
    world.settings.set_parameter(key)
    world.map("order:new", parameter_ids=(key.parameter_id,), says=in_turn(500, {}))
    world.push_message()
    world.run(seconds=5)
    world.settings.set_parameter(replace(key, value="new", as_of=world.clock.now()))
    world.run(seconds=60)
    assert [body["payload"]["parameters"][0]["value"] for body in world.asked_at()] == ["old", "new"]


def test_an_answer_to_an_older_request_does_not_take_a_watermark_back(world: HubWorld) -> None:
    key = Parameter(project=PROJECT, name="w", value="1", data_type=DataType.STRING, as_of=1)
    world.settings.set_parameter(key)

    def slow(_: dict[str, Any]) -> dict[str, Any]:
        # Meanwhile another request, begun later, is answered
        world.settings.set_parameter(replace(key, value="3", as_of=world.clock.now() + 1))
        return {"parameters": [{"name": "w", "value": "2"}]}

    world.map("order:poll", says=slow)
    world.push_message("order:poll")
    world.run(seconds=5)
    assert [each.value for each in world.settings.parameters(PROJECT)] == ["3"]


@pytest.mark.parametrize("method", ["DELETE", "PUT", "POST"])
def test_an_answer_to_an_older_request_neither_brings_back_nor_shows_a_parameter(method: str) -> None:
    # Given a parameter that a service returns
    store, secret = Store(), {"name": "w", "value": "3", "data_type": "password"}
    path = f"/parameters/{store.call('POST', '/parameters', {'name': 'w', 'value': '1'})[1]['id']}"

    def slow(_: dict[str, Any]) -> dict[str, Any]:
        # Meanwhile its owner deletes it or makes it a password
        store.clock.advance(seconds=1)
        assert store.call(method, "/parameters" if method == "POST" else path, secret)[0] // 100 == 2
        return {"parameters": [{"name": "w", "value": "2"}]}

    store.map("order:poll", says=slow)
    # When it answers a request that began before
    store.push_message("order:poll")
    store.run(seconds=5)
    # Then it stays deleted, or keeps its owner's value, which is not shown
    found = [(each.value, each.data_type) for each in store.settings.parameters(PROJECT)]
    assert found == ([] if method == "DELETE" else [("3", DataType.PASSWORD)])


def test_a_parameter_made_a_password_is_one_before_an_answer_can_set_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a parameter, and the answer to an older request, which comes between two writes of the change
    store = Store()
    created = store.call("POST", "/parameters", {"name": "w", "value": "1"})[1]
    older = Parameter(project=PROJECT, name="w", value="2", data_type=DataType.STRING, as_of=store.clock.now() - 1)
    settings = store.settings
    for name in ("set_parameter", "put_parameter", "delete_parameter"):
        if hasattr(settings, name):
            monkeypatch.setattr(settings, name, _with(settings, getattr(settings, name), older))
    # When it becomes a password
    secret = {"value": "3", "data_type": "password"}
    assert store.call("PUT", f"/parameters/{created['id']}", secret)[0] == 200
    # Then it is one, with its owner's value
    assert [(each.value, each.data_type) for each in settings.parameters(PROJECT)] == [("3", DataType.PASSWORD)]


def _with(settings: Any, real: Any, older: Parameter) -> Any:
    """A write, after which the answer to an older request sets its value."""
    answers = type(settings).set_parameter

    def called(*given: Any, **more: Any) -> Any:
        result = real(*given, **more)
        answers(settings, older)
        return result

    return called


def test_a_service_that_names_new_parameters_in_each_answer_is_sent_no_more_than_it_can_have(world: HubWorld) -> None:
    # Given a service that sets other parameters each time
    numbers = iter(range(10**6))

    def says(_: dict[str, Any]) -> dict[str, Any]:
        return {"parameters": [{"name": f"p{next(numbers)}", "value": "1"} for _ in range(150)]}

    mapping = world.map("order:new", says=says)
    # When it has answered several messages
    for _ in range(3):
        world.push_message()
        world.run(seconds=5)
    # Then all are kept, and it is sent as many as its mapping can have
    assert len(world.settings.parameters(PROJECT)) == 450
    stored = world.settings.mapping(PROJECT, mapping.mapping_id)
    assert stored is not None
    assert len(stored.parameter_ids) == MAX_PARAMETERS


@pytest.mark.parametrize("answer", [500, Reply(status_code=500, body=b"<h1>Oops</h1>"), Reply(status_code=204)])
def test_a_failure_asks_for_nothing(world: HubWorld, answer: Any) -> None:
    world.map("order:new", says=lambda _: answer)
    world.push_message()
    world.run(seconds=5)
    assert world.settings.parameters(PROJECT) == []
    assert len(world.messages.all_messages()) == 2


def test_an_asynchronous_answer_is_polled_with_the_whole_message_until_it_is_done(world: HubWorld) -> None:
    world.map("order:new", says=lambda _: {"delay": 600, "update_url": "/status/1"})
    moved = {"delay": 60, "update_url": "https://acme.example/status/2"}
    done = {"messages": [{"message": "order:imported", "payload": {}}]}
    world.endpoints["https://acme.example/status/1"] = in_turn({"delay": 300, "update_url": "/status/1"}, moved)
    world.endpoints["https://acme.example/status/2"] = lambda _: done
    incoming = world.push_message(order={"number": "R1"})
    start = world.clock.now()
    world.run(seconds=599)
    assert len(world.asked) == 1
    [copy] = world.copies(incoming)
    assert (copy.location, copy.state) == (Location.ACCEPTED, HubState.SCHEDULED)
    assert copy.next_at == start + 600_000
    world.run(seconds=600)
    assert [url.rpartition("example")[2] for url, _ in world.asked] == [
        "/import",
        "/status/1",
        "/status/1",
        "/status/2",
    ]
    assert len({json.dumps(body, sort_keys=True) for _, body in world.asked}) == 1
    assert all(each.headers["X-Augury-Token"] == "t" * 32 for each in world.sender.requests)
    assert world.copies(incoming)[0].state is HubState.COMPLETED
    assert len(world.of_type("order:imported")) == 1


def test_polls_wait_in_their_own_queue_and_long_waits_are_scheduled(world: HubWorld) -> None:
    world.map("order:new", says=lambda _: {"delay": 300, "update_url": "/s"})
    world.endpoints["https://acme.example/s"] = in_turn({"delay": 5 * DAY, "update_url": "/s"}, {})
    incoming = world.push_message()
    world.run(seconds=1)
    assert (len(world.poll_queue), len(world.retry_queue)) == (1, 0)
    world.run(seconds=400)
    assert (len(world.poll_queue), len(world.messages.scheduled())) == (0, 1)
    world.run(seconds=5 * DAY + 120)
    assert world.copies(incoming)[0].state is HubState.COMPLETED
    assert len(world.asked) == 3
    assert world.retry_queue.sent == []


def test_a_failed_poll_backs_off_and_polls_again_and_never_posts_again(world: HubWorld) -> None:
    world.map("order:new", says=lambda _: {"delay": 10, "update_url": "/s"})
    world.endpoints["https://acme.example/s"] = in_turn(500, Reply(error_class="timeout"), 404, {"delay": 5}, {})
    incoming = world.push_message()
    world.run(seconds=35)
    assert world.copies(incoming)[0].state is HubState.FAILING
    world.run(seconds=600)
    assert len(world.asked_at()) == 1
    assert len(world.asked_at("https://acme.example/s")) == 5
    assert world.copies(incoming)[0].state is HubState.COMPLETED


def test_a_delay_alone_posts_the_same_message_again_and_is_no_failure(world: HubWorld) -> None:
    world.map("order:new", says=in_turn({"delay": 120}, {"delay": "480"}, 500, {"delay": 60}, {}))
    incoming = world.push_message()
    start = world.clock.now()
    world.run(seconds=119)
    [copy] = world.copies(incoming)
    assert (copy.state, copy.attempts, copy.last_error) == (HubState.SCHEDULED, 0, None)
    world.run(seconds=1000)
    [copy] = world.copies(incoming)
    assert len(world.asked_at()) == 5
    assert copy.state is HubState.COMPLETED
    # 120 + 480, a failure of 30, then 60
    assert copy.completed_at == start + (120 + 480 + 30 + 60) * 1000


def test_a_notification_is_counted_and_raises_one_message(world: HubWorld) -> None:
    failing = Reply(
        status_code=500,
        body=json.dumps({"notifications": [{"level": "error", "subject": "Quota", "description": "x"}] * 2}).encode(),
    )
    world.map("order:new", says=lambda _: failing)
    world.map("notification:error", url="https://desk.example/ticket")
    incoming = world.push_message()
    world.run(seconds=100)
    [copy] = world.copies(incoming)
    [notification] = world.log.notifications_of(PROJECT, copy.message_id)
    assert (notification.occurrences, notification.origin) == (2 * 3, "acme.import")
    assert len(world.asked_at()) == 3
    [body] = world.asked_at("https://desk.example/ticket")
    assert (body["message"], body["source"]) == ("notification:error", "acme.import")
    assert body["payload"] == {"subject": "Quota", "description": "x"}


def test_an_endpoint_that_notifies_of_notifications_comes_to_an_end(world: HubWorld) -> None:
    # As Zendesk's endpoint does on success
    info = {"notifications": [{"level": "info", "subject": "Ticket made"}]}
    again = {**info, "messages": [{"message": "order:new", "payload": {}}]}
    world.map("order:new", says=lambda _: info)
    world.map("notification:info", url="https://desk.example/ticket", says=lambda _: again)
    world.push_message()
    world.run(seconds=3600)
    assert len(world.of_type("notification:info")) == 1
    assert len(world.asked_at("https://desk.example/ticket")) == 1
    assert len(world.asked_at()) == 2
    # They are all kept, though
    assert len(list(world.log.notifications(PROJECT))) == 3


def test_messages_that_lead_to_one_another_for_ever_are_stopped_and_told_of(world: HubWorld) -> None:
    world.map("ping", says=lambda _: {"messages": [{"message": "ping", "payload": {}}]})
    world.push_message("ping")
    world.run(seconds=3600)
    assert len(world.asked) == 51
    [notification] = world.log.notifications(PROJECT)
    assert notification.subject == "Taken for a loop"


def test_a_mapping_that_leads_back_to_its_own_store_comes_to_an_end() -> None:
    # Given a mapping whose service is its own store, with the store's token: what it is sent is a push again
    world = Store()
    world.map("order:new", token=world.token)
    status, body = world.call("POST", "/messages", {"message": "order:new", "payload": {}})
    # When each request is handed to the store as it was sent
    rounds = 0
    while status == 201:
        world.run(seconds=5)
        rounds += 1
        sent = world.sender.requests[-1]
        headers = {name.lower(): value for name, value in sent.headers.items()}
        status, body = world.call("POST", "/messages", sent.body.decode(), headers=headers)
    # Then it is taken for a loop
    assert (status, rounds, len(world.sender.requests)) == (508, 50, 50)
    assert body == {"error": "50 messages led to this one; taken for a loop."}


def test_messages_that_double_are_stopped_at_their_number_and_told_of_once(world: HubWorld) -> None:
    # Given a service that answers each message with two of the same type
    world.descendants.most = 100
    two = {"messages": [{"message": "rabbit", "payload": {}}] * 2}
    world.map("rabbit", says=lambda _: two)
    # When one is pushed
    incoming = world.push_message("rabbit")
    world.run(seconds=3600)
    # Then no more than the limit follow from it
    assert len(world.of_type("rabbit")) == 1 + 100
    assert len(world.asked) == 101
    # And that is reported once, at the pushed message, and raises one message
    [notification] = world.log.notifications(PROJECT)
    assert notification.subject == "Cut off: too many messages followed from this one"
    assert to_object_id(notification.message_id) == incoming
    assert len(world.of_type("notification:error")) == 1
    # And another message has a limit of its own
    world.push_message("rabbit")
    world.run(seconds=3600)
    assert len(world.of_type("rabbit")) == 2 * (1 + 100)


def test_notifications_that_messages_raise_count_as_descendants_too(world: HubWorld) -> None:
    world.descendants.most = 10
    notes = [{"level": "info", "subject": f"n{number}"} for number in range(30)]
    world.map("order:new", says=lambda _: {"notifications": notes})
    world.push_message()
    world.run(seconds=60)
    assert len(world.of_type("notification:info")) == 10
    assert len(list(world.log.notifications(PROJECT))) == 30


def test_a_message_that_is_put_off_at_once_each_time_is_not_posted_for_ever(world: HubWorld) -> None:
    # Given an endpoint that always asks to be called again at once, and a mapping that allows one failure
    world.map("order:new", says=lambda _: {"delay": 0}, options=ServiceOptions(max_attempts=1))
    incoming = world.push_message()
    # Then it is asked less and less often
    world.run(seconds=600)
    assert len(world.asked) < 25
    # And in the end it is parked for a person
    world.run(seconds=30 * DAY)
    [copy] = world.copies(incoming)
    assert (copy.state, copy.last_error) == (HubState.PARKED, "Postponed 100 times")
    assert len(world.asked) == 101
    # When that person retries it, it may be postponed as often again
    [delivery] = world.deliveries(copy.message_id)
    world.messages.save(resume(delivery, world.clock.now()))
    world.run(seconds=30 * DAY)
    assert len(world.asked) == 202


def test_a_wait_that_an_endpoint_asks_for_is_kept_to(world: HubWorld) -> None:
    world.map("order:new", says=lambda _: {"delay": 1200})
    world.push_message()
    world.run(seconds=1200 * 20 + 600)
    # Waits of more than a quarter of an hour end on the minute, when the hub looks for them.
    assert 19 <= len(world.asked) <= 21


def test_a_failure_is_kept_whole_and_shown(world: HubWorld) -> None:
    page = b"<html>" + b"x" * 20_000
    world.map("order:new", says=lambda _: Reply(status_code=502, body=page, headers={"content-type": "text/html"}))
    incoming = world.push_message()
    world.run(seconds=1)
    [copy] = world.copies(incoming)
    recorded = world.log.last_answer(PROJECT, copy.message_id)
    assert recorded is not None
    assert recorded.body_ref is not None
    assert world.bodies.get(recorded.body_ref) == page
    assert recorded.answer.status_code == 502
    assert recorded.expires_at == world.clock.now() - 1000 + 30 * DAY * 1000


@pytest.mark.parametrize(
    "hostile",
    [
        {"message_id": None},
        {"message_id": "5" * 24},
        {"messages": [{"message": "a:b", "payload": {}}, "x"]},
        {"messages": [{"message": "a:b", "payload": {}}] * 1001},
        {"parameters": {"a": 1}},
        {"delay": -5},
        {"delay": 10**12},
        {"delay": 5, "update_url": "file:///etc/passwd"},
    ],
)
def test_an_answer_that_is_none_is_a_failure_with_a_reason_and_nothing_is_half_done(hostile: dict[str, Any]) -> None:
    world = HubWorld()
    world.map("order:new", says=lambda _: {"parameters": [{"name": "w", "value": 1}], **hostile})
    incoming = world.push_message()
    world.run(seconds=1)
    [copy] = world.copies(incoming)
    assert copy.state is HubState.FAILING
    assert copy.last_error is not None
    assert copy.last_error.startswith("Invalid response: ")
    assert len(world.messages.all_messages()) == 2
    assert world.settings.parameters(PROJECT) == []


def test_a_thousand_children_are_all_accepted_in_order(world: HubWorld) -> None:
    children = [{"message": "item:found", "payload": {"n": number}} for number in range(1000)]
    world.map("order:new", says=lambda _: {"messages": children})
    incoming = world.push_message()
    world.run(seconds=10)
    [copy] = world.copies(incoming)
    assert len(copy.children) == 1000
    assert list(copy.children) == sorted(copy.children)
    assert len(world.of_type("item:found")) == 1000


def test_large_payloads_lie_with_the_bodies_once_for_all_copies(world: HubWorld) -> None:
    world.map("order:new")
    world.map("order:new", url="https://b.example/x")
    world.push_message("order:new", text="x" * 100_000)
    world.run(seconds=5)
    assert [len(body["payload"]["text"]) for _, body in world.asked] == [100_000, 100_000]
    refs = {each.body_ref for each in world.messages.all_messages()}
    assert len(refs) == 1
    assert None not in refs


def test_ticks_keep_their_rhythm_and_come_once(world: HubWorld) -> None:
    now = world.clock.now()
    world.map("acme:order:poll")
    world.settings.put_scheduler(
        Scheduler(
            project=PROJECT,
            scheduler_id="6" * 24,
            key="acme:order:poll",
            count=1,
            interval="hours",
            created_at=now,
            next_at=now + 3_600_000,
        )
    )
    for _ in range(3 * 60):
        world.clock.advance(seconds=60)
        world.ticks.run(lambda: 10**9)
        world.run(seconds=0)
    assert len(world.asked) == 3
    assert world.asked_at()[0]["payload"] == {}
    # When nothing runs for a day, one tick makes up for it
    world.clock.advance(seconds=DAY)
    assert world.ticks.run(lambda: 10**9) == 1
    world.run(seconds=1)
    assert len(world.asked) == 4


GZIP = {"content-type": "application/json", "content-encoding": "gzip"}


def zipped(fields: dict[str, Any] | bytes) -> bytes:
    return gzip.compress(fields if isinstance(fields, bytes) else json.dumps(fields).encode())


def test_an_answer_that_was_compressed_unasked_counts_as_it_was_meant(world: HubWorld) -> None:
    # Given a service that compresses its answer, which asks for another message
    def says(body: dict[str, Any]) -> Reply:
        answer = {"message_id": body["message_id"], "messages": [{"message": "email:sent", "payload": {"to": "ä"}}]}
        return Reply(status_code=200, body=zipped(answer), headers=GZIP)

    world.map("order:new", says=says)

    # When a message is delivered to it
    incoming = world.push_message()
    world.run(seconds=5)

    # Then that is a success, and the other message exists
    (copy,) = world.copies(incoming)
    assert copy.state is HubState.COMPLETED
    assert [each.type for each in world.copies(to_object_id(copy.message_id))] == ["email:sent"]


@pytest.mark.parametrize(
    ("body", "encoding", "reason"),
    [
        (zipped(b" " * (ANSWER_LIMIT + 1)), "gzip", f"larger than {ANSWER_LIMIT} bytes"),
        (zipped(b"\0" * 200_000_000), "gzip", f"larger than {ANSWER_LIMIT} bytes"),
        (zipped({"message_id": "x"})[:-9], "gzip", "gzip that ends too early"),
        (b'{"message_id": "plain"}', "gzip", "says that it is gzip, but cannot be unpacked"),
        (b"\x0b\x02\x80", "br", "encoded as 'br', which was not asked for"),
    ],
    ids=["too large", "bomb", "cut", "lie", "brotli"],
)
def test_an_answer_that_cannot_be_unpacked_is_a_failure_that_says_why(body: bytes, encoding: str, reason: str) -> None:
    # Given a service whose encoded answer is of no use
    world = HubWorld()
    world.map("order:new", says=lambda _: Reply(status_code=200, body=body, headers={"content-encoding": encoding}))

    # When a message is delivered to it
    incoming = world.push_message()
    world.run(seconds=5)

    # Then the message fails, with the reason
    (copy,) = world.copies(incoming)
    assert copy.state is HubState.FAILING
    assert reason in (copy.last_error or "")


def test_a_compressed_failure_is_read_and_one_that_lies_keeps_its_status(world: HubWorld) -> None:
    # Given two services that fail, one with a compressed explanation, one that only says it is compressed
    refusal = Reply(status_code=422, body=zipped({"error": "No such SKU"}), headers=GZIP)
    world.map("order:new", says=lambda _: refusal)
    world.map("order:old", url="https://b.example/x", says=lambda _: Reply(status_code=503, body=b"<", headers=GZIP))

    # When messages are delivered to them
    sent = [world.push_message("order:new"), world.push_message("order:old")]
    world.run(seconds=5)

    # Then both say what the service said
    errors = [world.copies(each)[0].last_error for each in sent]
    assert errors == ["HTTP 422: No such SKU", "HTTP 503 Service Unavailable"]


def test_numbers_of_parameters_are_sent_as_an_answer_wrote_them(world: HubWorld) -> None:
    # Given a service that sets a parameter with numbers that Python would write otherwise
    text = '[{"price": 19.90, "n": 1E2}, 165000000000000000000.12]'

    def answer(body: dict[str, Any]) -> Reply:
        found = f'{{"message_id": "{body["message_id"]}", "parameters": [{{"name": "lookup", "value": {text}}}]}}'
        return Reply(status_code=200, body=found.encode())

    world.map("order:poll", says=answer)
    # When it gets another message, then they are sent as it wrote them
    for _ in range(2):
        world.push_message("order:poll")
        world.run(seconds=5)
    compact = '{"name":"lookup","value":[{"price":19.90,"n":1E2},165000000000000000000.12]}'
    assert compact in world.sender.requests_to(URL)[-1].body.decode()


def test_a_mapping_that_cannot_be_read_is_compared_later_and_keeps_no_other_waiting(
    world: HubWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given two mappings, of which one cannot be read
    mapping = world.map("order:new")
    other = world.map("order:new", url="https://b.example/x")
    with monkeypatch.context() as damaged:
        damaged.setattr(world.settings, "routed_mappings", lambda _: ([mapping], 1))
        # When a message is pushed
        incoming = world.push_message("order:new")
        world.run(seconds=5)
        # Then the one gets it, and the message says why it is not done
        assert (len(world.asked_at()), world.asked_at(other.url)) == (1, [])
        entry = world.entry(incoming)
        assert entry.location is Location.INCOMING
        assert entry.last_error is not None
        assert "1 mappings cannot be read" in entry.last_error
    # When it is mended, then the other one gets it, and the first one no more
    world.run(seconds=DAY)
    assert (len(world.asked_at()), len(world.asked_at(other.url))) == (1, 1)
    assert world.entry(incoming).location is Location.ARCHIVED


def test_schedulers_that_fail_keep_none_behind_them_waiting(world: HubWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given as many schedulers of one store as a look finds, which all fail, and one of another store behind them
    now = world.clock.now()
    for number in range(BATCH + 1):
        late = Scheduler(
            project=PROJECT if number < BATCH else "5f0000000000000000000002",
            scheduler_id=f"{number:024x}",
            key="acme:poll",
            count=1,
            interval="hours",
            created_at=now,
            next_at=now + number,
        )
        world.settings.put_scheduler(late)
    projects = world.ticks.projects
    real = projects.project

    def project(project_id: str, **more: Any) -> Any:
        if project_id == PROJECT:
            raise Unreadable
        return real(project_id, **more)

    monkeypatch.setattr(projects, "project", project)
    # When all are due, then the one behind them ticks
    world.clock.advance(seconds=60)
    world.ticks.run(lambda: 60_000)
    ticked = [
        each.scheduler_id for each in world.settings.schedulers("5f0000000000000000000002") if each.next_at > now + HOUR
    ]
    assert ticked == [f"{BATCH:024x}"]
