"""Starts further runs of the current function, on Lambda."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from pushhub.cloud.calls import aws_call

if TYPE_CHECKING:
    from pushhub.cloud.clients import Clients


class LambdaRuns:
    """Implements :class:`pushhub.engine.ports.ShardRuns`.

    Args:
        clients: Its Lambda client is created when a run is first started, which is rare.
    """

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def start(self, shard: int) -> None:
        """Lambda provides the function's name in the environment."""
        with aws_call("lambda:Invoke"):
            self._clients.of("lambda").invoke(
                FunctionName=os.environ["AWS_LAMBDA_FUNCTION_NAME"],
                InvocationType="Event",
                Payload=json.dumps({"shard": shard}).encode(),
            )
