"""Which values of a message people can find it by."""

from __future__ import annotations

import pytest

from pushhub.engine.model.search import MAX_VALUE, MOST_READ, field_values, lookup_key

ORDER = (
    b'{"order": {"id": 4711, "paid": true, "lines": [1], "note": null, "total": 1.10}, "a.b": "dotted", "n": "0042"}'
)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("order.id", "4711"),
        ("order.paid", "true"),
        ("order.total", "1.10"),
        ("a.b", "dotted"),
        ("n", "0042"),
        ("order", None),
        ("order.lines", None),
        ("order.note", None),
        ("order.id.more", None),
        ("order.", None),
        ("missing", None),
    ],
)
def test_texts_numbers_as_they_are_written_and_booleans_are_values(field: str, value: str | None) -> None:
    assert field_values([field], ORDER, {}) == ({} if value is None else {field: value})


def test_headers_are_values_whatever_the_body_is() -> None:
    headers = {"X-Customer": "Anna"}
    assert field_values(["header:x-customer", "header:other", "n"], b"\xff", headers) == {"header:x-customer": "Anna"}


@pytest.mark.parametrize("body", [b"", b"[", b"\xff", b"null", b'"n"', b"[" * 60 + b"]" * 60, b'{"n": NaN}'])
def test_other_bodies_have_none(body: bytes) -> None:
    assert field_values(["n"], body, {}) == {}


def test_bodies_and_values_that_are_too_long_have_none() -> None:
    padding = b" " * MOST_READ
    assert field_values(["n"], b'{"n": "1"}' + padding, {}) == {}
    longest = "x" * MAX_VALUE
    assert field_values(["n"], f'{{"n": "{longest}"}}'.encode(), {}) == {"n": longest}
    assert field_values(["n"], f'{{"n": "{longest}x"}}'.encode(), {}) == {}
    assert field_values(["n"], b'{"n": "  "}', {}) == {}


def test_values_are_looked_up_without_case_and_space_around_and_cannot_be_read() -> None:
    assert lookup_key(" STRASSE 1 ") == lookup_key("straße 1")
    assert lookup_key("4711") != lookup_key("4712")
    assert "4711" not in lookup_key("4711")
    assert len(lookup_key("\ud800")) == 32
