"""Requests of Notifications 2.0, in the shapes real clients send them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pushhub.base.errors import Forbidden, Invalid, RequestRefused, TooLarge, Unauthorized
from pushhub.notifications.model.backlog import AlreadyConnected
from pushhub.notifications.model.subscription import Context, Subscription
from pushhub.notifications.model.topic import Topic
from pushhub.notifications.wire.errors import (
    BacklogFull,
    DuplicateSubscription,
    SubscriberUnknown,
    SubscriptionNotFound,
    error_body,
    fault_body,
    status_of,
)
from pushhub.notifications.wire.publish import Draft, parse_drafts
from pushhub.notifications.wire.requests import parse_token_request
from pushhub.notifications.wire.subscriptions import (
    PageRequest,
    Selection,
    parse_deletion,
    parse_page,
    parse_selection,
    parse_subscription,
    print_collection,
    print_root,
    print_subscription,
)
from pushhub.notifications.wire.url import parse_topic_url, source_in

BASE = "http://hub.example"


def parse(**fields: Any) -> Subscription:
    return parse_subscription(json.dumps(fields).encode(), project="t1", subscription_id="102", now=5)


def test_a_whole_subscription_is_read_and_printed() -> None:
    rule = parse(
        context="mo",
        subscription="testSubscription",
        source={"id": "251982"},
        subscriptionFilter={
            "apis": ["measurements", "events"],
            "typeFilter": "'c8y_Speed' or 'c8y_LocationUpdate'",
        },
        fragmentsToCopy=["c8y_Position"],
        nonPersistent=False,
    )
    assert rule.topic == Topic(project="t1", name="testSubscription")
    assert print_subscription(rule, BASE) == {
        "id": "102",
        "self": f"{BASE}/notification2/subscriptions/102",
        "source": {"id": "251982", "self": f"{BASE}/inventory/managedObjects/251982"},
        "context": "mo",
        "subscription": "testSubscription",
        "subscriptionFilter": {
            "apis": ["measurements", "events"],
            "typeFilter": "'c8y_Speed' or 'c8y_LocationUpdate'",
        },
        "fragmentsToCopy": ["c8y_Position"],
        "nonPersistent": False,
    }


@pytest.mark.parametrize("wants", [None, {}, {"apis": None, "typeFilter": None}, {"apis": [], "typeFilter": ""}])
def test_filters_that_say_nothing_are_none(wants: Any) -> None:
    rule = parse(context="tenant", subscription="a", subscriptionFilter=wants)
    assert (rule.apis, rule.type_filter) == ((), "")
    assert "subscriptionFilter" not in print_subscription(rule, BASE)


def test_a_tenant_s_subscription_is_printed_with_a_source_as_clients_read_it_unguarded() -> None:
    rule = parse(context="tenant", subscription="a")
    assert print_subscription(rule, BASE)["source"] == {"id": "t1"}


def test_a_source_may_be_a_number() -> None:
    assert parse(context="mo", subscription="a", source={"id": 111}).source == "111"


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"context": "mo", "subscription": "a"},
        {"context": "mo", "subscription": "a", "source": {"id": ""}},
        {"context": "mo", "subscription": "a", "source": {"id": True}},
        {"context": "mo", "subscription": "a", "source": {"id": "a/b"}},
        {"context": "mo", "subscription": "a", "source": {"id": "a\nb"}},
        {"context": "mo", "subscription": "a", "source": "111"},
        {"context": "device", "subscription": "a"},
        {"context": ["mo"], "subscription": "a"},
        {"context": "tenant", "subscription": ""},
        {"context": "tenant", "subscription": "a-b"},
        {"context": "tenant", "subscription": 7},
        {"context": "tenant", "subscription": "a", "subscriptionFilter": {"apis": ["nothing"]}},
        {"context": "tenant", "subscription": "a", "subscriptionFilter": {"apis": ["*", "events"]}},
        {"context": "tenant", "subscription": "a", "subscriptionFilter": {"apis": "events"}},
        {"context": "tenant", "subscription": "a", "subscriptionFilter": {"apis": [["events"]]}},
        {"context": "tenant", "subscription": "a", "subscriptionFilter": {"typeFilter": "'a' and 'b'"}},
        {"context": "tenant", "subscription": "a", "subscriptionFilter": {"typeFilter": "'a' or"}},
        {"context": "tenant", "subscription": "a", "fragmentsToCopy": "x"},
        {"context": "tenant", "subscription": "a", "fragmentsToCopy": [""]},
        {"context": "tenant", "subscription": "a", "nonPersistent": "yes"},
    ],
)
def test_wrong_subscriptions_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        parse(**fields)


def rules(count: int) -> list[Subscription]:
    one = parse(context="mo", subscription="a", source={"id": "111"})
    return [replace(one, subscription_id=str(number)) for number in range(count)]


def test_pages_link_to_each_other_and_count_on_request() -> None:
    query = {"source": "111", "pageSize": "2", "currentPage": "2", "withTotalPages": "true"}
    answer = print_collection(rules(5), parse_selection(query), parse_page(query), BASE)
    assert [each["id"] for each in answer["subscriptions"]] == ["2", "3"]
    assert answer["statistics"] == {"currentPage": 2, "pageSize": 2, "totalPages": 3}
    assert answer["next"] == f"{BASE}/notification2/subscriptions?source=111&pageSize=2&currentPage=3"
    assert answer["prev"].endswith("currentPage=1")


def test_the_page_after_the_last_is_empty() -> None:
    answer = print_collection(rules(2), Selection(), PageRequest(number=2, with_elements=True), BASE)
    assert answer["subscriptions"] == []
    assert answer["statistics"] == {"currentPage": 2, "pageSize": 5, "totalElements": 2}
    assert "next" not in answer


@pytest.mark.parametrize("query", [{"pageSize": "0"}, {"pageSize": "2001"}, {"currentPage": "x"}, {"pageSize": "٣"}])
def test_pages_out_of_bounds_are_refused(query: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        parse_page(query)


def test_what_a_selection_takes() -> None:
    (rule,) = rules(1)
    tenant = parse(context="tenant", subscription="b")
    assert parse_selection({"source": "111"}).takes(rule)
    assert not parse_selection({"source": "112"}).takes(rule)
    assert not parse_selection({"context": "mo"}).takes(tenant)
    assert parse_selection({"subscription": "b"}).takes(tenant)
    assert parse_selection({}).takes(tenant)


def test_deletions_by_source_default_to_managed_objects() -> None:
    assert parse_deletion({"source": "111"}) == Selection(context=Context.MANAGED_OBJECT, source="111")
    assert parse_deletion({"context": "tenant"}) == Selection(context=Context.TENANT)
    for query in ({}, {"context": "mo"}, {"context": "x"}):
        with pytest.raises(Invalid):
            parse_deletion(query)


def test_the_root_lists_templates() -> None:
    assert print_root(BASE)["notificationSubscriptionsBySource"].endswith("?source={source}")


def token(**fields: Any) -> Any:
    return parse_token_request(json.dumps({"subscriber": "app", "subscription": "orders"} | fields).encode(), "t1")


def test_a_token_request_has_the_documented_defaults() -> None:
    request = token()
    assert (request.minutes, request.shared, request.topic.non_persistent) == (1440, False, False)
    assert token(expiresInMinutes=0).minutes == 0
    assert token(expiresInMinutes=86_400_000, shared=True, nonPersistent=True, signed=False).shared


@pytest.mark.parametrize(
    "fields",
    [
        {"subscriber": None},
        {"subscriber": ""},
        {"subscriber": "a\nb"},
        {"subscription": "a b"},
        {"expiresInMinutes": -1},
        {"expiresInMinutes": "60"},
        {"expiresInMinutes": 1.5},
        {"shared": "true"},
        {"signed": 1},
        {"type": "mqtt"},
    ],
)
def test_wrong_token_requests_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        token(**fields)


def test_one_notification_or_an_array_of_them() -> None:
    one = {"api": "measurements", "source": "111", "action": "CREATE", "data": {"a": 1}}
    assert parse_drafts(json.dumps(one).encode()) == [
        Draft(api="measurements", source="111", action="CREATE", data={"a": 1})
    ]
    binary = {"api": "events", "source": 7, "data_base64": "/wA="}
    drafts = parse_drafts(json.dumps([one, binary]).encode())
    assert drafts[1] == Draft(api="events", source="7", action="CREATE", base64_data="/wA=")
    assert parse_drafts(b'{"api":"events","source":{"id":"5"},"data":null}')[0].source == "5"


def test_data_stays_as_its_publisher_wrote_it() -> None:
    """Given data whose numbers Python would write differently, alone and in an array, then it is kept as it is."""
    text = '{ "v": 19.90, "at": 165000000000000000000.12,\n "n": -0 }'
    one = f'{{"api":"events","source":"5","data":{text}}}'
    for body in (one, f"[{one} , {one}]", f"\ufeff{one}"):
        assert {each.data_text for each in parse_drafts(body.encode())} == {text}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"7",
        b"{",
        b"[1]",
        b'{"api":"events","source":"1"}',
        b'{"api":"events","source":"1","data":1,"data_base64":"AA=="}',
        b'{"api":"events","source":"1","data_base64":"A"}',
        b'{"api":"events","source":"1","data_base64":7}',
        b'{"api":"events","source":"a/b","data":1}',
        b'{"api":"events","data":1}',
        b'{"api":"things","source":"1","data":1}',
        b'{"api":["events"],"source":"1","data":1}',
        b'{"api":"events","source":"1","action":"CHANGE","data":1}',
        b'{"api":"events","source":"1","data":NaN}',
        b'{"api":"events","source":"1","data":"\\ud800"}',
        json.dumps([{"api": "events", "source": "1", "data": 1}] * 101).encode(),
    ],
)
def test_wrong_notifications_are_refused(body: bytes) -> None:
    with pytest.raises(Invalid):
        parse_drafts(body)


def test_a_topic_s_url() -> None:
    target = parse_topic_url("notification2://orders?api=alarms&source=7&action=UPDATE&nonPersistent=true")
    assert (target.topic, target.api, target.source, target.action) == ("orders", "alarms", "7", "UPDATE")
    assert target.non_persistent
    assert parse_topic_url("notification2://orders").api == "events"


@pytest.mark.parametrize(
    "url",
    [
        "notification2://",
        "notification2://a-b",
        "notification2://a/b",
        "notification2://a?x=1",
        "notification2://a?api=things",
        "notification2://a?api=events&api=alarms",
        "notification2://a?source=",
        "notification2://a?source=a%2Fb",
        "notification2://a?nonPersistent=1",
        "notification2://a#x",
        "notification2://[",
        "http://a",
    ],
)
def test_wrong_urls_are_refused(url: str) -> None:
    with pytest.raises(Invalid):
        parse_topic_url(url)


@pytest.mark.parametrize(
    ("body", "source"),
    [
        (b'{"source":"7"}', "7"),
        (b'{"source":{"id":8}}', "8"),
        (b'{"source":"a/b"}', "q_1"),
        (b"[1]", "q_1"),
        (b"\xff", "q_1"),
        (b'{"source":null}', "q_1"),
    ],
)
def test_the_source_is_what_the_body_names_or_else_the_queue(body: bytes, source: str) -> None:
    assert source_in(body, "q/1") == source


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Unauthorized(), 401),
        (Forbidden("no"), 403),
        (SubscriptionNotFound(), 404),
        (DuplicateSubscription(source="1", context="mo", name="a"), 409),
        (AlreadyConnected("busy"), 409),
        (TooLarge(1), 413),
        (Invalid("no"), 422),
        (RequestRefused("no"), 422),
        (SubscriberUnknown(), 500),
        (BacklogFull([Topic(project="p", name="orders")], 5), 500),
    ],
)
def test_every_refusal_has_its_status_and_a_message(error: RequestRefused, status: int) -> None:
    assert status_of(error) == status
    assert error_body(error).keys() - {"details"} == fault_body().keys() == {"error", "message", "info"}
    assert error_body(error)["message"] == error.message


def test_a_duplicate_is_told_in_the_documented_words() -> None:
    error = DuplicateSubscription(source="251982", context="mo", name="testSubscription")
    assert error.message == (
        "Subscription with source <'251982'>, context <'mo'> & subscription <'testSubscription'> already exists!"
    )
