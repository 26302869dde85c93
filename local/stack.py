"""The local stack as a whole: started, described, stopped. Every step is safe to repeat."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from urllib.parse import urlsplit

from local import hold, projects
from local.aws import Aws
from local.delivery_check import undelivered
from local.deploy import deployer
from local.emulator import lifecycle
from local.errors import LocalError, Say
from local.iam import roles
from local.place import HOST, REGION, REPOSITORY, Place
from local.processes import Daemon, wait_until
from local.state.disk_space import Room

DEFAULT_PROJECT = "default"
_FRONT_DOOR_START_SECONDS = 20.0
_FRONT_DOOR_STOP_SECONDS = 45.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """How to reach the running stack: the content of ``local.json``.

    Attributes:
        base_url: What clients of the hub use.
        project_id: The default project.
        token: Its token.
        aws_endpoint_url: What AWS SDKs use.
        region: For AWS SDKs.
        outputs: The outputs of the deployed template: names of tables, buckets, functions; URLs of queues.
    """

    base_url: str
    project_id: str
    token: str
    aws_endpoint_url: str
    region: str
    outputs: dict[str, str]


def up(place: Place, say: Say) -> Description:
    """Bring the stack up: emulator, deployment, front door, projects. What was started is ended again if that fails."""
    with _only_one(place):
        _check_same_ports(place)
        door = front_door(place)
        if door.pid() is None:
            lifecycle.check_port(place.port, "PUSHHUB_PORT")
        lost = lifecycle.rolled_back(place) if lifecycle.daemon(place).pid() is None else ""
        started = lifecycle.start(place)
        try:
            if started:
                say(f"emulator started on {place.aws_endpoint_url}")
            if lost:
                say(f"NOTE: {lost}")
            description = _complete(place, door, say)
        except BaseException:
            if started:
                _close(place)
            raise
        # What was deployed is there even if the emulator is killed a moment later.
        failed = lifecycle.save(place) if started else ""
        if failed:
            say(f"NOTE: the state cannot be saved: {failed}")
        return description


def _complete(place: Place, door: Daemon, say: Say) -> Description:
    """Start what runs on top of the emulator."""
    clients = Aws(place.aws_endpoint_url)
    _check_same_address(place, clients)
    if hold.release(clients):
        say("work that was held for sam local goes on")
    if deployer.deploy(place, clients, say):
        say("deployed")
    outputs = deployer.outputs(clients)
    untold = {"HttpApiId", "WebSocketApiId", "ConfigTableName"} - outputs.keys()
    if untold:
        raise LocalError(f"the template has no output {' and '.join(sorted(untold))}, which the local stack needs")
    if door.pid() is None:
        _start_front_door(place, door, outputs)
        say(f"front door open on {place.base_url}")
    table = outputs["ConfigTableName"]
    projects.restore(clients, table, place.projects)
    project = projects.find(DEFAULT_PROJECT, place.projects)
    project = project or projects.make(clients, table, DEFAULT_PROJECT, place.projects)
    description = Description(
        base_url=place.base_url,
        project_id=project.project_id,
        token=project.token,
        aws_endpoint_url=place.aws_endpoint_url,
        region=REGION,
        outputs=outputs,
    )
    projects.write_private(place.description, json.dumps(asdict(description), indent=2) + "\n")
    return description


def down(place: Place, say: Say) -> bool:
    """Stop the stack and keep its state: let requests and attempts under way finish, then save.

    Returns:
        Whether anything ran.

    Raises:
        LocalError: Not all of its state could be saved. If that can still be mended, the emulator keeps running and the
            text says how.
    """
    if not place.home.exists():
        return False
    with _only_one(place):
        place = where_it_runs(place)
        running = lifecycle.daemon(place).pid() is not None
        ran = running or front_door(place).pid() is not None
        place.description.unlink(missing_ok=True)
        if not front_door(place).stop(seconds=_FRONT_DOOR_STOP_SECONDS):
            say("the front door had to be killed: requests under way were cut off")
        # An emulator that ended before is told of when it is started again, by what it left.
        if not lifecycle.stop(place) or (ran and not running):
            raise LocalError(f"Pushhub is down, but not in order: {lifecycle.rolled_back(place)}")
        return ran


def _close(place: Place) -> None:
    """Stop what could not be brought up."""
    place.description.unlink(missing_ok=True)
    front_door(place).stop(seconds=2)
    try:
        lifecycle.stop(place)
    except LocalError:
        lifecycle.abandon(place)


def abandon(place: Place) -> None:
    """Kill the stack at once, without saving its state; its logs stay."""
    if place.home.exists():
        with _only_one(place):
            place = where_it_runs(place)
            place.description.unlink(missing_ok=True)
            front_door(place).stop(seconds=2)
            lifecycle.abandon(place)


def clean(place: Place) -> None:
    """End the stack and remove everything it has written."""
    abandon(place)
    shutil.rmtree(place.home, ignore_errors=True)


def kill_function_workers(place: Place, function: str, number: signal.Signals = signal.SIGKILL) -> int:
    """Kill a function's processes as a crash would, in the middle of their work, or send them another signal.

    Args:
        function: Name of the function, as the outputs tell it.

    Returns:
        How many there were.
    """
    sign = f"{place.temporary}/function-{function}-"
    signalled = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                if _runs(entry, sign):
                    os.kill(int(entry.name), number)
                    signalled += 1
    return signalled


def _runs(process: Path, sign: str) -> bool:
    """Whether a process is one of a function's, each of which holds a file open that says so."""
    return any(str(each.readlink()).startswith(sign) for each in (process / "fd").iterdir())


