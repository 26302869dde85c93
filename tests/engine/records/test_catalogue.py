"""What was accepted is entered from the streams, whatever else comes, and again if it failed."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.records.test_records import ACCEPTED, an_inserted_message
from tests.fakes import Fault, FaultPlan, faulty
from tests.fakes.catalogue import FakeCatalogue
from tests.fakes.telemetry import FakeTelemetry

from pushhub.base.errors import Unavailable
from pushhub.engine.model.catalogue import DAY_MS
from pushhub.engine.records.catalogue import Cataloguer
from pushhub.engine.store.dynamodb_changes import accepted_in
from pushhub.ironmq.store.changes import accepted_in_pull_queue

DAY = ACCEPTED // DAY_MS


def cataloguer(catalogue: Any, telemetry: FakeTelemetry) -> Cataloguer:
    return Cataloguer(read=accepted_in, catalogue=lambda: catalogue, telemetry=telemetry)


def test_inserted_messages_are_found_by_what_is_in_them_and_nothing_blocks_them() -> None:
    catalogue, telemetry = FakeCatalogue(), FakeTelemetry()
    good, damaged, changed = (an_inserted_message(each) for each in (1, 2, 3))
    damaged["dynamodb"]["NewImage"]["due_at"] = {"S": "never"}
    changed["eventName"] = "MODIFY"
    batch = [damaged, good, changed]
    # When a batch comes twice
    for _ in range(2):
        cataloguer(catalogue, telemetry).run(batch, table="messages")
    # Then its message is there once
    (day,) = catalogue.days("p")
    found = [*catalogue.with_value("p", day, "secret")]
    assert [(each.queue, each.queue_uid, each.message_id) for each in found] == [("orders", "u1", f"{10**18 + 1}")]
    assert [*catalogue.listed("p", DAY)] == found
    assert len(catalogue.chunks) == 1


def test_a_catalogue_that_cannot_be_written_has_the_batch_repeated() -> None:
    struck = faulty(FakeCatalogue(), "catalogue", FaultPlan(Fault.FAILS, at=1, of="catalogue.add"))
    with pytest.raises(Unavailable):
        cataloguer(struck, FakeTelemetry()).run([an_inserted_message(1)], table="messages")


def test_entries_of_a_pull_queue_are_no_messages_and_its_messages_are() -> None:
    record = an_inserted_message(1)
    record["dynamodb"]["Keys"] = {"pk": {"S": "p#u1#~0"}, "sk": {"S": "0#1"}}
    assert accepted_in_pull_queue(record) == []
    record["dynamodb"]["Keys"]["sk"] = {"S": "M"}
    (found,) = accepted_in_pull_queue(record)
    assert (found.queue_uid, found.body) == ("u1", b"secret")
