"""What every catalogue does."""

from __future__ import annotations

import json

from tests.contract.samples import OTHER_PROJECT, PROJECT

from pushhub.engine.model.catalogue import DAY_MS, Accepted, chunks_of
from pushhub.engine.ports import Catalogue

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
    # Then
    assert [each.message_id for each in catalogue.listed(PROJECT, DAY)] == ids(newest_first)
    assert [each.message_id for each in catalogue.listed(PROJECT, DAY, ids([300])[0])] == ids(newest_first[301:])
    (found,) = catalogue.with_value(PROJECT, DAY, " ORDER-123 ")
    assert (found.message_id, found.queue, found.queue_uid, found.accepted_at) == (
        *ids([123]),
        "orders",
        "u1",
        DAY * DAY_MS + 123,
    )
    assert [each.message_id for each in catalogue.with_value(PROJECT, DAY, "eur", ids([3])[0])] == ids([2, 1, 0])
    assert len([*catalogue.with_value(PROJECT, DAY, "EUR")]) == 600
    assert [each.message_id for each in catalogue.with_value(PROJECT, DAY, "CHF")] == ids([700])
    assert [*catalogue.with_value(PROJECT, DAY, "order-9999")] == []
    assert [*catalogue.listed(PROJECT, DAY + 1)] == []
    assert [each.message_id for each in catalogue.with_value(OTHER_PROJECT, DAY, "order-5")] == ids([5])
