"""Projects of the local stack and their tokens.

The stack keeps only a hash of each token, so they are kept here for scripts.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from local.aws import Aws
from local.errors import LocalError
from pushhub.cloud.clock import SystemClock
from pushhub.engine.model.project import Project
from pushhub.engine.projects.projects import Projects
from pushhub.engine.projects.tokens import token_hash
from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore

_NAME = re.compile(r"[\w.-]{1,64}")


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client needs in addition to the base URL.

    Attributes:
        name: For people.
        project_id: 24 hex characters.
        token: Sent as ``Authorization: OAuth TOKEN``.
    """

    name: str
    project_id: str
    token: str


def make(aws: Aws, table: str, name: str, file: Path, *, allowed_targets: Sequence[str] = ()) -> Credentials:
    """Create a project with one token in the stack, and remember it.

    Args:
        name: For people, and to find the project again.
        allowed_targets: Hosts or networks where its subscribers may be, besides what every project may.
    """
    if not _NAME.fullmatch(name):
        raise LocalError(f"{name!r} is no name for a project: use up to 64 letters, digits, '.', '_' and '-'")
    if find(name, file):
        raise LocalError(f"there is a project {name!r} already: see {file}")
    service = Projects(config=_store(aws, table), clock=SystemClock())
    project = service.make(name, allowed_targets=allowed_targets)
    credentials = Credentials(name, project.project_id, service.make_token(project.project_id, name))
    write_private(file, json.dumps([asdict(each) for each in [*remembered(file), credentials]], indent=2) + "\n")
    return credentials


def _store(aws: Aws, table: str) -> DynamoDBConfigStore:
    return DynamoDBConfigStore(aws.dynamodb(), table, SystemClock())


def restore(aws: Aws, table: str, file: Path) -> None:
    """Create remembered projects again if the stack has lost them, for example in a power cut."""
    store, now = _store(aws, table), SystemClock().now()
    for each in remembered(file):
        if store.project(each.project_id) is None:
            store.put_project(
                Project(
                    project_id=each.project_id,
                    name=each.name,
                    created_at=now,
                    external_secret=secrets.token_hex(16),
                )
            )
            store.put_token(each.project_id, token_hash(each.token), each.name, now)


def remembered(file: Path) -> list[Credentials]:
    """All projects made here, oldest first."""
    try:
        text = file.read_text()
    except FileNotFoundError:
        return []
    try:
        entries = json.loads(text)
        # Anything else that can be iterated would pass for an empty list.
        return [Credentials(**entry) for entry in (entries if isinstance(entries, list) else [entries])]
    except (ValueError, TypeError):
        raise LocalError(
            f"{file} is damaged: put a copy back, or remove it (its projects keep their queues, but their tokens "
            f"are known nowhere else)"
        ) from None


def find(name: str, file: Path) -> Credentials | None:
    """The project made here under a name."""
    return next((each for each in remembered(file) if each.name == name), None)


def write_private(file: Path, text: str) -> None:
    """Write a file that only its owner may read, completely or not at all."""
    unfinished = file.with_name(file.name + ".unfinished")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(descriptor)
    unfinished.replace(file)
