"""What every catalogue does."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from typing import Any, cast

import pytest
from tests.cloud import aws_services as aws
from tests.contract.samples import OTHER_PROJECT, PROJECT
from tests.fakes import FakeClock
from tests.fakes.search import FakeSearchIndex

from pushhub.base.errors import Unreadable
from pushhub.engine.model.catalogue import DAY_MS, LEAST_VALUES, LEFT_OUT, Accepted, chunks_of
from pushhub.engine.records.ports import Catalogue
from pushhub.engine.store import dynamodb_catalogue
from pushhub.engine.store.dynamodb_catalogue import DynamoDBCatalogue, decode_seen
from pushhub.ironmq.finding.search import Search

DAY = 20_800


def accepted(number: int, *, project: str = PROJECT, currency: str = "EUR") -> Accepted:
    return Accepted(
        project=project,
        queue="orders" if number % 2 else "bills",
        queue_uid="u1",
        message_id=f"{10**18 + number}",
        accepted_at=DAY * DAY_MS + number,
        body=json.dumps(
            {"id": f"order-{number}", "customer": f"c{number}@shop.example", "currency": currency}
        ).encode(),
    )


def ids(numbers: range | list[int]) -> list[str]:
    return [f"{10**18 + each}" for each in numbers]


def test_messages_are_listed_and_found_newest_first(catalogue: Catalogue) -> None:
    # Given batches that overlap, as those of several shards do, one of them written twice, of all sizes
    evens, odds = [accepted(each) for each in range(0, 600, 2)], [accepted(each) for each in range(1, 600, 2)]
    catalogue.add(
        [*chunks_of(evens, "a-1"), *chunks_of(odds, "b-1"), *chunks_of([accepted(700, currency="CHF")], "b-2")]
    )
    catalogue.add([*chunks_of(evens, "a-1"), *chunks_of([accepted(5, project=OTHER_PROJECT)], "c-1")])
    newest_first = [700, *range(599, -1, -1)]
    (day,) = catalogue.days(PROJECT)
    # Then
    assert [each.message_id for each in catalogue.listed(PROJECT, DAY)] == ids(newest_first)
    assert [each.message_id for each in catalogue.listed(PROJECT, DAY, ids([300])[0])] == ids(newest_first[301:])
    (found,) = catalogue.with_value(PROJECT, day, " ORDER-123 ")
    assert (found.message_id, found.queue, found.queue_uid, found.accepted_at) == (
        *ids([123]),
        "orders",
        "u1",
        DAY * DAY_MS + 123,
    )
    assert [each.message_id for each in catalogue.with_value(PROJECT, day, "eur", ids([3])[0])] == ids([2, 1, 0])
    assert len([*catalogue.with_value(PROJECT, day, "EUR")]) == 600
    assert [each.message_id for each in catalogue.with_value(PROJECT, day, "CHF")] == ids([700])
    assert [*catalogue.with_value(PROJECT, day, "order-9999")] == []
    assert [*catalogue.listed(PROJECT, DAY + 1)] == []
    assert [each.message_id for each in catalogue.with_value(OTHER_PROJECT, day, "order-5")] == ids([5])


def on_day(day: int, number: int, *, crowded: bool = False) -> Accepted:
    body = json.dumps({f"v{each}": f"{number}-{each}" for each in range(LEAST_VALUES + 5)}).encode()
    at = replace(accepted(number), accepted_at=day * DAY_MS + number)
    return replace(at, body=body) if crowded else at


def test_days_without_messages_and_without_crowded_ones_are_told_apart(catalogue: Catalogue) -> None:
    # Given messages of two days, of which one has a message that has more values than are kept
    catalogue.add([*chunks_of([on_day(DAY - 3, 1), on_day(DAY, 3)], "a-1")])
    catalogue.add([*chunks_of([on_day(DAY - 3, 2, crowded=True)], "a-2")])
    # Then only these days are there, newest first, and only that one has more to be read
    newer, older = catalogue.days(PROJECT)
    assert (newer.number, older.number) == (DAY, DAY - 3)
    assert catalogue.days(OTHER_PROJECT) == []
    assert (bool(newer.levels_of(LEFT_OUT)), bool(older.levels_of(LEFT_OUT))) == (False, True)
    assert [*catalogue.with_value(PROJECT, newer, LEFT_OUT)] == []
    assert [each.message_id for each in catalogue.with_value(PROJECT, older, LEFT_OUT)] == ids([2])


class Counted:
    """A catalogue on a table whose calls are counted."""

    def __init__(self, client: Any) -> None:
        self.clock = FakeClock()
        self.client = aws.Intercepted(client)
        self.today = self.clock.now() // DAY_MS
        self.catalogue = DynamoDBCatalogue(cast(Any, self.client), aws.SCHEDULE_TABLE, self.clock)

    def reads_for(self, value: str) -> int:
        """Calls to the table until a search for a value that nobody has is at its end."""
        before = len(self.client.calls)
        search = Search(
            index=FakeSearchIndex,
            catalogue=lambda: self.catalogue,
            messages=cast(Any, None),
            lookup=cast(Any, None),
            clock=self.clock,
        )
        assert search._anywhere(PROJECT, value, "~values##", []).after is None
        return len(self.client.calls) - before


def test_a_search_that_reaches_its_end_asks_only_where_there_is_something() -> None:
    # It was 80 calls: eight days, five levels, twice.
    with aws.dynamodb() as client:
        counted = Counted(client)
        # Given nothing, Then one call says so
        assert counted.reads_for("nothing") == 1
        # Given a day, Then one more
        counted.catalogue.add([*chunks_of([on_day(counted.today, each) for each in range(10)], "a-1")])
        assert counted.reads_for("nothing") == 2
        # Given all eight days at two levels
        many = [on_day(counted.today - day, each) for day in range(8) for each in range(600)]
        counted.catalogue.add([*chunks_of(many, "a-2")])
        counted.catalogue.add([*chunks_of([on_day(counted.today - day, 700) for day in range(8)], "a-3")])
        assert counted.reads_for("nothing") == 1 + 8 * 2


def test_what_tells_the_levels_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with aws.dynamodb() as client:
        counted = Counted(client)

        def written() -> list[str]:
            requests = [each["RequestItems"][aws.SCHEDULE_TABLE] for _, each in counted.client.calls]
            counted.client.calls.clear()
            return [item["PutRequest"]["Item"]["pk"]["S"].partition("#")[0] for each in requests for item in each]

        # When three batches come, Then a batch after the first costs no further write
        for batch, expected in (("a-1", ["LEVELS", "LISTED", "VALUES"]), ("a-2", ["LISTED", "VALUES"])):
            counted.catalogue.add([*chunks_of([on_day(counted.today, 1)], batch)])
            assert written() == expected
        # And what could not be written is written with the repeated batch
        counted.client.next("batch_write_item", lambda *_: (_ for _ in ()).throw(aws.client_error("Throttled")))
        other = [*chunks_of([on_day(counted.today - 1, 1)], "a-3")]
        with pytest.raises(Exception, match="Throttled"):
            counted.catalogue.add(other)
        counted.client.calls.clear()
        counted.catalogue.add(other)
        assert written() == ["LEVELS", "LISTED", "VALUES"]
        # And what an environment remembers is bounded
        monkeypatch.setattr(dynamodb_catalogue, "MOST_REMEMBERED", 1)
        counted.catalogue.add([*chunks_of([on_day(counted.today, 1)], "a-4")])
        counted.client.calls.clear()
        counted.catalogue.add([*chunks_of([on_day(counted.today - 1, 1)], "a-5")])
        assert written() == ["LEVELS", "LISTED", "VALUES"]


def test_a_list_that_unpacks_to_more_than_any_store_writes_is_not_unpacked() -> None:
    # Given an item of a few hundred bytes, as an import could bring it
    bomb = zlib.compress(b"[" + b" " * 50_000_000 + b"]", 9)
    with pytest.raises(Unreadable):
        decode_seen({"pk": {"S": "LISTED#p#1"}, "sk": {"S": "2-1#b"}, "m": {"B": bomb}})


@pytest.mark.parametrize("name", ["20800#5#all", "20800#0#some", "20800#0", "x#0#all", "20800#-1#all"])
def test_levels_that_no_store_writes_are_not_read(name: str) -> None:
    with pytest.raises(Unreadable):
        dynamodb_catalogue._decode_level({"pk": {"S": "LEVELS#p"}, "sk": {"S": name}})
