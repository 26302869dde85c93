"""Svix's clients in environments of their own, made from lock files when they are missing or those changed."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from local.environment import make

__all__ = ["NodeMissing", "node", "python"]

ROOT = Path(__file__).parents[3]
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
