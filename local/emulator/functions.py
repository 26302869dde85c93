"""How the emulator runs Python functions. Runs in the emulator's process, in place of MiniStack's worker processes.

MiniStack unpacks a function's code and its layers anew for each process, starts an interpreter for it, makes a thread
for each run, and after it looks for 50 ms whether a log line is still to come, with the answer in its hands. Here
processes share what is unpacked, are forks of one that has imported what they need
(:mod:`local.emulator.function_process`), and say themselves where the log of a run ends. Where there can be no forks
(another system than Linux, an import that starts a thread), they are started. One process of a function starts at a
time (:mod:`local.emulator.turns`).
"""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
import weakref
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

from ministack.core import lambda_runtime  # type: ignore[import-not-found]
from ministack.services import lambda_svc  # type: ignore[import-not-found]

from ..iam.emulator_roles import NOTES, documents_of
from .function_process import PROGRAM
from .turns import BACKLOG, NICENESS, Turns

UNFIT = 3
"""How the process to fork from ends when it cannot be forked from."""
NOTED = Path(os.environ.get("PUSHHUB_IMPORTS", tempfile.gettempdir()))
"""Folder of the files in which it is noted what processes were seen to import."""
ANSWER_S = 60.0
"""How long it may take to answer. It may be importing everything, on a busy machine."""
START_S = 60.0
"""How long a process may take until it can run its function."""
LOG_S = 0.25
"""How long to wait for the end of a run's log, which a function that has closed its standard error never writes."""
IDLE_S = float(os.environ.get("LAMBDA_WARM_TTL_SECONDS", "300"))
"""How long a process beyond the first of its function is kept without a run."""
AT_START = ("PYTHON", "LD_", "MALLOC_", "LANG", "LC_")
"""Variables that an interpreter reads when it starts, so that a fork would not notice them."""
END_OF_LOG = "\x00pushhub: end of the log of "
"""What the line begins with that the process writes behind those of a run; the run's id follows."""
_log = logging.getLogger("pushhub.functions")
_unpacking = threading.Lock()


class TooLate(Exception):
    """A run has taken longer than the function may."""


class Forked:
    """A forked process, known by a descriptor, as far as :class:`subprocess.Popen` is used here."""

    def __init__(self, process: int) -> None:
        self._process = process
        weakref.finalize(self, os.close, process)

    def poll(self) -> int | None:
        """None while it has not ended. How it ended, only its parent could tell."""
        return 255 if select.select([self._process], [], [], 0)[0] else None

    def kill(self) -> None:
        """End it."""
        if self.poll() is None:
            signal.pidfd_send_signal(self._process, signal.SIGKILL)


class Server:
    """A process to fork from.

    Args:
        layers: Folders of the layers.
    """

    def __init__(self, layers: tuple[str, ...]) -> None:
        self._layers = layers
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None
        self._unfit = False

    def fork(self, request: dict[str, Any], pipes: list[int]) -> Forked | None:
        """A new process of a function (:class:`.function_process.Request`); None when there can be none now."""
        if self._unfit:
            return None
        try:
            with self._turn:
                return Forked(self._ask(request, pipes))
        except OSError as error:
            _log.warning("nothing to fork from: %s", error)
            return None

    def _ask(self, request: dict[str, Any], pipes: list[int]) -> int:
        """A new process's descriptor.

        Raises:
            OSError: The process to fork from has ended. The next request starts another, unless it was unfit.
        """
        if self._requests is None:
            self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._requests.settimeout(ANSWER_S)
            with theirs:
                # A layer is the same in another version, nearly.
                noted = NOTED / ("+".join(Path(each).name.rpartition("-")[0] for each in self._layers) or "none")
                self._process = subprocess.Popen(
                    [sys.executable, "-P", *PROGRAM, str(theirs.fileno()), str(noted), *self._layers],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                )
        try:
            socket.send_fds(self._requests, [json.dumps(request).encode()], pipes)
            _, (process,), _, _ = socket.recv_fds(self._requests, 64, 1)
        except (OSError, ValueError) as error:
            self._requests.close()
            self._requests = None
            if self._process is not None:
                with suppress(subprocess.TimeoutExpired):
                    self._unfit = self._process.wait(1) == UNFIT
                self._process.kill()
                self._process.wait()
            raise OSError("it has ended") from error
        os.set_inheritable(process, False)
        return process


