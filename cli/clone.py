"""The clone of the repository that this runs from, if it does, and the stack on this machine, if one is found.

What is installed with pip has no clone: it finds a stack by ``PUSHHUB_HOME``, or below the folder it is run in.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pushhub.base.json_text import stored

_HOME = ".pushhub"


def folder() -> Path | None:
    """The clone's folder."""
    found = Path(__file__).resolve().parent.parent
    return found if (found / "template.yaml").is_file() else None


def running() -> dict[str, Any] | None:
    """The content of the ``local.json`` of the stack that runs on this machine; None if none is found."""
    for home in _homes():
        try:
            described = stored((home / "local.json").read_text())
        except (OSError, ValueError):
            continue
        if isinstance(described, dict):
            return described
    return None


def _homes() -> list[Path]:
    named = os.environ.get("PUSHHUB_HOME")
    if named:
        return [Path(named).absolute()]
    clone = folder()
    here = Path.cwd()
    return [each / _HOME for each in ([clone] if clone else [here, *here.parents])]
