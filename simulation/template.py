"""Reads from template.yaml what the simulator deploys: tables, queues, functions with their settings, and their event
sources.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from local.deploy import template as sam

from simulation.dynamodb import Index, Schema
from simulation.sqs import QueueSettings

ROOT = Path(__file__).parents[1]
BASE_URL = "https://hub.example"

PARAMETERS = {"PublicBaseUrl": BASE_URL}
"""Parameters of a stack that the simulator deploys, unless a world says otherwise; the others have their defaults."""


BATCHES = {"BatchSize": "batch", "BatchWindowSeconds": "window_s"}
"""What a world may say of the queues of push and poll, to try other batches than those that are deployed."""


@dataclass(frozen=True)
class QueueEvents:
    """A queue whose messages invoke a function.

    Attributes:
        queue: Its name.
        batch: Maximum number of messages in a batch.
        concurrency: Maximum number of concurrent runs.
        window_s: Seconds for which a batch is gathered.
    """

    queue: str
    batch: int
    concurrency: int
    window_s: int = 0


@dataclass(frozen=True)
class StreamEvents:
    """A table's stream that invokes a function.

    Attributes:
        table: Its name.
        batch: Maximum number of records in a batch.
        window_s: Seconds for which a batch is gathered.
        parallel: Concurrent batches per shard; records of one partition key stay in order.
        filters: Patterns, at least one of which a record must match; none for all records.
    """

    table: str
    batch: int
    window_s: int
    parallel: int
    filters: tuple[Any, ...] = ()

    def takes(self, record: Mapping[str, Any]) -> bool:
        """Whether a stream record goes to the function."""
        return not self.filters or any(_matches(each, record) for each in self.filters)


@dataclass(frozen=True)
class FunctionSettings:
    """A function.

    Attributes:
        name: Name of its folder.
        timeout_s: Seconds that a run may take.
        environ: Its environment variables.
        queues: Queues that invoke it.
        streams: Streams that invoke it.
        chains: Whether it may run in a chain of its own making (``RecursiveLoop: Allow``); Lambda ends others.
        reserved: Concurrent runs that are reserved for it, and its limit; None when it takes of what all others have.
    """

    name: str
    timeout_s: int
    environ: Mapping[str, str]
    queues: tuple[QueueEvents, ...]
    streams: tuple[StreamEvents, ...]
    chains: bool = False
    reserved: int | None = None


_LEFT_OUT = {"PULSED_TABLES", "REPORT_JOB"}
"""Settings without which a function does less: the simulator checks every record against what happened, so it needs no
pulses, whose items and records would make its runs longer, and no report."""


@dataclass(frozen=True)
class Stack:
    """All of it.

    Attributes:
        parameters: What it was deployed with; the functions' roles are made with the same.
    """

    tables: tuple[Schema, ...]
    queues: tuple[QueueSettings, ...]
    functions: tuple[FunctionSettings, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)


class Resolver:
    """Resolves values of the template that use functions like ``Ref`` and ``Fn::If``."""

    def __init__(self, template: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
        self._template = template
        self._resources = template["Resources"]
        declared = {name: each.get("Default", "") for name, each in template["Parameters"].items()}
        self._parameters = {**declared, **{name: value for name, value in parameters.items() if name in declared}}

    def value(self, value: Any) -> Any:
        """A value with nothing left in it that is to be resolved."""
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((function, argument),) = value.items()
            known = getattr(self, f"_{function.removeprefix('Fn::').lower()}", None)
            if function == "Ref" or (function.startswith("Fn::") and known):
                assert known is not None
                return known(argument)
        return {name: self.value(each) for name, each in value.items()}

    def _ref(self, name: str) -> Any:
        if name in self._parameters:
            return self._parameters[name]
        if name in self._resources:
            return named(name, self._resources[name]["Type"])
        return name

    def _getatt(self, argument: Any) -> Any:
        name, _, attribute = argument.partition(".") if isinstance(argument, str) else (argument[0], "", argument[1])
        return f"{BASE_URL}/{name}" if attribute == "ApiEndpoint" else named(name, "")

    def _sub(self, argument: Any) -> Any:
        return argument if isinstance(argument, str) else argument[0]

    def _join(self, argument: Any) -> str:
        between, parts = argument
        return str(between).join(str(self.value(each)) for each in self.value(parts))

    def _if(self, argument: Any) -> Any:
        condition, then, otherwise = argument
        return self.value(then if self.holds({"Condition": condition}) else otherwise)

    def _findinmap(self, argument: Any) -> Any:
        found = self._template["Mappings"]
        for each in argument:
            found = found[str(self.value(each))]
        return found

    def holds(self, condition: Any) -> bool:
        """Whether a condition holds."""
        ((function, argument),) = condition.items()
        if function == "Condition":
            return self.holds(self._template["Conditions"][argument])
        if function == "Fn::Not":
            return not self.holds(argument[0])
        if function in {"Fn::And", "Fn::Or"}:
            return (all if function == "Fn::And" else any)(self.holds(each) for each in argument)
        if function != "Fn::Equals":
            raise ValueError(f"unknown condition {function}")
        left, right = (str(self.value(each)) for each in argument)
        return left == right


def named(resource: str, kind: str) -> str:
    """The simulator's name for a resource of the template: the URL of a queue, otherwise the logical id."""
    return f"https://sqs.example/{resource}" if kind == "AWS::SQS::Queue" else resource


