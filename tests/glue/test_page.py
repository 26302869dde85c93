"""The page names the project in each row, and can be read on dark screens and phones."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from glue_jobs.delivery_report.page import charts
from glue_jobs.delivery_report.page.rendering import render
from tests.glue.pages import fate, results, text_of

ONE = {"project": "5f3e" * 6, "queue": "orders", "subscriber_id": "s1", "subscriber": "erp"}
MEASURED = {
    "attempts": 100,
    "failed": 50,
    "first_won": 40,
    "first_attempts": 90,
    "p50_ms": 5,
    "p95_ms": 50,
    "p99_ms": 500,
}


TRIED = {"attempt": 1, "tried": 5, "won": 5, "share": 1.0, "won_so_far": 1.0}


def anomaly(**whose: Any) -> dict[str, Any]:
    hour = datetime(2026, 11, 20, 10, tzinfo=UTC)
    told = {"started_at": hour, "ended_at": hour, "detail": "60 of 100 first tries failed", "score": 9.0}
    return {"anomaly": "failures", **whose, **told}


def made(**more: Any) -> Any:
    return results(
        overall=[fate(messages=1)],
        projects=[fate(project=ONE["project"], messages=1)],
        queues=[fate(project=ONE["project"], queue=ONE["queue"], messages=1)],
        sickest=[{**ONE, **MEASURED}],
        slowest=[{**ONE, **MEASURED}],
        **more,
    )


def test_every_row_names_its_project() -> None:
    page = made(anomalies=[anomaly(**ONE)])
    for part in ("subscribers", "anomalies", "projects"):
        assert "5f3e5…e5f3e" in text_of(page, part) or "5f3e5f…e5f3e" in text_of(page, part), part


def test_every_colour_of_a_chart_has_another_for_dark_screens() -> None:
    hour = datetime(2026, 11, 14, tzinfo=UTC)
    html = render(made())
    svg = charts.fates_by_hour([fate(hour=hour, delivered=3, first_won=1, open=1, expired=1)])
    assert not re.search(r"(?:fill|stroke)[:=]\W*#", svg)
    for name in set(re.findall(r"var\((--c-\w+)", svg)):
        # once for light screens, once for dark ones
        assert html.count(f"{name}:#") == 2, name


def test_a_table_with_sentences_has_its_numbers_named_where_there_is_no_head() -> None:
    html = render(made(anomalies=[anomaly(**ONE)]))
    assert 'data-name="attempts"' in html
    assert "content:attr(data-name)" in html


def test_each_day_stands_once_below_the_hours() -> None:
    # Given 55 hours, which begin at five in the morning
    first = datetime(2026, 11, 18, 5, tzinfo=UTC)
    rows = [fate(hour=first + timedelta(hours=n), delivered=1) for n in range(55)]
    svg = charts.fates_by_hour(rows)
    # Then each midnight has its day, and no day is printed over another
    assert [svg.count(day) for day in (">18 Nov<", ">19 Nov<", ">20 Nov<")] == [0, 1, 1]


def test_who_was_down_is_told_in_a_sentence_and_who_was_not_is_left_out() -> None:
    down = {**ONE, "times_down": 2, "sentence": "Down 2 times in 30 days, longest 3 h."}
    shown = text_of(
        made(outages=[down, {**ONE, "times_down": 0, "sentence": "Not down in 30 days."}], attempts_needed=[TRIED]),
        "retries",
    )
    assert "Down 2 times in 30 days, longest 3 h." in shown
    assert "Not down" not in shown
    assert "No subscriber was down." in text_of(made(attempts_needed=[TRIED]), "retries")


def test_that_nobody_asked_for_anomalies_is_said() -> None:
    assert "Nobody asked for them" in text_of(made(looked=False), "anomalies")
    assert "Nothing unusual" in text_of(made(), "anomalies")
    # And what may be expected of them
    assert "58 to 87 % was right" in text_of(made(), "anomalies")
