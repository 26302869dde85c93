"""Where the local stack keeps its files and which ports it uses.

Everything can be moved by environment variables, so that tests and a second stack live beside a running one:

===========================  ==========================================  ==============================
variable                     what                                        default
===========================  ==========================================  ==============================
``PUSHHUB_HOME``             state, logs, pid files, ``local.json``      ``.pushhub``
``PUSHHUB_PORT``             the base URL's port                         8377
``PUSHHUB_AWS_PORT``         the emulator's port                         4577
``PUSHHUB_EMULATOR``         Python that has the emulator                ``.venv-ministack/bin/python``
``PUSHHUB_TEMPLATE``         SAM template to deploy                      ``template.yaml``
``PUSHHUB_ALLOWED_TARGETS``  hosts or networks (with commas) where       none
                             subscribers may be, besides this machine
                             and public addresses
``PUSHHUB_PARAMETERS``       the template's parameters                  none
===========================  ==========================================  ==============================
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from local.errors import LocalError

REPOSITORY = Path(__file__).resolve().parent.parent
"""The folder that holds ``template.yaml``."""
HOST = "127.0.0.1"
"""Nothing of the local stack listens anywhere else."""
REGION = "us-east-1"
"""The region the emulated resources are in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Files and ports of one local stack.

    Attributes:
        home: Folder of everything the stack writes.
        port: Port of the base URL.
        aws_port: Port of the emulator.
        emulator_python: Interpreter of the environment that holds the emulator; functions run under it too.
        template: The SAM template to deploy.
        allowed_targets: Hosts or networks where subscribers may be, besides loopback and public addresses.
        parameters: The template's, by name, that are to be others than on any machine.
        builds: Built packages, named by digest, and what functions were seen to import; shared by all stacks of this
            repository; safe to delete.
    """

    home: Path
    port: int = 8377
    aws_port: int = 4577
    emulator_python: Path = REPOSITORY / ".venv-ministack" / "bin" / "python"
    template: Path = REPOSITORY / "template.yaml"
    allowed_targets: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    builds: Path = REPOSITORY / ".pushhub" / "builds"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Place:
        """The place the environment variables describe."""
        return cls(
            home=_path(environ, "PUSHHUB_HOME", ".pushhub"),
            port=_port(environ, "PUSHHUB_PORT", 8377),
            aws_port=_port(environ, "PUSHHUB_AWS_PORT", 4577),
            emulator_python=_path(environ, "PUSHHUB_EMULATOR", ".venv-ministack/bin/python"),
            template=_path(environ, "PUSHHUB_TEMPLATE", "template.yaml"),
            allowed_targets=tuple(
                each.strip() for each in environ.get("PUSHHUB_ALLOWED_TARGETS", "").split(",") if each.strip()
            ),
            parameters=_parameters(environ.get("PUSHHUB_PARAMETERS", "")),
        )

    @property
    def base_url(self) -> str:
        """What clients of the hub use."""
        return f"http://{HOST}:{self.port}"

    @property
    def aws_endpoint_url(self) -> str:
        """What AWS SDKs use."""
        return f"http://{HOST}:{self.aws_port}"

    @property
    def state(self) -> Path:
        """What outlives a stop: the emulator's tables, queues and objects, and what was deployed."""
        return self.home / "state"

    @property
    def logs(self) -> Path:
        """Log files of the daemons."""
        return self.home / "logs"

    @property
    def temporary(self) -> Path:
        """Scratch space of the emulator; emptied at each start."""
        return self.home / "tmp"

    @property
    def rights(self) -> Path:
        """What functions did with their roles' rights, and what was refused (:mod:`local.iam.function_rights`)."""
        return self.home / "rights"

    @property
    def description(self) -> Path:
        """``local.json``: how to reach the running stack. It exists while the stack runs."""
        return self.home / "local.json"

    @property
    def projects(self) -> Path:
        """Tokens of the projects made here. The stack itself keeps only their hashes."""
        return self.state / "projects.json"

    def pid_file(self, name: str) -> Path:
        """Where the process id of a daemon is."""
        return self.home / f"{name}.pid"


def _path(environ: Mapping[str, str], name: str, default: str) -> Path:
    given = environ.get(name)
    return Path(given).absolute() if given else REPOSITORY / default


def _port(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name, "")
    if not text:
        return default
    if text.isdecimal() and 0 < int(text) < 65_536:
        return int(text)
    raise LocalError(f"{name} is {text!r}: it must be a port number, 1 to 65535")


def _parameters(text: str) -> dict[str, str]:
    """Parameters that are written as for a shell: ``Name=Value``, with spaces between.

    Raises:
        LocalError: They are not.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise LocalError(f"PUSHHUB_PARAMETERS: {error}") from error
    pairs = [each.partition("=") for each in words]
    if not all(name and equals for name, equals, _ in pairs):
        raise LocalError("PUSHHUB_PARAMETERS: Name=Value is required, with spaces between several")
    return {name: value for name, _, value in pairs}
