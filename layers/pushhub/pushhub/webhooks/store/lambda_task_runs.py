"""Starts runs that work on background tasks, on Lambda."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.engine.store.lambda_runs import start_run

if TYPE_CHECKING:
    from pushhub.cloud.clients import Clients


class LambdaTaskRuns:
    """Implements :class:`pushhub.webhooks.resending.tasks.TaskRuns`.

    Args:
        clients: See :func:`pushhub.engine.store.lambda_runs.start_run`.
        function: The function that works on tasks; empty when it is the current one.
    """

    def __init__(self, clients: Clients, function: str) -> None:
        self._clients = clients
        self._function = function

    def start(self, project_id: str) -> None:
        start_run(self._clients, {"project": project_id}, function=self._function)
