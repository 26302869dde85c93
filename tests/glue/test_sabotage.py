"""Records are dropped, duplicated, truncated and corrupted: the proof lists exactly what is wrong, and nothing else."""

from __future__ import annotations

import gzip
import shutil
from datetime import date
from pathlib import Path

from glue_jobs.delivery_report.storage.days import read_replaced
from glue_jobs.delivery_report.storage.schema import CURATED
from pyspark.sql import SparkSession
from tests.glue.frames import rows_of
from tests.glue.lives import HOUR, NOON, Lives, lines_of
from tests.glue.runs import asked, proved


def twenty(hour: int = 0) -> Lives:
    """Twenty messages of an hour to two subscribers; some deliveries fail first, some are acknowledged, one is
    exhausted.
    """
    lives, at = Lives(posted=500 * hour), NOON + hour * HOUR
    for n in range(20):
        for opened in lives.post(at + n * 1_000, subscribers=("s0", "s1")):
            delivery = lives.attempt(opened, 503) if n % 5 == 1 else opened
            if n % 5 == 2:
                lives.acknowledge(lives.attempt(delivery, 202), at + 30_000)
            elif n == 3:
                lives.attempt(lives.attempt(lives.attempt(delivery, 500), 500), 500)
            else:
                lives.attempt(delivery)
    return lives


def holder(files: list[Path], record_id: str) -> Path:
    """The object that holds a record."""
    (file,) = [each for each in files if record_id in gzip.decompress(each.read_bytes()).decode()]
    return file


def test_whole_records_prove_whole(spark: SparkSession, tmp_path: Path) -> None:
    lives = twenty()
    lives.write(tmp_path / "records", batch=25)
    found = proved(spark, asked(tmp_path))
    assert found.findings == []
    assert found.balanced
    assert (found.sums["messages"], found.sums["owed"]) == (20, 40)
    # and every delivery has the state that the hub has
    assert {state: found.sums[state] for state in lives.states()} == dict(lives.states())
    assert found.sums["missing"] == found.sums["unexpected"] == 0


def test_what_is_taken_or_there_twice_is_named_by_its_deliveries_and_objects(
    spark: SparkSession, tmp_path: Path
) -> None:
    dropped, unaccepted, unended, twice = (twenty(hour) for hour in range(4))
    # Given an object that lacks an attempt in the middle of a life
    (victim,) = [
        each
        for each in dropped.records
        if each.kind == "attempt" and each.version == 1 and each.delivery_id == f"{10**18 + 2}.s1"
    ]
    damaged = holder(dropped.write(tmp_path / "records", batch=25), victim.record_id)
    lines = gzip.decompress(damaged.read_bytes()).decode().splitlines(keepends=True)
    kept = [line for line in lines if victim.record_id not in line]
    damaged.write_bytes(gzip.compress("".join(kept).encode()))
    # And an hour with each record in an object of its own, of which that of an acceptance is gone
    message_id = 10**18 + 500 + 5
    holder(unaccepted.write(tmp_path / "records", batch=1), f"uid-orders/{message_id}/-/accepted/1").unlink()
    # And one whose last record never arrived
    lost = unended.records.pop()
    unended.write(tmp_path / "records")
    # And one of whose two objects one lies there under another name, too
    first, second = twice.write(tmp_path / "records", batch=50)
    copy = first.with_name(first.name.replace("messages-1-", "messages-0-"))
    shutil.copy(first, copy)
    # When the night looks at them hours later
    arguments = asked(tmp_path, now="2026-11-18T18:00:00")
    found = proved(spark, arguments)
    # Then all of it is listed, and nothing else
    assert found.named == [
        ("duplicate_records", ""),
        ("never_accepted", f"{message_id}.s0"),
        ("never_accepted", f"{message_id}.s1"),
        ("overdue", lost.delivery_id),
        ("record_missing", victim.delivery_id),
        ("unusable_records", ""),
    ]
    told = {row["finding"]: row for row in found.findings}
    # With the number of the record that is missing, and the object's of those that are
    assert "no record of version 1 of 2" in told["record_missing"]["detail"]
    assert told["unusable_records"]["detail"] == (
        f"dt=2026-11-18/{damaged.parent.name}/{damaged.name}: {len(kept)} of {len(kept) + 1} records could be used"
    )
    # With the objects that share records, which breaks nothing
    shared = told["duplicate_records"]
    assert shared["severity"] == "notice"
    assert "50 records lie in each of" in shared["detail"]
    assert first.name in shared["detail"]
    assert copy.name in shared["detail"]
    assert second.name not in shared["detail"]
    assert found.breaches == 5
    # And the hours do not balance
    assert (found.sums["unexpected"], found.sums["missing"], found.balanced) == (2, 1, False)
    # And the compacted day holds each record once
    rows = rows_of(read_replaced(spark, f"{arguments.output}/curated/records", CURATED, arguments.date_from))
    of_all = [each.record_id for lives in (dropped, unaccepted, unended, twice) for each in lives.records]
    gone = {victim.record_id, f"uid-orders/{message_id}/-/accepted/1"}
    assert sorted(row["record_id"] for row in rows) == sorted({*of_all} - gone)


