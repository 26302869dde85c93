"""``pushhub deploy doctor``: what is wrong with an account or a stack is found, and nothing else."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError
from cli.operators.doctor import round_trip
from cli.rest import Rest
from tests.cli.conftest import Typed
from tests.cli.deployment import answering, described, with_credentials
from tests.cli.served_hub import ServedHub
from tests.engine.world import PROJECT

OUTPUTS = {
    "ConfigTableName": "config",
    "IngestFunctionName": "acme-ingest",
    "PushFunctionName": "acme-push",
    "AlarmTopicArn": "arn:aws:sns:us-east-1:1:alarms",
    "PushDeadLettersUrl": "https://sqs/push-dead",
    "RecordsFailuresUrl": "https://sqs/records-failures",
    "ReportJobName": "acme-report",
}

STACK_ID = "arn:aws:cloudformation:us-east-1:1:stack/acme/1"

GOOD: dict[str, Any] = {
    "GetCallerIdentity": {"Arn": "arn:aws:iam::1:user/me", "Account": "1"},
    "GetAccountSettings": {"AccountLimit": {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 900}},
    "GetAccount": {"throttleSettings": {"rateLimit": 10000.0, "burstLimit": 5000}},
    "DescribeLimits": {
        **dict.fromkeys(("AccountMaxReadCapacityUnits", "AccountMaxWriteCapacityUnits"), 80_000),
        **dict.fromkeys(("TableMaxReadCapacityUnits", "TableMaxWriteCapacityUnits"), 40_000),
    },
    "GetServiceQuota": {"Quota": {"Value": 10_000.0}},
    "GetAWSDefaultServiceQuota": {"Quota": {"Value": 10_000.0}},
    "ListRequestedServiceQuotaChangeHistoryByQuota": {"RequestedQuotas": []},
    "DescribeStacks": described(OUTPUTS, StackId=STACK_ID),
    "GetFunctionConfiguration": {
        "State": "Active",
        "LastUpdateStatus": "Successful",
        "Role": "arn:aws:iam::1:role/x/r",
    },
    "GetRole": {},
    "SimulatePrincipalPolicy": {"EvaluationResults": [], "IsTruncated": False},
    "DescribeAlarms": {
        "MetricAlarms": [
            {
                "AlarmName": "acme-push",
                "StateValue": "OK",
                "ActionsEnabled": True,
                "AlarmActions": [OUTPUTS["AlarmTopicArn"]],
            }
        ]
    },
    "ListSubscriptionsByTopic": {"Subscriptions": [{"Endpoint": "me@a.example", "SubscriptionArn": "arn:aws:sns:1"}]},
    "GetQueueAttributes": {"Attributes": {"ApproximateNumberOfMessages": "0"}},
    "GetJob": {"Job": {"Command": {"ScriptLocation": "s3://records/jobs/report.py"}}},
    "HeadObject": {},
}


def refused(code: str, status: int = 400) -> ClientError:
    metadata: Any = {"HTTPStatusCode": status}
    return ClientError({"Error": {"Code": code, "Message": code}, "ResponseMetadata": metadata}, "Operation")


Account = dict[str, Any]


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    """An account without problems, which tests break. Answers by operation, or what makes one from what was asked; an
    exception is raised.
    """
    with_credentials(monkeypatch)
    answers = copy.deepcopy(GOOD)

    def answered(operation: str, parameters: dict[str, Any], real: Callable[[], Any]) -> Any:
        answer = answers[operation]
        if callable(answer):
            answer = answer(parameters)
        if isinstance(answer, dict) and parameters.get("QuotaCode") in answer:
            answer = answer[parameters["QuotaCode"]]
        if isinstance(answer, Exception):
            raise answer
        return answer

    answering(monkeypatch, answered)
    return answers


def found(typed: Typed, *words: str, before: bool = False, code: int = 0) -> dict[str, tuple[str, str]]:
    rows = typed.json(*words, "deploy", "doctor", *(["--before"] if before else []), code=code)
    return {each["check"]: (each["state"], each["says"]) for each in rows}


def test_a_hub_that_is_well_is_told_so_and_a_message_goes_round(
    account: Account, hub: ServedHub, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a hub whose deliveries are made as soon as they are checked
    world = hub.worlds["ironmq"].world
    real = hub.answer

    def answer(method: str, target: str, *rest: Any) -> Any:
        if target.endswith("/reservations"):
            world.run(seconds=1)
        return real(method, target, *rest)

    monkeypatch.setattr(hub, "answer", answer)
    states = found(typed, "--stack", "acme")
    assert {state for state, _ in states.values()} == {"ok"}, states
    assert set(states) >= {
        "credentials",
        "concurrency",
        "functions",
        "alarms",
        "alarm mail",
        "dead letters",
        "a message",
    }
    # And it leaves nothing behind
    assert typed.json("queues", "list") == []


def test_who_says_no_region_is_told_how_once(
    account: Account, hub: ServedHub, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    ways: tuple[tuple[str, ...], ...] = (("deploy", "doctor", "--before"), ("--stack", "acme", "projects", "list"))
    for words in ways:
        typed(*words, code=1)
        [line] = typed.errors.splitlines()
        assert "--region" in line
        assert "AWS_DEFAULT_REGION" in line
    assert found(typed, "--region", "eu-central-1", before=True)


def test_before_a_deployment_only_the_account_is_looked_at(account: Account, hub: ServedHub, typed: Typed) -> None:
    account["GetAccountSettings"]["AccountLimit"]["ConcurrentExecutions"] = 10
    rows = typed.json("deploy", "doctor", "--before")
    assert [each["check"] for each in rows] == [
        "credentials",
        "concurrency",
        "websocket log role",
        "api requests",
        "table writes",
        "quota of lambda",
        "quota of apigateway",
        "quota of dynamodb",
        "quota of kms",
    ]
    assert rows[1]["state"] == "warning"
    assert "PushMaximumConcurrency=2" in rows[1]["says"]
    typed("deploy", "doctor", code=2)


@pytest.mark.parametrize(
    ("most", "chosen", "state", "hint"),
    [
        (1000, "50", "ok", "355"),
        (1000, "200", "warning", "PushMaximumConcurrency=50 would fit"),
        (100, "50", "warning", "deploy with PushMaximumConcurrency=8"),
        (100, "8", "ok", "60"),
        (10, "2", "warning", "ask for more"),
    ],
)
def test_a_stack_that_leaves_producers_no_room_in_its_account_is_told_what_fits(
    account: Account,
    hub: ServedHub,
    typed: Typed,
    monkeypatch: pytest.MonkeyPatch,
    most: int,
    chosen: str,
    state: str,
    hint: str,
) -> None:
    monkeypatch.delenv("PUSHHUB_URL")
    account["GetAccountSettings"]["AccountLimit"]["ConcurrentExecutions"] = most
    stack = account["DescribeStacks"]["Stacks"][0]
    stack["Parameters"] = [{"ParameterKey": "PushMaximumConcurrency", "ParameterValue": chosen}]
    is_state, says = found(typed, "--stack", "acme")["room for producers"]
    assert is_state == state
    assert hint in says


def few_requests(account: Account) -> None:
    account["GetAccount"]["throttleSettings"]["rateLimit"] = 100.0


def few_writes(account: Account) -> None:
    account["DescribeLimits"]["TableMaxWriteCapacityUnits"] = 1_000


@pytest.mark.parametrize(("low", "check"), [(few_requests, "api requests"), (few_writes, "table writes")])
def test_a_low_quota_is_a_warning(
    account: Account, hub: ServedHub, typed: Typed, low: Callable[[Account], None], check: str
) -> None:
    low(account)
    rows = typed.json("deploy", "doctor", "--before")
    (found,) = [each for each in rows if each["state"] != "ok"]
    assert (found["check"], found["state"]) == (check, "warning")
    assert "ask for more" in found["says"]


def test_a_quota_that_is_little_is_told_with_what_was_asked_for_or_how_to_ask(
    account: Account, hub: ServedHub, typed: Typed
) -> None:
    # Given two quotas of a new account, one of which has a pending increase request
    account["GetServiceQuota"] |= {
        "L-B99A9384": {"Quota": {"Value": 10.0}},
        "L-AB614373": {"Quota": {"Value": 500.0}},
    }
    account["ListRequestedServiceQuotaChangeHistoryByQuota"] |= {
        "L-AB614373": {
            "RequestedQuotas": [
                {"Created": "2026-11-20", "DesiredValue": 40_000.0, "Status": "PENDING"},
                {"Created": "2026-11-01", "DesiredValue": 20_000.0, "Status": "DENIED"},
            ]
        }
    }
    states = found(typed, before=True)
    little = {name: says for name, (state, says) in states.items() if state == "warning"}
    assert list(little) == ["quota of lambda", "quota of dynamodb"]
    assert little["quota of lambda"] == (
        "10 functions at a time; ask for more: aws service-quotas request-service-quota-increase"
        " --service-code lambda --quota-code L-B99A9384 --desired-value N"
    )
    assert little["quota of dynamodb"] == "500 writes a second to a table; 40000 were requested: PENDING"
    assert states["quota of kms"] == ("ok", "10000 operations a second with keys")


def test_a_quota_that_was_never_changed_is_the_default_and_one_nobody_knows_is_left_out(
    account: Account, hub: ServedHub, typed: Typed
) -> None:
    account["GetServiceQuota"] |= dict.fromkeys(("L-8A5B8E43", "L-6E3AF000"), refused("NoSuchResourceException"))
    account["GetAWSDefaultServiceQuota"] |= {
        "L-8A5B8E43": {"Quota": {"Value": 600.0}},
        "L-6E3AF000": refused("NoSuchResourceException"),
    }
    states = found(typed, before=True)
    assert states["quota of apigateway"][0] == "warning"
    assert states["quota of apigateway"][1].startswith("600 requests a second to APIs; ask for more")
    assert states["quota of kms"] == (
        "skipped",
        "operations a second with keys: Service Quotas does not know L-6E3AF000 in this region",
    )


def test_who_may_not_ask_for_quotas_is_told_which_rights_are_missing_once(
    account: Account, hub: ServedHub, typed: Typed
) -> None:
    account["GetServiceQuota"] = refused("AccessDeniedException", 400)
    states = found(typed, before=True)
    odd = {name: each for name, each in states.items() if each[0] != "ok"}
    assert list(odd) == ["quotas"]
    assert odd["quotas"][0] == "skipped"
    assert "AccessDeniedException" in odd["quotas"][1]
    assert "servicequotas:GetServiceQuota" in odd["quotas"][1]


def ringing(account: Account) -> None:
    account["DescribeAlarms"]["MetricAlarms"][0]["StateValue"] = "ALARM"


def no_alarm(account: Account) -> None:
    account["DescribeAlarms"]["MetricAlarms"][0]["AlarmActions"] = []


def pending(account: Account) -> None:
    account["ListSubscriptionsByTopic"]["Subscriptions"][0]["SubscriptionArn"] = "PendingConfirmation"


def failed_function(account: Account) -> None:
    account["GetFunctionConfiguration"] |= {"State": "Failed", "StateReason": "no memory"}


def no_role(account: Account) -> None:
    account["GetRole"] = refused("NoSuchEntity", 404)


def dead(account: Account) -> None:
    account["GetQueueAttributes"]["Attributes"]["ApproximateNumberOfMessages"] = "3"


def no_script(account: Account) -> None:
    account["HeadObject"] = refused("404", 404)


def denied(account: Account) -> None:
    account["DescribeAlarms"] = refused("AccessDenied", 403)


@pytest.mark.parametrize(
    ("broken", "check", "reason"),
    [
        (ringing, "alarms", "ringing: acme-push"),
        (no_alarm, "alarms", "none sends to"),
        (pending, "alarm mail", "not confirmed by me@a.example"),
        (failed_function, "functions", "acme-ingest is Failed, no memory"),
        (no_role, "functions", "has a role that no longer exists"),
        (dead, "dead letters", "PushDeadLetters 3, RecordsFailures 3"),
        (no_script, "report job", "make report-upload STACK=acme"),
        (denied, "alarms", "AccessDenied"),
    ],
)
def test_what_is_wrong_is_found(
    account: Account,
    hub: ServedHub,
    typed: Typed,
    monkeypatch: pytest.MonkeyPatch,
    broken: Callable[[Account], None],
    check: str,
    reason: str,
) -> None:
    monkeypatch.delenv("PUSHHUB_URL")
    broken(account)
    states = found(typed, "--stack", "acme", code=1)
    assert states[check][0] == "wrong"
    assert reason in states[check][1]
    assert [each for each, (state, _) in states.items() if state == "wrong"] == [check]
    assert states["a message"][0] == "skipped"


def test_nobody_told_of_alarms_is_a_warning(
    account: Account, hub: ServedHub, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PUSHHUB_URL")
    account["ListSubscriptionsByTopic"]["Subscriptions"] = []
    assert found(typed, "--stack", "acme")["alarm mail"][0] == "warning"


def test_a_message_that_does_not_arrive_is_found_and_cleared_away(hub: ServedHub, typed: Typed) -> None:
    waited: list[float] = []
    [check] = round_trip(Rest(hub.base_url, PROJECT, "t0ken"), sleep=waited.append, tries=3)
    assert (check.state, waited) == ("wrong", [1, 1, 1])
    assert typed.json("queues", "list") == []
    hub.down_after = len(hub.asked)
    [check] = round_trip(Rest(hub.base_url, PROJECT, "t0ken"), sleep=waited.append)
    assert (check.state, "did not answer" in check.says) == ("wrong", True)
