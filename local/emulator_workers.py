"""How the emulator asks a function's process to run. Runs in the emulator's process.

MiniStack makes a thread for each run, and after it looks every millisecond whether a log line is still to come: for
50 ms when there was none, with the answer in its hands. Here the process itself says where the lines of a run end.

It also unpacks a function's code and its layer anew for each process, which compiles all of it: a second of CPU. Here
processes share what is unpacked. And it starts a process for each run that finds none free, as AWS does, which has
cores for them. Here one process of a function starts at a time, and a waiting run takes the first free one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import queue
import select
import sys
import tempfile
import threading
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ministack.core import lambda_runtime  # type: ignore[import-not-found]
from ministack.services import lambda_svc  # type: ignore[import-not-found]

if TYPE_CHECKING:
    from local.emulator_turns import BACKLOG, Turns
else:
    # Put there by the emulator's process, which has no package "local".
    _module = sys.modules["pushhub_emulator_turns"]
    BACKLOG, Turns = _module.BACKLOG, _module.Turns

END_OF_LOG = "\x00pushhub: end of the log of "
"""What the line begins with that the process writes behind those of a run; the run's id follows."""
LOG_S = 0.25
"""How long to wait for that line, which a function that has closed its standard error never writes."""
REAP_S = 2.0
"""How long the process of a run that failed may take to end before it is killed."""
_ANSWERED = "        _real_stdout.flush()\n\nrun()"
_BEGINS = "    _ms_install_invoke_depth()\n    try:\n"
_log = logging.getLogger("pushhub.workers")
_unpacking = threading.Lock()


class _TooLate(Exception):
    """The run has taken longer than the function may."""


def ask_directly() -> None:
    """Let functions be run without further threads, and without a wait for log lines that do not come."""
    script = lambda_runtime._PYTHON_WORKER_SCRIPT
    if script.count(_ANSWERED) != 1 or script.count(_BEGINS) != 1:
        raise RuntimeError("this MiniStack's functions are run in another way than its worker is changed for")
    mark = (
        f"        sys.stderr.write({END_OF_LOG!r} + _ms_ctx['request_id'] + {chr(10)!r})\n"
        "        sys.stderr.flush()\n"
        "        globals().get('pushhub_ran', int)()\n"
    )
    lambda_runtime._PYTHON_WORKER_SCRIPT = script.replace(_ANSWERED, _ANSWERED.replace("\n\n", f"\n{mark}\n")).replace(
        _BEGINS, "    globals().get('pushhub_begins', int)()\n" + _BEGINS
    )
    lambda_runtime.Worker.invoke = _invoke


def take_turns() -> None:
    """Let processes of a function start one at a time."""
    acquire, release = lambda_svc.acquire_worker, lambda_svc.release_worker

    def acquire_worker(name: str, config: dict[str, Any], code: bytes, qualifier: str = "$LATEST") -> Any:
        kind = lambda_runtime._worker_class_for(config)
        if kind is not lambda_runtime.Worker:
            return acquire(name, config, code, qualifier)
        key = lambda_runtime._worker_key(name, config, qualifier)
        return _turns.take(key, lambda: kind(name, config, code), backlog=BACKLOG.get())

    def release_worker(worker: Any) -> None:
        (_turns.give_back if isinstance(worker, lambda_runtime.Worker) else release)(worker)

    lambda_svc.acquire_worker, lambda_svc.release_worker = acquire_worker, release_worker
    # WebSocket APIs have a worker of their own, which waits for no turn.
    lambda_runtime.Worker.turn = None


def share_code() -> None:
    """Let all processes run the same unpacked code."""
    lambda_runtime.zipfile = SimpleNamespace(ZipFile=_SharedArchive, BadZipFile=zipfile.BadZipFile)


