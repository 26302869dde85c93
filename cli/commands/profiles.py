"""``pushhub profiles``."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from ..framework import Group
from ..hub import HubOptions
from ..rest import Refused, Unreachable
from ..settings import Profile, Profiles


@click.group(cls=Group)
def profiles() -> None:
    """Hubs you work with, by name; kept in a file that only you can read."""


@profiles.command("list")
@click.pass_obj
def list_profiles(hub: HubOptions) -> None:
    """List all profiles, without their tokens."""
    hub.show(
        {"profile": name} | {key: value for key, value in asdict(each).items() if key != "token"}
        for name, each in sorted(Profiles().all().items())
    )


@profiles.command("set")
@click.argument("name")
@click.option("--url", required=True, help="Base URL of the hub.")
@click.option("--project", required=True, help="The project's id.")
@click.option("--stack", default="", help="Name of the deployed stack, for operators' commands.")
@click.option("--aws-profile", default="", help="Profile of your AWS configuration.")
@click.option("--region", default="", help="Region of the stack.")
@click.option("--role-arn", default="", help="Role that operators' commands assume. Default: the stack's.")
@click.option("--token-stdin", is_flag=True, help="Read the token from standard input instead of asking for it.")
@click.pass_obj
def set_profile(hub: HubOptions, /, *, name: str, token_stdin: bool, **given: str) -> None:
    """Save a profile. Asks for its token, so that it stays out of the shell's history, and tries it: one that the hub
    refuses is not kept. One whose hub does not answer now is.
    """
    given = {name: each.strip() for name, each in given.items()}
    if not given["url"].startswith(("http://", "https://")):
        raise click.UsageError("--url must begin with http:// or https://")
    token = sys.stdin.readline() if token_stdin else click.prompt("Token", hide_input=True)
    profile = Profile(**{**given, "url": given["url"].rstrip("/"), "token": token.strip()})
    _try(hub, profile)
    kept = Profiles()
    kept.put(name, profile)
    hub.note(f"kept in {kept.file}; use it with --profile {name} or PUSHHUB_PROFILE={name}")


def _try(hub: HubOptions, profile: Profile) -> None:
    """Ask the hub for something that only the project's token may see.

    Raises:
        click.ClickException: The hub refuses it, or something else than a hub answers.
    """
    rest = hub.rest_of(profile.url, profile.project, profile.token)
    try:
        rest.call("GET", rest.queues, query={"per_page": "1"})
    except Unreachable as error:
        hub.note(f"not tried, as {error.message}")
    except Refused as error:
        raise click.ClickException(f"not kept: {error.message}") from error


@profiles.command("remove")
@click.argument("name")
def remove_profile(name: str) -> None:
    """Remove a profile."""
    Profiles().remove(name)
