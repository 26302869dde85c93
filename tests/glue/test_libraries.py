"""The libraries uploaded with the job are all that its tables need."""

from __future__ import annotations

import re
from importlib.metadata import requires

from glue_jobs.libraries import WANTED


def test_the_libraries_are_complete() -> None:
    # Given the dependencies of DuckDB, and theirs
    needed, waiting = set[str](), ["duckdb"]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += [re.split(r"[^\w-]", each)[0].lower() for each in requires(name) or [] if "extra ==" not in each]
    # Then each is uploaded
    assert needed == {*WANTED}