class _SharedArchive:
    """An archive that is unpacked once. Unpacking it again only makes a link, without opening it.

    Args:
        file: Its path.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        content = hashlib.sha256(Path(file).read_bytes()).hexdigest()
        self._shared = Path(tempfile.gettempdir()) / "pushhub-code" / content

    def __enter__(self) -> _SharedArchive:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def namelist(self) -> list[str]:
        """Names that are to be checked before it is unpacked; none when it was."""
        if self._shared.exists():
            return []
        with zipfile.ZipFile(self._file) as archive:
            return archive.namelist()

    def extractall(self, path: str) -> None:
        """Make an empty folder a link to what the archive holds."""
        with _unpacking:
            if not self._shared.exists():
                unfinished = Path(tempfile.mkdtemp(prefix="pushhub-unpacked-"))
                with zipfile.ZipFile(self._file) as archive:
                    archive.extractall(unfinished)
                self._shared.parent.mkdir(exist_ok=True)
                unfinished.rename(self._shared)
        target = Path(path)
        target.rmdir()
        target.symlink_to(self._shared, target_is_directory=True)


_turns = Turns(lambda_runtime._workers, lambda_runtime._lock)


def _invoke(
    worker: Any,
    event: Any,
    request_id: str,
    *,
    trace_id: str | None = None,
    depth: Any = None,
    durable: dict[str, Any] | None = None,
    invoked_function_arn: str | None = None,
) -> dict[str, Any]:
    """Stands for ``Worker.invoke`` and does the same."""
    with worker._lock:
        cold = worker._proc is None or worker._proc.poll() is not None
        if cold:
            try:
                worker._spawn()
            finally:
                _turns.started(worker)
            worker._cold = False
        timeout = float(worker.config.get("Timeout", 30))
        envelope = {
            "event": event,
            "ctx": {
                "request_id": request_id,
                "invoked_function_arn": invoked_function_arn or worker.config.get("FunctionArn", ""),
                "timeout_ms": int(timeout * 1000),
                "trace_id": trace_id,
                "depth": depth,
                "durable": durable or {},
            },
        }
        try:
            answer = _answer(worker._proc, json.dumps(envelope).encode() + b"\n", time.monotonic() + timeout)
            answer["log"] = _log_of_run(worker._stderr_queue, request_id)
        except _TooLate:
            _log.warning("%s took longer than %d s", worker.func_name, timeout)
            answer = {"status": "error", "error": f"Task timed out after {timeout:.0f}.00 seconds"}
        except OSError as error:
            answer = {"status": "error", "error": f"Worker process died ({error})"}
        if answer["status"] == "error":
            # What a function that failed has left behind must not come to another run.
            process, worker._proc = worker._proc, None
            lambda_runtime._signal(process)
            lambda_runtime._collect(process, time.monotonic() + REAP_S)
            answer.setdefault("log", worker._drain_stderr())
        answer["cold_start"] = cold
        return answer


def _answer(process: Any, request: bytes, until: float) -> dict[str, Any]:
    """What a function's process answers; other lines it may write are left out.

    Raises:
        _TooLate: It does not answer in time.
        OSError: It ends.
    """
    sink, source = process.stdin.fileno(), process.stdout.fileno()
    os.set_blocking(sink, False)
    waits = select.poll()
    waits.register(source, select.POLLIN)
    waits.register(sink, select.POLLOUT)
    rest, read = memoryview(request), bytearray()
    while True:
        left = until - time.monotonic()
        if left <= 0:
            raise _TooLate
        for number, _ in waits.poll(1000 * left):
            if number == sink:
                with contextlib.suppress(BlockingIOError):
                    rest = rest[os.write(sink, rest) :]
                if not rest:
                    waits.unregister(sink)
                continue
            block = os.read(source, 1 << 20)
            if not block:
                raise OSError("it closed its output")
            read += block
            *lines, read = read.split(b"\n") if b"\n" in block else (read,)
            for line in lines:
                with contextlib.suppress(ValueError):
                    answer = json.loads(line) if line.startswith(b"{") else {}
                    if answer.get("status") in ("ok", "error"):
                        return dict(answer)


def _log_of_run(lines: queue.Queue[str], request_id: str) -> str:
    """The log lines of a run."""
    found: list[str] = []
    until = time.monotonic() + LOG_S
    with contextlib.suppress(queue.Empty):
        while (line := lines.get(timeout=max(0.0, until - time.monotonic()))) != END_OF_LOG + request_id:
            if not line.startswith(END_OF_LOG):
                found.append(line)
    return "\n".join(found)
