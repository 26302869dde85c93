"""What the documentation tells to type can be typed, in any shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys

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
    # When each is asked what it would run, then there is something
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    for command in sorted(commands):
        if re.fullmatch(r"[\w/.]+", plain := " ".join(_without_workers(command))):
            # A file or a folder; asking pytest takes seconds, as it imports them all
            named = REPOSITORY / plain
            assert (named.match("test_*.py") and named.is_file()) or [*named.rglob("test_*.py")], command
            continue
        words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:xdist", *_without_workers(command)]
        done = subprocess.run(words, cwd=REPOSITORY, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout[-500:]}"


def _without_workers(command: str) -> list[str]:
    return re.sub(r"-n \d+|--dist \w+", "", command).split()
