"""What a search of the past wants of the delivery records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pushhub.base.times import epoch_ms
from pushhub.engine.model.past import COLUMNS, PastQuery, event
from pushhub.engine.model.record import DeliveryRecord

QUERY = PastQuery(project="p", since=epoch_ms("2026-11-20T22:30:00.000Z"), until=epoch_ms("2026-11-21T01:00:00.000Z"))
RECORD: dict[str, Any] = {
    "project": "p",
    "at": "2026-11-20T23:00:00.000Z",
    "kind": "attempt",
    "queue": "orders",
    "message_id": "1",
    "subscriber_id": "s1",
    "subscriber": "shop",
    "state": "exhausted",
}


def test_days_and_hours_are_those_of_the_time() -> None:
    assert QUERY.days == ("2026-11-20", "2026-11-21")
    assert QUERY.hours == ["2026-11-21T00", "2026-11-20T23", "2026-11-20T22"]


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"message_id": "1"},
        {"queue": "orders"},
        {"subscriber": "shop"},
        {"subscriber": "s1"},
        {"state": "exhausted"},
    ],
)
def test_a_record_that_has_everything_is_wanted(wanted: dict[str, str]) -> None:
    assert replace(QUERY, **wanted).wants(RECORD)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "other",
    [
        {"project": "q"},
        {"project": None},
        {"at": "2026-11-20T22:29:59.999Z"},
        {"at": "2026-11-21T01:00:00.000Z"},
        {"message_id": "2"},
        {"queue": "order"},
        {"subscriber": "x", "subscriber_id": "y"},
        {"state": None},
    ],
)
def test_a_record_that_differs_in_one_thing_is_not(other: dict[str, Any]) -> None:
    whole = replace(QUERY, message_id="1", queue="orders", subscriber="shop", state="exhausted")
    assert not whole.wants(RECORD | other)


def test_what_is_shown_are_fields_of_records() -> None:
    assert set(COLUMNS) <= set(DeliveryRecord.__dataclass_fields__)
    shown = event(RECORD)
    assert (shown.subscriber, shown.attempt) == ("shop", None)
