"""Which hub a command is about, for its operator (AWS) and for a project (HTTP), and how results are printed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import click
from local.errors import LocalError
from local.place import Place

from cli.rest import Rest
from cli.settings import Profile, Profiles, profile_from_environment
from cli.terminal import coloured, printable

UNREACHABLE = 3
"""Exit code when there is no hub to talk to."""


class NoHub(click.ClickException):
    """There is no hub to talk to."""

    exit_code = UNREACHABLE


@dataclass(slots=True)
class HubOptions:
    """Options that choose the hub.

    Attributes:
        stack: Name of a deployed stack; None for the profile's, or the local one.
        profile: Name of one of the person's profiles; None for the environment's.
        aws_profile: Profile of the AWS configuration; None for the environment's.
        region: Region of the deployed stack; None for the profile's.
        as_json: Whether results are printed as JSON.
    """

    stack: str | None = None
    profile: str | None = None
    aws_profile: str | None = None
    region: str | None = None
    as_json: bool = False

    def settings(self) -> Profile:
        """The settings from options, profile and environment together.

        Raises:
            click.ClickException: There is no such profile.
        """
        name = self.profile or os.environ.get("PUSHHUB_PROFILE")
        known = Profiles().get(name) if name else profile_from_environment()
        return replace(
            known,
            stack=self.stack or known.stack,
            aws_profile=self.aws_profile or known.aws_profile,
            region=self.region or known.region,
        )

    def rest(self) -> Rest:
        """The hub's HTTP APIs, as a project.

        Raises:
            click.ClickException: The hub's address or the credentials are missing.
        """
        known = self.settings()
        if known.url:
            if not (known.project and known.token):
                raise click.ClickException("a project and its token are missing: set PUSHHUB_PROJECT and PUSHHUB_TOKEN")
            return Rest(known.url, known.project, known.token)
        if known.stack:
            raise click.ClickException(
                "a project's commands need its token: pushhub profiles set NAME --url BASE_URL --project ID "
                "--stack STACK"
            )
        described = local_description()
        return Rest(described["base_url"], described["project_id"], described["token"])

    def show(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Print results: as JSON, or as a table with a heading."""
        rows = list(rows)
        if self.as_json:
            click.echo(json.dumps(rows, ensure_ascii=False))
            return
        if not rows:
            click.echo("none")
            return
        columns = list(rows[0])
        texts = [columns, *([printable(row.get(each)) for each in columns] for row in rows)]
        widths = [max(len(line[number]) for line in texts) for number in range(len(columns))]
        for number, line in enumerate(texts):
            shown = "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
            click.echo(click.style(shown, bold=True) if number == 0 else coloured(shown))

    def event(self, fields: Mapping[str, Any], text: str) -> None:
        """Print an event at once: a line of JSON, or of text."""
        click.echo(json.dumps(fields, ensure_ascii=False) if self.as_json else coloured(text))
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """Tell a person something that is not a result."""
        click.secho(text, dim=True, err=True)


def local_description() -> dict[str, Any]:
    """How to reach the stack on this machine: the content of its ``local.json``.

    Raises:
        NoHub: It does not run.
    """
    try:
        file = Place.from_environment().description
        described: dict[str, Any] = json.loads(file.read_text())
    except (OSError, ValueError, LocalError) as error:
        raise NoHub(
            "no hub runs on this machine: start it with 'pushhub up', or choose another with --profile"
        ) from error
    return described
