"""Packages for Node in folders of their own, made from lock files when they are missing or those changed."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

__all__ = ["NodeMissing", "node_packages"]

ROOT = Path(__file__).parents[2]
SECONDS = 300
STAMP = "made-from.sha256"


class NodeMissing(Exception):
    """This machine has no Node or no npm."""


def node_packages(name: str) -> Path:
    """The folder in which Node finds the packages of ``requirements/{name}``. npm checks each against the lock's
    sha512.

    Raises:
        NodeMissing: There is no Node or no npm here.
    """
    npm = shutil.which("npm")
    if not npm or not shutil.which("node"):
        raise NodeMissing
    source = ROOT / "requirements" / name
    folder, lock = ROOT / f".venv-{name}", source / "package-lock.json"
    stamp, digest = folder / STAMP, hashlib.sha256(lock.read_bytes()).hexdigest()
    if not stamp.is_file() or stamp.read_text() != digest:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        finished = subprocess.run(
            [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"],
            cwd=folder,
            check=False,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert finished.returncode == 0, finished.stdout + finished.stderr
        stamp.write_text(digest)
    return folder
