"""The hub's code in two versions: today's, and that of the last release, which some functions still run while a
deployment is under way.

The release is an archive in ``simulation/released``, named after its commit. A release puts itself in its place::

    PYTHONPATH=layers/pushhub:. .venv/bin/python -m simulation.versions $(git rev-parse --short HEAD)
"""

from __future__ import annotations

import atexit
import importlib
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from pushhub.base.verdict import Answer
from pushhub.cloud.settings import Settings
from pushhub.engine.wiring import AwsEnginePorts
from pushhub.runtime import hub as runtime_hub
from simulation.template import ROOT

RELEASED = Path(__file__).parent / "released"
PACKAGE = "pushhub_released"
"""What the released package is called here, so that both can be loaded side by side."""

TIMEOUTS = {"push": 420}
"""What the release's template says of its functions that today's does not: seconds that a run may take."""

MOVED = {"SlowQueue": "push"}
"""Queues that were another function's in the release: it goes on with them until the one that they are for now has
today's code, as CloudFormation makes that one's event source after that.
"""

_IMPORT = re.compile(r"^(\s*)(from|import) pushhub(?=[.\s])", flags=re.MULTILINE)


@dataclass(frozen=True, eq=False)
class Version:
    """A version of the hub's code, loaded.

    Attributes:
        runtime: Its module ``pushhub.runtime.hub``.
        ports: Its class of ports on AWS.
        settings: Its class of settings.
        answer: Its class of endpoints' answers.
        functions: The folder with its functions.
        timeouts: Seconds that a run of its functions may take, where today's template has another number.
    """

    runtime: Any
    ports: type[Any]
    settings: type[Any]
    answer: type[Any]
    functions: Path
    timeouts: Mapping[str, int] = field(default_factory=dict)

    def has(self, function: str) -> bool:
        """Whether it has a function: a later version may have more."""
        return (self.functions / function / "handler.py").is_file()

    def handler(self, function: str) -> CodeType:
        """The module that Lambda loads for a function."""
        return _compiled(self.functions / function / "handler.py")


@cache
def _compiled(path: Path) -> CodeType:
    return compile(path.read_text(), str(path), "exec")


TODAYS = Version(runtime_hub, AwsEnginePorts, Settings, Answer, ROOT / "functions")


@cache
def released() -> Version:
    """The last release, loaded under a name of its own."""
    (archive,) = RELEASED.glob("*.tar.xz")
    folder = tempfile.TemporaryDirectory(prefix="pushhub-released-")
    atexit.register(folder.cleanup)
    root = Path(folder.name)
    with tarfile.open(archive) as files:
        files.extractall(root, filter="data")
    for path in root.rglob("*.py"):
        path.write_text(_IMPORT.sub(rf"\1\2 {PACKAGE}", path.read_text()))
    (root / "pushhub").rename(root / PACKAGE)
    sys.path.append(str(root))

    def module(name: str) -> Any:
        return importlib.import_module(f"{PACKAGE}.{name}")

    for path in sorted((root / PACKAGE).rglob("*.py")):
        # All of them, as what is loaded later would have real threads.
        importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"))
    return Version(
        runtime=module("runtime.hub"),
        ports=module("engine.wiring").AwsEnginePorts,
        settings=module("cloud.settings").Settings,
        answer=module("base.verdict").Answer,
        functions=root / "functions",
        timeouts=TIMEOUTS,
    )


def loaded(name: str) -> list[Any]:
    """A module of the hub, of today's and of the released code if that is loaded."""
    release = sys.modules.get(f"{PACKAGE}.{name}")
    return [importlib.import_module(f"pushhub.{name}"), *([release] if release else [])]


def main(commit: str) -> None:
    """Replace the archive by the code of a commit."""
    command = ["git", "archive", commit, "layers/pushhub/pushhub", "functions"]
    found = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout  # noqa: S603 (a fixed command)
    RELEASED.mkdir(exist_ok=True)
    for each in RELEASED.glob("*.tar.xz"):
        each.unlink()
    with tarfile.open(fileobj=io.BytesIO(found)) as given, tarfile.open(RELEASED / f"{commit}.tar.xz", "w:xz") as kept:
        for entry in given:
            if entry.isfile() and entry.name.endswith(".py"):
                content = given.extractfile(entry)
                entry.name = entry.name.removeprefix("layers/pushhub/")
                kept.addfile(entry, content)


if __name__ == "__main__":
    main(sys.argv[1])
