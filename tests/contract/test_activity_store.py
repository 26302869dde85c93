"""What every store of activity does."""

from __future__ import annotations

from tests.contract.samples import NOW, OTHER_PROJECT, PROJECT

from pushhub.engine.model.activity import HOUR_MS, Activity, SubscriberActivity
from pushhub.engine.records.ports import ActivityStore

HOUR = NOW - NOW % HOUR_MS


def test_what_is_added_to_an_hour_adds_up(activity_store: ActivityStore) -> None:
    activity_store.add_activity(PROJECT, HOUR, Activity(accepted=3, failed=1, took={0: 1, 64: 1}))
    activity_store.add_activity(PROJECT, HOUR, Activity(accepted=1, delivered=2, given_up=1, took={64: 2}))
    assert activity_store.activity(PROJECT, HOUR, HOUR) == {
        HOUR: Activity(accepted=4, delivered=2, failed=1, given_up=1, took={0: 1, 64: 3})
    }


def test_the_hours_asked_for_are_told_and_no_others(activity_store: ActivityStore) -> None:
    for number in range(5):
        activity_store.add_activity(PROJECT, HOUR + number * HOUR_MS, Activity(accepted=number + 1))
    activity_store.add_activity(OTHER_PROJECT, HOUR + HOUR_MS, Activity(accepted=99))
    reported = activity_store.activity(PROJECT, HOUR + HOUR_MS, HOUR + 3 * HOUR_MS)
    assert {hour: each.accepted for hour, each in reported.items()} == {
        HOUR + HOUR_MS: 2,
        HOUR + 2 * HOUR_MS: 3,
        HOUR + 3 * HOUR_MS: 4,
    }
    assert activity_store.activity(OTHER_PROJECT, HOUR, HOUR) == {}


def test_subscribers_are_counted_apart_from_their_project_and_each_other(activity_store: ActivityStore) -> None:
    activity_store.add_activity(PROJECT, HOUR, Activity(accepted=3))
    activity_store.add_subscriber_activity(PROJECT, "s1", HOUR, SubscriberActivity(attempts=1, failed=1, took_ms=50))
    activity_store.add_subscriber_activity(
        PROJECT, "s1", HOUR, SubscriberActivity(attempts=2, delivered=2, took={9: 2})
    )
    activity_store.add_subscriber_activity(PROJECT, "s2", HOUR + HOUR_MS, SubscriberActivity(delivered=1))
    assert activity_store.subscriber_activity(PROJECT, "s1", HOUR, HOUR + HOUR_MS) == {
        HOUR: SubscriberActivity(attempts=3, delivered=2, failed=1, took_ms=50, took={9: 2})
    }
    assert activity_store.subscriber_activity(PROJECT, "s2", HOUR, HOUR) == {}
    assert activity_store.subscriber_activity(OTHER_PROJECT, "s1", HOUR, HOUR) == {}
    # When several are asked for at once, then each has its sum over the hours that are meant
    both = [HOUR, HOUR + HOUR_MS]
    assert set(activity_store.activity_at(PROJECT, ["s1", "s2", "s3"], both)) == {"s1", "s2"}
    assert activity_store.activity_at(PROJECT, ["s2", "s3"], both) == {"s2": SubscriberActivity(delivered=1)}
    assert activity_store.activity_at(PROJECT, ["s2"], [HOUR]) == {}
    assert activity_store.activity_at(OTHER_PROJECT, ["s1"], both) == {}
    assert activity_store.activity(PROJECT, HOUR, HOUR) == {HOUR: Activity(accepted=3)}
