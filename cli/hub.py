"""Which hub a command is about, for its operator (AWS) and for a project (HTTP), and how results are printed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from .answers import text
from .clone import running
from .settings import Profile, Profiles, profile_from_environment
from .terminal import as_json, coloured, printable

if TYPE_CHECKING:
    from .dry import NotDone
    from .rest import Rest
    from .trail import CommandTrail

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
        role_arn: Role that operators' commands assume; None for the profile's.
        as_json: Whether results are printed as JSON.
        dry_run: Whether nothing may be changed.
        trail: Where it is kept what an operator's command changes; None if nowhere.
        shown: Whether results have been printed.
    """

    stack: str | None = None
    profile: str | None = None
    aws_profile: str | None = None
    region: str | None = None
    role_arn: str | None = None
    as_json: bool = False
    dry_run: bool = False
    trail: CommandTrail | None = None
    shown: bool = False

    def settings(self) -> Profile:
        """The settings from options, profile and environment together."""
        name = self.profile or os.environ.get("PUSHHUB_PROFILE")
        known = Profiles().get(name) if name else profile_from_environment()
        return replace(
            known,
            stack=self.stack or known.stack,
            aws_profile=self.aws_profile or known.aws_profile,
            region=self.region or known.region,
            role_arn=self.role_arn or known.role_arn,
        )

    def rest(self) -> Rest:
        """The hub's HTTP APIs, as a project."""
        known = self.settings()
        if known.url:
            if not known.url.startswith(("http://", "https://")):
                raise click.UsageError(f"the hub's URL must begin with http:// or https://: {known.url}")
            if not (known.project and known.token):
                raise click.ClickException("a project and its token are missing: set PUSHHUB_PROJECT and PUSHHUB_TOKEN")
            return self.rest_of(known.url, known.project, known.token)
        if known.stack:
            raise click.ClickException(
                "a project's commands need its token: pushhub profiles set NAME --url BASE_URL --project ID "
                "--stack STACK"
            )
        described = local_description()
        return self.rest_of(*(text(described, name) for name in ("base_url", "project_id", "token")))

    def rest_of(self, url: str, project: str, token: str, called: str = "the hub") -> Rest:
        """The HTTP APIs at a URL."""
        # What only shows help or talks to AWS pays nothing for it.
        from .rest import Rest  # noqa: PLC0415

        # Pasted, often with a space.
        url, project, token = (each.strip() for each in (url, project, token))
        if not (token.isascii() and token.isprintable()):
            raise click.ClickException("the token holds characters that no token holds")
        return Rest(url, project, token, dry=self.dry_run, called=called)

    def show(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Print results: as JSON, or as a table with a heading."""
        rows = list(rows)
        self.shown = True
        if self.trail is not None:
            self.trail.showed(rows)
        if self.as_json:
            click.echo(as_json(rows))
            return
        if not rows:
            click.echo("none")
            return
        # A row may lack what others have, as a subscriber that is not paused.
        columns = list(dict.fromkeys(each for row in rows for each in row))
        texts = [
            [printable(each) if each else "" for each in columns],
            *([printable(row.get(each)) for each in columns] for row in rows),
        ]
        widths = [max(len(line[number]) for line in texts) for number in range(len(columns))]
        for number, line in enumerate(texts):
            shown = "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
            click.echo(click.style(shown, bold=True) if number == 0 else coloured(shown))

    def show_in_json(self) -> None:
        """Print that there are no results, as JSON, if that is wanted and none were printed."""
        if self.as_json and not self.shown:
            click.echo(as_json([]))

    def event(self, fields: Mapping[str, Any], text: str) -> None:
        """Print an event at once: a line of JSON, or of text."""
        click.echo(as_json(fields) if self.as_json else coloured(printable(text)))
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """Tell a person something that is not a result."""
        click.secho(printable(text), dim=True, err=True)

    def show_not_done(self, done: NotDone) -> None:
        """Print what a dry run would do."""
        body = f"{len(done.body)} bytes" if isinstance(done.body, bytes) else done.body
        self.show([{"would": done.call} | ({} if body is None else {"with": body})])


def local_description() -> dict[str, Any]:
    """How to reach the stack on this machine: the content of its ``local.json``."""
    described = running()
    if described is None:
        raise NoHub(
            "no hub was found on this machine: start it with 'make up' in a clone of the repository; if it runs, set "
            "PUSHHUB_HOME to the clone's folder .pushhub. For a hub elsewhere set PUSHHUB_URL, PUSHHUB_PROJECT and "
            "PUSHHUB_TOKEN, or use --profile"
        )
    return described
