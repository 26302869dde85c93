"""The process that runs code, and forks once for each run. It is started by path, with nothing in its environment, and
imports nothing of the hub: see :mod:`pushhub.scripting.sandbox`. Of the engine's package it imports what is compiled
alone: the rest has threads, which would make each fork dearer.

On its standard input come requests, on its standard output go results: each is JSON after its length (four bytes, the
highest first). A run is a fork of this process with fresh memory, no descriptors but its own pipe, and limits; whatever
becomes of it, this process ends it, says how it ended, and waits for the next request. So nothing of a run is left for
the next one, and a time limit holds even for what the engine cannot interrupt.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__).parent
HEAP_BYTES = 64 * 1024 * 1024
"""What a run's objects may take."""
PROCESS_BYTES = 192 * 1024 * 1024
"""Address space that a run may add to what it begins with."""
STACK_BYTES = 1024 * 1024
WALL_S = 1.0
"""After this a run is ended."""
ENGINE_S = 0.8
"""After this the engine interrupts code where it can."""
CPU_S = 2
MOST_JOBS = 10_000
"""Steps of promises that are done for a run."""
FRAME_BYTES = 32 * 1024 * 1024


def read_frame(descriptor: int) -> bytes | None:
    """The next frame; None at the end."""
    head = _read(descriptor, 4)
    if len(head) < 4:
        return None
    size = int.from_bytes(head, "big")
    body = _read(descriptor, size)
    return body if len(body) == size else None


def _read(descriptor: int, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        part = os.read(descriptor, min(size - len(found), 1 << 20))
        if not part:
            break
        found += part
    return bytes(found)


def write_frame(descriptor: int, body: bytes) -> None:
    """Write a frame."""
    rest = memoryview(len(body).to_bytes(4, "big") + body)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


class Runner:
    """Runs code in contexts that were prepared before: a run is a fork, so each finds them unused.

    Args:
        engine_s: After so many seconds of CPU the engine interrupts code where it can.
    """

    def __init__(self, engine_s: float = ENGINE_S) -> None:
        self._engine_s = engine_s
        self._prepared: dict[str, tuple[Any, Any]] = {}
        self.prepare("javascript")

    def prepare(self, language: str) -> tuple[Any, Any]:
        """The context of a language, and the harness in it."""
        if language not in self._prepared:
            from _quickjs import Context  # noqa: PLC0415 (found where the parent says)

            context = Context()
            if language == "jsonata":
                context.eval((HERE / "jsonata.min.js").read_text(encoding="utf-8"))
            harness = context.eval((HERE / "harness.js").read_text(encoding="utf-8"))
            self._prepared[language] = context, harness
        return self._prepared[language]

    def run(self, request: dict[str, Any]) -> str:
        """Run code; what the harness says of it, as JSON."""
        from _quickjs import JSException, StackOverflow  # noqa: PLC0415

        context, harness = self.prepare(request["language"])
        context.set_memory_limit(HEAP_BYTES)
        context.set_max_stack_size(STACK_BYTES)
        context.set_time_limit(self._engine_s)
        try:
            harness("begin", json.dumps({name: request[name] for name in ("now", "seed", "most")}))
            if request["language"] == "javascript":
                context.eval(request["code"])
            harness(request["language"], request["input"], request["answers"], request["code"])
            for _ in range(MOST_JOBS):
                found = harness("outcome")
                if found is not None or not context.execute_pending_job():
                    break
            found = harness("outcome")
        except (JSException, StackOverflow, MemoryError) as error:
            return json.dumps(_explained(error))
        if not isinstance(found, str):
            return json.dumps({"error": "result", "message": "its promise was never resolved"})
        return found


def _explained(error: Exception) -> dict[str, str]:
    """How the engine ended a run."""
    # Where a fault is stands in a line of its own.
    text = " ".join(str(error).split())
    if text.startswith("InternalError: interrupted"):
        return timed_out()
    if isinstance(error, MemoryError) or "out of memory" in text:
        return {"error": "memory", "message": "it needs too much memory"}
    if "stack overflow" in text.lower() or "call stack" in text.lower():
        return {"error": "error", "message": "it calls itself too often"}
    return {"error": "error", "message": text[:500]}


def timed_out() -> dict[str, str]:
    """The result of a run that takes too long."""
    return {"error": "timeout", "message": f"it takes longer than {WALL_S:g} s"}


def confine() -> None:
    """Limit this process, for good."""
    begun = _pages() * resource.getpagesize()
    for limit, most in (
        (resource.RLIMIT_AS, begun + PROCESS_BYTES),
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 8),
        (resource.RLIMIT_NPROC, 0),
    ):
        resource.setrlimit(limit, (most, most))


def _pages() -> int:
    """Pages of this process's address space. Read as bytes: each run would load what decodes a text."""
    statm = os.open("/proc/self/statm", os.O_RDONLY)
    try:
        return int(os.read(statm, 128).split()[0])
    finally:
        os.close(statm)


def _become_run(runner: Runner, request: dict[str, Any], sink: int) -> NoReturn:
    """Be a run until its end."""
    try:
        os.dup2(sink, 3)
        os.closerange(4, 1024)
        for each in (0, 1):
            os.close(each)
        confine()
        write_frame(3, runner.run(request).encode(errors="surrogatepass"))
    finally:
        # Nothing of this process may go on, whatever went wrong: it would read the next request.
        os._exit(0)


def serve(runner: Runner, request: dict[str, Any]) -> bytes:
    """The result of a run."""
    runner.prepare(request["language"])
    source, sink = os.pipe()
    child = os.fork()
    if not child:
        _become_run(runner, request, sink)
    os.close(sink)
    try:
        return _result_of(source)
    finally:
        os.close(source)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _result_of(source: int) -> bytes:
    """What a run says before its time is over."""
    until, found = time.monotonic() + WALL_S, bytearray()
    os.set_blocking(source, False)
    while True:
        left = until - time.monotonic()
        if left <= 0 or not select.select([source], [], [], left)[0]:
            return json.dumps(timed_out()).encode()
        part = os.read(source, 1 << 20)
        if not part or len(found) > FRAME_BYTES:
            return json.dumps({"error": "crash", "message": "it ended the process that ran it"}).encode()
        found += part
        if len(found) >= 4 and len(found) >= 4 + int.from_bytes(found[:4], "big"):
            return bytes(found[4:])


def main() -> None:
    """Serve until there are no more requests."""
    sys.path.insert(0, sys.argv[1])
    os.environ["TZ"] = "UTC"
    time.tzset()
    runner = Runner()
    while (frame := read_frame(0)) is not None:
        write_frame(1, serve(runner, json.loads(frame)))


if __name__ == "__main__":
    main()