def is_up(place: Place) -> bool:
    """Whether both processes run."""
    return lifecycle.daemon(place).pid() is not None and front_door(place).pid() is not None


def describe(place: Place) -> Description:
    """The description of the running stack."""
    try:
        content = json.loads(place.description.read_text())
        return Description(**{field.name: content[field.name] for field in fields(Description)})
    except FileNotFoundError:
        half = lifecycle.daemon(place).pid() is not None
        state = "closed, but its emulator still runs" if half else "not running"
        raise LocalError(f"the stack is {state}: {'open' if half else 'start'} it with 'make up'") from None
    except (ValueError, KeyError, TypeError):
        raise LocalError(f"{place.description} is damaged: 'make up' writes it anew") from None


def problems(place: Place) -> list[str]:
    """What is wrong with the stack, and what to do about each problem; everything is really tried."""
    description = describe(place)
    place = where_it_runs(place)
    door, runs = front_door(place), lifecycle.daemon(place)
    found = [
        f"{each.name} has ended by itself (see {each.log}): 'make up' starts it again"
        for each in (runs, door)
        if each.pid() is None
    ]
    if found:
        return found
    try:
        failed = lifecycle.saved(place).get("failed")
    except LocalError as error:
        return [str(error)]
    if failed:
        found.append(f"the state cannot be saved, so nothing since the last snapshot would outlive a crash: {failed}")
    if not Room(place.state).left():
        found.append(f"the disk of {place.state} is nearly full, so posts are refused: make room")
    lacks = {(each["function"], each["action"], each["resource"]) for each in roles.notes_of(place, "refused")}
    found += [
        f"{function} may not {action} on {resource}, which it does" for function, action, resource in sorted(lacks)
    ]
    if hold.is_held(aws(description)):
        found.append("the stack's work is held for 'make sam-local': end that, or 'make up' goes on without it")
    if not found:
        # A message of its own, as answers alone do not show that anything is delivered.
        fails = undelivered(description.base_url, description.project_id, description.token)
        if fails:
            found.append(f"{description.base_url} {fails}: see {door.log} and {runs.log}")
    return found


def where_it_runs(place: Place) -> Place:
    """The place with the ports of the running stack. The environment may name others, where another stack is."""
    try:
        runs = describe(place)
        ports = [urlsplit(url).port for url in (runs.base_url, runs.aws_endpoint_url)]
    except (LocalError, ValueError):
        return place
    return replace(place, port=ports[0] or place.port, aws_port=ports[1] or place.aws_port)


def aws(description: Description) -> Aws:
    """Clients of the running stack's emulator."""
    return Aws(description.aws_endpoint_url)


def _check_same_ports(place: Place) -> None:
    """A running stack cannot move to other ports."""
    if place.description.exists() and (lifecycle.daemon(place).pid() or front_door(place).pid()):
        try:
            runs = describe(place)
        except LocalError:
            # Damaged; it is written again.
            return
        if (runs.base_url, runs.aws_endpoint_url) != (place.base_url, place.aws_endpoint_url):
            raise LocalError(
                f"the stack runs already, on {runs.base_url} and {runs.aws_endpoint_url}: 'make down' first"
            )


def _check_same_address(place: Place, clients: Aws) -> None:
    """What was deployed stays on the emulator's port: its queues have it in their addresses, and so have functions."""
    port = deployer.deployed_on(clients)
    if port not in (None, place.aws_port):
        raise LocalError(
            f"what is saved in {place.home} belongs to port {port}, and would deliver nothing on {place.aws_port}: "
            f"PUSHHUB_AWS_PORT={port} make up, or 'make clean' to begin anew"
        )


def front_door(place: Place) -> Daemon:
    """The front door's process at this place."""
    return Daemon(name="the front door", pid_file=place.pid_file("front-door"), log=place.logs / "front-door.log")


def _start_front_door(place: Place, process: Daemon, outputs: Mapping[str, str]) -> None:
    upstream = f"{place.aws_endpoint_url}/_aws/execute-api/{outputs['HttpApiId']}/$default"
    websocket = f"ws://{HOST}:{place.aws_port}/_aws/execute-api/{outputs['WebSocketApiId']}/live"
    environ = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "PYTHONPATH": str(REPOSITORY)}
    arguments = [str(place.port), upstream, websocket, str(place.state)]
    process.start([sys.executable, "-m", "local.front_door.http_door", *arguments], environ)
    up = wait_until(lambda: process.pid() is None or _listens(place.port), _FRONT_DOOR_START_SECONDS)
    if not up or process.pid() is None:
        last = process.last_line()
        process.stop(seconds=5)
        raise LocalError(f"the front door did not start ({process.log}): {last or 'it wrote nothing'}")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) == 0


@contextlib.contextmanager
def _only_one(place: Place) -> Iterator[None]:
    """Let one command at a time change the stack; a second one waits for the first."""
    place.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (place.home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
