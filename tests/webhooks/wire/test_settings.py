"""Settings of the Svix API that stand on the fields of a class: one new field is all that a new setting takes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.web.known_good import APPLICATION, EVENT_TYPE, WEBHOOK_ENDPOINT

from pushhub.base.fields import SPARSE, Setting, field_metadata, settings_of
from pushhub.web.description import additions_shown, settings_wanted
from pushhub.webhooks.model.application import ApplicationFields
from pushhub.webhooks.model.endpoint import EndpointFields
from pushhub.webhooks.model.event_type import EventType
from pushhub.webhooks.model.refusals import Unprocessable
from pushhub.webhooks.wire.fields import Fields
from pushhub.webhooks.wire.settings import SettingsFields


@dataclass(frozen=True, slots=True, kw_only=True)
class Oven:
    """Settings of each kind."""

    name: str = field(metadata=field_metadata(Setting(means="", least=1)))
    colour: str = field(default="", metadata=field_metadata(Setting(means="Its colour.", most=9)))
    most_heat: int | None = field(
        default=None,
        metadata=field_metadata(Setting(means="Degrees.", least=50, most=250, wire=("mostHeat", "heatLimit"))),
    )
    turns: int = field(default=1, metadata=field_metadata(Setting(means="Turns.", least=1, most=3)))
    with_fan: bool = field(
        default=False,
        metadata=field_metadata(
            Setting(means="Whether air moves.", shown="There if it does.", hidden=True, wire=("fan",)), SPARSE
        ),
    )
    serial: int = 7


OVEN = SettingsFields(Oven, read={})


def sent(**fields: Any) -> Fields:
    return Fields(fields)


def test_a_new_object_has_defaults_for_what_was_not_sent() -> None:
    created = Oven(**OVEN.given(sent(name="a", fan=True, serial=8), all_of_them=True))
    assert created == Oven(name="a", with_fan=True)


def test_a_change_has_only_what_was_sent_under_any_of_its_names() -> None:
    # Given a change under the old name, and null under the new one
    assert OVEN.given(sent(heatLimit=60)) == {"most_heat": 60}
    assert OVEN.given(sent(mostHeat=None)) == {"most_heat": None}
    assert OVEN.given(sent(mostHeat=None, heatLimit=70)) == {"most_heat": 70}
    # Then the rest keeps its values
    assert replace(Oven(name="a", turns=2), **OVEN.given(sent(fan=True))) == Oven(name="a", turns=2, with_fan=True)


@pytest.mark.parametrize(
    ("fields", "where", "said"),
    [
        ({}, "name", "A string is required"),
        ({"name": ""}, "name", "The string must have 1 to 65536 characters"),
        ({"name": "a", "colour": None}, "colour", "A string is required"),
        ({"name": "a", "colour": "ultramarin"}, "colour", "The string must have 0 to 9 characters"),
        ({"name": "a", "heatLimit": 49}, "heatLimit", "The number must be from 50 to 250"),
        ({"name": "a", "turns": True}, "turns", "A whole number is required"),
        ({"name": "a", "fan": None}, "fan", "True or false is required"),
    ],
)
def test_a_refusal_names_what_was_sent(fields: dict[str, Any], where: str, said: str) -> None:
    with pytest.raises(Unprocessable) as refused:
        OVEN.given(Fields(fields), all_of_them=True)
    assert [(each.where, each.text) for each in refused.value.problems] == [(("body", where), said)]


def test_an_answer_adds_what_is_not_the_default() -> None:
    assert dict(OVEN.additions(Oven(name="a"))) == {}
    assert dict(OVEN.additions(Oven(name="a", with_fan=True))) == {"fan": True}


def test_requests_and_answers_are_described() -> None:
    heat = {"type": ["integer", "null"], "description": "Degrees.", "minimum": 50, "maximum": 250}
    assert settings_wanted(Oven) == {
        "name": {"type": "string", "minLength": 1},
        "colour": {"type": "string", "description": "Its colour.", "maxLength": 9},
        "mostHeat": heat,
        "heatLimit": {**heat, "description": "The old name of mostHeat."},
        "turns": {"type": "integer", "description": "Turns.", "minimum": 1, "maximum": 3},
        "fan": {"type": "boolean", "description": "Whether air moves."},
    }
    assert additions_shown(Oven) == {"fan": {"type": "boolean", "description": "There if it does."}}


@pytest.mark.parametrize(
    ("cls", "sample"), [(ApplicationFields, APPLICATION), (EndpointFields, WEBHOOK_ENDPOINT), (EventType, EVENT_TYPE)]
)
def test_every_setting_is_in_the_request_that_is_tried_with_odd_values(cls: type, sample: dict[str, Any]) -> None:
    assert {each for name, _, _, setting in settings_of(cls) for each in setting.names(name)} <= sample.keys()
