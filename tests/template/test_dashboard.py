"""The dashboard shows what there is: each alarm, function, queue and table, by metrics and log fields that exist."""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from typing import Any

import pytest
from tests.template.cloudformation import Resource, conditions, of_type, parameter, resources
from tests.template.test_alarms import ALARMS, FUNCTIONS, emitted

from pushhub.engine.attempts.delivery_news import DeliveryNews
from pushhub.engine.model.work import WorkOrder

ROW = 24
NAMED_BY = {
    "FunctionName": "AWS::Lambda::Function",
    "QueueName": "AWS::SQS::Queue",
    "TableName": "AWS::DynamoDB::Table",
    "ApiId": "AWS::ApiGatewayV2::Api",
}
GROUPS = {each["LogGroupName"]["Fn::Sub"]: name for name, each in of_type("AWS::Logs::LogGroup").items()}


def body(*, producers_url: bool = True, gradual: bool = True) -> Resource:
    """The dashboard's body, with ``${...}`` left in it as names."""
    (dashboard,) = of_type("AWS::CloudWatch::Dashboard").values()
    text, also = dashboard["DashboardBody"]["Fn::Sub"]
    for name, there in (("OfProducersUrl", producers_url), ("OfReleases", gradual)):
        _, then, otherwise = also[name]["Fn::If"]
        text = text.replace(f"${{{name}}}", then["Fn::Sub"] if there else otherwise)
    for name in ("Intro", "SubscribersInTrouble"):
        text = text.replace(f"${{{name}}}", also[name]["Fn::Sub"])
    created: Resource = json.loads(text)
    return created


def widgets(kind: str) -> list[Resource]:
    """Those of one type."""
    return [each for each in body()["widgets"] if each["type"] == kind]


def metrics() -> list[tuple[str, str, dict[str, str]]]:
    """Namespace, name and dimensions of each line on a graph."""
    found = []
    for widget in widgets("metric"):
        for line in widget["properties"]["metrics"]:
            namespace, name, *rest = [each for each in line if isinstance(each, str)]
            found.append((namespace, name, dict(zip(rest[::2], rest[1::2], strict=True))))
    return found


def shown(name: str) -> set[str]:
    """What a metric is shown of: logical ids."""
    of = [value for _, metric, dimensions in metrics() if metric == name for value in dimensions.values()]
    return {each.removeprefix("${").removesuffix("}").split(".")[0] for each in of}


def test_there_is_none_unless_it_is_asked_for() -> None:
    (created,) = (each for each in resources().values() if each["Type"] == "AWS::CloudWatch::Dashboard")
    assert parameter("Dashboard")["Default"] == "false"
    assert conditions()[created["Condition"]] is False
    assert conditions(Dashboard="true")[created["Condition"]] is True


@pytest.mark.parametrize("producers_url", [True, False])
def test_its_alarms_are_those_of_the_template(producers_url: bool) -> None:
    shows = body(producers_url=producers_url, gradual=producers_url)["widgets"]
    (widget,) = (each for each in shows if each["type"] == "alarm")
    optional = {"ProducersUrlErrors", "IngestFunctionThrottles"}
    optional |= {"IngestReleaseErrors", "ControlReleaseErrors", "PushReleaseErrors"}
    expected = set(ALARMS) if producers_url else set(ALARMS) - optional
    alarms = widget["properties"]["alarms"]
    arn = "arn:${AWS::Partition}:cloudwatch:${AWS::Region}:${AWS::AccountId}:alarm:${AWS::StackName}-"
    assert sorted(alarms) == sorted(f"{arn}{each}" for each in expected)
    assert all(ALARMS[each]["AlarmName"] == {"Fn::Sub": f"${{AWS::StackName}}-{each}"} for each in ALARMS)
    assert len(alarms) <= 100  # CloudWatch's limit for such a widget


def test_widgets_do_not_overlap_and_fill_the_page() -> None:
    cells: set[tuple[int, int]] = set()
    for each in body()["widgets"]:
        own = {(each["x"] + x, each["y"] + y) for x in range(each["width"]) for y in range(each["height"])}
        assert not cells & own
        cells |= own
    height = max(y for _, y in cells) + 1
    assert cells == {(x, y) for x in range(ROW) for y in range(height)}
    assert all(each["properties"]["region"] == "${AWS::Region}" for kind in ("metric", "log") for each in widgets(kind))


