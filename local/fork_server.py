"""The process that Python functions' processes are forked from, with what they import already imported.

An execution environment's start is half a second of CPU, nearly all of it for importing boto3 and the layer and for
reading boto3's models. On a machine's few cores that second is taken from those who wait for messages. Here a process
imports what environments with the same layers were seen to import, and each further environment is a fork of it: it
starts where importing ends, and shares that memory. What AWS promises stays true: an environment has its own variables,
arguments and pipes, and it alone runs the function's own code, its module and what that makes.

Nothing of a function is ever run here, and only one thread: a fork of several is not safe. When an import has started
a thread, this process ends (:data:`UNFIT`), and environments are started as before.

Run by :mod:`local.emulator_forks` under the emulator's interpreter: ``python -P fork_server.py SOCKET LAYER...``. A
request is one message, JSON with the descriptors of the environment's pipes; so is the answer, with one of the process.
It ends when the process at the other end of the socket ends.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MESSAGE = 1 << 17
"""Bytes of the largest request or report. An environment's variables are 4 KB at most."""
UNFIT = 3
"""How this process ends when it cannot be forked from."""


@dataclass(frozen=True)
class Request:
    """An environment to be started.

    Attributes:
        program: The script of MiniStack that runs a function.
        folder: Its working directory: the function's code.
        variables: Its whole environment.
        niceness: What its priority is lower by.
        pipes: Descriptors for its standard input, output and error.
    """

    program: str
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
        known: All modules and files that were ever reported.
    """

    modules: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)

    def add(self, modules: list[str], files: list[str]) -> None:
        """Note what an environment reports, in the order in which it came to be."""
        # A package is noted before what it imports: from behind, steps are smaller.
        self.modules[:0] = [each for each in reversed(modules) if each not in self.known][::-1]
        self.files += [each for each in files if each not in self.known]
        self.known.update(modules, files)

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


class Server:
    """Starts environments, and loads what they load.

    Args:
        requests: Where they are asked for.
        layers: Folders of the layers.
    """

    def __init__(self, requests: socket.socket, layers: list[str]) -> None:
        self._requests = requests
        self._reports, self._report = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._report.setblocking(False)
        self._ended, self._end = socket.socketpair()
        self._end.setblocking(False)
        self._path = sys.path[:]
        self._seen = Seen()
        for each in layers:
            sys.path[:0] = [each, f"{each}/python"]

    def serve(self) -> Request | None:
        """Serve until the other end is closed.

        Returns:
            In the process of a new environment, what it is to be; None in this one at the end.
        """
        signal.set_wakeup_fd(self._end.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        idle = False
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
                if len([*Path("/proc/self/task").iterdir()]) > 1:
                    sys.exit(UNFIT)

    def _receive(self) -> Request | None:
        message, pipes, _, _ = socket.recv_fds(self._requests, MESSAGE, 3)
        return Request(pipes=pipes, **json.loads(message)) if message else None

    def _fork(self, request: Request) -> bool:
        """Start an environment; whether this is its process now."""
        child = os.fork()
        if child:
            process = os.pidfd_open(child)
            socket.send_fds(self._requests, [str(child).encode()], [process])
            for each in (process, *request.pipes):
                os.close(each)
        return not child

    def become(self, request: Request) -> dict[str, Any]:
        """Make this process the environment.

        Returns:
            The names its program starts with.
        """
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
        # Held open to tell others which function this is: the command line is the server's. See local.stack.
        os.open(request.program, os.O_RDONLY)
        os.nice(request.niceness)
        # A function that brings a module of its own must get that one.
        own = {each.name.partition(".")[0] for each in Path(request.folder).iterdir()}
        if own & {each.partition(".")[0] for each in sys.modules}:
            os.execve(sys.executable, [sys.executable, request.program], request.variables)  # noqa: S606
        sys.stdin = os.fdopen(0, encoding="utf-8")
        sys.stdout = os.fdopen(1, "w", encoding="utf-8")
        sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace")
        sys.argv = [request.program]
        sys.path[:] = [str(Path(request.program).parent), *self._path]
        time.tzset()
        begins, ran = self._hooks(request.folder)
        return {"__name__": "__main__", "__file__": request.program, "pushhub_begins": begins, "pushhub_ran": ran}

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
            seen.known.update(modules, files)
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


def main() -> None:
    """Serve; in an environment's process run its program as the last thing, so that it ends as any program does."""
    server = Server(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
    request = server.serve()
    if request is not None:
        names = server.become(request)
        exec(compile(Path(request.program).read_text(), request.program, "exec"), names)  # noqa: S102


if __name__ == "__main__":
    main()
