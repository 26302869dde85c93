"""Which hub a command talks to, and as whom: profiles in a file only its owner can read, or environment variables.

In this order: ``--profile``, ``PUSHHUB_PROFILE``, ``PUSHHUB_URL`` with ``PUSHHUB_PROJECT`` and ``PUSHHUB_TOKEN``, the
stack on this machine.
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import click

from pushhub.base import json_text

FILE = "config.toml"
OWNER_ONLY = 0o600


@dataclass(frozen=True, slots=True)
class Profile:
    """One hub, as one project. Empty text where nothing is set.

    Attributes:
        url: Base URL of the hub, without a slash at its end.
        stack: Name of the CloudFormation stack, for what an operator does.
        aws_profile: Profile of the AWS configuration that may read the stack.
        role_arn: The role that operators' commands assume; empty for the stack's own if it has one, none for no role.
    """

    url: str = ""
    project: str = ""
    token: str = ""
    stack: str = ""
    aws_profile: str = ""
    region: str = ""
    role_arn: str = ""


class Profiles:
    """The profiles of one person, in the file that ``PUSHHUB_CONFIG`` names, or one in their configuration folder."""

    def __init__(self) -> None:
        chosen = os.environ.get("PUSHHUB_CONFIG")
        self.file = Path(chosen) if chosen else Path(click.get_app_dir("pushhub")) / FILE

    def all(self) -> dict[str, Profile]:
        """All of them by name."""
        try:
            with self.file.open("rb") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                if mode & 0o077:
                    raise click.ClickException(
                        f"{self.file} holds tokens and others can read it: chmod 600 {self.file}"
                    )
                content = tomllib.load(file)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise click.ClickException(f"{self.file} cannot be read: {error}") from error
        known = {each.name for each in fields(Profile)}
        found: dict[str, Profile] = {}
        profiles = content.get("profiles", {})
        if not (isinstance(profiles, dict) and all(isinstance(each, dict) for each in profiles.values())):
            raise click.ClickException(f"{self.file} cannot be read: its profiles are no tables")
        for name, values in profiles.items():
            unknown = set(values) - known
            if unknown or not all(isinstance(each, str) for each in values.values()):
                raise click.ClickException(
                    f"{self.file}: the profile {name} has unknown fields: {', '.join(sorted(unknown))}"
                )
            found[name] = Profile(**values)
        return found

    def get(self, name: str) -> Profile:
        """One of them."""
        profiles = self.all()
        if name not in profiles:
            raise click.ClickException(
                f"there is no profile {name!r} in {self.file}: pushhub profiles set {name} --help"
            )
        return profiles[name]

    def put(self, name: str, profile: Profile) -> None:
        """Save one; an existing one with the same name is replaced."""
        self._write({**self.all(), name: profile})

    def remove(self, name: str) -> None:
        """Remove one."""
        self.get(name)
        self._write({key: each for key, each in self.all().items() if key != name})

    def _write(self, profiles: Mapping[str, Profile]) -> None:
        self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lines: list[str] = []
        for name, profile in sorted(profiles.items()):
            lines.append(f"[profiles.{_quoted(name)}]")
            lines += [f"{key} = {_quoted(value)}" for key, value in asdict(profile).items() if value]
            lines.append("")
        new = self.file.with_suffix(".new")
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
        with os.fdopen(descriptor, "w") as file:
            file.write("\n".join(lines))
        new.replace(self.file)


def _quoted(text: str) -> str:
    """A string as TOML writes it, which is how JSON writes what can be printed."""
    if not text.isprintable():
        raise click.UsageError("names and values hold printable characters only")
    return json_text.write(text, spaced=True)


def profile_from_environment(environ: Mapping[str, str] = os.environ) -> Profile:
    """The settings in the environment; empty if missing."""
    names = {
        "url": "PUSHHUB_URL",
        "project": "PUSHHUB_PROJECT",
        "token": "PUSHHUB_TOKEN",
        "stack": "PUSHHUB_STACK",
        "role_arn": "PUSHHUB_ROLE_ARN",
    }
    profile = Profile(**{field: environ.get(name, "").strip() for field, name in names.items()})
    return replace(profile, url=profile.url.rstrip("/"))
