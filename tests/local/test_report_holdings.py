"""The delivery report reads off the tables what the hub's own stores have written there."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from operator import itemgetter

from glue_jobs.delivery_report.proof.holdings import entries
from tests.cloud.aws_services import MESSAGES_TABLE, PULL_TABLE, SCHEDULE_TABLE, dynamodb
from tests.contract.notification_samples import a_commit
from tests.contract.samples import NOW, PROJECT, QUEUE_UID, message
from tests.fakes.clock import FakeClock
from tests.notifications.store.aws_notifications import BACKLOGS_TABLE
from tests.notifications.store.aws_notifications import client as raw_client
from tests.notifications.store.aws_notifications import dynamodb as backlogs

from pushhub.engine.model.delivery import opening, schedule
from pushhub.engine.store.dynamodb_messages import DynamoDBMessageStore
from pushhub.engine.store.dynamodb_schedule import DynamoDBSchedule
from pushhub.ironmq.store.dynamodb_pull import DynamoDBPullStore
from pushhub.notifications.store.dynamodb_topics import DynamoDBTopicStore

SINCE = datetime.fromtimestamp(NOW / 1000, UTC)
UNTIL = SINCE + timedelta(hours=1)


def test_messages_of_both_kinds_of_queue() -> None:
    with dynamodb() as client:
        # Given messages of a push queue and of a pull queue, one of each accepted before the time asked for, and a
        # delivery beside them
        pushed, pulled = [message(), message()], [message(), message()]
        old = [message(accepted_at=NOW - 1), message(accepted_at=NOW + 3_600_000)]
        entries_of = DynamoDBSchedule(client, SCHEDULE_TABLE, FakeClock())
        messages = DynamoDBMessageStore(client, MESSAGES_TABLE, FakeClock(), lambda: entries_of)
        messages.accept([*pushed, *old])
        messages.save(replace(schedule(opening(pushed[0], pushed[0].subscriber_ids[0])), version=1))
        DynamoDBPullStore(client, PULL_TABLE, FakeClock()).put([*pulled, *old])
        # When the tables are read in two parts
        tables = {"messages": MESSAGES_TABLE, "lines": PULL_TABLE}
        found = [
            each
            for segment in range(2)
            for each in entries(raw_client("dynamodb"), tables, since=SINCE, until=UNTIL, segment=segment, segments=2)
        ]
    # Then each message of that time is there once, with what its records will say
    expected = [
        {
            "project": PROJECT,
            "queue": "orders",
            "queue_uid": QUEUE_UID,
            "id": each.message_id,
            "accepted_ms": NOW,
        }
        for each in [*pushed, *pulled]
    ]
    assert sorted(found, key=itemgetter("id")) == sorted(expected, key=itemgetter("id"))


def test_commits_of_topics() -> None:
    with backlogs() as client:
        commits = [a_commit(7), a_commit(8)]
        store = DynamoDBTopicStore(client, BACKLOGS_TABLE, FakeClock())
        for each in commits:
            store.append(each)
        moment = datetime.fromtimestamp(commits[0].accepted_at / 1000, UTC)
        found = list(
            entries(
                raw_client("dynamodb"),
                {"topics": BACKLOGS_TABLE},
                since=moment - timedelta(hours=1),
                until=moment + timedelta(hours=1),
                segment=0,
                segments=1,
            )
        )
    assert [(each["id"], each["queue_uid"], each["queue"], each["project"]) for each in found] == [
        (str(each.sequence), each.topic_uid, each.topic.name, each.topic.project) for each in commits
    ]
