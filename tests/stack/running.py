"""A running local stack for tests: everything in ``local.json``, and the means to disturb it."""

from __future__ import annotations

import secrets
import shutil
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
from local.aws import Aws, ClientArguments
from local.iam import roles
from local.place import HOST, REPOSITORY, Place
from local.projects import Credentials
from local.stack import Description

from local import projects, stack

__all__ = ["RunningStack", "free_port", "prepared"]

_PORTS = range(20_000, 32_000)
"""Below those that a system gives to outgoing connections, one of which might have the port of a stack that is down."""


def free_port() -> int:
    """A port on loopback that is free now, and that no outgoing connection gets."""
    while True:
        port = _PORTS[secrets.randbelow(len(_PORTS))]
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, port))
            return port


def prepared(home: Path) -> Place:
    """A place on free ports with a copy of the sources in ``home/sources``,
    so that edits do not reach a running test.
    """
    sources = home / "sources"
    for name in ("functions", "layers", "stacks"):
        shutil.copytree(REPOSITORY / name, sources / name, ignore=shutil.ignore_patterns("__pycache__"))
    template = sources / "template.yaml"
    shutil.copy(REPOSITORY / "template.yaml", template)
    emulator_python = Place.from_environment().emulator_python
    return Place(
        home=home / "stack",
        port=free_port(),
        aws_port=free_port(),
        emulator_python=emulator_python,
        template=template,
    )


@dataclass(kw_only=True)
class RunningStack:
    """A running stack.

    Attributes:
        place: Its files and ports.
        description: How to reach it.
        said: Messages from starting and stopping it.
    """

    place: Place
    description: Description = field(init=False)
    said: list[str] = field(default_factory=list)

    @classmethod
    def start(cls, home: Path) -> RunningStack:
        """Start one in an empty folder, on free ports, from the sources as they are now."""
        running = cls(place=prepared(home))
        running.up()
        return running

    @property
    def base_url(self) -> str:
        """The base URL for clients of the hub."""
        return self.description.base_url

    @property
    def project_id(self) -> str:
        """The default project."""
        return self.description.project_id

    @property
    def token(self) -> str:
        """Token of the default project."""
        return self.description.token

    @property
    def outputs(self) -> dict[str, str]:
        """The template's outputs: ``ConfigTableName``, ``PushQueueUrl``, ``PushFunctionName`` ..."""
        return self.description.outputs

    @property
    def aws(self) -> Aws:
        """Makes clients of the emulator: ``stack.aws.sqs()``."""
        return stack.aws(self.description)

    @property
    def client_arguments(self) -> ClientArguments:
        """Arguments for clients made elsewhere: ``boto3.client("sqs", **stack.client_arguments)``."""
        return self.aws.arguments

    def call(self, method: str, path: str, *, json: Any = None, timeout: float = 40) -> requests.Response:
        """Call the queue API of the default project; ``path`` is what follows the project's id."""
        url = f"{self.base_url}/3/projects/{self.project_id}{path}"
        headers = {"Authorization": f"OAuth {self.token}"}
        return requests.request(method, url, json=json, headers=headers, timeout=timeout)

    def make_project(self, name: str = "") -> Credentials:
        """Create another project with its own token."""
        table = self.outputs["ConfigTableName"]
        return projects.make(self.aws, table, name or f"test-{secrets.token_hex(4)}", self.place.projects)

    def restart(self) -> None:
        """Stop the stack and start it again; its ports and its state stay."""
        self.down()
        self.up()

    def up(self) -> None:
        """Start it, or do nothing."""
        self.description = stack.up(self.place, self.said.append)

    def down(self) -> None:
        """Stop it and keep its state."""
        stack.down(self.place, self.said.append)

    def discard(self) -> None:
        """Stop it for good and remove its state; its logs stay.

        Raises:
            AssertionError: A function has made a call that its role does not grant.
        """
        stack.abandon(self.place)
        roles.keep(roles.used_in(self.place))
        refused = [*roles.notes_of(self.place, "refused")]
        assert not refused, f"refused by their roles: {refused}"

    def kill_function_workers(self, function: str) -> int:
        """Kill the processes of a function (``push``, ``ingest`` ...) with SIGKILL; returns how many there were."""
        return stack.kill_function_workers(self.place, self.outputs[f"{function.capitalize()}FunctionName"])
