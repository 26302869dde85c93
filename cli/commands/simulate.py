"""``pushhub simulate hub``: the whole hub in disasters."""

from __future__ import annotations

import os
import subprocess
import sys

import click

from ..clone import folder
from ..framework import Group, Printing

AS_THEY_ARE = {"ignore_unknown_options": True, "help_option_names": []}


@click.group(cls=Group)
def simulate() -> None:
    """Run the whole hub through a year of disasters."""


@simulate.command(name="hub", cls=Printing, context_settings=AS_THEY_ARE)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def whole_hub(arguments: tuple[str, ...]) -> int:
    """Run the whole hub with simulated clocks, networks and faults.

    Arguments go to the simulator (simulate hub --help).
    """
    clone = folder()
    if clone is None:
        raise click.ClickException("the simulator is missing: run this in a clone of the repository")
    paths = [str(clone / "layers" / "pushhub"), str(clone), *filter(None, [os.environ.get("PYTHONPATH")])]
    words, found = [sys.executable, "-m", "simulation", *arguments], {"PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run(words, cwd=clone, env=os.environ | found, check=False).returncode  # noqa: S603 (our own module)
