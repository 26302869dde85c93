"""Runs a module of this package where there is no clone: ``python -P local/apart.py MODULE ARGUMENT...``.

The emulator and the processes of its functions have an interpreter with packages of their own, and the names of this
repository's folders would hide some of those. So it is not on their path, and the package is called ``pushhub_local``;
what runs there imports its neighbours by relative names.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

NAME = "pushhub_local"


def main() -> None:
    """Call ``main`` of the module that the first argument names, which is then the program's name."""
    package = sys.modules[NAME] = ModuleType(NAME)
    package.__path__ = [str(Path(__file__).resolve().parent)]
    del sys.argv[0]
    importlib.import_module(f"{NAME}.{sys.argv[0]}").main()


if __name__ == "__main__":
    main()
