"""Every right of a function's role is used by some suite, or it is said why none uses it (``make rights``)."""

from __future__ import annotations

from simulation.rights import UNUSED, granted, listed, reason, unused


def test_every_right_is_used_or_named() -> None:
    assert [str(each) for each in unused(listed())] == [], "run what uses it, then make rights (docs/testing.md)"


def test_what_is_listed_as_used_is_granted() -> None:
    assert sorted(listed() - granted()) == [], "make rights writes the list anew"


def test_every_reason_is_for_a_right_that_no_suite_has_used() -> None:
    needed = {reason(each) for each in granted() - listed()}
    assert sorted({*UNUSED} - needed) == []
