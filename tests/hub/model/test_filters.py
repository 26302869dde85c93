"""The ten operators, ``any`` and ``all``, and paths without values."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, target
from hypothesis import strategies as st
from tests.fakes.effort import effort

from pushhub.base.errors import TooMuchWork
from pushhub.base.patterns import Pattern
from pushhub.base.steps import Steps
from pushhub.hub.model import filters as filters_module
from pushhub.hub.model.filters import PATTERN_STEPS, Filter, FilterOperator, MatchRule, passes


def message(**order: Any) -> dict[str, Any]:
    return {"message": "order:new", "message_id": "5" * 24, "payload": {"order": order}}


def accepts(operator: str, value: str, found: Any, rule: str = "all") -> bool:
    one = Filter(path="payload.order.field", operator=FilterOperator(operator), value=value, match_rule=MatchRule(rule))
    return one.accepts(message(field=found))


@pytest.mark.parametrize(
    ("operator", "value", "found", "fits"),
    [
        ("eq", "complete", "complete", True),
        ("eq", "complete", "Complete", False),
        ("eq", "5", 5, True),
        ("eq", "true", True, True),
        ("eq", "1.5", 1.5, True),
        ("eq", "", None, True),
        ("contains", "grün", ["rot", "grün"], True),
        ("contains", "größe", {"größe": 1}, True),
        ("eq", '["☃"]', ["☃"], True),
        ("gt", "nan", 1, False),
        ("lt", "inf", 1, False),
        ("gt", "0", "1_0", False),
        ("neq", "complete", "cart", True),
        ("neq", "complete", "complete", False),
        ("gt", "10", 9, False),
        ("gt", "10", "10.5", True),
        ("gt", "10", "9", False),
        ("gt", "9", "10", True),
        ("gt", "10", "ten", False),
        ("gt", "ten", 11, False),
        ("gt", "1", None, False),
        ("lt", "10", 9.99, True),
        ("lt", "10", 10, False),
        ("begin", "R1", "R123", True),
        ("begin", "1", "R123", False),
        ("contains", "12", "R123", True),
        ("contains", "((a)|(b))", "a", False),
        ("contains", "((a)|(b))", "x((a)|(b))y", True),
        ("end", "23", "R123", True),
        ("end", "R1", "R123", False),
        ("present", "", "x", True),
        ("present", "", 0, True),
        ("present", "", False, True),
        ("present", "", None, False),
        ("present", "", "", False),
        ("present", "", "null", False),
        ("empty", "", None, True),
        ("empty", "", "null", True),
        ("empty", "", "x", False),
        ("match", "^R[0-9]+$", "R123", True),
        ("match", "^R[0-9]+$", "W123", False),
        ("match", "[0-9]", 7, True),
    ],
)
def test_operators(operator: str, value: str, found: Any, fits: bool) -> None:
    assert accepts(operator, value, found) is fits


def test_all_is_the_default_and_any_needs_one() -> None:
    skus = message(items=[{"sku": "A-1"}, {"sku": "B-2"}])
    one = {"path": "payload.order.items.*.sku", "operator": FilterOperator.BEGIN, "value": "A"}
    assert not Filter(**one).accepts(skus)  # type: ignore[arg-type]
    assert Filter(**one, match_rule=MatchRule.ANY).accepts(skus)  # type: ignore[arg-type]


@pytest.mark.parametrize("operator", list(FilterOperator))
@pytest.mark.parametrize("rule", list(MatchRule))
def test_a_path_that_leads_nowhere_fits_neq_and_empty_only(operator: FilterOperator, rule: MatchRule) -> None:
    one = Filter(path="payload.order.nothing.*.here", operator=operator, value="x", match_rule=rule)
    assert one.accepts(message(field=1)) is (operator in (FilterOperator.NEQ, FilterOperator.EMPTY))


def test_filters_reach_every_field_of_the_message() -> None:
    assert Filter(path="message", operator=FilterOperator.EQ, value="order:new").accepts(message())


def test_several_filters_must_all_pass() -> None:
    complete = Filter(path="payload.order.status", operator=FilterOperator.EQ, value="complete")
    large = Filter(path="payload.order.total", operator=FilterOperator.GT, value="100")
    assert passes([complete, large], message(status="complete", total=101))
    assert not passes([complete, large], message(status="complete", total=99))
    assert passes([], message())


def test_patterns_are_looked_at_last_and_all_must_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a message, and filters of which two have patterns
    compiled: list[str] = []

    def counted(text: str) -> Pattern:
        compiled.append(text)
        return Pattern(text)

    monkeypatch.setattr(filters_module, "Pattern", counted)
    patterns = [Filter(path="message", operator=FilterOperator.MATCH, value=value) for value in ("^order", "new$")]
    complete = Filter(path="payload.order.status", operator=FilterOperator.EQ, value="complete")
    nowhere = Filter(path="payload.none", operator=FilterOperator.MATCH, value="x")
    # Then they are compiled if everything else passes, and only then
    assert not passes([*patterns, complete], message(status="cart"))
    assert not passes([*patterns, nowhere], message(status="complete"))
    assert compiled == []
    assert passes([*patterns, complete], message(status="complete"))
    assert compiled == ["^order", "new$"]
    assert not passes([*patterns, replace(patterns[0], value="^cart")], message())


def test_patterns_and_long_texts_have_a_budget_of_their_own_that_all_share() -> None:
    # Given a message that is long, and a pattern that takes at worst somewhat more than half of the steps for it
    long = message(field=["a" * 10_000] * 20)
    one = Filter(path="payload.order.field.*", operator=FilterOperator.MATCH, value="(a|b)*a(a|b){13}$")
    assert PATTERN_STEPS / 2 < 20 * Pattern(one.value).instructions * 10_000 / 64 < PATTERN_STEPS
    # Then it can be used once
    assert passes([one], long)
    with pytest.raises(TooMuchWork):
        passes([one, one], long)


WIDE = {"payload": [[{"a": "x" * 100, "b": [1, 2]}] * 30] * 40}
SEGMENTS = st.sampled_from(["payload", "*", "*", "*", "0", "a", "b"])
FILTERS = st.lists(
    st.builds(
        Filter,
        path=st.lists(SEGMENTS, max_size=8).map(lambda drawn: ".".join(["payload", *drawn])),
        operator=st.sampled_from([each for each in FilterOperator if each is not FilterOperator.MATCH]),
        value=st.sampled_from(["x", "1", ""]),
        match_rule=st.sampled_from(MatchRule),
    ),
    max_size=50,
)


@settings(max_examples=40, deadline=None)
@given(FILTERS)
def test_a_search_for_the_most_work_finds_none_that_is_not_counted(filters: list[Filter]) -> None:
    few = 4_000
    steps = Steps(few)

    def work() -> None:
        with suppress(TooMuchWork):
            passes(filters, WIDE, steps)

    done = effort(work)
    target(float(steps.spent), label="steps")
    target(done / (1 + steps.spent), label="work for a step")
    assert steps.spent <= few
    # Fifty filters, each of which is looked at, and then the steps.
    assert done <= 120 * (50 + steps.spent)


def test_a_value_that_is_too_large_to_be_written_as_json_is_not_written() -> None:
    # Given a list whose last value could not be written at all
    large = {"payload": [0.5] * 100_000 + [object()]}
    one = Filter(path="payload", operator=FilterOperator.NEQ, value="y")
    # Then it is refused before that is noticed
    with pytest.raises(TooMuchWork):
        passes([one], large)


def test_filters_that_take_too_many_steps_are_told_of() -> None:
    large = {"payload": [["x"] * 100] * 100}
    some = [Filter(path=f"payload.*.*{'.x' * count}", operator=FilterOperator.NEQ, value="y") for count in range(50)]
    assert passes(some[:1], large)
    with pytest.raises(TooMuchWork):
        passes(some[:1] * 50, large)
