"""What is specific to pull queues in DynamoDB: how much they read, repeated calls, and racing consumers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, cast

import pytest
from mypy_boto3_dynamodb import DynamoDBClient
from tests.cloud import aws_services as aws
from tests.cloud.aws_services import Intercepted
from tests.contract.samples import NOW, PROJECT, message
from tests.fakes import FakeClock
from tests.simulation import simulated_services

from pushhub.base.errors import Unavailable
from pushhub.engine.model.keys import MessageKey
from pushhub.engine.model.message import Message
from pushhub.engine.model.record import DeliveryRecord
from pushhub.engine.ports import Once
from pushhub.ironmq.ports import PullMessage
from pushhub.ironmq.store import dynamodb_pull, pull_places
from pushhub.ironmq.store._pull_items import MESSAGE, decode_pull_message
from pushhub.ironmq.store.changes import record_of_pull_change
from pushhub.ironmq.store.dynamodb_pull import DynamoDBPullStore
from pushhub.ironmq.store.pull_places import MARK, SHARDS

LINE = "f0e1d2c3b4a5"
MINUTE = 60_000


class Bench:
    """The store on a client whose calls are recorded."""

    def __init__(self, client: DynamoDBClient) -> None:
        self.client = Intercepted(client)
        self.clock = FakeClock()
        self.store = DynamoDBPullStore(cast(DynamoDBClient, self.client), aws.PULL_TABLE, self.clock)
        self.tables = client

    def put(self, count: int, **changes: Any) -> list[Message]:
        """Fill the queue without recording the calls."""
        given = [message(queue_uid=LINE, subscriber_ids=(), **changes) for _ in range(count)]
        DynamoDBPullStore(self.tables, aws.PULL_TABLE, self.clock).put(given)
        return given

    def reserve(self, count: int = 1, *, now: int = NOW, timeout_ms: int = MINUTE) -> list[PullMessage]:
        return self.store.reserve(PROJECT, LINE, count=count, timeout_ms=timeout_ms, now=now)

    def stored(self) -> list[dict[str, Any]]:
        """Items of messages."""
        return [each for each in self._items() if each["sk"]["S"] == MESSAGE]

    def places(self) -> list[str]:
        """Places that have an entry."""
        return sorted(each["sk"]["S"] for each in self._items() if each["sk"]["S"] not in (MESSAGE, MARK))

    def _items(self) -> list[dict[str, Any]]:
        return self.tables.scan(TableName=aws.PULL_TABLE)["Items"]

    def entries_read(self) -> int:
        """Most entries that the queries recorded so far could have read."""
        return sum(parameters["Limit"] for operation, parameters in self.client.calls if operation == "query")


@pytest.fixture
def bench() -> Iterator[Bench]:
    with simulated_services.dynamodb() as client:
        yield Bench(client)


def ids(found: list[PullMessage]) -> list[str]:
    return [each.message.message_id for each in found]


def test_messages_are_stored_before_they_are_in_their_queue(bench: Bench) -> None:
    # Given one message alone, then a hundred in one call
    bench.store.put([message(queue_uid=LINE)])
    assert [operation for operation, _ in bench.client.calls] == ["put_item", "put_item"]
    bench.client.calls.clear()
    bench.store.put([message(queue_uid=LINE) for _ in range(100)])
    # Then no entry exists before its message, and a hundred messages are stored all or none
    assert [operation for operation, _ in bench.client.calls] == ["transact_write_items"] + ["batch_write_item"] * 4
    assert [
        parameters["Item"]["sk"]["S"] for operation, parameters in bench.client.calls if operation == "put_item"
    ] == []
    assert len(bench.stored()) == len(bench.places()) == 101


def test_a_repeated_transaction_carries_the_same_token(bench: Bench) -> None:
    # Given two posts, one of which is repeated
    one = [message(queue_uid=LINE) for _ in range(3)]
    other = [message(queue_uid=LINE) for _ in range(3)]
    for each in (one, one, other):
        bench.store.put(each)
    # Then DynamoDB can tell: within ten minutes it does nothing for a token it knows, even if the messages were
    # consumed since
    tokens = [
        parameters["ClientRequestToken"]
        for operation, parameters in bench.client.calls
        if operation == "transact_write_items"
    ]
    assert tokens[0] == tokens[1] != tokens[2]
    assert all(1 <= len(token) <= 36 for token in tokens)


def test_a_transaction_that_meets_another_is_made_again(bench: Bench) -> None:
    # Given a service that cancels the first two tries for reasons that pass
    def cancelled(real: Callable[..., Any], parameters: dict[str, Any]) -> Any:
        reasons = [{"Code": "None"}, {"Code": "TransactionConflict"}]
        raise aws.client_error("TransactionCanceledException", CancellationReasons=reasons)

    bench.client.next("transact_write_items", cancelled)
    bench.client.next("transact_write_items", cancelled)
    given = [message(queue_uid=LINE) for _ in range(2)]
    # When two messages are put, then they are there after all
    bench.store.put(given)
    assert len(bench.stored()) == 2
    assert len(bench.clock.slept) == 2
    # When they never pass, then that is reported after a bounded wait
    for _ in range(5):
        bench.client.next("transact_write_items", cancelled)
    with pytest.raises(Unavailable, match="TransactWriteItems"):
        bench.store.put([message(queue_uid=LINE) for _ in range(2)])
    assert sum(bench.clock.slept) < 2


def test_a_failing_transaction_is_not_made_again(bench: Bench) -> None:
    bench.client.next("transact_write_items", aws.fails)
    with pytest.raises(Unavailable):
        bench.store.put([message(queue_uid=LINE) for _ in range(2)])
    assert bench.client.count("transact_write_items") == 1


def test_reserving_reads_neither_reserved_nor_delayed_messages(bench: Bench) -> None:
    # Given a queue of 100 delayed, 100 reserved, and 100 available messages
    bench.put(100, due_at=NOW + MINUTE)
    bench.put(100)
    bench.reserve(100)
    available = bench.put(100)
    bench.client.calls.clear()
    # When two are reserved
    taken = bench.reserve(2)
    # Then it took two queries, of which one found nothing, a write for each, and two batches for their places
    assert ids(taken) == [each.message_id for each in available[:2]]
    assert [operation for operation, _ in bench.client.calls] == ["query"] * 2 + ["update_item"] * 2 + [
        "batch_write_item"
    ] * 2


def test_many_expired_messages_are_passed_in_one_call_and_removed_in_several(bench: Bench) -> None:
    # Given 450 expired messages in front of a live one
    bench.put(450, expires_at=NOW + 1)
    (live,) = bench.put(1)
    later = NOW + 1
    # When it is reserved, then it is found at once
    assert ids(bench.reserve(now=later)) == [live.message_id]
    # And each call removes some of the others, until none is left
    left = [len(bench.stored())]
    while left[-1] > 1:
        bench.reserve(now=later)
        left.append(len(bench.stored()))
    assert left == [251, 51, 1]


def test_when_removing_expired_messages_fails_the_reservation_stands(bench: Bench) -> None:
    bench.put(3, expires_at=NOW + 1)
    (live,) = bench.put(1)
    bench.client.next("batch_write_item", aws.fails)
    assert ids(bench.reserve(now=NOW + 1)) == [live.message_id]


def test_the_loser_of_a_race_gets_another_message(bench: Bench) -> None:
    # Given three messages and another consumer that takes the first one between this one's read and write
    given = bench.put(3)

    def too_late(real: Callable[..., Any], parameters: dict[str, Any]) -> Any:
        bench.reserve()
        return real(**parameters)

    bench.client.next("update_item", too_late)
    # When this one reserves, then it gets one of the others, and the last one is there for the next call
    (mine,) = bench.reserve()
    (last,) = bench.reserve(3)
    assert {mine.message.message_id, last.message.message_id} == {each.message_id for each in given[1:]}


def test_a_consumer_that_lost_its_whole_first_page_finds_what_lies_behind_it(bench: Bench) -> None:
    # Given 40 messages, the first 25 of which another consumer takes after this one looked
    given = bench.put(40)

    def too_late(real: Callable[..., Any], parameters: dict[str, Any]) -> Any:
        bench.reserve(25)
        return real(**parameters)

    bench.client.next("update_item", too_late)
    # Then this one gets one of those behind it
    (mine,) = bench.reserve()
    assert mine.message.message_id in {each.message_id for each in given[25:]}


def test_a_consumer_that_met_another_keeps_strict_order_again_once_it_has_been_alone_for_a_while(bench: Bench) -> None:
    # Given a consumer that lost a message to another, and by now the number that picks another place than the front
    # (which place that is depends on the ids, so they are given)
    given = [message(queue_uid=LINE, subscriber_ids=(), message_id=str(6112035678239911000 + n)) for n in range(40)]
    DynamoDBPullStore(bench.tables, aws.PULL_TABLE, bench.clock).put(given)

    def too_late(real: Callable[..., Any], parameters: dict[str, Any]) -> Any:
        DynamoDBPullStore(bench.tables, aws.PULL_TABLE, bench.clock).reserve(
            PROJECT, LINE, count=1, timeout_ms=MINUTE, now=NOW
        )
        return real(**parameters)

    bench.clock.jitter_value = 0.5
    bench.client.next("update_item", too_late)
    (mine,) = bench.reserve()
    left = [each.message_id for each in given if each.message_id not in (given[0].message_id, mine.message.message_id)]
    # When it reserves at once, then it keeps out of the way of the other; some seconds later it is back at the front
    (aside,) = bench.reserve()
    assert aside.message.message_id != left[0]
    left.remove(aside.message.message_id)
    bench.clock.advance(seconds=7)
    assert ids(bench.reserve(5)) == left[:5]


def test_a_consumer_gives_up_after_seconds_when_others_are_always_quicker(bench: Bench) -> None:
    # Given others that take each message just before this one does, and more messages than it could try in time
    given = bench.put(70)
    bench.clock.jitter_value = 0.99
    other = DynamoDBPullStore(bench.tables, aws.PULL_TABLE, FakeClock())

    def too_late(real: Callable[..., Any], parameters: dict[str, Any]) -> Any:
        bench.tables.delete_item(TableName=aws.PULL_TABLE, Key=parameters["Key"])
        return real(**parameters)

    for _ in given:
        bench.client.next("update_item", too_late)
    # When it reserves, then it returns nothing in time for its caller, and leaves the rest alone
    assert bench.reserve(10) == []
    assert sum(bench.clock.slept) < 9
    left = other.reserve(PROJECT, LINE, count=70, timeout_ms=MINUTE, now=NOW)
    assert len(left) == 70 - bench.client.count("update_item") > 0


def test_a_reservation_whose_answer_was_lost_is_the_callers(bench: Bench) -> None:
    # Given a client that sends the reservation twice
    bench.put(1)
    bench.client.next("update_item", aws.repeated)
    # Then the second request meets its own reservation, which counts
    (held,) = bench.reserve()
    assert held.reserved_count == 1
    assert bench.store.get(MessageKey(PROJECT, LINE, held.message.message_id), NOW) == held
    # And likewise with touching
    bench.client.next("update_item", aws.repeated)
    renewed = bench.store.touch(
        MessageKey(PROJECT, LINE, held.message.message_id),
        reservation_id=held.reservation_id or "",
        timeout_ms=MINUTE,
        now=NOW,
    )
    found = bench.store.get(MessageKey(PROJECT, LINE, held.message.message_id), NOW)
    assert found is not None
    assert (found.reservation_id, found.reserved_count) == (renewed, 2)


def test_a_call_that_fails_half_way_returns_what_it_reserved(bench: Bench) -> None:
    # Given a service that fails on the second of two reservations
    bench.put(2)
    bench.client.next("update_item", aws.passes)
    bench.client.next("update_item", aws.fails)
    # Then the first is the caller's, not lost until it times out
    assert len(bench.reserve(2)) == 1
    # When nothing could be reserved, then that is an error
    bench.client.next("update_item", aws.fails)
    with pytest.raises(Unavailable, match="dynamodb:UpdateItem"):
        bench.reserve()


def test_a_reservation_nobody_can_tell_of_is_given_back_and_does_not_count(bench: Bench) -> None:
    # Given two messages, and a service that reserves one of them and loses the answer
    given = bench.put(2)
    bench.client.next("update_item", aws.passes)
    bench.client.next("update_item", aws.times_out)
    # When both are asked for, then the one that was answered is the caller's
    (mine,) = bench.reserve(2)
    # And the other is there for the next consumer, as if it had never been reserved
    (other,) = bench.reserve(2)
    assert {mine.message.message_id, other.message.message_id} == {each.message_id for each in given}
    assert other.reserved_count == 1


def test_messages_that_came_back_and_waiting_ones_are_read_in_pages(bench: Bench) -> None:
    # Given 60 messages that came back, alternating with 60 never reserved ones
    given = bench.put(120)
    for each in bench.reserve(100) + bench.reserve(20):
        if int(each.message.message_id) % 2:
            bench.store.release(
                MessageKey(PROJECT, LINE, each.message.message_id),
                reservation_id=each.reservation_id or "",
                delay_ms=0,
                now=NOW,
            )
    # Then all come in the order of the queue, whatever part of the index they are in
    later = NOW + MINUTE
    assert ids(bench.reserve(50, now=later)) == [each.message_id for each in given[:50]]
    assert ids(bench.store.peek(PROJECT, LINE, count=100, now=later)) == [each.message_id for each in given[50:]]


def test_index_entries_read_do_not_grow_with_the_queue(bench: Bench) -> None:
    bench.put(50)
    bench.reserve(10)
    assert bench.entries_read() <= 1_020


def test_a_line_message_is_read_from_a_stream_image(bench: Bench) -> None:
    bench.put(1)
    (held,) = bench.reserve()
    (item,) = bench.stored()
    assert decode_pull_message(item) == held
    assert item["kind"] == {"S": "line"}


def test_a_dead_letter_is_marked_before_it_is_removed(bench: Bench) -> None:
    # Given a reserved message that is moved elsewhere
    bench.put(1)
    (held,) = bench.reserve()
    # When it is removed as exhausted
    bench.store.delete(
        MessageKey(PROJECT, LINE, held.message.message_id),
        reservation_id=held.reservation_id,
        now=NOW,
        leaving="exhausted",
    )
    # Then the image that the stream shows last says why, and the message is gone
    marks = [parameters for operation, parameters in bench.client.calls if operation == "update_item"]
    assert marks[-1]["ExpressionAttributeValues"][":leaving"] == {"S": "exhausted"}
    assert bench.stored() == []


def test_reservations_nobody_saw_are_recorded_under_numbers_of_their_own(bench: Bench) -> None:
    # Given a message reserved twice, the first time without anybody being told
    (given,) = bench.put(1)
    images: list[dict[str, Any]] = []
    for counted in (False, True):
        (held,) = bench.reserve()
        images += bench.stored()
        assert held.reservation_id is not None
        bench.store.release(
            MessageKey(PROJECT, LINE, given.message_id),
            reservation_id=held.reservation_id,
            delay_ms=0,
            now=NOW,
            counted=counted,
        )
        images += bench.stored()
    # Then consumers know of one, and the records of two
    assert [decode_pull_message(image).reserved_count for image in images] == [1, 0, 1, 1]
    records = [record_of_pull_change(change(old, new, NOW / 1000)) for old, new in pairwise(images)]
    assert [(each.kind, each.reservations) for each in records if each] == [
        ("released", 1),
        ("reserved", 2),
        ("released", 2),
    ]


def test_what_comes_again_after_it_was_consumed_has_records_of_its_own(bench: Bench) -> None:
    # Given a message of the hub's own that is put, reserved and deleted, and then put again for the same reason
    given = message(queue_uid=LINE, subscriber_ids=(), cause="one")
    images: list[dict[str, Any] | None] = []
    for _ in range(2):
        assert bench.store.put_once(given) is Once.STORED
        images += [None, *bench.stored()]
        (held,) = bench.reserve()
        images += bench.stored()
        bench.store.delete(given.key, reservation_id=held.reservation_id, now=NOW)
        images.append(None)

    # When its stream is read, and read again at another time
    def recorded(at: float) -> list[DeliveryRecord]:
        result = [record_of_pull_change(change(old, new, at)) for old, new in pairwise(images) if old or new]
        return [each for each in result if each]

    first, later = recorded(NOW / 1000), recorded(NOW / 1000 + 600)
    # Then no two of its records have the same id, and each stay is owed for itself
    assert [each.kind for each in first] == ["accepted", "reserved", "delivered"] * 2
    assert len({each.record_id for each in first}) == 6
    owed = [delivery for each in first for delivery in each.owed or ()]
    assert len(set(owed)) == 2
    assert [each.delivery_id for each in first if each.kind == "delivered"] == owed
    assert {each.message_id for each in first} == {given.message_id}
    # And their times, where the item has them, are the item's
    moved = ("accepted", "reserved")
    assert [each for each in later if each.kind in moved] == [each for each in first if each.kind in moved]


def change(old: dict[str, Any] | None, new: dict[str, Any] | None, at: float) -> dict[str, Any]:
    """A record of the table's stream, of a time in seconds."""
    images = {name: image for name, image in (("OldImage", old), ("NewImage", new)) if image}
    keys = {name: (new or old or {})[name] for name in ("pk", "sk")}
    return {"dynamodb": {"Keys": keys, "ApproximateCreationDateTime": at, **images}}


