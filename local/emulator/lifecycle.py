"""MiniStack, the emulator of AWS, as a background process on loopback with its state on disk."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
from datetime import datetime
from pathlib import Path
from typing import Any

from local.errors import LocalError
from local.place import HOST, REGION, REPOSITORY, Place
from local.processes import Daemon, wait_until
from local.state import journal, snapshots

__all__ = ["check_port", "daemon", "environment", "start", "stop"]

START_SECONDS = 60.0
"""A loaded state of some hundred megabytes takes a while to read."""
DRAIN_SECONDS = 10.0
"""How long running functions may continue when the stack is stopped."""
SAVE_SECONDS = 70.0
"""How long saving the state may take after that."""
STOP_SECONDS = 15.0
"""How long the process may take to end once its state is saved."""


def daemon(place: Place) -> Daemon:
    """The emulator's process at this place."""
    return Daemon(name="the emulator", pid_file=place.pid_file("emulator"), log=place.logs / "emulator.log")


def environment(place: Place) -> dict[str, str]:
    """The whole environment of the emulator. Functions inherit it, so it contains nothing of the caller's."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(place.temporary),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "TMPDIR": str(place.temporary),
        "PYTHONUNBUFFERED": "1",
        "BIND_HOST": HOST,
        "GATEWAY_PORT": str(place.aws_port),
        "MINISTACK_HOST": HOST,
        "MINISTACK_REGION": REGION,
        "PERSIST_STATE": "1",
        "STATE_DIR": str(_snapshots(place)),
        "S3_PERSIST": "1",
        "S3_DATA_DIR": str(place.state / "s3"),
        "PUSHHUB_DRAIN_SECONDS": str(DRAIN_SECONDS),
        # Idle workers beyond the first of a function are 40 MB each, but starting one takes a core for a second.
        "LAMBDA_WARM_TTL_SECONDS": "300",
        # Requests that wait for a function hold a thread each, and the functions' own calls need some too.
        "MINISTACK_WORKER_THREADS": "256",
        "LAMBDA_EXECUTOR": "local",
        "DOCKER_HOST": "unix:///nonexistent",
        "PUSHHUB_RIGHTS": str(place.rights),
        "PUSHHUB_IMPORTS": str(place.builds / "imports"),
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
    }


def check_port(port: int, variable: str) -> None:
    """Make sure a port is free.

    Raises:
        LocalError: Something listens there.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            raise LocalError(
                f"port {port} is in use by another program: stop it, or choose another port with {variable}"
            ) from None


def is_ready(place: Place) -> bool:
    """Whether the emulator answers."""
    connection = http.client.HTTPConnection(HOST, place.aws_port, timeout=5)
    try:
        connection.request("GET", "/_ministack/ready")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def start(place: Place) -> bool:
    """Start the emulator unless it runs.

    Returns:
        Whether it had to be started.

    Raises:
        LocalError: Its environment is missing, its port is in use, or it does not come up.
    """
    process = daemon(place)
    if process.pid() is not None:
        return False
    if not place.emulator_python.exists():
        raise LocalError(f"the emulator's environment is missing: {place.emulator_python}; 'make up' makes it")
    check_port(place.aws_port, "PUSHHUB_AWS_PORT")
    shutil.rmtree(place.temporary, ignore_errors=True)
    for folder in (place.temporary, place.rights, _snapshots(place), place.state / "s3"):
        folder.mkdir(parents=True, exist_ok=True)
    program = REPOSITORY / "local" / "apart.py"
    process.start([str(place.emulator_python), "-P", str(program), "emulator.process"], environment(place))
    up = wait_until(lambda: process.pid() is None or is_ready(place), START_SECONDS)
    if not up or process.pid() is None:
        last = process.last_line()
        process.stop(seconds=5)
        raise LocalError(f"the emulator did not start ({process.log}): {last or 'it wrote nothing'}")
    return True


