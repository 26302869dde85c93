"""Messages with an ordering key, an addition to Svix: in order at each endpoint,
and a stuck key holds up nothing else.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.fakes import Crash, Fault, FaultPlan
from tests.webhooks.world import WebhooksWorld, prepared

URL, OTHER_URL = "https://a.example/in", "https://b.example/in"


def post(world: WebhooksWorld, app: str, key: str | None, **more: Any) -> str:
    body = {"eventType": "a", "payload": {}, "orderingKey": key, **more}
    return str(world.ask("POST", f"/app/{app}/msg", body)["id"])


def sent(world: WebhooksWorld, url: str = URL) -> list[str]:
    """The ids of the messages sent to a URL, in order."""
    return [each.headers["webhook-id"] for each in world.sender.requests if each.url == url]


def test_messages_of_a_key_are_numbered_and_the_others_are_not(world: WebhooksWorld, app: str) -> None:
    world.make_endpoint(app, URL)
    ids = [post(world, app, "customer:7") for _ in range(3)]
    alone = post(world, app, None)
    world.run(seconds=5)
    reported = {each.headers["webhook-id"]: each.headers for each in world.sender.requests}
    assert [reported[each]["webhook-sequence"] for each in ids] == ["1", "2", "3"]
    assert {reported[each]["webhook-ordering-key"] for each in ids} == {"customer:7"}
    assert {"webhook-sequence", "webhook-ordering-key"}.isdisjoint(reported[alone])
    # And the message shows its key
    assert world.ask("GET", f"/app/{app}/msg/{ids[0]}")["orderingKey"] == "customer:7"
    assert "orderingKey" not in world.ask("GET", f"/app/{app}/msg/{alone}")


def test_a_key_that_is_stuck_at_an_endpoint_holds_up_neither_other_keys_nor_other_endpoints() -> None:
    # Given two endpoints, of which one refuses the first message of a key at its first and second try
    world = WebhooksWorld()
    app = world.make_app()
    world.make_endpoint(app, URL)
    world.make_endpoint(app, OTHER_URL)
    world.sender.script(URL, 500, 200, 200, 500, 200)
    stuck = [post(world, app, "stuck") for _ in range(3)]
    free = [post(world, app, "free") for _ in range(2)]
    # When little time passes
    world.run(seconds=2)
    # Then only the messages behind it wait, and only at that endpoint
    assert sent(world) == [stuck[0], *free]
    assert sorted(sent(world, OTHER_URL)) == sorted([*stuck, *free])
    # And once it is accepted, the rest follows in order
    world.run(seconds=900)
    assert sent(world) == [stuck[0], *free, stuck[0], stuck[0], stuck[1], stuck[2]]


def test_an_endpoint_that_did_not_choose_a_message_does_not_wait_for_it(world: WebhooksWorld, app: str) -> None:
    for name in ("a", "b"):
        world.ask("POST", "/event-type", {"name": name, "description": ""})
    world.make_endpoint(app, URL, eventTypes=["a"])
    world.make_endpoint(app, OTHER_URL, eventTypes=["b"])
    world.sender.script(OTHER_URL, 500, 200)
    ids = [post(world, app, "k", eventType=each) for each in ("a", "b", "a")]
    world.run(seconds=2)
    assert sent(world) == [ids[0], ids[2]]
    assert [each.headers["webhook-sequence"] for each in world.sender.requests if each.url == URL] == ["1", "3"]


def test_a_post_that_is_repeated_keeps_its_place(world: WebhooksWorld, app: str) -> None:
    world.make_endpoint(app, URL)
    body = {"eventType": "a", "payload": {}, "orderingKey": "k"}
    for key in ("1", "1", "2", "1"):
        world.ask("POST", f"/app/{app}/msg", body, headers={"Idempotency-Key": key})
    world.run(seconds=5)
    assert [each.headers["webhook-sequence"] for each in world.sender.requests] == ["1", "2"]


def test_clients_that_do_not_know_the_field_give_it_with_the_parameters_of_the_transformation() -> None:
    world = WebhooksWorld()
    app = world.make_app()
    body = {"eventType": "a", "payload": {}, "transformationsParams": {"orderingKey": "k"}}
    posted = world.ask("POST", f"/app/{app}/msg", body)
    assert posted["orderingKey"] == "k"
    assert world.ask("POST", f"/app/{app}/msg", {**body, "orderingKey": "own"})["orderingKey"] == "own"


@pytest.mark.parametrize("key", ["", "a b", "ü", "x" * 257, 7, ["k"]])
def test_a_key_that_no_header_could_carry_is_refused(world: WebhooksWorld, app: str, key: object) -> None:
    answer = world.call("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}, "orderingKey": key})
    assert answer.status == 422
    assert answer.body["detail"][0]["loc"] == ["body", "orderingKey"]


def test_a_message_whose_content_is_destroyed_lets_nobody_overtake_those_before_it() -> None:
    # Given a key that is stuck at its first message, which is tried again in minutes
    world, app, _ = prepared(FaultPlan())
    world.sender.script(URL, 500, 500, 200)
    ids = [post(world, app, "k") for _ in range(3)]
    world.run(seconds=20)
    assert sent(world) == 2 * ids[:1]
    # When the second one is erased
    assert world.call("DELETE", f"/app/{app}/msg/{ids[1]}/content").status == 204
    world.run(seconds=20)
    # Then the third still comes after the first
    assert sent(world) == 2 * ids[:1]
    world.run(seconds=600)
    assert sent(world) == [*(3 * ids[:1]), ids[2]]


@pytest.mark.parametrize("fault", [None, *Fault])
def test_a_message_whose_content_is_destroyed_lets_the_next_one_go(fault: Fault | None) -> None:
    def run(plan: FaultPlan) -> tuple[WebhooksWorld, list[str]]:
        # Given a key that is stuck at its first message
        world, app, _ = prepared(FaultPlan())
        world.sender.script(URL, 500, 200)
        ids = [post(world, app, "k") for _ in range(3)]
        world.run(seconds=2)
        assert sent(world) == ids[:1]
        # When that one is erased, retried until it succeeds
        world.plan = plan
        for _ in range(3):
            for name in ("hub", "api"):
                world.__dict__.pop(name, None)
            try:
                if world.call("DELETE", f"/app/{app}/msg/{ids[0]}/content").status == 204:
                    break
            except Crash:
                continue
        return world, ids

    learned, ids = run(FaultPlan())
    learned.run(seconds=2)
    assert sent(learned) == ids
    for number in range(1, len(learned.plan.calls) + 1) if fault else ():
        world, ids = run(FaultPlan(fault, at=number))
        # Then the rest follows in order, within the few minutes that it takes to recover a lost order
        world.run(seconds=1800)
        assert list(dict.fromkeys(sent(world))) == ids, f"call {number}: {world.plan.calls[number - 1]}"
