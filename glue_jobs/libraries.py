"""What the job needs besides Spark: sent along as wheels, so that no run depends on a package index."""

from __future__ import annotations

from typing import Final

WANTED: Final = ("duckdb",)
"""What the job needs and Glue does not have, each with what it needs itself."""
PLATFORM: Final = (
    "3.11",
    "manylinux_2_28_x86_64",
    "manylinux_2_27_x86_64",
    "manylinux_2_17_x86_64",
    "manylinux2014_x86_64",
)
"""Python and processor of Glue 5.1, whose system has glibc 2.34."""
