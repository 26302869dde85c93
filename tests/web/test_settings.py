"""Settings that stand on the fields of a data class: read, shown and described from there."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.web.known_good import PUSH_QUEUE, QUEUE

from pushhub.base.errors import Invalid
from pushhub.base.fields import Setting, field_metadata, settings_of
from pushhub.engine.model.queue import DeadLetter, PushSettings, Queue
from pushhub.web.description import settings_shown, settings_wanted
from pushhub.web.settings import read, shown

DOCS = Path(__file__).parents[2] / "docs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Oven:
    """Settings of each kind."""

    heat: int = field(
        default=180, metadata=field_metadata(Setting(means="Degrees.", least=50, most=250, left_out="180 else."))
    )
    turns: int = field(default=1, metadata=field_metadata(Setting(means="Turns.", zero=True, hidden=True)))
    name: str = field(default="", metadata=field_metadata(Setting(means="Its name.", most=5, shown="")))
    fan: bool = field(default=False, metadata=field_metadata(Setting(means="Whether air moves.", hidden=True)))
    serial: int = 7


def test_only_what_a_request_has_is_changed() -> None:
    # Given a request with some settings, null, and something that is no setting
    given = read(Oven, {"turns": 0, "heat": None, "fan": True, "serial": 8, "colour": "red"})

    # Then what it lacks reads None, and the value keeps it
    assert (given.heat, given.turns, given.name, given.fan) == (None, 0, None, True)
    assert given.applied(Oven(heat=200)) == Oven(heat=200, turns=0, fan=True)
    with pytest.raises(AttributeError):
        given.colour  # noqa: B018


def test_zero_is_not_given_unless_it_is_a_number_like_others() -> None:
    given = read(Oven, {"heat": 0, "turns": 0})
    assert (given.heat, given.turns) == (None, 0)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"heat": 49}, "heat must be from 50 to 250"),
        ({"heat": 251}, "heat must be from 50 to 250"),
        ({"heat": True}, "heat must be a whole number"),
        ({"name": 1}, "name must be a string"),
        ({"name": "grüßen"}, "name must have 0 to 5 characters"),
        ({"fan": 1}, "fan must be true or false"),
    ],
)
def test_a_refusal_names_the_setting(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(Invalid, match=f"^{said}$"):
        read(Oven, fields)


def test_an_answer_hides_what_it_may_while_it_is_the_default() -> None:
    assert shown(Oven()) == {"heat": 180, "name": ""}
    assert shown(Oven(turns=2, fan=True)) == {"heat": 180, "turns": 2, "name": "", "fan": True}


def test_requests_and_answers_are_described() -> None:
    assert settings_wanted(Oven) == {
        "heat": {"type": "integer", "description": "Degrees. 180 else.", "minimum": 50, "maximum": 250},
        "turns": {"type": "integer", "description": "Turns."},
        "name": {"type": "string", "description": "Its name.", "maxLength": 5},
        "fan": {"type": "boolean", "description": "Whether air moves."},
    }
    described = settings_shown(Oven)
    assert described["required"] == ["heat", "name"]
    assert described["properties"]["name"] == {"type": "string"}
    assert described["properties"]["heat"] == {"type": "integer", "description": "Degrees."}


@pytest.mark.parametrize(
    ("cls", "sample"),
    [
        (Queue, QUEUE),
        (PushSettings, PUSH_QUEUE["push"]),
        (DeadLetter, QUEUE["dead_letter"]),
    ],
)
def test_every_setting_is_in_the_request_that_is_tried_with_odd_values(cls: type, sample: dict[str, Any]) -> None:
    assert {name for name, _, _, _ in settings_of(cls)} <= sample.keys()


@pytest.mark.parametrize(("cls", "prefix"), [(Queue, ""), (PushSettings, "push."), (DeadLetter, "dead_letter.")])
def test_the_page_of_the_protocol_has_every_setting_with_its_default_and_bounds(cls: type, prefix: str) -> None:
    """Given the settings of a class, then the page's table has a row for each, which may say more."""
    page = (DOCS / "ironmq.md").read_text().splitlines()
    for name, annotation, default, setting in settings_of(cls):
        if annotation not in {"int", "str", "bool"}:
            continue
        value = {"": "none", False: "`false`", MISSING: ""}.get(default) if annotation != "int" else f"{default:,}"
        bounds = "" if setting.most is None else f"{setting.least or 0}..{setting.most:,}: "
        if annotation == "str":
            bounds = bounds.replace(":", " characters:")
        means = setting.means.split(". ")[0].rstrip(".")
        row = f"| `{prefix}{name}` | {value} | {bounds}{means}".replace("|  |", "| |")
        assert any(line.startswith(row) for line in page), f"docs/ironmq.md has no row {row} ..."
