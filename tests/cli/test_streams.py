"""Streams in the shell, against a hub on fakes."""

from __future__ import annotations

import json
from pathlib import Path

from cli.commands.streams import TYPES
from tests.cli.conftest import Typed
from tests.cli.served_hub import ServedHub
from tests.cli.test_webhooks import asked

from pushhub.webhooks.wire.stream_sink import SINK_TYPES

BUCKET = {"bucket": "orders", "region": "eu-west-1", "roleArn": "arn:aws:iam::111122223333:role/hub"}


def test_the_types_that_can_be_typed_are_those_of_the_hub() -> None:
    assert {*TYPES} == {*SINK_TYPES}


def test_a_stream_is_created_posted_to_listed_and_deleted(hub: ServedHub, typed: Typed) -> None:
    [created] = typed.json("streams", "create", "Orders", "--uid", "orders")
    assert asked(hub, "GET", "/stream/orders")["id"] == created["id"]
    assert typed.json("streams", "list") == [created]
    [shown] = typed.json("streams", "show", "orders")
    assert shown["id"] == created["id"]
    assert shown["externalId"]
    typed("streams", "post", "orders", "order.paid", '{"n": 1}', '{"n": 2}')
    assert [each["payload"] for each in typed.json("streams", "events", "orders")] == [{"n": 2}, {"n": 1}]
    typed("streams", "delete", "orders", "--dry-run")
    assert typed.json("streams", "list")
    typed("streams", "delete", "orders", "--yes")
    assert typed.json("streams", "list") == []


def test_sinks_are_added_listed_tried_again_moved_on_and_removed(hub: ServedHub, typed: Typed, tmp_path: Path) -> None:
    # Given a stream with a bucket and a poller
    typed("streams", "create", "Orders", "--uid", "orders")
    config = tmp_path / "bucket.json"
    config.write_text(json.dumps(BUCKET))
    given = ("--config-file", str(config), "--uid", "archive", "--batch-size", "7", "--max-wait", "60")
    [bucket] = typed.json("streams", "add-sink", "orders", "amazonS3", *given)
    assert (bucket["type"], bucket["batchSize"], bucket["maxWaitSecs"]) == ("amazonS3", 7, 60)
    typed("streams", "add-sink", "orders", "poller", "--uid", "own")
    typed("streams", "add-sink", "orders", "http", code=2)
    # Then they are listed with where they are
    listed = {each["uid"]: each for each in typed.json("streams", "sinks", "orders")}
    assert {uid: each["status"] for uid, each in listed.items()} == {"archive": "enabled", "own": "enabled"}
    assert all(each["currentIterator"].startswith("msg_") for each in listed.values())
    # A batch is tried at once, and can be left out
    [tried] = typed.json("streams", "retry", "orders", "archive")
    assert tried["id"] == bucket["id"]
    typed("streams", "skip", "orders", "own", "--yes", code=1)
    typed("streams", "post", "orders", "order.paid", "{}")
    hub.worlds["webhooks"].world.clock.advance(ms=5_000)
    [skipped] = typed.json("streams", "skip", "orders", "own", "--yes")
    assert skipped["currentIterator"] > listed["own"]["currentIterator"]
    # And a sink is removed
    typed("streams", "remove-sink", "orders", "archive", "--yes")
    assert [each["uid"] for each in asked(hub, "GET", "/stream/orders/sink")["data"]] == ["own"]
