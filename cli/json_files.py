"""JSON that is given in a file."""

from __future__ import annotations

from typing import IO, Any

import click

from pushhub.base.json_text import read


def json_in(file: IO[str], name: str = "the file") -> Any:
    """What a file holds; wrong usage if that is no JSON.

    Args:
        name: How the file is called where that is said.
    """
    try:
        return read(file.read())
    except ValueError as error:
        raise click.UsageError(f"{name} cannot be read: it {error}") from error
