"""Which notifications a subscription selects, and which of their fields it copies."""

from __future__ import annotations

from typing import Any

import pytest

from pushhub.base.errors import Invalid
from pushhub.notifications.model.subscription import Context, Subscription, copied, parse_type_filter, published_as


def rule(context: Context = Context.MANAGED_OBJECT, **more: Any) -> Subscription:
    source = "111" if context is Context.MANAGED_OBJECT else ""
    return Subscription(
        subscription_id="1", project="t1", context=context, source=source, name="a", created_at=0, **more
    )


def published(each: Subscription, api: str, action: str = "CREATE", source: str = "111", data: Any = None) -> Any:
    return published_as(each, api=api, source=source, action=action, data=data)


@pytest.mark.parametrize("api", ["alarms", "events", "measurements", "operations"])
def test_without_a_filter_a_source_s_subscription_wants_all_about_it(api: str) -> None:
    assert published(rule(), api) == (api,)
    assert published(rule(), api, source="112") == ()


def test_creation_of_a_managed_object_is_the_tenant_s_and_the_rest_the_object_s() -> None:
    tenant = rule(Context.TENANT)
    assert [published(rule(), "managedobjects", each) for each in ("CREATE", "UPDATE", "DELETE")] == [
        (),
        ("managedobjects",),
        ("managedobjects",),
    ]
    assert [published(tenant, "managedobjects", each) for each in ("CREATE", "UPDATE", "DELETE")] == [
        ("managedobjects",),
        (),
        (),
    ]


def test_measurements_reach_the_tenant_only_when_asked_for_by_name() -> None:
    assert published(rule(Context.TENANT), "measurements") == ()
    assert published(rule(Context.TENANT, apis=("*",)), "measurements") == ()
    assert published(rule(Context.TENANT, apis=("measurements",)), "measurements") == ("measurements",)


def test_the_star_publishes_alarms_and_events_twice() -> None:
    assert published(rule(apis=("*",)), "alarms") == ("alarms", "alarmsWithChildren")
    assert published(rule(apis=("*",)), "events") == ("events", "eventsWithChildren")
    assert published(rule(apis=("*",)), "operations") == ("operations",)


def test_types_are_published_as_they_are_asked_for() -> None:
    assert published(rule(apis=("eventsWithChildren",)), "events") == ("eventsWithChildren",)
    assert published(rule(apis=("eventsWithChildren",)), "eventsWithChildren") == ("eventsWithChildren",)
    assert published(rule(apis=("alarms",)), "events") == ()


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("c8y_Speed", {"c8y_Speed"}),
        ("'c8y_Speed'", {"c8y_Speed"}),
        ("'a' or 'b' OR 'c d'", {"a", "b", "c d"}),
        (" 'a'or'b' ", {"a", "b"}),
    ],
)
def test_type_filters(text: str, types: set[str]) -> None:
    assert parse_type_filter(text) == types


@pytest.mark.parametrize("text", ["", " ", "a b", "'a' 'b'", "'a' or", "'a' and 'b'", "''", "a or b", "'a", "or 'a'"])
def test_wrong_type_filters(text: str) -> None:
    with pytest.raises(Invalid):
        parse_type_filter(text)


def test_the_type_filter_looks_at_the_data_s_type() -> None:
    wants = rule(type_filter="'a' or 'b'")
    assert published(wants, "events", data={"type": "b"}) == ("events",)
    others: list[Any] = [{"type": "c"}, {}, [], None, "b"]
    for data in others:
        assert published(wants, "events", data=data) == ()


def test_fragments_are_copied_beside_the_base_fields() -> None:
    data = {"id": "1", "type": "t", "time": "now", "source": {"id": "5"}, "c8y_A": 1, "c8y_B": 2}
    assert copied(data, ("c8y_B",)) == {"id": "1", "type": "t", "time": "now", "source": {"id": "5"}, "c8y_B": 2}
    assert copied(data, ()) is data
    assert copied([1], ("c8y_B",)) == [1]