def stop(place: Place) -> bool:
    """Stop the emulator: let functions finish, save the state.

    Returns:
        False when it did not answer and had to be killed: its state is that of its newest snapshot with the changes
        noted since.

    Raises:
        LocalError: The state cannot be saved. It runs on, as nothing else has that state.
    """
    process = daemon(place)
    if process.pid() is None:
        process.stop(seconds=0)
        return True
    try:
        status, said = _ask(place, "POST", "/_pushhub/stop", DRAIN_SECONDS + SAVE_SECONDS)
    except (OSError, http.client.HTTPException):
        status, said = 0, {}
    if status == 507:
        raise LocalError(
            f"the emulator was not stopped, because its state cannot be saved ({said.get('failed')}): make room and "
            f"say 'make down' again; "
            "'make up' opens the hub again, 'make clean' gives everything up"
        )
    process.stop(seconds=STOP_SECONDS, how=signal.SIGTERM if status == 200 else signal.SIGKILL)
    # Each worker has an unpacked copy of the layer here.
    shutil.rmtree(place.temporary, ignore_errors=True)
    return status == 200


def abandon(place: Place) -> None:
    """Kill the emulator; its memory is lost."""
    daemon(place).stop(seconds=5, how=signal.SIGKILL)
    shutil.rmtree(place.temporary, ignore_errors=True)


def save(place: Place) -> str:
    """Ask for a snapshot.

    Returns:
        Why that failed; empty when it did not.
    """
    try:
        status, said = _ask(place, "POST", "/_pushhub/snapshot", SAVE_SECONDS)
    except (OSError, http.client.HTTPException) as error:
        return f"the emulator did not answer: {error}"
    return "" if status == 200 else str(said.get("failed"))


def saved(place: Place) -> dict[str, Any]:
    """What the running emulator says about its snapshots: ``taken_at``, ``size``,
    and ``failed`` if the last attempt did.

    Raises:
        LocalError: It does not answer.
    """
    try:
        return _ask(place, "GET", "/_pushhub/snapshot", 10)[1]
    except (OSError, http.client.HTTPException) as error:
        raise LocalError(f"the emulator does not answer ({error or 'no reason'}): see {daemon(place).log}") from error


def rolled_back(place: Place) -> str:
    """What a person must know before the emulator starts: that it starts from an earlier state.

    Empty when it does not.

    Raises:
        LocalError: There are snapshots, and all of them are damaged.
    """
    root = _snapshots(place)
    known, whole = snapshots.latest(root), snapshots.newest(root)
    if known and not whole:
        raise LocalError(f"every snapshot in {root} is damaged: 'make clean' starts anew, without what they held")
    if snapshots.ended_in_order(root) and known == whole:
        return ""
    why = (
        "the newest snapshot is damaged"
        if known != whole
        else "the emulator ended without saving (killed, or a power cut)"
    )
    if whole is None:
        return f"{why}, and before it had saved anything: what was accepted is lost"
    changed_at = journal.last_change(root, whole.journal)
    if changed_at is None:
        return (
            f"{why}: everything is as it was at {at(whole.taken_at)}; if anything was accepted after that, it is lost"
        )
    return (
        f"{why}: everything is as it was at the last change, {at(changed_at)}; a power cut may have taken a second more"
    )


def at(moment: float) -> str:
    """A moment for people, in the local time zone."""
    return datetime.fromtimestamp(moment).astimezone().isoformat(sep=" ", timespec="seconds")


def _snapshots(place: Place) -> Path:
    return place.state / "emulator"


def _ask(place: Place, method: str, path: str, seconds: float) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection(HOST, place.aws_port, timeout=seconds)
    with contextlib.closing(connection):
        connection.request(method, path)
        answer = connection.getresponse()
        try:
            said = json.loads(answer.read())
        except ValueError as error:
            raise OSError(f"it answered {answer.status}") from error
        return answer.status, said
