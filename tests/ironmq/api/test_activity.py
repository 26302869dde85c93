"""What went on in a project, as the queue API tells it."""

from __future__ import annotations

import pytest
from tests.engine.world import PROJECT
from tests.ironmq.api.hub import OTHER_PROJECT, Hub

from pushhub.base.times import iso_time
from pushhub.engine.model.activity import HOUR_MS, Activity


def test_the_last_day_is_told_hour_by_hour_with_the_hours_in_which_nothing_happened() -> None:
    hub = Hub()
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
    assert hours[-1] == {"hour": iso_time(this), "accepted": 1, "delivered": 0, "failed": 1, "given_up": 0}
    # And as many as are asked for
    assert len(hub.call("GET", "/activity?hours=168").body["hours"]) == 168
    assert [each["accepted"] for each in hub.call("GET", "/activity?hours=1").body["hours"]] == [1]


@pytest.mark.parametrize("hours", ["169", "-1", "x", "1.5", "9999999"])
def test_no_more_than_a_week_is_told(hours: str) -> None:
    answer = Hub().call("GET", f"/activity?hours={hours}")
    assert answer.status == 400
    assert "hours" in answer.msg


def test_no_other_project_may_look() -> None:
    hub = Hub()
    assert hub.send("GET", f"/3/projects/{PROJECT}/activity", token=hub.other_token).status == 401
