"""Numbers that strangers write as text."""

from __future__ import annotations

import pytest

from pushhub.base.numerals import digits, fraction, whole


@pytest.mark.parametrize(("text", "value"), [("0", 0), (" 12\n", 12), ("-7", -7), ("+7", 7), ("007", 7)])
def test_whole_numbers(text: str, value: int) -> None:
    assert whole(text) == value


@pytest.mark.parametrize("text", ["", "1_0", "١٢", "1.0", "1e3", "0x1f", "--1", "1 2", "9" * 19, "nan", "\u20031"])
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(ValueError, match="whole number"):
        whole(text)


def test_how_many_digits_are_read_is_the_readers_choice() -> None:
    assert whole("9" * 300, digits=300) == 10**300 - 1


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1), ("-1.5", -1.5), (".5", 0.5), ("2.", 2), ("1e3", 1000), ("1E-2", 0.01)]
)
def test_numbers(text: str, value: float) -> None:
    assert fraction(text) == value


@pytest.mark.parametrize(
    "text", ["", "nan", "NaN", "inf", "-Infinity", "1e999", "1_0.5", "١", "0x1p3", "1,5", ".", "e5", "9" * 401]
)
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a number|is too large"):
        fraction(text)


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("007", 7), ("12345", 12345)])
def test_digits(text: str, value: int) -> None:
    assert digits(text, 5) == value


@pytest.mark.parametrize("text", ["", "123456", "²", "١", "+1", "1 ", "1\n", "9" * 5_000])
def test_what_is_not_digits_alone(text: str) -> None:
    assert digits(text, 5) is None
