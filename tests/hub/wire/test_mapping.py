"""Mappings as the API and the admin client write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pushhub.base.patterns import Pattern
from pushhub.hub.model.filters import Filter, FilterOperator, MatchRule
from pushhub.hub.model.mapping import ServiceMapping, ServiceOptions
from pushhub.hub.wire import mapping as mapping_module
from pushhub.hub.wire.fields import CheckedFields, InvalidObject
from pushhub.hub.wire.mapping import mapping_view, read_filters, read_mapping

FRESH = ServiceMapping(mapping_id="5" * 24, name="", url="", token="", messages=())
FULL: dict[str, Any] = {
    "name": "acme.receive",
    "url": "http://ep.example/receive",
    "token": "t" * 32,
    "messages": ["order:new", "order:updated"],
    "parameters": ["a" * 24],
    "identifiers": {"order_number": "payload.order.number"},
    "filters": [{"path": "payload.order.status", "operator": "eq", "value": "complete", "match_rule": "all"}],
    "options": {"retries_allowed": True, "retry_base": 5, "retry_cap": 60, "max_attempts": 9},
    "enabled": True,
    "required": False,
}


def errors_of(fields: dict[str, Any], mapping: ServiceMapping = FRESH) -> dict[str, list[str]]:
    with pytest.raises(InvalidObject) as caught:
        read_mapping(CheckedFields(fields), mapping)
    return caught.value.errors


def test_a_whole_mapping() -> None:
    assert read_mapping(CheckedFields(FULL), FRESH) == ServiceMapping(
        mapping_id="5" * 24,
        name="acme.receive",
        url="http://ep.example/receive",
        token="t" * 32,
        messages=("order:new", "order:updated"),
        parameter_ids=("a" * 24,),
        identifiers={"order_number": "payload.order.number"},
        filters=(Filter(path="payload.order.status", operator=FilterOperator.EQ, value="complete"),),
        options=ServiceOptions(retries_allowed=True, retry_base=5, retry_cap=60, max_attempts=9),
    )


def test_the_admin_client_sends_filters_and_identifiers_as_json_text_inside() -> None:
    sent = {**FULL, "filters": json.dumps(FULL["filters"]), "identifiers": json.dumps(FULL["identifiers"])}
    assert read_mapping(CheckedFields(sent), FRESH) == read_mapping(CheckedFields(FULL), FRESH)


def test_a_web_form_sends_everything_as_text() -> None:
    sent = {
        **{key: FULL[key] for key in ("name", "url", "token")},
        "messages": ["", "order:new"],
        "filters": {"0": {"path": "message", "operator": "present"}},
        "identifiers": "",
        "parameters": [""],
        "options": {"retries_allowed": "false", "retry_base": "5", "retry_cap": "60"},
        "enabled": "1",
    }
    read = read_mapping(CheckedFields(sent), FRESH)
    assert read.messages == ("order:new",)
    assert read.filters == (Filter(path="message", operator=FilterOperator.PRESENT),)
    assert read.options == ServiceOptions(retries_allowed=False, retry_base=5, retry_cap=60)
    assert (read.enabled, read.parameter_ids, read.identifiers) == (True, (), {})


def test_what_is_not_sent_stays() -> None:
    stored = read_mapping(CheckedFields(FULL), FRESH)
    assert read_mapping(CheckedFields({}), stored) == stored
    changed = read_mapping(CheckedFields({"enabled": False, "options": {"retry_cap": 600}, "filters": []}), stored)
    assert (changed.enabled, changed.filters) == (False, ())
    assert changed.options == ServiceOptions(retries_allowed=True, retry_base=5, retry_cap=600, max_attempts=9)


@pytest.mark.parametrize("nothing", [None, ""])
def test_attempts_are_unlimited_again_without_a_value(nothing: object) -> None:
    stored = read_mapping(CheckedFields(FULL), FRESH)
    changed = read_mapping(CheckedFields({"options": {"max_attempts": nothing}}), stored)
    assert changed.options == ServiceOptions(retries_allowed=True, retry_base=5, retry_cap=60, max_attempts=None)


def test_what_a_mapping_must_have() -> None:
    assert errors_of({}) == {
        "url": ["can't be blank"],
        "token": ["can't be blank"],
        "name": ["can't be blank"],
        "messages": ["can't be blank"],
    }


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"url": "ftp://ep.example"}, "url"),
        ({"url": 5}, "url"),
        ({"url": "http://u:p@ep.example/"}, "url"),
        ({"token": "a\r\nX-Evil: 1"}, "token"),
        ({"token": "schlüssel"}, "token"),
        ({"name": {"a": 1}}, "name"),
        ({"messages": "two words"}, "messages"),
        ({"messages": [5]}, "messages"),
        ({"messages": ["a:b"] * 201}, "messages"),
        ({"parameters": ["acme.key"]}, "parameters"),
        ({"filters": "[{"}, "filters"),
        ({"filters": ["x"]}, "filters"),
        ({"filters": [{"operator": "eq"}]}, "filters"),
        ({"filters": [{"path": "a", "operator": "like"}]}, "filters"),
        ({"filters": [{"path": "a", "operator": ["eq"]}]}, "filters"),
        ({"filters": [{"path": "a", "match_rule": "some"}]}, "filters"),
        ({"filters": [{"path": "a", "operator": "match", "value": "("}]}, "filters"),
        ({"filters": [{"path": "a"}] * 51}, "filters"),
        ({"filters": [{"path": "a", "value": "x" * 2001}]}, "filters"),
        ({"identifiers": {"a" * 501: "b"}}, "identifiers"),
        ({"identifiers": ["a"]}, "identifiers"),
        ({"identifiers": {"a": 5}}, "identifiers"),
        ({"identifiers": "{"}, "identifiers"),
        ({"enabled": "maybe"}, "enabled"),
        ({"options": {"retry_base": 0}}, "options"),
        ({"options": {"retry_base": "x"}}, "options"),
        ({"options": {"retry_base": 100, "retry_cap": 50}}, "options"),
        ({"options": {"max_attempts": 1.5}}, "options"),
        ({"options": "[" * 100_000}, "options"),
        ({"required": True, "enabled": False}, "enabled"),
    ],
)
def test_what_is_wrong_is_said_of_its_field(changes: dict[str, Any], field: str) -> None:
    assert list(errors_of({**FULL, **changes})) == [field]


def test_all_that_is_wrong_is_said_at_once() -> None:
    assert set(errors_of({**FULL, "url": "x", "messages": [], "options": {"retry_base": -1}})) == {
        "url",
        "messages",
        "options",
    }


def test_the_view_holds_the_filters_in_both_spellings() -> None:
    view = mapping_view(read_mapping(CheckedFields(FULL), FRESH), "store1")
    assert view["id"] == "5" * 24
    assert view["store_id"] == "store1"
    assert view["filters"] == view["formatted_filters"] == FULL["filters"]
    assert json.loads(json.dumps(view))["options"]["retry_base"] == 5


def test_numbers_in_filters_become_text_as_comparisons_need_it() -> None:
    read = read_mapping(
        CheckedFields({**FULL, "filters": [{"path": "a", "operator": "gt", "value": 5, "match_rule": "any"}]}), FRESH
    )
    assert read.filters == (Filter(path="a", operator=FilterOperator.GT, value="5", match_rule=MatchRule.ANY),)


@pytest.mark.parametrize(
    ("value", "count", "why"),
    [
        ("(?i)" + "[\0-\uffff]" * 60, 50, ["have patterns that are longer than 500 characters together"]),
        ("a" * 501, 1, ["have patterns that are longer than 500 characters together"]),
        ("a{1000}", 5, ["have patterns of more than 4000 instructions together"]),
        ("a(?=b)", 2, [f"[{each}] value uses a lookahead, which RE2 does not have" for each in range(2)]),
    ],
)
def test_the_patterns_of_a_mapping_are_checked_one_by_one_and_together(value: str, count: int, why: list[str]) -> None:
    # Given filters with patterns
    fields = CheckedFields({"filters": [{"path": "payload.a", "operator": "match", "value": value}] * count})
    # When they are read, then what is wrong is said
    read_filters(fields)
    with pytest.raises(InvalidObject) as refused:
        fields.check()
    assert refused.value.errors == {"filters": why}


def test_unusable_patterns_are_not_compiled_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given fifty patterns, each as long as all may be together, and each too large
    compiled: list[str] = []

    def counted(text: str) -> Pattern:
        compiled.append(text)
        return Pattern(text)

    monkeypatch.setattr(mapping_module, "Pattern", counted)
    costly = {"path": "payload.a", "operator": "match", "value": r"\pL{1000}" + "x" * 490}
    # When they are read, then one is compiled
    read_filters(CheckedFields({"filters": [costly] * 50}))
    assert len(compiled) == 1