def test_a_message_has_one_entry_wherever_it_goes_and_none_when_it_is_gone(bench: Bench) -> None:
    # Given a message
    (given,) = bench.put(1)
    assert bench.places() == [f"0#{given.message_id}"]
    # When it is reserved, touched, released and reserved again, then its entry follows
    (held,) = bench.reserve()
    assert bench.places() == [bench.stored()[0]["place"]["S"]]
    renewed = bench.store.touch(given.key, reservation_id=held.reservation_id or "", timeout_ms=MINUTE, now=NOW)
    assert bench.places() == [bench.stored()[0]["place"]["S"]]
    bench.store.release(given.key, reservation_id=renewed, delay_ms=0, now=NOW)
    assert bench.places() == [bench.stored()[0]["place"]["S"]]
    (held,) = bench.reserve()
    # When it is deleted, then nothing is left
    bench.store.delete(given.key, reservation_id=held.reservation_id, now=NOW)
    assert bench.places() == []
    assert bench.stored() == []


def test_who_is_cut_off_after_reserving_loses_no_message(bench: Bench) -> None:
    # Given a consumer whose call ends right after it reserved the first of two messages, its entry where it was
    given = bench.put(2)
    bench.client.next("put_item", aws.fails)
    (held,) = bench.reserve()
    assert f"0#{given[0].message_id}" in bench.places()
    # When others reserve, then they get the second, and repair the entry of the first
    bench.clock.advance(seconds=3)
    (other,) = bench.reserve(1, now=NOW + 3_000, timeout_ms=2 * MINUTE)
    assert other.message.message_id == given[1].message_id
    assert sorted(bench.places()) == sorted(each["place"]["S"] for each in bench.stored())
    # And when its reservation has ended, the first is there again
    (back,) = bench.reserve(1, now=NOW + MINUTE + 1)
    assert (back.message.message_id, back.reserved_count) == (held.message.message_id, 2)


