"""What the function that runs code answers is a stranger's word, whatever its code has spoiled."""

from __future__ import annotations

from contextlib import suppress

import pytest
from tests.web.shapes import HUGE, ODD

from pushhub.webhooks.model.transformation import CodeFailed, WebhookChanges
from pushhub.webhooks.wire.transformation import ANSWERS, SINK_ANSWERS, read_changes

MEMBERS = ("cancel", "method", "url", "payload", "headers", "parts", "key", "format")
ODDER = (*(each for each in ODD if each is not HUGE), [["x-a", 1]], [["x-a", "b"], ["X-A", "c"]], ["http://a"])


@pytest.mark.parametrize("answers", sorted({"webhook", *ANSWERS.values(), *SINK_ANSWERS.values()}))
@pytest.mark.parametrize("member", MEMBERS)
def test_no_value_of_an_answer_is_a_fault_of_the_hub(answers: str, member: str) -> None:
    # Given an answer that would do, and one of its members of every kind
    for value in ODDER:
        for payload in ({"json": "{}"}, {"text": "x"}, value):
            good = {"payload": payload, "parts": ["{}"], "format": "jsonl", "headers": []}
            # When it is read, then it will do, or the code has failed
            with suppress(CodeFailed):
                assert isinstance(read_changes({"result": {**good, member: value}}, answers), WebhookChanges)


@pytest.mark.parametrize("value", ODDER)
def test_no_other_answer_is_one(value: object) -> None:
    # Given an answer that is an error, or whose result is no object; when it is read, then the code has failed
    results = () if isinstance(value, dict) else ({"result": value},)
    for found in (*results, {"error": value, "message": value}, {"message": value}):
        with pytest.raises(CodeFailed):
            read_changes(found, "webhook")
