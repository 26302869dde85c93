"""Work orders: what goes into SQS comes out the same, and SQS accepts it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.engine.model.deflated import Deflated, plain, stored_as
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.message import BodyRef, Message, Ordering
from pushhub.engine.model.work import (
    GROUPS_OF_A_PROJECT,
    PACK_BYTES,
    PACK_ORDERS,
    PACK_SECONDS,
    WorkOrder,
    decode_pack,
    pack,
)


def a_message(body: bytes | None = b"x", *, number: int = 1, subscriber_id: str = "s0", **more: object) -> Message:
    fields: dict[str, object] = {
        "project": "p",
        "queue": "orders",
        "queue_uid": "u",
        "message_id": str(number),
        "body": body,
        "body_size": len(body or b""),
        "accepted_at": 1,
        "due_at": 2,
        "expires_at": 3,
        "subscriber_ids": (subscriber_id,),
        **more,
    }
    return Message(**fields)  # type: ignore[arg-type]


def an_order(body: bytes | None = b"x", *, subscriber_id: str = "s0", **more: Any) -> WorkOrder:
    return WorkOrder.carrying(a_message(body, subscriber_id=subscriber_id, **more), subscriber_id)


@given(st.binary() | st.text().map(lambda text: text.encode(errors="replace")), st.text(max_size=20))
def test_an_order_comes_out_as_it_went_in(body: bytes, header: str) -> None:
    order = an_order(body, headers={"X-Kind": header.encode(errors="replace").decode()})
    assert WorkOrder.decode(order.encode()) == order


@pytest.mark.parametrize("body", [b'{"items":[' + b'{"id":1,"title":"lamp"},' * 200 + b"0]}", bytes(3_000)])
def test_an_order_carries_a_compressed_body_as_it_is_stored(body: bytes) -> None:
    # Given a message whose body is stored compressed
    stored = stored_as(body)
    assert isinstance(stored, Deflated)
    message = replace(a_message(b""), body=stored, body_size=len(body))
    # When its order goes through the queue
    order = WorkOrder.carrying(message, "s0")
    back = WorkOrder.decode(order.encode())
    # Then the order is shorter than with the body, which comes out of it exactly
    assert back == order
    assert len(order.encode()) < len(WorkOrder.carrying(replace(message, body=body), "s0").encode())
    assert back.message is not None
    assert plain(back.message.body or b"") == body


@pytest.mark.parametrize("content", ["%", 7, None, "eA"])
def test_an_order_whose_compressed_body_is_damaged_is_none(content: object) -> None:
    answer = json.loads(an_order(b"x").encode()) | {"body_deflated": content}
    with pytest.raises(ValueError):
        WorkOrder.decode(json.dumps(answer))


def test_a_claim_check_a_round_and_hops_come_through() -> None:
    ref = BodyRef(key="bodies/p/x", offset=7, length=9)
    order = an_order(None, body_ref=ref, hops=3, root="7", unicast=True, subscriber_ids=("b", "a"), subscriber_id="*")
    back = WorkOrder.decode(order.encode())
    assert back == order
    assert back.message is not None


@pytest.mark.parametrize("manual", [False, True])
def test_an_order_without_its_message_is_what_the_delivery_is_found_by(manual: bool) -> None:
    order = WorkOrder(key=DeliveryKey("p", "u", "7", "*"), queue="orders", manual=manual)
    assert WorkOrder.decode(order.encode()) == order


def test_the_order_for_a_message_that_was_deleted_meanwhile_is_one_without_it() -> None:
    # Given the order for what is left of a deleted message, which has no body
    fields = json.loads(an_order(b"x", subscriber_id="*", unicast=True, subscriber_ids=("a", "b")).encode())
    del fields["body"]
    # Then it is an order to look at that delivery
    assert WorkOrder.decode(json.dumps(fields)) == WorkOrder(key=DeliveryKey("p", "u", "1", "*"), queue="orders")


@given(st.text())
def test_sqs_takes_every_character_of_an_order(text: str) -> None:
    """SQS takes tab, line feed, carriage return, and U+0020 to U+D7FF, U+E000 to U+FFFD, U+10000 and above."""
    encoded = an_order(text.encode(errors="replace")).encode()
    assert all(
        each in "\t\n\r" or " " <= each <= "\ud7ff" or "\ue000" <= each <= "\ufffd" or each >= "\U00010000"
        for each in encoded
    )


@pytest.mark.parametrize("body", [b"\x01" * 8192, b'"' * 8192, b"\xff" * 8192, "\uffff".encode() * 2730, b"x" * 8192])
def test_no_body_grows_by_more_than_base64_makes_it_grow(body: bytes) -> None:
    # Given the longest body that travels in an order, and the longest headers beside it
    order = an_order(body, headers={f"X-{number}" + "n" * 61: '"' * 1024 for number in range(5)})
    # Then escaping does not add a hundred kilobytes
    encoded = order.encode()
    assert len(encoded.encode()) < 4 / 3 * 8192 + 5 * (64 + 2 * 1024) + 500
    assert WorkOrder.decode(encoded) == order


@pytest.mark.parametrize("text", ["", "null", "7", '"x"', "{}", "[1]", "[{}]", '{"subscriber_id": 1}', "[", "nonsense"])
def test_what_is_no_order_is_told(text: str) -> None:
    with pytest.raises(ValueError):
        decode_pack(text)


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 20_000)), max_size=40))
def test_packs_hold_every_order_once_in_order_and_stay_small(sizes: Sequence[tuple[str, int]]) -> None:
    orders = [an_order(b"x" * size, number=number, subscriber_id=to) for number, (to, size) in enumerate(sizes)]
    packs = pack(orders)
    for group, text in packs:
        inside = decode_pack(text)
        assert {each.group for each in inside} == {group}
        assert len({each.addressee for each in inside}) == 1
        assert len(inside) <= PACK_ORDERS
        assert len(inside) == 1 or len(text.encode()) <= PACK_BYTES + 2
    for to in ("a", "b"):
        unpacked = [each for _, text in packs for each in decode_pack(text) if each.key.subscriber_id == to]
        assert unpacked == [each for each in orders if each.key.subscriber_id == to]


@pytest.mark.parametrize(("unicast", "subscriber_ids"), [(False, ("a", "b", "c")), (True, ("a", "b", "c"))])
@pytest.mark.parametrize("descendants", [0, 1, 2, 3, 7, 1_000])
def test_deliveries_share_what_may_come_of_a_message_and_orders_carry_the_share(
    unicast: bool, subscriber_ids: tuple[str, ...], descendants: int
) -> None:
    # Given a message with a limited number of descendants
    message = replace(a_message(), unicast=unicast, subscriber_ids=subscriber_ids, descendants=descendants)
    shares = [message.allowance(each) for each in message.delivery_subscribers]
    # Then its deliveries together may have as many, shared about evenly
    assert sum(shares) == descendants
    assert max(shares) - min(shares) <= 1
    # And an order carries its share, even when it is sent on
    for subscriber_id, share in zip(message.delivery_subscribers, shares, strict=True):
        order = WorkOrder.carrying(message, subscriber_id)
        for _ in range(3):
            order = WorkOrder.decode(order.encode())
            assert order.message is not None
            assert order.message.allowance(subscriber_id) == share


@pytest.mark.parametrize("previous", [{}, {"a": "1910848478410441217", "b": "1910848478410441218"}])
def test_an_order_carries_its_messages_place_among_those_of_a_key(previous: dict[str, str]) -> None:
    given_message = a_message(subscriber_ids=("a", "b"), ordering=Ordering(key="ü/1#2", sequence=7, previous=previous))
    read = WorkOrder.decode(WorkOrder.carrying(given_message, "a").encode())
    assert read.message is not None
    own = {"a": previous["a"]} if previous else {}
    assert read.message.ordering == Ordering(key="ü/1#2", sequence=7, previous=own)


def test_an_order_is_compact_json_with_every_character_as_it_is_but_those_that_sqs_refuses() -> None:
    order = WorkOrder(key=DeliveryKey("p", "u", "7", "*"), queue="orders", manual=True, version=3)
    known = '{"project":"p","queue":"orders","queue_uid":"u","message_id":"7","subscriber_id":"*"'
    assert order.encode() == known + ',"manual":true,"version":3}'
    assert WorkOrder.decode(order.encode()) == order
    assert replace(order, manual=False, version=None).encode() == known + "}"
    assert (
        '"body":"\u00e9\\ufffe\\uffffxxxxxxxxxxxxxxxxxxxx"'
        in an_order("\u00e9\ufffe\uffff".encode() + b"x" * 20).encode()
    )


@pytest.mark.parametrize(
    ("body", "as_text"), [(b'a"b', True), (b'a""', False), (b'ab""', True), (b"a" * 9, True), (b"\xff", False)]
)
def test_a_body_travels_as_text_unless_base64_is_shorter(body: bytes, as_text: bool) -> None:
    fields = json.loads(an_order(body).encode())
    assert ("body" in fields, "body_base64" in fields) == (as_text, not as_text)


def test_a_body_that_is_no_base64_is_no_order() -> None:
    fields = json.loads(an_order(b"\xff").encode())
    assert fields["body_base64"] == "/w=="
    with pytest.raises(ValueError):
        WorkOrder.decode(json.dumps({**fields, "body_base64": "/!w=="}))


def test_a_pack_holds_ten_orders_and_a_lone_one_is_not_packed() -> None:
    orders = [an_order(number=number) for number in range(2 * PACK_ORDERS + 1)]
    packs = [text for _, text in pack(orders)]
    assert [len(decode_pack(text)) for text in packs] == [PACK_ORDERS, PACK_ORDERS, 1]
    assert packs[2] == orders[-1].encode()


def test_second_orders_without_a_message_are_packed_by_the_hundred_and_apart_from_others() -> None:
    orders = [replace(an_order(number=number), message=None, second=True) for number in range(PACK_SECONDS + 1)]
    packs = [decode_pack(text) for _, text in pack([*orders, an_order(number=999)])]
    assert [len(each) for each in packs] == [PACK_SECONDS, 1, 1]
    assert [each for inside in packs[:2] for each in inside] == orders
    assert max(len(text.encode()) for _, text in pack(orders)) <= PACK_BYTES


def test_a_pack_is_filled_to_the_byte() -> None:
    def sized(number: int, size: int) -> WorkOrder:
        """An order whose text has this many bytes."""
        return next(
            each
            for length in range(size - 160, size - 100)
            if len((each := an_order(b"x" * length, number=number)).encode()) == size
        )

    # Given a large order, and two that fill a pack with the comma between them
    large, one = sized(1, PACK_BYTES - 1_000), sized(2, 30_000)
    full, over = sized(3, PACK_BYTES - 30_001), sized(4, PACK_BYTES - 30_000)
    assert [len(decode_pack(text)) for _, text in pack([one, full])] == [2]
    assert [len(decode_pack(text)) for _, text in pack([one, over])] == [1, 1]
    assert [len(decode_pack(text)) for _, text in pack([large, one, full])] == [1, 2]
    # And of three the third counts with both commas
    small = [sized(5, 20_000), sized(6, 20_000), sized(7, PACK_BYTES - 40_002), sized(8, PACK_BYTES - 40_001)]
    assert [len(decode_pack(text)) for _, text in pack(small[:3])] == [3]
    assert [len(decode_pack(text)) for _, text in pack([*small[:2], small[3]])] == [2, 1]


def test_a_project_is_a_few_groups_however_many_subscribers_it_has() -> None:
    orders = [
        WorkOrder(key=DeliveryKey(project, f"u{number % 50}", "1", f"s{number}"), queue="q")
        for project in ("p", "other")
        for number in range(1_000)
    ]
    shares = Counter(each.group for each in orders)
    assert {*shares} == {f"{project}.{part}" for project in ("p", "other") for part in range(GROUPS_OF_A_PROJECT)}
    # And each of them has about as many of its subscribers
    assert max(shares.values()) < 1.2 * 1_000 / GROUPS_OF_A_PROJECT
    # Orders for one subscriber are in one of them
    assert (
        len({replace(orders[0], key=orders[0].key._replace(message_id=str(number))).group for number in range(9)}) == 1
    )


@pytest.mark.parametrize("message_id", ["", "x", "-1", "1.5", "\u0661", "9" * 20])
def test_an_order_for_no_message_is_left_to_the_dead_letters_and_ends_no_run(message_id: str) -> None:
    fields = {"project": "p", "queue": "q", "queue_uid": "u", "message_id": message_id, "subscriber_id": "s"}
    with pytest.raises(ValueError):
        WorkOrder.decode(json.dumps(fields))
    # A wake-up is for no message
    assert WorkOrder.decode(json.dumps({**fields, "message_id": "", "call": True})).wakes
