"""Eager queues in the model of AWS: deliveries are soon, and made once."""

from __future__ import annotations

from bench.eager_model import run


def test_two_hundred_messages_a_second_are_there_within_80_and_125_ms_and_once() -> None:
    # When so many are posted to an eager queue
    result = run(eager=True, rate=200, seconds=4, warm_s=2)
    # Then they arrive soon after the answers, and none twice although the stream's orders came as well
    p50, p95 = (result.latencies[int(share * len(result.latencies))] for share in (0.5, 0.95))
    assert (result.lost, result.twice) == (0, 0)
    assert p50 <= 80
    assert p95 <= 125
