"""Stores with more mappings or parameters than a partition of the table gives in a second: messages go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pytest
from mypy_boto3_dynamodb import DynamoDBClient
from tests.cloud import aws_services as aws
from tests.cloud.aws_services import Intercepted
from tests.contract.filled import filled
from tests.contract.samples import NOW, OTHER_PROJECT, PROJECT
from tests.fakes import FakeClock
from tests.fakes.credentials import credentials
from tests.simulation import simulated_services

from pushhub.base.errors import Unavailable
from pushhub.cloud.table import Table
from pushhub.hub import intake
from pushhub.hub.intake import HubIntake
from pushhub.hub.model.mapping import ServiceMapping
from pushhub.hub.model.notice import Notice
from pushhub.hub.model.parameters import DataType, Parameter
from pushhub.hub.notices import LOOKED_AT_CHARACTERS, PER_PAGE, HubNotices, NoticeQuery
from pushhub.hub.store import dynamodb_settings
from pushhub.hub.store._keys import store_key
from pushhub.hub.store.dynamodb_settings import ROUTED_MS, DynamoDBHubSettings

MAPPING = filled(ServiceMapping, mapping_id="5" * 24, version=0, credentials=b"")


def hub_settings(client: Any, clock: FakeClock) -> DynamoDBHubSettings:
    return DynamoDBHubSettings(cast(DynamoDBClient, client), aws.HUB_TABLE, clock, credentials())


def test_of_a_store_s_parameters_a_request_reads_one_page_and_its_own() -> None:
    with simulated_services.dynamodb() as client:
        calls = Intercepted(client)
        settings = DynamoDBHubSettings(cast(DynamoDBClient, calls), aws.HUB_TABLE, FakeClock(), credentials())
        # Given what a few answers have set, 200 parameters of 32 KiB at most each
        for number in range(100):
            settings.set_parameter(
                Parameter(project=PROJECT, name=f"p{number}", value=32_768 * "x", data_type=DataType.STRING, as_of=NOW)
            )
        ids = [each.parameter_id for each in settings.parameters(PROJECT)][:5]
        calls.calls.clear()
        # When the parameters of some services are read
        assert len(settings.parameters_of(PROJECT, ids)) == 5
        # Then few of the others are
        assert calls.count("query") == 1
        assert calls.count("get_item") <= 5
        # And nothing at all for a service that has none
        calls.calls.clear()
        assert settings.parameters_of(PROJECT, []) == []
        assert calls.calls == []


def test_messages_are_compared_with_mappings_that_are_read_once_until_one_changes() -> None:
    with simulated_services.dynamodb() as client:
        calls, clock = Intercepted(client), FakeClock()
        # Given a store with 300 mappings, and two environments, of which one routes and the other one changes them
        routes, changes = hub_settings(calls, clock), hub_settings(client, clock)
        for number in range(300):
            changes.put_mapping(PROJECT, replace(MAPPING, mapping_id=f"{number:024x}"))
        # When a hundred messages are compared with them
        for _ in range(100):
            mappings, unread = routes.routed_mappings(PROJECT)
            assert (len(mappings), unread) == (300, 0)
        # Then the mappings are read once, and one small item for each message
        assert calls.count("query") == 1
        assert calls.count("get_item") == 100
        # And whatever changes is in force with the next message
        new = changes.put_mapping(PROJECT, replace(MAPPING, mapping_id="a" * 24))
        assert routes.routed_mappings(PROJECT)[0][-1] == new
        renamed = changes.put_mapping(PROJECT, replace(new, name="other"))
        assert routes.routed_mappings(PROJECT)[0][-1] == renamed
        assert changes.delete_mapping(PROJECT, new.mapping_id)
        assert len(routes.routed_mappings(PROJECT)[0]) == 300


def test_a_change_that_was_cut_off_before_it_was_counted_is_in_force_in_half_a_minute() -> None:
    with simulated_services.dynamodb() as client:
        calls, clock = Intercepted(client), FakeClock()
        routes, changes = hub_settings(client, clock), hub_settings(calls, clock)
        assert routes.routed_mappings(PROJECT) == ([], 0)
        # Given a mapping whose writer ends before it is counted
        calls.next("update_item", aws.fails)
        try:
            changes.put_mapping(PROJECT, MAPPING)
        except Unavailable:
            clock.advance(seconds=ROUTED_MS / 1000)
        # Then it is there half a minute later
        assert len(routes.routed_mappings(PROJECT)[0]) == 1


def test_what_is_kept_of_mappings_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamodb_settings, "MOST_ROUTED", 10)
    with simulated_services.dynamodb() as client:
        calls, clock = Intercepted(client), FakeClock()
        settings = hub_settings(calls, clock)
        # Given a store with more mappings than are kept, and a small one
        for number in range(12):
            settings.put_mapping(PROJECT, replace(MAPPING, mapping_id=f"{number:024x}"))
        settings.put_mapping(OTHER_PROJECT, MAPPING)
        # When both are asked for twice, then only the small one is kept
        calls.calls.clear()
        for project in (PROJECT, OTHER_PROJECT, OTHER_PROJECT, PROJECT):
            settings.routed_mappings(project)
        assert calls.count("query") == 3


def test_a_mapping_that_cannot_be_read_hides_no_other() -> None:
    with simulated_services.dynamodb() as client:
        settings = hub_settings(client, FakeClock())
        stored = settings.put_mapping(PROJECT, MAPPING)
        damaged = store_key(PROJECT, f"{dynamodb_settings.MAPPING}{6:024x}")
        Table(cast(DynamoDBClient, client), aws.HUB_TABLE, FakeClock()).put(damaged | {"doc": {"S": "{"}})
        # Then the store has that one, and knows that another one is to be compared with later
        assert settings.routed_mappings(PROJECT) == ([stored], 1)
        assert settings.mappings(PROJECT) == [stored]


def test_of_very_many_types_of_messages_some_are_listed_and_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamodb_settings, "MOST_TYPES", 3)
    monkeypatch.setattr(intake, "MOST_NOTED", 3)
    with simulated_services.dynamodb() as client:
        settings = hub_settings(client, FakeClock())
        # Given a producer that puts an id into the type of each message
        others: dict[str, Any] = dict.fromkeys(("accept", "messages", "log", "quotas", "index", "telemetry"))
        noting = HubIntake(settings=settings, clock=FakeClock(), **others)
        for number in range(10):
            noting.note_type(PROJECT, f"order:{number}")
        # Then the pages that show the types read some of them, and the environment does not grow
        assert settings.types(PROJECT) == ["order:0", "order:1", "order:2"]
        assert len(noting._noted) <= 3


def test_a_page_of_notifications_looks_at_as_much_as_memory_and_time_allow() -> None:
    # Given a store whose services have reported far more, each time at length
    looked: list[int] = []

    class Log:
        def notifications(self, *_: object, **__: object) -> Iterator[Notice]:
            for number in range(1_000_000):
                looked.append(number)
                yield filled(Notice, description=8_000 * "x", extra={"backtrace": 16_000 * "y"})

    # When its first page is asked for
    page = HubNotices(cast(Any, Log())).page(PROJECT, NoticeQuery())
    # Then it is shown, and what was looked at is no more than some megabytes
    assert len(page.notifications) == PER_PAGE
    assert len(looked) * 24_000 <= LOOKED_AT_CHARACTERS + 24_000
