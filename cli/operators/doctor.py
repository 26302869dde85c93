"""Checks an AWS account before and after a hub is deployed there."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import click
from botocore.exceptions import BotoCoreError, ClientError

from ..answers import sections, text
from ..rest import Rest
from .concurrency import BOUNDED, DEFAULT, advice, fits
from .deployment import Deployment

SMALL_CONCURRENCY = 533
"""Below this, an account runs too few concurrent functions for the defaults (:mod:`cli.operators.concurrency`)."""
FEW_REQUESTS = 1_000
"""Requests a second below which an account's APIs throttle producers early; 10,000 is usual."""
FEW_WRITES = 10_000
"""Writes a second below which a table on demand throttles early; 40,000 is usual."""
FEW_ENCRYPTIONS = 1_000
"""Operations of KMS a second below which environments that start together are throttled when they open secrets; 10,000
is usual."""
QUOTAS = (
    ("functions at a time", "lambda", "L-B99A9384", SMALL_CONCURRENCY),
    ("requests a second to APIs", "apigateway", "L-8A5B8E43", FEW_REQUESTS),
    ("writes a second to a table", "dynamodb", "L-AB614373", FEW_WRITES),
    ("operations a second with keys", "kms", "L-6E3AF000", FEW_ENCRYPTIONS),
)
"""Quotas that can be raised: what they bound, service, code, and what is little. SQS's 120,000 messages in flight
for each queue are no quota of Service Quotas."""
QUOTA_RIGHTS = (
    "servicequotas:GetServiceQuota, GetAWSDefaultServiceQuota and ListRequestedServiceQuotaChangeHistoryByQuota"
)
ROUND_S = 60
DEAD_LETTERS = ("DeadLettersUrl", "FailuresUrl")


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check.

    Attributes:
        name: Of the thing.
        state: ``ok``, ``warning``, ``wrong`` or ``skipped``.
        says: What is wrong, and what to do.
    """

    name: str
    state: str
    says: str


def asked(name: str, ask: Callable[[Any], Iterator[Check]], of: Any) -> Iterator[Check]:
    """The result of a check; a call that fails is a finding too."""
    try:
        yield from ask(of)
    except (BotoCoreError, ClientError) as error:
        yield Check(name, "wrong", f"cannot be checked: {error}")


def _warned(name: str, warning: str, said: str) -> Check:
    """A warning, or if that is empty what is said of something that is fine."""
    return Check(name, "warning", warning) if warning else Check(name, "ok", said)


def account_checks(client: Callable[[str], Any]) -> Iterator[Check]:
    """The checks before a deployment: the caller, and the account's limits."""
    for name, service, check in (
        ("credentials", "sts", _credentials),
        ("concurrency", "lambda", _concurrency),
        ("websocket log role", "apigateway", _log_role),
        ("api requests", "apigateway", _requests),
        ("table writes", "dynamodb", _writes),
    ):
        yield from asked(name, check, client(service))
    yield from _quotas(client("service-quotas"))


def _credentials(sts: Any) -> Iterator[Check]:
    caller = sts.get_caller_identity()
    yield Check("credentials", "ok", f"{caller['Arn']} in {caller['Account']}")


def _concurrency(functions: Any) -> Iterator[Check]:
    limit = functions.get_account_settings()["AccountLimit"]
    most, free = limit["ConcurrentExecutions"], limit["UnreservedConcurrentExecutions"]
    said = advice(most)
    yield _warned("concurrency", said and f"{most}: {said}", f"{most}, {free} of them unreserved")


def _log_role(gateway: Any) -> Iterator[Check]:
    role = gateway.get_account().get("cloudwatchRoleArn")
    said = role or "none is set: WebSocketAccessLog=true would fail (docs/deploy.md says how to set one)"
    yield Check("websocket log role", "ok", said)


def _requests(gateway: Any) -> Iterator[Check]:
    found = gateway.get_account().get("throttleSettings", {})
    rate, burst = int(found.get("rateLimit", 0)), int(found.get("burstLimit", 0))
    said = f"{rate} a second, {burst} at once, for all APIs of the account in this region"
    more = f"{said}: ask for more (Service Quotas, Throttle rate)"
    yield _warned("api requests", more if rate < FEW_REQUESTS else "", said)


