"""Items that nobody can read: in every table, whoever wrote them, they are named and stop nobody else."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cloud import aws_services as aws
from tests.fakes import FakeClock
from tests.fakes.credentials import credentials
from tests.fakes.telemetry import FakeTelemetry

import pushhub
from pushhub.base.errors import Unreadable
from pushhub.cloud import observability
from pushhub.cloud.table import Item, Table, number, text
from pushhub.engine.model.circuit import SubscriberKey
from pushhub.engine.model.flow import FlowKey
from pushhub.engine.model.schedule import Position
from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore
from pushhub.engine.store.dynamodb_ends import DynamoDBEndNotes, of_protocol
from pushhub.engine.store.dynamodb_messages import DynamoDBMessageStore
from pushhub.engine.store.dynamodb_schedule import MINUTE_MS, DynamoDBSchedule
from pushhub.engine.store.dynamodb_subscribers import LISTS, DynamoDBSubscribers
from pushhub.ironmq.store.dynamodb_alerts import DynamoDBAlerts
from pushhub.webhooks.store.dynamodb_settings import DynamoDBWebhooksSettings
from pushhub.webhooks.store.dynamodb_tasks import DynamoDBTasks

LAYER = Path(pushhub.__file__).parent
PROJECT = "5e4cd45d7f9b1c0001a2b3c4"


def decoders() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Everything in stores that reads an item."""
    for path in sorted(LAYER.glob("*/store/*.py")):
        name = "pushhub." + ".".join(path.relative_to(LAYER).with_suffix("").parts)
        for each, function in inspect.getmembers(importlib.import_module(name), inspect.isfunction):
            first = next(iter(inspect.signature(function).parameters.values()), None)
            reads = each.lstrip("_").startswith("decode") and first is not None and str(first.annotation) == "Item"
            if reads and first is not None and first.name in ("item", "image", "entry") and function.__module__ == name:
                yield f"{name}.{each}", function


DECODERS = dict(decoders())


@pytest.fixture
def telemetry(monkeypatch: pytest.MonkeyPatch) -> FakeTelemetry:
    fake = FakeTelemetry()
    monkeypatch.setattr(observability, "telemetry", fake)
    return fake


def test_the_stores_of_all_packages_have_some() -> None:
    assert {each.split(".")[1] for each in DECODERS} >= {"engine", "ironmq", "hub", "notifications", "webhooks"}
    assert len(DECODERS) > 40


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize(
    "item",
    [
        {"pk": {"S": "SLOW"}, "sk": {"S": f"1#{PROJECT}#q"}},
        {"pk": {"S": ""}, "sk": {"S": ""}, "doc": {"S": "{"}, "kind": {"S": "message"}, "version": {"N": "x"}},
        {"pk": {"S": "a#b#c"}, "sk": {"S": "#"}, "doc": {"S": "[]"}, "order": {"S": "null"}, "orders": {"L": [{}]}},
    ],
    ids=["keys", "texts", "shapes"],
)
def test_what_cannot_be_read_is_one_error_that_everybody_knows(name: str, item: Item, telemetry: FakeTelemetry) -> None:
    # Given an item as nobody of us writes it, and something for whatever else its reader is told
    parameters = [*inspect.signature(DECODERS[name]).parameters.values()][1:]
    given = [0 if each.annotation == "int" else "x" for each in parameters if each.kind is not each.KEYWORD_ONLY]
    named: dict[str, Any] = {each.name: "x" for each in parameters if each.kind is each.KEYWORD_ONLY}
    # When it is read, then there is a value or that error, and nothing else
    try:
        DECODERS[name](item, *given, **named)
    except Unreadable:
        # And it is counted and named
        assert telemetry.counts["ItemsUnreadable"] >= 1
        assert telemetry.named("item_unreadable")[-1]["pk"] == item["pk"]["S"]


@pytest.fixture
def table(telemetry: FakeTelemetry) -> Iterator[Any]:
    assert telemetry.counts == {}
    with aws.dynamodb() as client:
        yield client


CLOCK = FakeClock()
MINUTE = CLOCK.now() // MINUTE_MS
POISON: dict[str, tuple[str, dict[str, Any], Callable[[Any], list[Any]]]] = {
    "slow subscribers": (
        aws.SCHEDULE_TABLE,
        {"pk": text("SLOW"), "sk": text(f"9{CLOCK.now():014d}#{PROJECT}#q")},
        lambda client: [*DynamoDBSubscribers(client, aws.SCHEDULE_TABLE, CLOCK).slow(CLOCK.now(), 100)],
    ),
    "lines": (
        aws.SCHEDULE_TABLE,
        {"pk": text("LINES#0"), "sk": text(PROJECT)},
        lambda client: [*DynamoDBSubscribers(client, aws.SCHEDULE_TABLE, CLOCK).listed_backlogs()],
    ),
    "circuits": (
        aws.SCHEDULE_TABLE,
        {"pk": text("CIRCUITS#0"), "sk": text(PROJECT)},
        lambda client: [*DynamoDBSubscribers(client, aws.SCHEDULE_TABLE, CLOCK).looked_after()],
    ),
    "ends": (
        aws.SCHEDULE_TABLE,
        {"pk": text(of_protocol("ironmq")), "sk": text(f"{1:015d}#{PROJECT}")},
        lambda client: [
            *DynamoDBEndNotes(client, aws.SCHEDULE_TABLE, CLOCK, of_protocol("ironmq")).due_ends(CLOCK.now())
        ],
    ),
    "alerts": (
        aws.CONFIG_TABLE,
        {"pk": text("ALERTS"), "sk": text(f"{PROJECT}#1")},
        lambda client: [*DynamoDBAlerts(client, aws.CONFIG_TABLE, CLOCK).all_alerts()],
    ),
    "projects": (
        aws.CONFIG_TABLE,
        {"pk": text(f"P#{PROJECT}"), "sk": text("PROJECT")},
        lambda client: DynamoDBConfigStore(client, aws.CONFIG_TABLE, CLOCK).projects(),
    ),
    "messages": (
        aws.MESSAGES_TABLE,
        {"pk": text(f"{PROJECT}#u#1"), "sk": text("M"), "kind": text("message")},
        lambda client: [
            *DynamoDBMessageStore(
                client, aws.MESSAGES_TABLE, CLOCK, lambda: DynamoDBSchedule(client, aws.SCHEDULE_TABLE, CLOCK)
            ).outstanding(0, 1)
        ],
    ),
}


