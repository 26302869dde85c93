"""Cold start: importing each handler and building what it needs, compared with bare boto3 and the same clients.

    .venv/bin/python -m bench.imports [--rounds 7] [--save docs/figures/imports.md]

Each measurement is the CPU time of a fresh interpreter, because an import waits for nothing else. Rounds alternate
between the two, and the minimum of each is compared, so that a busy moment of the machine affects both. All code is
compiled beforehand, as installed packages are. The time of an interpreter that imports nothing is subtracted from both.
"""

from __future__ import annotations

import compileall
import os
import resource
import subprocess
import sys
from contextlib import suppress
from typing import Any

from bench.harness import ROOT, Page, cells
from pushhub.cloud.settings import EnvironmentSetting
from pushhub.runtime.hub import settings_of

CLIENTS = {
    "ingest": ["dynamodb", "s3"],
    "control": ["dynamodb", "s3"],
    "dispatch": ["dynamodb", "sqs"],
    "push": ["dynamodb", "s3", "sqs"],
    "poll": ["dynamodb", "s3", "sqs"],
    "sweep": ["dynamodb", "sqs"],
    "wake": ["dynamodb", "sqs"],
    "errors": ["dynamodb", "s3"],
    "records": ["dynamodb", "s3"],
    "consumers": ["dynamodb", "sqs", "kms", "apigatewaymanagementapi"],
    "notify": ["dynamodb", "sqs", "kms", "apigatewaymanagementapi"],
    "past": ["dynamodb"],
    "console": [],
    "transform": [],
}
"""The clients that each function makes at its start (tests/functions/test_cold_start.py); boto3 alone where there are
none.
"""


VALUES = ("https://sqs.us-east-1.amazonaws.com/1/queue", "100000", "1000", "36", "1", "all", "off", "false")
"""Candidate values for settings: each setting gets the first one that it can read."""


def environment(function: str) -> dict[str, str]:
    """A value for every setting that a function must have."""
    created = {"AWS_DEFAULT_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none"}
    return created | {each.name: _value(each) for each in settings_of(function) if not each.optional}


def _value(setting: EnvironmentSetting[Any]) -> str:
    for value in VALUES:
        with suppress(ValueError):
            setting.read(value)
            return value
    raise ValueError(f"no value for {setting.name}")


def seconds(code: str, function: str) -> float:
    """CPU seconds of a fresh interpreter that runs ``code``."""
    path = os.pathsep.join([str(ROOT / "layers/pushhub"), str(ROOT / "functions" / function)])
    variables = {**os.environ, **environment(function), "PYTHONPATH": path}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], env=variables, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure, print, save."""
    page = Page("Import time of every handler", __doc__, rounds=7)
    for folder in ("layers/pushhub", "functions"):
        compileall.compile_dir(ROOT / folder, quiet=1)
    rows: list[list[str]] = []
    for function, services in CLIENTS.items():
        bare = "import boto3; s = boto3.session.Session()\n" + "\n".join(f"s.client({name!r})" for name in services)
        kinds = ("pass", bare, "import handler")
        samples = [[seconds(code, function) for code in kinds] for _ in range(page.options.rounds)]
        nothing, bare_s, ours_s = (1000 * min(each) for each in zip(*samples, strict=True))
        times = bare_s - nothing, ours_s - nothing
        rows.append([function, ", ".join(services) or "none", *cells(".0f", *times), f"{times[1] / times[0]:.2f}"])
        print(f"{function}: {rows[-1][-1]} x bare boto3", flush=True)
    head = ["function", "clients", "bare boto3, CPU ms", "handler, CPU ms", "ratio (aim: at most 1.5)"]
    page.table(head, rows)
    page.save()


if __name__ == "__main__":
    main()
