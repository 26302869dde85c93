"""Structured logs and metrics with Powertools, behind the :class:`pushhub.base.ports.Telemetry` port.

Ids are log fields, never metric dimensions: each distinct set of dimensions is billed as a metric.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections import Counter
from threading import Lock
from typing import Any, Final

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

_as_line = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=str).encode

logger = Logger(location=None, json_serializer=_as_line)
"""The only logger, for errors; its service name and level come from Powertools' own environment variables."""

OFTEN: Final = frozenset({"attempt"})
"""Events of which there is one for each message at least, without the id of their run: the log stream, which has one
run at a time, leads to it (docs/decisions/cost.md)."""

TOGETHER: Final = {
    # Faults in the hub itself.
    "HubFaults": frozenset(
        {
            *("WorkOrdersPoisoned", "PushFaults", "StreamRecordsPoisoned", "RecordsQuarantined"),
            *("DeliveriesSwept", "SweepsUnfinished", "WakesPoisoned", "SpansNotPosted", "ItemsUnreadable"),
            "ReportFailed",
        }
    ),
    # Work that is taken up later than it should be.
    "WorkLate": frozenset(
        {
            *("OrdersLate", "WakesLate", "DispatchBehind", "RecordsBehind"),
            *("DeliveriesWokenLate", "QueueUnread"),
        }
    ),
    # Calls of AWS that fail even when they are repeated.
    "CallsFailing": frozenset({"CallsFailed", "LooksFailed", "AcknowledgementsFailed"}),
}
"""Metrics that are also counted together, of all functions, as one metric of the service ``hub``, and which: one alarm
watches them all (docs/decisions/cost.md)."""

# Debug logs of third-party loggers (boto3, urllib3) would contain whole requests, including tokens.
logging.getLogger("botocore").setLevel(logging.WARNING)
logging.getLogger("urllib3").setLevel(logging.ERROR)


class PowertoolsTelemetry:
    """Writes wide events to the log; collects counts during an invocation and writes them as one EMF line in
    :meth:`flush`.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = Lock()
        self._request_id = ""
        # The template sets a name per stack, so that the metrics of two hubs in an account stay separate.
        # Functions with the same name for their metrics share those, and their alarms.
        self._metrics = AmazonCloudWatchEMFProvider(
            namespace=os.environ.get("POWERTOOLS_METRICS_NAMESPACE", "Pushhub"),
            service=os.environ.get("METRICS_SERVICE"),
        )
        self._of_hub = AmazonCloudWatchEMFProvider(namespace=self._metrics.namespace, service="hub")

    def start(self, request_id: str) -> None:
        """Put a run's id on the lines that follow."""
        self._request_id = request_id
        logger.append_keys(request_id=request_id)

    def event(self, name: str, /, **fields: object) -> None:
        """One structured log line; fields without information (None, empty, False) are left out.

        So are its time and function, which CloudWatch has for each line, and its level, which is INFO for a line
        without one: log bytes are one of the larger items on the bill.
        """
        event: dict[str, Any] = {"message": name}
        event |= {key: value for key, value in fields.items() if value or type(value) is int}
        if name not in OFTEN and self._request_id:
            event["request_id"] = self._request_id
        with self._lock:
            sys.stdout.write(_as_line(event) + "\n")

    def count(self, metric: str, value: int = 1) -> None:
        """Add to a metric; written when the invocation ends."""
        with self._lock:
            self._counts[metric] += value

    def flush(self) -> None:
        """Write the counts of this invocation, if there are any."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        for metric, value in counts.items():
            self._metrics.add_metric(name=metric, unit=MetricUnit.Count, value=value)
        if counts:
            self._metrics.flush_metrics()
        of_hub = {name: sum(counts[each] for each in own) for name, own in TOGETHER.items()}
        for metric, value in of_hub.items():
            if value:
                self._of_hub.add_metric(name=metric, unit=MetricUnit.Count, value=value)
        if any(of_hub.values()):
            self._of_hub.flush_metrics()


telemetry = PowertoolsTelemetry()
"""The only telemetry of this execution environment."""