def _writes(tables: Any) -> Iterator[Check]:
    found = tables.describe_limits()
    table, account = found["TableMaxWriteCapacityUnits"], found["AccountMaxWriteCapacityUnits"]
    said = f"{table} a second in a table, {account} in the account"
    more = f"{said}: ask for more (Service Quotas, write throughput)"
    yield _warned("table writes", more if min(table, account) < FEW_WRITES else "", said)


def _quotas(quotas: Any) -> Iterator[Check]:
    """What Service Quotas says, in a line each; one line if it may not be asked, which is not an error."""
    for bounds, service, code, little in QUOTAS:
        name = f"quota of {service}"
        try:
            most = _quota(quotas, service, code)
            requested = _asked_for(quotas, service, code) if most is not None and most < little else ""
        except (BotoCoreError, ClientError) as error:
            reason = error.response["Error"]["Code"] if isinstance(error, ClientError) else str(error)
            yield Check("quotas", "skipped", f"Service Quotas does not answer ({reason}); it needs {QUOTA_RIGHTS}")
            return
        if most is None:
            yield Check(name, "skipped", f"{bounds}: Service Quotas does not know {code} in this region")
        elif most < little:
            command = f"request-service-quota-increase --service-code {service} --quota-code {code} --desired-value N"
            yield Check(
                name, "warning", f"{most} {bounds}; {requested or f'ask for more: aws service-quotas {command}'}"
            )
        else:
            yield Check(name, "ok", f"{most} {bounds}")


def _quota(quotas: Any, service: str, code: str) -> int | None:
    """The quota that applies to this account, or else AWS's default; None if AWS has neither."""
    for ask in (quotas.get_service_quota, quotas.get_aws_default_service_quota):
        try:
            return int(ask(ServiceCode=service, QuotaCode=code)["Quota"]["Value"])
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchResourceException":
                raise
    return None


def _asked_for(quotas: Any, service: str, code: str) -> str:
    """An earlier request for more and its status; empty if there is none."""
    found = quotas.list_requested_service_quota_change_history_by_quota(ServiceCode=service, QuotaCode=code)
    last = max(found["RequestedQuotas"], key=lambda each: str(each.get("Created", "")), default=None)
    return f"{int(last['DesiredValue'])} were requested: {last['Status']}" if last else ""


def stack_checks(hub: Deployment) -> Iterator[Check]:
    """The checks after a deployment."""
    for name, check in (
        ("functions", _functions),
        ("room for producers", _room),
        ("alarms", _alarms),
        ("alarm mail", _subscriptions),
        ("dead letters", _dead_letters),
        ("report job", _report),
    ):
        yield from asked(name, check, hub)


def _functions(hub: Deployment) -> Iterator[Check]:
    functions, roles = hub.client("lambda"), hub.client("iam")
    names = [value for key, value in hub.outputs.items() if key.endswith("FunctionName")]
    odd: list[str] = []
    for name in names:
        found = functions.get_function_configuration(FunctionName=name)
        if found.get("State", "Active") != "Active" or found.get("LastUpdateStatus", "Successful") != "Successful":
            odd.append(
                f"{name} is {found.get('State')}, {found.get('LastUpdateStatusReason') or found.get('StateReason')}"
            )
        try:
            roles.get_role(RoleName=found["Role"].rpartition("/")[2])
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchEntity":
                raise
            odd.append(f"{name} has a role that no longer exists: {found['Role']}")
    yield Check("functions", "wrong" if odd else "ok", "; ".join(odd) or f"{len(names)} active, with their roles")


def _room(hub: Deployment) -> Iterator[Check]:
    """Whether the stack was deployed with what fits the account."""
    (stack,) = hub.client("cloudformation").describe_stacks(StackName=hub.name)["Stacks"]
    chosen = {each["ParameterKey"]: each["ParameterValue"] for each in stack.get("Parameters", [])}
    runs = int(chosen.get("PushMaximumConcurrency", DEFAULT))
    most = hub.client("lambda").get_account_settings()["AccountLimit"]["ConcurrentExecutions"]
    said = f"of {most} concurrent runs what queues start may take {BOUNDED.get(runs, runs)}"
    hint = advice(most) or f"PushMaximumConcurrency={DEFAULT} would fit"
    warning = "" if fits(runs, most) else f"{said} (PushMaximumConcurrency={runs}): {hint}"
    yield _warned("room for producers", warning, said)


