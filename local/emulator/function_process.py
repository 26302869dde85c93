"""A process that runs a Python function, and the one that such processes are forked from. Standard library only.

An execution environment's start is half a second of CPU, nearly all of it for importing boto3 and the layer and for
reading boto3's models. On a machine's few cores that second is taken from those who wait for messages. Here a process
imports what environments with the same layers were seen to import, and each further environment is a fork of it: it
starts where importing ends, and shares that memory. What was imported is noted in a file, so that after the next start
of the stack the first environments are such forks, too. What AWS promises stays true: an environment has its own
variables, arguments and pipes, and it alone runs the function's own code, its module and what that makes.

Nothing of a function is ever run in that process, and only one thread: a fork of several is not safe. When an import
has started a thread, it ends (:data:`UNFIT`), and environments are started without it.

Run by :mod:`local.emulator.functions` under the emulator's interpreter (:mod:`local.apart`). With the arguments
``SOCKET NOTED LAYER...`` it forks: a request is one message, JSON with the descriptors of the environment's pipes; so
is the answer, with one of the process. It ends when the process at the other end of the socket ends. Without arguments
it is an environment: on its standard input come the function and then its runs, a line of JSON each, and each is
answered by a line on its standard output, with the end of its log marked on its standard error.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import select
import signal
import site
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..iam.function_rights import Guard, Notes

PROGRAM = (str(Path(__file__).parents[1] / "apart.py"), "emulator.function_process")
"""What an interpreter is started with to run this."""
MESSAGE = 1 << 17
"""Bytes of the largest request or report. An environment's variables are 4 KB at most."""
END_OF_LOG = "\x00pushhub: end of the log of "
"""What the line begins with that is written behind the log of a run; the run's id follows."""
UNFIT = 3
"""How this process ends when it cannot be forked from."""


@dataclass(frozen=True)
class Request:
    """An environment to be forked.

    Attributes:
        folder: Its working directory: the function's code.
        variables: Its whole environment.
        niceness: What its priority is lower by.
        pipes: Descriptors for its standard input, output and error.
    """

    folder: str
    variables: dict[str, str]
    niceness: int
    pipes: list[int]


@dataclass
class Seen:
    """What environments were seen to load, and what of it is loaded here.

    Attributes:
        modules: Still to be imported, the next one last.
        files: Data files of boto3 still to be read.
        data: What was read, by file. Each is handed out once, because environments may change it.
        known: All modules and files that were ever reported, in the order in which they came to be.
    """

    modules: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    known: dict[str, None] = field(default_factory=dict)

    def add(self, modules: list[str], files: list[str]) -> None:
        """Note what an environment reports, in the order in which it came to be."""
        # A package is noted before what it imports: from behind, steps are smaller.
        self.modules[:0] = [each for each in reversed(modules) if each not in self.known][::-1]
        self.files += [each for each in files if each not in self.known]
        self.known |= dict.fromkeys([*modules, *files])

    def load_next(self) -> bool:
        """Load one thing; False when all are loaded."""
        if self.modules:
            # What cannot be imported here, an environment imports itself.
            with suppress(Exception):
                importlib.import_module(self.modules.pop())
        elif self.files:
            with suppress(Exception):
                file = self.files.pop()
                self.data[file] = _loader().load_file(file)
        else:
            return False
        gc.freeze()
        return True


def _loader() -> Any:
    return importlib.import_module("botocore.loaders").JSONFileLoader()


