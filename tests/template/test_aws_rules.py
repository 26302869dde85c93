"""The rules of AWS that this template leans on: what is known of them, and where each is kept to.

A rule is checked on the template as CloudFormation gets it, or a test elsewhere keeps to it. Nothing has run in an AWS
account: what AWS does not document clearly stands in ``UNVERIFIABLE``, with what we hope and what happens if it is not
so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from tests.template.cloudformation import ROOT, Resource, deployed, references, source

Resources = dict[str, Resource]
Check = Callable[[Resources], Iterator[str]]
DOCS = "https://docs.aws.amazon.com"

DEPLOYMENTS: dict[str, dict[str, str]] = {
    "defaults": {},
    "everything": {
        "KmsKeyArn": "arn:aws:kms:eu-west-1:123456789012:key/1",
        "OldKmsKeyArns": "arn:aws:kms:eu-west-1:123456789012:key/2",
        "ProducersUrl": "true",
        "EdgeDistribution": "true",
        "WebSocketAccessLog": "true",
        "IngestConcurrency": "200",
        "DispatchConcurrency": "50",
        "ControlConcurrency": "300",
        "AlarmEmail": "a@example.com",
        "LogsKeyArn": "arn:aws:kms:eu-west-1:123456789012:key/3",
        "DomainName": "hub.example.com",
        "CertificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/1",
        "WebAclArn": "arn:aws:wafv2:us-east-1:123456789012:global/webacl/a/1",
        "ApiRequestsPerSecond": "500",
        "WebSocketMessagesPerSecond": "500",
        "Dashboard": "true",
        "EgressSubnetIds": "subnet-1,subnet-2",
        "EgressSecurityGroupIds": "sg-1",
        "SourceAddresses": "203.0.113.7",
    },
}
REFERENCE_LENGTH = 90
"""What a reference becomes at most: the name, address or ARN of a resource of a stack with a name of usual length."""


def of(resources: Resources, kind: str) -> dict[str, Resource]:
    return {name: each.get("Properties", {}) for name, each in resources.items() if each["Type"] == kind}


def number(value: Any, *, largest: bool = True) -> int:
    """A number of the template; of a parameter the largest or smallest that is allowed."""
    if isinstance(value, dict) and "Ref" in value:
        parameter = source()["Parameters"][value["Ref"]]
        allowed = [int(each) for each in parameter.get("AllowedValues", ())]
        if allowed:
            return max(allowed) if largest else min(allowed)
        return int(parameter["MaxValue" if largest else "MinValue"])
    if isinstance(value, dict) and "Fn::FindInMap" in value:
        entries = source()["Mappings"][value["Fn::FindInMap"][0]].values()
        return (max if largest else min)(int(each[value["Fn::FindInMap"][2]]) for each in entries)
    return int(value)


def target(value: Any) -> str:
    """The logical id that an ARN or a reference is of."""
    (found,) = references(value)
    return found


def length(value: Any) -> int:
    """About how long a value is once deployed, as JSON without spaces."""
    if isinstance(value, dict) and len(value) == 1 and ("Ref" in value or next(iter(value)).startswith("Fn::")):
        text = value.get("Fn::Sub", "")
        return REFERENCE_LENGTH + (len(text) if isinstance(text, str) else 0)
    if isinstance(value, dict):
        return 2 + sum(len(key) + 4 + length(each) for key, each in value.items())
    if isinstance(value, list):
        return 2 + sum(1 + length(each) for each in value)
    return len(json.dumps(value))


def statements(resources: Resources, role: str) -> Iterator[tuple[set[str], list[Any]]]:
    """Actions and resources of each statement of a role."""
    for policy in resources[role]["Properties"].get("Policies", ()):
        for each in policy["PolicyDocument"]["Statement"]:
            actions, targets = each["Action"], each["Resource"]
            yield (
                set(actions if isinstance(actions, list) else [actions]),
                targets if isinstance(targets, list) else [targets],
            )


def allowed(resources: Resources, role: str, resource: str) -> set[str]:
    """What a role may do with a resource, or with what is in it."""
    return {
        action
        for actions, targets in statements(resources, role)
        if resource in references(targets)
        for action in actions
    }


def mappings(resources: Resources, attribute: str) -> Iterator[tuple[str, Resource, str, Resource, str]]:
    """Event source mappings of queues (``Arn``) or streams (``StreamArn``): name, properties, source, function,
    role.
    """
    for name, each in of(resources, "AWS::Lambda::EventSourceMapping").items():
        if "Fn::GetAtt" not in each["EventSourceArn"]:
            # A queue that is not the stack's.
            continue
        origin, found = each["EventSourceArn"]["Fn::GetAtt"]
        if found == attribute:
            function = resources[each["FunctionName"]["Ref"]]["Properties"]
            yield name, each, origin, function, target(function["Role"])


# -- The checks: each yields what breaks its rule ----------------------------------------------------------------------


def chains(resources: Resources) -> Iterator[str]:
    runs = {origin: each["FunctionName"]["Ref"] for _, each, origin, _, _ in mappings(resources, "Arn")}
    functions = of(resources, "AWS::Lambda::Function")
    sends = {
        name: {runs[queue] for queue in references(each["Environment"]) if queue in runs}
        for name, each in functions.items()
    }
    for name, each in functions.items():
        reached: set[str] = set()
        following = set(sends[name])
        while following - reached:
            reached |= following
            following = {further for one in reached for further in sends[one]}
        if name in reached and each.get("RecursiveLoop") != "Allow":
            yield f"{name} sends to itself through queues"


def visibility(resources: Resources) -> Iterator[str]:
    for name, each, queue, function, _ in mappings(resources, "Arn"):
        hidden = number(resources[queue]["Properties"]["VisibilityTimeout"], largest=False)
        window = number(each.get("MaximumBatchingWindowInSeconds", 0))
        if hidden < number(function["Timeout"]) + window:
            yield f"{name}: {queue} hides messages for {hidden} s"


def queue_batches(resources: Resources) -> Iterator[str]:
    for name, each, queue, _, _ in mappings(resources, "Arn"):
        fifo = resources[queue]["Properties"].get("FifoQueue", False)
        most, window = number(each["BatchSize"]), number(each.get("MaximumBatchingWindowInSeconds", 0))
        runs = each["ScalingConfig"]["MaximumConcurrency"]
        if not 2 <= number(runs, largest=False) <= number(runs) <= 1000:
            yield f"{name}: concurrency"
        if fifo and (most > 10 or window):
            yield f"{name}: a FIFO queue takes batches of 10, and no window"
        if most > 10 and not window:
            yield f"{name}: a batch of more than 10 needs a window"


def stream_batches(resources: Resources) -> Iterator[str]:
    readers: dict[str, int] = {}
    for name, each, table, _, _ in mappings(resources, "StreamArn"):
        readers[table] = readers.get(table, 0) + 1
        filters = each.get("FilterCriteria", {}).get("Filters", ())
        if not (1 <= each["BatchSize"] <= 10_000 and 1 <= number(each["ParallelizationFactor"]) <= 10):
            yield f"{name}: batch size or parallelization factor"
        if number(each.get("MaximumBatchingWindowInSeconds", 0)) > 300:
            yield f"{name}: batching window"
        if len(filters) > 5 or any(len(one["Pattern"]) > 4_096 for one in filters):
            yield f"{name}: filters"
    yield from (f"{table} has {count} readers" for table, count in readers.items() if count > 2)


def may_read(resources: Resources) -> Iterator[str]:
    queue_rights = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}
    stream_rights = {f"dynamodb:{each}" for each in ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")}
    for name, _, origin, _, role in mappings(resources, "Arn"):
        if not queue_rights <= allowed(resources, role, origin):
            yield f"{name}: {role} may not read {origin}"
    for name, each, origin, _, role in mappings(resources, "StreamArn"):
        failures = target(each["DestinationConfig"]["OnFailure"]["Destination"])
        if not stream_rights <= allowed(resources, role, origin):
            yield f"{name}: {role} may not read the stream of {origin}"
        if "sqs:SendMessage" not in allowed(resources, role, failures):
            yield f"{name}: {role} may not send to {failures}"


def missing_objects(resources: Resources) -> Iterator[str]:
    for role in of(resources, "AWS::IAM::Role"):
        for bucket in of(resources, "AWS::S3::Bucket"):
            rights = allowed(resources, role, bucket)
            if "s3:GetObject" in rights and "s3:ListBucket" not in rights:
                yield f"{role} gets 403 for an object that is not in {bucket}"


def queues(resources: Resources) -> Iterator[str]:
    created = of(resources, "AWS::SQS::Queue")
    for name, each in created.items():
        if number(each.get("MaximumMessageSize", 1_048_576)) > 1_048_576:
            yield f"{name}: message size"
        if number(each["MessageRetentionPeriod"]) > 1_209_600 or number(each.get("VisibilityTimeout", 30)) > 43_200:
            yield f"{name}: retention or visibility"
        if each.get("FifoThroughputLimit") == "perMessageGroupId" and each.get("DeduplicationScope") != "messageGroup":
            yield f"{name}: throughput by group needs deduplication by group"
        if "RedrivePolicy" in each:
            dead = created[target(each["RedrivePolicy"]["deadLetterTargetArn"])]
            if dead.get("FifoQueue", False) != each.get("FifoQueue", False):
                yield f"{name}: its dead letters are of the other kind"
            if number(dead["MessageRetentionPeriod"]) < number(each["MessageRetentionPeriod"]):
                yield f"{name}: its dead letters go before it would drop them"


def functions(resources: Resources) -> Iterator[str]:
    for name, each in of(resources, "AWS::Lambda::Function").items():
        if not 1 <= number(each["Timeout"]) <= 900:
            yield f"{name}: timeout"
        if not 128 <= number(each["MemorySize"], largest=False) <= number(each["MemorySize"]) <= 10_240:
            yield f"{name}: memory"
        if length(each["Environment"]["Variables"]) > 4_096:
            yield f"{name}: its environment variables are over 4 KB"
    for name, each in of(resources, "AWS::Lambda::EventInvokeConfig").items():
        if not (0 <= each["MaximumRetryAttempts"] <= 2 and 60 <= each["MaximumEventAgeInSeconds"] <= 21_600):
            yield f"{name}: retries or age"


def schedules(resources: Resources) -> Iterator[str]:
    for name, each in of(resources, "AWS::Scheduler::Schedule").items():
        policy = each["Target"]["RetryPolicy"]
        retries, seconds = number(policy["MaximumRetryAttempts"]), number(policy["MaximumEventAgeInSeconds"])
        if not (0 <= retries <= 185 and 60 <= seconds <= 86_400):
            yield f"{name}: retries or age"


def gateway_times(resources: Resources) -> Iterator[str]:
    apis = of(resources, "AWS::ApiGatewayV2::Api")
    for name, each in of(resources, "AWS::ApiGatewayV2::Integration").items():
        most = 29_000 if apis[each["ApiId"]["Ref"]]["ProtocolType"] == "WEBSOCKET" else 30_000
        if not 50 <= each["TimeoutInMillis"] <= most:
            yield f"{name}: {each['TimeoutInMillis']} ms"


def role_sizes(resources: Resources) -> Iterator[str]:
    for name, each in of(resources, "AWS::IAM::Role").items():
        size = sum(length(policy["PolicyDocument"]) for policy in each.get("Policies", ()))
        if size > 10_240:
            yield f"{name}: {size} characters of policies"


def stack_sizes(resources: Resources) -> Iterator[str]:
    if len(resources) > 500:
        yield f"{len(resources)} resources"
    if len(json.dumps({**source(), "Resources": resources}, separators=(",", ":"))) > 1_000_000:
        yield "the template is over 1 MB"
    for part, most in (("Parameters", 200), ("Outputs", 200), ("Mappings", 200)):
        if len(source()[part]) > most:
            yield f"{len(source()[part])} {part}"


def alarm_times(resources: Resources) -> Iterator[str]:
    for name, each in of(resources, "AWS::CloudWatch::Alarm").items():
        period, periods = number(each["Period"]), number(each["EvaluationPeriods"])
        if period % 60 or period * periods > (604_800 if period >= 3_600 else 86_400):
            yield f"{name}: {periods} periods of {period} s"
        if number(each.get("DatapointsToAlarm", periods)) > periods:
            yield f"{name}: more datapoints than periods"


def alarm_mail(resources: Resources) -> Iterator[str]:
    keys = of(resources, "AWS::KMS::Key")
    for name, topic in of(resources, "AWS::SNS::Topic").items():
        key = topic["KmsMasterKeyId"]
        if isinstance(key, str):
            yield f"{name}: CloudWatch may not use {key}"
        elif key["Ref"] in keys:
            policy = keys[key["Ref"]]["KeyPolicy"]["Statement"]
            if not any(
                each["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
                and {"kms:Decrypt", "kms:GenerateDataKey"} <= set(each["Action"])
                for each in policy
            ):
                yield f"{name}: {key['Ref']} does not let CloudWatch use it"


def log_classes(resources: Resources) -> Iterator[str]:
    for name, each in of(resources, "AWS::Logs::LogGroup").items():
        if not isinstance(each.get("LogGroupClass", ""), str):
            yield f"{name}: its class changes with a parameter"
        named = references(each["LogGroupName"]) - {"AWS::StackName", "AWS::Region", "AWS::AccountId"}
        if named & set(source()["Parameters"]):
            yield f"{name}: its name changes with a parameter"
        if resources[name].get("UpdateReplacePolicy", "Delete") == "Retain":
            yield f"{name}: stays under its name when it is replaced, so it cannot be made again"


def indexes(resources: Resources) -> Iterator[str]:
    for name, each in of(resources, "AWS::DynamoDB::Table").items():
        if len(each.get("GlobalSecondaryIndexes", ())) > 1:
            yield f"{name}: two indexes cannot be made or removed in one update"


def report_jobs(resources: Resources) -> Iterator[str]:
    for name, each in of(resources, "AWS::Glue::Job").items():
        if not 2 <= number(each["NumberOfWorkers"], largest=False) <= number(each["NumberOfWorkers"]) <= 299:
            yield f"{name}: workers"


# -- The table ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """A rule of AWS.

    Attributes:
        says: What AWS documents.
        where: The page.
        check: Yields what breaks it; None if a test elsewhere keeps to it.
        kept: That test, as ``file::name``.
    """

    says: str
    where: str
    check: Check | None = None
    kept: str = ""


RULES = {
    "chains": Rule(
        "about 16 runs of a function in one chain of requests through SQS, SNS, S3 or Lambda, and it is not run again, "
        "unless RecursiveLoop is Allow",
        "/lambda/latest/dg/invocation-recursion.html",
        chains,
    ),
    "visibility": Rule(
        "a queue's visibility timeout is at least its function's timeout, and the batching window on top",
        "/lambda/latest/dg/services-sqs-configure.html",
        visibility,
    ),
    "batches of queues": Rule(
        "2 to 1,000 concurrent runs; FIFO: 10 in a batch, no window; more than 10 in a batch need a window",
        "/lambda/latest/api/API_CreateEventSourceMapping.html",
        queue_batches,
    ),
    "batches of streams": Rule(
        "two readers of a shard; 10,000 records, 300 s, factor 10; five filters of 4,096 characters",
        "/lambda/latest/dg/services-dynamodb-eventsourcemapping.html",
        stream_batches,
    ),
    "rights of event sources": Rule(
        "Lambda reads queues and streams, and sends what it gave up, with the role of the function",
        "/lambda/latest/dg/with-ddb.html",
        may_read,
    ),
    "missing objects": Rule(
        "without s3:ListBucket, GetObject of an object that is not there is a 403",
        "/AmazonS3/latest/API/API_GetObject.html",
        missing_objects,
    ),
    "queues": Rule(
        "messages of 1 MiB, 14 days, 12 hours hidden; dead letters of a FIFO queue are FIFO; a message keeps its age",
        "/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html",
        queues,
    ),
    "functions": Rule(
        "900 s, 128 to 10,240 MB, 4 KB of environment variables; asynchronous events: 2 retries, 60 s to 6 h",
        "/lambda/latest/dg/gettingstarted-limits.html",
        functions,
    ),
    "schedules": Rule(
        "185 retries, 60 s to a day",
        "/scheduler/latest/APIReference/API_RetryPolicy.html",
        schedules,
    ),
    "times of the gateway": Rule(
        "an HTTP API waits 30 s for an integration, a WebSocket API 29 s",
        "/apigateway/latest/developerguide/http-api-quotas.html",
        gateway_times,
    ),
    "size of roles": Rule(
        "10,240 characters of inline policies in a role",
        "/IAM/latest/UserGuide/reference_iam-quotas.html",
        role_sizes,
    ),
    "size of the stack": Rule(
        "500 resources, 200 parameters, 200 outputs, 200 mappings, 1 MB",
        "/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html",
        stack_sizes,
    ),
    "times of alarms": Rule(
        "periods of whole minutes; all of them together a day, or seven days if each is an hour or more",
        "/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html",
        alarm_times,
    ),
    "mail of alarms": Rule(
        "CloudWatch publishes to a topic under a key whose policy lets it, and the key AWS keeps for SNS has none",
        "/sns/latest/dg/sns-key-management.html",
        alarm_mail,
    ),
    "classes of logs": Rule(
        "a log group keeps its class, and a second one of its name cannot be made",
        "/AmazonCloudWatch/latest/logs/CloudWatch_Logs_Log_Classes.html",
        log_classes,
    ),
    "logs of sockets": Rule(
        "a WebSocket API logs with a role that is set once for the account",
        "/apigateway/latest/developerguide/websocket-api-logging.html",
        kept="tests/template/test_first_deployment.py::test_no_setting_of_the_account_is_needed_and_none_is_touched",
    ),
    "indexes": Rule(
        "one index is made or removed in an update of a table",
        "/AWSCloudFormation/latest/TemplateReference/aws-resource-dynamodb-table.html",
        indexes,
    ),
    "workers of the report": Rule(
        "G.1X: 2 to 299 workers",
        "/glue/latest/dg/add-job.html",
        report_jobs,
    ),
    "events of 6 MiB": Rule(
        "a synchronous event has 6 MiB, in which a body is JSON text or base64",
        "/lambda/latest/dg/gettingstarted-limits.html",
        kept="tests/local/test_front_door.py::test_a_request_whose_event_lambda_would_not_take_is_refused",
    ),
    "answers of 6 MB": Rule(
        "a function's answer has 6 MB",
        "/lambda/latest/dg/gettingstarted-limits.html",
        kept="tests/ironmq/api/test_messages.py::test_a_batch_is_answered_as_far_as_it_fits_and_the_rest_goes_back",
    ),
    "keys of tables": Rule(
        "a partition key has 1 to 2,048 bytes, a sort key 1 to 1,024, of a table or of an index",
        "/amazondynamodb/latest/developerguide/Constraints.html",
        kept="tests/simulation/test_long_names.py::test_a_value_that_is_too_long_for_a_key_is_no_fault",
    ),
    "transactions": Rule(
        "100 writes and 4 MB; a token is good for one transaction",
        "/amazondynamodb/latest/APIReference/API_TransactWriteItems.html",
        kept="tests/simulation/test_models.py::test_a_token_is_good_for_one_transaction",
    ),
    "streams of restored tables": Rule(
        "a table that is restored has no stream, no time to live, no protection; a stream it gets is another one",
        "/amazondynamodb/latest/developerguide/pointintimerecovery_howitworks.html",
        kept="tests/stack/test_lost_tables.py::test_a_lost_table_is_put_in_place_and_everything_goes_on",
    ),
    "unreserved concurrency": Rule(
        "100 runs of an account stay unreserved, so a new account, with 10, can reserve none",
        "/lambda/latest/dg/configuration-concurrency.html",
        kept="tests/template/test_first_deployment.py",
    ),
    "permissions of a function URL": Rule(
        "since October 2025 a public function URL needs two",
        "/lambda/latest/dg/urls-auth.html",
        kept="tests/template/test_functions.py"
        "::test_producers_get_a_url_of_ingest_only_on_request_and_anyone_may_call_it",
    ),
}


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
@pytest.mark.parametrize("name", [name for name, each in RULES.items() if each.check])
def test_the_template_keeps_to_a_rule(name: str, deployment: str) -> None:
    check = RULES[name].check
    assert check is not None
    assert list(check(deployed(**DEPLOYMENTS[deployment]))) == []


@pytest.mark.parametrize("name", [name for name, each in RULES.items() if not each.check])
def test_a_rule_that_is_kept_to_elsewhere_has_its_test_there(name: str) -> None:
    file, _, test = RULES[name].kept.partition("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    assert f"def {test}(" in text if test else "def test_" in text


def test_each_rule_names_its_page() -> None:
    for each in RULES.values():
        assert each.where.startswith("/"), f"a page of {DOCS}"
        assert each.where.endswith(".html")


# -- The metrics that alarms watch -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Metric:
    """A metric of AWS's own.

    Attributes:
        counts: Its definition, shortened.
        by: The dimensions that an alarm may name.
        statistic: The one that the page recommends, or that fits a gauge.
        where: The page.
    """

    counts: str
    by: tuple[str, ...]
    statistic: str
    where: str


LAMBDA = "/lambda/latest/dg/monitoring-metrics-types.html"
SQS = "/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html"
EVENTS = "/eventbridge/latest/userguide/eb-monitoring.html"
METRICS: Mapping[tuple[str, str], Metric] = {
    ("AWS/Lambda", "Throttles"): Metric("requests for a run that were refused", ("FunctionName",), "Sum", LAMBDA),
    ("AWS/Lambda", "Invocations"): Metric(
        "runs, failed ones among them, throttled requests not", ("FunctionName",), "Sum", LAMBDA
    ),
    ("AWS/Lambda", "Url5xxCount"): Metric(
        "requests to a function URL that were answered 5xx",
        ("FunctionName",),
        "Sum",
        "/lambda/latest/dg/urls-monitoring.html",
    ),
    ("AWS/ApiGateway", "5xx"): Metric(
        "requests to an HTTP API that were answered 5xx",
        ("ApiId",),
        "Sum",
        "/apigateway/latest/developerguide/http-api-metrics.html",
    ),
    ("AWS/ApiGateway", "ExecutionError"): Metric(
        "calls of an integration of a WebSocket API that failed (IntegrationError: that answered 4xx or 5xx)",
        ("ApiId", "Stage"),
        "Sum",
        "/apigateway/latest/developerguide/apigateway-websocket-api-logging.html",
    ),
    ("AWS/Events", "TriggeredRules"): Metric("rules that ran for an event", ("RuleName",), "Sum", EVENTS),
}
ALARMS = of(deployed(ProducersUrl="true"), "AWS::CloudWatch::Alarm")
OF_AWS = {name: each for name, each in ALARMS.items() if isinstance(each["Namespace"], str)}


@pytest.mark.parametrize("name", OF_AWS)
def test_an_alarm_watches_its_metric_as_that_is_defined(name: str) -> None:
    alarm = OF_AWS[name]
    metric = METRICS[alarm["Namespace"], alarm["MetricName"]]
    by = tuple(each["Name"] for each in alarm.get("Dimensions", ()))
    assert by == (() if name == "FunctionThrottles" else metric.by)  # Lambda sums its metrics over the account, too
    assert alarm["Statistic"] == metric.statistic


def test_every_metric_of_the_table_is_watched() -> None:
    assert {(each["Namespace"], each["MetricName"]) for each in OF_AWS.values()} == METRICS.keys()


def test_what_counts_runs_rings_when_there_are_none_only_where_there_always_are_some() -> None:
    missing = {name for name, each in ALARMS.items() if each["TreatMissingData"] == "breaching"}
    assert missing == {"WakeMissing", "ReportMissing"}


# -- What nobody here can know -----------------------------------------------------------------------------------------

UNVERIFIABLE = {
    "FramesIntegration": "that a WebSocket API passes X-Amz-Invocation-Type: Event on to Lambda. REST APIs do; if not, "
    "acknowledgements are synchronous runs, and one that fails ends a listener",
    "HttpApiLogs": "that an HTTP API delivers its access log to a group of the class INFREQUENT_ACCESS. If not, the "
    "deployment says so: the class is a line of the template",
    "ReportMissing": "that a rule without a target counts in TriggeredRules. If not, ReportMissing rings though the "
    "report succeeds, from the first day on",
    "FunctionThrottles": "that Throttles is also kept for all functions together, as LAMBDA's page says of its metrics "
    "in general. If not, it never rings; that ingest is refused is answered with 503, "
    "which ApiServerErrors counts (at the producers' URL with 429, which has an alarm of its own), and what waits in "
    "queues and streams has its ages",
    "FunctionErrors": "that Lambda's line of a failed run is of level WARN and has type platform.report and a status. "
    "If not, runs that time out or are killed are seen by what waits for them (docs/decisions/cost.md); the others log "
    "a line of ours",
    "DispatchFunctionMessages": "that a stream's batch of 100 needs no batching window. The API reference asks for one "
    "of a second for more than 10, of queues and streams; 100 without a window is Lambda's own default for streams",
    "RecordsFunctionBacklogs": "what CloudFormation does about mappings that pushhub deploy table has replaced",
    "HttpApi": "whether WWW-Authenticate keeps its name (docs/deploy.md)",
}


@pytest.mark.parametrize("name", UNVERIFIABLE)
def test_what_is_hoped_is_hoped_of_something_that_exists(name: str) -> None:
    assert name in deployed()
