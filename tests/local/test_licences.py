"""The table of licences is that of the lock files."""

from __future__ import annotations

import re
import sysconfig
from pathlib import Path

import pytest
from local.licences import LOCKS, PAGE, installed, licence, pins
from local.place import REPOSITORY

ROW = re.compile(r"^\| (\S+) \| (\S+) \| (.+) \|$", re.MULTILINE)


def tables() -> dict[str, dict[str, tuple[str, str]]]:
    """Version and licence of each package, by lock file."""
    parts = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    found = {part.split("`")[1]: {name: (version, said) for name, version, said in ROW.findall(part)} for part in parts}
    for each in found.values():
        each.pop("package", None)
    return found


@pytest.mark.parametrize("lock", LOCKS)
def test_each_locked_package_is_listed_in_its_version(lock: str) -> None:
    listed = {name: version for name, (version, _) in tables()[lock].items()}
    assert listed == pins(REPOSITORY / lock), "write it again: .venv/bin/python -m local.licences"


def test_the_licences_are_those_that_packages_say() -> None:
    # Given what is installed here
    here = installed([Path(sysconfig.get_paths()["purelib"])])
    # Then the page says the same
    for rows in tables().values():
        for name, (version, said) in rows.items():
            if name in here and here[name].version == version:
                assert said == licence(here[name].read_text("METADATA") or ""), (
                    "write it again: .venv/bin/python -m local.licences"
                )


def test_nothing_in_the_layer_asks_for_more_than_naming_its_authors() -> None:
    """A licence of another kind may be right, but somebody has to decide that."""
    known = re.compile(r"MIT|Apache|BSD|MPL-2\.0|Mozilla Public License 2\.0|PSF|Python Software Foundation")
    rows = tables()["layers/pushhub/requirements.txt"]
    assert {name: said for name, (_, said) in rows.items() if not known.search(said)} == {}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ([("License-Expression", "MIT OR Apache-2.0"), ("License", "text")], "MIT OR Apache-2.0"),
        ([("Classifier", "License :: OSI Approved :: MIT License"), ("License", "x" * 900)], "MIT License"),
        ([("License", "BSD-3-Clause\n  more")], "BSD-3-Clause"),
        ([("License", "x" * 900)], "see its files"),
        ([], "see its files"),
    ],
)
def test_what_a_package_says(fields: list[tuple[str, str]], said: str) -> None:
    assert licence("".join(f"{name}: {value}\n" for name, value in fields)) == said
