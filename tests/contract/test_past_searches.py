"""The store of searches of the past: whose each is, and how many a project has started."""

from __future__ import annotations

from tests.contract.samples import NOW, PROJECT

from pushhub.engine.model.past import HOUR_MS, PastQuery
from pushhub.engine.records.ports import PastSearchStore

OTHER = "f" * 24
QUERY = PastQuery(project=PROJECT, since=NOW - HOUR_MS, until=NOW, message_id="1", queue="ä b", state="exhausted")


def test_a_search_is_found_by_its_own_project_only(past_search_store: PastSearchStore) -> None:
    past_search_store.put(PROJECT, "a" * 32, QUERY, "run", NOW)
    assert past_search_store.get(PROJECT, "a" * 32) == (QUERY, "run")
    assert past_search_store.get(OTHER, "a" * 32) is None
    assert past_search_store.get(PROJECT, "b" * 32) is None


def test_searches_are_counted_by_project_and_hour(past_search_store: PastSearchStore) -> None:
    hour = NOW // HOUR_MS * HOUR_MS
    assert [past_search_store.count(PROJECT, hour) for _ in range(3)] == [1, 2, 3]
    assert past_search_store.count(OTHER, hour) == past_search_store.count(PROJECT, hour + HOUR_MS) == 1
