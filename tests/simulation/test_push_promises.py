"""What the models of pushes find, and what they leave alone, in a few lines of what endpoints saw."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from simulation.promises import hub, webhooks
from simulation.promises.ironmq import Acknowledgement, Act, ErrorMessage, Pushed, PushQueues, Queue, judge_headers
from simulation.promises.judgement import SECOND, Exchange, Fault, Faults, Judgement, Post
from simulation.promises.push import Doubling, Listed, Request

QUEUE = Queue(False, ["s"], retries=1, delay_s=60, expires_s=86_400, error_queue="errors")
ROUND = Queue(True, ["s", "t"], retries=1, delay_s=60, expires_s=86_400, error_queue="errors")
FAULT = Fault("crash", "storm-1", 100 * SECOND, 100 * SECOND)

Thing = Post | Act | Request | Acknowledgement | ErrorMessage


def exchange(at: float, status: int = 200, *struck: str) -> Exchange:
    return Exchange(round(at * SECOND), round(at * SECOND) + 50_000, status, struck)


def asked(at: float, status: int = 200, name: str = "s", body: bytes = b"bytes", wait_s: int = 0) -> Request:
    return Request(round(at * SECOND), round(at * SECOND) + 100_000, name, "1", body, status, wait_s, queue="q")


POST = Post("q", exchange(0, 201), [b"bytes"], [0], ["1"])
ERROR = ErrorMessage("q", "1", ("s",), b"bytes")
CLEAR = Act("clear", "q", exchange(30))


def judged(*things: Thing, queue: Queue = QUEUE, faults: Faults | None = None) -> Judgement:
    judgement = Judgement()
    model = PushQueues({"q": queue}, judgement, faults or Faults(), clocks_s=0, ends=200_000 * SECOND)
    model.judge(
        [each for each in things if isinstance(each, Post)],
        [each for each in things if isinstance(each, Act)],
        [each for each in things if isinstance(each, Request)],
        [each for each in things if isinstance(each, Acknowledgement)],
        [each for each in things if isinstance(each, ErrorMessage)],
    )
    return judgement


def rules(*things: Thing, queue: Queue = QUEUE) -> list[str]:
    return [each.rule for each in judged(*things, queue=queue).violations]


@pytest.mark.parametrize(
    "things",
    [
        [POST, asked(1)],
        [POST, asked(1, 500), asked(62)],
        [POST, asked(1, 500), asked(62, 500), ERROR],
        [POST, asked(1, 500), asked(62, 404), replace(ERROR, codes=(404,))],
        [POST, asked(1, 202), Acknowledgement("1", "s", exchange(20))],
        [POST, asked(1, 202), asked(62)],
        [POST, asked(1, 500), CLEAR],
        [replace(POST, delays_s=[300]), asked(301)],
        # The owner has it tried more often, and sooner.
        [POST, Act("retries", "q", exchange(30), retries=2, delay_s=5), asked(1, 500), asked(62, 500), asked(68)],
        # Its subscriber was removed, and is another one since.
        [POST, asked(1, 500), Act("remove", "q", exchange(30), "s"), Act("add", "q", exchange(60), "s")],
        # It was removed before, and its owner changed it, which adds it again (seed 90003 of ironmq).
        [Act("remove", "q", exchange(-9), "s"), Act("change", "q", exchange(-5), "s"), POST, asked(1)],
        [replace(POST, exchange=exchange(0, 0, "lost"), ids=[]), asked(1)],
    ],
)
def test_what_is_as_promised_breaks_nothing(things: list[Thing]) -> None:
    assert rules(*things) == []


def pushed(name: str = "s", message_id: str = "1", reservation: str = "r", **other: str) -> Pushed:
    """A push as documented, but for what is otherwise."""
    headers = {
        "user-agent": "IronMQ Pusherd",
        "content-type": "text/plain; encoding=utf-8",
        "iron-message-id": message_id,
        "iron-subscriber-name": name,
        "iron-reservation-id": reservation,
        "iron-subscriber-message-url": f"https://h/3/projects/p/queues/q/messages/{message_id}?reservation_id={reservation}",
        "pushhub-hops": "1",
    }
    return Pushed("q", name, message_id, headers | {each.replace("_", "-"): value for each, value in other.items()})


@pytest.mark.parametrize(
    ("pushes", "rule"),
    [
        ([pushed(), pushed(), pushed("t", reservation="u"), pushed(message_id="2", reservation="v")], None),
        ([pushed(pushhub_hops="2")], "pushed with other headers than documented"),
        ([pushed(iron_subscriber_name="t")], "pushed with other headers than documented"),
        ([pushed(iron_reservation_id="w")], "pushed with other headers than documented"),
        ([pushed(content_type="text/html")], "pushed with other headers than documented"),
        ([pushed(), pushed("t")], "one reservation for two"),
        ([pushed(), pushed(message_id="2")], "one reservation for two"),
    ],
)
def test_each_push_says_whose_it_is(pushes: list[Pushed], rule: str | None) -> None:
    judgement = Judgement()
    judge_headers(judgement, pushes)
    assert {each.rule for each in judgement.violations} == ({rule} if rule else set())


@pytest.mark.parametrize(("lowered_at", "struck", "kept"), [(100, False, True), (300, True, True), (300, False, False)])
def test_a_late_try_need_not_come_once_its_owner_allows_none(lowered_at: int, struck: bool, kept: bool) -> None:
    # Given a try that failed, one more that is due a minute later and does not come, and an owner who then allows none
    faults = Faults()
    if struck:
        faults.struck(Fault("refused", "refused", 2 * SECOND, 2 * SECOND), 2 * SECOND, ["1"])
    lowered = Act("retries", "q", exchange(lowered_at), retries=0, delay_s=60)
    # Then it is in time if it could still have been late, or if something made it late
    found = [each.rule for each in judged(POST, asked(1, 500), lowered, ERROR, faults=faults).violations]
    assert found == ([] if kept else ["given up too soon"])


@pytest.mark.parametrize(("kind", "kept"), [("purged", True), ("refused", False)])
def test_an_order_may_be_lost_at_any_time_while_it_waits(kind: str, kept: bool) -> None:
    # Given a queue that is emptied by mistake long before the retry is due, and the sweep that makes up for it
    faults = Faults()
    faults.struck(Fault(kind, kind, 10 * SECOND, 10 * SECOND), 10 * SECOND, ["1"])
    queue = replace(QUEUE, delay_s=3_600)
    late = judged(POST, asked(1, 500), asked(50_000), queue=queue, faults=faults)
    # Then that explains that it is late, which a failed call of that time does not
    assert [each.rule for each in late.violations] == ([] if kept else ["asked after its time"])


@pytest.mark.parametrize(("at_s", "late_s", "kept"), [(2, 185, True), (2, 300, False), (1_000, 185, False)])
def test_an_order_whose_attempt_was_not_recorded_as_a_whole_waits_for_another_one(
    at_s: int, late_s: int, kept: bool
) -> None:
    # Given a try that failed, and a call that failed while that was recorded, or later
    faults = Faults()
    faults.struck(Fault("refused", "refused", at_s * SECOND, at_s * SECOND), at_s * SECOND, ["1"])
    queue = replace(QUEUE, delay_s=3_600)
    # Then the next one may come so much later as an order waits for another one that would be there (seed 5 of hub)
    late = judged(POST, asked(1, 500), asked(3_602 + late_s), queue=queue, faults=faults)
    assert [each.rule for each in late.violations] == ([] if kept else ["asked after its time"])


def test_what_made_two_of_a_message_explains_two_of_the_one_behind_it() -> None:
    # Given a message that a stream repeated, and a call for it that failed (seed 7 of policies)
    faults, replay = Faults(), Fault("replay", "replay", 2 * SECOND, 2 * SECOND)
    faults.struck(replay, 2 * SECOND, ["1"])
    faults.struck(Fault("refused", "refused", 3 * SECOND, 3 * SECOND), 3 * SECOND, ["1"])
    # Then the first struck those of its ordering key that come after it, too
    for after, before in (("2", "1"), ("3", "2"), ("3", "2")):
        faults.same(after, before, {"replay"})
    assert faults.on("3", 0, 9 * SECOND) == [replay]


@pytest.mark.parametrize(
    ("things", "rule"),
    [
        ([POST], "given up too soon"),
        ([POST, asked(1, body=b"byte")], "other bytes than were posted"),
        ([POST, asked(1), asked(3)], "asked after its end"),
        ([POST, asked(1, 500), asked(30)], "asked before its time"),
        ([POST, asked(1, 500), asked(400)], "asked after its time"),
        ([POST, asked(400)], "asked after its time"),
        ([POST, asked(1, 500)], "given up too soon"),
        ([POST, asked(1, 500), asked(62, 500), asked(123), ERROR], "more tries than allowed"),
        ([POST, asked(1, 500), asked(62, 500)], "an error message is missing"),
        ([POST, asked(1, 500), asked(62, 500), ERROR, ERROR], "an error message too many"),
        ([POST, asked(1), ERROR], "an error message too many"),
        (
            [POST, asked(1, 500), asked(62, 500), replace(ERROR, body=b"byte")],
            "an error message with other bytes",
        ),
        (
            [POST, asked(1, 500), asked(62, 404), replace(ERROR, codes=(500,))],
            "an error message with another answer",
        ),
        ([POST, asked(1, 202), asked(30)], "asked before its time"),
        ([POST, asked(1, 202), Acknowledgement("1", "s", exchange(20)), asked(62)], "asked after its end"),
        ([replace(POST, delays_s=[300]), asked(1)], "asked before its time"),
        ([POST, CLEAR, asked(90)], "asked after its owner took it back"),
        ([replace(POST, exchange=exchange(60, 201)), CLEAR], "given up too soon"),
        ([POST, asked(1, 500), Act("remove", "q", exchange(30), "s"), asked(62)], "asked after its owner took it back"),
        ([Act("remove", "q", exchange(-9), "s"), POST, asked(1)], "pushed and not owed"),
        (
            [Act("change", "q", exchange(-9), "s"), Act("remove", "q", exchange(-5), "s"), POST, asked(1)],
            "pushed and not owed",
        ),
        ([Act("remove", "q", exchange(-9), "s"), Act("change", "q", exchange(-5), "s"), POST], "given up too soon"),
        ([asked(1)], "pushed and never posted"),
        ([POST, POST, asked(1)], "an identifier twice"),
        ([POST, asked(1), asked(1.05)], "asked twice at once"),
        ([POST, asked(100_000)], "asked after it expired"),
        (
            [POST, Act("retries", "q", exchange(0.5), retries=2, delay_s=5), asked(10, 500), asked(71), ERROR],
            "an error message too many",
        ),
    ],
)
def test_a_promise_that_is_not_kept_is_told(things: list[Thing], rule: str) -> None:
    assert rule in rules(*things)


def test_of_several_each_is_asked_at_once_and_then_all_again() -> None:
    # Given a message for one of two, who both fail
    first = [asked(1, 500), asked(1.2, 500, "t")]
    assert rules(POST, *first, asked(62, 500, "t"), asked(62.2, 500), replace(ERROR, names=("t",)), queue=ROUND) == []
    # Then one of them does not come twice in a round, and the round is not over before both were asked
    assert "asked out of turn" in rules(POST, asked(1, 500), asked(1.2), queue=ROUND)
    assert "asked after its time" in rules(POST, asked(1, 500), asked(90, 200, "t"), queue=ROUND)
    assert "asked before its time" in rules(POST, *first, asked(2), queue=ROUND)


def test_what_an_endpoint_asks_for_is_obeyed_where_that_is_so() -> None:
    obeys = replace(QUEUE, obeys=True, slow_down_s=90)
    assert rules(POST, asked(1, 503, wait_s=300), asked(302), queue=obeys) == []
    assert "asked before its time" in rules(POST, asked(1, 503, wait_s=300), asked(92), queue=obeys)
    assert "asked before its time" in rules(POST, asked(1, 429), asked(62), queue=obeys)


def test_a_fault_that_struck_this_message_excuses_and_no_other() -> None:
    # Given a second request though the first was answered, after a run died with the message in hand, or with another
    own, others = Faults(), Faults()
    own.struck(FAULT, 2 * SECOND, ["1"])
    others.struck(FAULT, 2 * SECOND, ["2"])
    seen: list[Thing] = [POST, asked(1), asked(3)]
    excused = judged(*seen, faults=own)
    assert (excused.violations, excused.excused) == ([], {"asked after its end, for crash": 1})
    assert [each.rule for each in judged(*seen, faults=others).violations] == ["asked after its end"]


def test_a_storm_excuses_what_is_late_until_it_is_found_again_and_nothing_else() -> None:
    # Given a function that was broken for ten minutes
    faults = Faults()
    faults.everywhere(Fault("throttled", "storm-2", 0, 600 * SECOND))
    assert judged(POST, asked(700), faults=faults).violations == []
    assert judged(POST, asked(9_000), faults=faults).violations != []
    assert judged(POST, asked(1), asked(3), faults=faults).violations != []


def test_waits_that_double_and_waits_of_a_list() -> None:
    doubling, listed = Doubling(5, 60, 0.2, most=6), Listed((5, 300), (0.8, 1.2))
    waits = [doubling.after(tries) for tries in range(1, 7)]
    assert waits == [(5, 6), (10, 12), (20, 24), (40, 48), (60, 60), None]
    assert [listed.after(tries) for tries in (1, 2, 3)] == [(4, 6), (240, 360), None]


def hub_rules(*requests: Request, pushed: bool = True, service: hub.Service | None = None) -> list[str]:
    judgement = Judgement()
    services = {"s": service or hub.Service(frozenset({"t"}), 30, 3_600, 3)}
    model = hub.Hub(services, judgement, Faults(), clocks_s=0, ends=200_000 * SECOND)
    model.judge([hub.Pushed("t", {"n": 1}, exchange(0, 201), "1")] if pushed else [], requests, {})
    return [each.rule for each in judgement.violations]


def sent(at: float, said: dict[str, object] | None = None, status: int = 200, n: object = 1) -> Request:
    body = json.dumps({"message": "t", "payload": {"n": n}}).encode()
    begins = round(at * SECOND)
    answer = json.dumps({} if said is None else said).encode()
    return Request(begins, begins + 100_000, "s", "1", body, status, said=answer if status == 200 else b"")


LATER = {"delay": 300, "update_url": "/status"}


@pytest.mark.parametrize(
    ("requests", "rule"),
    [
        ([sent(1)], ""),
        ([sent(1, status=500), sent(34), sent(40)], "asked after its end"),
        ([sent(1, status=500), sent(34)], ""),
        ([sent(1, status=500), sent(20)], "asked before its time"),
        ([sent(1, status=500), sent(150)], "asked after its time"),
        ([sent(1, status=500), sent(34, status=500), sent(70)], "asked before its time"),
        ([sent(1, LATER), sent(302)], ""),
        ([sent(1, LATER), sent(32)], "asked before its time"),
        # Failures before it worked on the message no longer count.
        ([sent(1, status=500), sent(34, LATER), sent(335, status=500), sent(366)], ""),
        ([sent(1, {"delay": 600}), sent(602)], ""),
        ([sent(1, {"delay": 600})], "given up too soon"),
        # The third failure leaves it to a person.
        ([sent(1, status=500), sent(34, status=500), sent(97, status=500)], ""),
        ([sent(1, status=500), sent(34, status=500), sent(97, status=500), sent(220)], "more tries than allowed"),
        ([sent(1, n=2)], "sent and never pushed"),
    ],
)
def test_a_service_is_asked_as_the_hub_protocol_says(requests: list[Request], rule: str) -> None:
    assert rule in hub_rules(*requests) if rule else hub_rules(*requests) == []


@pytest.mark.parametrize(("hangs_s", "rules"), [(180, []), (30, ["asked after its time"])])
def test_what_is_for_a_service_that_hangs_waits_for_its_turn(hangs_s: int, rules: list[str]) -> None:
    # Given another message that the service has been asked for when one is posted, for long or not
    other = sent(-5, n=2)
    hung = replace(other, message_id="2", ended=other.at + hangs_s * SECOND, status=0, said=b"")
    # When it comes late, then that is no fault of the hub's while the service hangs
    judgement = Judgement()
    model = hub.Hub({"s": hub.Service(frozenset({"t"}), 30, 3_600, 1)}, judgement, Faults(), clocks_s=0, ends=10**11)
    pushed = [hub.Pushed("t", {"n": 1}, exchange(0, 201), "1"), hub.Pushed("t", {"n": 2}, exchange(-6, 201), "2")]
    model.judge(pushed, [hung, sent(200)], {})
    assert [each.rule for each in judgement.violations] == rules


def test_a_service_gets_what_it_wants_and_nothing_else() -> None:
    assert hub_rules(sent(1), service=hub.Service(frozenset({"u"}), 30, 3_600)) == ["sent and not wanted"]
    # What was made by a service is nobody's push
    assert hub_rules(replace(sent(1), body=b'{"message": "t", "payload": {"of": "0"}}'), pushed=False) == []


def webhook_rules(
    *requests: tuple[float, int], wait_s: int = 0, body: bytes = b'{"n":1}', posted: str = "1", app: int = 0
) -> list[str]:
    judgement = Judgement()
    model = webhooks.Webhooks({"e": webhooks.Endpoint(0, [])}, judgement, Faults(), clocks_s=0, ends=200_000 * SECOND)
    seen = [
        Request(round(at * SECOND), round(at * SECOND) + 100_000, "e", "1", body, status, wait_s)
        for at, status in requests
    ]
    model.judge([webhooks.Posted(app, {"n": 1}, exchange(0, 202), posted)], seen, {})
    return [each.rule for each in judgement.violations]


def test_an_endpoint_is_asked_by_the_published_schedule() -> None:
    assert webhook_rules((1, 500), (6, 500), (306, 200)) == []
    assert webhook_rules((1, 500), (6, 500), (206, 200)) == ["asked before its time"]
    assert webhook_rules((1, 500), (30, 200), wait_s=60) == ["asked before its time"]
    assert webhook_rules((1, 410), (306, 200)) == ["asked after its end"]
    assert webhook_rules((1, 500), (6, 500)) == ["given up too soon"]
    assert webhook_rules((1, 500), (90, 200)) == ["asked after its time"]
    assert webhook_rules((1, 200), body=b'{"n":2}') == ["other bytes than were posted"]
    assert webhook_rules((1, 200), posted="2") == ["sent and never posted"]
    assert webhook_rules((1, 200), app=7) == ["sent to another application"]


@pytest.mark.parametrize(("limited", "ordered"), [(True, False), (False, True)])
def test_a_rate_or_a_key_may_hold_up_a_message_for_webhooks(limited: bool, ordered: bool) -> None:
    # Given an endpoint with a rate, or a message with an ordering key, when it is sent late, then nothing is broken
    judgement = Judgement()
    endpoints = {"e": webhooks.Endpoint(0, [], limited)}
    model = webhooks.Webhooks(endpoints, judgement, Faults(), clocks_s=0, ends=200_000 * SECOND)
    seen = [Request(500 * SECOND, 501 * SECOND, "e", "1", b'{"n":1}', 200)]
    model.judge([webhooks.Posted(0, {"n": 1}, exchange(0, 202), "1", ordered)], seen, {})
    assert judgement.violations == []


def test_an_open_circuit_may_hold_up_a_message_for_webhooks() -> None:
    # Given an endpoint that failed ten times, when what came then is sent an hour later, then nothing is broken
    judgement = Judgement()
    model = webhooks.Webhooks({"e": webhooks.Endpoint(0, [])}, judgement, Faults(), clocks_s=0, ends=9_000 * SECOND)
    posted = [webhooks.Posted(0, {"n": n}, exchange(1, 202), str(n)) for n in range(10)]
    seen = [Request(2 * SECOND, 3 * SECOND, "e", str(n), json.dumps({"n": n}).encode(), 500) for n in range(10)]
    late = webhooks.Posted(0, {"n": 10}, exchange(60, 202), "10")
    seen += [Request(3_600 * SECOND, 3_601 * SECOND, "e", "10", b'{"n": 10}', 200)]
    model.judge([*posted, late], seen, {})
    assert [each.rule for each in judgement.violations if each.about == "10"] == []
