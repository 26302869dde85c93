"""Starts further runs of functions, on Lambda."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pushhub.base import json_text
from pushhub.cloud.calls import aws_call

if TYPE_CHECKING:
    from pushhub.cloud.clients import Clients


def start_run(clients: Clients, event: Mapping[str, object], *, function: str = "") -> None:
    """Start a run of a function, which does not wait for it.

    Args:
        clients: Its Lambda client is created when a run is first started, which is rare.
        function: Name of the function; empty for the current one, whose name Lambda provides in the environment.
    """
    with aws_call("lambda:Invoke"):
        clients.of("lambda").invoke(
            FunctionName=function or os.environ["AWS_LAMBDA_FUNCTION_NAME"],
            InvocationType="Event",
            Payload=json_text.write(event).encode(),
        )


class LambdaRuns:
    """Implements :class:`pushhub.engine.waiting.ports.ShardRuns`.

    Args:
        clients: See :func:`start_run`.
    """

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def start(self, shard: int) -> None:
        start_run(self._clients, {"shard": shard})
