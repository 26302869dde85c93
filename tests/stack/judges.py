"""Runs scripts with the packages of ``requirements/judges.txt``, in an environment of their own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from local.environment import make

__all__ = ["judged"]

ROOT = Path(__file__).parents[2]


def judged(script: str, given: Any, *, seconds: int = 120) -> Any:
    """What a script beside this file says to something, both as JSON; the environment is made if it is missing."""
    environment = ROOT / ".venv-judges"
    make(environment, ROOT / "requirements" / "judges.txt")
    ran = subprocess.run(
        [str(environment / "bin" / "python"), str(Path(__file__).parent / script)],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
        cwd=ROOT,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)
