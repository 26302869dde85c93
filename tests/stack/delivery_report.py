"""Delivery records of a running stack, and the report that ``make report`` makes from them."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from local.place import REPOSITORY
from tests.stack.running import RunningStack

REPORT_PYTHON = Path(os.environ.get("PUSHHUB_REPORT_PYTHON", REPOSITORY / ".venv-glue" / "bin" / "python"))
"""The environment that has Spark: ``make report-environment``."""


SMALL = """\
spark.sql.codegen.wholeStage false
spark.sql.codegen.factoryMode NO_CODEGEN
spark.sql.adaptive.enabled false
spark.driver.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
"""
"""Tests have few records, for which compiling queries costs more than running them."""


def records_of(stack: RunningStack, project_id: str) -> Iterator[dict[str, Any]]:
    """The records of a project in S3 now."""
    s3, bucket = stack.aws.s3(), stack.outputs["RecordsBucketName"]
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="records/dt="):
        for entry in page.get("Contents", []):
            # Whoever waits for records asks again and again; an object is read once.
            version = (str(stack.place.home), entry["Key"], entry["ETag"])
            if version not in _read:
                content = s3.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read()
                _read[version] = [json.loads(each) for each in gzip.decompress(content).splitlines()]
            # A pulse has no project.
            yield from (each for each in _read[version] if each.get("project") == project_id)


_read: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
"""Records by the stack, the key and the ETag of their object."""


def make_report(stack: RunningStack, project_id: str) -> Path:
    """Run the job; returns the folder of its report, which must say that everything is accounted for."""
    run = report_on(stack, project_id)
    assert run.returncode == 0, run.stderr[-4000:]
    assert "Conserved: " in run.stderr
    report = folder_of(run)
    # A stack that stood still has sent no pulses meanwhile, and the page says so.
    assert re.search(r"Every delivery( that is known)? is accounted for\.", (report / "report.html").read_text())
    return report


def report_on(
    stack: RunningStack, project_id: str, *arguments: str, many: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run the job as ``make report`` does, for one project, or for all if none is named; ``many`` records have time."""
    assert REPORT_PYTHON.exists(), "make report-environment makes what this needs"
    only = ["--projects", project_id] if project_id else []
    home = str(stack.place.home)
    settings = stack.place.home / "spark"
    settings.mkdir(exist_ok=True)
    (settings / "spark-defaults.conf").write_text("" if many else SMALL)
    return subprocess.run(
        [str(REPORT_PYTHON), "-m", "glue_jobs.local_report", *only, *arguments],
        cwd=REPOSITORY,
        env={
            "PUSHHUB_HOME": home,
            "PATH": "/usr/bin:/bin",
            "HOME": home,
            "SPARK_CONF_DIR": str(settings),
            "PYTHONPATH": f"{REPOSITORY / 'layers' / 'pushhub'}:{REPOSITORY}",
        },
        capture_output=True,
        text=True,
        timeout=3_000 if many else 600,
        check=False,
    )


def folder_of(run: subprocess.CompletedProcess[str]) -> Path:
    """The folder of a run's report."""
    (page,) = [line.removeprefix("Report: ") for line in run.stderr.splitlines() if line.startswith("Report: ")]
    return Path(page.removeprefix("file://")).parent


def rows(report: Path, table: str) -> list[dict[str, Any]]:
    """A table of a report."""
    found: list[dict[str, Any]] = json.loads((report / f"{table}.json").read_text())
    return found
