"""The template's own numbers: what the documents promise of queues, functions and their triggers, and what AWS demands.

A number is judged by what it is for, and not by itself: one that may as well be another, within what is promised, is
right. Sources: docs/flow-control.md, docs/decisions/acceptance.md, docs/records.md; the developer guides of SQS and
Lambda.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from simulation.promises.judgement import Violation
from simulation.template import Resolver, with_parameters

Json = Mapping[str, Any]

KEPT_S = 1_209_600
""""Queues keep 14 days", and what was given up waits as long for a person."""

HALF_A_DAY_S = 43_200
"""What comes back for so long while Lambda throttles is not set aside."""

SHORT_TRANSACTION_S = 15
"""The SDK's four tries of a write, with their waits."""

DEAD_RUN_S, LONG_RUN_S = 120, 480
"""What a run had in hand that died is tried again within two minutes; what a long one had, within eight."""

LONG_TIME_LIMIT_S = 180
"""A service of the hub protocol has so long, and what is begun in a run of poll is not cut short."""

SHORT_TIME_LIMIT_S = 45
"""Attempts that may take so long are begun in a run of push."""

GATEWAY_S, LONG_POLL_S = 30, 28
"""API Gateway waits no longer; a consumer may wait so long."""

OUTAGE_S = 3_600
"""A service that is down for an hour sets nothing aside."""

DAY_S = 86_400
LONGEST_MESSAGE_D, LONGEST_WEBHOOK_D = 30 + 7 + 1, 365 + 90
"""A message lives 30 days from a delay of 7, and its statuses one day more; a webhook 90 days from a year ahead."""

WORKERS = {"push": DEAD_RUN_S, "poll": LONG_RUN_S}
MINUTELY, HOURLY = {"wake", "notify"}, {"sweep"}
OTHER_NUMBER = "another number than is deployed for"


def deployed(template: Json) -> Iterator[Violation]:
    """What of a template is not as promised."""
    resolver = Resolver(template, with_parameters({}))
    resources: dict[str, Json] = {}
    for name, each in template["Resources"].items():
        if each["Type"] in KINDS:
            resources[name] = {"Type": each["Type"], **resolver.value(each.get("Properties", {}))}
    judge = _Judge(resources, template.get("Globals", {}))
    for about, detail, kept in judge.facts():
        if not kept:
            yield Violation(OTHER_NUMBER, about, detail)


KINDS = {
    "AWS::SQS::Queue",
    "AWS::Serverless::Function",
    "AWS::Lambda::EventSourceMapping",
    "AWS::DynamoDB::Table",
    "AWS::S3::Bucket",
}

Fact = tuple[str, str, bool]


