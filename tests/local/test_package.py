"""The package that ``pip install`` makes of this repository: it holds everything that ``pushhub`` needs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import distribution, distributions
from pathlib import Path
from zipfile import ZipFile

import click
import pytest
from cli.__main__ import COMMANDS, main
from local.place import REPOSITORY
from packaging.requirements import Requirement
from tests.cli import conftest
from tests.cli.served_hub import TOKEN, ServedHub
from tests.cli.test_webhooks import with_endpoints
from tests.engine.world import PROJECT as PROJECT_ID
from tests.fakes.private_keys import identity
from tests.fakes.verifier import symmetric

hub = conftest.hub

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


def test_every_command_is_there() -> None:
    for command, (place, line) in COMMANDS.items():
        module, _, name = place.partition(":")
        found = getattr(import_module(f"cli.{module}"), name)
        assert found.name == command
        assert 0 < len(line) <= 60


@dataclass(frozen=True)
class Installed:
    """What somebody has who typed ``pip install .`` in an empty environment.

    Attributes:
        folder: The environment.
        home: A folder of theirs that is not the repository.
        packages: What pip put beside the requirements.
    """

    folder: Path
    home: Path
    packages: frozenset[str]

    def __call__(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return self._run("pushhub", *words, **environment)

    def python(self, code: str, *words: str) -> subprocess.CompletedProcess[str]:
        """What a program of theirs prints."""
        return self._run("python", "-c", code, *words)

    def _run(self, program: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        given = {"PATH": f"{self.folder / 'bin'}", "HOME": str(self.home), **environment}
        return subprocess.run(
            [str(self.folder / "bin" / program), *words],
            env=given,
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """An environment with the wheel and its requirements, and nothing of this repository or its environments."""
    folder = tmp_path_factory.mktemp("installed")
    sources = folder / "sources"
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("cli", "layers"):
        shutil.copytree(REPOSITORY / name, sources / name, ignore=ignored)
    for name in ("pyproject.toml", "setup.py"):
        shutil.copy(REPOSITORY / name, sources)
    created, wheels = folder / "environment", folder / "wheels"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    # As pip has it built, without what pip takes to begin.
    build = f"import setuptools.build_meta; setuptools.build_meta.build_wheel({str(wheels)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=sources, check=True, stdout=subprocess.DEVNULL)
    [wheel] = wheels.glob("*.whl")
    packages = frozenset(each.split("/")[0] for each in ZipFile(wheel).namelist() if ".dist-info" not in each)
    shutil.rmtree(sources)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(created)], check=True)
    into = [*pip[:3], "--python", str(created / "bin" / "python"), *pip[3:], "install", "--no-deps", "--no-index"]
    subprocess.run([*into, "--no-compile", str(wheel)], check=True)
    [packages_folder] = created.glob("lib/python*/site-packages")
    [its_own] = distributions(name="pushhub", path=[str(packages_folder)])
    link_requirements(its_own.requires or (), packages_folder)
    home = folder / "home"
    home.mkdir()
    return Installed(created, home, packages)


def link_requirements(requires: Iterable[str], into: Path) -> None:
    """Put there what these requirements ask for, and what that asks for, and nothing else: links to the packages of
    this environment, which are of the locked versions, instead of copies.
    """
    left, linked = [*map(Requirement, requires)], set[str]()
    while left:
        wanted = left.pop()
        if wanted.marker and not wanted.marker.evaluate({"extra": ""}):
            continue
        assert not wanted.extras
        found = distribution(wanted.name)
        assert wanted.specifier.contains(found.version), wanted
        if found.name in linked:
            continue
        linked.add(found.name)
        left += map(Requirement, found.requires or ())
        for name in {each.parts[0] for each in found.files or ()} - {"..", "__pycache__"}:
            (into / name).symlink_to(str(found.locate_file(name)))


def leaves(group: click.Group, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        yield (*before, name)
        if isinstance(found, click.Group):
            yield from leaves(found, (*before, name))


def test_nothing_but_our_own_names_is_installed(installed: Installed) -> None:
    assert installed.packages == {"pushhub", "pushhub_cli"}


HELPS = """
import json
import sys
from contextlib import suppress
from pushhub_cli.__main__ import main
for words in json.loads(sys.argv[1]):
    with suppress(SystemExit):
        main(words, prog_name="pushhub")