@pytest.mark.parametrize("what", ["deletes it", "gives it back"])
def test_an_entry_that_is_mended_while_its_message_goes_is_not_left_behind(bench: Bench, what: str) -> None:
    # Given a message whose entry is where it was before a consumer reserved it
    bench.put(2)
    bench.client.next("put_item", aws.fails)
    (held,) = bench.reserve()
    bench.clock.advance(seconds=3)
    key = held.message.key

    def goes(real: Callable[..., Any], parameters: dict[str, Any]) -> Any:
        if what == "deletes it":
            bench.store.delete(key, reservation_id=held.reservation_id, now=NOW + 3_000)
        else:
            bench.store.release(key, reservation_id=held.reservation_id or "", delay_ms=MINUTE, now=NOW + 3_000)
        return real(**parameters)

    # When another one reserves the next, mends the entry, and the first one is done with its message before that
    real_enter = bench.store._places.enter
    calls = iter(["mends"])

    def enter(items: Any) -> None:
        if items and items[0]["place"]["S"] == mended and next(calls, None):
            goes(real_enter, {"items": items})
        else:
            real_enter(items)

    (stored,) = [each for each in bench.stored() if "reservation_id" in each]
    mended = stored["place"]["S"]
    bench.store._places.enter = enter  # type: ignore[method-assign]
    bench.reserve(1, now=NOW + 3_000, timeout_ms=2 * MINUTE)
    # Then every message has one entry, so as many are counted as there are
    assert next(calls, "mended") == "mended"
    assert sorted(bench.places()) == sorted(each["place"]["S"] for each in bench.stored())


