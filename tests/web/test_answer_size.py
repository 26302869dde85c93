"""How much fits into an answer: what a budget has taken can be sent, to its last byte."""

from __future__ import annotations

import bisect
import copy
import json

import pytest

from pushhub.web.answer_size import ANSWER_BYTES, ResponseBudget
from pushhub.web.http import Response, event_from_response


# As text a character takes one byte or four, as base64 four for three or twice that: each form is the smaller one once.
@pytest.mark.parametrize(("fill", "nearly_all"), [("x", 6_180_000), ('"', 2_310_000)])
@pytest.mark.parametrize("count", [1, 100])
def test_an_answer_that_is_filled_to_its_last_byte_can_be_sent(fill: str, nearly_all: int, count: int) -> None:
    # Given parts that a budget takes, and as large a last one as it still takes
    room = ResponseBudget()
    each = nearly_all // count
    parts = [{"body": fill * each} for _ in range(count - 1)]
    assert all(room.takes(json.dumps(part)) for part in parts)

    def is_too_large(more: int) -> bool:
        return not copy.copy(room).takes(json.dumps({"body": fill * (each + more)}))

    most = bisect.bisect_left(range(1_000, 40_000), True, key=is_too_large) + 999
    assert 1_000 <= most < 39_000
    # Then the answer with all of them can be sent
    answer = Response(status=200, body={"messages": [*parts, {"body": fill * (each + most)}]})
    assert len(event_from_response(answer)["body"]) <= ANSWER_BYTES
