"""Every kind of answer: real shapes first, then hostile ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.base.json_text import Verbatim
from pushhub.base.verdict import Answer, Verdict
from pushhub.hub.model.mapping import ServiceMapping, ServiceOptions
from pushhub.hub.model.notice import Level, ReturnedNotice
from pushhub.hub.model.parameters import ReturnedParameter
from pushhub.hub.wire.answer import (
    ANSWER_LIMIT,
    MAX_CHILDREN,
    MAX_DELAY_S,
    Child,
    ServiceAnswer,
    read_answer,
)

ID = "53ab0c0f1a2b3c4d5e6f7a8b"


def mapping(*, lenient: bool = False) -> ServiceMapping:
    return ServiceMapping(
        mapping_id="5" * 24,
        name="acme.import",
        url="http://ep.example/import",
        token="t" * 32,
        messages=("a:b",),
        options=ServiceOptions(lenient=lenient),
    )


def read(
    body: Any, *, status: int = 200, polled: str | None = None, lenient: bool = False, error_class: str = ""
) -> ServiceAnswer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = Answer(
        status_code=status,
        message="Reason",
        error_class=error_class,
        body=raw,
        headers={"content-type": "application/json;charset=utf-8"},
        started_at=0,
        finished_at=1,
    )
    return read_answer(answer, object_id=ID, mapping=mapping(lenient=lenient), polled=polled)


def test_the_least_success() -> None:
    assert read({"message_id": ID}) == ServiceAnswer(verdict=Verdict.DELIVERED)


def test_a_synchronous_answer_with_everything() -> None:
    answer = read(
        {
            "message_id": ID,
            "messages": [
                {"message": "email:sent", "payload": {"to": "a@b.example"}},
                {"message": "shipment:confirm", "payload": {}, "delay": 120, "reference": 7, "message_id": "x"},
            ],
            "parameters": [{"name": "acme.last_updated_after", "value": "2013-08-16T01:30:00Z"}],
            "notifications": [
                {"level": "info", "subject": "Sent", "description": "An email", "reference_type": "order"},
                {"level": "warning", "subject": "Slow"},
            ],
            "events": [{"code": 400, "error": "text"}],
            "mandrill_response": {"status": "sent"},
            "code": 200,
        }
    )
    assert answer == ServiceAnswer(
        verdict=Verdict.DELIVERED,
        children=(
            Child(type="email:sent", payload=Verbatim('{"to": "a@b.example"}')),
            Child(type="shipment:confirm", payload=Verbatim("{}"), delay_s=120, extra={"reference": Verbatim("7")}),
        ),
        parameters=(ReturnedParameter(name="acme.last_updated_after", value="2013-08-16T01:30:00Z"),),
        notifications=(
            ReturnedNotice(level=Level.INFO, subject="Sent", description="An email", extra={"reference_type": "order"}),
            ReturnedNotice(level=Level.WARN, subject="Slow", description="Slow"),
        ),
        events=({"code": 400, "error": "text"},),
        result={"mandrill_response": {"status": "sent"}, "code": 200},
    )


def test_children_keep_their_values_as_the_answer_wrote_them() -> None:
    """Given an answer whose messages hold numbers that Python would write differently, and one with a name twice."""
    answer = (
        '{"message_id": "'
        + ID
        + '", "messages": [{"message": "a:b", "payload": {"total": 19.90, "n": 1e2}, "x": 1.0}]}'
    )
    [child] = read(answer.encode()).children
    # Then they are handed on as they were written
    assert (child.payload, child.extra) == (Verbatim('{"total": 19.90, "n": 1e2}'), {"x": Verbatim("1.0")})
    # But what other readers may take for something else is written anew
    [child] = read(answer.replace("1e2", '1, "n": 2').encode()).children
    assert child.payload == {"total": 19.9, "n": 2}


def test_null_lists_are_empty_lists() -> None:
    nulls = {"message_id": ID, "messages": None, "parameters": None, "notifications": None, "events": None}
    assert read(nulls) == ServiceAnswer(verdict=Verdict.DELIVERED)


def test_an_asynchronous_answer_absolute() -> None:
    answer = read({"message_id": ID, "delay": 6000, "update_url": "http://ep.example/poll"})
    assert (answer.verdict, answer.wait_s, answer.update_url) == (Verdict.POLL, 6000, "http://ep.example/poll")


def test_an_asynchronous_answer_relative_with_an_extra_key_as_quickbooks_sent_it() -> None:
    answer = read({"message_id": ID, "delay": 60, "update_url": "/status/acme/7", "owner": "acme"})
    assert (answer.verdict, answer.update_url) == (Verdict.POLL, "http://ep.example/status/acme/7")
    assert answer.result["owner"] == "acme"


def test_an_asynchronous_answer_asks_for_nothing_else() -> None:
    answer = read(
        {
            "message_id": ID,
            "delay": 5,
            "update_url": "/poll",
            "messages": [{"message": "a:b", "payload": {}}],
            "parameters": [{"name": "x", "value": 1}],
        }
    )
    assert (answer.verdict, answer.children, answer.parameters) == (Verdict.POLL, (), ())


def test_a_delay_alone_postpones_as_the_amazon_endpoint_does() -> None:
    answer = read({"message_id": ID, "delay": 120})
    assert (answer.verdict, answer.wait_s, answer.update_url) == (Verdict.POSTPONED, 120, None)


def test_a_delay_alone_in_the_answer_to_a_poll_asks_there_again_and_never_posts_again() -> None:
    answer = read({"message_id": ID, "delay": 120}, polled="http://ep.example/poll")
    assert (answer.verdict, answer.update_url) == (Verdict.POLL, "http://ep.example/poll")


@pytest.mark.parametrize(
    ("delay", "wait_s"), [("120", 120), (120.0, 120), (0.2, 1), (0, 1), (MAX_DELAY_S, MAX_DELAY_S)]
)
def test_delays_that_are_taken(delay: Any, wait_s: int) -> None:
    assert read({"message_id": ID, "delay": delay}).wait_s == wait_s


@pytest.mark.parametrize(
    "delay", [-1, "-5", "soon", "", True, [5], {"s": 5}, MAX_DELAY_S + 1, 10**300, "9" * 30, "１２"]
)
@pytest.mark.parametrize("update_url", [{}, {"update_url": "/poll"}])
def test_delays_that_are_not(delay: Any, update_url: dict[str, str]) -> None:
    answer = read({"message_id": ID, "delay": delay, **update_url})
    assert answer.verdict is Verdict.FAILED
    assert "delay" in answer.error


@pytest.mark.parametrize("update_url", [5, ["/poll"], "ftp://ep.example/", "http://u:p@ep.example/", "http://[::1"])
def test_addresses_that_are_not_taken(update_url: Any) -> None:
    answer = read({"message_id": ID, "delay": 5, "update_url": update_url})
    assert answer.verdict is Verdict.FAILED
    assert "update_url" in answer.error


def test_an_address_without_a_delay_is_a_failure() -> None:
    assert "delay" in read({"message_id": ID, "update_url": "/poll"}).error


@pytest.mark.parametrize("status", [100, 201, 202, 204, 206, 301, 302, 400, 401, 404, 500, 503])
def test_every_status_but_200_is_a_failure_whatever_the_body(status: int) -> None:
    answer = read({"message_id": ID, "messages": [{"message": "a:b", "payload": {}}]}, status=status)
    assert answer.verdict is Verdict.FAILED
    assert (answer.children, answer.parameters) == ((), ())
    assert f"HTTP {status}" in answer.error


def test_a_failure_with_notifications_keeps_them() -> None:
    answer = read(
        {
            "message_id": ID,
            "notifications": [
                {"level": "error", "subject": "Quota", "description": "QuotaExceeded", "backtrace": "a\nb"}
            ],
        },
        status=500,
    )
    assert answer.error == "HTTP 500: Quota"
    assert answer.notifications == (
        ReturnedNotice(level=Level.ERROR, subject="Quota", description="QuotaExceeded", extra={"backtrace": "a\nb"}),
    )


def test_a_failure_with_error_and_trace_and_no_id_as_zendesk_sent_it() -> None:
    answer = read({"error": "Invalid credentials", "trace": "x"}, status=500)
    assert answer.error == "HTTP 500: Invalid credentials"
    assert answer.result == {"error": "Invalid credentials", "trace": "x"}


@pytest.mark.parametrize("body", [b"", b"<h1>Internal Server Error</h1>", b"\xff\xfe", b'"text"', b"[" * 5000])
@pytest.mark.parametrize("status", [401, 404, 500])
def test_failures_without_json_are_failures_like_any_other(body: bytes, status: int) -> None:
    assert read(body, status=status).error == f"HTTP {status} Reason"


def test_no_answer_at_all() -> None:
    answer = read(b"", status=0, error_class="timeout")
    assert (answer.verdict, answer.error) == (Verdict.FAILED, "No usable answer: Reason")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html><body>OK</body></html>", "not valid JSON"),
        (b"", "not valid JSON"),
        (b"[]", "not an object"),
        (b'"ok"', "not an object"),
        (b"null", "not an object"),
        (b"\xff", "not UTF-8"),
        (b'{"message_id":"\\ud800"}', "half a surrogate pair"),
        (b'{"message_id":NaN}', "not valid JSON"),
        (b'{"x":1e999}', "not valid JSON"),
        (b'{"x":' + b"1" * 5000 + b"}", "not valid JSON"),
        (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested deeper"),
        (b'{"x":' + b'{"a":' * 100_000, "nested deeper"),
        (b"[" * 100_000, "nested deeper"),
    ],
)
def test_a_200_that_is_no_json_object_is_a_failure(body: bytes, reason: str) -> None:
    answer = read(body)
    assert answer.verdict is Verdict.FAILED
    assert answer.error.startswith("Invalid response: ")
    assert reason in answer.error


def test_brackets_in_strings_are_no_nesting() -> None:
    assert read({"message_id": ID, "text": '[{"' * 500}).verdict is Verdict.DELIVERED


def test_a_body_over_the_limit_is_a_failure_without_being_read() -> None:
    answer = read(b" " * ANSWER_LIMIT + b"{")
    assert "larger than" in answer.error


@pytest.mark.parametrize("answered", [{}, {"message_id": None}, {"message_id": "other"}, {"message_id": ID.upper()}])
def test_a_missing_or_wrong_message_id_is_a_failure_unless_the_mapping_is_lenient(answered: dict[str, Any]) -> None:
    strict = read({**answered, "parameters": [{"name": "x", "value": 1}]})
    assert strict.verdict is Verdict.FAILED
    assert "message_id" in strict.error
    assert strict.parameters == ()
    assert read(answered, lenient=True).verdict is Verdict.DELIVERED


GOOD = {"message": "a:b", "payload": {}}


@pytest.mark.parametrize(
    "messages",
    [
        "a:b",
        {"message": "a:b", "payload": {}},
        [GOOD, "a:b"],
        [GOOD, None],
        [GOOD, {}],
        [GOOD, {"message": "a:b"}],
        [GOOD, {"message": "a:b", "payload": None}],
        [GOOD, {"message": "a:b", "payload": []}],
        [GOOD, {"message": "", "payload": {}}],
        [GOOD, {"message": "a b", "payload": {}}],
        [GOOD, {"message": 5, "payload": {}}],
        [GOOD, {**GOOD, "delay": -1}],
        [GOOD, {**GOOD, "delay": "x"}],
    ],
)
def test_messages_that_are_no_messages_fail_the_answer_as_a_whole(messages: Any) -> None:
    answer = read({"message_id": ID, "messages": messages, "parameters": [{"name": "x", "value": 1}]})
    assert answer.verdict is Verdict.FAILED
    assert "messages" in answer.error
    assert (answer.children, answer.parameters) == ((), ())


def test_the_limit_of_children_is_exact() -> None:
    assert len(read({"message_id": ID, "messages": [GOOD] * MAX_CHILDREN}).children) == MAX_CHILDREN
    over = read({"message_id": ID, "messages": [GOOD] * 10_000})
    assert over.verdict is Verdict.FAILED
    assert over.children == ()
    assert "10000 elements, more than the 1000 allowed" in over.error


@pytest.mark.parametrize(
    "parameters",
    [{"acme.key": 1}, ["x"], [{"value": 1}], [{"name": "", "value": 1}], [{"name": 5, "value": 1}], [{"name": "x"}]],
)
def test_parameters_that_are_none_fail_the_answer(parameters: Any) -> None:
    answer = read({"message_id": ID, "parameters": parameters})
    assert answer.verdict is Verdict.FAILED
    assert "parameters" in answer.error


def test_what_is_kept_of_an_answer_is_bounded() -> None:
    long = {"name": "x", "value": "y" * 40_000}
    assert "value longer than" in read({"message_id": ID, "parameters": [long]}).error
    [note] = read(
        {"message_id": ID, "notifications": [{"subject": "s", "description": "d" * 500_000, "trace": ["t"] * 50_000}]}
    ).notifications
    assert (len(note.description), note.extra) == (8000, {})


def test_parameter_values_may_be_anything() -> None:
    answer = read({"message_id": ID, "parameters": [{"name": "a", "value": None}, {"name": "b", "value": [{"c": 1}]}]})
    assert [each.value for each in answer.parameters] == [None, [{"c": 1}]]


@pytest.mark.parametrize(
    "notifications", ["x", {"level": "info"}, [None, 5, {}, {"level": "info"}, {"subject": "", "description": " "}]]
)
def test_notifications_that_are_none_are_passed_over(notifications: Any) -> None:
    answer = read({"message_id": ID, "notifications": notifications})
    assert (answer.verdict, answer.notifications) == (Verdict.DELIVERED, ())


def test_odd_levels_and_one_sided_texts_of_notifications() -> None:
    answer = read(
        {
            "message_id": ID,
            "notifications": [
                {"level": "FATAL", "subject": "a"},
                {"level": "Error", "description": "only this"},
                {"subject": "s" * 900},
            ],
        }
    )
    assert [(each.level, each.subject[:10], each.description[:10]) for each in answer.notifications] == [
        (Level.INFO, "a", "a"),
        (Level.ERROR, "only this", "only this"),
        (Level.INFO, "s" * 10, "s" * 10),
    ]
    assert len(answer.notifications[2].subject) == 500


def test_events_that_are_one_object_are_logged_all_the_same() -> None:
    assert read({"message_id": ID, "events": {"code": 1}}).events == ({"code": 1},)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
KEYS = st.sampled_from(["messages", "parameters", "notifications", "events", "delay", "update_url", "message_id", "x"])


@given(fields=st.dictionaries(KEYS, JSON, max_size=8), status=st.sampled_from([200, 200, 500, 404]), ours=st.booleans())
def test_any_json_is_read_without_an_exception(fields: dict[str, Any], status: int, ours: bool) -> None:
    answer = read({**fields, "message_id": ID} if ours else fields, status=status)
    assert (answer.error == "") is (answer.verdict is not Verdict.FAILED)
    if answer.verdict is not Verdict.DELIVERED:
        assert (answer.children, answer.parameters) == ((), ())
    if answer.verdict in (Verdict.POLL, Verdict.POSTPONED):
        assert 1 <= answer.wait_s <= MAX_DELAY_S


@given(body=st.binary(max_size=200), status=st.sampled_from([200, 500]))
def test_any_bytes_are_read_without_an_exception(body: bytes, status: int) -> None:
    assert read(body, status=status, lenient=True).verdict in set(Verdict)