def test_an_old_entry_that_could_not_be_deleted_leads_nobody_astray(bench: Bench) -> None:
    # Given two messages, of which the first was reserved, then deleted, without its entries being deleted
    given = bench.put(2)
    bench.client.next("batch_write_item", aws.fails)
    (held,) = bench.reserve()
    bench.client.next("batch_write_item", aws.fails)
    bench.store.delete(given[0].key, reservation_id=held.reservation_id, now=NOW)
    assert len(bench.places()) == 3
    # When a consumer reserves and later another one looks, then it gets the second message, and the entries are gone
    bench.clock.advance(seconds=3)
    (other,) = bench.reserve(now=NOW + 3_000, timeout_ms=2 * MINUTE)
    assert other.message.message_id == given[1].message_id
    assert bench.reserve(now=NOW + MINUTE) == []
    assert bench.places() == [bench.stored()[0]["place"]["S"]]


def test_a_message_of_the_hub_whose_call_was_cut_off_enters_its_queue_when_the_call_is_repeated(bench: Bench) -> None:
    # Given a call that stored the message and could not write its place
    given = message(queue_uid=LINE, cause="one")
    bench.client.next("put_item", aws.passes)
    bench.client.next("put_item", aws.fails)
    with pytest.raises(Unavailable):
        bench.store.put_once(given)
    assert bench.reserve() == []
    # When it is repeated, then the message is known, and now it is in the queue
    assert bench.store.put_once(given) is Once.KNOWN
    assert ids(bench.reserve()) == [given.message_id]


