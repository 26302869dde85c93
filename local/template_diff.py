"""Says which resources a change of ``template.yaml`` changes: ``python -m local.template_diff [REVISION]``.

Both templates are compared as CloudFormation gets them, with loops and macros written out, each by the code of its own
revision, and SAM's types transformed, so writing the same thing in another way is no difference. Ends with 1 when there
is one, and ``make template-diff`` with 0.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from local import template
from local.errors import LocalError
from local.place import REPOSITORY

_LOAD = """
import json, sys
from pathlib import Path
from local import template
json.dump(template.load(Path(sys.argv[1])), sys.stdout)
"""
_SECTIONS = ("Parameters", "Mappings", "Conditions", "Resources", "Outputs")


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """The differences, one text for each parameter, condition, resource ..."""
    for section in _SECTIONS:
        old, new = before.get(section, {}), after.get(section, {})
        for name in sorted(old.keys() | new.keys()):
            if old.get(name) != new.get(name):
                lines = difflib.unified_diff(_lines(old.get(name)), _lines(new.get(name)), lineterm="", n=2)
                changes = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
                yield "\n".join([f"{section} {name}", *changes])


def as_deployed(source: dict[str, Any]) -> dict[str, Any]:
    """A template as CloudFormation gets it."""
    return template.transform(source, dict.fromkeys(template.code_folders(source), ("bucket", "package")))


def _at(revision: str, path: Path) -> dict[str, Any]:
    """A revision's template, written out by the revision's own code, if it has any."""
    archive = subprocess.run(["git", "archive", revision], cwd=path.parent, capture_output=True, check=False)
    if archive.returncode:
        raise LocalError(archive.stderr.decode())
    with TemporaryDirectory() as name, tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(name, filter="data")
        code = [str(root / each) for root in (Path(name), REPOSITORY) for each in ("layers/pushhub", ".")]
        loaded = subprocess.run(
            [sys.executable, "-c", _LOAD, path.name],
            cwd=name,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(code), "PYTHONSAFEPATH": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    if loaded.returncode:
        raise LocalError(f"the template of {revision} cannot be read: {loaded.stderr}")
    found: dict[str, Any] = json.loads(loaded.stdout)
    return found


def _lines(value: Any) -> list[str]:
    return json.dumps(value, indent=1, sort_keys=True).splitlines() if value is not None else []


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the working tree's template with a revision's."""
    parser = argparse.ArgumentParser(prog="python -m local.template_diff", description=__doc__.split("\n\n")[0])
    parser.add_argument("revision", nargs="?", default="HEAD", help="what to compare with (default HEAD)")
    parser.add_argument("--template", type=Path, default=REPOSITORY / "template.yaml")
    given = parser.parse_args(arguments)
    try:
        before = as_deployed(_at(given.revision, given.template))
        after = as_deployed(template.load(given.template))
        found = list(differences(before, after))
    except (LocalError, OSError) as error:
        print(f"pushhub: {error}", file=sys.stderr)
        return 2
    print("\n\n".join(found) if found else f"nothing is deployed that {given.revision} does not deploy, and all of it")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
