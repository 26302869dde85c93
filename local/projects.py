"""Projects of the local stack and their tokens. The stack keeps only a hash of each token, so they are kept here for scripts."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from local.aws import Aws
from local.errors import LocalError
from pushhub.adapters.dynamodb_config import DynamoDBConfigStore
from pushhub.adapters.system_clock import SystemClock
from pushhub.domain.queue import Project

__all__ = ["Credentials", "find", "make", "remembered", "restore", "write_private"]

_NAME = re.compile(r"[\w.-]{1,64}")


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client needs besides the base URL.

    Attributes:
        name: For people.
        project_id: 24 hex characters.
        token: Sent as ``Authorization: OAuth TOKEN``.
    """

    name: str
    project_id: str
    token: str


def make(aws: Aws, table: str, name: str, file: Path) -> Credentials:
    """Make a project with one token in the stack and remember it.

    Args:
        aws: Clients of the emulator.
        table: Name of the configuration table.
        name: For people, and to find the project again.
        file: Where projects made here are remembered.

    Raises:
        LocalError: The name is not usable, or taken.
    """
    if not _NAME.fullmatch(name):
        raise LocalError(f"{name!r} is no name for a project: use up to 64 letters, digits, '.', '_' and '-'")
    if find(name, file):
        raise LocalError(f"there is a project {name!r} already: see {file}")
    made = Credentials(name, secrets.token_hex(12), secrets.token_urlsafe(24))
    _put(aws, table, made)
    write_private(file, json.dumps([asdict(each) for each in [*remembered(file), made]], indent=2) + "\n")
    return made


def _put(aws: Aws, table: str, made: Credentials) -> None:
    clock = SystemClock()
    store = DynamoDBConfigStore(aws.dynamodb(), table, clock)
    store.put_project(Project(project_id=made.project_id, name=made.name, created_at=clock.now()))
    store.put_token(made.project_id, hashlib.sha256(made.token.encode()).hexdigest(), made.name, clock.now())


def restore(aws: Aws, table: str, file: Path) -> None:
    """Make the remembered projects again that the stack has lost, as after a power cut."""
    store = DynamoDBConfigStore(aws.dynamodb(), table, SystemClock())
    for each in remembered(file):
        if store.project(each.project_id) is None:
            _put(aws, table, each)


def remembered(file: Path) -> list[Credentials]:
    """All projects made here, oldest first."""
    return [Credentials(**entry) for entry in json.loads(file.read_text())] if file.exists() else []


def find(name: str, file: Path) -> Credentials | None:
    """The project made here under a name."""
    return next((each for each in remembered(file) if each.name == name), None)


def write_private(file: Path, text: str) -> None:
    """Write a file only its owner may read, whole or not at all."""
    unfinished = file.with_name(file.name + ".unfinished")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
    unfinished.replace(file)
