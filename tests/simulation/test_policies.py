"""The simulator's rules about circuits, limits, waits and order find what they are meant to find, and nothing else."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from simulation.account import START_MS
from simulation.endpoints import Asked, Endpoint
from simulation.lost import Lost
from simulation.policies import UNDER_WAY, in_order, left_alone
from simulation.promises.judgement import Violation
from simulation.run import Plan, simulate
from simulation.scheduler import SECOND
from simulation.truth import Truth, Written

from pushhub.engine.model.circuit import CircuitState, Health, SubscriberKey
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.message import Message, Ordering
from pushhub.engine.model.work import WorkOrder

KEY = SubscriberKey(project="p", queue="q", queue_uid="u", subscriber_id="s")
OPEN_AT = 1_000 * SECOND
LATER = OPEN_AT + UNDER_WAY + SECOND


def endpoint(*asked: Asked) -> Endpoint:
    account: Any = SimpleNamespace(seed="x")
    created = Endpoint(account, "e", [])
    for each in asked:
        created.log.append(each)
        created.about_message[each.message_id].append(each)
    return created


def request(at: int, message_id: str = "1", *, lasts: int = SECOND, **more: Any) -> Asked:
    return Asked(at, {}, b"", message_id, "push-1", ended_at=at + lasts, **more)


def opened() -> Health:
    """A circuit that has opened, with a probe due in a minute."""
    return Health(key=KEY, state=CircuitState.OPEN, version=1, probe_at=START_MS + OPEN_AT // 1000 + 60_000)


def truth(*healths: tuple[int, Health], let_go: tuple[int, ...] = ()) -> Any:
    reported: Any = Truth.__new__(Truth)
    reported.circuits, reported.let_go, reported.deliveries = {"s": [*healths]}, {"s": [*let_go]}, {}
    return reported


def rules(violations: Any) -> list[str]:
    return [each.rule for each in violations]


def test_a_request_while_the_circuit_is_open_needs_a_probe_that_was_taken() -> None:
    # Given a circuit that opened, and a probe that was claimed when it was due
    probed_at = OPEN_AT + 61 * SECOND
    claimed = replace(opened(), version=2, probe_at=opened().probe_at + 90_000)
    history = [(OPEN_AT, opened()), (probed_at, claimed)]
    # Then a request right after it is the probe; another one is not, nor is an earlier one
    assert rules(left_alone(truth(*history), endpoint(request(probed_at + SECOND)), "s", 0)) == []
    for own in (LATER, probed_at + 3 * SECOND):
        asked = endpoint(*sorted([request(own), request(probed_at + SECOND)], key=lambda each: each.at))
        assert rules(left_alone(truth(*history), asked, "s", 0)) == ["asked while its circuit was open"]
    # And requests that began while all environments still considered it closed are excused
    assert rules(left_alone(truth(*history), endpoint(request(OPEN_AT + SECOND)), "s", 0)) == []


def test_who_asks_for_a_try_by_hand_knows_about_the_circuit() -> None:
    # Given an open circuit, and a request whose sender had read that a person wants a try
    reported = truth((OPEN_AT, opened()))
    asked = request(LATER + SECOND)
    by_hand = Written(LATER, "retrying", settled=False, due_at=0, tries=1, attempts=1, version=2, asked=True)
    reported.deliveries["1", "s"] = [by_hand]
    # Then it is excused, and one that began when that try was done is not
    assert rules(left_alone(reported, endpoint(asked), "s", 0)) == []
    reported.deliveries["1", "s"].append(replace(by_hand, at=LATER + 1, asked=False, attempts=2, version=3))
    assert rules(left_alone(reported, endpoint(asked), "s", 0)) == ["asked while its circuit was open"]


def test_a_probe_that_is_not_due_is_one_too_many() -> None:
    claimed = replace(opened(), version=2, probe_at=opened().probe_at + 90_000)
    history = [(OPEN_AT, opened()), (OPEN_AT + 50 * SECOND, claimed)]
    assert rules(left_alone(truth(*history), endpoint(), "s", 0)) == ["probed before its time"]
    # Except if clocks differ by that much
    assert rules(left_alone(truth(*history), endpoint(), "s", 11_000)) == []


@pytest.mark.parametrize(("count", "broken"), [(20, []), (21, ["more let go than its ramp allows"])])
def test_a_ramp_begins_with_ten_in_a_minute(count: int, broken: list[str]) -> None:
    # Given a circuit that ramps: ten a minute, of which two runs may fall together
    history = [(OPEN_AT, opened()), (LATER, replace(opened(), state=CircuitState.RAMPING, version=2))]
    times = tuple(LATER + 120 * SECOND + place for place in range(count))
    assert rules(left_alone(truth(*history, let_go=times), endpoint(), "s", 0)) == broken


def message(number: int, before: str | None) -> Message:
    return Message(
        project="p",
        queue="q",
        queue_uid="u",
        message_id=str(number),
        body=b"",
        accepted_at=0,
        due_at=0,
        expires_at=1,
        body_size=0,
        subscriber_ids=("s",),
        ordering=Ordering(key="k", sequence=number, previous={"s": before} if before else {}),
    )


def test_a_message_is_first_asked_about_when_the_one_before_it_has_ended() -> None:
    # Given two messages of one key, the first of which ended at ten seconds
    ended = 10 * SECOND
    both = [message(1, None), message(2, "1")]
    reported: Any = SimpleNamespace(
        settled_at=lambda *_: ended,
        accepted={("u", "1"): SimpleNamespace(gone_at=None, message=both[0])},
        deliveries={},
        queues=defaultdict(list),
    )
    # Then the second may be requested after that, not before; and no place may be skipped
    assert rules(in_order(reported, both, {("2", "s"): [request(ended + 1, "2")]})) == []
    assert rules(in_order(reported, both, {("2", "s"): [request(ended - 1, "2")]})) == ["out of order"]
    assert rules(in_order(reported, both[1:], {})) == ["a place left out"]
    # And a manual try may come before; an automatic one after it may not
    by_hand = Written(1, "pending", settled=False, due_at=0, tries=0, attempts=0, version=1, asked=True)
    tried = replace(by_hand, at=2, tries=1, attempts=2, version=3, asked=False)
    early = {("2", "s"): [request(1, "2"), request(2, "2")]}
    reported.deliveries["2", "s"] = [by_hand]
    assert rules(in_order(reported, both, early)) == []
    reported.deliveries["2", "s"].append(tried)
    assert rules(in_order(reported, both, early)) == ["out of order"]


def test_who_was_deleted_before_its_turn_hands_down_whom_it_waited_for() -> None:
    # Given three messages of one key: the first ended at twenty seconds, the second was deleted at ten, untried
    three = [message(1, None), message(2, "1"), message(3, "2")]
    ends = {"1": 20 * SECOND, "2": 10 * SECOND}
    deleted = Written(10 * SECOND, "cancelled", settled=True, due_at=None, tries=0, attempts=0, version=1, asked=False)
    reported: Any = SimpleNamespace(
        settled_at=lambda message_id, _: ends[message_id],
        accepted={("u", each.message_id): SimpleNamespace(gone_at=None, message=each) for each in three},
        deliveries={("2", "s"): [deleted]},
        queues=defaultdict(list),
    )

    def asked(at: int) -> list[str]:
        return rules(in_order(reported, three, {("3", "s"): [request(at, "3")]}))

    # Then the third comes after the first
    assert (asked(15 * SECOND), asked(21 * SECOND)) == (["out of order"], [])
    # And after the second alone if that had been tried, or if both were cleared
    reported.deliveries["2", "s"].insert(0, replace(deleted, at=5 * SECOND, state="retrying", settled=False, tries=1))
    assert asked(15 * SECOND) == []
    del reported.deliveries["2", "s"][0]
    reported.queues["q"] = [(5 * SECOND, SimpleNamespace(uid="u", cleared_at=0))]
    assert asked(15 * SECOND) == []


def test_what_is_swept_must_have_been_lost_for_a_reason() -> None:
    # Given an account in which the order for one delivery is queued, that for a second was purged, that for a third was
    # requested by a person without success, and that for a fourth is nowhere
    keys = [DeliveryKey("p", "u", f"{number:019d}", "s") for number in range(4)]
    bodies = [WorkOrder(key=each, queue="q").encode() for each in keys]
    account: Any = SimpleNamespace(
        sweeps=[],
        purged={keys[1].message_id},
        unqueued={keys[2].message_id},
        queues={"RetryQueue": SimpleNamespace(bodies=lambda: [bodies[0]])},
        streamed=lambda: iter(()),
        dynamodb=SimpleNamespace(tables={"ScheduleTable": SimpleNamespace(everything=lambda: iter(()))}),
        scheduler=SimpleNamespace(now=0),
    )
    lost = Lost(account)
    # When the sweeper queues all of them again
    for body in bodies:
        account.sweeps[0](body)
    # Then one of them is reported
    [reported] = lost.violations()
    assert isinstance(reported, Violation)
    assert (lost.swept, reported.rule, reported.about) == (4, "lost without a reason", keys[3].message_id)


def test_what_is_delayed_for_long_waits_for_a_limit_once_the_minute_has_come() -> None:
    # Given several messages of one post, delayed for two hours, to a subscriber with a rate (seed 11 for an hour,
    # reduced to what broke it): the entry that they wait in is looked at by the minute
    result = simulate(Plan(11, "policies", 1.0, only=frozenset({"producer-4"}), talk=False))
    # Then the rate is not said to be unused while they are not there yet
    assert result.violations == []
    assert result.figures["judged"] > 1_000
