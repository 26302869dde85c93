"""Checks answers against the OpenAPI document."""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema_rs
from tests.web.protocols import Answer

from pushhub.runtime.documentation import describe


@cache
def _operations() -> dict[str, Any]:
    return {each["operationId"]: each for methods in describe()["paths"].values() for each in methods.values()}


@cache
def _validator(name: str, status: str, content_type: str) -> Any:
    schema = _operations()[name]["responses"][status]["content"][content_type]["schema"]
    return jsonschema_rs.validator_for(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "allOf": [schema],
            "components": describe()["components"],
        }
    )


def violation(name: str, answer: Answer) -> str | None:
    """The difference between an answer to a route and its description (status, content type, shape); None if there is
    none.
    """
    response = _operations()[name]["responses"].get(str(answer.status))
    if response is None:
        return f"{name}: the status {answer.status} is not described"
    described = response.get("content", {})
    if not described:
        return None if answer.body is None else f"{name}: no body is described"
    content_type = answer.headers.get("Content-Type", "application/json")
    if content_type not in described:
        return f"{name}: the content type {content_type} is not described"
    wrong = next(_validator(name, str(answer.status), content_type).iter_errors(answer.body), None)
    return f"{name}: {answer.status}: {wrong.message} at {list(wrong.instance_path)}" if wrong else None
