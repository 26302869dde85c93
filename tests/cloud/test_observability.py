"""Metrics are counted under the name of their stack."""

from __future__ import annotations

import json

import pytest

from pushhub.cloud.observability import PowertoolsTelemetry


def test_metrics_are_written_into_the_namespace_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given a function of one of two stacks in an account
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Pushhub/blue")
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "push")
    telemetry = PowertoolsTelemetry()
    # When it counts
    telemetry.count("AttemptsFailed", 2)
    telemetry.flush()
    # Then its alarms find it, and no other stack's; no dimension more than before makes it a metric more
    line = json.loads(capsys.readouterr().out)
    [directive] = line["_aws"]["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Dimensions"]) == ("Pushhub/blue", [["service"]])
    assert (line["service"], line["AttemptsFailed"]) == ("push", [2.0])
