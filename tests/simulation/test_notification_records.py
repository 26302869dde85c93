"""Records of notifications that tell otherwise than consumers saw are noticed, in both directions, and what faults
explain is excused.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from simulation.account import START_MS
from simulation.consumers import Acknowledged, Consumers, Removal, Sent, Subscriber
from simulation.notification_records import NotificationRecords
from simulation.promises.judgement import SECOND, Exchange, Fault, Faults, Judgement

from pushhub.base.times import iso_time

HUB, EXPIRES_S, ENDS_S = "u", 5_000, 10_000
WHO = Subscriber("p", "t", "s")


def time(at: float) -> str:
    return iso_time(START_MS + round(at * 1000))


def ack_id(position: int) -> str:
    return base64.b64encode(position.to_bytes(8) + b"xyz").decode()


def token(subscriber: Subscriber = WHO, **more: str) -> str:
    claims = {"sub": subscriber.name, "topic": f"{subscriber.project}/relnotif/{subscriber.topic}", **more}
    return f"h.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.s"


def accepted(message: str, at: float, position: int, owed: tuple[str, ...] = (HUB,), **more: Any) -> dict[str, Any]:
    return {
        **_common(message, "accepted", at, message),
        "accepted_at": time(at),
        "owed": [f"{message}.{each}" for each in owed],
        "sequence": position,
        **more,
    }


def of_delivery(message: str, kind: str, at: float, accepted_at: float, uid: str = HUB, **more: Any) -> dict[str, Any]:
    number = more.pop("number", 1)
    return {
        **_common(message, kind, at, f"{message}/{uid}/{number}"),
        "accepted_at": time(accepted_at),
        "delivery_id": f"{message}.{uid}",
        "subscriber_id": uid,
        "subscriber": "s",
        **more,
    }


def _common(message: str, kind: str, at: float, named: str) -> dict[str, Any]:
    return {
        "record_id": f"{kind}/{named}",
        "kind": kind,
        "at": time(at),
        "project": "p",
        "queue": "t",
        "queue_uid": "q",
        "message_id": message,
        "dialect": "notifications",
        "expires_at": time(EXPIRES_S),
    }


def attempt(message: str, at: float, accepted_at: float, position: int, **more: Any) -> dict[str, Any]:
    waited = {"wait_before_ms": round((at - accepted_at) * 1000), "bytes_out": 2, "attempt": 1}
    return of_delivery(
        message, "attempt", at, accepted_at, **{"order_key": "c", "sequence": position, **waited, **more}
    )


LIVED = [
    accepted("1", 20, 7),
    attempt("1", 21.1, 20, 7),
    of_delivery("1", "acknowledged", 100, 20),
    accepted("2", 150, 8),
    of_delivery("2", "cancelled", 200, 150),
    accepted("3", 300, 9, ()),
]
"""Two notifications: one was sent and acknowledged, the other not before its subscriber was removed. Then a third."""


def consumers(change: Callable[[Consumers], None] = lambda _: None) -> Consumers:
    """Who saw that: a consumer that connected, got a frame, acknowledged it, left, and was removed."""
    now = [10 * SECOND]
    seen = Consumers(lambda: now[0])
    seen.connects("c", token())
    seen.answered("c", opened=True)
    now[0] = 21 * SECOND
    seen.gets("c", f"{ack_id(7)}\n/p/events/1\nCREATE\n\n{{}}")
    now[0] = 22 * SECOND
    heard = seen.sends("c", f"{ack_id(7)}\n")
    now[0] = 23 * SECOND
    heard()
    now[0] = 120 * SECOND
    seen.ends("c")
    seen.heard("POST", f"/notification2/unsubscribe?token={token()}", exchange(200))
    change(seen)
    return seen


def exchange(at: float, status: int = 200) -> Exchange:
    return Exchange(round(at * SECOND), round((at + 0.05) * SECOND), status)


def judged(
    records: list[dict[str, Any]], seen: Consumers, faults: Faults | None = None, clocks_s: float = 0
) -> Judgement:
    judgement = Judgement()
    NotificationRecords(judgement, faults or Faults(), clocks_s=clocks_s, ends=ENDS_S * SECOND).judge(records, seen)
    return judgement


def rules(records: list[dict[str, Any]], seen: Consumers | None = None, clocks_s: float = 0) -> list[str]:
    found = judged(records, seen or consumers(), clocks_s=clocks_s)
    assert not found.excused
    return sorted({each.rule for each in found.violations})


UNRECORDED, OTHERWISE = "a frame without its record", "a frame is recorded otherwise than it was sent"
NEVER_SENT = "a frame is recorded that was never sent"
UNHEARD, LATE = "an acknowledgement without its record", "an acknowledgement is recorded late"
NOBODYS = "an acknowledgement is recorded that nobody sent"
NOT_OWED = "a notification is not owed to a subscriber that was there"
OWED_TO_NONE = "a notification is owed to a subscriber that was not there"
CANCELLED, LEFT = "cancelled, and nobody removed its subscriber", "its subscriber was removed, and it has no end"


def test_what_is_recorded_as_it_was_seen_breaks_nothing() -> None:
    assert rules(LIVED) == []


@pytest.mark.parametrize(
    ("place", "more", "rule"),
    [
        (0, {"owed": []}, NOT_OWED),
        (1, {"at": time(19), "wait_before_ms": 0}, OTHERWISE),
        (1, {"at": time(41), "wait_before_ms": 21_000}, OTHERWISE),
        (1, {"bytes_out": 3}, OTHERWISE),
        (1, {"wait_before_ms": 1}, OTHERWISE),
        (1, {"order_key": "c/12"}, OTHERWISE),
        (1, {"queue": "other"}, OTHERWISE),
        (1, {"sequence": 8}, NEVER_SENT),
        (1, {"order_key": "d"}, NEVER_SENT),
        (2, {"at": time(700)}, LATE),
        (2, {"at": time(19)}, NOBODYS),
        (2, {"kind": "cancelled"}, UNHEARD),
        (2, {"kind": "expired"}, "expired before its time"),
        (4, {"kind": "acknowledged"}, NOBODYS),
        (4, {"at": time(190)}, CANCELLED),
        (5, {"owed": ["3.u"]}, OWED_TO_NONE),
    ],
)
def test_a_record_that_says_something_else_is_noticed(place: int, more: dict[str, Any], rule: str) -> None:
    # Given what is recorded of a subscriber, when one of the records has another time, place, size or end
    changed = [{**each, **more} if number == place else each for number, each in enumerate(LIVED)]
    # Then that is noticed
    assert rule in rules(changed)


@pytest.mark.parametrize(("place", "rule"), [(1, UNRECORDED), (2, UNHEARD), (4, LEFT)])
def test_a_record_that_is_missing_is_noticed(place: int, rule: str) -> None:
    assert rule in rules([each for number, each in enumerate(LIVED) if number != place])


def test_what_a_consumer_did_not_see_is_noticed() -> None:
    # Given records of what was sent, acknowledged and cancelled, when that never was
    assert NEVER_SENT in rules(LIVED, consumers(lambda seen: seen.sent.clear()))
    assert NOBODYS in rules(LIVED, consumers(lambda seen: seen.acknowledged.clear()))
    assert CANCELLED in rules(LIVED, consumers(lambda seen: seen.removals.clear()))
    assert OWED_TO_NONE in rules(LIVED, consumers(lambda seen: seen.connections.clear()))
    # Or came later than is recorded
    assert OTHERWISE in rules(LIVED, consumers(lambda seen: _moved(seen, 22)))


def _moved(seen: Consumers, at: float) -> None:
    seen.sent[:] = [Sent(round(at * SECOND), "c", ack_id(7), 7, 2)]


def test_a_sender_may_not_have_recorded_what_a_consumer_that_left_was_sent() -> None:
    # Given a frame that was sent seconds before its connection ended, and one that was sent long before
    for at, found in ((115, []), (80, [UNRECORDED])):

        def sent(seen: Consumers, at: int = at) -> None:
            seen.sent.append(Sent(at * SECOND, "c", ack_id(8), 8, 2))

        # Then only the former may have no record
        assert rules(LIVED, consumers(sent)) == found


def test_an_acknowledgement_that_may_not_have_been_heard_may_have_no_record() -> None:
    unheard = [each for each in LIVED if each["kind"] != "acknowledged"]

    def on_its_way(seen: Consumers) -> None:
        seen.acknowledged[0].heard = None

    # Given an acknowledgement that was on its way as its connection ended, then nobody knows
    assert rules([*unheard, of_delivery("1", "cancelled", 200, 20)], consumers(on_its_way)) == []
    # And one of what was never sent on the connection counts for nothing
    assert rules(LIVED, consumers(lambda seen: seen.acknowledged.append(Acknowledged(0, "c", ack_id(8), 8, 5)))) == []
    # And what is heard when the notification's time is over comes too late
    late = [
        each if each["kind"] != "acknowledged" else {**each, "kind": "expired", "at": time(5_010)} for each in LIVED
    ]

    def heard_late(seen: Consumers) -> None:
        seen.acknowledged[0].at = seen.acknowledged[0].heard = 5_005 * SECOND

    assert rules([{**each, "expires_at": time(5_000)} for each in late], consumers(heard_late)) == []


def test_a_shared_subscribers_acknowledgement_counts_where_it_was_sent() -> None:
    # Given two consumers of a shared subscriber, of which one acknowledges what the other was sent
    def shares(seen: Consumers) -> None:
        seen.connections["c"].shared = True
        seen.connects("d", token(shared="true"))
        seen.acknowledged[0].connection = "d"

    shared = [{**each, "order_key": "c/1"} if each["kind"] == "attempt" else each for each in LIVED]
    # Then no record may tell of it
    assert rules(shared, consumers(shares)) == [NOBODYS]


def test_a_subscriber_is_owed_what_comes_between_its_first_handshake_and_its_removal() -> None:
    before = accepted("0", 5, 6, ())
    # Given a notification before its handshake, which is not owed
    assert rules([before, *LIVED]) == []
    assert rules([{**before, "owed": ["0.u"]}, of_delivery("0", "cancelled", 200, 5), *LIVED]) == [OWED_TO_NONE]
    # And one by a clock that is behind, and one of the time after a handshake that failed half-way, which may be
    behind = [accepted("0", 9, 6), of_delivery("0", "cancelled", 200, 9), *LIVED]
    assert rules(behind, clocks_s=2) == []

    def failed(seen: Consumers) -> None:
        seen.connects("b", token())
        seen.connections["b"].asked = 4 * SECOND
        seen.answered("b", opened=False)

    half = [accepted("0", 5, 6), of_delivery("0", "cancelled", 10, 5), *LIVED]
    assert rules(half, consumers(failed)) == []
    assert rules(half) == [OWED_TO_NONE, CANCELLED]


def test_a_removal_may_have_been_asked_for_in_vain() -> None:
    # Given a subscriber whose removal failed, or was refused
    kept = [*LIVED[:3], accepted("2", 150, 8), accepted("3", 300, 9)]
    for status in (0, 503):
        assert rules(kept, consumers(_removed_with(status))) == []
        assert rules(LIVED, consumers(_removed_with(status))) == []
    assert CANCELLED in rules(LIVED, consumers(_removed_with(401)))
    assert rules(kept, consumers(_removed_with(401))) == []


def _removed_with(status: int) -> Callable[[Consumers], None]:
    def changed(seen: Consumers) -> None:
        seen.removals[:] = [Removal(WHO, exchange(200, status))]

    return changed


def test_a_notification_is_sent_for_the_first_time_once() -> None:
    # Given a connection after the first one, on which it came again
    def again(seen: Consumers) -> None:
        seen.connects("d", token())
        seen.answered("d", opened=True)
        seen.sent.append(Sent(130 * SECOND, "d", ack_id(7), 7, 2))

    later = attempt("1", 130, 20, 7, order_key="d", number=5)
    first = [each for each in LIVED if each["kind"] != "acknowledged"]
    unheard = consumers(again)
    unheard.acknowledged.clear()
    second = {name: value for name, value in later.items() if name != "attempt"}
    cancelled = of_delivery("1", "cancelled", 200, 20)
    assert rules([*first, second, cancelled], unheard) == []
    # Then a record that calls the second time the first is noticed
    assert rules([*first, later, cancelled], unheard) == [OTHERWISE]


def test_what_struck_the_sender_is_an_excuse() -> None:
    # Given faults that struck what sends and hears
    def struck(at: int) -> Faults:
        faults = Faults()
        faults.struck(Fault("crash", "crash", at * SECOND, at * SECOND), at * SECOND, [""])
        return faults

    unrecorded = [each for each in LIVED if each["kind"] != "attempt"]
    late = [{**each, "at": time(700)} if each["kind"] == "acknowledged" else each for each in LIVED]
    ended = {"kind": "cancelled", "at": time(200)}
    unheard = [{**each, **ended} if each["kind"] == "acknowledged" else each for each in LIVED]
    for records, at in ((unrecorded, 21), (late, 300), (unheard, 22)):
        found = judged(records, consumers(), struck(at))
        assert (found.violations, found.excused.total()) == ([], 1)
        # And not what struck it before or afterwards
        assert judged(records, consumers(), struck(800)).violations


def test_what_is_not_kept_has_no_records_but_of_its_acceptance() -> None:
    # Given a consumer of a topic that keeps nothing
    def volatile(seen: Consumers) -> None:
        seen.connections["c"].persistent = False

    only = [{**each, "owed": []} for each in LIVED if each["kind"] == "accepted"]
    assert rules(only, consumers(volatile)) == []
    # Then a record of what it was sent is noticed
    assert NEVER_SENT in rules(LIVED, consumers(volatile))


def test_what_consumers_do_is_kept_as_they_saw_it() -> None:
    # Given consumers, a token that cannot be read, and frames that are no notifications
    seen = Consumers(lambda: 5)
    seen.connects("c", token(volatile="true", shared="true"))
    seen.connects("d", "what is this")
    seen.connects("e", "a.b.c")
    seen.answered("c", opened=False)
    seen.answered("d", opened=True)
    seen.gets("c", "{}")
    seen.sends("c", "unsubscribe_subscriber")()
    seen.sends("c", f"{ack_id(1)}\n{ack_id(2)}\nAAAA\n----------------")()
    seen.heard("POST", f"/notification2/unsubscribe?token={token()}", exchange(1, 500))
    seen.heard("GET", f"/notification2/unsubscribe?token={token()}", exchange(1))
    # Then what they did is kept
    [connection] = seen.connections.values()
    assert (connection.shared, connection.persistent, connection.answered, connection.opened) == (True, False, 5, None)
    assert seen.sent == []
    assert seen.acknowledged == [Acknowledged(5, "c", ack_id(each), each, 5) for each in (1, 2)]
    assert seen.removals == [Removal(WHO, Exchange(5, 5, 0)), Removal(WHO, exchange(1, 500))]