@cache
def template() -> dict[str, Any]:
    """What is deployed, nested stacks' resources too."""
    return sam.as_one(sam.load(ROOT / "template.yaml"), ROOT)


def with_parameters(given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a simulated stack, of which some are given."""
    return {**PARAMETERS, **given}


def stack(settings: Mapping[str, str] | None = None, /, **parameters: Any) -> Stack:
    """The stack that the template describes with these parameters.

    Args:
        settings: Environment variables that have these values in place of the template's, wherever a function has them.
    """
    source = template()
    batches: dict[str, Any] = {BATCHES[name]: int(value) for name, value in parameters.items() if name in BATCHES}
    resolver = Resolver(source, with_parameters(parameters))
    resources = {name: (each["Type"], each) for name, each in source["Resources"].items()}
    tables, queues, functions = [], [], []
    for name, (kind, resource) in resources.items():
        properties = resource.get("Properties", {})
        if kind == "AWS::DynamoDB::Table":
            tables.append(_table(name, resolver.value(properties)))
        elif kind == "AWS::SQS::Queue":
            queues.append(_queue(name, resolver.value(properties)))
        elif kind == "AWS::Serverless::Function" and str(properties.get("CodeUri", "")).startswith("functions/"):
            function = _function(properties, resolver, source.get("Globals", {}), _written_out(name, resolver))
            if function.name in ("push", "poll"):
                function = replace(function, queues=tuple(replace(each, **batches) for each in function.queues))
            own = {key: value for key, value in (settings or {}).items() if key in function.environ}
            functions.append(replace(function, environ={**function.environ, **own}))
    return Stack(tuple(tables), tuple(queues), tuple(functions), parameters)


def _written_out(function: str, resolver: Resolver) -> list[QueueEvents]:
    """Queues that invoke a function by mappings of their own in the template."""
    mappings = (
        resolver.value(each["Properties"])
        for each in template()["Resources"].values()
        if each["Type"] == "AWS::Lambda::EventSourceMapping"
    )
    # What is consumed from elsewhere is nothing by default.
    queues = (each for each in mappings if each["FunctionName"] == function and each["EventSourceArn"])
    return [_queue_events(each, each["EventSourceArn"]) for each in queues]


def _queue_events(settings: Mapping[str, Any], queue: str) -> QueueEvents:
    scaling = settings.get("ScalingConfig", {}).get("MaximumConcurrency", 1000)
    window_s = int(settings.get("MaximumBatchingWindowInSeconds", 0))
    return QueueEvents(queue, int(settings["BatchSize"]), int(scaling), window_s)


def _table(name: str, properties: Mapping[str, Any]) -> Schema:
    indexes = []
    for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        for each in properties.get(kind, ()):
            partition, sort = (key["AttributeName"] for key in each["KeySchema"])
            projection = each["Projection"]
            attributes = (
                None if projection["ProjectionType"] == "ALL" else tuple(projection.get("NonKeyAttributes", ()))
            )
            indexes.append(Index(each["IndexName"], partition, sort, attributes, local=kind.startswith("Local")))
    return Schema(
        name,
        indexes=tuple(indexes),
        streams="StreamSpecification" in properties,
        ttl=properties.get("TimeToLiveSpecification", {}).get("AttributeName"),
    )


def _queue(name: str, properties: Mapping[str, Any]) -> QueueSettings:
    redrive = properties.get("RedrivePolicy", {})
    return QueueSettings(
        name,
        visibility_s=int(properties.get("VisibilityTimeout", 30)),
        fifo=bool(properties.get("FifoQueue", False)),
        dead_letters=redrive.get("deadLetterTargetArn", ""),
        receives=int(redrive.get("maxReceiveCount", 0)),
    )


def _function(
    properties: Mapping[str, Any], resolver: Resolver, common: Mapping[str, Any], queues: list[QueueEvents]
) -> FunctionSettings:
    name = str(properties["CodeUri"]).removeprefix("functions/").rstrip("/")
    given = {
        **common.get("Function", {}).get("Environment", {}).get("Variables", {}),
        **properties.get("Environment", {}).get("Variables", {}),
    }
    environ = {key: str(resolver.value(value)) for key, value in given.items() if key not in _LEFT_OUT}
    streams = []
    for event in properties.get("Events", {}).values():
        settings = resolver.value(event["Properties"])
        if event["Type"] == "SQS":
            queues.append(_queue_events(settings, settings["Queue"]))
        elif event["Type"] == "DynamoDB":
            streams.append(
                StreamEvents(
                    table=settings["Stream"],
                    batch=int(settings["BatchSize"]),
                    window_s=int(settings.get("MaximumBatchingWindowInSeconds", 0)),
                    parallel=int(settings.get("ParallelizationFactor", 1)),
                    filters=tuple(
                        json.loads(each["Pattern"]) for each in settings.get("FilterCriteria", {}).get("Filters", ())
                    ),
                )
            )
        elif event["Type"] != "ScheduleV2":
            # What runs by the clock is the world's.
            raise ValueError(f"{name} is called by {event['Type']}, which the simulator does not have")
    timeout = properties.get("Timeout", common.get("Function", {}).get("Timeout", 3))
    chains = properties.get("RecursiveLoop", "Terminate") == "Allow"
    limit = resolver.value(properties.get("ReservedConcurrentExecutions"))
    reserved = None if limit in (None, "AWS::NoValue") else int(limit)
    return FunctionSettings(
        name, int(resolver.value(timeout)), environ, tuple(queues), tuple(streams), chains, reserved
    )


def _matches(pattern: Any, value: Any) -> bool:
    """Event filtering: every name of a pattern exists, and each list of a pattern contains the value or allows it."""
    if isinstance(pattern, list):
        return any(_allows(each, value) for each in pattern)
    return isinstance(value, dict) and all(
        name in value and _matches(each, value[name]) for name, each in pattern.items()
    )


def _allows(condition: Any, value: Any) -> bool:
    """One condition for a value: the value itself, or ``{"anything-but": [...]}``."""
    if isinstance(condition, str):
        return bool(value == condition)
    if isinstance(condition, dict) and condition.keys() == {"anything-but"}:
        return value not in condition["anything-but"]
    raise ValueError("a filter of a kind that the simulator does not have")
