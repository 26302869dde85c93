"""Runs untrusted regular expressions in a separate process that can be killed: Python's regex engine cannot be
interrupted.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence

from pushhub.base.errors import Unavailable
from pushhub.hub.model.filters import Asked, PatternTimeout

MATCH_SECONDS = 0.1
"""CPU time that the expressions of a mapping may take together, over all their texts.

The process measures it itself, once it has started: neither its start nor a busy machine is the expression's fault.
"""

ANSWER_SECONDS = 20
"""How long to wait for the answer, seconds. If none comes, the machine is too slow, and the message is retried."""

MAX_TEXT = 10_000
"""How much of a text is examined, in characters."""

_PROGRAM = """
import json, re, signal, sys
seconds, asked = json.load(sys.stdin)
# Nobody handles the signal, so it ends the process, whatever the engine is doing.
signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
for pattern, texts in asked:
    print(json.dumps([re.search(pattern, text) is not None for text in texts]), flush=True)
"""


def matches(asked: Sequence[Asked]) -> list[list[bool]]:
    """Whether each pattern is found in each of its texts.

    Raises:
        PatternTimeout: They took too long; names the one that was being matched.
        Unavailable: The process could not be run, or not in time.
    """
    said = json.dumps([MATCH_SECONDS, [(pattern, [text[:MAX_TEXT] for text in texts]) for pattern, texts in asked]])
    # -I and -S: ignore the environment and installed packages, which also makes the start fast.
    command = [sys.executable, "-I", "-S", "-c", _PROGRAM]
    try:
        run = subprocess.run(command, input=said, capture_output=True, text=True, timeout=ANSWER_SECONDS, check=True)  # noqa: S603 (a fixed program; the pattern is only its input)
    except subprocess.CalledProcessError as error:
        if error.returncode == -signal.SIGVTALRM:
            done = error.stdout.count("\n")
            raise PatternTimeout(asked[min(done, len(asked) - 1)][0]) from error
        raise Unavailable("matching a pattern") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable("matching a pattern") from error
    return [json.loads(line) for line in run.stdout.splitlines()]
