"""Runs the checks against a hub; prints what failed."""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from tests.stack.webhooks import judge
from tests.stack.webhooks.judge.stage import OLD, Check, Stage

SIDE_BY_SIDE = 6
"""Checks mostly wait."""


def checks(prefixes: str) -> Iterator[Check]:
    """Those whose names begin with one of these, separated by commas, and that this client can make, from all modules
    of this package.
    """
    for module in pkgutil.iter_modules(judge.__path__):
        if module.name != "__main__":
            for name, check in vars(importlib.import_module(f"{judge.__name__}.{module.name}")).items():
                if name.startswith(tuple(prefixes.split(","))) and not (OLD and getattr(check, "today", False)):
                    yield check


def failure(check: Check, stage: Stage) -> str:
    """What went wrong, or nothing."""
    try:
        check(stage)
    except BaseException:  # noqa: BLE001 (whatever it is, it is told)
        return traceback.format_exc()
    return ""


def main(base_url: str, token: str, other_token: str, prefix: str) -> None:
    """Run them all, a few side by side; one after the other where they turn the clock."""
    stage = Stage(base_url, token, other_token)
    found = list(checks(prefix))
    with ThreadPoolExecutor(SIDE_BY_SIDE if prefix.startswith("check_") else 1) as executor:
        failures = list(executor.map(lambda check: failure(check, stage), found))
    json.dump({check.__name__: text for check, text in zip(found, failures, strict=True)}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
