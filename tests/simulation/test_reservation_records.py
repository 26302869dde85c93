"""Records of pull queues that tell otherwise than callers were answered are noticed, in both directions, and what
faults explain is excused, so much of it and no more.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from simulation.account import START_MS
from simulation.promises.judgement import SECOND, Exchange, Judgement
from simulation.promises.pull import Act, Got, Reserve
from simulation.pulls import Pulls
from simulation.reservations import ReservationRecords

from pushhub.base.times import iso_time

STAY, LENGTH_S = "1.line", 60

EXPIRES_S = 3_600


def exchange(at: float, status: int = 200, *struck: str) -> Exchange:
    return Exchange(round(at * SECOND), round((at + 0.05) * SECOND), status, struck)


def record(kind: str, at: float, number: int = 1, **more: Any) -> dict[str, Any]:
    """A record of a message that a queue keeps for an hour."""
    whose = {"owed": [STAY], "body_size": 3} if kind == "accepted" else {"delivery_id": STAY}
    due = {"due_at": time(at + LENGTH_S)} if kind == "reserved" else {}
    return {
        "record_id": f"{kind}/{number}",
        "kind": kind,
        "at": time(at),
        "project": "p",
        "queue": "q",
        "message_id": "1",
        "dialect": "pull",
        "expires_at": time(EXPIRES_S),
        "reservations": number,
        **whose,
        **due,
        **more,
    }


def time(at: float) -> str:
    return iso_time(START_MS + round(at * 1000))


def look(at: float, *ids: str, count: int = 1, status: int = 200, struck: str = "", **more: Any) -> Reserve:
    """A request for messages, and the reservation ids that it got, each for the first time unless it says otherwise."""
    messages = [Got("1", b"", int(each.partition(" ")[2] or 1), each) for each in ids]
    asked = exchange(at, status, *([struck] if struck else []))
    return Reserve("q", asked, **{"count": count, "timeout_s": LENGTH_S, "messages": messages, **more})


def act(kind: Any, at: float, named: str = "a", status: int = 200, struck: str = "", **more: Any) -> Act:
    asked = exchange(at, status, *([struck] if struck else []))
    return Act(kind, "q", asked, "1", named, **{"seconds": LENGTH_S if kind == "touch" else 0, **more})


def judged(seen: list[Reserve | Act], records: list[dict[str, Any]], clocks_s: float = 0) -> Judgement:
    pulls, judgement = Pulls(), Judgement()
    pulls.reserves["p"] = [each for each in seen if isinstance(each, Reserve)]
    pulls.acts["p"] = [each for each in seen if isinstance(each, Act)]
    queue: Any = SimpleNamespace(project="p", message_timeout=30)
    queues: Any = {"q": [(0, SimpleNamespace(project="other", message_timeout=70)), (0, queue), (1, None)]}
    ReservationRecords(judgement, queues, clocks_s=clocks_s, ends=10_000 * SECOND).judge(
        [record("accepted", 0, 0), *records], pulls
    )
    return judgement


def rules(seen: list[Reserve | Act], records: list[dict[str, Any]], **more: Any) -> list[str]:
    found = judged(seen, records, **more)
    assert not found.excused
    return [each.rule for each in found.violations]


UNRECORDED = "a reservation without its record"
OTHERWISE = "a reservation is recorded otherwise than it was answered"
NOBODYS = "a reservation is recorded that nobody got"
RELEASED, RELEASED_BY_NONE = "a release without its record", "a release is recorded that nobody asked for"
REMOVED, REMOVED_BY_NONE = "a removal without its record", "a removal is recorded that nobody asked for"

LIFE: list[Reserve | Act] = [
    look(10, "a"),
    act("touch", 20, new_id="b"),
    act("release", 30, "b"),
    look(40, "c 3"),
    act("delete", 50, "c 3"),
]
LIVED = [
    record("reserved", 10),
    record("reserved", 20, 2),
    record("released", 30, 2),
    record("reserved", 40, 3),
    record("delivered", 50, 3),
]


def test_what_is_recorded_as_it_was_answered_breaks_nothing() -> None:
    # Given a message that was reserved, extended, given back, reserved again and deleted
    assert rules(LIFE, LIVED) == []
    # And one that nobody had reserved, and one that was deleted as it was handed out
    assert rules([act("delete", 5, "")], [record("cancelled", 5, 0)]) == []
    assert rules([look(10, "a", delete=True)], [record("reserved", 10), record("delivered", 10)]) == []


@pytest.mark.parametrize(
    ("place", "more", "rule"),
    [
        (0, {"at": time(12), "due_at": time(72)}, UNRECORDED),
        (0, {"due_at": time(71)}, OTHERWISE),
        (0, {"reservations": 0}, OTHERWISE),
        (1, {"due_at": time(81)}, OTHERWISE),
        (2, {"at": time(33)}, RELEASED),
        (2, {"reservations": 1}, RELEASED),
        (3, {"reservations": 4}, OTHERWISE),
        (4, {"at": time(53)}, REMOVED),
        (4, {"kind": "cancelled"}, REMOVED),
        (4, {"kind": "expired"}, REMOVED),
        (4, {"reservations": 2}, REMOVED),
    ],
)
def test_a_record_that_says_something_else_is_noticed(place: int, more: dict[str, Any], rule: str) -> None:
    # Given the records of a life, when one of them has another time, number or end
    changed = [{**each, **more} if number == place else each for number, each in enumerate(LIVED)]
    # Then that is noticed
    assert rule in rules(LIFE, changed)


@pytest.mark.parametrize(("place", "rule"), [*enumerate([UNRECORDED, UNRECORDED, RELEASED, UNRECORDED, REMOVED])])
def test_a_record_that_is_missing_is_noticed(place: int, rule: str) -> None:
    assert rule in rules(LIFE, [each for number, each in enumerate(LIVED) if number != place])


@pytest.mark.parametrize(
    ("seen", "more", "found"),
    [
        # Nobody asked at that time, or for so long
        ([], [record("reserved", 100)], [NOBODYS]),
        ([look(90)], [record("reserved", 100)], [NOBODYS]),
        ([look(100, timeout_s=50)], [record("reserved", 100)], [NOBODYS]),
        # It was asked for, and not handed out
        ([look(100)], [record("reserved", 100)], [NOBODYS]),
        # It went to the dead letters, or to nowhere
        (
            [look(100)],
            [record("reserved", 100), record("exhausted", 100), record("accepted", 100, 0, queue="dead")],
            [],
        ),
        ([look(100)], [record("reserved", 100), record("exhausted", 100)], [REMOVED_BY_NONE]),
        # The answer had no room for it; it fits into none
        ([look(100)], [record("reserved", 100), record("released", 100)], []),
        ([look(100)], [record("reserved", 100), record("released", 110)], [NOBODYS, RELEASED_BY_NONE]),
        ([look(100)], [record("reserved", 100), record("accepted", 0, 0, body_size=900_000)], []),
        # Somebody has it, and it was given back or removed all the same
        ([look(100, "a")], [record("reserved", 100), record("released", 105)], [RELEASED_BY_NONE]),
        ([look(100, "a")], [record("reserved", 100), record("delivered", 105)], [REMOVED_BY_NONE]),
        ([look(100, "a"), act("delete", 105, status=403)], [record("reserved", 100), record("delivered", 105)], None),
        ([], [record("cancelled", 100, 0)], [REMOVED_BY_NONE]),
        # Its time was over, or was not
        ([], [record("expired", EXPIRES_S, 0)], []),
        ([], [record("expired", EXPIRES_S - 1, 0)], [REMOVED_BY_NONE]),
        # The hub takes what it pushes from a queue that was converted
        (
            [],
            [record("reserved", 100), record("delivered", 100), record("accepted", 0, 0, dialect="raw")],
            [],
        ),
    ],
)
def test_what_nobody_was_told_of_has_a_reason(
    seen: list[Reserve | Act], more: list[dict[str, Any]], found: list[str] | None
) -> None:
    assert rules(seen, more) == ([REMOVED_BY_NONE] if found is None else found)


def test_what_was_given_back_unseen_is_not_counted() -> None:
    # Given a reservation that its request gave back, and the next one, the first that anybody saw
    seen = [look(10), look(20, "a")]
    unseen = [record("reserved", 10), record("released", 10)]
    assert rules([*seen], [*unseen, record("reserved", 20, 2)]) == []
    # Also if the two came within the same moment
    at_once = [record("reserved", 20), record("released", 20)]
    assert rules([look(19.98), look(20, "a")], [*at_once, record("reserved", 20.02, 2)]) == []
    # Then who is told of it as of the second is told wrong
    assert rules([look(10), look(20, "a 2")], [*unseen, record("reserved", 20, 2)]) == [OTHERWISE]


def test_a_queue_has_a_timeout_of_its_own() -> None:
    # Given a request that names no timeout, of a queue whose messages are reserved for half a minute
    seen = [look(10, "a", timeout_s=0)]
    assert rules([*seen], [record("reserved", 10, due_at=time(40))]) == []
    assert rules([*seen], [record("reserved", 10, due_at=time(80))]) == [OTHERWISE]
    # And what is deleted at once is reserved for a minute at least
    popped = [look(10, "a", timeout_s=0, delete=True)]
    assert rules([*popped], [record("reserved", 10), record("delivered", 10)]) == []


@pytest.mark.parametrize(
    ("seen", "more"),
    [
        # Its answer was lost; a call failed half-way; so was that of a request that extends, releases or removes
        ([look(100, status=0, struck="lost")], [record("reserved", 100)]),
        ([look(100, struck="late")], [record("reserved", 100)]),
        (
            [look(10, "a"), act("touch", 100, status=0, struck="lost")],
            [record("reserved", 10), record("reserved", 100, 2)],
        ),
        (
            [look(10, "a"), act("release", 30, status=500, struck="crash")],
            [record("reserved", 10), record("released", 30)],
        ),
        (
            [look(10, "a"), act("delete", 30, status=404, struck="repeated")],
            [record("reserved", 10), record("delivered", 30)],
        ),
        (
            [look(10, "a"), act("delete", 30, status=503, struck="late")],
            [record("reserved", 10), record("delivered", 70)],
        ),
        # Nobody knows whether what was handed out for good was deleted
        ([look(10, "a", delete=True, struck="late")], [record("reserved", 10)]),
    ],
)
def test_what_a_fault_explains_is_excused_once(seen: list[Reserve | Act], more: list[dict[str, Any]]) -> None:
    # Given what is recorded of a request that a fault struck
    found = judged(seen, more)
    # Then it is excused, and counted
    assert (found.violations, found.excused.total()) == ([], 1)
    # And not without a fault
    untouched = [type(each)(**{**vars(each), "exchange": without_faults(each.exchange)}) for each in seen]
    assert judged(untouched, more).violations


def without_faults(asked: Exchange) -> Exchange:
    return Exchange(asked.asked, asked.answered, asked.status)


def test_a_fault_explains_no_more_messages_than_were_asked_for() -> None:
    # Given a request for one message, whose answer was lost
    seen = look(100, status=0, struck="lost")
    # Then a second one that was reserved at that time was reserved by nobody
    other = record("reserved", 100, message_id="2")
    assert [each.rule for each in judged([seen], [record("reserved", 100), other]).violations] == [NOBODYS]


def test_clocks_that_are_off_explain_times_and_ends() -> None:
    # Given a clock that is up to five seconds behind: a message deleted after its reservation was over by another clock
    seen: list[Reserve | Act] = [look(10, "a"), act("delete", 72)]
    records = [record("reserved", 7), record("cancelled", 72)]
    assert rules(seen, records, clocks_s=5) == []
    # Then that is wrong where clocks agree
    assert REMOVED in rules(seen, [record("reserved", 10), record("cancelled", 72)])


def test_what_callers_ask_is_kept_as_they_were_answered() -> None:
    # Given requests of all forms
    pulls, path = Pulls(), "/3/projects/p/queues/a%20b"
    shown = {"id": "1", "body": "x", "reserved_count": 2, "reservation_id": "a"}
    done, refused = exchange(1), exchange(1, 403)
    pulls.heard("POST", f"{path}/reservations", '{"n": 3, "timeout": 40, "delete": true}', done, {"messages": [shown]})
    pulls.heard("POST", f"{path}/reservations", None, refused, {"msg": "no"})
    pulls.heard("POST", f"{path}/messages/1/touch", {"reservation_id": "a"}, done, {"reservation_id": "b"})
    pulls.heard("POST", f"{path}/messages/1/release", {"reservation_id": "b", "delay": 9}, done, {})
    pulls.heard("DELETE", f"{path}/messages/1.json?reservation_id=b", b"", done, {})
    pulls.heard("DELETE", f"{path}/messages", {"ids": ["1", {"id": "2", "reservation_id": "c"}, "1"]}, done, {})
    # Then they are kept, and what is no such request is not
    for method, other, body in (
        ("DELETE", f"{path}/messages", {}),
        ("GET", f"{path}/messages/1", None),
        ("POST", f"{path}/messages", {"messages": []}),
        ("POST", "/3/projects/p/queues", None),
        ("DELETE", f"{path}/messages", "{"),
    ):
        pulls.heard(method, other, body, done, {})
    got = [Got("1", b"", 2, "a")]
    assert pulls.reserves == {"p": [Reserve("a b", done, 3, 40, True, got), Reserve("a b", refused, 1, 0, messages=[])]}
    assert pulls.acts == {
        "p": [
            Act("touch", "a b", done, "1", "a", new_id="b"),
            Act("release", "a b", done, "1", "b", seconds=9),
            Act("delete", "a b", done, "1", "b"),
            Act("delete", "a b", done, "1", "", among=2),
            Act("delete", "a b", done, "2", "c", among=2),
        ]
    }
