"""Background processes with pid files: started once, found again, stopped within a bound."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from local.errors import LocalError

_OLD_LOG_BYTES = 20_000_000


def wait_until(condition: Callable[[], bool], seconds: float, *, pause: float = 0.05) -> bool:
    """Poll until the condition is true; return whether that happened in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause)
    return True


def _identity(pid: int) -> str | None:
    """Something that a later process with the same id would not share (its start time), or None if it is not running.

    A zombie counts as not running. Without ``/proc`` the id alone has to do.
    """
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return "other user"
    try:
        # The second field is the name in parentheses and may hold spaces; state is the third, start time the 22nd.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "running" if not Path("/proc/self/stat").exists() else None
    return None if fields[0] in "ZX" and not _has_threads(pid) else fields[19]


def _has_threads(pid: int) -> bool:
    """Whether a process that was killed still has threads that end; until then its ports stay taken."""
    with contextlib.suppress(OSError):
        return sum(1 for _ in Path(f"/proc/{pid}/task").iterdir()) > 1
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """A background process of the local stack.

    Attributes:
        pid_file: Holds its process id and start time while it runs.
        log: Where its output goes; a log grown over 20 MB is set aside at the next start.
    """

    name: str
    pid_file: Path
    log: Path

    def pid(self) -> int | None:
        """Its process id if it runs; a pid file left behind by a dead process does not count."""
        try:
            pid, _, identity = self.pid_file.read_text().strip().partition(" ")
        except FileNotFoundError:
            return None
        if pid.isdecimal() and identity and _identity(int(pid)) == identity:
            return int(pid)
        return None

    def start(self, command: Sequence[str], environ: Mapping[str, str]) -> int:
        """Start it in its own session, so that neither Ctrl-C nor a closed terminal reaches it."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.pid_file.parent.mkdir(parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > _OLD_LOG_BYTES:
            self.log.replace(self.log.with_suffix(".old.log"))
        output = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            pid = os.posix_spawn(
                command[0],
                list(command),
                dict(environ),
                setsid=True,
                setsigmask=(),
                setsigdef=(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE),
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, output, 1),
                    (os.POSIX_SPAWN_DUP2, output, 2),
                ],
            )
        except OSError as error:
            raise LocalError(f"{self.name} cannot be started: {command[0]}: {error.strerror}") from error
        finally:
            os.close(output)
        try:
            self.pid_file.write_text(f"{pid} {_identity(pid)}\n")
        except OSError as error:
            # On a full disk. Nobody would find it again.
            os.kill(pid, signal.SIGKILL)
            raise LocalError(f"{self.name} cannot be started: {self.pid_file}: {error.strerror}") from error
        return pid

    def stop(self, *, seconds: float, how: signal.Signals = signal.SIGTERM) -> bool:
        """Ask it to stop, and kill it with all its children if it takes longer than ``seconds``.

        Returns:
            Whether it stopped by itself (or did not run).
        """
        pid = self.pid()
        clean = True
        if pid is not None:
            os.kill(pid, how)
            clean = wait_until(lambda: self.pid() is None, seconds)
            # Its children share its session; after a clean stop there may be some left that did not notice.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            if not clean and not wait_until(lambda: self.pid() is None, 5):
                raise LocalError(f"{self.name} (process {pid}) cannot be stopped")
        self.pid_file.unlink(missing_ok=True)
        return clean

    def last_line(self) -> str:
        """The last line it wrote, for error messages."""
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return ""
        return next((line.strip() for line in reversed(lines) if line.strip()), "")
