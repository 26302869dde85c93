"""What every store of alerts does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.samples import NOW, OTHER_PROJECT, PROJECT

from pushhub.base.errors import Conflict
from pushhub.ironmq.alerts.ports import AlertStore
from pushhub.ironmq.model.project_alert import AlertState, Counts, Format, Measure, ProjectAlert, Sample


def alert(number: int, project: str = PROJECT) -> ProjectAlert:
    return ProjectAlert(
        project=project,
        alert_id=f"{number:012x}",
        name="Shop fails",
        measure=Measure.GIVEN_UP,
        threshold=5,
        minutes=15,
        url="https://ops.example/in",
        format=Format.SLACK,
        created_at=NOW,
    )


def test_alerts_are_listed_by_project_and_all_together(alert_store: AlertStore) -> None:
    stored = [alert_store.save(each) for each in (alert(1), alert(2), alert(3, OTHER_PROJECT))]
    assert [each.version for each in stored] == [1, 1, 1]
    assert sorted(alert_store.alerts(PROJECT), key=lambda each: each.alert_id) == stored[:2]
    assert sorted(alert_store.all_alerts(), key=lambda each: each.alert_id) == stored
    assert alert_store.alert(PROJECT, alert(1).alert_id) == stored[0]
    # And no project reads another one's
    assert alert_store.alert(PROJECT, alert(3).alert_id) is None
    assert not alert_store.remove(PROJECT, alert(3).alert_id)


def test_only_one_of_two_writers_wins_and_what_was_removed_stays_so(alert_store: AlertStore) -> None:
    stored = alert_store.save(alert(1))
    state = AlertState(firing_since=NOW, samples=(Sample(at=NOW, counts=Counts(failed=1)),))
    changed = alert_store.save(replace(stored, state=state))
    assert alert_store.alert(PROJECT, stored.alert_id) == changed
    with pytest.raises(Conflict):
        alert_store.save(replace(stored, name="Other"))
    assert alert_store.remove(PROJECT, stored.alert_id)
    with pytest.raises(Conflict):
        alert_store.save(changed)
    assert alert_store.alerts(PROJECT) == []