class _Judge:
    def __init__(self, resources: Mapping[str, Json], common: Json) -> None:
        self._of = resources
        self._common = common.get("Function", {})

    def _all(self, kind: str) -> Iterator[tuple[str, Json]]:
        return ((name, each) for name, each in self._of.items() if each["Type"] == kind)

    def facts(self) -> Iterator[Fact]:
        """What is judged: about what, in words, and whether it holds."""
        functions = {
            str(each["CodeUri"]).removeprefix("functions/").rstrip("/"): each
            for _, each in self._all("AWS::Serverless::Function")
            if str(each.get("CodeUri", "")).startswith("functions/")
        }
        logical = dict(self._all("AWS::Serverless::Function"))
        yield from self._queues()
        for name, function in functions.items():
            timeout = int(function.get("Timeout", self._common.get("Timeout", 3)))
            yield from self._function(name, function, timeout)
            for event in function.get("Events", {}).values():
                yield from self._event(name, timeout, event["Type"], event["Properties"])
        for name, mapping in self._all("AWS::Lambda::EventSourceMapping"):
            of = logical.get(str(mapping["FunctionName"]))
            if not mapping["EventSourceArn"]:
                # Nothing is consumed from elsewhere.
                continue
            if of is not None:
                folder = str(of["CodeUri"]).removeprefix("functions/").rstrip("/")
                timeout = int(of.get("Timeout", self._common.get("Timeout", 3)))
                source = str(mapping["EventSourceArn"])
                queue = self._of.get(source.rpartition("/")[2], {})
                kind = "SQS" if queue.get("Type") == "AWS::SQS::Queue" else "DynamoDB"
                yield from self._event(folder, timeout, kind, {"Queue": source, **mapping})
            else:
                yield name, "its function is not deployed", False
        yield from self._kept()

    def _queues(self) -> Iterator[Fact]:
        for name, queue in self._all("AWS::SQS::Queue"):
            kept = int(queue.get("MessageRetentionPeriod", 345_600))
            yield name, f"keeps messages {kept} s", kept == KEPT_S
            redrive = queue.get("RedrivePolicy")
            if redrive is None:
                continue
            receives = int(redrive["maxReceiveCount"])
            yield name, f"sets messages aside after {receives} receives", receives <= 1_000
            target = str(redrive["deadLetterTargetArn"]).rpartition("/")[2]
            yield name, f"has dead letters in {target}", target in self._of

    def _function(self, name: str, function: Json, timeout: int) -> Iterator[Fact]:
        if name in {"ingest", "control", "consumers"}:
            least = LONG_POLL_S if name == "control" else SHORT_TRANSACTION_S
            yield name, f"runs {timeout} s at most", least < timeout < GATEWAY_S
        if name == "push":
            yield name, f"runs {timeout} s at most", timeout > SHORT_TIME_LIMIT_S
        if name == "poll":
            yield name, f"runs {timeout} s at most", timeout > 2 * LONG_TIME_LIMIT_S
        if name in WORKERS:
            yield name, "is not run again in a chain of its own", function.get("RecursiveLoop") == "Allow"
        if name in MINUTELY:
            # The next run begins a minute later: two at a time are for failures.
            yield name, f"runs {timeout} s at most", timeout <= 60

    def _event(self, name: str, timeout: int, kind: str, event: Json) -> Iterator[Fact]:
        if kind == "SQS":
            yield from self._from_queue(name, timeout, event)
        elif kind == "DynamoDB":
            yield from self._from_stream(name, event)
        elif kind == "ScheduleV2":
            rate = event["ScheduleExpression"]
            if name in MINUTELY:
                yield name, f"runs at {rate}", rate == "rate(1 minute)"
            if name in HOURLY:
                yield name, f"runs at {rate}", rate == "rate(1 hour)"

    def _from_queue(self, name: str, timeout: int, event: Json) -> Iterator[Fact]:
        source = str(event["Queue"]).rpartition("/")[2]
        queue = self._of[source]
        hidden = int(queue.get("VisibilityTimeout", 30))
        batch, window = int(event.get("BatchSize", 10)), int(event.get("MaximumBatchingWindowInSeconds", 0))
        # Lambda takes no mapping of a queue that hides messages for less than a run may last, nor larger batches.
        yield source, f"hides messages {hidden} s, and {name} runs {timeout} s", hidden >= timeout + window
        yield source, f"has batches of {batch} for {name}", 1 < batch <= (10 if not window else 10_000)
        parts = event.get("FunctionResponseTypes", [])
        yield source, "makes no more of a batch come again than failed", "ReportBatchItemFailures" in parts
        yield source, "has dead letters", "RedrivePolicy" in queue
        within = WORKERS.get(name, DEAD_RUN_S)
        yield source, f"hides messages {hidden} s after {name} died", hidden + window <= within
        if name in WORKERS:
            receives = int(queue["RedrivePolicy"]["maxReceiveCount"])
            lasts = receives * hidden
            yield source, f"sets aside after {receives} receives, {lasts} s", HALF_A_DAY_S <= lasts <= 2 * DAY_S
        elif "RedrivePolicy" in queue:
            receives = int(queue["RedrivePolicy"]["maxReceiveCount"])
            yield source, f"sets aside after {receives} receives", receives * hidden >= OUTAGE_S

    def _from_stream(self, name: str, event: Json) -> Iterator[Fact]:
        about = f"{name}'s stream"
        # What is stored is queued: a batch is tried until its records are gone, and what cannot be handled is found.
        yield about, "begins with the oldest record", event["StartingPosition"] == "TRIM_HORIZON"
        yield about, "is retried without end", int(event.get("MaximumRetryAttempts", -1)) == -1
        yield about, "leaves nothing out for its age", int(event.get("MaximumRecordAgeInSeconds", -1)) == -1
        yield about, "is bisected", event.get("BisectBatchOnFunctionError") is True
        window = int(event.get("MaximumBatchingWindowInSeconds", 0))
        if name == "dispatch":
            yield about, f"waits {window} s for a batch", window == 0
        batch = int(event.get("BatchSize", 100))
        yield about, f"has batches of {batch}, gathered for {window} s", 1 < batch <= 10_000 and window <= 300

    def _kept(self) -> Iterator[Fact]:
        for name, table in self._all("AWS::DynamoDB::Table"):
            if "StreamSpecification" in table:
                view = table["StreamSpecification"]["StreamViewType"]
                yield name, f"has a stream of {view}", view == "NEW_AND_OLD_IMAGES"
        for name, bucket in self._all("AWS::S3::Bucket"):
            for rule in bucket.get("LifecycleConfiguration", {}).get("Rules", ()):
                lasts = rule.get("ExpirationInDays")
                least = {"bodies/": LONGEST_MESSAGE_D, "webhooks/": LONGEST_WEBHOOK_D}.get(rule.get("Prefix", ""))
                if least is not None and name == "BodiesBucket":
                    yield name, f"keeps {rule['Prefix']} {lasts} days", lasts is not None and int(lasts) >= least


__all__ = ["OTHER_NUMBER", "deployed"]