def test_each_line_is_of_something_that_exists() -> None:
    services = {each["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"] for each in FUNCTIONS.values()}
    for namespace, name, dimensions in metrics():
        if namespace == "Pushhub/${AWS::StackName}":
            assert name in emitted()
            assert set(dimensions) == {"service"}
            assert dimensions["service"] in services
            continue
        assert namespace.startswith("AWS/")
        ((key, value),) = dimensions.items()
        if key == "LogGroupName":
            assert value in GROUPS
            continue
        logical, _, attribute = value.removeprefix("${").removesuffix("}").partition(".")
        assert resources()[logical]["Type"] == NAMED_BY[key]
        # Ref of a queue is its URL
        assert attribute == ("QueueName" if key == "QueueName" else "")


def test_no_function_queue_table_or_log_is_left_out() -> None:
    queues = of_type("AWS::SQS::Queue")
    dead = {name for name, queue in queues.items() if "RedrivePolicy" not in queue}
    tables = set(of_type("AWS::DynamoDB::Table"))
    streams = {"DispatchFunction", "RecordsFunction"}
    assert shown("ApproximateAgeOfOldestMessage") == shown("NumberOfMessagesSent") == set(queues) - dead
    assert shown("ApproximateNumberOfMessagesVisible") == dead
    assert shown("IteratorAge") == streams
    assert shown("Throttles") == shown("Invocations") == set(FUNCTIONS)
    assert shown("ReadThrottleEvents") == shown("WriteThrottleEvents") == tables
    assert shown("ConsumedReadCapacityUnits") == shown("ConsumedWriteCapacityUnits") == tables
    logs = {each["LoggingConfig"]["LogGroup"]["Ref"] for each in FUNCTIONS.values()}
    assert {value for _, name, by in metrics() if name == "IncomingBytes" for value in by.values()} == {
        name for name, group in GROUPS.items() if group in logs
    }


def test_ends_of_deliveries_are_all_shown() -> None:
    ends = {"Delivered", "Acknowledged", "Exhausted", "Expired", "Cancelled", "Held"}
    assert {f"Deliveries{each}" for each in ends} <= {name for _, name, _ in metrics()}
    assert {each for each in emitted() if re.fullmatch(r"Deliveries\w+", each)} >= {f"Deliveries{e}" for e in ends}


def test_subscribers_in_trouble_are_found_by_fields_that_attempts_have() -> None:
    (widget,) = widgets("log")
    query = widget["properties"]["query"]
    reported: Any = ast.parse(textwrap.dedent(inspect.getsource(DeliveryNews.attempted)))
    calls = [
        each for each in ast.walk(reported) if isinstance(each, ast.Call) and ast.unparse(each.func).endswith("event")
    ]
    fields = {each.arg for each in calls[0].keywords if each.arg}
    identity = inspect.getsource(WorkOrder.identity.fget)  # type: ignore[attr-defined]
    fields |= set(re.findall(r'"(\w+)":', identity))
    by = re.search(r" by (.+?) \| sort", query)
    assert by
    used = {*re.findall(r"\((\w+)", query), *by[1].split(", "), *re.findall(r"(?:filter|and) (\w+) ", query)} - {""}
    assert used - {"message"} <= fields
    # Of both functions that make attempts: those who answer slowly are poll's
    push, poll, _ = query.split(" | ", 2)
    assert (push, poll) == tuple(f"SOURCE '/aws/lambda/${{AWS::StackName}}-{each}'" for each in ("push", "poll"))


@pytest.mark.parametrize("name", ALARMS)
def test_each_alarm_leads_to_its_section_of_the_runbook_and_to_the_dashboard(name: str) -> None:
    text, values = ALARMS[name]["AlarmDescription"]["Fn::Sub"]
    assert text.endswith(f". Runbook: ${{RunbookUrl}}#{name} Dashboard: ${{Seen}}")
    condition, there, without = values["Seen"]["Fn::If"]
    assert (condition, without) == ("HasDashboard", "none")
    assert there["Fn::Sub"].endswith("#dashboards/dashboard/${AWS::StackName}")
    assert len(text) + len(values.get("Means", "")) < 600  # of 1,024 characters, with the address
