"""What :class:`pushhub.hub.ports.HubLog` promises, of the fake and of DynamoDB."""

from __future__ import annotations

from dataclasses import replace

from tests.cloud import aws_services as aws
from tests.contract.both import both
from tests.contract.filled import filled
from tests.contract.samples import NOW, OTHER_PROJECT, PROJECT
from tests.fakes.hub import FakeHubLog
from tests.fakes.racing import together

from pushhub.base.ids import MessageIds
from pushhub.engine.model.message import BodyRef
from pushhub.hub.model.log import HubState, Location, LoggedMessage, LogList, OpenRequest, RecordedAnswer
from pushhub.hub.model.notice import Level, Notice
from pushhub.hub.ports import HubLog
from pushhub.hub.store.dynamodb_log import DynamoDBHubLog

IDS = [MessageIds(1).next(NOW + number) for number in range(30)]


log = both(FakeHubLog, DynamoDBHubLog, aws.HUB_TABLE)


def entry(number: int = 0, **changes: object) -> LoggedMessage:
    given = {
        "message_id": IDS[number],
        "location": Location.ACCEPTED,
        "state": HubState.FAILING,
        "children": (),
        **changes,
    }
    return filled(LoggedMessage, **{"project": PROJECT, "version": 3, **given})


def test_an_entry_is_kept_whole(log: HubLog) -> None:
    least = entry(
        1, mapping_id=None, parent_id=None, attempt_at=None, next_at=None, completed_at=None, last_error=None, version=0
    )
    for each in (entry(), least):
        log.put(each)
        assert log.entry(PROJECT, each.message_id) == each
    assert log.entry(OTHER_PROJECT, IDS[0]) is None


def test_a_higher_version_replaces_all_and_a_lower_one_nothing(log: HubLog) -> None:
    log.put(entry())
    done = entry(location=Location.ARCHIVED, state=HubState.COMPLETED, last_error=None, next_at=None, version=4)
    log.put(done)
    log.put(entry())
    log.put(replace(done, attempts=99))
    assert log.entry(PROJECT, IDS[0]) == done
    assert log.listed(PROJECT, LogList.of(Location.ACCEPTED), before=None, after=None, limit=10) == []
    assert log.listed(PROJECT, [LogList.ARCHIVED_ACCEPTED], before=None, after=None, limit=10) == [done]


def test_children_may_be_known_before_their_parent_and_stay(log: HubLog) -> None:
    log.add_children(PROJECT, IDS[0], IDS[1:3])
    assert log.entry(PROJECT, IDS[0]) is None
    assert log.entries(PROJECT, [IDS[0]]) == []
    log.put(entry())
    log.put(entry(version=4))
    stored = log.entry(PROJECT, IDS[0])
    assert stored is not None
    assert stored.children == tuple(IDS[1:3])


def test_many_entries_come_in_the_order_asked_for(log: HubLog) -> None:
    for number in (0, 1, 2):
        log.put(entry(number))
    asked = [IDS[2], IDS[9], IDS[0], IDS[2]]
    assert [each.message_id for each in log.entries(PROJECT, asked)] == [IDS[2], IDS[0], IDS[2]]


def test_lists_are_newest_first_over_all_their_partitions(log: HubLog) -> None:
    for number in range(20):
        state = [HubState.PENDING, HubState.FAILING, HubState.SCHEDULED, HubState.PARKED][number % 4]
        log.put(entry(number, state=state))
    log.put(entry(20, location=Location.ARCHIVED, state=HubState.COMPLETED))
    log.put(entry(21, mapping_id=None, location=Location.INCOMING, state=HubState.PENDING))
    log.put(replace(entry(22), project=OTHER_PROJECT))
    accepted = LogList.of(Location.ACCEPTED)

    def ids(before: int | None = None, after: int | None = None, limit: int = 100) -> list[int]:
        found = log.listed(
            PROJECT,
            accepted,
            before=None if before is None else IDS[before],
            after=None if after is None else IDS[after],
            limit=limit,
        )
        return [IDS.index(each.message_id) for each in found]

    assert ids() == list(range(19, -1, -1))
    assert ids(limit=3) == [19, 18, 17]
    assert ids(before=17, after=12) == [16, 15, 14, 13]
    # A period that ends before it begins is empty
    assert ids(before=12, after=17) == []
    assert [log.count(PROJECT, each) for each in LogList] == [1, 5, 5, 5, 5, 1, 0]


