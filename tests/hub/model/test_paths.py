"""Dotted paths with stars."""

from __future__ import annotations

from typing import Any

import pytest

from pushhub.hub.model.paths import MAX_VALUES, values_at

ORDER: dict[str, Any] = {
    "message": "order:new",
    "payload": {
        "order": {
            "number": "R1",
            "total": 12.5,
            "note": None,
            "shipments": [
                {"items": [{"sku": "A"}, {"sku": "B"}]},
                {"items": []},
                {"items": [{"sku": "C"}, {"name": "no sku"}]},
            ],
        }
    },
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("message", ["order:new"]),
        ("payload.order.number", ["R1"]),
        ("payload.order.note", [None]),
        ("payload.order.shipments.*.items.*.sku", ["A", "B", "C"]),
        ("payload.order.shipments.0.items.1.sku", ["B"]),
        ("payload.order.shipments.9.items", []),
        ("payload.order.missing", []),
        ("payload.order.number.deeper", []),
        ("payload.order.*.items", []),
        ("payload.*.number", ["R1"]),
        ("", []),
        ("payload..order", []),
    ],
)
def test_a_path_leads_to_its_values(path: str, values: list[Any]) -> None:
    assert values_at(ORDER, path) == values


def test_a_star_in_a_star_does_not_run_away() -> None:
    wide = {"a": [{"b": list(range(1000))}] * 1000}
    assert len(values_at(wide, "a.*.b.*")) == MAX_VALUES


def test_odd_numerals_are_keys_not_indexes() -> None:
    assert values_at({"a": [1, 2]}, "a.²") == []
    assert values_at({"a": {"1": "one"}}, "a.1") == ["one"]
