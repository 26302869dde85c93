"""The ten operators, ``any`` and ``all``, and paths without values."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings, target
from hypothesis import strategies as st
from tests.fakes.effort import effort
from tests.fakes.patterns import re_matches

from pushhub.base.errors import Invalid, TooMuchWork
from pushhub.base.steps import Steps
from pushhub.hub.model.filters import Asked, Filter, MatchRule, Operator, PatternTimeout, check_pattern, passes


def message(**order: Any) -> dict[str, Any]:
    return {"message": "order:new", "message_id": "5" * 24, "payload": {"order": order}}


def accepts(operator: str, value: str, found: Any, rule: str = "all") -> bool:
    one = Filter(path="payload.order.field", operator=Operator(operator), value=value, match_rule=MatchRule(rule))
    return one.accepts(message(field=found), re_matches)


@pytest.mark.parametrize(
    ("operator", "value", "found", "fits"),
    [
        ("eq", "complete", "complete", True),
        ("eq", "complete", "Complete", False),
        ("eq", "5", 5, True),
        ("eq", "true", True, True),
        ("eq", "1.5", 1.5, True),
        ("eq", "", None, True),
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
    one = {"path": "payload.order.items.*.sku", "operator": Operator.BEGIN, "value": "A"}
    assert not Filter(**one).accepts(skus, re_matches)  # type: ignore[arg-type]
    assert Filter(**one, match_rule=MatchRule.ANY).accepts(skus, re_matches)  # type: ignore[arg-type]


@pytest.mark.parametrize("operator", list(Operator))
@pytest.mark.parametrize("rule", list(MatchRule))
def test_a_path_that_leads_nowhere_fits_neq_and_empty_only(operator: Operator, rule: MatchRule) -> None:
    one = Filter(path="payload.order.nothing.*.here", operator=operator, value="x", match_rule=rule)
    assert one.accepts(message(field=1), re_matches) is (operator in (Operator.NEQ, Operator.EMPTY))


def test_filters_reach_every_field_of_the_message() -> None:
    assert Filter(path="message", operator=Operator.EQ, value="order:new").accepts(message(), re_matches)


def test_several_filters_must_all_pass() -> None:
    complete = Filter(path="payload.order.status", operator=Operator.EQ, value="complete")
    large = Filter(path="payload.order.total", operator=Operator.GT, value="100")
    assert passes([complete, large], message(status="complete", total=101), re_matches)
    assert not passes([complete, large], message(status="complete", total=99), re_matches)
    assert passes([], message(), re_matches)


def test_a_pattern_is_run_once_over_all_values() -> None:
    runs: list[Asked] = []

    def matches(asked: Sequence[Asked]) -> list[list[bool]]:
        runs.extend(asked)
        return [[True] * len(texts) for _, texts in asked]

    one = Filter(path="payload.order.items.*.sku", operator=Operator.MATCH, value="x")
    assert one.accepts(message(items=[{"sku": "A"}, {"sku": 5}, {"sku": None}]), matches)
    assert runs == [("x", ["A", "5", ""])]


def test_a_pattern_that_takes_too_long_is_told_of() -> None:
    def matches(asked: Sequence[Asked]) -> list[list[bool]]:
        raise PatternTimeout(asked[0][0])

    with pytest.raises(PatternTimeout, match="The pattern x took too long"):
        Filter(path="message", operator=Operator.MATCH, value="x").accepts(message(), matches)


def test_patterns_are_checked_when_they_are_given() -> None:
    check_pattern("^order:(new|updated)$")
    with pytest.raises(Invalid, match="not a regular expression"):
        check_pattern("(")
    with pytest.raises(Invalid, match="longer"):
        check_pattern("a" * 501)


def test_all_patterns_of_a_mapping_are_run_at_once_and_only_if_they_matter() -> None:
    runs: list[Sequence[Asked]] = []

    def matches(asked: Sequence[Asked]) -> list[list[bool]]:
        runs.append(asked)
        return re_matches(asked)

    patterns = [Filter(path="message", operator=Operator.MATCH, value=value) for value in ("^order", "new$")]
    complete = Filter(path="payload.order.status", operator=Operator.EQ, value="complete")
    nowhere = Filter(path="payload.none", operator=Operator.MATCH, value="x")
    assert passes([*patterns, complete], message(status="complete"), matches)
    assert runs == [[("^order", ["order:new"]), ("new$", ["order:new"])]]
    assert not passes([*patterns, complete], message(status="cart"), matches)
    assert not passes([*patterns, nowhere], message(status="complete"), matches)
    assert len(runs) == 1


@pytest.mark.parametrize("pattern", ["(?i)[\\0-\\uffff]", "(?i:a)", "(?ai)x", "(?i-s:a)", "a(?=b)"])
def test_flags_are_accepted(pattern: str) -> None:
    check_pattern(pattern)


@pytest.mark.parametrize("pattern", ["(?i", "(?i)(", "(?j)a", "a(?<=b*)"])
def test_a_pattern_is_checked_in_spite_of_its_flags(pattern: str) -> None:
    with pytest.raises(Invalid, match="not a regular expression"):
        check_pattern(pattern)


WIDE = {"payload": [[{"a": "x" * 100, "b": [1, 2]}] * 30] * 40}
SEGMENTS = st.sampled_from(["payload", "*", "*", "*", "0", "a", "b"])
FILTERS = st.lists(
    st.builds(
        Filter,
        path=st.lists(SEGMENTS, max_size=8).map(lambda drawn: ".".join(["payload", *drawn])),
        operator=st.sampled_from([each for each in Operator if each is not Operator.MATCH]),
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
            passes(filters, WIDE, re_matches, steps)

    done = effort(work)
    target(float(steps.spent), label="steps")
    target(done / (1 + steps.spent), label="work for a step")
    assert steps.spent <= few
    # Fifty filters, each of which is looked at, and then the steps.
    assert done <= 120 * (50 + steps.spent)


def test_a_value_that_is_too_large_to_be_written_as_json_is_not_written() -> None:
    # Given a list whose last value could not be written at all
    large = {"payload": [0.5] * 100_000 + [object()]}
    one = Filter(path="payload", operator=Operator.NEQ, value="y")
    # Then it is refused before that is noticed
    with pytest.raises(TooMuchWork):
        passes([one], large, re_matches)


def test_filters_that_take_too_many_steps_are_told_of() -> None:
    large = {"payload": [["x"] * 100] * 100}
    some = [Filter(path=f"payload.*.*{'.x' * count}", operator=Operator.NEQ, value="y") for count in range(50)]
    assert passes(some[:1], large, re_matches)
    with pytest.raises(TooMuchWork):
        passes(some[:1] * 50, large, re_matches)