def _alarms(hub: Deployment) -> Iterator[Check]:
    topic = hub.outputs["AlarmTopicArn"]
    pages = hub.client("cloudwatch").get_paginator("describe_alarms").paginate(AlarmNamePrefix=hub.name)
    alarms = [each for page in pages for each in page.get("MetricAlarms", []) if topic in each["AlarmActions"]]
    ringing = [each["AlarmName"] for each in alarms if each["StateValue"] == "ALARM"]
    silent = [each["AlarmName"] for each in alarms if not each["ActionsEnabled"]]
    if not alarms:
        yield Check("alarms", "wrong", f"none sends to {topic}")
    elif ringing:
        yield Check("alarms", "wrong", f"ringing: {', '.join(ringing)} (docs/operations.md says what to do)")
    elif silent:
        yield Check("alarms", "warning", f"switched off: {', '.join(silent)}")
    else:
        yield Check("alarms", "ok", f"{len(alarms)}, none rings")


def _subscriptions(hub: Deployment) -> Iterator[Check]:
    pages = (
        hub.client("sns").get_paginator("list_subscriptions_by_topic").paginate(TopicArn=hub.outputs["AlarmTopicArn"])
    )
    found = [each for page in pages for each in page["Subscriptions"]]
    pending = [each["Endpoint"] for each in found if each["SubscriptionArn"] == "PendingConfirmation"]
    if not found:
        yield Check("alarm mail", "warning", "nobody is notified: deploy with AlarmEmail")
    elif pending:
        yield Check("alarm mail", "wrong", f"not confirmed by {', '.join(pending)}: the link is in the mail from AWS")
    else:
        yield Check("alarm mail", "ok", ", ".join(each["Endpoint"] for each in found))


def _dead_letters(hub: Deployment) -> Iterator[Check]:
    queues, held = hub.client("sqs"), []
    for key, url in hub.outputs.items():
        if key.endswith(DEAD_LETTERS):
            name = "ApproximateNumberOfMessages"
            found = queues.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"]
            if int(found[name]):
                held.append(f"{key.removesuffix('Url')} {found[name]}")
    said = ", ".join(held)
    yield Check("dead letters", "wrong" if held else "ok", f"{said} (docs/operations.md)" if held else "all empty")


def _report(hub: Deployment) -> Iterator[Check]:
    job = hub.client("glue").get_job(JobName=hub.outputs["ReportJobName"])["Job"]
    bucket, _, key = job["Command"]["ScriptLocation"].removeprefix("s3://").partition("/")
    try:
        hub.client("s3").head_object(Bucket=bucket, Key=key)
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] not in (403, 404):
            raise
        yield Check("report job", "wrong", f"its script is missing: make report-upload STACK={hub.name or 'pushhub'}")
        return
    yield Check("report job", "ok", "its script is there")


def round_trip(rest: Rest, *, sleep: Callable[[float], None] = time.sleep, tries: int = ROUND_S) -> Iterator[Check]:
    """Send a message through a push queue into a pull queue, and receive it there; nothing remains.

    Args:
        tries: How often to look, once a second.
    """
    name = f"doctor-{secrets.token_hex(4)}"
    pulled, pushed = rest.queue(f"{name}-in"), rest.queue(f"{name}-out")
    try:
        rest.call("PUT", pulled, {"queue": {"type": "pull"}})
        push = {"subscribers": [{"name": "doctor", "url": f"ironmq:///{name}-in"}]}
        rest.call("PUT", pushed, {"queue": {"type": "multicast", "push": push}})
        rest.call("POST", f"{pushed}/messages", {"messages": [{"body": name}]})
        for waited in range(tries):
            found = sections(rest.call("POST", f"{pulled}/reservations", {"n": 1, "delete": True}), "messages")
            if found:
                right = text(found[0], "body") == name
                yield Check("a message", "ok" if right else "wrong", f"made the round trip in {waited} s")
                return
            sleep(1)
        yield Check("a message", "wrong", f"posted, but not pushed within {tries} s: look at the alarms")
    except click.ClickException as error:
        yield Check("a message", "wrong", error.message)
    finally:
        for path in (pushed, pulled):
            try:
                rest.call("DELETE", path)
            except click.ClickException:
                continue
