"""Each bound in the documents' tables of limits is asked for by a talk, and read from there."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping

import pytest
from simulation.promises import documents
from simulation.promises.talks import bounds, edges, ironmq, notifications

ELSEWHERE = "shown elsewhere: "

LIMITS: Mapping[tuple[str, str], Mapping[str, object]] = {
    ("ironmq", "Limits"): {
        "request": bounds._request,
        "messages in one post, reservation, peek or deletion": ironmq.batches,
        "`delay`": ironmq.life,
        "`timeout` of a reservation": ironmq.reservations,
        "`wait`": bounds._asked,
        "answer of a reservation": bounds._answer,
        "push headers of a message": ironmq.batches,
        "queue name": ironmq.settings,
    },
    ("ironmq", "A queue"): {
        "`message_timeout`": ironmq.settings,
        "`message_expiration`": ironmq.settings,
        "`push.subscribers`": bounds._subscribers,
        "`push.retries`": ironmq.push_settings,
        "`push.retries_delay`": ironmq.push_settings,
        "`search_fields`": bounds._searched,
        "`dead_letter.max_reservations`": ironmq.settings,
        "`alerts`": ironmq.alerts,
    },
    ("hub-protocol", "Limits"): {
        "pushed body; answer": bounds._pushed,
        "children; parameters; notifications of an answer": bounds._refused_answers,
        "delay": bounds._answers,
        "message type": edges._mapping,
        "`endpoint.json`": bounds._described,
        "filters; identifiers of a mapping": edges._mapping,
        "all patterns of a mapping together": bounds._patterns,
        "all filters and identifiers of a mapping on one message": ELSEWHERE + "tests/hub, in steps that are counted",
    },
    ("notifications", "Limits"): {
        "a frame": bounds._frames,
        "a publish request": bounds._frames,
        "a topic's backlog": bounds._frames,
        "age": ELSEWHERE + "simulation/deployed.py has the setting; tests/notifications has the age",
        "consumers of a shared subscriber": bounds._consumers,
        "a shared consumer that acknowledges nothing": ELSEWHERE + "tests/notifications: 15,000 take minutes here",
        "one subscriber": ELSEWHERE + "a speed, see figures/notifications.md",
        "a sender that dies": ELSEWHERE + "promises/notifications.py, in each storm",
        "names": notifications.subscriptions,
    },
}
"""By document and heading, what asks for each row that has a number, or where else that is shown."""

NO_NUMBERS = {"field", "`type`", "`push.error_queue`", "`push.eager`", "`webhook`", "`dead_letter.queue_name`"}


@pytest.mark.parametrize(("document", "heading"), LIMITS, ids=[" ".join(each) for each in LIMITS])
def test_each_row_of_a_table_of_limits_is_asked_for(document: str, heading: str) -> None:
    # Given the rows of a document's limits, a new one is asked for, too
    asked = LIMITS[document, heading]
    rows = {each for each in documents.rows(document, heading) if not set(each) <= {"-"}} - NO_NUMBERS
    links = {each for each in rows if "://" in each or each.startswith("a subscriber's")}
    assert rows - links == {*asked}
    for by in asked.values():
        assert callable(by) or str(by).startswith(ELSEWHERE)


def test_numbers_are_read_as_they_are_written() -> None:
    assert documents.numbers("ironmq", "`message_timeout`", "A queue") == [60, 1, 86_400]
    assert documents.numbers("ironmq", "request", "Limits")[0] == 4 * 1_024 * 1_024
    assert documents.numbers("ironmq", "answer of a reservation")[0] == 6_200_000
    assert documents.said("hub-protocol", r"after (\d+) generations") == 50
    with pytest.raises(KeyError):
        documents.numbers("ironmq", "no such row")
    with pytest.raises(LookupError):
        documents.said("ironmq", r"up to (\d+) elephants")


def test_each_sentence_that_a_talk_reads_is_in_its_document() -> None:
    tree = ast.parse(inspect.getsource(bounds))
    read = [
        [ast.literal_eval(argument) for argument in each.args]
        for each in ast.walk(tree)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "said"
    ]
    assert len(read) > 10
    for document, words in read:
        assert documents.said(document, words) > 0


def test_a_request_is_filled_to_its_size() -> None:
    assert len(bounds.filled({"a": "", "b": [1]}, 1_000)) == 1_000
    assert len(bounds._many(500_000)) == 500_000
