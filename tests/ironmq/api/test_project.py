"""What a project can learn about itself from the queue API: its activity, and its part of the delivery report."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.ironmq.api.hub import OTHER_PROJECT, Hub

from pushhub.base.times import iso_time
from pushhub.engine.model.activity import HOUR_MS, Activity
from pushhub.engine.records.report import TABLES


def test_the_last_day_is_told_hour_by_hour_with_the_hours_in_which_nothing_happened(hub: Hub) -> None:
    now = hub.world.clock.now()
    this = now - now % HOUR_MS
    # Given activity in this hour, of three hours ago, of the day before, and of another project
    for hour, accepted in ((this, 1), (this - 3 * HOUR_MS, 2), (this - 24 * HOUR_MS, 4)):
        hub.world.ports.activity.add_activity(PROJECT, hour, Activity(accepted=accepted, failed=1))
    hub.world.ports.activity.add_activity(OTHER_PROJECT, this, Activity(accepted=99))
    # When the project asks
    hours = hub.call("GET", "/activity").body["hours"]
    # Then there are 24 hours up to this one
    assert [each["hour"] for each in hours] == [iso_time(this - back * HOUR_MS) for back in range(23, -1, -1)]
    assert {each["hour"]: each["accepted"] for each in hours if each["accepted"]} == {
        iso_time(this - 3 * HOUR_MS): 2,
        iso_time(this): 1,
    }
    counted = {"accepted": 1, "attempts": 0, "delivered": 0, "failed": 1, "given_up": 0}
    assert hours[-1] == {"hour": iso_time(this), **counted, "p50_ms": None, "p95_ms": None, "p99_ms": None}
    # And as many as requested
    assert len(hub.call("GET", "/activity?hours=168").body["hours"]) == 168
    assert [each["accepted"] for each in hub.call("GET", "/activity?hours=1").body["hours"]] == [1]


def test_how_long_attempts_took_is_told_of_each_hour_and_of_all_together(hub: Hub) -> None:
    this = hub.world.clock.now() // HOUR_MS * HOUR_MS
    # Given 99 attempts of at most 10 ms in one hour, and one of some 5 s in the next
    for hour, took in ((this - HOUR_MS, {4: 99}), (this, {40: 1})):
        hub.world.ports.activity.add_activity(PROJECT, hour, Activity(attempts=sum(took.values()), took=took))
    answer = hub.call("GET", "/activity?hours=2").body
    assert [(each["p50_ms"], each["p99_ms"]) for each in answer["hours"]] == [(9, 10), (4712, 5112)]
    assert (answer["p50_ms"], answer["p99_ms"]) == (9, 10)


@pytest.mark.parametrize("hours", ["169", "-1", "x", "1.5", "9999999"])
def test_no_more_than_a_week_is_told(hours: str) -> None:
    answer = Hub().call("GET", f"/activity?hours={hours}")
    assert answer.status == 400
    assert "hours" in answer.msg


def test_no_other_project_may_look(hub: Hub) -> None:
    assert hub.send("GET", f"/3/projects/{PROJECT}/activity", token=hub.other_token).status == 401


ROWS: list[dict[str, Any]] = [
    {"project": PROJECT, "queue": "orders", "messages": 3},
    {"project": OTHER_PROJECT, "queue": "secret", "messages": 9},
    {"project": None, "queue": "of nobody", "messages": 1},
]


def test_a_project_is_told_its_own_part_of_the_report_and_nothing_of_others(hub: Hub) -> None:
    # Given a report of two projects
    reports = hub.world.ports.reports
    reports.tables["verdicts"] = [
        {"project": each, "owed": len(each), "conserved": True} for each in (OTHER_PROJECT, PROJECT)
    ]
    for table in TABLES:
        reports.tables[table] = ROWS
    # When one of them asks, then it gets its own verdict and rows
    assert hub.call("GET", "/report").body == {
        "report": {
            "from": "2026-11-15",
            "to": "2026-11-21",
            "as_of": "2026-11-22T01:30:00.000000+00:00",
            "verdict": {"owed": len(PROJECT), "conserved": True},
        }
    }
    for table in TABLES:
        answer = hub.call("GET", f"/report/{table}").body
        assert answer == {"rows": [{"queue": "orders", "messages": 3}], "complete": True}
    # And no other project's token shows it
    assert hub.send("GET", f"/3/projects/{PROJECT}/report", token=hub.other_token).status == 401


def test_a_long_table_says_that_there_is_more(hub: Hub) -> None:
    hub.world.ports.reports.tables["queues"] = ROWS + [{"project": "p", "queue": str(number)} for number in range(1997)]
    assert hub.call("GET", "/report/queues").body == {
        "rows": [{"queue": "orders", "messages": 3}],
        "complete": False,
    }


def test_tables_that_tell_of_everybody_are_not_to_be_had(hub: Hub) -> None:
    hub.world.ports.reports.tables["overall"] = [{"project": PROJECT, "messages": 1}]
    for table in ("overall", "verdicts", "slowest", "..", "latest"):
        assert hub.call("GET", f"/report/{table}").status == 404


def test_without_a_report_that_is_said(hub: Hub) -> None:
    hub.world.ports.reports.report = None
    for path in ("/report", "/report/queues"):
        assert hub.call("GET", path).status == 404


def test_a_report_that_knows_nothing_of_the_project_has_no_verdict() -> None:
    assert Hub().call("GET", "/report").body["report"]["verdict"] is None


def outage(queue: str, subscriber_id: str, project: str = PROJECT) -> dict[str, Any]:
    sentence = f"Down once: {subscriber_id}"
    return {"project": project, "queue": queue, "subscriber_id": subscriber_id, "subscriber": "shop"} | {
        "sentence": sentence
    }


def test_a_subscribers_outages_are_told_of_it_alone(hub: Hub) -> None:
    # Given a subscriber that was registered twice under its name, another queue's, and another project's
    rows = [outage("orders", "s1"), outage("orders", "s2"), outage("bills", "s1"), outage("orders", "s1", "p2")]
    hub.world.ports.reports.tables["outages"] = rows
    # Then its name finds both, its id the one
    by_name = hub.call("GET", "/outages?queue=orders&subscriber=shop").body
    assert by_name["said"] == ["Down once: s1", "Down once: s2"]
    assert by_name["as_of"] == "2026-11-22T01:30:00.000000+00:00"
    by_id = hub.call("GET", "/outages?queue=orders&subscriber=s2").body
    assert [each["subscriber_id"] for each in by_id["outages"]] == ["s2"]
    assert all("project" not in each for each in by_name["outages"])


def test_what_is_not_known_of_outages_is_said(hub: Hub) -> None:
    hub.world.ports.reports.tables["outages"] = [outage("orders", "s1")]
    [said] = hub.call("GET", "/outages?queue=orders&subscriber=nobody").body["said"]
    assert "no attempt to it" in said
    # With more subscribers than the report stores it may be one of the others
    hub.world.ports.reports.tables["outages"] = [outage("q", str(number)) for number in range(2000)]
    [said] = hub.call("GET", "/outages?queue=orders&subscriber=nobody").body["said"]
    assert "too many subscribers" in said
    for query in ("", "?queue=orders", "?subscriber=shop", "?queue=&subscriber=shop"):
        assert hub.call("GET", f"/outages{query}").status == 400
    hub.world.ports.reports.report = None
    assert hub.call("GET", "/outages?queue=orders&subscriber=shop").status == 404
