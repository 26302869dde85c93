"""Structured logs and metrics with Powertools, behind the :class:`pushhub.base.ports.Telemetry` port.

Ids are log fields, never metric dimensions: each distinct set of dimensions is billed as a metric.
"""

from __future__ import annotations

import functools
import json
import logging
import os
from collections import Counter
from threading import Lock
from typing import Any

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

logger = Logger(
    location=None,
    json_serializer=functools.partial(json.dumps, separators=(",", ":"), ensure_ascii=False, default=str),
)
"""The only logger; its service name and level come from Powertools' own environment variables.

Its output is compact because log bytes are one of the larger items on the bill.
"""

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
        # The template sets a name per stack, so that the metrics of two hubs in an account stay separate.
        self._metrics = AmazonCloudWatchEMFProvider(namespace=os.environ.get("POWERTOOLS_METRICS_NAMESPACE", "Pushhub"))

    def event(self, name: str, /, **fields: object) -> None:
        """One structured log line; fields without information (None, empty, False) are left out."""
        told: dict[str, Any] = {key: value for key, value in fields.items() if value or type(value) is int}
        logger.info(name, **told)

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


telemetry = PowertoolsTelemetry()
"""The only telemetry of this execution environment."""
