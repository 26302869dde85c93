"""Work as Python counts it, for tests of code that counts its own steps: the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def effort(work: Callable[[], object], *, within: tuple[str, ...] = ("pushhub",)) -> int:
    """How many instructions Python runs in the hub's code to do some work.

    Args:
        work: The work.
        within: Parts of the paths of the files whose instructions are counted.

    What it does within a single instruction, such as comparing two long texts, is not seen.
    """
    count = 0

    def instruction(_: FrameType, event: str, __: Any) -> Any:
        nonlocal count
        count += event == "opcode"
        return instruction

    def call(frame: FrameType, event: str, __: Any) -> Any:
        del event
        if not any(each in frame.f_code.co_filename for each in within):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return instruction

    before = sys.gettrace()
    sys.settrace(call)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
