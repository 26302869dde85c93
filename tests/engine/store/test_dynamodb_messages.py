"""What is specific to messages and deliveries in DynamoDB: their size, their indexes, stream images, repeated calls."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, cast

import pytest
from mypy_boto3_dynamodb import DynamoDBClient
from tests.cloud import aws_services as aws
from tests.cloud.aws_services import Intercepted, fails
from tests.contract.samples import NOW, POLICY, PROJECT, QUEUE_UID, answer, first, full_message, message, order, tried
from tests.fakes import FakeClock
from tests.simulation import simulated_services

from pushhub.base.errors import Conflict, Unavailable
from pushhub.base.ids import MessageIds
from pushhub.base.verdict import Verdict
from pushhub.engine.model.delivery import Delivery, after_attempt, opening, schedule
from pushhub.engine.model.keys import LISTED, MessageKey
from pushhub.engine.model.message import Message, Ordering
from pushhub.engine.store._delivery_items import decode_delivery, encode_delivery
from pushhub.engine.store._unsettled_spread import BURST, SEVERAL
from pushhub.engine.store.dynamodb_changes import is_restored, record_of_change
from pushhub.engine.store.dynamodb_messages import DynamoDBMessageStore, decode_message
from pushhub.engine.store.dynamodb_schedule import DynamoDBSchedule
from pushhub.ironmq.wire.subscribers import MAX_SUBSCRIBERS_BYTES

KIBIBYTE = 1_024


class Bench:
    """The store on a client whose calls are recorded."""

    def __init__(self, client: DynamoDBClient) -> None:
        self.client = Intercepted(client)
        self.clock = FakeClock()
        intercepted = cast(DynamoDBClient, self.client)
        self.schedule = DynamoDBSchedule(intercepted, aws.SCHEDULE_TABLE, self.clock)
        self.store = DynamoDBMessageStore(intercepted, aws.MESSAGES_TABLE, self.clock, lambda: self.schedule)
        self._tables = client

    def stored(self) -> list[dict[str, Any]]:
        return self._tables.scan(TableName=aws.MESSAGES_TABLE)["Items"]

    def another(self) -> DynamoDBMessageStore:
        """The store of another environment, whose calls are not recorded."""
        return DynamoDBMessageStore(self._tables, aws.MESSAGES_TABLE, FakeClock(), lambda: self.schedule)

    def deliveries(self) -> list[dict[str, Any]]:
        """Their items, oldest message first."""
        found = (item for item in self.stored() if item["kind"]["S"] == "delivery")
        return sorted(found, key=lambda item: str(item["pk"]["S"]))

    def index_keys(self) -> list[str]:
        (item,) = self.stored()
        return [name for name in ("unsettled_queue", "unsettled_key") if name in item]


@pytest.fixture
def bench() -> Iterator[Bench]:
    with simulated_services.dynamodb() as client:
        yield Bench(client)


def billed_size(item: dict[str, Any]) -> int:
    """Bytes as DynamoDB counts them: names, strings and binary as they are, numbers two digits a byte,
    3 for each collection.
    """
    return sum(len(name.encode()) + _value_size(value) for name, value in item.items())


def _value_size(value: dict[str, Any]) -> int:
    ((kind, held),) = value.items()
    if kind == "M":
        return 3 + sum(1 + len(name.encode()) + _value_size(each) for name, each in held.items())
    if kind == "L":
        return 3 + sum(1 + _value_size(each) for each in held)
    if kind == "N":
        return 1 + (len(held.strip("0")) + 1) // 2
    if kind == "BOOL":
        return 1
    return len(held.encode() if isinstance(held, str) else held)


def as_stream_image(item: dict[str, Any]) -> dict[str, Any]:
    """An item as Lambda gets it from the stream: binary values are base64 text."""
    return {
        name: {"B": base64.b64encode(value["B"]).decode()} if "B" in value else value for name, value in item.items()
    }


def test_a_small_message_is_one_write_unit(bench: Bench) -> None:
    # Given a body of 500 bytes for one subscriber, with a long queue name
    bench.store.accept([message(body=b"x" * 500, queue="customer-orders-eu-west-production")])
    # Then it fits in a KiB with room to spare
    (item,) = bench.stored()
    assert billed_size(item) < 800


def test_a_failing_delivery_is_one_write_unit(bench: Bench) -> None:
    # Given a scheduled multicast delivery with a long error message, at the end of its tries but one
    given = message(queue="customer-orders-eu-west-production")
    delivery = first(given, Verdict.FAILED, scheduled=True)
    status = replace(delivery.statuses[given.subscriber_ids[0]], tries=100, message="m" * 200)
    bench.store.save(replace(delivery, statuses={given.subscriber_ids[0]: status}, tries=100, attempts=100))
    # Then it fits in a KiB, keys of its index included
    (item,) = bench.stored()
    assert "unsettled_key" in item
    assert billed_size(item) <= KIBIBYTE


def test_a_round_through_all_the_subscribers_a_queue_may_have_fits_one_item() -> None:
    # Given a unicast queue with as many subscribers as its 64 KB of JSON can hold, and endpoints with long answers
    shortest = json.dumps({"name": "", "url": "ironmq:///q"})
    targets = tuple(f"{number:012x}" for number in range(MAX_SUBSCRIBERS_BYTES // (len(shortest) + 2)))
    delivery = opening(message(subscriber_ids=targets, unicast=True), "*")
    # When all of them were tried
    for _ in targets:
        said = answer(503, message="é" * 200)
        delivery = after_attempt(
            delivery, said, Verdict.FAILED, policy=POLICY, reserve_ms=0, jitter=0, subscriber="s" * 255
        )
    assert len(delivery.statuses) == len(targets)
    # Then the item, including indexes, fits in DynamoDB, and two images of it fit in a stream record
    size = billed_size(encode_delivery(schedule(delivery)))
    assert size < 400 * KIBIBYTE
    assert 2 * size < 1024 * KIBIBYTE


def test_one_message_is_one_call_and_so_are_25(bench: Bench) -> None:
    bench.store.accept([message()])
    bench.store.accept([message() for _ in range(25)])
    assert [operation for operation, _ in bench.client.calls] == ["put_item", "batch_write_item"]


def test_a_batch_of_an_ordering_key_fits_its_transactions_whatever_the_subscribers(bench: Bench) -> None:
    # Given as many subscribers as a queue may have
    smallest = len(json.dumps({"name": "abc", "url": "http://a"})) + len(", ")
    subscribers = tuple(f"{number:012x}" for number in range(MAX_SUBSCRIBERS_BYTES // smallest))
    ids = MessageIds(1)
    posted = [
        message(
            message_id=ids.next(NOW),
            body=bytes(8_192),
            body_size=8_192,
            subscriber_ids=subscribers,
            ordering=Ordering(key="k"),
        )
        for _ in range(100)
    ]
    # When two posts of fifty messages name a key, then what DynamoDB is asked at once it takes: 4 MB
    for batch in (posted[:50], posted[50:]):
        bench.store.accept(batch)
    found = [bench.store.message(each.key) for each in posted]
    assert [each.ordering.sequence for each in found if each and each.ordering] == [*range(1, 101)]


def test_nothing_is_listed_below_the_lowest_id_that_somebody_can_make_up(bench: Bench) -> None:
    assert [*bench.store.listed(PROJECT, f"{LISTED}x", below="0" * 19, up=False)] == []


def test_an_attempt_is_one_write(bench: Bench) -> None:
    bench.store.save(first(message(), Verdict.FAILED))
    assert [operation for operation, _ in bench.client.calls] == ["put_item"]


def test_a_scheduled_wait_is_two_writes_and_none_when_it_is_over(bench: Bench) -> None:
    # Given a delivery that fails and waits longer than a queue can hold it, and fails again when it was woken
    failed = first(message(), Verdict.FAILED, due_at=NOW + 3_600_000, scheduled=True)
    bench.store.save(failed)
    bench.store.save(tried(failed, Verdict.FAILED, due_at=NOW + 9_600_000, scheduled=True))
    # Then each cycle wrote the entry, then the delivery, each of one unit
    writes = [call["TableName"] for operation, call in bench.client.calls if operation == "put_item"]
    assert writes == [aws.SCHEDULE_TABLE, aws.MESSAGES_TABLE] * 2
    assert all(billed_size(call["Item"]) <= KIBIBYTE for _, call in bench.client.calls)
    # And the second write of the delivery changed no key of an index
    first_item, second_item = (
        call["Item"] for _, call in bench.client.calls if call["TableName"] == aws.MESSAGES_TABLE
    )
    assert first_item["unsettled_key"] == second_item["unsettled_key"]


def test_an_entry_whose_delivery_was_not_written_is_harmless(bench: Bench) -> None:
    # Given a delivery that changed since it was read
    failed = first(message(), Verdict.FAILED, scheduled=True)
    bench.store.save(tried(replace(failed, version=0), Verdict.FAILED))
    # When it is scheduled, then the write is refused; the entry's version will not be found
    with pytest.raises(Conflict):
        bench.store.save(failed)


def test_a_first_success_writes_no_index(bench: Bench) -> None:
    bench.store.save(first(message(), Verdict.DELIVERED))
    assert bench.index_keys() == []


def test_the_failures_of_a_queue_are_spread_over_partitions_and_read_as_one_list(bench: Bench) -> None:
    # Given an outage: many deliveries of one queue fail, a second after each other
    ids = MessageIds(7)
    failed = [first(message(message_id=ids.next(NOW + 13 * number)), Verdict.FAILED) for number in range(60)]
    for each in failed:
        bench.store.save(each)
        bench.clock.advance(seconds=1)
    # Then no partition of the index takes the writes of all
    sizes = Counter(item["unsettled_queue"]["S"] for item in bench.deliveries())
    assert len(sizes) == 8
    assert max(sizes.values()) <= 20
    # And they are read in the order in which they were accepted, even from the middle on
    found, cursor = bench.store.unsettled(PROJECT, QUEUE_UID, limit=25)
    rest, end = bench.store.unsettled(PROJECT, QUEUE_UID, limit=60, after=cursor)
    assert (found + rest, end) == (failed, None)
    # And counting them takes a call for each partition, and one to learn how many there are
    bench.client.calls.clear()
    assert bench.store.unsettled_counts(PROJECT, [QUEUE_UID]) == [60]
    assert [bench.client.count(each) for each in ("query", "batch_get_item")] == [8, 1]


def fail_many(store: DynamoDBMessageStore, count: int, **fields: Any) -> list[Delivery]:
    """That many deliveries of one queue, just failed."""
    failed = [first(message(**fields), Verdict.FAILED) for _ in range(count)]
    for each in failed:
        store.save(each)
    return failed


def test_a_queue_whose_deliveries_fail_by_the_dozen_is_spread_further_and_still_read_as_one_list(bench: Bench) -> None:
    # Given a queue, some of whose deliveries another environment placed in its eight partitions
    others = fail_many(bench.another(), BURST)
    # When many more fail within seconds
    failed = others + fail_many(bench.store, BURST + 60)
    # Then those beyond the first few are spread over 32 partitions, and marks tell so, whatever their number
    spread = Counter(item["unsettled_queue"]["S"] for item in bench.deliveries()[2 * BURST :])
    assert len(spread) > 8
    assert {item["unsettled_queue"]["S"] for item in bench.deliveries()[: 2 * BURST]} <= {
        f"{PROJECT}#{QUEUE_UID}#{shard}" for shard in range(8)
    }
    assert len(bench.stored()) == len(failed) + 2
    assert bench.client.count("put_item") == BURST + 60 + 2
    # And every environment reads all of them in order, in pages too
    for store in (bench.store, bench.another()):
        assert store.unsettled_counts(PROJECT, [QUEUE_UID]) == [len(failed)]
        page, cursor = store.unsettled(PROJECT, QUEUE_UID, limit=50)
        rest, end = store.unsettled(PROJECT, QUEUE_UID, limit=900, after=cursor)
        assert (page + rest, end) == (failed, None)
    # And counting them takes a call for each partition, and one to learn how many there are
    bench.client.calls.clear()
    assert bench.store.unsettled_counts(PROJECT, [QUEUE_UID]) == [len(failed)]
    assert [bench.client.count(each) for each in ("query", "batch_get_item")] == [32, 1]
    # And what fails elsewhere is not
    fail_many(bench.store, 1, queue_uid="another00000")
    assert bench.store.unsettled_counts(PROJECT, ["another00000"]) == [1]


def test_queues_in_which_little_fails_are_counted_with_one_read_for_each_and_one_for_all(bench: Bench) -> None:
    # Given twenty queues in which a few deliveries failed, one in which nothing did, and one in which several did
    for number in range(20):
        fail_many(bench.store, SEVERAL, queue_uid=f"q{number}")
    fail_many(bench.store, SEVERAL + 1, queue_uid="several")
    bench.client.calls.clear()
    # When they are counted
    uids = [*(f"q{number}" for number in range(20)), "nothing", "several"]
    assert bench.store.unsettled_counts(PROJECT, uids) == [*([SEVERAL] * 20), 0, SEVERAL + 1]
    # Then the marks of all are read at once, and only the one that has a mark is read in eight places
    assert [bench.client.count(each) for each in ("batch_get_item", "query")] == [1, 21 + 8]
    assert len(bench.client.calls) == 1 + 21 + 8


def test_an_entry_that_another_environment_moves_is_there_once(bench: Bench) -> None:
    # Given deliveries spread over many partitions
    failed = fail_many(bench.store, BURST + 30)
    # When they fail again in environments that have seen few failures
    again = [tried(each, Verdict.FAILED) for each in failed]
    for each in again:
        bench.another().save(each)
    # Then each is listed once
    assert bench.store.unsettled(PROJECT, QUEUE_UID, limit=100) == (again, None)
    assert bench.store.unsettled_counts(PROJECT, [QUEUE_UID]) == [len(again)]


def test_the_mark_of_a_spread_queue_outlives_every_entry_and_is_not_moved_for_each(bench: Bench) -> None:
    # Given a queue that is spread
    fail_many(bench.store, BURST + 1)
    writes = bench.client.count("put_item")
    # When messages fail that are kept up to a day longer, then the mark will do
    fail_many(bench.store, 10, expires_at=message().expires_at + 3_600_000)
    assert bench.client.count("put_item") == writes + 10
    # When they are kept for a month, then it is moved once
    fail_many(bench.store, 10, expires_at=message().expires_at + 30 * 86_400_000)
    assert bench.client.count("put_item") == writes + 21
    marks = [item for item in bench.stored() if item["sk"]["S"] == "K"]
    many = next(item for item in marks if item["pk"]["S"].endswith("#U32"))
    assert int(many["ttl"]["N"]) > max(int(item["ttl"]["N"]) for item in bench.deliveries())
    # And never back, by an environment that knows only of short-lived ones
    fail_many(bench.another(), BURST + 1)
    assert [item for item in bench.stored() if item["sk"]["S"] == "K"] == marks


def test_without_its_mark_a_queue_keeps_to_the_partitions_it_has(bench: Bench) -> None:
    # Given a mark that cannot be written
    for _ in range(BURST):
        bench.store.save(first(message(), Verdict.FAILED))
    bench.client.next("put_item", fails)
    # When another delivery fails, then it is saved all the same, and found
    bench.store.save(first(message(), Verdict.FAILED))
    assert len(bench.deliveries()) == BURST + 1
    assert bench.store.unsettled_counts(PROJECT, [QUEUE_UID]) == [BURST + 1]


def test_the_mark_of_a_spread_queue_is_neither_work_nor_recorded(bench: Bench) -> None:
    failed = fail_many(bench.store, BURST + 1)
    bench.store.accept([message()])
    # Then who reads the whole table does not meet it
    assert len(failed) == BURST + 1
    assert [deliveries for _, deliveries in bench.store.outstanding(0, 1)] == [[]]
    # And it makes no record
    mark, _ = (item for item in bench.stored() if item["sk"]["S"] == "K")
    stream = {"ApproximateCreationDateTime": NOW // 1000, "NewImage": mark}
    assert record_of_change({"dynamodb": stream}) is None


def test_index_keys_come_and_go_with_the_state(bench: Bench) -> None:
    given = message()
    # Given a message with a long delay, scheduled before its first attempt
    scheduled = replace(opening(given, given.subscriber_ids[0]), version=1, scheduled=True)
    bench.store.save(scheduled)
    assert bench.index_keys() == []
    # When it fails and waits in a queue, and again, then its key is the same, so the index is not written
    failed = tried(scheduled, Verdict.FAILED)
    bench.store.save(failed)
    assert bench.index_keys() == ["unsettled_queue", "unsettled_key"]
    (before,) = bench.stored()
    again = tried(failed, Verdict.FAILED, scheduled=True)
    bench.store.save(again)
    (after,) = bench.stored()
    assert [after[name] == before[name] for name in ("unsettled_queue", "unsettled_key")] == [True, True]
    assert bench.index_keys() == ["unsettled_queue", "unsettled_key"]
    # When it succeeds
    bench.store.save(tried(again, Verdict.DELIVERED))
    assert bench.index_keys() == []


@pytest.mark.parametrize(("lives_s", "kept_s"), [(7 * 86_400, 8 * 86_400), (2 * 86_400, 3 * 86_400), (60, 3 * 86_400)])
@pytest.mark.parametrize("delay_s", [0, 5 * 86_400])
def test_items_outlive_their_message_by_a_day_and_are_kept_for_three(
    bench: Bench, lives_s: int, kept_s: int, delay_s: int
) -> None:
    # Given a message that is due at once, or days later, and lives for a time from then on
    due_at = message().accepted_at + delay_s * 1_000
    given = message(due_at=due_at, expires_at=due_at + lives_s * 1_000)
    # When it is accepted and delivered, and what was read of the delivery is written once more
    bench.store.accept([given])
    bench.store.save(first(given, Verdict.DELIVERED))
    stored = bench.store.delivery(given.delivery_key(given.subscriber_ids[0]))
    assert stored is not None
    bench.store.save(replace(stored, version=stored.version + 1))
    # Then both items are kept as long
    assert {item["ttl"]["N"] for item in bench.stored()} == {str(due_at // 1_000 + kept_s)}


def test_the_kind_of_an_item_is_what_the_stream_filter_asks_for(bench: Bench) -> None:
    given = message()
    bench.store.accept([given])
    bench.store.save(first(given, Verdict.DELIVERED))
    kinds = {item["sk"]["S"]: item["kind"]["S"] for item in bench.stored()}
    assert kinds == {"M": "message", f"D#{given.subscriber_ids[0]}": "delivery"}


@pytest.mark.parametrize("given", [message(), message(body=b"\xff\x00"), message(body=b""), full_message()])
def test_a_message_is_read_from_a_stream_image(bench: Bench, given: Message) -> None:
    bench.store.accept([given])
    (item,) = bench.stored()
    assert decode_message(as_stream_image(item)) == given


@pytest.mark.parametrize(
    "given",
    [
        first(message(), Verdict.FAILED, scheduled=True),
        tried(first(full_message(), Verdict.FAILED), Verdict.POLL, update_url="https://a.example/1"),
    ],
)
def test_a_delivery_is_read_from_a_stream_image(bench: Bench, given: Delivery) -> None:
    bench.store.save(replace(given, version=1))
    (item,) = bench.stored()
    assert decode_delivery(as_stream_image(item)) == replace(given, version=1)


def test_what_is_put_back_is_news_to_nobody(bench: Bench) -> None:
    # Given a message and a delivery that were lost
    lost = message()
    stood = first(lost, Verdict.FAILED)
    bench.store.restore(lost, [stood])
    images = {each["kind"]["S"]: each for each in bench.stored()}
    # Then their insertion is known for what it is, of which no record is made
    stream = {"ApproximateCreationDateTime": 1_795_000_000.0}
    for image in images.values():
        assert is_restored({"dynamodb": {**stream, "NewImage": image}})
    # But of what happens to the delivery then
    bench.store.save(tried(stood, Verdict.DELIVERED))
    after = next(each for each in bench.stored() if each["kind"]["S"] == "delivery")
    change = {"dynamodb": {**stream, "OldImage": images["delivery"], "NewImage": after}}
    assert not is_restored(change)
    record = record_of_change(change)
    assert record is not None
    assert (record.kind, record.state, record.version) == ("attempt", "delivered", stood.version + 1)


def test_what_takes_the_place_of_a_backups_is_news_to_nobody(bench: Bench) -> None:
    # Given a delivery as a backup has it
    kept = message()
    older = first(kept, Verdict.FAILED)
    bench.store.save(older)
    (before,) = bench.stored()
    # When it is put back as it was in the end
    newer = tried(older, Verdict.DELIVERED)
    bench.store.restore(None, [newer])
    (after,) = bench.stored()
    # Then that is known for what it is, of which no record is made
    stream = {"ApproximateCreationDateTime": 1_795_000_000.0, "OldImage": before, "NewImage": after}
    assert decode_delivery(as_stream_image(after)) == newer
    assert is_restored({"dynamodb": stream})


def test_a_call_the_client_repeats_after_a_lost_answer_is_no_conflict(bench: Bench) -> None:
    # Given a client whose every write is sent twice
    for _ in range(4):
        bench.client.next("put_item", aws.repeated)
    given = message(cause="one")
    # When everything is written, then nothing fails
    bench.store.accept([given])
    assert bench.store.accept_once(given)
    failed = first(given, Verdict.FAILED)
    bench.store.save(failed)
    bench.store.save(tried(failed, Verdict.FAILED))
    # Then another writer's change is still a conflict
    with pytest.raises(Conflict):
        bench.store.save(tried(failed, Verdict.DELIVERED))


def test_a_timeout_is_unavailable_though_it_took_effect(bench: Bench) -> None:
    given = first(message(), Verdict.FAILED)
    bench.client.next("put_item", aws.times_out)
    with pytest.raises(Unavailable, match="dynamodb:PutItem"):
        bench.store.save(given)
    assert [decode_delivery(item) for item in bench.stored()] == [given]


def test_reads_that_decide_are_consistent(bench: Bench) -> None:
    given = message()
    bench.store.message_with_deliveries(MessageKey(PROJECT, QUEUE_UID, given.message_id))
    bench.store.delivery(order(given).key)
    bench.store.message(MessageKey(PROJECT, QUEUE_UID, given.message_id))
    assert [call["ConsistentRead"] for _, call in bench.client.calls] == [True, True, True]


def test_an_entry_of_the_index_that_lags_is_left_out(bench: Bench) -> None:
    # Given a waiting delivery whose index entry is read just before it is delivered
    failed = first(message(), Verdict.FAILED)
    bench.store.save(failed)

    def delivered_meanwhile(real: Any, parameters: dict[str, Any]) -> Any:
        page = real(**parameters)
        bench.store.save(tried(failed, Verdict.DELIVERED))
        return page

    bench.client.next("query", delivered_meanwhile)
    # Then it is not among the unsettled ones
    assert bench.store.unsettled(PROJECT, QUEUE_UID, limit=10) == ([], None)


@pytest.mark.parametrize("wanted", [1, 10, 100])
def test_a_reader_of_few_messages_is_not_charged_for_all_that_wait(bench: Bench, wanted: int) -> None:
    # Given many messages of a queue that is listed
    given = [message(queue_uid=f"{LISTED}app_1") for _ in range(300)]
    bench.another().accept(given)
    # When so many are read
    found = [*islice(bench.store.listed(PROJECT, f"{LISTED}app_1", wanted=wanted), wanted)]
    # Then they are the first ones, and the pages that were read hold not many more
    assert found == given[:wanted]
    read = sum(parameters["Limit"] for operation, parameters in bench.client.calls if operation == "query")
    assert read <= 8 + 5 * wanted
