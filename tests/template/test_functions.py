"""Functions: one folder each, a log group each, the settings their code asks for, limits that fit together."""

from __future__ import annotations

from typing import Any

import pytest
from tests.template.cloudformation import ROOT, Resource, of_type, parameter, resources, source
from tests.template.settings_of import settings_of

FUNCTIONS = {name: each for name, each in source()["Resources"].items() if each["Type"] == "AWS::Serverless::Function"}
MADE = of_type("AWS::Lambda::Function")
FOLDERS = {
    name: each["Properties"]["CodeUri"].strip("/").removeprefix("functions/") for name, each in FUNCTIONS.items()
}
OF_POWERTOOLS = {"LOG_LEVEL", "POWERTOOLS_METRICS_NAMESPACE", "POWERTOOLS_SERVICE_NAME"}
LONGEST_ENDPOINT_S = 180


def variables(function: Resource) -> dict[str, Any]:
    found: dict[str, Any] = function["Environment"]["Variables"]
    return found


def test_each_function_folder_is_in_the_template_and_each_function_has_its_folder() -> None:
    folders = {each.parent.name for each in (ROOT / "functions").glob("*/handler.py")}
    assert sorted(FOLDERS.values()) == sorted(folders)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_named_for_its_folder(name: str) -> None:
    assert name == f"{FOLDERS[name].title()}Function"
    assert MADE[name]["Handler"] == "handler.handler"
    assert variables(MADE[name])["POWERTOOLS_SERVICE_NAME"] == FOLDERS[name]
    assert variables(MADE[name])["POWERTOOLS_METRICS_NAMESPACE"] == "Pushhub"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_environment_is_what_the_code_asks_for(name: str) -> None:
    assert set(variables(MADE[name])) - OF_POWERTOOLS == settings_of(FOLDERS[name])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_writes_json_into_a_log_group_of_its_own(name: str) -> None:
    logging = MADE[name]["LoggingConfig"]
    assert logging["LogFormat"] == "JSON"
    assert logging["SystemLogLevel"] == "WARN"
    group = logging["LogGroup"]["Ref"]
    assert group in of_type("AWS::Logs::LogGroup")
    assert [each["LoggingConfig"]["LogGroup"]["Ref"] for each in MADE.values()].count(group) == 1


@pytest.mark.parametrize("name", of_type("AWS::Logs::LogGroup"))
def test_logs_do_not_stay_for_ever(name: str) -> None:
    assert of_type("AWS::Logs::LogGroup")[name]["RetentionInDays"] == {"Ref": "LogRetentionDays"}


def test_the_attempts_own_log_event_cannot_be_switched_off() -> None:
    # It is INFO, and so is what Lambda makes of a line without a level, as metrics are.
    assert set(parameter("LogLevel")["AllowedValues"]) == {"DEBUG", "INFO"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_runtime_architecture_and_layer_are_common(name: str) -> None:
    assert MADE[name]["Runtime"] == {"Ref": "Runtime"}
    assert MADE[name]["Architectures"] == [{"Ref": "Architecture"}]
    (layer,) = MADE[name]["Layers"]
    assert resources()[layer["Ref"]]["Type"] == "AWS::Lambda::LayerVersion"


def test_timeouts_fit_what_waits_for_them() -> None:
    assert MADE["PushFunction"]["Timeout"] > LONGEST_ENDPOINT_S
    integrations = of_type("AWS::ApiGatewayV2::Integration")
    for each in integrations.values():
        called = each["IntegrationUri"]["Fn::GetAtt"][0]
        assert MADE[called]["Timeout"] * 1000 < each["TimeoutInMillis"]
        assert each["PayloadFormatVersion"] == "2.0"
    # The next run starts a minute after this one did.
    assert MADE["WakeFunction"]["Timeout"] < 60
    assert of_type("AWS::Scheduler::Schedule")["WakeSchedule"]["ScheduleExpression"] == "rate(1 minute)"


def test_posts_go_to_ingest_and_everything_else_to_control() -> None:
    integrations = of_type("AWS::ApiGatewayV2::Integration")
    routes = {}
    for each in of_type("AWS::ApiGatewayV2::Route").values():
        integration = each["Target"]["Fn::Sub"].removeprefix("integrations/${").removesuffix("}")
        routes[each["RouteKey"]] = integrations[integration]["IntegrationUri"]["Fn::GetAtt"][0]
    assert routes == {
        "POST /3/projects/{project}/queues/{queue}/messages": "IngestFunction",
        "POST /3/projects/{project}/queues/{queue}/webhook": "IngestFunction",
        "$default": "ControlFunction",
    }


def test_the_api_is_deployed_by_its_stage_and_its_access_log_holds_no_query() -> None:
    (stage,) = of_type("AWS::ApiGatewayV2::Stage").values()
    assert stage["StageName"] == "$default"
    assert stage["AutoDeploy"] is True
    log_format = stage["AccessLogSettings"]["Format"]
    assert "\n" not in log_format
    # A token may stand in the query.
    assert "querystring" not in log_format.lower()
    # MiniStack's host names for an API need an id of eight hex digits.
    (api,) = of_type("AWS::ApiGatewayV2::Api").values()
    assert int(api["Tags"]["ms-custom-id"], 16) < 1 << 32
    assert len(api["Tags"]["ms-custom-id"]) == 8
