"""What an answer may ask the hub to do, and that it may ask nothing by default."""

from __future__ import annotations

import time
from email.utils import formatdate, parsedate_to_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.base.verdict import Answer
from pushhub.engine.model.answer_rules import (
    MOST_RETRY_AFTER_MS,
    NOTHING_ASKED,
    STANDARD_RULES,
    AnswerRules,
    Asked,
    OnStatus,
    StatusRule,
    Stops,
    retry_after_ms,
)

NOW = 1_795_000_000_000


def answer(status: int, *, error: str = "", **headers: str) -> Answer:
    """An answer that has just arrived."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(
        status_code=status, message="", error_class=error, headers=named, started_at=NOW - 40, finished_at=NOW
    )


def asked(rules: AnswerRules, given: Answer, jitter: float = 0) -> Asked:
    return rules.asked(given, failed=not 200 <= given.status_code < 300, jitter=jitter)


@pytest.mark.parametrize(
    ("value", "wait_ms"),
    [
        ("120", 120_000),
        ("0", 0),
        ("1.5", 1_500),
        ("0.0001", 1),
        (" 7 ", 7_000),
        ("999999999999", MOST_RETRY_AFTER_MS),
        (formatdate(NOW / 1000 + 90, usegmt=True), 90_000),
        ("Tuesday, 17-Nov-26 12:00:00 GMT", None),
        ("Tue Nov 17 12:00:00 2026", None),
        (formatdate(NOW / 1000 - 90, usegmt=True), 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", MOST_RETRY_AFTER_MS),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str, wait_ms: int | None) -> None:
    read = retry_after_ms(value, NOW)
    assert read is not None
    if wait_ms is not None:
        assert read == wait_ms


def test_a_date_is_in_its_own_zone_and_in_gmt_if_it_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a machine in another time zone
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        at = parsedate_to_datetime("Tue, 17 Nov 2026 12:00:00 GMT").timestamp() * 1000
        for value in ("Tue, 17 Nov 2026 14:00:00 +0200", "Tue, 17 Nov 2026 12:00:00 -0000", "17 Nov 2026 12:00:00"):
            assert retry_after_ms(value, round(at) - 5_000) == 5_000
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_header_longer_than_any_date_is_not_read() -> None:
    date = "Tue, 17 Nov 2026 12:00:00 GMT"
    commented = f"{date} ({'x' * (64 - len(date) - 3)})"
    assert len(commented) == 64
    assert retry_after_ms(commented, NOW) is not None
    assert retry_after_ms(commented.replace("(", "(x"), NOW) is None


@pytest.mark.parametrize(
    "value",
    ["", "-1", "soon", "1e3", "nan", "inf", "1,5", "0x10", "١٢", "12 s", "Tue, 99 Foo 2026", "1" * 16, "9" * 9_999],
)
def test_anything_else_is_no_retry_after(value: str) -> None:
    assert retry_after_ms(value, NOW) is None


@given(value=st.text(max_size=80), now=st.integers(0, 4 * 10**12))
def test_no_retry_after_is_an_accident(value: str, now: int) -> None:
    wait_ms = retry_after_ms(value, now)
    assert wait_ms is None or 0 <= wait_ms <= MOST_RETRY_AFTER_MS


@pytest.mark.parametrize("status", [0, 204, 301, 404, 410, 429, 503])
def test_without_rules_an_answer_asks_for_nothing(status: int) -> None:
    given = answer(status, error="" if status else "timeout", retry_after="9", webhook_delivery="disable")
    assert asked(AnswerRules(), given) == NOTHING_ASKED


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (answer(500, retry_after="9"), Asked(wait_ms=9_000)),
        (answer(301, retry_after="9"), Asked(wait_ms=9_000)),
        (answer(200, retry_after="9"), NOTHING_ASKED),
        (answer(500, retry_after="?"), NOTHING_ASKED),
        (answer(500), NOTHING_ASKED),
        (answer(429), Asked(wait_ms=60_000)),
        (answer(502), NOTHING_ASKED),
        (answer(503, retry_after="9"), Asked(wait_ms=9_000)),
        (answer(504, retry_after="90"), Asked(wait_ms=90_000)),
        (answer(0, error="timeout"), Asked(wait_ms=60_000)),
        (answer(0, error="connect"), NOTHING_ASKED),
        (answer(410), Asked(stops=Stops.SUBSCRIBER, reason="status_410")),
        (answer(500, webhook_delivery="abort-message"), Asked(stops=Stops.DELIVERY, reason="asked_to_stop")),
        (answer(200, webhook_delivery="abort-message"), NOTHING_ASKED),
        (answer(500, webhook_delivery=" Disable "), Asked(stops=Stops.SUBSCRIBER, reason="asked_to_disable")),
        (answer(204, webhook_delivery="disable"), Asked(stops=Stops.SUBSCRIBER, reason="asked_to_disable")),
        (answer(500, webhook_delivery="please"), NOTHING_ASKED),
    ],
)
def test_the_standard_rules(given: Answer, expected: Asked) -> None:
    assert asked(STANDARD_RULES, given) == expected


@pytest.mark.parametrize("status", [502, 503, 504])
@pytest.mark.parametrize(
    ("before", "wait_ms"),
    [(None, 0), (500, 0), (0, 0), (200, 0), (429, 60_000), (502, 60_000), (503, 60_000), (504, 60_000)],
)
def test_what_a_restart_answers_slows_down_from_the_second_time_in_a_row(
    status: int, before: int | None, wait_ms: int
) -> None:
    assert STANDARD_RULES.asked(answer(status), failed=True, jitter=0, before=before) == Asked(wait_ms=wait_ms)


def test_what_was_slowed_down_together_does_not_come_back_together() -> None:
    waits = [asked(STANDARD_RULES, answer(429), jitter).wait_ms for jitter in (0, 0.5, 1)]
    assert waits == [60_000, 66_000, 72_000]


def test_a_retry_after_is_never_spread() -> None:
    assert asked(STANDARD_RULES, answer(503, retry_after="3600"), 1).wait_ms == 3_600_000


def test_the_first_rule_that_fits_a_status_decides() -> None:
    # Given a subscriber with its own rules in addition to the standard ones
    rules = AnswerRules(
        gone_disables=True,
        retry_after=True,
        on_status=(
            StatusRule(first=408, last=410, then=OnStatus.RETRY),
            StatusRule(first=400, last=499, then=OnStatus.STOP),
            StatusRule(first=0, last=0, then=OnStatus.DISABLE),
        ),
    )
    # Then a narrow rule before a wide one is an exception to it, and to 410 as well
    assert asked(rules, answer(404)) == Asked(stops=Stops.DELIVERY, reason="status_404")
    assert asked(rules, answer(410, retry_after="5")) == Asked(wait_ms=5_000)
    assert asked(rules, answer(0, error="dns")) == Asked(stops=Stops.SUBSCRIBER, reason="status_0")
    assert asked(rules, answer(500)) == NOTHING_ASKED
    # And a success is never a failure, whatever a rule says
    assert rules.asked(answer(404), failed=False, jitter=0) == NOTHING_ASKED
