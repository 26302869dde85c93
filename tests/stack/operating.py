"""Commands of an operator of a running stack.

They run in this process: in one of its own, each would first import the SDK, which takes longer than what it does.
(That ``python -m cli`` is a command of the system: test_cli.py.)
"""

from __future__ import annotations

import io
import json
import os
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from cli.__main__ import run
from tests.stack.running import RunningStack

__all__ = ["Ran", "environment_of", "pushhub", "ran"]


@dataclass(frozen=True)
class Ran:
    """A command that has ended.

    Attributes:
        code: Its exit code.
        printed: What it printed.
        errors: What it said about that.
    """

    code: int
    printed: str
    errors: str


def environment_of(stack: RunningStack) -> dict[str, str]:
    """What points the command line to a stack in an unusual place."""
    place = stack.place
    return {"PUSHHUB_HOME": str(place.home), "PUSHHUB_PORT": str(place.port), "PUSHHUB_AWS_PORT": str(place.aws_port)}


def ran(stack: RunningStack, *words: str) -> Ran:
    """Run a command, however it ends."""
    printed, reported = io.StringIO(), io.StringIO()
    with patch.dict(os.environ, environment_of(stack)), redirect_stdout(printed), redirect_stderr(reported):
        code = run([*words])
    return Ran(code, printed.getvalue(), reported.getvalue())


def pushhub(stack: RunningStack, *words: str) -> Any:
    """Run a command that succeeds; what it says."""
    done = ran(stack, "--json", *words)
    assert done.code == 0, f"{done.errors}\n{done.printed}"
    return json.loads(done.printed)