"""


def test_every_command_can_be_asked_for_help(installed: Installed) -> None:
    shown = installed("--help")
    assert shown.returncode == 0, shown.stderr
    assert all(f"  {name}" in shown.stdout for name in COMMANDS)
    assert installed("--version").stdout == f"pushhub {PROJECT['version']}\n"
    # Each command's module is imported in one process: to begin one takes as long as forty helps
    asked = [[*words, "--help"] for words in leaves(main) if words != ("simulate", "hub")]
    shown = installed.python(HELPS, json.dumps(asked))
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.count("Usage: pushhub ") == len(asked) > 40


def test_what_needs_the_clone_or_a_hub_says_so(installed: Installed) -> None:
    of_the_clone: tuple[tuple[str, ...], ...] = (("up",), ("down",), ("simulate", "hub"))
    for words in of_the_clone:
        done = installed(*words)
        assert done.returncode == 1
        assert "clone of its repository" in done.stderr or "clone of the repository" in done.stderr
    assert "needs its clone" in installed("report").stderr
    without_hub: tuple[tuple[str, ...], ...] = (("status",), ("post", "q", "x"), ("projects", "list"), ("tail",))
    for words in without_hub:
        done = installed(*words)
        assert done.returncode == 3, (words, done.stderr)
        assert all(name in done.stderr for name in ("PUSHHUB_HOME", "PUSHHUB_URL", "--profile"))
        assert "Traceback" not in done.stderr
    assert "_PUSHHUB_COMPLETE" in installed("completion", "bash").stdout


def test_a_message_goes_round_from_another_folder(installed: Installed, hub: ServedHub) -> None:
    # Given a hub by its environment variables
    ways: tuple[tuple[str, ...], ...] = (("status",), ("queues", "create", "orders"), ("post", "orders", "x"))
    for words in ways:
        done = installed(*words, **hub.environment)
        assert done.returncode == 0, (words, done.stderr)
    [shown] = json.loads(installed("--json", "queues", "show", "orders", **hub.environment).stdout)
    assert shown["size"] == 1


def test_the_page_is_typed_line_by_line(installed: Installed, hub: ServedHub) -> None:
    # Given a hub whose subscriber fails, and every line for a shell that the page has
    page = (REPOSITORY / "docs" / "cli.md").read_text()
    blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    assert len(lines) > 15
    world = hub.worlds["ironmq"].world
    world.sender.script("https://shop.example/in", 500)
    with_endpoints(hub)
    for name, content in {
        "stripe.txt": "whsec_s\n",
        "client.txt": "hush\n",
        "identity.pem": identity(),
        "schemes.json": '[{"preset": "standard-webhooks"}]',
        "standard.txt": f"{symmetric('1')}\n",
    }.items():
        (installed.home / name).write_text(content)
    hub.lives = True
    # When they are typed in a folder with nothing but the files that they name, then each does what it says
    for line in lines:
        if line.startswith("pip install"):
            continue
        if line == "pushhub replay errors":
            # Somebody has put the receiver right.
            world.sender.script("https://shop.example/in", 200)
        environment = {"PATH": f"{installed.folder / 'bin'}:/usr/bin:/bin", "HOME": str(installed.home)}
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            env=environment | hub.environment,
            cwd=installed.home,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (line, done.stderr)
        world.run(seconds=5)
    assert len(world.sender.requests_to("https://shop.example/in")) == 1 + 1


def test_a_running_stack_is_found(installed: Installed, hub: ServedHub) -> None:
    # Given a stack that describes itself as 'make up' does, in a clone that the person works in
    home = installed.home / "clone" / ".pushhub"
    home.mkdir(parents=True)
    reported = {"base_url": hub.base_url, "project_id": PROJECT_ID, "token": TOKEN}
    (home / "local.json").write_text(json.dumps(reported | {"aws_endpoint_url": "http://127.0.0.1:9", "outputs": {}}))
    # Then it is found by the variable that the message names
    assert installed("status", PUSHHUB_HOME=str(home)).returncode == 0
    # And from folders below the clone
    below = home.parent / "docs"
    below.mkdir()
    assert replace(installed, home=below)("status").returncode == 0
    # What is no description is not followed
    (home / "local.json").write_text("[]")
    assert installed("status", PUSHHUB_HOME=str(home)).returncode == 3
    (home / "local.json").write_text('{"base_url": 1}')
    done = installed("queues", "list", PUSHHUB_HOME=str(home))
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)


def test_its_requirements_are_locked_for_development() -> None:
    locked = (REPOSITORY / "requirements" / "dev.txt").read_text()
    for each in PROJECT["dependencies"]:
        assert f"\n{each.split('>')[0]}==" in locked, each


def test_talking_to_a_hub_loads_nothing_of_what_operating_one_needs() -> None:
    names = ("queues", "post", "listen", "messages", "verify", "profiles")
    script = f"""
import sys
import cli.__main__
for name in {names}:
    __import__("cli.commands." + name)
print(*sorted({{"boto3", "pushhub.engine", "local.stack"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