_servers: dict[tuple[str, ...], Server] = {}


class Process:
    """A process of a function, and its pipes, which are closed when nobody has it any more.

    Args:
        handle: What ends it, and knows whether it has.
        pipes: Descriptors of its standard input, output and error.
    """

    def __init__(self, handle: Forked | subprocess.Popen[bytes], pipes: list[int]) -> None:
        self._handle = handle
        self._pipes = pipes
        os.set_blocking(pipes[0], False)
        weakref.finalize(self, _close, pipes)

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self._handle.poll() is not None

    def kill(self) -> None:
        """End it. May be called while it is asked something, which fails then."""
        self._handle.kill()
        if isinstance(self._handle, subprocess.Popen):
            self._handle.wait()

    def ask(self, request: dict[str, Any], seconds: float, log: bytearray) -> dict[str, Any]:
        """What it answers; what it writes meanwhile goes to ``log``.

        Raises:
            TooLate: It does not answer in time.
            OSError: It ends.
        """
        sink, source, errors = self._pipes
        end = f"{END_OF_LOG}{request['request_id']}\n".encode()
        waits = select.poll()
        waits.register(source, select.POLLIN)
        waits.register(errors, select.POLLIN)
        waits.register(sink, select.POLLOUT)
        rest, read = memoryview(json.dumps(request).encode() + b"\n"), bytearray()
        until = time.monotonic() + seconds
        answered = logged = False
        while not (answered and logged):
            left = until - time.monotonic()
            if left <= 0:
                if answered:
                    break
                raise TooLate
            for number, _ in waits.poll(1000 * left):
                if number == sink:
                    with suppress(BlockingIOError):
                        rest = rest[os.write(sink, rest) :]
                    if not rest:
                        waits.unregister(sink)
                    continue
                block = os.read(number, 1 << 20)
                if number == errors:
                    log += block
                    logged = end in log or not block
                    if not block:
                        waits.unregister(errors)
                elif block:
                    read += block
                    if block.endswith(b"\n"):
                        answered, until = True, time.monotonic() + LOG_S
                else:
                    while select.select([errors], [], [], LOG_S)[0] and (last := os.read(errors, 1 << 20)):
                        log += last
                    raise OSError("it closed its output")
        answer: dict[str, Any] = json.loads(read)
        return answer


def _close(descriptors: list[int]) -> None:
    for each in descriptors:
        os.close(each)


