"""What every store of what alerts know does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.samples import NOW, OTHER_PROJECT, PROJECT

from pushhub.base.errors import Conflict
from pushhub.ironmq.model.alert_level import AlertLevel, AlertLevels
from pushhub.ironmq.queues.size_alerts import AlertLevelStore


def test_levels_are_those_of_one_generation_of_one_project(alert_level_store: AlertLevelStore) -> None:
    nothing = AlertLevels(project=PROJECT, pull_uid="1")
    assert alert_level_store.levels(PROJECT, "1") == nothing
    some = {"a" * 12: AlertLevel(reached=3, at=NOW), "b" * 12: AlertLevel(reached=0, at=NOW + 1)}
    alert_level_store.save(replace(nothing, levels=some))
    assert alert_level_store.levels(PROJECT, "1") == replace(nothing, levels=some, version=1)
    assert alert_level_store.levels(PROJECT, "2") == replace(nothing, pull_uid="2")
    assert alert_level_store.levels(OTHER_PROJECT, "1") == replace(nothing, project=OTHER_PROJECT)


def test_only_one_of_two_who_look_writes(alert_level_store: AlertLevelStore) -> None:
    nothing = alert_level_store.levels(PROJECT, "1")
    alert_level_store.save(replace(nothing, levels={"a": AlertLevel(reached=1, at=NOW)}))
    with pytest.raises(Conflict):
        alert_level_store.save(replace(nothing, levels={"a": AlertLevel(reached=2, at=NOW)}))
    stored = alert_level_store.levels(PROJECT, "1")
    assert stored.levels["a"].reached == 1
    alert_level_store.save(replace(stored, levels={"a": AlertLevel(reached=2, at=NOW)}))
    with pytest.raises(Conflict):
        alert_level_store.save(replace(stored, levels={"a": AlertLevel(reached=3, at=NOW)}))


def test_only_one_of_two_who_see_the_same_in_the_same_millisecond_writes(alert_level_store: AlertLevelStore) -> None:
    seen = replace(alert_level_store.levels(PROJECT, "1"), levels={"a": AlertLevel(reached=1, at=NOW)})
    alert_level_store.save(seen)
    with pytest.raises(Conflict):
        alert_level_store.save(seen)
    again = alert_level_store.levels(PROJECT, "1")
    alert_level_store.save(again)
    with pytest.raises(Conflict):
        alert_level_store.save(again)
