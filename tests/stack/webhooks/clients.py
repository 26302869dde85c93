"""Svix's clients in environments of their own, made from lock files when they are missing or those changed."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from local.environment import make
from tests.stack.node import node_packages

__all__ = ["ONLY_ON_A_STACK", "judged_by_node", "judged_by_python", "names_for_node", "names_for_python", "python"]

ROOT = Path(__file__).parents[3]
JUDGE = Path(__file__).parent / "judge"
NODE_JUDGE = Path(__file__).parent / "judge.mjs"
SECONDS = 300
ONLY_ON_A_STACK = ("check_45_", "check_55_")
"""Checks of what a hub on fakes has not: its own address as consumers are told it, and functions that run code."""


def python(generation: int) -> Path:
    """The interpreter that has the client of a generation: 1 or 2."""
    folder = ROOT / f".venv-svix-{generation}"
    make(folder, ROOT / "requirements" / f"svix-{generation}.txt")
    return folder / "bin" / "python"


def names_for_python(generation: int, prefix: str = "check_") -> list[str]:
    """The names of all checks that the client of a generation makes, read from their sources."""
    functions = [
        each
        for path in sorted(JUDGE.glob("*.py"))
        for each in ast.parse(path.read_text()).body
        if isinstance(each, ast.FunctionDef) and each.name.startswith(prefix)
    ]
    return sorted(each.name for each in functions if generation > 1 or not each.decorator_list)


def names_for_node() -> list[str]:
    """The names of all checks that Node makes, read from their source."""
    begin = "checks.check_"
    lines = NODE_JUDGE.read_text().splitlines()
    return sorted(each.removeprefix("checks.").partition(" ")[0] for each in lines if each.startswith(begin))


def judged_by_python(generation: int, base_url: str, tokens: Sequence[str], *prefixes: str) -> dict[str, str]:
    """What failed, by the name of the check; nothing for a check that passed. Those are made whose names begin so."""
    which = ",".join(prefixes or ["check_"])
    command = [str(python(generation)), "-m", "tests.stack.webhooks.judge", base_url, *tokens, which]
    return _judged(command, dict(os.environ, PYTHONPATH=str(ROOT)))


def judged_by_node(base_url: str, tokens: Sequence[str]) -> dict[str, str]:
    """The same through the npm client.

    Raises:
        NodeMissing: There is no Node or no npm here.
    """
    # Node looks for packages beside the script.
    script = Path(shutil.copy(NODE_JUDGE, node_packages("svix-node")))
    return _judged(["node", str(script), base_url, *tokens], dict(os.environ, NODE_NO_WARNINGS="1"))


def _judged(command: Sequence[str], environ: dict[str, str]) -> dict[str, str]:
    ran = subprocess.run(command, cwd=ROOT, env=environ, check=False, capture_output=True, text=True, timeout=SECONDS)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-4000:]
    found: dict[str, str] = json.loads(ran.stdout)
    return found
