"""Metrics carry the name of their stack; an event is one line of JSON."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

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
    # Then its own alarms find it, and no other stack's; there is no further dimension, which would make it another
    # metric
    line = json.loads(capsys.readouterr().out)
    [directive] = line["_aws"]["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Dimensions"]) == ("Pushhub/blue", [["service"]])
    assert (line["service"], line["AttemptsFailed"]) == ("push", [2.0])


def test_functions_that_count_together_have_one_name_for_their_metrics(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given poll, whose metrics are push's
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "poll")
    monkeypatch.setenv("METRICS_SERVICE", "push")
    telemetry = PowertoolsTelemetry()
    # When it counts, then its metric is the one that push's alarm watches
    telemetry.count("DeliveriesHeld")
    telemetry.flush()
    line = json.loads(capsys.readouterr().out)
    assert (line["service"], line["DeliveriesHeld"]) == ("push", [1.0])


def test_faults_of_all_functions_are_counted_together(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Pushhub/blue")
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "dispatch")
    telemetry = PowertoolsTelemetry()
    # Given a run in which two kinds of faults were found, and something that is none
    telemetry.count("StreamRecordsPoisoned", 2)
    telemetry.count("PushFaults")
    telemetry.count("AttemptsFailed", 7)
    telemetry.flush()
    # Then each has its metric, and the faults the one that an alarm watches
    own, together = (json.loads(each) for each in capsys.readouterr().out.splitlines())
    assert (own["service"], own["StreamRecordsPoisoned"], own["AttemptsFailed"]) == ("dispatch", [2.0], [7.0])
    [directive] = together["_aws"]["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Dimensions"]) == ("Pushhub/blue", [["service"]])
    assert (together["service"], together["HubFaults"]) == ("hub", [3.0])
    # And a run without a fault counts none
    telemetry.count("AttemptsFailed")
    telemetry.flush()
    assert "HubFaults" not in capsys.readouterr().out


def test_late_work_and_failing_calls_are_counted_together_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "notify")
    telemetry = PowertoolsTelemetry()
    # Given a run that was late, and two calls of which failed
    telemetry.count("WakesLate")
    telemetry.count("LooksFailed", 2)
    telemetry.flush()
    # Then there is a metric of all functions for each of the two alarms, in one line
    own, together = (json.loads(each) for each in capsys.readouterr().out.splitlines())
    assert (own["service"], own["WakesLate"], own["LooksFailed"]) == ("notify", [1.0], [2.0])
    assert (together["service"], together["WorkLate"], together["CallsFailing"]) == ("hub", [1.0], [2.0])
    assert "HubFaults" not in together


def logged(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_an_event_is_a_line_with_what_is_known_and_the_id_of_its_run(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry = PowertoolsTelemetry()
    # Given a run
    telemetry.start("run-1")
    # When something is told, of which some is unknown
    telemetry.event("quota_exceeded", project="p", per_second=0, reason="", manual=False, wait_ms=None, queue="żółć\n")
    # Then what is known is there (a number is, even zero), in one line
    assert logged(capsys) == [
        {"message": "quota_exceeded", "project": "p", "per_second": 0, "queue": "żółć\n", "request_id": "run-1"}
    ]


def test_an_attempt_is_told_without_its_run(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry = PowertoolsTelemetry()
    telemetry.start("run-1")
    telemetry.event("attempt", state="delivered", attempt=1)
    assert logged(capsys) == [{"message": "attempt", "state": "delivered", "attempt": 1}]


def test_what_is_no_json_is_told_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    PowertoolsTelemetry().event("failed", error=ValueError("why"))
    assert logged(capsys) == [{"message": "failed", "error": "why"}]


def test_lines_of_threads_are_not_mixed(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry = PowertoolsTelemetry()
    with ThreadPoolExecutor(8) as executor:
        list(executor.map(lambda number: telemetry.event("attempt", number=number, text="x" * 200), range(400)))
    assert sorted(int(str(each["number"])) for each in logged(capsys)) == list(range(400))
