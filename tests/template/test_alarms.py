"""Everything that can go wrong has an alarm, and each alarm tells a person what to do."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from typing import Any

import pytest
from tests.template.cloudformation import ROOT, Resource, conditions, of_type, own_mappings, references, resources

from pushhub.cloud.observability import TOGETHER
from pushhub.engine.flow.queue_levels import LOOK_MS
from pushhub.engine.model.delivery import DeliveryState

ALARMS = of_type("AWS::CloudWatch::Alarm")
FUNCTIONS = of_type("AWS::Lambda::Function")
RUNBOOK = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^### (\w+)$", RUNBOOK, flags=re.MULTILINE)


def watching(namespace: str, metric: str) -> set[str]:
    """Logical ids that alarms on a metric watch."""
    found: set[str] = set()
    for alarm in ALARMS.values():
        if (alarm["Namespace"], alarm["MetricName"]) == (namespace, metric):
            found |= references(alarm.get("Dimensions", []))
    return found


@cache
def emitted() -> set[str]:
    """Names of metrics in the code: constants, and one for each final state of a delivery."""
    found: set[str] = set()
    for path in (ROOT / "layers" / "pushhub" / "pushhub").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value for part in node.values if isinstance(part, ast.Constant)]
                if parts == ["Deliveries"]:
                    found |= {f"Deliveries{state.value.capitalize()}" for state in DeliveryState}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


@pytest.mark.parametrize("name", ALARMS)
def test_an_alarm_is_sent_says_what_it_means_and_has_its_section_in_the_runbook(name: str) -> None:
    alarm = ALARMS[name]
    assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": "AlarmTopic"}]
    text, values = alarm["AlarmDescription"]["Fn::Sub"]
    assert len(text.replace("${Means}", values.get("Means", "")).partition(" Runbook: ")[0]) > 20
    assert HEADINGS.count(name) == 1


@pytest.mark.parametrize("name", HEADINGS)
def test_each_section_of_the_runbook_is_about_an_alarm_and_says_what_to_do(name: str) -> None:
    assert name in ALARMS
    section = RUNBOOK.split(f"### {name}\n")[1].split("\n#")[0]
    assert "**Means**" in section
    assert "**Do**" in section


def test_each_dead_letter_queue_is_watched_and_has_its_redrive_in_the_runbook() -> None:
    dead = {name for name, queue in of_type("AWS::SQS::Queue").items() if "RedrivePolicy" not in queue}
    # wake looks at them, and an alarm at what it finds (and at runs of wake that fail, and at those that do not begin)
    assert references(variables(FUNCTIONS["WakeFunction"])["SET_ASIDE_QUEUES"]) == dead
    assert ALARMS["WorkStuck"]["Period"] > LOOK_MS / 1000
    redrive = RUNBOOK.split("\n## Redrive\n")[1]
    for name in dead:
        assert f"`{name}`" in redrive


def test_each_function_is_watched_for_errors() -> None:
    filters = of_type("AWS::Logs::MetricFilter").values()
    # The end of each run that fails is in the function's log (level WARN), where a filter of its own counts it
    logs = {each["LoggingConfig"]["LogGroup"]["Ref"] for each in FUNCTIONS.values()}
    assert {each["LogGroupName"]["Ref"] for each in filters} == logs
    assert all(each["LoggingConfig"]["LogFormat"] == "JSON" for each in FUNCTIONS.values())
    assert all(each["LoggingConfig"]["SystemLogLevel"] in {"WARN", "INFO"} for each in FUNCTIONS.values())
    groups = of_type("AWS::Logs::LogGroup")
    assert all(groups[each].get("LogGroupClass", "STANDARD") == "STANDARD" for each in logs)  # no other has filters
    # Into the one metric that the alarm watches; no data, no price, unless runs fail
    alarm = ALARMS["FunctionErrors"]
    assert "Dimensions" not in alarm
    for each in filters:
        (to,) = each["MetricTransformations"]
        assert (to["MetricNamespace"], to["MetricName"]) == (alarm["Namespace"], alarm["MetricName"])
        assert "DefaultValue" not in to


def test_throttles_are_noticed_whichever_function_they_are_of() -> None:
    (alarm,) = (each for name, each in ALARMS.items() if name == "FunctionThrottles")
    assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/Lambda", "Throttles")
    assert "Dimensions" not in alarm
    # Behind the gateway, what ingest refuses is answered with 503, which ApiServerErrors counts. At its own URL it is
    # answered with 429, which nothing else counts: there it has an alarm
    assert references(ALARMS["IngestFunctionThrottles"]["Dimensions"]) == {"IngestFunction"}
    assert conditions(ProducersUrl="true")["HasProducersUrl"]
    assert not conditions()["HasProducersUrl"]
    assert resources()["IngestFunctionThrottles"]["Condition"] == "HasProducersUrl"


@pytest.mark.parametrize("together", TOGETHER)
def test_each_metric_that_is_counted_together_is_counted_by_the_code(together: str) -> None:
    code = "".join(each.read_text(encoding="utf-8") for each in (ROOT / "layers" / "pushhub").rglob("*.py"))
    assert all(f'count("{each}"' in code for each in TOGETHER[together])
    section = RUNBOOK.split(f"### {together}\n")[1].split("\n#")[0]
    assert all(f"`{each}`" in section for each in TOGETHER[together])
    # One alarm watches their sum, and none watches one of them
    own = {each["MetricName"] for each in ALARMS.values()}
    assert together in own
    assert ALARMS[together]["Dimensions"] == [{"Name": "service", "Value": "hub"}]
    assert not TOGETHER[together] & own


def test_each_reader_of_a_stream_tells_when_it_is_behind() -> None:
    # There is no alarm of their own for how old what they read is (docs/decisions/cost.md)
    mappings = own_mappings().values()
    readers = {each["FunctionName"]["Ref"] for each in mappings if "StreamArn" in each["EventSourceArn"]["Fn::GetAtt"]}
    assert readers == {"DispatchFunction", "RecordsFunction"}
    assert {"DispatchBehind", "RecordsBehind"} <= TOGETHER["WorkLate"]


def test_a_run_of_the_report_that_failed_is_counted_by_sweep() -> None:
    (rule,) = (
        each
        for each in of_type("AWS::Events::Rule").values()
        if "FAILED" in each["EventPattern"]["detail"].get("state", ())
    )
    assert [each["Arn"] for each in rule["Targets"]] == [{"Fn::GetAtt": ["SweepFunction", "Arn"]}]
    (permission,) = (
        each
        for each in of_type("AWS::Lambda::Permission").values()
        if each["FunctionName"] == {"Ref": "SweepFunction"} and each["Principal"] == "events.amazonaws.com"
    )
    assert permission["SourceArn"] == {"Fn::GetAtt": ["ReportRunsFailed", "Arn"]}
    assert "ReportFailed" in TOGETHER["HubFaults"]


def test_waiting_work_is_watched() -> None:
    wake = variables(FUNCTIONS["WakeFunction"])
    crowded, brisk = references(wake["CROWDED_QUEUES"]), references(wake["BRISK_QUEUES"])
    assert crowded == {"RetryQueue", "SlowQueue", "PollQueue"}
    # Each queue that a function is run for: that nobody reads it is seen by wake, how late it is read by its reader
    mappings = own_mappings().values()
    read = {each["EventSourceArn"]["Fn::GetAtt"][0] for each in mappings if "ScalingConfig" in each}
    assert crowded | brisk == read
    assert not crowded & brisk
    assert ALARMS["WorkLate"]["Period"] > LOOK_MS / 1000
    assert watching("AWS/ApiGateway", "5xx") == {"HttpApi"}
    assert watching("AWS/ApiGateway", "ExecutionError") == {"WebSocketApi"}
    assert watching("AWS/Lambda", "Url5xxCount") == {"IngestFunction"}


def test_a_schedule_that_stops_is_noticed() -> None:
    alarm = ALARMS["WakeMissing"]
    assert alarm["TreatMissingData"] == "breaching"
    assert watching("AWS/Lambda", "Invocations") == {"WakeFunction"}


def test_the_hubs_own_metrics_exist_and_have_the_one_dimension_powertools_gives_them() -> None:
    # The functions' namespace, which is the stack's own: another stack's deliveries set no alarm off here
    (namespace,) = {json.dumps(variables(each)["POWERTOOLS_METRICS_NAMESPACE"]) for each in FUNCTIONS.values()}
    assert json.loads(namespace) == {"Fn::Sub": "Pushhub/${AWS::StackName}"}
    own = {name: alarm for name, alarm in ALARMS.items() if alarm["Namespace"] == json.loads(namespace)}
    assert {each["Namespace"] for name, each in ALARMS.items() if name not in own} == {
        *("AWS/ApiGateway", "AWS/Lambda", "AWS/Events"),
    }
    assert {alarm["MetricName"] for alarm in own.values()} >= {
        "AttemptsFailed",
        "DeliveriesExhausted",
        "DeliveriesScheduled",
        "HubFaults",
    }
    for alarm in own.values():
        if alarm["MetricName"] == "RunsFailed":
            continue  # of a filter
        assert alarm["MetricName"] in emitted()
        (dimension,) = alarm["Dimensions"]
        assert dimension["Name"] == "service"
        assert dimension["Value"] in services()


def test_no_metric_is_alarmed_about_twice() -> None:
    # An alarm is billed by metric, and so is a metric by its dimensions: push and poll count together
    own = [each for each in ALARMS.values() if isinstance(each["Namespace"], dict)]
    assert len({each["MetricName"] for each in own}) == len(own)
    named = {name: variables(each).get("METRICS_SERVICE") for name, each in FUNCTIONS.items()}
    assert {name: service for name, service in named.items() if service} == {"PollFunction": "push"}


def services() -> set[str]:
    """What the functions' metrics are found by."""
    of_functions = map(variables, FUNCTIONS.values())
    return {"hub", *(each.get("METRICS_SERVICE", each["POWERTOOLS_SERVICE_NAME"]) for each in of_functions)}


def variables(function: Resource) -> dict[str, Any]:
    found: dict[str, Any] = function["Environment"]["Variables"]
    return found
