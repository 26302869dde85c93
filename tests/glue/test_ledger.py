"""The tables are compared with the records: even a message without a single record is noticed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from glue_jobs.delivery_report.proof.holdings import entries
from glue_jobs.delivery_report.proof.ledger import COMMIT_BITS
from glue_jobs.delivery_report.proof.night import prove
from glue_jobs.delivery_report.run.arguments import BadInput, parse
from glue_jobs.delivery_report.run.progress import Steps
from glue_jobs.delivery_report.storage.layout import Layout
from pyspark.sql import SparkSession
from tests.glue.frames import kept_deliveries, rows_of
from tests.glue.lives import HOUR, MINUTE, NOON, Lives
from tests.glue.runs import asked
from tests.glue.table_pages import TablePages

from pushhub.engine.model.record import DeliveryRecord
from pushhub.notifications.model.topic import position_at

TABLES = {"messages": "m", "lines": "l", "topics": "t"}


def item(record: DeliveryRecord, kind: str = "message") -> dict[str, Any]:
    """The item for a record of acceptance."""
    at = str(round(datetime.fromisoformat(record.accepted_at).timestamp() * 1000))
    keys = {
        "message": (f"{record.project}#{record.queue_uid}#{record.message_id}", "M"),
        "line": (f"{record.project}#{record.queue_uid}#{record.message_id}", "M"),
        "commit": (f"{record.project}#L#p#{record.queue}", f"{(record.sequence or 0) >> COMMIT_BITS:019d}"),
    }
    pk, sk = keys[kind]
    named = {"topic_uid": {"S": record.queue_uid}} if kind == "commit" else {"queue": {"S": record.queue}}
    stay = (record.owed or ("",))[0].partition(".")[0].partition("~")[2]
    if stay:
        named["entry"] = {"S": stay}
    return {"pk": {"S": pk}, "sk": {"S": sk}, "kind": {"S": kind}, "accepted_at": {"N": at}, **named}


def test_a_message_is_known_by_its_own_partition_or_by_its_place_in_one_that_it_shares() -> None:
    # Given a message with a partition of its own, and one of a queue that lists its messages
    lives = Lives()
    lives.post(NOON)
    record = replace(lives.records[0], queue="webhooks/app_1", queue_uid="~app_1")
    shared = item(record) | {"pk": {"S": f"{record.project}#~app_1#3"}, "sk": {"S": record.message_id}}
    client = TablePages({"m": [item(lives.records[0]), shared]})
    # Then both are read as the same message of two queues
    within = {"since": datetime.fromtimestamp(0, UTC), "until": datetime.fromtimestamp(NOON / 1000 + 60, UTC)}
    read = list(entries(client, {"messages": "m"}, segment=0, segments=1, **within))
    assert [(each["queue_uid"], each["id"]) for each in read] == [
        (lives.records[0].queue_uid, record.message_id),
        ("~app_1", record.message_id),
    ]


def found(
    spark: SparkSession, folder: Path, client: TablePages, **changes: Any
) -> list[tuple[str, str, str | None, str]]:
    arguments = replace(asked(folder), tables=TABLES, **changes)
    proof = prove(spark, arguments, Layout(arguments.output, "report"), Steps(), client=lambda: client)
    rows = rows_of(proof.findings)
    return sorted((row["severity"], row["finding"], row["message_id"], row["detail"]) for row in rows)


def test_of_a_message_that_came_twice_into_a_pull_queue_each_stay_is_looked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Given a copy that was consumed, and came a second time under the same id
    lives = Lives()
    first = lives.put(NOON, entry="aaaaaaaa")
    lives.remove(lives.reserve(first, NOON + 1_000), NOON + 2_000)
    lives.put_again(first, NOON + MINUTE, "bbbbbbbb")
    client = TablePages({"m": [], "t": [], "l": [item(lives.records[-1], "line")]})
    lives.write(tmp_path / "whole" / "records")
    assert found(spark, tmp_path / "whole", client) == []
    # When every record of the second stay is lost, Then it is missed
    replace_records(lives, lives.records[:-1]).write(tmp_path / "lost" / "records")
    stay = f"{first.message.message_id}~bbbbbbbb"
    told = f"the table holds what no record tells of: {stay}"
    assert found(spark, tmp_path / "lost", client) == [("breach", "not_recorded", stay, told)]


def test_a_message_of_which_every_record_is_lost_is_named(spark: SparkSession, tmp_path: Path) -> None:
    # Given messages of a push queue and a pull queue, and notifications
    lives = Lives()
    for n in range(12):
        lives.attempt(lives.post(NOON + n)[0])
    lines = [lives.put(NOON + n) for n in range(3)]
    for n in range(3):
        lives.records.append(
            replace(
                lives.records[0],
                record_id=f"t/{n}/-/accepted/1",
                queue="measurements",
                queue_uid="t",
                message_id=f"n{n}",
                dialect="notifications",
                owed=(),
                sequence=position_at(40 + n, 1),
            )
        )
    accepted = [each for each in lives.records if each.kind == "accepted"]
    pushed = [each for each in accepted if each.queue == "orders"]
    noted = [each for each in accepted if each.queue == "measurements"]
    pulled = [each for each in accepted if each.queue == "tasks"]
    client = TablePages(
        {
            "m": [*(item(each) for each in pushed), {**item(pushed[0]), "kind": {"S": "delivery"}}],
            "l": [item(each, "line") for each in pulled],
            "t": [item(each, "commit") for each in noted],
        }
    )
    # When everything is recorded, there are no findings, and no body was read
    lives.write(tmp_path / "records")
    assert found(spark, tmp_path, client) == []
    asked_for = {(each["Select"], each["ProjectionExpression"]) for each in client.asked}
    assert asked_for == {
        ("SPECIFIC_ATTRIBUTES", f"pk, sk, accepted_at, {more}") for more in ("#queue", "#queue, #entry", "#topic_uid")
    }
    # When every record of one is lost, and of seven more of another hour's
    gone = {pushed[3].message_id, lines[1].message.message_id, "n2"}
    kept = [each for each in lives.records if each.message_id not in gone]
    whole = tmp_path / "lost"
    replace_records(lives, kept).write(whole / "records")
    # Then each is listed, although it has no record
    told = "the table holds what no record tells of: "
    assert found(spark, whole, client) == [
        ("breach", "not_recorded", pushed[3].message_id, told + pushed[3].message_id),
        ("breach", "not_recorded", lines[1].message.message_id, told + lines[1].message.message_id),
        ("breach", "not_recorded", "42", told + "42"),
    ]


def test_a_lost_end_of_a_pulled_message_is_named_a_night_late_at_most(spark: SparkSession, tmp_path: Path) -> None:
    # Given a message that was consumed without a record of it, one that still waits, one whose end is on its way, and
    # one that is carried over from days ago and was consumed without a record, too
    lives = Lives()
    old, lost, waits, late = (lives.put(at) for at in (NOON - 47 * HOUR, NOON, NOON + 1_000, NOON + 2_000))
    lives.reserve(lost, NOON + 2_000)
    lives.write(tmp_path / "records")
    accepted = {each.message_id: each for each in lives.records if each.kind == "accepted"}
    there = [item(accepted[each.message.message_id], "line") for each in (waits,)]
    client = TablePages({"m": [], "t": [], "l": there})

    def night(now: str, first: int, last: int) -> dict[str, Any]:
        arguments = asked(tmp_path, now=now, first=date(2026, 11, first), last=date(2026, 11, last))
        arguments = replace(arguments, tables=TABLES)
        proof = prove(spark, arguments, Layout(arguments.output, "report"), Steps(), client=lambda: client)
        named = {row["message_id"]: row for row in rows_of(proof.findings)}
        standings = {row["message_id"]: row["standing"] for row in kept_deliveries(arguments)}
        return {"named": named, "standings": standings}

    # When the first night looks, Then nobody can tell them from ends whose record is on its way
    assert night("2026-11-18T14:00:00", 16, 18)["named"] == {}
    # And one of these comes
    lives.records.clear()
    lives.remove(late, NOON + 3 * HOUR)
    lives.write(tmp_path / "more")
    for file in (tmp_path / "more").rglob("*.json.gz"):
        target = tmp_path / "records" / file.relative_to(tmp_path / "more").parent / f"late-{file.name}"
        target.parent.mkdir(parents=True, exist_ok=True)
        file.rename(target)
    # When the next night looks, Then what is lost is named, and counts as missing
    told = night("2026-11-19T01:30:00", 17, 19)
    ids = {"old": old.message.message_id, "lost": lost.message.message_id}
    assert {name: row["finding"] for name, row in told["named"].items()} == dict.fromkeys(
        ids.values(), "record_missing"
    )
    detail = "the table has not had it since 2026-11-18 14:00:00 at the latest, and no record tells of its end"
    assert told["named"][ids["lost"]]["detail"] == detail
    assert told["standings"] == {
        ids["lost"]: "missing",
        waits.message.message_id: "pending",
        late.message.message_id: "cancelled",
    }


def replace_records(lives: Lives, records: list[DeliveryRecord]) -> Lives:
    return replace(lives, records=records)


def test_when_records_stop_all_that_was_accepted_since_is_missed(spark: SparkSession, tmp_path: Path) -> None:
    # Given two busy hours, after which records stop while messages are still accepted
    lives = Lives()
    for n in range(200):
        lives.attempt(lives.post(NOON - 4 * HOUR + n * MINUTE)[0])
    cut = NOON - 2 * HOUR
    items = [item(each) for each in lives.records if each.kind == "accepted"]
    lives.records = [each for each in lives.records if datetime.fromisoformat(each.at).timestamp() * 1000 < cut]
    lives.write(tmp_path / "records")
    # When judged at two o'clock
    rows = found(spark, tmp_path, TablePages({"m": items, "l": [], "t": []}))
    # Then each hour since is listed with its number of messages
    assert [(severity, finding) for severity, finding, _, _ in rows] == [("breach", "not_recorded")] * 2
    assert sorted(detail.rsplit(" and ")[-1] for *_, detail in rows) == ["15 more", "55 more"]


def test_tables_that_cannot_be_read_are_no_proof(spark: SparkSession, tmp_path: Path) -> None:
    lives = Lives()
    lives.attempt(lives.post()[0])
    lives.write(tmp_path / "records")
    rows = found(spark, tmp_path, TablePages({"m": [], "l": [], "t": []}, refuse="l"))
    assert [row[:2] for row in rows] == [("breach", "not_compared")]
    assert "AccessDeniedException" in rows[0][3]


def test_positions_are_read_as_the_hub_makes_them() -> None:
    assert position_at(77, 100) >> COMMIT_BITS == 77


def test_unknown_tables_are_refused() -> None:
    today = date(2026, 11, 18)
    now = datetime(2026, 11, 18, tzinfo=UTC)
    given = parse(["--input", "i", "--output", "o", "--tables", "messages=a,topics=b"], today=today, now=now)
    assert given.tables == {"messages": "a", "topics": "b"}
    with pytest.raises(BadInput, match="no such tables: queues"):
        parse(["--input", "i", "--output", "o", "--tables", "queues=a"], today=today, now=now)
