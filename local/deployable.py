"""Writes the template that ``sam build`` takes: ``python -m local.deployable FILE``.

It is ``template.yaml`` with its loops written out. CloudFormation and a recent SAM CLI could do that themselves, each
in its own way and with its own known bugs (docs/decisions/0010-loops-in-the-template.md); this way, what is deployed is
what is tested. It also says which release it is, in the mapping of that name: a version of a function is made for each
(docs/decisions/0118-gradual-deployment.md).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from local import template
from local.errors import LocalError
from local.place import REPOSITORY


def deployable(source: Path, target: Path, release: str = "unknown") -> dict[str, Any]:
    """A template without loops, whose paths start at the folder of the file it is written to.

    Args:
        release: What is deployed, in a word that no other deployment has (``GradualDeployment``).
    """
    made = template.load(source, release=release)
    for name, path in template.code_paths(made).items():
        template.point(made, name, os.path.relpath(source.parent / path, target.parent))
    for resource in made["Resources"].values():
        metadata = resource.get("Metadata", {})
        if "ContextPath" in metadata:
            # The folder of the Makefile that builds a layer; its name is put together by the SAM CLI.
            (name, path), *_ = metadata["ContextPath"].items()
            metadata["ContextPath"] = {name: f"{os.path.relpath(source.parent, target.parent)}/{path}"}
    return made


def release_now() -> str:
    """The commit, if there is one, and the time: ``1a2b3c4-20261126T101500Z``."""
    asked = subprocess.run(
        ["git", "rev-parse", "--short=7", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    commit = asked.stdout.strip() or "none"
    return f"{commit}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write it."""
    (name,) = arguments if arguments is not None else sys.argv[1:]
    target = Path(name).resolve()
    try:
        made = deployable(REPOSITORY / "template.yaml", target, release_now())
    except LocalError as error:
        print(f"pushhub: {error}", file=sys.stderr)
        return 1
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