ANSWER = filled(RecordedAnswer, attempt=3)


def test_the_first_recorded_answer_of_an_attempt_counts(log: HubLog) -> None:
    assert log.answer(PROJECT, IDS[0], 3) is None
    assert log.record(PROJECT, IDS[0], ANSWER) == ANSWER
    second = replace(ANSWER, answer=replace(ANSWER.answer, status_code=200))
    assert log.record(PROJECT, IDS[0], second) == ANSWER
    assert log.answer(PROJECT, IDS[0], 3) == ANSWER


def test_the_last_answer_is_that_of_the_highest_attempt(log: HubLog) -> None:
    assert log.last_answer(PROJECT, IDS[0]) is None
    ref = BodyRef(key="hub/p/x", offset=1, length=2)
    last = RecordedAnswer(attempt=12, answer=replace(ANSWER.answer, body=b"", error_class="timeout"), body_ref=ref)
    for each in (last, ANSWER, replace(ANSWER, attempt=9)):
        log.record(PROJECT, IDS[0], each)
    assert log.last_answer(PROJECT, IDS[0]) == last
    assert log.last_answer(PROJECT, IDS[1]) is None


def note(subject: str = "Quota", *, number: int = 0, attempt: int = 1, times: int = 1, at: int = NOW) -> Notice:
    return Notice(
        project=PROJECT,
        notification_id=f"{number:02d}{subject}",
        message_id=IDS[number],
        level=Level.ERROR,
        subject=subject,
        description=f"at {attempt}",
        extra={"backtrace": ["a", 1.5]},
        origin="acme.import",
        occurrences=times,
        logged_at=at,
        updated_at=at,
        first_attempt=attempt,
        attempt=attempt,
    )


def test_a_notification_counts_each_attempt_once(log: HubLog) -> None:
    assert log.count_notification(note()) == note()
    assert log.count_notification(note()) == note()
    stored = log.count_notification(note(attempt=4, times=2, at=NOW + 9))
    assert stored == replace(note(attempt=4, at=NOW + 9), occurrences=3, logged_at=NOW, first_attempt=1)
    assert log.count_notification(note(attempt=2)) == stored
    assert log.notifications_of(PROJECT, IDS[0]) == [stored]


def test_notifications_are_listed_by_message_and_for_the_store_newest_first(log: HubLog) -> None:
    for number in range(12):
        log.count_notification(note(f"s{number % 2}", number=number // 2, at=NOW + number))
    assert [each.logged_at - NOW for each in log.notifications(PROJECT)] == list(range(11, -1, -1))
    # The start belongs to a period, the end does not
    period = log.notifications(PROJECT, start_at=NOW + 3, end_at=NOW + 6)
    assert [each.logged_at - NOW for each in period] == [5, 4, 3]
    assert list(log.notifications(PROJECT, start_at=NOW + 6, end_at=NOW + 3)) == []
    assert list(log.notifications(PROJECT, end_at=-1)) == []
    assert [each.subject for each in log.notifications_of(PROJECT, IDS[2])] == ["s0", "s1"]
    assert list(log.notifications(OTHER_PROJECT)) == []


def test_racing_duplicates_count_an_attempt_once(log: HubLog) -> None:
    together(6, lambda _: log.count_notification(note(attempt=1)))
    [stored] = log.notifications_of(PROJECT, IDS[0])
    assert stored.occurrences == 1


def test_the_last_request_noted_for_a_message_is_the_one_that_counts(log: HubLog) -> None:
    # Given two requests for one message, one for another, and one of another store
    log.note_open(PROJECT, IDS[0], OpenRequest(opened_at=NOW, ends_at=NOW + 5))
    log.note_open(PROJECT, IDS[0], OpenRequest(opened_at=NOW + 1, ends_at=NOW + 6))
    log.note_open(PROJECT, IDS[1], OpenRequest(opened_at=NOW + 2, ends_at=NOW + 7))
    log.note_open(OTHER_PROJECT, IDS[2], OpenRequest(opened_at=NOW + 3, ends_at=NOW + 8))

    # Then each message of the store has its last one, and a message without one has none
    assert log.open_requests(PROJECT, [IDS[0], IDS[1], IDS[2], IDS[0]]) == {
        IDS[0]: OpenRequest(opened_at=NOW + 1, ends_at=NOW + 6),
        IDS[1]: OpenRequest(opened_at=NOW + 2, ends_at=NOW + 7),
    }
    assert log.open_requests(PROJECT, []) == {}