def test_a_message_moved_here_again_after_it_was_consumed_has_another_place(bench: Bench) -> None:
    # Given a dead letter that was put here, consumed, and is put here again
    given = message(queue_uid=LINE, cause="one")
    bench.store.put_once(given)
    first = bench.places()
    bench.store.delete(given.key, reservation_id=None, now=NOW)
    bench.store.put_once(given)
    # Then a caller that still has the first place cannot delete the second
    assert first != bench.places()
    assert ids(bench.reserve()) == [given.message_id]


def test_an_empty_queue_is_looked_into_once(bench: Bench) -> None:
    # Given a queue whose messages are all reserved or delayed
    bench.put(5)
    bench.reserve(5)
    bench.put(5, due_at=NOW + MINUTE)
    bench.client.calls.clear()
    # When somebody looks for messages, then that is one query that finds nothing
    assert bench.reserve() == []
    assert [operation for operation, _ in bench.client.calls] == ["query"]


def test_places_in_the_queue_are_no_records(bench: Bench) -> None:
    (given,) = bench.put(1)
    keys = {"pk": {"S": f"{PROJECT}#{LINE}#~0"}, "sk": {"S": f"0#{given.message_id}"}}
    change = {"Keys": keys, "NewImage": keys, "ApproximateCreationDateTime": NOW / 1000}
    assert record_of_pull_change({"dynamodb": change}) is None


