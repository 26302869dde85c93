"""Every owed delivery is accounted for, and contradictions are listed with their ids."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from glue_jobs.delivery_report.figures.balance import balance, verdicts
from glue_jobs.delivery_report.figures.traffic import fate_cells
from glue_jobs.delivery_report.proof.conservation import (
    delivery_findings,
    expiry_findings,
    order_findings,
    overdue_findings,
    with_standing,
)
from glue_jobs.delivery_report.proof.deliveries import DELIVERY, delivery_rows, suspicious
from glue_jobs.delivery_report.storage.layout import small_table
from glue_jobs.delivery_report.storage.schema import CURATED
from pyspark.sql import SparkSession
from tests.glue.frames import Counted, queried, records_frame, rows_frame, rows_of
from tests.glue.lives import DAY, HOUR, MINUTE, NOON, Lives

GRACE = timedelta(hours=1)


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def standings(spark: SparkSession, lives: Lives, now: int) -> dict[str, str]:
    rows = with_standing(delivery_rows(records_frame(spark, lives.records)), at(now), GRACE)
    return {row["delivery_id"]: row["standing"] for row in rows_of(rows)}


Finding = tuple[str, str | None, str]


def findings(spark: SparkSession, *hubs: Lives) -> list[list[Finding]]:
    """What is wrong with each of some hubs. They are judged together, each as a project: a query costs a second."""
    records = [replace(each, project=f"{n}") for n, lives in enumerate(hubs) for each in lives.records]
    frame = records_frame(spark, records)
    # As the job does, which keeps its suspects.
    suspects = rows_frame(spark, rows_of(suspicious(delivery_rows(frame))), DELIVERY)
    found: list[list[Finding]] = [[] for _ in hubs]
    for row in rows_of(delivery_findings(frame, suspects)):
        found[int(row["project"])].append((row["finding"], row["delivery_id"], row["detail"]))
    return [sorted(each) for each in found]


def as_it_is(lives: Lives) -> Lives:
    """What is recorded until now."""
    return replace(lives, records=[*lives.records])


def test_standings_while_waiting_and_when_nothing_is_heard_any_more(spark: SparkSession) -> None:
    # Given deliveries that wait in every possible way
    lives = Lives()
    (untried,) = lives.post()
    (retrying,) = lives.post()
    lives.attempt(retrying, 503)
    (scheduled,) = lives.post()
    lives.attempt(scheduled, 503, schedule=True)
    (reserved,) = lives.post()
    lives.attempt(reserved, 202)
    (left,) = lives.post()
    lives.close(lives.attempt(left, 503), "held", NOON + 500)
    (far,) = lives.post(delay=DAY)
    lives.schedule(far, NOON + 9)
    ids = [each.delivery_id for each in (untried, retrying, scheduled, reserved, left, far)]
    # When judged half a minute later
    now = standings(spark, lives, NOON + 30_000)
    # Then each is classified accordingly
    assert [now[each] for each in ids] == ["pending", "retrying", "scheduled", "reserved", "held", "scheduled"]
    # When a scheduled one has been due for a short time, it counts as on its way through a queue
    assert standings(spark, lives, NOON + 10 * MINUTE)[scheduled.delivery_id] == "retrying"
    # When there are no records for longer than the grace period, exactly the due deliveries are missing
    later = standings(spark, lives, NOON + 2 * HOUR)
    assert [later[each] for each in ids] == ["missing", "missing", "missing", "missing", "held", "scheduled"]


def test_standings_of_a_pull_queue(spark: SparkSession) -> None:
    lives = Lives()
    free = lives.put(expires_in=HOUR)
    held = lives.reserve(lives.put(expires_in=HOUR), NOON + 1_000)
    ids = [f"{each.message.message_id}.line" for each in (free, held)]

    def judged(now: int) -> list[str]:
        found = standings(spark, lives, now)
        return [found[each] for each in ids]

    assert judged(NOON + 2_000) == ["pending", "reserved"]
    # A reservation that ended puts the message back
    assert judged(NOON + 5 * MINUTE) == ["pending", "pending"]
    # Expired, though not yet removed
    assert judged(NOON + 2 * HOUR) == ["expired", "expired"]
    # Removed long ago, without a record
    assert judged(NOON + 6 * DAY) == ["missing", "missing"]


def test_the_balance_is_what_the_hub_has(spark: SparkSession) -> None:
    # Given messages of two projects and two hours, with different outcomes
    first, second = Lives(), Lives(project="p2")
    for n in range(6):
        deliveries = first.post(NOON + n * 20 * MINUTE, subscribers=("s0", "s1"))
        first.attempt(deliveries[0], 200 if n else 503)
        if n > 2:
            first.attempt(deliveries[1], 202)
    (gone,) = second.post()
    second.close(second.attempt(gone, 503), "cancelled", NOON + 900)
    second.post(subscribers=())
    # When balanced
    records = records_frame(spark, [*first.records, *second.records])
    judged = with_standing(delivery_rows(records), at(NOON + 100 * MINUTE + 1_000), GRACE)
    cells = Counted(fate_cells, judged)
    rows = {(row["project"], str(row["hour"])[11:13]): row for row in queried(balance, cells)}
    # Then messages and standings are those of the hub, and the one long overdue breaks its hour
    assert {key: (row["messages"], row["owed"]) for key, row in rows.items()} == {
        ("p1", "12"): (3, 6),
        ("p1", "13"): (3, 6),
        ("p2", "12"): (2, 1),
    }
    told = Counter({name: sum(row[name] for row in rows.values()) for name in ("delivered", "reserved", "cancelled")})
    states = first.states() + second.states()
    assert told == Counter({"delivered": 5, "reserved": 3, "cancelled": 1})
    assert told == Counter({name: states[name] for name in told})
    assert rows["p1", "12"]["missing"] == 4
    assert not rows["p1", "12"]["balanced"]
    assert rows["p2", "12"]["balanced"]
    # And each project has its own verdict
    own = {
        row["project"]: row
        for row in queried(lambda cells, found: verdicts(f"({balance(cells)})", found), cells, overdue_findings(judged))
    }
    assert {name: (row["owed"], row["missing"], row["breaches"], row["conserved"]) for name, row in own.items()} == {
        "p1": (12, 4, 4, False),
        "p2": (1, 0, 0, True),
    }


def test_overdue_deliveries_are_named(spark: SparkSession) -> None:
    lives = Lives()
    (silent,) = lives.post()
    lives.attempt(silent, 503)
    judged = with_standing(delivery_rows(records_frame(spark, lives.records)), at(NOON + 3 * HOUR), GRACE)
    (row,) = rows_of(overdue_findings(judged))
    assert (row["severity"], row["finding"], row["delivery_id"]) == ("breach", "overdue", silent.delivery_id)
    assert row["detail"] == "was retrying, due 2026-11-18 12:01:00, no record since 2026-11-18 12:00:00"


def test_a_lost_acceptance_and_what_was_never_owed(spark: SparkSession) -> None:
    # Given a delivery whose acceptance is lost
    lives = Lives()
    (delivery,) = lives.post()
    lives.attempt(delivery)
    del lives.records[0]
    # And one that was not owed, beside one that was
    strange = Lives()
    (owed,) = strange.post()
    strange.attempt(replace(owed, subscriber_id="stranger", targets=("stranger",)))
    strange.attempt(owed)
    # Then each is named
    never, not_owed = findings(spark, lives, strange)
    assert never == [("never_accepted", delivery.delivery_id, "1 records but no acceptance")]
    assert [each[:2] for each in not_owed] == [("not_owed", f"{owed.message_id}.stranger")]
    judged = with_standing(delivery_rows(records_frame(spark, lives.records)), at(NOON + HOUR), GRACE)
    (row,) = queried(balance, Counted(fate_cells, judged))
    assert (row["unexpected"], row["balanced"]) == (1, False)


def test_as_many_suspects_as_a_lost_stream_makes_are_not_handed_to_every_task(spark: SparkSession) -> None:
    # Given a night on which the acceptance of every delivery is lost, and none of it is small enough for a broadcast
    lives = Lives()
    for n in range(300):
        lives.attempt(lives.post(NOON + n)[0])
    records = records_frame(spark, [each for each in lives.records if each.kind != "accepted"])
    # When each is looked at
    found = delivery_findings(records, suspicious(delivery_rows(records)))
    # Then each is named, and Spark has joined them part by part
    assert {row["delivery_id"] for row in rows_of(found)} == {each.delivery_id for each in lives.deliveries.values()}
    assert spark.conf.get("spark.sql.autoBroadcastJoinThreshold") == "-1"
    assert "Broadcast" not in found._jdf.queryExecution().executedPlan().toString()


def test_what_is_lost_in_the_middle_of_a_life_is_named_by_number(spark: SparkSession) -> None:
    # Given a delivery without two of its attempts
    pushed = Lives()
    (delivery,) = pushed.post()
    pushed.acknowledge(pushed.attempt(pushed.attempt(pushed.attempt(delivery, 503), 503), 202), NOON + 3 * MINUTE)
    del pushed.records[2:4]
    # And a pull message without one of its reservations
    pulled = Lives()
    line = pulled.put(reserved=3)
    for n in range(3):
        line = pulled.reserve(line, NOON + n * 2 * MINUTE)
    del pulled.records[2]
    # And one reserved three times and then deleted, with and without the record of the last reservation
    whole = Lives()
    line = whole.put()
    for n in range(3):
        line = whole.reserve(line, NOON + n * 2 * MINUTE)
    whole.remove(line, NOON + 5 * MINUTE)
    last = as_it_is(whole)
    del last.records[3]
    # Then each is named; the last one by what the end tells
    of_pushed, (of_pulled,), of_whole, (of_last,) = findings(spark, pushed, pulled, whole, last)
    assert of_pushed == [("record_missing", delivery.delivery_id, "no record of version 2, 3 of 4")]
    assert of_pulled[::2] == ("record_missing", "no record of reservation 5 of 6")
    assert of_whole == []
    assert of_last[::2] == ("record_missing", "no record of reservation 3 of 3")


def test_a_jump_in_the_numbers_of_attempts_is_named(spark: SparkSession) -> None:
    # Given three attempts with consecutive versions, of which the last says that it was the fifth, or the second
    whole = Lives()
    (delivery,) = whole.post()
    whole.attempt(whole.attempt(whole.attempt(delivery, 503), 503))
    jumped, twice = as_it_is(whole), as_it_is(whole)
    jumped.records[3] = replace(whole.records[3], attempt=5)
    twice.records[3] = replace(whole.records[3], attempt=2)
    # Then both are named
    assert findings(spark, whole, jumped, twice) == [
        [],
        [("record_missing", delivery.delivery_id, "no record of attempt 3, 4 of 5")],
        [("attempts_differ", delivery.delivery_id, "3 attempts, numbered 1, 2")],
    ]


def test_a_delivery_that_goes_on_after_its_end_is_named(spark: SparkSession) -> None:
    # Given a delivery that was recorded as delivered by two attempts (which the hub's own rules rule out)
    taken = Lives()
    taken.attempt(taken.attempt(taken.post()[0]), at=NOON + 5_000)
    # And ones that ended twice, and went on
    lives = Lives()
    (twice,) = lives.post()
    cancelled = lives.close(twice, "cancelled", NOON + 1_000)
    lives.close(cancelled, "expired", NOON + 2_000)
    (on,) = lives.post()
    lives.attempt(lives.close(on, "expired", NOON + 1_000), 503, at=NOON + 2_000)
    # And two records of one id that differ
    differ = Lives()
    differ.attempt(differ.post()[0], 503)
    differ.records.append(replace(differ.records[1], status_code=500))
    # And a suspicious delivery of the same message as a good one, which was acknowledged before its answer came
    one_of_two = Lives()
    sound, broken = one_of_two.post(subscribers=("s0", "s1"))
    one_of_two.answer_late(one_of_two.acknowledge(sound, NOON + 10, 1), sound, at=NOON + 90)
    one_of_two.attempt(one_of_two.attempt(broken, 503))
    del one_of_two.records[3]
    # And attempts that were under way when something else ended their deliveries
    for state, status in (("cancelled", 200), ("expired", 503)):
        (under_way,) = one_of_two.post()
        one_of_two.answer_late(one_of_two.close(under_way, state, NOON + 10), under_way, at=NOON + 90, status=status)
    # Then each is named, the first by both attempts, and no other
    of_taken, of_lives, of_differ, of_one = findings(spark, taken, lives, differ, one_of_two)
    both = "attempt 1 at 2026-11-18 12:00:00.100; attempt 2 at 2026-11-18 12:00:05.100"
    assert [each[::2] for each in of_taken] == [("delivered_twice", both)]
    assert [each[:2] for each in of_lives] == [
        ("settled_twice", twice.delivery_id),
        ("went_on_after_end", on.delivery_id),
    ]
    assert [each[0] for each in of_differ] == ["conflicting_records"]
    assert [each[1] for each in of_one] == [broken.delivery_id]


def test_what_a_person_asked_for_contradicts_nothing(spark: SparkSession) -> None:
    # Given deliveries that were given up, delivered or are waiting, each resent with and without success, and one owed
    # later
    lives = Lives()
    (given_up,) = lives.post()
    for _ in range(3):
        given_up = lives.attempt(given_up, 503)
    lives.resend(lives.resend(given_up, 503, at=NOON + HOUR), 200, at=NOON + 2 * HOUR)
    (arrived,) = lives.post()
    lives.resend(lives.resend(lives.attempt(arrived), 200, at=NOON + HOUR), 503, at=NOON + 2 * HOUR)
    (waits,) = lives.post()
    lives.attempt(lives.resend(lives.attempt(waits, 503), 503, at=NOON + 1_000))
    (elsewhere,) = lives.post()
    later = lives.add(elsewhere, "s9", at=NOON + HOUR)
    lives.attempt(later)
    lives.attempt(elsewhere)
    # But an automatic attempt after a successful manual try
    went_on = as_it_is(lives)
    went_on.attempt(replace(lives.deliveries[waits.delivery_id], version=9), 503, at=NOON + DAY)
    # Then there are no findings but of the last, all have arrived, and the message that was owed later counts once
    nothing, of_last = findings(spark, lives, went_on)
    assert nothing == []
    assert "settled_twice" in {each[0] for each in of_last}
    stands = standings(spark, lives, NOON + DAY)
    assert len(stands) == 5
    assert set(stands.values()) == {"delivered"}
    rows = rows_of(delivery_rows(records_frame(spark, lives.records)))
    assert sum(row["leads_message"] for row in rows) == 4


def test_what_was_taken_out_of_the_table_before_its_time_is_no_expiry(spark: SparkSession) -> None:
    # Given deliveries whose records say that they expired, at some time before or after that of their messages
    lives = Lives()
    early, soon, later = (lives.post()[0] for _ in range(3))
    for each, by in ((early, HOUR), (soon, MINUTE // 2), (later, -HOUR)):
        lives.close(each, "expired", at=each.expires_at - by)
    # When expiries are checked, then the one that is too early is listed
    named = [row["delivery_id"] for row in rows_of(expiry_findings(records_frame(spark, lives.records)))]
    assert named == [early.delivery_id]


def test_order_within_a_key(spark: SparkSession) -> None:
    # Given three messages of a key, delivered in some orders; and the same without a key
    keyed: list[dict[str, Any]] = []
    overtaken: list[str] = []
    for sequences, wrong in (((1, 2, 3), ()), ((1, 3, 2), (2,)), ((3, 1, 2), (1, 2))):
        key = f"customer {sequences}"
        lives = Lives(posted=100 * len(keyed))
        deliveries = {n: lives.post()[0] for n in (1, 2, 3)}
        for place, sequence in enumerate(sequences):
            lives.attempt(deliveries[sequence], at=NOON + place * 1_000)
        for each in lives.records:
            keyed.append({**each.as_fields(), "sequence": int(each.message_id), "order_key": key})
            keyed.append({**each.as_fields(), "project": "unordered", "sequence": int(each.message_id)})
        overtaken += [deliveries[n].message_id for n in wrong]
    # When checked, then those that were overtaken are listed, and without a key no order is promised
    found = rows_of(order_findings(small_table(spark, keyed, CURATED)))
    assert sorted((row["project"], row["message_id"]) for row in found) == [("p1", each) for each in sorted(overtaken)]


def test_a_copy_that_comes_again_after_it_was_consumed_has_a_life_of_its_own(spark: SparkSession) -> None:
    # Given a copy in a pull queue that was consumed, came again under the same id, and was consumed again
    lives = Lives()
    first = lives.put(NOON, entry="aaaaaaaa")
    lives.remove(lives.reserve(first, NOON + 1_000), NOON + 2_000)
    again = lives.put_again(first, NOON + MINUTE, "bbbbbbbb")
    held = lives.reserve(again, NOON + MINUTE + 1_000)
    lives.remove(held, NOON + MINUTE + 2_000)
    stays = [f"{first.message.message_id}~{each}.line" for each in ("aaaaaaaa", "bbbbbbbb")]
    # Then both ended
    assert standings(spark, lives, NOON + HOUR) == dict.fromkeys(stays, "delivered")
    assert {row["subscriber_id"] for row in rows_of(delivery_rows(records_frame(spark, lives.records)))} == {"line"}
    # And the same without the record of its second acceptance, and one where it is consumed twice
    lost = Lives(
        records=[each for each in lives.records if each.record_id.split("/")[1:4:2] != [stays[1][:-5], "accepted"]]
    )
    consumed_twice = as_it_is(lives)
    consumed_twice.remove(held, NOON + MINUTE + 3_000)
    # Then nothing contradicts anything in the first, and that stay is named in the others
    nothing, of_lost, of_twice = findings(spark, lives, lost, consumed_twice)
    assert nothing == []
    assert [each[:2] for each in of_lost] == [("not_owed", stays[1])]
    assert {each[:2] for each in of_twice} == {
        ("conflicting_records", stays[1]),
        ("delivered_twice", stays[1]),
    }


def test_what_is_missed_late_or_never(spark: SparkSession) -> None:
    # Given a message that its consumer gave back and consumed later, and one that was consumed at once
    lives = Lives()
    given_back, consumed = lives.put(), lives.put()
    reserved = lives.reserve(lives.release(lives.reserve(given_back, NOON + 5), NOON + 9), NOON + 20)
    lives.remove(reserved, NOON + 30)
    lives.remove(lives.reserve(consumed, NOON + 5), NOON + 9)
    # When the records of the return and of the second one's end are lost
    lives.records = [each for each in lives.records if each.kind != "released"][:-1]
    # Then nothing is wrong with the first: a return has no number
    assert findings(spark, lives) == [[]]
    # And the second one's end is missed when DynamoDB must have removed it: nothing tells when it left
    of_second = f"{consumed.message.message_id}.line"
    end = consumed.message.expires_at
    assert standings(spark, lives, end + 4 * DAY)[of_second] == "expired"
    assert standings(spark, lives, end + 4 * DAY + 2 * HOUR)[of_second] == "missing"