@pytest.mark.parametrize("what", POISON)
def test_a_list_that_all_projects_share_is_read_past_it(what: str, table: Any, telemetry: FakeTelemetry) -> None:
    name, item, read = POISON[what]
    Table(table, name, CLOCK).put(item)
    assert read(table) == []
    assert telemetry.counts == {"ItemsUnreadable": 1}
    assert telemetry.named("item_unreadable")[0]["sk"] == item["sk"]["S"]


def test_others_are_still_in_the_list(table: Any, telemetry: FakeTelemetry) -> None:
    # Given lists with what another project wrote beside the poison
    store, raw = DynamoDBSubscribers(table, aws.SCHEDULE_TABLE, CLOCK), Table(table, aws.SCHEDULE_TABLE, CLOCK)
    key = SubscriberKey(project=PROJECT, queue="q", queue_uid="u", subscriber_id="s")
    store.look_after(key, 5)
    store.list_backlog(FlowKey(PROJECT, "u"), 5)
    store.note_slow([(PROJECT, "u", "s")], CLOCK.now() + 60_000)
    for shard in range(LISTS):
        for sk in ("", "zz"):
            raw.put({"pk": text(f"LINES#{shard}"), "sk": text(f"0{sk}")})
            raw.put({"pk": text(f"CIRCUITS#{shard}"), "sk": text(f"0{sk}")})
    raw.put({"pk": text("SLOW"), "sk": text("9#")})
    # Then it is found as before
    assert [*store.looked_after()] == [key]
    assert [*store.listed_backlogs()] == [(FlowKey(PROJECT, "u"), 5)]
    assert [*store.slow(CLOCK.now(), 10)] == [(PROJECT, "u", "s")]
    assert telemetry.counts["ItemsUnreadable"] == 4 * LISTS + 1


@pytest.mark.parametrize("limit", [1, 2, 10])
def test_the_schedule_goes_on_behind_an_entry_that_cannot_be_read(
    table: Any, telemetry: FakeTelemetry, limit: int
) -> None:
    # Given a minute with poison before, between and behind two entries, and one that is not due
    raw, schedule = Table(table, aws.SCHEDULE_TABLE, CLOCK), DynamoDBSchedule(table, aws.SCHEDULE_TABLE, CLOCK)
    start = MINUTE * MINUTE_MS
    partition = {"pk": text(f"{MINUTE}#00")}
    for number_of, at in enumerate((start + 1, start + 3)):
        raw.put(partition | {"sk": text(f"{at:015d}#{PROJECT}#u#{number_of}#s#1"), "queue": text("q")})
    for at in (start, start + 2, start + 4):
        raw.put(partition | {"sk": text(f"{at:015d}#{PROJECT}#1"), "ttl": number(1)})
    # When it is read from its beginning, as far as it goes
    position, found = Position(shard=0, minute=MINUTE), []
    for _ in range(10):
        entries, after = schedule.due(position, start + MINUTE_MS - 1, limit)
        found += [each.key.message_id for each in entries]
        if after == position:
            break
        position = after
    # Then both are found, once each
    assert found == ["0", "1"]
    assert telemetry.counts["ItemsUnreadable"] >= 3


def test_a_shard_whose_position_cannot_be_read_waits_alone(table: Any, telemetry: FakeTelemetry) -> None:
    # Given positions, of which one is damaged
    schedule = DynamoDBSchedule(table, aws.SCHEDULE_TABLE, CLOCK)
    known = schedule.positions()
    Table(table, aws.SCHEDULE_TABLE, CLOCK).put({"pk": text("POSITION#03"), "sk": text("POSITION")})
    # When another environment reads them, then it has all others, and the damaged one stays
    other = DynamoDBSchedule(table, aws.SCHEDULE_TABLE, CLOCK)
    assert other.positions() == [each for each in known if each.shard != 3]
    assert telemetry.named("item_unreadable")[0]["pk"] == "POSITION#03"


def test_a_task_or_an_endpoint_that_cannot_be_read_keeps_no_other_waiting(table: Any, telemetry: FakeTelemetry) -> None:
    tasks, raw = DynamoDBTasks(table, aws.WEBHOOKS_TABLE, CLOCK), Table(table, aws.WEBHOOKS_TABLE, CLOCK)
    settings = DynamoDBWebhooksSettings(table, aws.WEBHOOKS_TABLE, CLOCK, credentials())
    raw.put({"pk": text("RUNNING"), "sk": text(f"{PROJECT}#t")})
    raw.put({"pk": text(f"P#{PROJECT}"), "sk": text("TASK#t")})
    raw.put({"pk": text(f"P#{PROJECT}"), "sk": text("OFF#a#ep_000000000000000000000000000")})
    raw.put({"pk": text(f"A#{PROJECT}#a"), "sk": text("EP#ep_000000000000000000000000000")})
    assert [*tasks.running_tasks(PROJECT)] == []
    assert tasks.projects_with_tasks() == [PROJECT]
    assert [*settings.disabled(PROJECT)] == []
    assert telemetry.counts["ItemsUnreadable"] >= 1
