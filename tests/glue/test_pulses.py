"""A stream that is silent is told from senders that are, however few records there are."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from glue_jobs.delivery_report.proof.night import prove
from glue_jobs.delivery_report.proof.pulses import EVERY, Gap, gaps, recorded_pulses
from glue_jobs.delivery_report.records.compaction import read_records
from glue_jobs.delivery_report.run.progress import Steps
from glue_jobs.delivery_report.storage.layout import Layout
from pyspark.sql import SparkSession
from tests.glue.frames import rows_of
from tests.glue.lives import NOON, Lives
from tests.glue.runs import LAST_DAY, asked
from tests.glue.table_pages import TablePages

from pushhub.engine.model.pulse import Pulse

START = datetime(2026, 11, 12, tzinfo=UTC)
END = datetime(2026, 11, 19, tzinfo=UTC)
HOUR = timedelta(hours=1)
TABLES = ("messages", "lines", "topics")


def times(first: datetime = START, last: datetime = END) -> set[datetime]:
    return {first + n * EVERY for n in range(round((last - first) / EVERY))}


def found(
    recorded: dict[str, set[datetime]],
    in_tables: dict[str, set[datetime]] | None,
    *,
    until: datetime = END - HOUR,
    now: datetime = END,
) -> list[tuple[str, str, str, bool]]:
    told = gaps(recorded, in_tables, since=START, until=until, now=now)
    return [(each.table, f"{each.start:%d %H:%M}", f"{each.stop:%d %H:%M}", each.lost) for each in told]


def test_nothing_is_named_while_every_pulse_comes_out() -> None:
    # Given a week of pulses in every stream, all recorded; the last of them on their way
    all_sent = dict.fromkeys(TABLES, times())
    came_out = dict.fromkeys(TABLES, times(last=END - HOUR))
    assert found(came_out, all_sent) == []
    assert found(came_out, None) == []
    # And records without any pulse, with and without tables to compare with
    assert found({}, None) == []
    assert found({}, {name: set() for name in TABLES}) == []


def test_a_stack_that_began_in_the_middle_of_a_day_lacks_nothing_before() -> None:
    begun = dict.fromkeys(TABLES, times(first=START + 37 * HOUR + EVERY))
    assert found(begun, begun) == []
    assert found(begun, None) == []


def test_a_lost_hour_of_one_stream_beside_healthy_ones_is_named() -> None:
    # Given a stream of which an hour is lost, across midnight, and two that are whole
    gone = START + 24 * HOUR - timedelta(minutes=30)
    recorded = dict.fromkeys(TABLES, times()) | {"lines": times() - times(gone, gone + HOUR)}
    # Then it is named, whether the tables can be read or not, and in years to come as well
    named = [("lines", "12 23:30", "13 00:30", True)]
    assert found(recorded, dict.fromkeys(TABLES, times())) == named
    assert found(recorded, None) == named
    late = END + timedelta(days=400)
    assert found(recorded, {name: set() for name in TABLES}, now=late) == named


def test_the_same_hour_lost_on_two_days_is_named_twice() -> None:
    lost = times(START + 9 * HOUR, START + 10 * HOUR) | times(START + 33 * HOUR, START + 34 * HOUR)
    recorded = dict.fromkeys(TABLES, times()) | {"messages": times() - lost}
    assert found(recorded, dict.fromkeys(TABLES, times())) == [
        ("messages", "12 09:00", "12 10:00", True),
        ("messages", "13 09:00", "13 10:00", True),
    ]


def test_records_that_stop_for_good_are_named_within_the_hour() -> None:
    # Given all streams stopping at once on the fourth day, or before their first record
    sent = dict.fromkeys(TABLES, times())
    stopped = START + 80 * HOUR
    recorded = dict.fromkeys(TABLES, times(last=stopped))
    assert found(recorded, sent) == [(each, "15 08:00", "18 23:00", True) for each in sorted(TABLES)]
    assert found({}, sent) == [(each, "12 00:00", "18 23:00", True) for each in sorted(TABLES)]
    # And a stream that has never said anything, beside two that do
    assert found({each: times() for each in TABLES[:2]}, sent) == [("topics", "12 00:00", "18 23:00", True)]


def test_a_single_lost_pulse_is_named() -> None:
    recorded = dict.fromkeys(TABLES, times()) | {"topics": times() - {START + 5 * HOUR}}
    assert found(recorded, dict.fromkeys(TABLES, times())) == [("topics", "12 05:00", "12 05:05", True)]


def test_a_pulse_that_may_be_on_its_way_is_not_missed() -> None:
    # Given a report without grace, ten minutes after a pulse that is in its table only
    sent = [START + EVERY * n for n in range(4)]
    recorded = {name: {each for each in sent if each != sent[-1]} for name in TABLES}
    in_tables = {name: set(sent) for name in TABLES}
    soon = sent[-1] + timedelta(minutes=10)
    # Then nobody misses it yet, and somebody does a moment later
    assert gaps(recorded, in_tables, since=START, until=soon, now=soon) == []
    late = soon + timedelta(seconds=1)
    assert {each.table for each in gaps(recorded, in_tables, since=START, until=late, now=late)} == set(TABLES)


def test_while_the_hub_stood_still_nothing_is_lost() -> None:
    # Given twenty minutes in which nobody sent a pulse, next to half an hour whose records are lost in one stream
    pause = START + 30 * HOUR
    sent = times() - times(pause, pause + 4 * EVERY)
    recorded = dict.fromkeys(TABLES, sent) | {"lines": sent - times(pause, pause + 10 * EVERY)}
    # Then the pause is told apart from the loss that follows it
    assert found(recorded, dict.fromkeys(TABLES, sent)) == [
        ("lines", "13 06:00", "13 06:20", False),
        ("lines", "13 06:20", "13 06:50", True),
        ("messages", "13 06:00", "13 06:20", False),
        ("topics", "13 06:00", "13 06:20", False),
    ]
    # And it stays a pause when the pulses have long gone from the tables
    late = END + timedelta(days=400)
    told = found(dict.fromkeys(TABLES, sent), {name: set() for name in TABLES}, now=late)
    assert {each[3] for each in told} == {False}
    # And without tables nobody can tell: it may be a loss
    assert {each[3] for each in found(dict.fromkeys(TABLES, sent), None)} == {True}


def test_a_hub_that_sent_pulses_before_and_sends_none_is_noticed() -> None:
    # Given days without any pulse, or whose first pulse comes late
    def told(recorded: dict[str, set[datetime]], in_tables: dict[str, set[datetime]] | None) -> list[tuple[str, bool]]:
        of_before = gaps(recorded, in_tables, since=START, until=END, now=END + HOUR, before=lambda: {"m", "l"})
        return [(f"{each.table} {each.start:%d %H:%M} {each.stop:%d %H:%M}", each.lost) for each in of_before]

    # When pulses of the time before are known, Then they are missed from the beginning
    assert told({}, {"m": set()}) == [("m 12 00:00 19 00:00", False)]
    late = {"m": times(first=START + 50 * HOUR)}
    assert told(late, late) == [("m 12 00:00 14 02:00", False)]
    # And where no table can be read, nobody can tell that they were not sent
    assert told({}, None) == [("l 12 00:00 19 00:00", True), ("m 12 00:00 19 00:00", True)]


def test_pulses_are_known_by_their_records() -> None:
    # Given what the records function writes, of two tables
    sent = [Pulse(table=name, at=NOON) for name in ("stack-a-Messages", "lines")]
    # Then the report reads the same
    noon = datetime.fromtimestamp(NOON / 1000, UTC)
    assert recorded_pulses(str(each.as_fields()["record_id"]) for each in sent) == {
        "stack-a-Messages": {noon},
        "lines": {noon},
    }
    assert Gap(table="lines", start=noon, stop=noon + HOUR, lost=True).count == 12


def written(folder: Path, pulses: Iterable[Pulse]) -> None:
    """Objects as the records function makes them, one for each pulse."""
    for number, each in enumerate(pulses):
        day, hour = each.hour
        place = folder / "records" / f"dt={day}" / f"hour={hour}"
        place.mkdir(parents=True, exist_ok=True)
        line = json.dumps(each.as_fields()) + "\n"
        (place / f"{each.table}-{number}-{number}-1.json.gz").write_bytes(gzip.compress(line.encode()))


def test_a_night_names_the_hour_of_a_quiet_hub_that_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    # Given a hub with one message all day, and the pulses of two hours in two tables
    lives = Lives()
    lives.attempt(lives.post(NOON)[0])
    lives.write(tmp_path / "records")
    pulses = [Pulse(table=name, at=NOON - n * 300_000) for name in ("m", "l") for n in range(24)]
    written(tmp_path, pulses)
    items = {name: [pulse_item(each) for each in pulses if each.table == name] for name in ("m", "l")}
    client = TablePages(items | {"t": []})
    arguments = replace(asked(tmp_path, now="2026-11-18T12:59:00"), tables={"messages": "m", "lines": "l"})

    def night() -> Any:
        return prove(spark, arguments, Layout(arguments.output, "report"), Steps(), client=lambda: client)

    # When all is there, Then nothing is found, and pulses are no records
    proof = night()
    assert rows_of(proof.findings) == []
    assert [(each.used, each.lines, len(each.pulses)) for each in proof.intakes] == [(2, 2, 48)]
    records = rows_of(read_records(spark, Layout(arguments.output, "report"), LAST_DAY))
    assert {row["kind"] for row in records} == {"accepted", "attempt"}
    # When an hour of one stream is lost before anybody has read it, Then it is named with its stream
    for each in (tmp_path / "records").glob("dt=*/hour=10/l-*"):
        each.unlink()
    (tmp_path / "out/curated/records/dt=2026-11-18/_manifest.json").unlink()
    [finding] = rows_of(night().findings)
    assert (finding["severity"], finding["finding"], finding["hour"]) == (
        "breach",
        "pulse_missing",
        datetime(2026, 11, 18, 10, tzinfo=UTC).replace(tzinfo=finding["hour"].tzinfo),
    )
    assert finding["detail"].startswith("stream of l: 11 pulses between 2026-11-18 10:05 and 2026-11-18 11:00 left no")
    # And an unchanged day is read from its manifest
    assert len(rows_of(night().findings)) == 1


def test_a_gap_of_a_night_that_was_missed_is_named(spark: SparkSession, tmp_path: Path) -> None:
    # Given a hub whose streams are well, and a report each night over the day before
    day = 86_400_000
    pulses = [Pulse(table=name, at=NOON + n * day + m * 300_000) for name in "ml" for n in range(6) for m in range(6)]
    items = {name: [pulse_item(each) for each in pulses if each.table == name] for name in "ml"}

    def night(number: int) -> list[str]:
        last = LAST_DAY + timedelta(days=number)
        now = f"{last + timedelta(days=1)}T02:00:00"
        arguments = replace(asked(tmp_path, first=last, last=last, now=now), tables={"messages": "m", "lines": "l"})
        client = TablePages(items | {"t": []})
        layout = Layout(arguments.output, "report")
        found = rows_of(prove(spark, arguments, layout, Steps(), client=lambda: client).findings)
        return [row["detail"] for row in found if row["finding"] == "pulse_missing"]

    # When some nights are missed, and on one of their days a pulse of one stream left no record
    for number in range(6):
        lives = Lives(posted=100 * number)
        lives.attempt(lives.post(NOON + number * day)[0])
        lives.write(tmp_path / "records")
        today = [each for each in pulses if 0 <= each.at - NOON - number * day < day]
        written(tmp_path, [each for each in today if each.table != "l" or each.at != NOON + 3 * day])
        if number == 0:
            assert night(number) == []
    # Then the next one names it
    [named] = night(5)
    assert named.startswith("stream of l: 1 pulse between 2026-11-21 12:00 and 2026-11-21 12:05")


def pulse_item(pulse: Pulse) -> dict[str, Any]:
    return {
        "pk": {"S": f"pulse#{pulse.at}"},
        "sk": {"S": "pulse"},
        "kind": {"S": "pulse"},
        "accepted_at": {"N": str(pulse.at)},
    }
