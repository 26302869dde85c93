"""Strangers' code, run at once in this process: as the tests say, instead of by an engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pushhub.base.errors import Unavailable


class FakeScripts:
    """Implements :class:`pushhub.webhooks.ports.Scripts`.

    Attributes:
        asked: Every request.
        does: What becomes of a request's input; what is given back unless a test says otherwise.
        failing: Whether the next runs cannot be made.
    """

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.does: Callable[[dict[str, Any]], Mapping[str, Any]] = as_it_was
        self.failing = False

    def run(self, request: Mapping[str, object]) -> Mapping[str, Any]:
        if self.failing:
            raise Unavailable("lambda:Invoke", "TooManyRequestsException")
        # What cannot be sent to the function cannot be asked of this one, either.
        asked = json.loads(json.dumps(request))
        self.asked.append(asked)
        return self.does({**asked, "input": json.loads(asked["input"])})


def as_it_was(request: dict[str, Any]) -> Mapping[str, Any]:
    """What a handler does that returns what it is given."""
    if request["answers"] == "object":
        return {"result": {"format": "jsonl", "parts": [json.dumps(each) for each in request["input"]["events"]]}}
    if request["answers"] == "records":
        return {"result": {"format": "raw", "parts": [json.dumps(each) for each in request["input"]["events"]]}}
    if request["answers"] != "webhook":
        payload = {"json": json.dumps(request["input"]["events"][0]["payload"])}
        return {"result": {"payload": payload}}
    given = request["input"]
    return {"result": {"method": "POST", "url": given["url"], "payload": {"json": json.dumps(given["payload"])}}}
