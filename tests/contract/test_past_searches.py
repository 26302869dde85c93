"""The store of searches of the past: whose each is, and how many a project has started."""

from __future__ import annotations

from tests.contract.samples import NOW

from pushhub.engine.model.past import HOUR_MS, PastQuery
from pushhub.engine.ports import PastSearchStore

QUERY = PastQuery(project="p", since=NOW - HOUR_MS, until=NOW, message_id="1", queue="ä b", state="exhausted")


def test_a_search_is_found_by_its_own_project_only(past_search_store: PastSearchStore) -> None:
    past_search_store.put("p", "a" * 32, QUERY, "run", NOW)
    assert past_search_store.get("p", "a" * 32) == (QUERY, "run")
    assert past_search_store.get("q", "a" * 32) is None
    assert past_search_store.get("p", "b" * 32) is None


def test_searches_are_counted_by_project_and_hour(past_search_store: PastSearchStore) -> None:
    hour = NOW // HOUR_MS * HOUR_MS
    assert [past_search_store.count("p", hour) for _ in range(3)] == [1, 2, 3]
    assert past_search_store.count("q", hour) == past_search_store.count("p", hour + HOUR_MS) == 1
