"""Messages of a store are found by the values of fields that a mapping names."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from tests.engine.world import PROJECT
from tests.hub.api.hub_store import OTHER_STORE, Store
from tests.ironmq.api.hub import Hub


@pytest.fixture
def store() -> Store:
    return Store()


def found(store: Store, value: str, project: str = PROJECT) -> list[dict[str, Any]]:
    answer = Hub(store).call("GET", f"/search?value={quote(value)}", project=project)
    assert answer.status == 200, answer
    return list(answer.body["found"])


def mapping(store: Store, name: str, fields: list[str]) -> str:
    created = {
        "name": name,
        "url": f"https://{name}/in",
        "token": "t",
        "messages": ["order:new"],
        "search_fields": fields,
    }
    status, shown = store.call("POST", "/mappings", {"mapping": created})
    assert (status, shown["search_fields"]) == (201, fields), shown
    return str(shown["id"])


def push(store: Store, number: object) -> None:
    store.call("POST", "/messages", {"message": "order:new", "payload": {"order": {"number": number}}})
    store.run(seconds=1)


def test_the_copy_for_a_mapping_that_names_a_field_is_found_with_its_state(store: Store) -> None:
    # Given one mapping that names a field, and one that names none
    mapping(store, "a.example", ["order.number"])
    mapping(store, "b.example", [])
    push(store, "R4711")
    push(store, "R4712")
    # When somebody looks for the order, then the copy of the first is found by its field, the other one and what was
    # posted by what is in them, and nothing by another project
    shown, *others = found(store, "r4711")
    assert {each["deliveries"][0]["subscriber_name"] for each in others} == {"b.example", ""}
    assert {(each["kind"], each["field"], each["type"]) for each in others} == {("store", "order.number", "order:new")}
    assert (shown["kind"], shown["queue"], shown["application"], shown["field"]) == (
        "store",
        None,
        None,
        "order.number",
    )
    assert [each["subscriber_name"] for each in shown["deliveries"]] == ["a.example"]
    status, details = store.call("GET", f"/messages/{shown['message_id']}")
    assert (status, details["state"]) == (200, shown["deliveries"][0]["state"])
    assert found(store, "r4711", OTHER_STORE) == []


def test_a_store_without_named_fields_makes_no_call(store: Store) -> None:
    mapping(store, "b.example", [])
    push(store, 4711)
    assert store.ports.search_index.entries == {}
    mapping(store, "a.example", ["order.number", "other"])
    push(store, 4711)
    assert [len(each) for each in store.ports.search_index.entries.values()] == [1]


@pytest.mark.parametrize("fields", [["a", "b", "c", "d"], ["header:type"], ["x" * 101], ["a\n"]])
def test_fields_that_cannot_be_are_refused(store: Store, fields: list[str]) -> None:
    created = {"name": "a", "url": "https://a/in", "token": "t", "messages": ["order:new"], "search_fields": fields}
    status, answer = store.call("POST", "/mappings", {"mapping": created})
    assert status == 422
    assert "search_fields" in answer["errors"]