def posted_fast(bench: Bench, count: int, **changes: Any) -> list[Message]:
    """Messages of one environment that posts many."""
    given = [message(queue_uid=LINE, subscriber_ids=(), **changes) for _ in range(count)]
    for start in range(0, count, 100):
        bench.store.put(given[start : start + 100])
    return given


def partitions(bench: Bench) -> set[str]:
    """Partitions that hold places."""
    items = bench.tables.scan(TableName=aws.PULL_TABLE)["Items"]
    return {each["pk"]["S"] for each in items if each["sk"]["S"] not in (MESSAGE, MARK)}


def test_a_queue_that_is_posted_to_fast_is_spread_and_a_consumer_alone_still_gets_its_order(bench: Bench) -> None:
    # Given a queue that one environment posts many messages to
    given = posted_fast(bench, 400)
    assert len(partitions(bench)) == SHARDS
    # Then a consumer of another environment gets all in order, and sizes count all
    other = DynamoDBPullStore(bench.tables, aws.PULL_TABLE, bench.clock)
    assert other.size(PROJECT, LINE, NOW) == 400
    assert other.size(PROJECT, LINE, NOW, at_most=350) == 350
    held = [each for _ in range(4) for each in other.reserve(PROJECT, LINE, count=100, timeout_ms=MINUTE, now=NOW)]
    assert ids(held) == [each.message_id for each in given]
    # And what it gives back or lets time out, too
    other.release(given[7].key, reservation_id=held[7].reservation_id or "", delay_ms=0, now=NOW)
    assert ids(other.peek(PROJECT, LINE, count=5, now=NOW)) == [given[7].message_id]
    assert ids(other.reserve(PROJECT, LINE, count=50, timeout_ms=MINUTE, now=NOW + MINUTE)) == [
        each.message_id for each in given[:50]
    ]


