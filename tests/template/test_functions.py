"""Functions: one folder each, a log group each, the settings their code asks for, limits that fit together."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from local.deploy.deployer import WEBSOCKET_API
from tests.template.cloudformation import ROOT, Resource, called_by, deployed, of_type, resources, source

from pushhub.engine.attempts.job import LONGEST_ATTEMPT_MS
from pushhub.engine.model.flow import SHORT_ATTEMPT_MS
from pushhub.runtime.hub import settings_of

FUNCTIONS = {name: each for name, each in source()["Resources"].items() if each["Type"] == "AWS::Serverless::Function"}
MADE = of_type("AWS::Lambda::Function")
FOLDERS = {
    name: each["Properties"]["CodeUri"].strip("/").removeprefix("functions/") for name, each in FUNCTIONS.items()
}
OF_POWERTOOLS = {"LOG_LEVEL", "METRICS_SERVICE", "POWERTOOLS_METRICS_NAMESPACE", "POWERTOOLS_SERVICE_NAME"}
"""What telemetry reads, and Powertools, which it is made with."""
LONGEST_ENDPOINT_S = 180
WEBSOCKETS = {"Ref": "WebSocketApi"}


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
    assert variables(MADE[name])["POWERTOOLS_METRICS_NAMESPACE"] == {"Fn::Sub": "Pushhub/${AWS::StackName}"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_environment_is_what_the_code_asks_for(name: str) -> None:
    assert set(variables(MADE[name])) - OF_POWERTOOLS == {each.name for each in settings_of(FOLDERS[name])}


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
    # It is INFO, which is also Lambda's level for a line without one, such as metrics.
    assert {each["LoggingConfig"]["ApplicationLogLevel"] for each in MADE.values()} == {"INFO"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_runtime_architecture_and_layer_are_common(name: str) -> None:
    assert MADE[name]["Runtime"] == {"Ref": "Runtime"}
    assert MADE[name]["Architectures"] == [{"Ref": "Architecture"}]
    layers = [re.sub("[0-9a-f]{10}$", "", each["Ref"]) for each in MADE[name]["Layers"]]
    assert layers == ["PushhubLayer", *(["ScriptingLayer"] if name == "TransformFunction" else [])]
    assert {resources()[each["Ref"]]["Type"] for each in MADE[name]["Layers"]} == {"AWS::Lambda::LayerVersion"}


def test_timeouts_fit_what_waits_for_them() -> None:
    # An attempt takes up to half of a run, so that it may take up further orders before.
    assert MADE["PushFunction"]["Timeout"] * 1000 < 2 * SHORT_ATTEMPT_MS
    assert MADE["PushFunction"]["Timeout"] * 1000 > 1.5 * SHORT_ATTEMPT_MS
    assert MADE["PollFunction"]["Timeout"] > 2 * LONGEST_ENDPOINT_S
    assert LONGEST_ATTEMPT_MS == LONGEST_ENDPOINT_S * 1000 + 10_000
    # What a dead run of push had is shown again within two minutes, whenever it died.
    for queue in ("Push", "Retry", "Route"):
        assert of_type("AWS::SQS::Queue")[f"{queue}Queue"]["VisibilityTimeout"] < 120
    for name, each in of_type("AWS::ApiGatewayV2::Integration").items():
        assert MADE[called_by(name)]["Timeout"] * 1000 < each["TimeoutInMillis"]
        # WebSocket APIs know no payload format.
        assert each.get("PayloadFormatVersion", "2.0" if each["ApiId"] == WEBSOCKETS else None) == "2.0"
    # No run is under way when the next one starts.
    seconds = {"rate(1 minute)": 60, "rate(1 hour)": 3600}
    for schedule in of_type("AWS::Scheduler::Schedule").values():
        assert MADE[schedule["Target"]["Arn"]["Fn::GetAtt"][0]]["Timeout"] < seconds[schedule["ScheduleExpression"]]


def test_everything_on_a_websocket_goes_to_consumers() -> None:
    assert routes_of("WebSocketApi") == dict.fromkeys(("$connect", "$disconnect", "$default"), "ConsumersFunction")


def routes_of(api: str) -> dict[str, str]:
    """Functions by route."""
    routes = {}
    for each in of_type("AWS::ApiGatewayV2::Route").values():
        integration = each["Target"]["Fn::Sub"].removeprefix("integrations/${").removesuffix("}")
        if each["ApiId"] == {"Ref": api}:
            routes[each["RouteKey"]] = called_by(integration)
    return routes


@pytest.mark.parametrize(("api", "name"), [("HttpApi", "$default"), ("WebSocketApi", "live")])
def test_an_api_is_deployed_by_its_stage_and_its_access_log_holds_no_token(api: str, name: str) -> None:
    logged = deployed(WebSocketAccessLog="true").values()
    stages = [each["Properties"] for each in logged if each["Type"] == "AWS::ApiGatewayV2::Stage"]
    (stage,) = (each for each in stages if each["ApiId"] == {"Ref": api})
    assert stage["StageName"] == name
    assert stage["AutoDeploy"] is True
    log_format = stage["AccessLogSettings"]["Format"]
    assert "\n" not in log_format
    # A query may contain a token, and so may a path: the URLs of sources do.
    assert not any(each in log_format.lower() for each in ("querystring", "path"))
    # MiniStack's host names for an API need an id of eight hex digits.
    tag = of_type("AWS::ApiGatewayV2::Api")[api]["Tags"]["ms-custom-id"]
    assert int(tag, 16) < 1 << 32
    assert len(tag) == 8


def test_the_local_stack_knows_the_websocket_api_by_the_id_in_its_tag() -> None:
    assert of_type("AWS::ApiGatewayV2::Api")["WebSocketApi"]["Tags"]["ms-custom-id"] == WEBSOCKET_API


def test_api_gateway_waits_for_no_run_whose_failure_it_would_tell_a_consumer() -> None:
    # Given the routes of frames and of ends of connections
    routes = {each["RouteKey"]: each["Target"]["Fn::Sub"] for each in of_type("AWS::ApiGatewayV2::Route").values()}
    integrations = of_type("AWS::ApiGatewayV2::Integration")
    for route in ("$default", "$disconnect"):
        integration = integrations[routes[route].removeprefix("integrations/${").removesuffix("}")]
        # Then they are invoked asynchronously, which is impossible for proxy integrations
        assert integration["IntegrationType"] == "AWS"
        assert integration["RequestParameters"] == {"integration.request.header.X-Amz-Invocation-Type": "'Event'"}
        # And the event has everything that the function needs
        (template,) = integration["RequestTemplates"].values()
        event = json.loads(template)
        assert event["requestContext"].keys() >= {"eventType", "connectionId"}
        assert event["body"] == "$util.base64Encode($input.body)"
        assert event["isBase64Encoded"] is True
    # And no route of the WebSocket API answers
    assert not of_type("AWS::ApiGatewayV2::RouteResponse")


def test_producers_get_a_url_of_ingest_only_on_request_and_anyone_may_call_it() -> None:
    kinds = {"AWS::Lambda::Url", "AWS::CloudWatch::Alarm", "AWS::Lambda::Permission"}
    without, having = deployed(), deployed(ProducersUrl="true")
    created = {name: each for name, each in having.items() if name not in without}
    assert {each["Type"] for each in created.values()} == kinds
    # The hub authenticates producers itself, as it does behind the gateway
    (url,) = (each["Properties"] for each in created.values() if each["Type"] == "AWS::Lambda::Url")
    assert url == {"AuthType": "NONE", "TargetFunctionArn": {"Fn::GetAtt": ["IngestFunction", "Arn"]}}
    # Since October 2025 a URL needs both, and the second lets nobody run the function any other way
    permissions = [each["Properties"] for each in created.values() if each["Type"] == "AWS::Lambda::Permission"]
    common = {"FunctionName": {"Ref": "IngestFunction"}, "Principal": "*"}
    assert permissions == [
        {"Action": "lambda:InvokeFunctionUrl", **common, "FunctionUrlAuthType": "NONE"},
        {"Action": "lambda:InvokeFunction", **common, "InvokedViaFunctionUrl": True},
    ]


@pytest.mark.parametrize(("kind", "setting"), [("Queue", "CONSUMED_QUEUE"), ("Events", "CONSUMED_EVENTS")])
def test_a_queue_of_others_is_read_only_on_request_and_by_ingest_alone(kind: str, setting: str) -> None:
    # Given a stack without and with such a queue
    arn = "arn:aws:sqs:eu-central-1:123456789012:theirs"
    to = {f"Consumed{kind}To": "5f0000000000000000000001/queues/orders"}
    without, having = deployed(), deployed(**{f"Consumed{kind}Arn": arn}, **to)
    # Then all that it makes is a mapping, which reports what failed by message
    created = {name: each["Properties"] for name, each in having.items() if name not in without}
    assert created.keys() == {f"Consumed{kind}Mapping"}
    [mapping] = created.values()
    assert mapping["EventSourceArn"] == {"Ref": f"Consumed{kind}Arn"}
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["FunctionName"] == {"Ref": "IngestFunction"}
    # And ingest may read that queue, and nobody else may
    roles = {
        name for name, each in having.items() if each["Type"] == "AWS::IAM::Role" and f"Consumed{kind}Arn" in str(each)
    }
    assert roles == {"IngestFunctionRole"}
    [statement] = [
        each
        for policy in having["IngestFunctionRole"]["Properties"]["Policies"]
        for each in policy["PolicyDocument"]["Statement"]
        if each["Resource"] == {"Ref": f"Consumed{kind}Arn"}
    ]
    assert statement["Action"] == ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
    assert variables(MADE["IngestFunction"])[setting] == {"Ref": f"Consumed{kind}Arn"}
