"""Writes requirements/licences.md, the licence of every locked package: ``python -m local.licences``.

A package says its licence in its own metadata, so all environments have to be there whose lock files are listed: ``make
test sam-local`` makes them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from email.parser import HeaderParser
from importlib.metadata import Distribution, distributions
from pathlib import Path

from local.errors import LocalError
from local.place import REPOSITORY

PAGE = REPOSITORY / "requirements" / "licences.md"
LOCKS: Mapping[str, tuple[str, str]] = {
    "layers/pushhub/requirements.txt": (".venv", "In the layer, and so in every function"),
    "layers/scripting/requirements.txt": (".venv", "In the layer of the function that runs transformations"),
    "requirements/glue.txt": (".venv-glue", "The report: on AWS with Glue's own Spark and the wheels sent along"),
    "requirements/ministack.txt": (".venv-ministack", "The local stack's emulator"),
    "requirements/dev.txt": (".venv", "Tests, command line and local stack"),
    "requirements/sam.txt": (".venv-sam", "The SAM CLI"),
}
"""Each lock file with the environment made from it, and what it is for."""

_HEAD = """\
# Licences of locked packages

Written by `.venv/bin/python -m local.licences`, as the packages say it themselves. What each is for is in the `.in`
file beside its lock file. `make audit` asks PyPI for known weaknesses of all of them, and of those that only tests with
other people's clients install.
"""

_PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;]+)", re.MULTILINE)
_LONG = 60


def pins(lock: Path) -> dict[str, str]:
    """The versions in a lock file, by name."""
    return {_normal(name): version for name, version in _PIN.findall(lock.read_text(encoding="utf-8"))}


def licence(metadata: str) -> str:
    """What a package's metadata say: an SPDX expression, or else the names of the index, or else its own words."""
    said = HeaderParser().parsestr(metadata)
    if expression := said.get("License-Expression"):
        return str(expression)
    listed = [each.split(" :: ") for each in said.get_all("Classifier") or () if each.startswith("License :: ")]
    names = [each[-1] for each in listed if each[-1] != "OSI Approved"]
    if names:
        return ", ".join(names)
    first = (said.get("License") or "").strip().partition("\n")[0]
    return first if 0 < len(first) <= _LONG else "see its files"


def installed(folders: Iterable[Path]) -> dict[str, Distribution]:
    """The packages in folders such as ``site-packages``, by name."""
    return {_normal(each.metadata["Name"]): each for each in distributions(path=[str(folder) for folder in folders])}


def page() -> str:
    """The page.

    Raises:
        LocalError: A package is not installed, or in another version than the locked one.
    """
    parts = [_HEAD]
    for name, (environment, purpose) in LOCKS.items():
        found = installed((REPOSITORY / environment).glob("lib/python3*/site-packages"))
        rows = []
        for package, version in sorted(pins(REPOSITORY / name).items()):
            there = found.get(package)
            if there is None or there.version != version:
                raise LocalError(f"{environment} has no {package} {version}: make the environment first")
            rows.append(f"| {package} | {version} | {licence(there.read_text('METADATA') or '')} |\n")
        parts.append(f"## {purpose}\n\n`{name}`\n\n| package | version | licence |\n|---|---|---|\n{''.join(rows)}")
    return "\n".join(parts)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> int:
    """Write it."""
    try:
        PAGE.write_text(page(), encoding="utf-8")
    except LocalError as error:
        print(f"pushhub: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