def test_a_queue_that_was_spread_is_looked_into_once_again_when_it_is_idle(bench: Bench) -> None:
    # Given a queue that was spread, and one message that is delayed beyond the time of its mark
    given = posted_fast(bench, 300)
    posted_fast(bench, 100, due_at=NOW + 20 * MINUTE)
    held = bench.reserve(300, timeout_ms=MINUTE)
    for each in held:
        bench.store.delete(each.message.key, reservation_id=each.reservation_id, now=NOW)
    assert len(held) == len(given)
    # When the mark's time is over, then consumers still look everywhere, for the delayed ones
    bench.clock.advance(seconds=15 * 60)
    assert bench.reserve(now=NOW + 15 * MINUTE) == []
    assert len(bench.reserve(100, now=NOW + 20 * MINUTE)) == 100
    for item in bench.stored():
        bench.store.delete(
            decode_pull_message(item).message.key,
            reservation_id=decode_pull_message(item).reservation_id,
            now=NOW + 20 * MINUTE,
        )
    # When nothing is left, then the next look finds that out, and those after it are one query
    assert bench.reserve(now=NOW + 21 * MINUTE) == []
    bench.client.calls.clear()
    assert bench.reserve(now=NOW + 22 * MINUTE) == []
    assert [operation for operation, _ in bench.client.calls] == ["query"]
    # And what is posted late is posted to where they look
    late = bench.put(1)
    assert ids(bench.reserve(now=NOW + 22 * MINUTE)) == [late[0].message_id]


def test_nothing_goes_to_other_shards_when_their_mark_cannot_be_written_or_ends_soon(bench: Bench) -> None:
    # Given a service that refuses the mark
    bench.store.put([message(queue_uid=LINE) for _ in range(100)])
    bench.client.next("put_item", aws.fails)
    bench.store.put([message(queue_uid=LINE) for _ in range(100)])
    assert len(partitions(bench)) == 1
    # When it accepts the mark, and ten minutes pass in which this environment posts little
    bench.store.put([message(queue_uid=LINE) for _ in range(100)])
    assert len(partitions(bench)) > 1
    before = bench.places()
    bench.clock.advance(seconds=9.5 * 60)
    bench.store.put([message(queue_uid=LINE) for _ in range(20)])
    # Then its messages go to the first shard again before the mark ends
    new = set(bench.places()) - set(before)
    items = bench.tables.scan(TableName=aws.PULL_TABLE)["Items"]
    assert {each["pk"]["S"].rpartition("~")[2] for each in items if each["sk"]["S"] in new} == {"0"}


def test_consumers_that_meet_look_into_a_shard_of_their_own(bench: Bench) -> None:
    # Given a spread queue and a consumer that has met another
    given = posted_fast(bench, 400)
    bench.clock.jitter_value = 0.4

    def too_late(real: Callable[..., Any], parameters: dict[str, Any]) -> Any:
        bench.tables.delete_item(TableName=aws.PULL_TABLE, Key=parameters["Key"])
        return real(**parameters)

    bench.client.next("update_item", too_late)
    assert len(bench.reserve(10)) == 10
    # When it reserves again, then it reads one shard
    bench.client.calls.clear()
    assert len(bench.reserve(10)) == 10
    assert bench.client.count("query") <= 2
    # And when that is empty, all others: no message is left behind
    while bench.reserve(50):
        pass
    assert {decode_pull_message(each).reserved_count for each in bench.stored()} == {1}
    assert len(bench.stored()) == len(given) - 1


@pytest.mark.parametrize("spread", [False, True])
def test_what_is_left_behind_in_a_long_queue_is_found_bit_by_bit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, spread: bool
) -> None:
    # Given a queue with more entries than are looked at together, most of them of reserved messages
    monkeypatch.setattr(dynamodb_pull, "_SWEPT", 16)
    if spread:
        monkeypatch.setattr(pull_places, "_BUSY", 10)
    bench.store.put([message(queue_uid=LINE, subscriber_ids=()) for _ in range(45)])
    held = bench.reserve(35, timeout_ms=100 * MINUTE)
    # And deletions that were cut off before they deleted the entry
    for each in held[::7]:
        bench.client.next("batch_write_item", aws.fails)
        bench.store.delete(each.message.key, reservation_id=each.reservation_id, now=NOW)
    assert len(bench.places()) == 45
    # When the size is asked for every few seconds, then it is exact after some
    sizes: list[int] = []
    for _ in range(6):
        bench.clock.advance(seconds=5)
        sizes.append(bench.store.size(PROJECT, LINE, bench.clock.now(), exact=True))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == len(bench.stored()) == 40


