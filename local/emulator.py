"""MiniStack, the emulator of AWS, as a background process on loopback with its state on disk."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
from pathlib import Path

from local.errors import LocalError
from local.place import HOST, REGION, Place
from local.processes import Daemon, wait_until

__all__ = ["check_port", "daemon", "environment", "start", "stop"]

START_SECONDS = 60.0
"""A loaded state of some hundred megabytes takes a while to read."""
DRAIN_SECONDS = 10.0
"""How long functions under way may go on when the stack is stopped."""
SAVE_SECONDS = 30.0
"""How long saving the state may take after that."""


def daemon(place: Place) -> Daemon:
    """The emulator's process at this place."""
    return Daemon(name="the emulator", pid_file=place.pid_file("emulator"), log=place.logs / "emulator.log")


def environment(place: Place) -> dict[str, str]:
    """The whole environment of the emulator. Functions inherit it, so nothing of the caller's gets in."""
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
        "STATE_DIR": str(place.state / "emulator"),
        "S3_PERSIST": "1",
        "S3_DATA_DIR": str(place.state / "s3"),
        "PUSHHUB_DRAIN_SECONDS": str(DRAIN_SECONDS),
        # Idle workers beyond the first of a function are 40 MB each, but starting one takes a core for a second.
        "LAMBDA_WARM_TTL_SECONDS": "300",
        # Requests that wait for a function hold a thread each, and the functions' own calls need some too.
        "MINISTACK_WORKER_THREADS": "256",
        "LAMBDA_EXECUTOR": "local",
        "DOCKER_HOST": "unix:///nonexistent",
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
    for folder in (place.temporary, place.state / "emulator", place.state / "s3"):
        folder.mkdir(parents=True, exist_ok=True)
    program = Path(__file__).parent / "emulator_process.py"
    process.start([str(place.emulator_python), "-P", str(program)], environment(place))
    up = wait_until(lambda: process.pid() is None or is_ready(place), START_SECONDS)
    if not up or process.pid() is None:
        last = process.last_line()
        process.stop(seconds=5)
        raise LocalError(f"the emulator did not start ({process.log}): {last or 'it wrote nothing'}")
    return True


def stop(place: Place) -> bool:
    """Stop the emulator: let functions finish, save the state.

    Returns:
        False when it had to be killed, so that its state is that of its start (objects in S3 are newer).
    """
    clean = daemon(place).stop(seconds=DRAIN_SECONDS + SAVE_SECONDS, how=signal.SIGUSR1)
    # Each worker has an unpacked copy of the layer here.
    shutil.rmtree(place.temporary, ignore_errors=True)
    return clean
