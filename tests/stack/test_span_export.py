"""Spans of attempts, exported by the running hub, between those of a producer and a receiver of OpenTelemetry's."""

from __future__ import annotations

import pytest
from tests.stack.judges import judged
from tests.stack.project import ProjectClient, unique
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack


def test_three_tries_are_one_trace_with_the_hubs_spans_between_producer_and_receiver(stack: RunningStack) -> None:
    # Given a project of its own whose collector fails at first, and a receiver that takes the third try
    project = ProjectClient.another(stack)
    given = {"hub": project.url(), "token": project.token, "queue": unique("judged")}
    # When OpenTelemetry posts a message within a span
    spans = judged("telemetry.py", given, seconds=240)
    # Then there is one trace: producer, message_attempt, http_attempt, receiver, for each try
    assert len({trace for _, trace, *_ in spans}) == 1, spans
    assert len({span for _, _, span, *_ in spans}) == len(spans)
    by_id = {span: (who, parent, name, status) for who, _, span, parent, name, status in spans}
    received = [span for span, (_, _, name, _) in by_id.items() if name == "receive"]
    assert len(received) == 3
    statuses = []
    for span in received:
        path, at = [], span
        while at:
            who, at, name, status = by_id[at]
            path.append((who, name))
            statuses.append(status)
        assert path == [
            ("judge", "receive"),
            ("pushhub", "http_attempt"),
            ("pushhub", "message_attempt"),
            ("judge", "produce"),
        ]
    assert sorted(statuses) == [0] * 6 + [1] * 2 + [2] * 4
    # And the owner sees what was exported, and that nothing was dropped
    shown = project.take("GET", "/traces")["traces"]
    assert shown["headers"] == {"x-key": "********"}
    assert shown["dropped"] == 0
