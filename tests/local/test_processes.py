"""Background processes: found again, not mistaken for others, stopped within a bound."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from local.errors import LocalError
from local.processes import Daemon, wait_until

SLEEP = "import time; time.sleep(60)"


@pytest.fixture
def daemon(tmp_path: Path) -> Daemon:
    return Daemon(name="the thing", pid_file=tmp_path / "run" / "thing.pid", log=tmp_path / "logs" / "thing.log")


def start(daemon: Daemon, script: str) -> int:
    return daemon.start([sys.executable, "-c", script], {"PATH": os.environ["PATH"], "MARK": "set"})


def test_it_runs_apart_from_the_terminal_and_is_found_again(daemon: Daemon) -> None:
    # Given nothing, when it is started
    assert daemon.pid() is None
    pid = start(daemon, SLEEP)
    # Then it is found, in a session of its own
    again = Daemon(name="the thing", pid_file=daemon.pid_file, log=daemon.log)
    assert again.pid() == pid
    assert os.getsid(pid) == pid
    # And it stops when asked to
    assert again.stop(seconds=10)
    assert daemon.pid() is None
    assert not daemon.pid_file.exists()


def test_it_gets_its_environment_and_no_other_and_its_output_is_kept(daemon: Daemon) -> None:
    # Given a program that tells its environment and reads its input
    start(daemon, "import os,sys; print(os.environ.get('MARK'), os.environ.get('HOME'), sys.stdin.read() == '')")
    # When it has ended
    assert wait_until(lambda: daemon.pid() is None, 90)
    # Then its log tells
    assert daemon.last_line() == "set None True"


def test_stopping_what_does_not_run_is_fine(daemon: Daemon) -> None:
    # Given nothing that runs, when it is stopped, twice, then nothing happens
    assert daemon.stop(seconds=1)
    assert daemon.stop(seconds=1)


def test_one_that_does_not_stop_is_killed_with_its_children_and_that_is_told(daemon: Daemon) -> None:
    # Given a process that ignores the signal and has a child
    script = (
        "import signal,subprocess,sys,time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)"
    )
    start(daemon, script)
    assert wait_until(lambda: daemon.last_line().isdecimal(), 90)
    child = int(daemon.last_line())
    # When it is stopped
    started = time.monotonic()
    clean = daemon.stop(seconds=0.3)
    # Then it is gone in time, with its child, and the caller knows
    assert not clean
    assert time.monotonic() - started < 30
    assert daemon.pid() is None
    assert wait_until(
        lambda: not Path(f"/proc/{child}").exists() or " Z " in Path(f"/proc/{child}/stat").read_text(), 90
    )


def test_a_pid_file_of_a_process_that_is_gone_or_another_counts_for_nothing(daemon: Daemon) -> None:
    # Given a pid file whose process id now belongs to an unrelated process
    other = subprocess.Popen([sys.executable, "-c", SLEEP])
    try:
        daemon.pid_file.parent.mkdir()
        daemon.pid_file.write_text(f"{other.pid} 12345\n")
        # When it is looked at and stopped
        assert daemon.pid() is None
        assert daemon.stop(seconds=1)
        # Then the other process is left alone
        assert other.poll() is None
    finally:
        other.send_signal(signal.SIGKILL)
        other.wait()


@pytest.mark.parametrize("content", ["", "\n", "nonsense", "12", "-1 5", "99999999 1"])
def test_a_damaged_pid_file_counts_for_nothing(daemon: Daemon, content: str) -> None:
    # Given a damaged pid file, when it is looked at, then nothing runs
    daemon.pid_file.parent.mkdir()
    daemon.pid_file.write_text(content)
    assert daemon.pid() is None


def test_a_program_that_is_missing_is_named(daemon: Daemon) -> None:
    # Given a program that does not exist, when it is started, then the message names it
    with pytest.raises(LocalError, match="the thing cannot be started: /no/such/program: No such file"):
        daemon.start(["/no/such/program"], {})


def test_a_log_that_has_grown_is_set_aside(daemon: Daemon) -> None:
    # Given a large log
    daemon.log.parent.mkdir()
    with daemon.log.open("wb") as log:
        log.truncate(20_000_001)
    # When it is started
    start(daemon, "print('new')")
    assert wait_until(lambda: daemon.pid() is None, 90)
    # Then it writes a new one
    assert daemon.log.read_text() == "new\n"
    assert daemon.log.with_suffix(".old.log").stat().st_size == 20_000_001


def test_a_process_that_could_not_be_found_again_is_not_left_running(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a disk on which its id cannot be noted
    started: list[int] = []
    spawn = os.posix_spawn

    def noted(*given: Any, **more: Any) -> int:
        started.append(spawn(*given, **more))
        return started[-1]

    monkeypatch.setattr(os, "posix_spawn", noted)
    daemon.pid_file.mkdir(parents=True)
    # When it is started
    with pytest.raises(LocalError, match="the thing cannot be started"):
        start(daemon, SLEEP)
    # Then it does not run
    (pid,) = started
    assert os.waitpid(pid, 0)[0] == pid
