"""A deployed stack as operators' commands find it: what CloudFormation says of it is told here, all else is moto's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import botocore.client
import pytest

Answer = Callable[[str, dict[str, Any], Callable[[], Any]], Any]
"""Answers an operation with its parameters; the last argument makes the call."""


def described(outputs: Mapping[str, str], parameters: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """What CloudFormation says of one stack; moto's needs more packages than it is worth."""
    named = [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()]
    chosen = [{"ParameterKey": key, "ParameterValue": value} for key, value in (parameters or {}).items()]
    return {"Stacks": [{"Outputs": named, "Parameters": chosen, **more}]}


def answering(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> None:
    """Let calls of AWS be answered so from now on; an earlier answer is what the call is made with."""
    below = botocore.client.BaseClient._make_api_call  # type: ignore[attr-defined]

    def answered(client: Any, operation: str, given: dict[str, Any]) -> Any:
        return answer(operation, given, lambda: below(client, operation, given))

    monkeypatch.setattr(botocore.client.BaseClient, "_make_api_call", answered)


def with_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names a region and whoever types."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
