"""Svix's clients in environments of their own, made from lock files when they are missing or those changed."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from local.environment import make

__all__ = ["NodeMissing", "judged_by_node", "judged_by_python", "names_for_node", "names_for_python", "node", "python"]

ROOT = Path(__file__).parents[3]
JUDGE = Path(__file__).parent / "judge"
NODE_JUDGE = Path(__file__).parent / "judge.mjs"
NODE_LOCK = ROOT / "requirements" / "svix-node"
SECONDS = 300
STAMP = "made-from.sha256"


class NodeMissing(Exception):
    """This machine has no Node or no npm."""


def python(generation: int) -> Path:
    """The interpreter that has the client of a generation: 1 or 2."""
    folder = ROOT / f".venv-svix-{generation}"
    make(folder, ROOT / "requirements" / f"svix-{generation}.txt")
    return folder / "bin" / "python"


def node() -> Path:
    """The folder from which Node finds its client. npm checks every package against the lock's sha512.

    Raises:
        NodeMissing: There is no Node or no npm here.
    """
    npm = shutil.which("npm")
    if not npm or not shutil.which("node"):
        raise NodeMissing
    folder, lock = ROOT / ".venv-svix-node", NODE_LOCK / "package-lock.json"
    stamp, digest = folder / STAMP, hashlib.sha256(lock.read_bytes()).hexdigest()
    if not stamp.is_file() or stamp.read_text() != digest:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(NODE_LOCK, folder)
        made = subprocess.run(
            [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"],
            cwd=folder,
            check=False,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert made.returncode == 0, made.stdout + made.stderr
        stamp.write_text(digest)
    return folder


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


def judged_by_python(generation: int, base_url: str, tokens: Sequence[str], prefix: str = "check_") -> dict[str, str]:
    """What failed, by the name of the check; nothing for a check that passed."""
    command = [str(python(generation)), "-m", "tests.stack.webhooks.judge", base_url, *tokens, prefix]
    return _judged(command, dict(os.environ, PYTHONPATH=str(ROOT)))


def judged_by_node(base_url: str, tokens: Sequence[str]) -> dict[str, str]:
    """The same through the npm client.

    Raises:
        NodeMissing: There is no Node or no npm here.
    """
    # Node looks for packages beside the script.
    script = Path(shutil.copy(NODE_JUDGE, node()))
    return _judged(["node", str(script), base_url, *tokens], dict(os.environ, NODE_NO_WARNINGS="1"))


def _judged(command: Sequence[str], environ: dict[str, str]) -> dict[str, str]:
    ran = subprocess.run(command, cwd=ROOT, env=environ, check=False, capture_output=True, text=True, timeout=SECONDS)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-4000:]
    found: dict[str, str] = json.loads(ran.stdout)
    return found
