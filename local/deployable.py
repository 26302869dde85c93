"""Writes the template that ``sam build`` takes: ``python -m local.deployable FILE``.

It is ``template.yaml`` with its loops written out. CloudFormation and a recent SAM CLI could do that themselves, each
in its own way and with its own known bugs (docs/decisions/0010-loops-in-the-template.md); this way, what is deployed is
what is tested.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from local import template
from local.errors import LocalError
from local.place import REPOSITORY


def deployable(source: Path, target: Path) -> dict[str, Any]:
    """A template without loops, whose paths start at the folder of the file it is written to.

    Raises:
        LocalError: The source is not a template.
    """
    made = template.load(source)
    for name, path in template.code_paths(made).items():
        template.point(made, name, os.path.relpath(source.parent / path, target.parent))
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Write it."""
    (name,) = arguments if arguments is not None else sys.argv[1:]
    target = Path(name).resolve()
    try:
        made = deployable(REPOSITORY / "template.yaml", target)
    except LocalError as error:
        print(f"pushhub: {error}", file=sys.stderr)
        return 1
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