def test_corrupt_objects_are_named_with_what_could_be_read(spark: SparkSession, tmp_path: Path) -> None:
    lives = twenty()
    # Given an object that is sound, and four with whole lives, each damaged in a way of its own
    lives.write(tmp_path / "records")
    damaged: dict[str, Path] = {}
    for number, how in enumerate(("truncated", "flipped", "empty", "not gzip"), start=1):
        spoiled = Lives(posted=500 * number)
        for _ in range(300):
            spoiled.attempt(spoiled.post(NOON + number * HOUR)[0], name=str(spoiled.posted) * 9)
        (file,) = spoiled.write(tmp_path / "records")
        content = file.read_bytes()
        half = len(content) // 2
        flipped = bytes(255 - each for each in content[half : half + 64])
        file.write_bytes(
            {
                "truncated": content[:half],
                "flipped": content[:half] + flipped + content[half + 64 :],
                "empty": b"",
                "not gzip": lines_of(spoiled.records).encode(),
            }[how]
        )
        damaged[how] = file
    # When
    found = proved(spark, asked(tmp_path, now="2026-11-18T18:00:00"))
    # Then each object is listed, with the number of usable records, and all others are complete
    rows = [row for row in found.findings if row["finding"] == "unusable_records"]
    assert {row["severity"] for row in rows} == {"breach"}
    assert len(rows) == len(damaged)
    for file in damaged.values():
        (detail,) = [row["detail"] for row in rows if f"{file.parent.name}/{file.name}: " in row["detail"]]
        assert " of 600 records could be used" in detail
        assert 0 <= int(detail.split(": ")[1].split()[0]) < 600
    named = {int(row["message_id"]) for row in found.findings if row["message_id"]}
    assert all(each > 10**18 + 500 for each in named)
    assert found.sums["messages"] >= 20


def test_late_records_are_taken_in_by_running_again(spark: SparkSession, tmp_path: Path) -> None:
    lives = twenty()
    # Given a day reported while the object with its last records was still missing
    files = lives.write(tmp_path / "records", batch=60)
    late = files[-1].read_bytes()
    files[-1].unlink()
    before = proved(spark, asked(tmp_path))
    assert not before.balanced
    # When it has arrived and the day is reported again
    files[-1].write_bytes(late)
    again = proved(spark, asked(tmp_path))
    # Then everything is there, once
    assert (again.findings, again.sums["owed"]) == ([], 40)


def test_a_life_over_midnight_needs_both_days(spark: SparkSession, tmp_path: Path) -> None:
    # Given a message accepted before midnight and delivered after it
    lives = Lives()
    (delivery,) = lives.post(NOON + 12 * HOUR - 1_000)
    lives.attempt(lives.attempt(delivery, 503))
    lives.write(tmp_path / "records")
    both = (date(2026, 11, 18), date(2026, 11, 19))
    # When both days are reported, it is delivered
    assert proved(spark, asked(tmp_path, first=both[0], last=both[1], now="2026-11-19T12:00:00")).sums["delivered"] == 1
    # When only the first is, the second day's records still count, because it was compacted before
    assert proved(spark, asked(tmp_path, now="2026-11-19T12:00:00")).sums["delivered"] == 1
    # When only the second is, the message is neither counted in it nor missing
    second = proved(spark, asked(tmp_path, first=both[1], last=both[1], now="2026-11-19T12:00:00"))
    assert (second.findings, second.balance) == ([], [])


def test_a_first_day_alone_judges_by_what_it_can_know(spark: SparkSession, tmp_path: Path) -> None:
    # Given a delivery whose next try falls after the last compacted day
    lives = Lives()
    (delivery,) = lives.post(NOON + 12 * HOUR - 10_000)
    lives.attempt(delivery, 503)
    lives.write(tmp_path / "records")
    # When the day is judged days later, although the next day's records are not there
    found = proved(spark, asked(tmp_path, now="2026-11-25T12:00:00"))
    # Then the delivery waits, as it did when the day ended
    assert (found.findings, found.sums["retrying"]) == ([], 1)
