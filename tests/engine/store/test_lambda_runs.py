"""Runs that functions start: which function, and with what."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from pushhub.base.errors import Unavailable
from pushhub.cloud.clients import Clients
from pushhub.engine.store.lambda_runs import LambdaRuns
from pushhub.webhooks.store.lambda_task_runs import LambdaTaskRuns


class Lambda:
    """Notes what is invoked, or refuses it."""

    def __init__(self) -> None:
        self.invoked: list[tuple[str, str, Any]] = []
        self.refuses = False

    def of(self, service: str) -> Lambda:
        assert service == "lambda"
        return self

    def invoke(self, *, FunctionName: str, InvocationType: str, Payload: bytes) -> None:  # noqa: N803 (AWS's names)
        if self.refuses:
            raise ClientError({"Error": {"Code": "TooManyRequestsException", "Message": "x"}}, "Invoke")
        self.invoked.append((FunctionName, InvocationType, json.loads(Payload)))


def test_runs_are_started_asynchronously_of_this_function_or_the_one_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "this")
    called = Lambda()
    clients = cast("Clients", called)
    LambdaRuns(clients).start(7)
    LambdaTaskRuns(clients, "").start("p")
    LambdaTaskRuns(clients, "wake").start("p")
    assert called.invoked == [
        ("this", "Event", {"shard": 7}),
        ("this", "Event", {"project": "p"}),
        ("wake", "Event", {"project": "p"}),
    ]
    called.refuses = True
    with pytest.raises(Unavailable):
        LambdaTaskRuns(clients, "wake").start("p")
