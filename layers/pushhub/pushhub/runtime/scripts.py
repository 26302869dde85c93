"""The transform function's entry point: code in, its result out. It has no settings and no rights."""

from __future__ import annotations

from typing import Any

from pushhub.scripting.sandbox import Sandbox

_sandbox = Sandbox()


def run(event: dict[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG001 (Lambda passes both)
    """Run what a request asks for.

    Args:
        event: See :meth:`pushhub.scripting.sandbox.Sandbox.run`.
    """
    return _sandbox.run(event)