class Starter:
    """Starts environments, and loads what they load.

    Args:
        requests: Where they are asked for.
        noted: The file in which it is noted what they load.
        layers: Folders of the layers.
    """

    def __init__(self, requests: socket.socket, noted: Path, layers: list[str]) -> None:
        self._requests = requests
        self._reports, self._report = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._report.setblocking(False)
        self._ended, self._end = socket.socketpair()
        self._end.setblocking(False)
        self._path = sys.path[:]
        self._seen = Seen()
        self._noted = noted
        self._layers = layers
        for each in layers:
            sys.path[:0] = [each, f"{each}/python"]

    def serve(self) -> Request | None:
        """Serve until the other end is closed.

        Returns:
            In the process of a new environment, what it is to be; None in this one at the end.
        """
        signal.set_wakeup_fd(self._end.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # Each of the first environments would take longer for it than all of them wait.
        self._read_note()
        while self._seen.load_next():
            pass
        self._end_if_unfit()
        idle, noted = True, len(self._seen.known)
        while True:
            ready, _, _ = select.select([self._requests, self._reports, self._ended], [], [], None if idle else 0)
            if self._requests in ready:
                request = self._receive()
                if request is None or self._fork(request):
                    return request
            elif self._reports in ready:
                self._seen.add(*json.loads(self._reports.recv(MESSAGE)))
                idle = False
            elif self._ended in ready:
                self._ended.recv(4096)
                with suppress(ChildProcessError):
                    while os.waitpid(-1, os.WNOHANG)[0]:
                        pass
            else:
                idle = not self._seen.load_next()
                self._end_if_unfit()
                if idle and len(self._seen.known) > noted:
                    noted = len(self._seen.known)
                    self._note()

    def _end_if_unfit(self) -> None:
        if len([*Path("/proc/self/task").iterdir()]) > 1:
            sys.exit(UNFIT)

    def _read_note(self) -> None:
        """Have everything loaded that was noted. What is not there any more, is passed over then."""
        with suppress(OSError, ValueError, TypeError):
            modules, files = json.loads(self._noted.read_text())
            self._seen.add(
                modules, [f"{self._layers[layer]}{file}" for layer, file in files if layer < len(self._layers)]
            )

    def _note(self) -> None:
        """Note what is known; files by their layers, whose folders are others in another place."""
        files = [
            (layer, each.removeprefix(folder))
            for each in self._seen.known
            for layer, folder in enumerate(self._layers)
            if each.startswith(f"{folder}/")
        ]
        modules = [each for each in self._seen.known if "/" not in each]
        unfinished = self._noted.with_name(f"{self._noted.name}.{os.getpid()}")
        # Without it, others start more slowly.
        with suppress(OSError):
            self._noted.parent.mkdir(parents=True, exist_ok=True)
            unfinished.write_text(json.dumps([modules, files]))
            unfinished.replace(self._noted)

    def _receive(self) -> Request | None:
        message, pipes, _, _ = socket.recv_fds(self._requests, MESSAGE, 3)
        return Request(pipes=pipes, **json.loads(message)) if message else None

    def _fork(self, request: Request) -> bool:
        """Start an environment; whether this is its process now."""
        child = os.fork()
        if child:
            process = os.pidfd_open(child)
            socket.send_fds(self._requests, [b"forked"], [process])
            for each in (process, *request.pipes):
                os.close(each)
        return not child

    def become(self, request: Request) -> Runner:
        """Make this process the environment."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for each in (self._requests, self._reports, self._ended, self._end):
            each.close()
        for number, pipe in enumerate(request.pipes):
            os.dup2(pipe, number)
            os.close(pipe)
        os.environ.clear()
        os.environ.update(request.variables)
        os.chdir(request.folder)
        os.nice(request.niceness)
        # A function that brings a module of its own must get that one.
        own = {each.name.partition(".")[0] for each in Path(request.folder).iterdir()}
        if own & {each.partition(".")[0] for each in sys.modules}:
            os.execve(sys.executable, [sys.executable, "-P", *PROGRAM], request.variables)  # noqa: S606
        sys.path[:] = self._path
        time.tzset()
        return Runner(*self._hooks(request.folder))

    def _hooks(self, folder: str) -> tuple[Callable[[], None], Callable[[], None]]:
        """What the environment calls before it imports the function's module, and after each run.

        The first lets boto3 have what was read for it, the second tells what was loaded that is not yet known.
        """
        read: list[str] = []
        seen, report, known = self._seen, self._report, 0

        def begins() -> None:
            with suppress(ImportError):
                _hand_out(seen.data, read)

        def ran() -> None:
            nonlocal known
            loaded = len(sys.modules) + len(read)
            if loaded == known:
                return
            known = loaded
            modules = [
                name
                for name, module in list(sys.modules.items())
                if name not in seen.known and _is_shared(name, module, folder)
            ]
            files = [each for each in read if each not in seen.known]
            seen.known |= dict.fromkeys([*modules, *files])
            # Nobody reads it any more, or not soon enough: then others start more slowly.
            with suppress(OSError):
                report.send(json.dumps([modules, files]).encode())

        return begins, ran


def _is_shared(name: str, module: Any, folder: str) -> bool:
    """Whether a module is of the runtime or a layer, and can be imported by its name."""
    spec = getattr(module, "__spec__", None)
    origin = getattr(spec, "origin", None)
    return bool(spec and spec.name == name and origin and not origin.startswith(folder + os.sep))


def _hand_out(data: dict[str, Any], read: list[str]) -> None:
    """Let boto3 have what was read for it, each file once, and note what it reads."""
    loader = importlib.import_module("botocore.loaders").JSONFileLoader
    load = loader.load_file

    def load_file(self: Any, file: str) -> Any:
        found = data.pop(file, None)
        if found is None:
            found = load(self, file)
            if found is not None:
                read.append(file)
        return found

    loader.load_file = load_file


class Context(SimpleNamespace):
    """What a handler is told about its run, besides the event."""

    identity = None
    client_context = None


class Runner:
    """Runs a function until its standard input ends.

    Args:
        begins: Called before the function's module is imported.
        ran: Called after each run.
    """

    def __init__(self, begins: Callable[[], None] = lambda: None, ran: Callable[[], None] = lambda: None) -> None:
        self._begins = begins
        self._ran = ran
        self._requests = os.fdopen(os.dup(0), encoding="utf-8")
        self._answers = os.dup(1)
        # What the function prints is its log, and cannot be taken for an answer.
        os.dup2(2, 1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
        sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)

    def serve(self) -> None:
        """Import the function, and run it for each request."""
        function = json.loads(self._requests.readline())
        # Held open: whose name it has can be seen from outside.
        os.open(function["sign"], os.O_RDONLY | os.O_CREAT)
        Path(function["sign"]).unlink()
        sys.argv = [f"{function['about']['function_name']}/{function['about']['log_stream_name']}"]
        notes = Notes(function["notes"], function["about"]["function_name"])
        guard = Guard(function["arn"], notes)
        guard.grant(function["policies"])
        try:
            handler = self._imported(function, guard)
        except Exception as error:  # noqa: BLE001 (told to whoever waits)
            self._answer(function, _failed(error))
            return
        self._answer(function, json.dumps({"status": "ready"}))
        for line in self._requests:
            run = json.loads(line)
            if "policies" in run:
                guard.grant(run["policies"])
            os.environ.pop("_X_AMZN_TRACE_ID", None)
            if run["trace_id"]:
                os.environ["_X_AMZN_TRACE_ID"] = run["trace_id"]
            ends_at = time.time() + function["timeout_s"]
            context = Context(
                **function["about"],
                invoked_function_arn=run["arn"],
                aws_request_id=run["request_id"],
                get_remaining_time_in_millis=lambda until=ends_at: max(0, int((until - time.time()) * 1000)),
            )
            try:
                answer = json.dumps({"status": "ok", "result": handler(run["event"], context)})
            except Exception as error:  # noqa: BLE001 (told to whoever waits)
                answer = _failed(error)
            self._answer(run, answer)
            self._ran()

    def _imported(self, function: dict[str, Any], guard: Guard) -> Callable[[Any, Any], Any]:
        """The function's handler, whose calls of services are guarded."""
        for layer in function["layers"]:
            sys.path[:0] = [layer, f"{layer}/python"]
            for packages in Path(layer, "python", "lib").glob("python*/site-packages"):
                site.addsitedir(str(packages))
        sys.path.insert(0, function["folder"])
        self._begins()
        # A function without boto3 makes no calls.
        with suppress(ImportError):
            guard.stand()
        module, name = function["handler"].rsplit(".", 1)
        handler: Callable[[Any, Any], Any] = getattr(importlib.import_module(module.replace("/", ".")), name)
        return handler

    def _answer(self, request: dict[str, Any], answer: str) -> None:
        rest = memoryview(answer.encode() + b"\n")
        while rest:
            rest = rest[os.write(self._answers, rest) :]
        os.write(2, f"{END_OF_LOG}{request['request_id']}\n".encode())


def _failed(error: Exception) -> str:
    return json.dumps({"status": "error", "error": str(error), "trace": traceback.format_exc()})


def main() -> None:
    """Serve; in an environment's process run its function."""
    if len(sys.argv) == 1:
        Runner().serve()
        return
    server = Starter(socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2]), sys.argv[3:])
    request = server.serve()
    if request is not None:
        server.become(request).serve()
