"""What the documentation tells to type can be typed, in any shell."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from local.place import REPOSITORY

SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [
    pytest.param(block, id=f"{path.name}-{number}")
    for path in [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
    for number, block in enumerate(SHELL.findall(path.read_text(encoding="utf-8")))
]


@pytest.mark.parametrize("block", BLOCKS)
def test_shell_blocks_are_for_any_posix_shell(block: str) -> None:
    # Given a block, when the system's plain shell reads it, then it understands it
    read = subprocess.run(["/bin/sh", "-n"], input=block, capture_output=True, text=True, check=False)
    assert read.returncode == 0, read.stderr
    # And it holds none of what only bash has, though others read over it
    assert not re.search(r"<\(|\[\[|<<<|\bdeclare\b|\bsource\s|\$'|^\s*function \w", block, re.MULTILINE)


def test_links_lead_somewhere() -> None:
    for path in [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


MEASURED = re.compile(r"\$[0-9][0-9,.]*[0-9]|\$[0-9]|\b[0-9][0-9,.]* (?:KB|MB|GB|ms|s|%)(?![A-Za-z])")
"""Amounts in dollars, and numbers with a unit."""


def test_what_the_readme_says_in_numbers_is_on_a_page_of_figures() -> None:
    # Given the amounts, sizes and times in README's prose and tables
    prose = SHELL.sub("", (REPOSITORY / "README.md").read_text(encoding="utf-8"))
    said = MEASURED.findall(prose)
    assert len(said) > 20
    # Then a page of figures has each, dollars in as many digits as README gives
    pages = "\n".join(each.read_text(encoding="utf-8") for each in (REPOSITORY / "docs/figures").glob("*.md"))
    figures = re.findall(r"(?<![0-9.,])[0-9][0-9,]*(?:\.[0-9]+)?", pages)
    exact = {each.replace(",", "") for each in figures}
    whole = {f"{float(each):.0f}" for each in exact if "." in each}
    for each in said:
        number = each.lstrip("$").replace(",", "")
        found = number in exact | (set() if "." in number else whole) if each.startswith("$") else each in pages
        assert found, f"{each} is on no page of figures"


def test_each_page_of_figures_is_in_their_index() -> None:
    # Given the pages that measurements saved, which are nowhere else
    figures = REPOSITORY / "docs" / "figures"
    pages = {each.name for each in figures.glob("*.md")} - {"README.md"}
    assert not [*(REPOSITORY / "docs").glob("bench-*.md")], "measurements are saved in docs/figures"
    # Then the index has each, under the page's own title
    rows = dict(
        re.findall(r"^\| \[(.+)\]\((.+)\) \|", (figures / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert {page: title for title, page in rows.items()} == {
        page: (figures / page).read_text(encoding="utf-8").splitlines()[0].removeprefix("# ") for page in pages
    }


def test_files_that_recipes_name_exist() -> None:
    # Given the files and folders in what CONTRIBUTING says about changes; some are of each protocol's package
    recipes = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## How the house is built")[2]
    named = [each.rstrip("/") for each in re.findall(r"`([a-z_]+/[\w/.]+)`", recipes)]
    assert len(named) >= 10
    # Then each exists
    packages = REPOSITORY / "layers" / "pushhub" / "pushhub"
    assert [each for each in named if not (REPOSITORY / each).exists() and not [*packages.glob(f"*/{each}")]] == []


def test_tests_that_are_named_exist() -> None:
    # Given the commands with which pages run some of the tests
    pages = [REPOSITORY / "CONTRIBUTING.md", REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
    pattern = re.compile(r"\.venv/bin/python -m pytest ([^`|\n]+)")
    commands = {each.strip() for page in pages for each in pattern.findall(page.read_text(encoding="utf-8"))}
    assert len(commands) >= 5
    # Then there is what each would run: its files have tests, with what -k asks for in their names
    for command in commands:
        files, part = _asked_for(command)
        assert files, command
        for each in files:
            assert any(part in name for name in _tests_in(REPOSITORY / each)), command


def _asked_for(command: str) -> tuple[list[str], str]:
    """Files and folders that a command of pytest names, and the part of a name that it wants."""
    words = re.sub(r"-[no] \S+|--dist \w+", "", command).split()
    part = words.pop(words.index("-k") + 1) if "-k" in words else ""
    return [each for each in words if not each.startswith("-")], part


def _tests_in(place: Path) -> Iterator[str]:
    """Names of the tests in a file, or in a folder's files; nothing is imported."""
    for file in [place] if place.is_file() else place.rglob("test_*.py"):
        for each in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(each, ast.FunctionDef) and each.name.startswith("test_"):
                yield each.name
