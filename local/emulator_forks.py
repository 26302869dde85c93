"""How the emulator starts processes of Python functions: as forks of one that has imported what they need.

That one is :mod:`local.fork_server`, one for all functions with the same layers. Where it cannot serve (another system
than Linux, an import that starts a thread), processes are started as MiniStack starts them. Runs in the emulator's
process.
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
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ministack.core import lambda_runtime  # type: ignore[import-not-found]

if TYPE_CHECKING:
    from local.emulator_calls import TOKEN
    from local.emulator_turns import BACKLOG, NICENESS
else:
    # Put there by the emulator's process, which has no package "local".
    _turns = sys.modules["pushhub_emulator_turns"]
    BACKLOG, NICENESS = _turns.BACKLOG, _turns.NICENESS
    TOKEN = sys.modules["pushhub_emulator_calls"].TOKEN

PROGRAM = Path(__file__).with_name("fork_server.py")
UNFIT = 3
"""How it ends when it cannot be forked from."""
ANSWER_S = 20.0
"""How long it may take to answer. It may be importing something, on a busy machine."""
AT_START = ("PYTHON", "LD_", "MALLOC_", "LANG", "LC_")
"""Variables that an interpreter reads when it starts, so that a fork would not notice them."""
UNKNOWN = 255
"""What is said of how a fork ended: only its parent could tell."""
_log = logging.getLogger("pushhub.forks")


class Forked:
    """A forked process, as far as :class:`subprocess.Popen` is used for functions.

    Args:
        pid: Its id.
        process: A descriptor of it.
        pipes: The ends here of its standard input, output and error.
    """

    def __init__(self, pid: int, process: int, pipes: tuple[int, int, int]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._process = process
        weakref.finalize(self, os.close, process)
        sink, source, errors = pipes
        self.stdin = os.fdopen(sink, "w", buffering=1, encoding="utf-8")
        self.stdout = os.fdopen(source, encoding="utf-8")
        self.stderr = os.fdopen(errors, encoding="utf-8", errors="replace")

    def poll(self) -> int | None:
        """Whether it has ended: None while it has not."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end.

        Raises:
            subprocess.TimeoutExpired: It takes longer, in seconds.
        """
        ended = self._ended(timeout)
        if ended is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return ended

    def terminate(self) -> None:
        """Ask it to end."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self._send(signal.SIGKILL)

    def _ended(self, seconds: float | None) -> int | None:
        if self.returncode is None:
            waits = select.poll()
            waits.register(self._process, select.POLLIN)
            if waits.poll(None if seconds is None else 1000 * seconds):
                self.returncode = UNKNOWN
        return self.returncode

    def _send(self, number: signal.Signals) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self._process, number)


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

    def fork(self, **environment: Any) -> Forked | None:
        """A new process of a function (:class:`local.fork_server.Request`); None when there can be none now."""
        if self._unfit:
            return None
        theirs: list[int] = []
        ours: list[int] = []
        for writes in (False, True, True):
            read, write = os.pipe()
            theirs.append(write if writes else read)
            ours.append(read if writes else write)
        try:
            with self._turn:
                pid, process = self._ask(environment, theirs)
        except OSError as error:
            _log.warning("nothing to fork from: %s", error)
            for each in ours:
                os.close(each)
            return None
        finally:
            for each in theirs:
                os.close(each)
        return Forked(pid, process, (ours[0], ours[1], ours[2]))

    def _ask(self, request: dict[str, Any], pipes: list[int]) -> tuple[int, int]:
        """A new process's id and descriptor.

        Raises:
            OSError: The process to fork from has ended. The next request starts another, unless it was unfit.
        """
        if self._requests is None:
            self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._requests.settimeout(ANSWER_S)
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", str(PROGRAM), str(theirs.fileno()), *self._layers],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                )
        try:
            socket.send_fds(self._requests, [json.dumps(request).encode()], pipes)
            answer, (process,), _, _ = socket.recv_fds(self._requests, 64, 1)
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
        return int(answer), process


_servers: dict[tuple[str, ...], Server] = {}


def start(command: list[str], *, cwd: str, env: dict[str, str], **options: Any) -> Any:
    """Stands for :class:`subprocess.Popen` where MiniStack starts a function's process."""
    forked = None
    if sys.platform == "linux" and command[0] == sys.executable and _at_start(env) == _at_start(os.environ):
        # Links to what is unpacked once for all.
        folders = filter(None, env.get("_LAMBDA_LAYERS_DIRS", "").split(os.pathsep))
        layers = tuple(os.path.realpath(each) for each in folders)
        niceness = NICENESS if BACKLOG.get() else 0
        if niceness:
            env = {**env, "AWS_SESSION_TOKEN": TOKEN}
        forked = _servers.setdefault(layers, Server(layers)).fork(
            program=command[1], folder=cwd, variables=env, niceness=niceness
        )
    return forked or subprocess.Popen(command, cwd=cwd, env=env, **options)


def _at_start(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name.startswith(AT_START)}


def fork_functions() -> None:
    """Let processes of Python functions be forked."""
    lambda_runtime.subprocess = SimpleNamespace(**{**vars(subprocess), "Popen": start})