class Environment:
    """One execution environment: what MiniStack calls a worker.

    Args:
        config: The function's configuration.
        code: Its archive.

    Attributes:
        in_use: Whether it has a run.
        turn: What :class:`Turns` keeps with it: its function, and whether it is for backlogs.
        last_used: When it was last given a run, in seconds since the epoch.
    """

    def __init__(self, config: dict[str, Any], code: bytes) -> None:
        self.in_use = False
        self.turn: Any = None
        self.last_used = time.time()
        self._config = config
        self._code = code
        self._process: Process | None = None
        self._policies: list[Any] = []
        self._timeout_s = float(config.get("Timeout", 3))

    def invoke(
        self,
        event: Any,
        request_id: str,
        *,
        trace_id: str | None = None,
        invoked_function_arn: str | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        """Run the function.

        Returns:
            What MiniStack's worker returns: ``status`` (``ok``, ``error``) with ``result`` or ``error`` and ``trace``,
            ``log``, ``cold_start``.
        """
        process = self._process
        cold = process is None or process.has_ended
        log = bytearray()
        answer = {"status": "ready"}
        try:
            if cold or process is None:
                try:
                    process, answer = self._started(log)
                finally:
                    _turns.started(self)
            if answer["status"] == "ready":
                arn = invoked_function_arn or self._config["FunctionArn"]
                run = {"event": event, "request_id": request_id, "trace_id": trace_id, "arn": arn}
                policies = documents_of(self._config["Role"])
                if policies != self._policies:
                    # A deployment has changed the role, and nothing else of the function.
                    self._policies = run["policies"] = policies
                answer = process.ask(run, self._timeout_s, log)
        except TooLate:
            _log.warning("%s took longer than %d s", self._config["FunctionName"], self._timeout_s)
            answer = {"status": "error", "error": f"Task timed out after {self._timeout_s:.0f}.00 seconds"}
        except OSError as error:
            answer = {"status": "error", "error": f"Worker process died ({error})"}
        if answer["status"] == "error":
            # What a function that failed has left behind must not come to another run.
            self.kill()
        lines = log.decode(errors="replace").splitlines()
        text = "\n".join(each for each in lines if not each.startswith(END_OF_LOG))
        return {**answer, "log": text, "cold_start": cold}

    def kill(self) -> None:
        """End its process. May be called while it has a run, which fails then."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    def _started(self, log: bytearray) -> tuple[Process, dict[str, Any]]:
        """A process, and what it says of its start: ``status`` is ``ready`` or ``error``.

        Raises:
            TooLate: It takes too long.
            OSError: It has ended before it could run anything.
        """
        folder, layers = self._folders()
        variables = self._variables(folder)
        backlog = self.turn is not None and self.turn[1]
        theirs, ours = [], []
        for writes in (False, True, True):
            read, write = os.pipe()
            theirs.append(write if writes else read)
            ours.append(read if writes else write)
        try:
            handle: Forked | subprocess.Popen[bytes] | None = None
            if sys.platform == "linux" and _at_start(variables) == _at_start(os.environ):
                server = _servers.setdefault(layers, Server(layers))
                niceness = NICENESS if backlog else 0
                handle = server.fork({"folder": folder, "variables": variables, "niceness": niceness}, theirs)
            if handle is None:
                command = [sys.executable, "-P", *PROGRAM]
                handle = subprocess.Popen(
                    command, cwd=folder, env=variables, stdin=theirs[0], stdout=theirs[1], stderr=theirs[2]
                )
        finally:
            for each in theirs:
                os.close(each)
        process = self._process = Process(handle, ours)
        name = self._config["FunctionName"]
        self._policies = documents_of(self._config["Role"])
        function = {
            "request_id": "start",
            "folder": folder,
            "layers": layers,
            "handler": self._config.get("Handler", "index.handler"),
            "about": {
                "function_name": name,
                "function_version": variables["AWS_LAMBDA_FUNCTION_VERSION"],
                "memory_limit_in_mb": self._config.get("MemorySize", 128),
                "log_group_name": f"/aws/lambda/{name}",
                "log_stream_name": variables["AWS_LAMBDA_LOG_STREAM_NAME"],
            },
            "timeout_s": self._timeout_s,
            "arn": self._config["FunctionArn"],
            "policies": self._policies,
            "notes": NOTES,
            # Held open to tell others which function this is (local.stack).
            "sign": f"{tempfile.gettempdir()}/function-{name}-{uuid.uuid4()}",
        }
        return process, process.ask(function, START_S, log)

    def _folders(self) -> tuple[str, tuple[str, ...]]:
        """Folders of the code and the layers, unpacked once for all processes."""
        code = _unpacked(self._config["CodeSha256"].replace("/", "_"), lambda: self._code)
        layers = [each if isinstance(each, str) else each["Arn"] for each in self._config.get("Layers", [])]
        return code, tuple(_unpacked(arn.replace(":", "-"), lambda arn=arn: _layer(arn)) for arn in layers)  # type: ignore[misc]

    def _variables(self, folder: str) -> dict[str, str]:
        """Its environment variables, as AWS sets them; the emulator's own stand for what is the machine's."""
        config = self._config
        region = config["FunctionArn"].split(":")[3]
        return {
            **os.environ,
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{os.environ['GATEWAY_PORT']}",
            lambda_runtime.HOST_PREFIX_ENV: "true",
            **config.get("Environment", {}).get("Variables", {}),
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            **lambda_runtime.execution_credentials(config),
            "LAMBDA_TASK_ROOT": folder,
            "AWS_LAMBDA_FUNCTION_NAME": config["FunctionName"],
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(config.get("MemorySize", 128)),
            "AWS_LAMBDA_FUNCTION_VERSION": config.get("Version", "$LATEST"),
            "AWS_LAMBDA_LOG_STREAM_NAME": str(uuid.uuid4()),
        }


class _Leased:
    """An environment for each run: what WebSocket APIs, which lease none, run a function by."""

    def __init__(self, *function: Any) -> None:
        self._function = function

    def invoke(self, *run: Any, **more: Any) -> dict[str, Any]:
        """Run the function (:meth:`Environment.invoke`)."""
        environment, _ = lambda_svc.acquire_worker(*self._function)
        try:
            answer: dict[str, Any] = environment.invoke(*run, **more)
            return answer
        finally:
            lambda_svc.release_worker(environment)


def run_functions() -> None:
    """Let Python functions run here; MiniStack runs those of other runtimes."""
    acquire, release = lambda_svc.acquire_worker, lambda_svc.release_worker
    invalidate, lease = lambda_svc.invalidate_worker, lambda_runtime.get_or_create_worker

    def is_python(config: dict[str, Any]) -> bool:
        return str(config.get("Runtime")).startswith("python")

    def acquire_worker(name: str, config: dict[str, Any], code: bytes, qualifier: str = "$LATEST", **more: Any) -> Any:
        if not is_python(config):
            return acquire(name, config, code, qualifier, **more)
        function = ":".join([*config["FunctionArn"].split(":")[3:7], qualifier])
        return _turns.take(function, lambda: Environment(config, code), backlog=BACKLOG.get())

    def release_worker(worker: Any) -> None:
        (_turns.give_back if isinstance(worker, Environment) else release)(worker)

    def invalidate_worker(
        name: str, qualifier: str | None = None, account: str | None = None, region: str | None = None
    ) -> None:
        wanted = (region, account, "function", name, qualifier)
        _end(
            lambda function, _: all(
                one in (None, other) for one, other in zip(wanted, function.split(":"), strict=True)
            )
        )
        invalidate(name, qualifier=qualifier, account=account, region=region)

    def get_or_create_worker(name: str, config: dict[str, Any], code: bytes, qualifier: str = "$LATEST") -> Any:
        return (_Leased if is_python(config) else lease)(name, config, code, qualifier)

    lambda_svc.acquire_worker, lambda_svc.release_worker = acquire_worker, release_worker
    lambda_svc.invalidate_worker, lambda_runtime.get_or_create_worker = invalidate_worker, get_or_create_worker
    lambda_svc.reap_idle_workers = _end_idle


def runs_in_progress() -> int:
    """How many environments have a run."""
    with _lock:
        return sum(each.in_use for environments in _environments.values() for each in environments)


def _end_idle() -> None:
    """End processes that have long had no run, but for the first of each function."""
    before = time.time() - IDLE_S
    _end(lambda function, each: each is not _environments[function][0] and not each.in_use and each.last_used < before)


def _end(which: Callable[[str, Environment], bool]) -> None:
    ended: list[Environment] = []
    with _lock:
        for function, environments in _environments.items():
            left = [each for each in environments if not which(function, each)]
            ended += [each for each in environments if each not in left]
            environments[:] = left
    for each in ended:
        each.kill()


_environments: dict[str, list[Environment]] = {}
"""By function: its region, account, the word ``function``, its name, and the version."""
_lock = threading.Lock()
_turns = Turns(_environments, _lock)


def _unpacked(name: str, archive: Callable[[], bytes]) -> str:
    """The folder with what an archive holds."""
    folder = Path(tempfile.gettempdir()) / "pushhub-code" / name
    with _unpacking:
        if not folder.exists():
            unfinished = Path(tempfile.mkdtemp(prefix="pushhub-unpacked-"))
            with zipfile.ZipFile(BytesIO(archive())) as content:
                content.extractall(unfinished)
            folder.parent.mkdir(exist_ok=True)
            unfinished.rename(folder)
    return str(folder)


def _layer(arn: str) -> bytes:
    """A layer's archive.

    Raises:
        OSError: There is none.
    """
    *_, region, account, _, name, version = arn.split(":")
    status, _, content = lambda_svc.serve_layer_content(name, int(version), account, region)
    if status != 200:
        raise OSError(f"there is no layer {arn}")
    return bytes(content)


def _at_start(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name.startswith(AT_START)}
