"""What operators change with ``pushhub``, in the audit trail of the hub (docs/decisions/security.md)."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Mapping
from dataclasses import asdict
from threading import Lock
from typing import Any

import click

from pushhub.base.errors import HubError
from pushhub.base.times import iso_time
from pushhub.cloud.audit_trail import OPERATORS, S3AuditTrail
from pushhub.cloud.clock import SystemClock
from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore
from pushhub.web.audit import ASKED, ENDED, Change, Identity, redacted

READING = ("Get", "BatchGet", "List", "Describe", "Query", "Scan", "Head", "Decrypt", "Simulate")
"""How the names of calls begin that change nothing."""


def person() -> str:
    """The name of the person's account on this machine."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


class CommandTrail:
    """The trail of one command: its first entry is kept before its first call that changes something."""

    def __init__(self, session: Any, options: Mapping[str, Any], *, bucket: str, table: str) -> None:
        self._table = table
        self._session = session
        self._options = options
        self._trail = S3AuditTrail(session.client("s3", **options), bucket)
        self._change: Change | None = None
        self._first = Lock()
        self._shown: list[Mapping[str, Any]] = []

    def before(self, model: Any, **_: Any) -> None:
        """A call is about to be made. Calls side by side wait until the entry is kept.

        Raises:
            click.ClickException: It would change something, which cannot be kept in the trail.
        """
        if not model.name.startswith(READING):
            with self._first:
                self._begin()

    def _begin(self) -> None:
        if self._change is not None:
            return
        context = click.get_current_context()
        project = context.params.get("project") or ""
        self._change = Change(who=Identity(project=project, kind="operator"), at=iso_time(SystemClock().now()))
        command = context.command_path.partition(" ")[2]
        try:
            arn = self._session.client("sts", **self._options).get_caller_identity()["Arn"]
            self._append(
                ASKED,
                {
                    "by": {"kind": "operator", "token": "", "arn": arn, "person": person()},
                    "from": {"address": "", "agent": socket.gethostname()},
                    "action": f"operator.{command.replace(' ', '.')}",
                    "what": f"pushhub {command} {project}".rstrip(),
                    "asked": redacted(context.params),
                    "before": self._before(project),
                },
            )
        except HubError as error:
            self._change = None
            raise click.ClickException(
                f"nothing was changed, as it cannot be kept in the hub's audit trail: {error}"
            ) from error

    def showed(self, rows: list[Mapping[str, Any]]) -> None:
        """The command shows its results."""
        self._shown = rows

    def ended(self, code: int | None) -> None:
        """The command ends.

        Args:
            code: Its exit code; None if it failed, with an unknown effect.
        """
        if self._change is None:
            return
        try:
            self._append(ENDED, {"status": code, "after": redacted(self._shown)})
        except HubError as error:
            click.echo(f"how it ended is not in the hub's audit trail: {error}", err=True)

    def _before(self, project: str) -> Any:
        """The project as it is; None if the command is about none."""
        if not project:
            return None
        dynamodb = self._session.client("dynamodb", **self._options)
        found = DynamoDBConfigStore(dynamodb, self._table, SystemClock()).project(project)
        return None if found is None else redacted(asdict(found))

    def _append(self, part: str, entry: Mapping[str, Any]) -> None:
        change = self._change
        assert change is not None
        whole = {"id": change.id, "at": change.at, "project": change.who.project, "part": part, **entry}
        self._trail.append(OPERATORS, change.at, f"{change.id}-{part}", whole)
