"""What AWS refuses or limits in an account that is new, or is used for other things, too.

None of it was seen in an account of ours. Sources, below https://docs.aws.amazon.com unless they are others:

- A WebSocket stage with an access log is refused in an account without a role for logs:
  https://repost.aws/knowledge-center/api-gateway-cloudwatch-logs, https://github.com/sst/ion/issues/373
- 100 of an account's concurrent runs must stay unreserved: /lambda/latest/api/API_PutFunctionConcurrency.html
- ``RetainExceptOnCreate`` removes what a failed creation made, and keeps the rest (``test_data.py``):
  /AWSCloudFormation/latest/TemplateReference/aws-attribute-deletionpolicy.html
- CloudFront caches 404, 414 and 5xx for 10 s, and 400, 403 and 405 if configured; none with the policy CachingDisabled:
  /AmazonCloudFront/latest/DeveloperGuide/HTTPStatusCodes.html
"""

from __future__ import annotations

import botocore.session
import pytest
from cli.operators.concurrency import BOUNDED, DEFAULT, advice, fitting
from tests.template.cloudformation import Resource, deployed, of_type, own_mappings, parameter, source

HUB = deployed()
RESERVING = {
    "IngestFunction": "IngestConcurrency",
    "DispatchFunction": "DispatchConcurrency",
    "ControlFunction": "ControlConcurrency",
}


def stage(resources: dict[str, Resource]) -> Resource:
    found: Resource = resources["WebSocketStage"]
    return found


def test_no_setting_of_the_account_is_needed_and_none_is_touched() -> None:
    # A stage of a WebSocket API with AccessLogSettings is refused while the account has no role for logs:
    # "CloudWatch Logs role ARN must be set in account settings to enable logging". One of an HTTP API is not.
    assert "AccessLogSettings" not in stage(HUB)["Properties"]
    assert "AccessLogSettings" in HUB["HttpApiStage"]["Properties"]
    assert "WebSocketLogs" not in HUB
    assert not [name for name, each in HUB.items() if each["Type"] == "AWS::ApiGateway::Account"]


def test_connections_are_logged_on_request() -> None:
    resources = deployed(WebSocketAccessLog="true")
    settings = stage(resources)["Properties"]["AccessLogSettings"]
    assert settings["DestinationArn"] == {"Fn::GetAtt": ["WebSocketLogs", "Arn"]}
    assert resources.keys() - HUB.keys() == {"WebSocketLogs"}


def test_no_concurrency_is_reserved_unless_it_is_asked_for() -> None:
    # A new account may have only about ten concurrent runs, all of which must stay unreserved.
    functions = {name: each for name, each in HUB.items() if each["Type"] == "AWS::Lambda::Function"}
    assert len(functions) == len(of_type("AWS::Lambda::Function"))
    for each in functions.values():
        assert "ReservedConcurrentExecutions" not in each["Properties"]
    model = botocore.session.get_session().get_service_model("lambda").operation_model("PutFunctionConcurrency")
    assert "leave at least 100 simultaneous executions unreserved" in model.documentation


@pytest.mark.parametrize(("function", "name"), RESERVING.items())
def test_acceptance_and_its_hand_on_can_be_given_room_and_control_a_bound(function: str, name: str) -> None:
    assert (parameter(name)["Default"], parameter(name)["MinValue"]) == (0, 0)
    resources = deployed(**{name: "40"})
    reserved = {key for key, each in resources.items() if "ReservedConcurrentExecutions" in each.get("Properties", {})}
    assert reserved == {function}
    assert resources[function]["Properties"]["ReservedConcurrentExecutions"] == {"Ref": name}


def started_by_queues(choice: int) -> int:
    """Concurrent runs that queues start, by PushMaximumConcurrency, as the template bounds them."""
    row = source()["Mappings"]["PushConcurrency"][str(choice)]
    bounds = [each["ScalingConfig"]["MaximumConcurrency"] for each in QUEUE_MAPPINGS]
    return sum(row[each["Fn::FindInMap"][2]] for each in bounds)


QUEUE_MAPPINGS = [each for each in own_mappings().values() if "ScalingConfig" in each]


def test_what_queues_start_is_bounded_by_one_choice() -> None:
    choices = parameter("PushMaximumConcurrency")["AllowedValues"]
    assert {each: started_by_queues(each) for each in choices} == BOUNDED
    assert parameter("PushMaximumConcurrency")["Default"] == DEFAULT


@pytest.mark.parametrize("most", [10, 11, 20, 21, 50, 90, 100, 200, 400, 533, 1_000, 10_000])
def test_the_doctors_choice_leaves_a_third_of_an_account_for_producers_if_any_does(most: int) -> None:
    choices = [each for each in parameter("PushMaximumConcurrency")["AllowedValues"] if each <= DEFAULT]
    fit = [each for each in choices if started_by_queues(each) <= most * 2 / 3]
    assert fitting(most) == (max(fit) if fit else None)
    # And it is said, unless the defaults are the choice
    said = advice(most)
    assert bool(said) == (fitting(most) != DEFAULT)
    assert not said or f"PushMaximumConcurrency={fitting(most) or 2}" in said
    assert ("503" in said) == (not fit)


def test_no_answer_to_one_caller_is_kept_for_another_at_the_edge() -> None:
    """The statuses are those that CloudFront may cache, except 412 and 415, which cannot be configured
    (HTTPStatusCodes.html).
    """
    settings = deployed(EdgeDistribution="true")["Edge"]["Properties"]["DistributionConfig"]
    kept = {each["ErrorCode"]: each["ErrorCachingMinTTL"] for each in settings["CustomErrorResponses"]}
    assert kept == dict.fromkeys((400, 403, 404, 405, 414, 500, 501, 502, 503, 504), 0)
    # The policy CachingDisabled, for every path
    disabled = "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"
    behaviours = [settings["DefaultCacheBehavior"], *settings["CacheBehaviors"]]
    assert {each["CachePolicyId"] for each in behaviours} == {disabled}
