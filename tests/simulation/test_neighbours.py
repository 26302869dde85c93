"""Dozens of hanging endpoints in one project: other projects' messages are delivered as if they did not exist, on
queues that are not fair.
"""

from __future__ import annotations

import pytest
from bench.neighbours_model import run

MOST_MS = 2_500
"""The longest that a victim's message may take, of virtual time: the stream is read, a run has half a second to find
out who is slow, and looks into its queue each second. It was 102 s for fifty of them before they had a lane of their
own.
"""


@pytest.mark.parametrize("endpoints", [1, 50])
def test_a_neighbour_whose_endpoints_hang_takes_nobodys_runs(endpoints: int) -> None:
    # Given four concurrent runs, and a thousand messages for endpoints that accept every request and answer none
    result = run(endpoints, hangs=True, messages=1_000, seconds=30, runs=4)
    # Then another project's messages are all delivered, without delay
    assert result.lost == 0
    assert len(result.latencies) == 100
    assert max(result.latencies) < MOST_MS
    # And the hanging ones were tried, each now and then
    assert endpoints <= result.tries < 500
