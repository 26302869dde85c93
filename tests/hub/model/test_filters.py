"""The ten operators, ``any`` and ``all``, and paths without values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from pushhub.base.errors import Invalid
from pushhub.hub.model.filters import Filter, MatchRule, Operator, PatternTimeout, check_pattern, passes


def message(**order: Any) -> dict[str, Any]:
    return {"message": "order:new", "message_id": "5" * 24, "payload": {"order": order}}


def re_matches(pattern: str, texts: Sequence[str]) -> list[bool]:
    return [re.search(pattern, text) is not None for text in texts]


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
    runs: list[tuple[str, list[str]]] = []

    def matches(pattern: str, texts: Sequence[str]) -> list[bool]:
        runs.append((pattern, list(texts)))
        return [True] * len(texts)

    one = Filter(path="payload.order.items.*.sku", operator=Operator.MATCH, value="x")
    assert one.accepts(message(items=[{"sku": "A"}, {"sku": 5}, {"sku": None}]), matches)
    assert runs == [("x", ["A", "5", ""])]


def test_a_pattern_that_takes_too_long_is_told_of() -> None:
    def matches(pattern: str, texts: Sequence[str]) -> list[bool]:
        raise PatternTimeout(pattern)

    with pytest.raises(PatternTimeout, match="The pattern x took too long"):
        Filter(path="message", operator=Operator.MATCH, value="x").accepts(message(), matches)


def test_patterns_are_checked_when_they_are_given() -> None:
    check_pattern("^order:(new|updated)$")
    with pytest.raises(Invalid, match="not a regular expression"):
        check_pattern("(")
    with pytest.raises(Invalid, match="longer"):
        check_pattern("a" * 501)
