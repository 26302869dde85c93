"""The package that ``pip install`` makes of this repository: it holds everything that ``pushhub`` needs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

from cli.__main__ import COMMANDS
from local.place import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


def test_every_command_is_there() -> None:
    for place in COMMANDS.values():
        module, _, name = place.partition(":")
        assert getattr(import_module(module), name).name == next(k for k, v in COMMANDS.items() if v == place)


def test_what_is_installed_runs_on_its_own(tmp_path: Path) -> None:
    # Given only the sources of the repository
    sources = tmp_path / "sources"
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("cli", "local", "layers"):
        shutil.copytree(REPOSITORY / name, sources / name, ignore=ignored)
    shutil.copy(REPOSITORY / "pyproject.toml", sources)
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "--disable-pip-version-check", "--target", str(site), str(sources)], check=True)
    shutil.rmtree(sources)
    # When its entry point is run
    environment = {"PYTHONPATH": str(site), "PATH": "", "HOME": str(tmp_path)}
    program = site / "bin" / "pushhub"

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(program), *words]
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    # Then every command exists, and one that needs the repository says so
    shown = run("--help")
    assert shown.returncode == 0, shown.stderr
    assert all(f"  {name}" in shown.stdout for name in COMMANDS)
    assert "runs from a clone of its repository" in run("up").stderr
    assert run("queues", "list").returncode == 3


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