def test_an_exact_size_costs_little_more_than_another(bench: Bench) -> None:
    # Given an empty queue, then it costs nothing more
    bench.store.size(PROJECT, LINE, NOW, exact=True)
    plain = len(bench.client.calls)
    bench.store.size(PROJECT, LINE, NOW)
    assert len(bench.client.calls) == 2 * plain
    # And one that is not empty is looked through every few seconds only, whoever fails then
    bench.put(30)
    bench.reserve(30)
    bench.client.calls.clear()
    bench.client.next("batch_get_item", aws.fails)
    for _ in range(10):
        assert bench.store.size(PROJECT, LINE, NOW, exact=True) == 30
    assert bench.client.count("batch_get_item") == 1
    assert len(bench.client.calls) <= 10 * plain + 3


def test_messages_that_are_put_again_in_other_shards_are_known_or_left_to_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Given messages that were put, on a service that takes a token for one transaction only, as AWS does
    with simulated_services.dynamodb() as client:
        store = DynamoDBPullStore(client, aws.PULL_TABLE, FakeClock())
        given = [message(queue_uid=LINE, subscriber_ids=()) for _ in range(3)]
        store.put(given)

        # When they are put again by somebody who would choose other shards
        shards = iter(range(100, 200))
        monkeypatch.setattr(store._places, "shard_for", lambda *_: next(shards))
        store.put(given)

        # Then they are there once
        held = store.reserve(PROJECT, LINE, count=10, timeout_ms=MINUTE, now=NOW)
        assert [each.message for each in held] == given

        # And once they were consumed, nobody says that they are stored, and they do not come back
        for each in held:
            key = MessageKey(PROJECT, LINE, each.message.message_id)
            store.delete(key, reservation_id=each.reservation_id, now=NOW + 1)
        with pytest.raises(Unavailable, match="IdempotentParameterMismatch"):
            store.put(given)
        assert store.size(PROJECT, LINE, NOW, exact=True) == 0


def test_a_large_queue_is_not_counted_anew_each_time_it_is_asked_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a queue that counts as large
    for module in (dynamodb_pull, pull_places):
        monkeypatch.setattr(module, "LARGE", 50)
    monkeypatch.setattr(pull_places, "_REMEMBERED_MS", 100)
    bench.put(60)
    # When its size is asked for by a page, by an overview, and by each of many posts to a queue with progressive alerts
    bench.client.calls.clear()
    assert {bench.store.size(PROJECT, LINE, NOW) for _ in range(20)} == {60}
    assert bench.store.sizes(PROJECT, [LINE], NOW) == [60]
    # Then it was counted once
    assert bench.client.count("query") == 1
    # And again when that is as old as it is large
    bench.put(1)
    bench.clock.advance(seconds=7)
    assert bench.store.size(PROJECT, LINE, NOW) == 61
    assert bench.client.count("query") == 2
    # While a small one is always counted
    monkeypatch.setattr(pull_places, "LARGE", 500)
    bench.clock.advance(seconds=7)
    bench.put(1)
    assert [bench.store.size(PROJECT, LINE, NOW) for _ in range(2)] == [62, 62]
    assert bench.client.count("query") == 4


@pytest.mark.parametrize("what", ["slow", "throttled"])
def test_a_size_is_what_could_be_counted(bench: Bench, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    # Given a queue whose entries come in many pages, slowly, or so many that the table refuses some
    monkeypatch.setattr(pull_places, "LARGE", 20)
    bench.put(60)
    pages = 0

    def a_page(real: Callable[..., Any], parameters: dict[str, Any]) -> Any:
        nonlocal pages
        pages += 1
        bench.clock.advance(seconds=1 if what == "slow" else 0)
        if what == "throttled" and pages == 4:
            raise aws.client_error("ProvisionedThroughputExceededException")
        return real(**parameters | {"Limit": 5 if what == "slow" else 10})

    for _ in range(20):
        bench.client.next("query", a_page)
    # Then it tells what was counted by then
    assert bench.store.size(PROJECT, LINE, NOW) == (40 if what == "slow" else 30)
