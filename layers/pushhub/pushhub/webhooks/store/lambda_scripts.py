"""Runs the code of endpoints, on Lambda."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pushhub.base import json_text
from pushhub.cloud.calls import aws_call

if TYPE_CHECKING:
    from pushhub.cloud.clients import Clients


MOST_BYTES = 6 * 1024 * 1024
"""The most that a function can be asked that is waited for. A payload that is no JSON takes up to seven times its
bytes, as its control characters are escaped twice.
"""


class LambdaScripts:
    """Implements :class:`pushhub.webhooks.ports.Scripts`.

    Args:
        clients: Its Lambda client is made when code is first run.
        function: The function that runs code.
    """

    def __init__(self, clients: Clients, function: str) -> None:
        self._clients = clients
        self._function = function

    def run(self, request: Mapping[str, object]) -> Mapping[str, Any]:
        asked = json_text.write(request).encode(errors="backslashreplace")
        if len(asked) > MOST_BYTES:
            # Lambda would refuse it at each try, as if it was the hub's own fault: the message would never fail.
            return {"error": "input", "message": f"The payload takes more than {MOST_BYTES} bytes as JSON in JSON"}
        with aws_call("lambda:Invoke"):
            answer = self._clients.of("lambda").invoke(FunctionName=self._function, Payload=asked)
            content = answer["Payload"].read()
        if answer.get("FunctionError"):
            # The run's own fault or not: it is one failed try of this message, and not of everybody's.
            return {"error": "crash", "message": "it ended the function that ran it"}
        found = json_text.stored(content)
        return found if isinstance(found, dict) else {}
