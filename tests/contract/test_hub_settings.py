"""What :class:`pushhub.hub.ports.HubSettings` promises, of the fake and of DynamoDB."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial

import pytest
from tests.cloud import aws_services as aws
from tests.contract.both import both
from tests.contract.filled import filled
from tests.contract.samples import NOW, OTHER_PROJECT, PROJECT
from tests.fakes import FakeClock
from tests.fakes.credentials import credentials
from tests.fakes.hub import FakeHubSettings
from tests.fakes.racing import together

from pushhub.base.errors import Conflict
from pushhub.base.json_text import Verbatim
from pushhub.hub.model.integration import Integration
from pushhub.hub.model.mapping import ServiceMapping
from pushhub.hub.model.parameters import DataType, Parameter
from pushhub.hub.model.schedule import Scheduler
from pushhub.hub.ports import HubSettings
from pushhub.hub.store.dynamodb_settings import DynamoDBHubSettings
from pushhub.hub.tokens import token_of

settings = both(FakeHubSettings, partial(DynamoDBHubSettings, credentials=credentials()), aws.HUB_TABLE)


FULL = filled(ServiceMapping, mapping_id="5" * 24, version=0, credentials=b"")
INTEGRATION = filled(Integration, integration_id="6" * 24, version=0, credentials=b"")
SCHEDULER = Scheduler(
    project=PROJECT, scheduler_id="7" * 24, key="acme:poll", count=2, interval="hours", created_at=NOW, next_at=NOW
)


def test_a_mapping_is_kept_whole(settings: HubSettings) -> None:
    stored = settings.put_mapping(PROJECT, FULL)
    assert token_of(stored, PROJECT, credentials()) == FULL.token
    assert replace(stored, token=FULL.token, credentials=b"") == replace(FULL, version=1)
    assert settings.mapping(PROJECT, FULL.mapping_id) == stored
    assert settings.mappings(PROJECT) == [stored]


def test_mappings_come_in_the_order_they_were_made_and_for_their_store_only(settings: HubSettings) -> None:
    ids = [f"{number:024x}" for number in (3, 1, 2)]
    for each in ids:
        settings.put_mapping(PROJECT, replace(FULL, mapping_id=each))
    settings.put_mapping(OTHER_PROJECT, FULL)
    assert [each.mapping_id for each in settings.mappings(PROJECT)] == sorted(ids)
    assert settings.mapping(PROJECT, FULL.mapping_id) is None


def test_a_mapping_changed_meanwhile_is_not_overwritten(settings: HubSettings) -> None:
    first = settings.put_mapping(PROJECT, FULL)
    settings.put_mapping(PROJECT, replace(first, name="second"))
    with pytest.raises(Conflict):
        settings.put_mapping(PROJECT, replace(first, name="lost"))
    with pytest.raises(Conflict):
        settings.put_mapping(PROJECT, replace(FULL, name="made again"))
    settings.delete_mapping(PROJECT, FULL.mapping_id)
    with pytest.raises(Conflict):
        settings.put_mapping(PROJECT, first)


def test_deleting_says_whether_there_was_one(settings: HubSettings) -> None:
    settings.put_mapping(PROJECT, FULL)
    settings.put_integration(PROJECT, INTEGRATION)
    settings.put_scheduler(SCHEDULER)
    settings.set_parameter(parameter("a", 1))
    for expected in (True, False):
        assert settings.delete_mapping(PROJECT, FULL.mapping_id) is expected
        assert settings.delete_integration(PROJECT, INTEGRATION.integration_id) is expected
        assert settings.delete_scheduler(PROJECT, SCHEDULER.scheduler_id) is expected
        assert settings.delete_parameter(PROJECT, "a", NOW) is expected


def test_an_integration_is_kept_whole(settings: HubSettings) -> None:
    pending = replace(INTEGRATION, endpoint=None)
    stored = settings.put_integration(PROJECT, pending)
    assert settings.integration(PROJECT, INTEGRATION.integration_id) == stored
    full = settings.put_integration(PROJECT, replace(INTEGRATION, version=1))
    assert full.version == 2
    assert settings.integrations(PROJECT) == [full]
    with pytest.raises(Conflict):
        settings.put_integration(PROJECT, stored)


@pytest.mark.parametrize("others", [0, 30])
def test_schedulers_are_due_when_their_time_has_come(settings: HubSettings, others: int) -> None:
    # Given few schedulers in all, or many that are not due yet
    for number in range(others):
        settings.put_scheduler(replace(SCHEDULER, scheduler_id=f"{number:024d}", next_at=NOW + 9_000))
    stored = settings.put_scheduler(SCHEDULER)
    other = replace(SCHEDULER, project=OTHER_PROJECT, scheduler_id="8" * 24, next_at=NOW + 1)
    settings.put_scheduler(other)
    assert settings.due_schedulers(NOW - 1, 10) == []
    assert settings.due_schedulers(NOW, 10) == [stored]
    assert [each.project for each in settings.due_schedulers(NOW + 1, 10)] == [PROJECT, OTHER_PROJECT]
    assert len(settings.due_schedulers(NOW + 1, 1)) == 1
    # Moved on, it is due later
    settings.put_scheduler(replace(stored, next_at=NOW + 100))
    assert [each.project for each in settings.due_schedulers(NOW + 1, 10)] == [OTHER_PROJECT]
    assert settings.scheduler(PROJECT, SCHEDULER.scheduler_id) == replace(stored, next_at=NOW + 100, version=2)
    assert len(settings.schedulers(PROJECT)) == 1 + others
    with pytest.raises(Conflict):
        settings.put_scheduler(stored)


def parameter(name: str, value: object, as_of: int = NOW, data_type: DataType = DataType.STRING) -> Parameter:
    return Parameter(project=PROJECT, name=name, value=value, data_type=data_type, as_of=as_of)


def stored_parameter(settings: HubSettings, parameter: Parameter) -> Collection[str]:
    """Its item, if it is on DynamoDB."""
    if not isinstance(settings, DynamoDBHubSettings):
        return ()
    return next(each for each in settings.all(PROJECT, "PARAMETER#") if parameter.parameter_id in each["sk"]["S"])


@pytest.mark.parametrize("value", ["", "größe", 5, Verbatim("1.50"), True, None, [{"standard": "GROUND"}], {"a": [1]}])
def test_parameter_values_are_kept_as_they_are(settings: HubSettings, value: object) -> None:
    assert settings.set_parameter(parameter("acme.x", value))
    [stored] = settings.parameters(PROJECT)
    assert stored.value == value
    assert type(stored.value) is type(value)


def test_parameters_are_one_per_name_in_order_of_names(settings: HubSettings) -> None:
    for name in ("b", "a", "c" * 255, "a"):
        settings.set_parameter(parameter(name, name))
    assert [each.name for each in settings.parameters(PROJECT)] == ["a", "b", "c" * 255]
    assert settings.parameters(OTHER_PROJECT) == []


def test_a_service_s_parameters_are_read_beside_many_others(settings: HubSettings) -> None:
    # Given more than a page of parameters
    large = [parameter(f"p{number}", 32_768 * "x") for number in range(40)]
    for each in large:
        settings.set_parameter(each)
    # When a service is asked that has some, in the order of its mapping, then it gets those that are there
    some = [large[each] for each in (7, 39, 0, 12)]
    assert settings.parameters_of(PROJECT, [*(each.parameter_id for each in some), "gone"]) == some
    assert settings.parameters_of(PROJECT, []) == settings.parameters_of(OTHER_PROJECT, ["x"]) == []


def test_an_older_value_never_replaces_a_newer_one(settings: HubSettings) -> None:
    assert settings.set_parameter(parameter("w", "2", as_of=NOW, data_type=DataType.PASSWORD))
    assert not settings.set_parameter(parameter("w", "1", as_of=NOW - 1))
    assert settings.set_parameter(parameter("w", "2b", as_of=NOW))
    assert settings.set_parameter(parameter("w", "3", as_of=NOW + 1, data_type=DataType.INTEGER))
    # And it keeps the type it was created with
    assert settings.parameters(PROJECT) == [parameter("w", "3", as_of=NOW + 1, data_type=DataType.PASSWORD)]


def test_a_person_s_value_replaces_a_newer_one_and_its_type_if_wanted(settings: HubSettings) -> None:
    settings.set_parameter(parameter("w", "1", as_of=NOW + 9))
    for keep_type, expected in ((True, DataType.STRING), (False, DataType.PASSWORD)):
        settings.put_parameter(parameter("w", "2", data_type=DataType.PASSWORD), keep_type=keep_type)
        assert settings.parameters(PROJECT) == [parameter("w", "2", data_type=expected)]


@pytest.mark.parametrize("by", ["answer", "person", "person, who keeps the type"])
def test_what_was_deleted_comes_back_only_with_a_value_from_later(settings: HubSettings, by: str) -> None:
    # Given a parameter that was deleted
    settings.set_parameter(parameter("w", "1", as_of=NOW - 2, data_type=DataType.PASSWORD))
    assert settings.delete_parameter(PROJECT, "w", NOW)
    # When it is set as of before, then it does not come back
    before = parameter("w", "2", as_of=NOW - 1)
    assert not settings.set_parameter(before)
    assert settings.parameters(PROJECT) == settings.parameters_of(PROJECT, [before.parameter_id]) == []
    # When it is set as of later, or by a person, then it is a new one, which stays
    again = parameter("w", "3", as_of=NOW + 1)
    if by == "answer":
        assert settings.set_parameter(again)
    else:
        settings.put_parameter(again, keep_type=by != "person")
    assert settings.parameters(PROJECT) == settings.parameters_of(PROJECT, [again.parameter_id]) == [again]
    assert "ttl" not in stored_parameter(settings, again)


def test_types_are_noted_once(settings: HubSettings) -> None:
    for message_type in ("order:new", "a" * 200, "order:new", "ü:ö"):
        settings.note_type(PROJECT, message_type)
    assert settings.types(PROJECT) == ["a" * 200, "order:new", "ü:ö"]
    assert settings.types(OTHER_PROJECT) == []


def test_an_identity_is_claimed_by_one_message(settings: HubSettings) -> None:
    assert settings.claim(PROJECT, "m", "i", "1") == "1"
    assert settings.claim(PROJECT, "m", "i", "1") == "1"
    assert settings.claim(PROJECT, "m", "i", "2") == "1"
    assert settings.claim(PROJECT, "n", "i", "2") == "2"
    assert settings.claim(PROJECT, "m", "j", "2") == "2"
    assert settings.claim(OTHER_PROJECT, "m", "i", "2") == "2"


def test_of_racing_claims_one_wins(settings: HubSettings) -> None:
    claimed = together(8, lambda number: settings.claim(PROJECT, "m", "i", str(number)))
    assert len(set(claimed)) == 1


def test_a_write_that_the_client_repeats_counts_as_made() -> None:
    with aws.dynamodb() as real:
        client = aws.Intercepted(real)
        settings = DynamoDBHubSettings(client, aws.HUB_TABLE, FakeClock(), credentials())  # type: ignore[arg-type]
        for version in (0, 1):
            client.next("put_item", aws.repeated)
            assert settings.put_mapping(PROJECT, replace(FULL, version=version)).version == version + 1
