"""Open deliveries are looked up in the table: what waits there is not missing, and what went on without a record is."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from glue_jobs.delivery_report.figures.balance import balance
from glue_jobs.delivery_report.figures.traffic import fate_cells
from glue_jobs.delivery_report.proof import sightings
from glue_jobs.delivery_report.proof.night import prove
from glue_jobs.delivery_report.proof.sightings import Open, Sight, changed_at, read_items, sight_of
from glue_jobs.delivery_report.run.progress import Steps
from glue_jobs.delivery_report.storage.layout import Layout
from pyspark.sql import SparkSession
from tests.glue.frames import Counted, Kept, kept_deliveries, queried, rows_of
from tests.glue.lives import DAY, HOUR, MINUTE, NOON, POLICY, Lives
from tests.glue.runs import asked
from tests.glue.table_pages import TablePages

from pushhub.base.verdict import Answer, Verdict
from pushhub.engine.model.delivery import (
    Delivery,
    DeliveryState,
    after_asked_try,
    ask_for_try,
    close,
    resume,
    without_asked_try,
    without_target,
)
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.store._delivery_items import encode_delivery
from pushhub.engine.store._keys import delivery_key, message_key

GRACE = timedelta(hours=1)
NOW = NOON + 6 * HOUR


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def known(delivery: Delivery, version: int | None = None, *, due: bool = True) -> Open:
    """A delivery as records have it, up to a version."""
    return Open(
        project=delivery.project,
        queue=delivery.queue,
        queue_uid=delivery.queue_uid,
        message_id=delivery.message_id,
        delivery_id=delivery.delivery_id,
        hour="2026-11-18T12:00:00Z",
        version=delivery.version if version is None else version,
        expires_ms=delivery.expires_at,
        due=due,
    )


def message_item(delivery: Delivery, **more: Any) -> dict[str, Any]:
    return {**message_key(delivery.key.message), "accepted_at": {"N": str(delivery.accepted_at)}, **more}


def seen(wanted: Open, *items: dict[str, Any], now: int = NOW, as_of: int | None = None) -> Sight:
    held = {(each["pk"]["S"], each["sk"]["S"]): each for each in items}
    return sight_of(wanted, held, as_of=at(now if as_of is None else as_of), now=at(now), grace=GRACE)


def test_a_delivery_that_the_table_has_as_its_last_record_left_it_waits() -> None:
    # Given one that failed once, and one that was never tried
    lives = Lives()
    (untried,) = lives.post()
    tried = lives.attempt(lives.post()[0], 503)
    # Then both wait: the first by its own item, the other by its message's
    assert seen(known(tried), encode_delivery(tried)) is Sight.WAITS
    assert seen(known(untried), message_item(untried)) is Sight.WAITS


def test_a_delivery_of_which_the_table_knows_less_than_the_records_is_gone() -> None:
    lives = Lives()
    (untried,) = lives.post()
    tried = lives.attempt(untried, 503)
    again = lives.attempt(tried, 503)
    # An earlier version, no item, only the message, no message, or one that was deleted
    assert seen(known(again), encode_delivery(tried)) is Sight.GONE
    assert seen(known(again)) is Sight.GONE
    assert seen(known(tried), message_item(untried)) is Sight.GONE
    assert seen(known(untried)) is Sight.GONE
    assert seen(known(untried), message_item(untried, deleted={"BOOL": True})) is Sight.GONE


def test_nothing_waits_long_after_its_message_expired() -> None:
    # Given deliveries of a message that expires in an hour, which the hub ends within a day
    lives = Lives()
    (untried,) = lives.post(expires_in=HOUR)
    tried = lives.attempt(untried, 503)
    end = NOON + HOUR + DAY + HOUR
    for wanted, item in ((known(tried), encode_delivery(tried)), (known(untried), message_item(untried))):
        assert seen(wanted, item, now=end - 1) is Sight.WAITS
        assert seen(wanted, item, now=end) is Sight.GONE


@pytest.mark.parametrize("state", ["cancelled", "held", "resumed", "moved", "tried", "asked", "unasked", "scheduled"])
def test_a_delivery_that_went_on_without_a_record_is_ahead_after_the_grace(state: str) -> None:
    # Given one that failed at noon and was changed in some way an hour later, of which the records say nothing
    lives = Lives()
    failed = lives.attempt(lives.post()[0], 503)
    then = NOON + HOUR
    asked_for = ask_for_try(failed, NOON + 1_000)
    after = {
        "cancelled": lambda: close(failed, DeliveryState.CANCELLED, then),
        "held": lambda: close(failed, DeliveryState.HELD, then),
        "resumed": lambda: resume(failed, then),
        "moved": lambda: without_target(failed, ["s0"], POLICY, now=then, jitter=0, reason=""),
        "tried": lambda: lives.attempt(failed, 503, at=then - 100),
        "asked": lambda: ask_for_try(failed, then),
        "unasked": lambda: without_asked_try(asked_for, then, ""),
        "scheduled": lambda: replace(failed, changed_at=then, version=failed.version + 1),
    }[state]()
    item = encode_delivery(after)
    assert changed_at(item) == at(then)
    # Then it is so at once, but its record may be late
    assert seen(known(failed), item, now=then + HOUR - 1) is Sight.LATELY
    assert seen(known(failed), item, now=then + HOUR) is Sight.AHEAD
    # and what comes after the time of the report is none of its business
    assert seen(known(failed), item, as_of=then) is Sight.LATELY


def test_an_ended_delivery_is_looked_up_for_the_try_that_was_asked_for() -> None:
    # Given one that was delivered, and a try that a person asked for
    lives = Lives()
    delivered = lives.attempt(lives.post()[0])
    asked_for = lives.became(delivered, ask_for_try(delivered, NOON + HOUR), NOON + HOUR)
    wanted = replace(known(asked_for, due=False), ended=True)
    # Then it waits as long as the try was not made, and is ahead once it was
    assert seen(wanted, encode_delivery(asked_for)) is Sight.WAITS
    answer = Answer(status_code=200, message="", started_at=NOON + HOUR, finished_at=NOON + HOUR)
    tried = after_asked_try(asked_for, answer, Verdict.DELIVERED, asked_at=asked_for.asked_at)
    assert seen(wanted, encode_delivery(tried)) is Sight.AHEAD


def test_keys_are_those_of_the_hub() -> None:
    # Given a queue whose messages have partitions of their own, and one whose messages can be listed
    for uid in ("uid-orders", "~app_1"):
        for number in range(20):
            (delivery,) = Lives(queue=uid).post()
            delivery = replace(delivery, queue_uid=uid, message_id=str(10**18 + number))
            wanted = known(delivery)
            hubs = delivery_key(DeliveryKey(delivery.project, uid, delivery.message_id, delivery.subscriber_id))
            assert wanted.key == (hubs["pk"]["S"], hubs["sk"]["S"])
            hubs = message_key(delivery.key.message)
            assert wanted.message_key == (hubs["pk"]["S"], hubs["sk"]["S"])


def test_the_message_is_read_only_for_what_is_due_and_was_never_tried() -> None:
    lives = Lives()
    (untried,) = lives.post()
    tried = lives.attempt(untried, 503)
    assert known(untried).keys == (known(untried).key, known(untried).message_key)
    assert known(untried, due=False).keys == (known(untried).key,)
    assert known(tried).keys == (known(tried).key,)


def test_what_a_read_leaves_over_is_asked_for_again_after_a_while() -> None:
    # Given a table that gets to one key a read
    lives = Lives()
    tried = [lives.attempt(each, 503) for each in lives.post(subscribers=("s0", "s1", "s2"))]
    table = TablePages({"m": [encode_delivery(each) for each in tried]}, at_once=1)
    keys = [known(each).key for each in tried]
    waited: list[float] = []
    # When all are read
    found = read_items(table, "m", keys, pause=waited.append)
    # Then they are there, with nothing that tells what was sent
    assert [*found] == keys
    assert waited == [*sightings.PAUSES_S[:2]]
    assert "statuses" in encode_delivery(tried[0])
    assert {name for each in found.values() for name in each} == {"pk", "sk", "state", "version", "accepted_at", "last"}
    # When it gets to none, Then that is said
    table.at_once = 0
    with pytest.raises(TimeoutError, match="3 keys of m"):
        read_items(table, "m", keys, pause=waited.append)


def test_its_role_may_read_what_is_read_and_nothing_else() -> None:
    template = (Path(__file__).parents[2] / "stacks" / "report.yaml").read_text(encoding="utf-8")
    listed = r"\[dynamodb:BatchGetItem\]\n(?:.*\n){2,3} +dynamodb:Attributes:\n((?: +- \w+\n)+)"
    (rights,) = re.findall(listed, template)
    assert re.findall(r"- (\w+)", rights) == list(sightings.WANTED)
    assert not {"body", "headers", "statuses", "update_url"} & {*sightings.WANTED}


def test_the_verdict_on_what_waits_went_on_or_is_gone(spark: SparkSession, tmp_path: Path) -> None:
    # Given deliveries that are hours overdue: one that waits untried, one after a failure, one that is gone
    lives = Lives()
    untried, tried, gone = (lives.post()[0] for _ in range(3))
    tried, gone = lives.attempt(tried, 503), lives.attempt(gone, 503)
    # and whose last record was lost: one that was delivered long ago, one just now, one cancelled while it was held,
    # and one cancelled while it was not due yet
    ended = lives.attempt(lives.attempt(lives.post()[0], 503), 200)
    now = lives.attempt(lives.attempt(lives.post()[0], 503), 200, at=NOW - MINUTE)
    held = lives.close(lives.close(lives.attempt(lives.post()[0], 503), "held", NOON + 500), "cancelled", NOON + MINUTE)
    far = lives.close(lives.schedule(lives.post(delay=DAY)[0], NOON + 9), "cancelled", NOON + MINUTE)
    # and one delivered long ago that was tried once more by hand
    resent = lives.resend(lives.attempt(lives.post()[0]), 200, at=NOON + HOUR)
    lost = {(each.delivery_id, each.version) for each in (ended, now, held, far, resent)}
    lives.records = [each for each in lives.records if (each.delivery_id, each.version) not in lost]
    items = [message_item(untried), *map(encode_delivery, (tried, ended, now, held, far, resent))]
    for each in items:
        each.setdefault("kind", {"S": "none"})
    lives.write(tmp_path / "records")
    arguments = replace(asked(tmp_path, now=at(NOW).isoformat()), tables={"messages": "m"})

    def verdict(table: TablePages) -> tuple[list[tuple[str, str, str]], dict[str, str]]:
        proof = prove(spark, arguments, Layout(arguments.output, "report"), Steps(), client=lambda: table)
        found = sorted((row["severity"], row["finding"], row["delivery_id"] or "") for row in rows_of(proof.findings))
        standing = {row["delivery_id"]: row["standing"] for row in kept_deliveries(arguments)}
        assert any(not row["balanced"] for row in queried(balance, Counted(fate_cells, Kept(arguments))))
        return found, standing

    # When the table is read
    found, standing = verdict(TablePages({"m": items}))
    # Then what waits is in sight, and everything else is named
    assert found == [
        ("breach", "overdue", gone.delivery_id),
        ("breach", "record_missing", ended.delivery_id),
        ("breach", "record_missing", held.delivery_id),
        ("breach", "record_missing", far.delivery_id),
        ("breach", "record_missing", resent.delivery_id),
        ("notice", "waiting", untried.delivery_id),
    ]
    assert (standing[untried.delivery_id], standing[tried.delivery_id]) == ("pending", "retrying")
    assert standing[now.delivery_id] == "retrying"
    assert standing[gone.delivery_id] == standing[ended.delivery_id] == "missing"
    # When it cannot be read, Then nothing is in sight, and that is said
    found, standing = verdict(TablePages({"m": items}, refuse="m"))
    overdue = [untried, tried, gone, ended, now]
    assert [each for each in found if each[1] == "overdue"] == [("breach", "overdue", d.delivery_id) for d in overdue]
    assert ("breach", "not_compared", "") in found
