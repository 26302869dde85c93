"""Searches that read the objects of records, a part at each look."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.cloud import aws_services as aws
from tests.fakes.clock import FakeClock

from pushhub.base.errors import Invalid, NotFound
from pushhub.base.times import epoch_ms
from pushhub.engine.model.past import PastEvent, PastPage, PastQuery, PastState
from pushhub.engine.store import s3_past
from pushhub.engine.store.s3_past import NoPastRecords, S3PastRecords

QUERY = PastQuery(
    project="p", since=epoch_ms("2026-11-20T22:30:00.000Z"), until=epoch_ms("2026-11-21T01:00:00.000Z"), queue="orders"
)


@pytest.fixture
def client() -> Iterator[Any]:
    with aws.s3() as s3:
        yield s3


@pytest.fixture
def records(client: Any, clock: FakeClock) -> S3PastRecords:
    return S3PastRecords(client, aws.BUCKET, clock)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def put(client: Any, hour: str, name: str, *ids: str, project: str = "p", queue: str = "orders") -> None:
    lines = [
        json.dumps(
            {
                "project": project,
                "queue": queue,
                "message_id": each,
                "kind": "accepted",
                "at": f"{hour}:30:00.{place:03d}Z",
            }
        )
        for place, each in enumerate(ids)
    ]
    key = f"records/dt={hour[:10]}/hour={hour[11:]}/{name}.json.gz"
    client.put_object(Bucket=aws.BUCKET, Key=key, Body=gzip.compress("\n".join(lines).encode()))


def all_of(records: S3PastRecords, query: PastQuery = QUERY) -> tuple[list[PastEvent], list[PastPage]]:
    found: list[PastEvent] = []
    pages = [records.look(query, "", None)]
    found += pages[-1].events
    while pages[-1].after:
        pages.append(records.look(query, "", pages[-1].after))
        found += pages[-1].events
    return found, pages


def test_the_records_of_the_project_in_that_time_are_found_newest_hours_first(client: Any, records: Any) -> None:
    put(client, "2026-11-20T22", "messages-1-2-2", "a", "b")
    put(client, "2026-11-20T23", "lines-1-1-1", "c")
    put(client, "2026-11-20T23", "messages-3-3-1", "d")
    # Given others: of another project, queue, day, and what is no object of records
    put(client, "2026-11-20T23", "messages-4-4-1", "x", project="q")
    put(client, "2026-11-20T23", "messages-5-5-1", "x", queue="other")
    put(client, "2026-11-20T21", "messages-6-6-1", "x")
    put(client, "2026-11-21T01", "messages-7-7-1", "x")
    client.put_object(Bucket=aws.BUCKET, Key="records/quarantine/messages-1.json", Body=b"{}")
    client.put_object(Bucket=aws.BUCKET, Key="records/dt=2026-11-20/hour=23/messages-8-8-1.json.gz", Body=b"damaged")
    found, (page,) = all_of(records)
    assert [each.message_id for each in found] == ["c", "d", "b", "a"]
    assert (page.state, page.hours_left) == (PastState.DONE, 0)
    assert page.scanned_bytes > 200
    assert [each.message_id for each in all_of(records, replace(QUERY, message_id="b"))[0]] == ["b"]


@pytest.mark.parametrize("bound", ["LOOK_BYTES", "LOOK_EVENTS", "LOOK_MS"])
def test_a_look_ends_at_each_of_its_bounds_and_the_next_goes_on(
    client: Any, records: Any, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    for number in range(3):
        put(client, "2026-11-20T23", f"messages-{number + 1}-{number + 1}-2", f"a{number}", f"b{number}")
    # Sequence numbers of an older hour are lower
    put(client, "2026-11-20T22", "messages-0-0-1", "c")
    monkeypatch.setattr(s3_past, bound, 0 if bound == "LOOK_MS" else 1)
    found, pages = all_of(records)
    assert sorted(each.message_id for each in found) == ["a0", "a1", "a2", "b0", "b1", "b2", "c"]
    assert [each.state for each in pages] == [PastState.RUNNING] * 4 + [PastState.DONE]
    assert [each.hours_left for each in pages] == [2, 2, 2, 1, 0]
    assert [each.scanned_bytes for each in pages] == sorted(each.scanned_bytes for each in pages)


@pytest.mark.parametrize(
    "after",
    [
        "x",
        "2026-11-20T23/../../other/0",
        "2026-11-20T23/a/b/0",
        "2026-11-19T23//0",
        "2026-11-21T01//0",
        "2026-11-20T23/ä/0",
        f"2026-11-20T23/{'a' * 301}/0",
        "2026-11-20T23//-1",
    ],
)
def test_a_cursor_leads_nowhere_but_into_the_hours_of_the_search(records: Any, after: str) -> None:
    with pytest.raises(Invalid):
        records.look(QUERY, "", after)


def test_where_records_are_not_searched_that_is_said() -> None:
    nothing = NoPastRecords()
    for refused in (lambda: nothing.start(QUERY, "a"), lambda: nothing.look(QUERY, "", None)):
        with pytest.raises(NotFound, match="PastSearch"):
            refused()
