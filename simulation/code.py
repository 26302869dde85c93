"""A model of the function that runs strangers' code. The code of worlds does no harm, so the engine itself runs it, in
this process and without limits of time, which on a busy machine would make two runs differ. What the function's own
process does with other code is drawn: a run takes too long, or is ended with its process.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Any

from pushhub.scripting.child import Runner, timed_out
from pushhub.scripting.sandbox import MOST_CHARACTERS, read_result
from simulation.scheduler import SECOND

NEVER_S = 3_600.0
"""A time limit that no code of a world meets, seconds of CPU."""

FAILS = 0.08
"""How often a run fails."""

TAKES, TOO_LONG = 5_000, SECOND
"""How long a run takes, and one that is ended for it, microseconds."""


class CodeRuns:
    """The function.

    Args:
        random: Draws what goes wrong.
    """

    def __init__(self, random: Random) -> None:
        self._random = random

    def answer(self, payload: bytes) -> tuple[dict[str, Any], int]:
        """Lambda's answer to a call that is waited for, and how long it takes."""
        if self._random.random() < FAILS:
            if self._random.random() < 0.5:
                return _answered(timed_out()), TOO_LONG
            return {**_answered({"errorMessage": "exit"}), "FunctionError": "Unhandled"}, TAKES
        return _answered(read_result(_result(payload))), TAKES


def _answered(said: Mapping[str, Any]) -> dict[str, Any]:
    return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(said).encode())}


@cache
def _result(payload: bytes) -> bytes:
    """What the engine says of a request, in a context that nothing has used."""
    request = {**json.loads(payload), "most": MOST_CHARACTERS}
    return Runner(NEVER_S).run(request).encode(errors="surrogatepass")
