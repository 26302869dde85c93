"""Regular expressions of strangers: what RE2 refuses, by name, and what the others may cost."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pushhub.base.errors import Invalid, TooMuchWork
from pushhub.base.patterns import MAX_INSTRUCTIONS, MAX_TEXT, Pattern
from pushhub.base.steps import Steps


def found(pattern: str, text: str) -> bool:
    return Pattern(pattern).found_in(text, Steps(10**9))


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("^R[0-9]+ ☃?$", "R1 ☃", True),
        ("^R[0-9]+ ☃?$", "W1", False),
        ("straße", "Hauptstraße 5", True),
        ("(?i)STRASSE", "Hauptstrasse 5", True),
        ("(?i)GRÜN", "grün", True),
        ("^.$", "ü", True),
        ("", "", True),
        (r"\x{20ac}\d", "costs €5", True),
        (r"(?s)a.b\z", "a\nb", True),
        ("a\x00b", "a\x00b", True),
        ("x", "\ud800x", True),
        ("[^\x00-\x7f]", "\ud800", False),
    ],
)
def test_what_patterns_find(pattern: str, text: str, fits: bool) -> None:
    assert found(pattern, text) is fits


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("a(?=b)", "uses a lookahead, which RE2 does not have"),
        ("a(?!b)", "uses a lookahead, which RE2 does not have"),
        ("(?<=a)b", "uses a lookbehind, which RE2 does not have"),
        ("(?<!a)b", "uses a lookbehind, which RE2 does not have"),
        (r"(a)\1", "uses a back-reference, which RE2 does not have"),
        (r"(?<n>a)\k<n>", "uses a back-reference, which RE2 does not have"),
        ("(?P<n>a)(?P=n)", "uses a back-reference, which RE2 does not have"),
        ("(?>a)", "uses an atomic group, which RE2 does not have"),
        ("(a)(?(1)b|c)", "uses a condition, which RE2 does not have"),
        ("(?#why)a", "uses a comment, which RE2 does not have"),
        ("(?R)", "uses a recursion, which RE2 does not have"),
        ("(?|a|b)", "uses a branch reset, which RE2 does not have"),
        ("(?x)a b", "uses a flag other than i, m, s and U, which RE2 does not have"),
        ("(?ai)x", "uses a flag other than i, m, s and U, which RE2 does not have"),
        ("a*+", "uses a possessive quantifier, which RE2 does not have"),
        ("a{2}+", "uses a possessive quantifier, which RE2 does not have"),
        (r"a\Z", r"uses \Z (the end of the text is \z), which RE2 does not have"),
        (r"\u00e4", r"uses \u (a character by its number is \x{20ac}), which RE2 does not have"),
        (r"\Ga", r"uses \G, which RE2 does not have"),
        ("(", "is not a regular expression: missing ): ("),
        ("(" * 300, f"is not a regular expression: missing ): {'(' * 40}..."),
        ("[z-a]", "is not a regular expression: invalid character class range: z-a"),
        ("*a", "is not a regular expression: no argument for repetition operator: *"),
        ("a**", "is not a regular expression: bad repetition operator: **"),
        ("a{1001}", "is not a regular expression: invalid repetition size: {1001}"),
        ("a\\", "is not a regular expression: trailing \\"),
        ("(\n", "is not a regular expression: missing ): ( "),
        ("\ud800", "is not valid Unicode"),
        ("a" * 501, "is longer than 500 characters"),
        (r"\pL{1000}", "is too large: it has more than 4000 instructions"),
        (".{1000}", "is too large: it has more than 4000 instructions"),
    ],
)
def test_what_cannot_be_used_is_refused_by_its_name(pattern: str, why: str) -> None:
    with pytest.raises(Invalid) as refused:
        Pattern(pattern)
    assert refused.value.message == why


def test_a_text_is_looked_at_up_to_its_limit() -> None:
    assert not found("b", "a" * MAX_TEXT + "b")
    assert found("b", "ü" * (MAX_TEXT - 1) + "b")


@pytest.mark.parametrize("pattern", ["(a|aa)+$", "(a*)*b", "(x+x+)+y", "([a-z]+)*b", "(.*)(.*)(.*)(.*)(.*)b$"])
def test_what_backtracks_elsewhere_is_linear_here(pattern: str) -> None:
    # Given a pattern that takes Python's engine longer than the universe has existed
    # Then it is answered at once, or this test never ends
    assert not found(pattern, "a" * (MAX_TEXT - 1) + "!")


def test_the_work_of_the_worst_case_is_paid_before() -> None:
    pattern, text = Pattern("(a{0,10}){0,10}b"), "ü" * 1_000
    # Given a budget for exactly one search: the instructions times the bytes
    price = 1 + pattern.instructions * 2_000 // 64
    steps = Steps(price)
    assert not pattern.found_in(text, steps)
    assert steps.left == 0
    # Then the next one is not made
    with pytest.raises(TooMuchWork):
        pattern.found_in("", steps)


def test_memory_is_bounded_for_everything_that_is_remembered_at_once() -> None:
    # Given a process of its own that uses two hundred patterns, each of which would like to remember megabytes
    program = """
import random, resource
from pushhub.base.patterns import Pattern
from pushhub.base.steps import Steps
text = "".join(random.Random(1).choice("ab") for _ in range(10_000))
Pattern("warm").found_in(text, Steps())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for each in range(200):
    Pattern(f"(a|b)*a(a|b){{{each % 20 + 20}}}{each}").found_in(text, Steps(10**9))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    # Then it grows by at most 256 KiB for each of the 128 that RE2 keeps, and some
    assert int(ran.stdout) < 128 * 256 + 8 * 1024


def test_the_largest_pattern_is_larger_than_any_that_people_write() -> None:
    ordinary = [
        r"^(order|shipment|invoice):(new|updated|deleted)$",
        r"[\w.+-]+@[\w-]+\.[\w.]+",
        r"^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$",
        r"(?i)^\p{Lu}\p{L}+$",
    ]
    assert sum(Pattern(each).instructions for each in ordinary) < MAX_INSTRUCTIONS
