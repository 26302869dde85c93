"""What is sent along with the job is all that its charts need."""

from __future__ import annotations

import re
from importlib.metadata import requires

from glue_jobs.libraries import AT_HAND, WANTED


def test_the_libraries_are_complete() -> None:
    # Given what matplotlib needs, and what that needs
    needed, waiting = set[str](), ["matplotlib"]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += [re.split(r"[^\w-]", each)[0].lower() for each in requires(name) or [] if "extra ==" not in each]
    # Then it is sent along, or Glue has it
    assert needed == {*WANTED, *AT_HAND}
