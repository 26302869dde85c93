"""Which values of a body the catalogue has, and how batches become chunks."""

from __future__ import annotations

import json

import pytest

from pushhub.engine.model.catalogue import (
    COMMON,
    COMMON_FROM,
    DAY_MS,
    LEAST_VALUES,
    LEFT_OUT,
    MAX_VALUE,
    MOST_IN_CHUNK,
    Accepted,
    chunks_of,
    digest,
    names_of,
    place_of,
    read_names,
    values_of,
)

DAY = 20_800
ORDER = (
    b'{"order": {"number": 4711, "paid": true, "to": "Anna M\\u00fcller, anna@shop.example"}, "n": null, "l": [1.10]}'
)


def accepted(number: int, body: bytes | None = b"{}", *, project: str = "p", at: int = DAY * DAY_MS) -> Accepted:
    return Accepted(
        project=project,
        queue="orders",
        queue_uid="u1",
        message_id=f"{10**18 + number}",
        accepted_at=at + number,
        body=body,
    )


def test_texts_numbers_and_words_are_values_whatever_they_are_called() -> None:
    values, whole = values_of(ORDER)
    assert whole
    assert {"4711", "anna müller, anna@shop.example", "müller", "anna@shop.example", "1.10"} <= {*values}
    assert not {"true", "null", ""} & {*values}


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b"<order><number>4711</number></order>", "4711"),
        (b"order=4711&to=Anna", "4711"),
        (b'"4711"', "4711"),
        (b"4711", "4711"),
        (b"[" * 200 + b'"4711"' + b"]" * 200, "4711"),
    ],
)
def test_other_bodies_have_words(body: bytes, value: str) -> None:
    assert value in values_of(body)[0]
    assert place_of(value, body) is not None


def test_a_message_with_more_values_keeps_those_that_are_named_like_what_people_look_for() -> None:
    many = {f"v{each}": f"value-{each}" for each in range(LEAST_VALUES * 2)} | {"orderNumber": "4711"}
    values, whole = values_of(json.dumps(many).encode())
    assert (values[0], whole) == ("4711", False)


def test_a_value_is_as_long_as_may_be_looked_for() -> None:
    longest = "x" * MAX_VALUE
    assert values_of(json.dumps([longest, longest + "x"]).encode()) == ([longest], True)


@pytest.mark.parametrize("body", [b"", b"\xff", b"null", b"[" * 100_000, b"{" * 50 + b"}", b'{"a": NaN}'])
def test_hostile_bodies_do_no_harm(body: bytes) -> None:
    values, _ = values_of(body)
    assert len(values) <= 1_000
    assert place_of("4711", body) is None


def test_a_place_is_a_path_and_what_is_around_it() -> None:
    place = place_of("anna@shop.example", ORDER)
    assert place is not None
    assert place.field == "order.to"
    assert "anna@shop.example" in place.excerpt
    assert place_of("anna@shop", ORDER) is None
    shown = place_of("needle", b"x" * 500 + b" Needle " + b"y" * 500)
    assert shown is not None
    assert len(shown.excerpt) < 200
    assert "Needle" in shown.excerpt


def test_a_batch_is_chunks_by_project_and_day_and_the_same_each_time() -> None:
    batch = [accepted(2), accepted(1), accepted(3, project="q"), accepted(4, at=(DAY + 1) * DAY_MS)]
    chunks = [*chunks_of(batch, "t-1")]
    assert [(each.project, each.day, len(each.seen)) for each in chunks] == [
        ("p", DAY, 2),
        ("q", DAY, 1),
        ("p", DAY + 1, 1),
    ]
    assert [each.message_id for each in chunks[0].seen] == [f"{10**18 + 1}", f"{10**18 + 2}"]
    assert chunks == [*chunks_of(batch, "t-1")]
    assert list(read_names(names_of(chunks[0].seen))) == list(chunks[0].seen)
    assert len([*chunks_of(map(accepted, range(MOST_IN_CHUNK + 1)), "t-1")]) == 2


def test_a_value_that_many_have_costs_as_much_as_one_that_one_has() -> None:
    bodies = [json.dumps({"id": each, "currency": "EUR"}).encode() for each in range(COMMON_FROM + 4)]
    (chunk,) = chunks_of([accepted(each, body) for each, body in enumerate(bodies)], "t-1")
    assert [place for value, place in chunk.postings if value == digest("p", "eur")] == [COMMON]
    assert [place for value, place in chunk.postings if value == digest("p", "7")] == [7]


def test_a_body_that_is_elsewhere_is_marked_as_left_out() -> None:
    (chunk,) = chunks_of([accepted(1), accepted(2, None)], "t-1")
    assert chunk.postings == [(digest("p", LEFT_OUT), 1)]
