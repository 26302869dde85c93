"""Environments are made from lock files, again when those change, and never in place of somebody else's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from local.place import REPOSITORY

from local import environment


def lock_file(folder: Path, text: str = "# nothing\n") -> Path:
    path = folder / "lock.txt"
    path.write_text(text)
    return path


def test_it_is_made_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Given a lock file
    target, lock = tmp_path / "env", lock_file(tmp_path)
    # When the environment is made, and made again
    environment.make(target, lock)
    first = capsys.readouterr().out
    (target / "kept").touch()
    environment.make(target, lock)
    # Then the second time nothing happens
    assert first.count("\n") == 2
    assert capsys.readouterr().out == ""
    assert (target / "kept").exists()
    result = subprocess.run([target / "bin" / "python", "-m", "pip", "--version"], check=True, capture_output=True)
    assert b"pip" in result.stdout


def test_one_whose_making_was_interrupted_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given what was left when making it was interrupted
    target = tmp_path / "env"
    target.mkdir()
    (target / "kept").touch()
    (target / environment.STAMP).write_text("unfinished\n")
    # When it is made, by something quicker than pip
    commands: list[list[str]] = []
    monkeypatch.setattr(environment, "pip_of", lambda _: ["pip"])
    monkeypatch.setattr(environment, "run", commands.append)
    lock = lock_file(tmp_path)
    environment.make(target, lock)
    # Then nothing of before is left
    assert not (target / "kept").exists()
    assert [each[:2] for each in commands] == [["pip", "install"]]
    assert (target / environment.STAMP).read_text().strip() == environment.digest_of(lock)


def test_another_lock_file_makes_it_outdated(tmp_path: Path) -> None:
    # Given an environment made from a lock file
    target, lock = tmp_path / "env", lock_file(tmp_path)
    (target / "bin").mkdir(parents=True)
    (target / "bin" / "python").touch()
    (target / environment.STAMP).write_text(environment.digest_of(lock))
    assert environment.is_current(target, lock)
    # When the lock file changes, then it has to be made again
    lock.write_text("# something else\n")
    assert not environment.is_current(target, lock)


def test_one_that_somebody_else_made_is_left_alone(tmp_path: Path) -> None:
    # Given a folder of that name that was not made here
    target = tmp_path / "env"
    target.mkdir()
    (target / "precious").touch()
    # When it is to be made, then it is refused in one line
    with pytest.raises(SystemExit, match=r"^pushhub: .*env exists but was not made by make"):
        environment.make(target, lock_file(tmp_path))
    assert (target / "precious").exists()


def test_a_package_that_does_not_match_its_hash_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a local package and a lock file with another hash
    package = tmp_path / "thing-1.0-py3-none-any.whl"
    package.write_bytes(b"PK\x05\x06" + b"\0" * 18)
    lock = lock_file(tmp_path, f"thing @ {package.as_uri()} --hash=sha256:{'0' * 64}\n")
    # When the environment is made, by the pip that is there, which installs nothing
    monkeypatch.setattr(environment, "pip_of", lambda _: [sys.executable, "-m", "pip"])
    monkeypatch.setenv("PIP_DRY_RUN", "1")
    with pytest.raises(SystemExit) as refused:
        environment.make(tmp_path / "env", lock)
    # Then the reason stands in one line, and the environment does not count as made
    assert str(refused.value).startswith("pushhub: ")
    assert "\n" not in str(refused.value)
    assert "HASH" in str(refused.value).upper()
    assert not environment.is_current(tmp_path / "env", lock)


@pytest.mark.parametrize("name", ["dev", "ministack"])
def test_lock_files_hold_hashes_and_no_registry(name: str) -> None:
    # Given a lock file of this repository, when it is read
    text = (REPOSITORY / "requirements" / f"{name}.txt").read_text()
    entries = [block for block in text.replace("\\\n", " ").splitlines() if block and not block.startswith((" ", "#"))]
    # Then everything is pinned with hashes, and where it is from is not said
    assert len(entries) > 10
    assert all("==" in entry and "--hash=sha256:" in entry for entry in entries)
    assert "://" not in text
    assert "index-url" not in text.replace("--no-emit-index-url", "")


def test_a_command_of_the_clone_is_put_into_it(tmp_path: Path) -> None:
    # Given an environment, and two clones that it can be reached from
    target = tmp_path / "one" / ".venv"
    (target / "bin").mkdir(parents=True)
    (target / "bin" / "python").symlink_to(sys.executable)
    for name in ("one", "two"):
        (tmp_path / name / "said").mkdir(parents=True)
        (tmp_path / name / "template.yaml").touch()
        (tmp_path / name / "said" / "entry.py").write_text(f"def entry() -> None:\n    print({name!r})\n")
    (tmp_path / "two" / ".venv").symlink_to(target)
    # When it is put there
    environment.put_command(target, "hello", "said.entry")
    # Then it runs the module of the clone it was called in
    for name in ("one", "two"):
        command = [str(tmp_path / name / ".venv" / "bin" / "hello")]
        result = subprocess.run(command, check=True, capture_output=True, text=True, cwd="/")
        assert result.stdout == f"{name}\n"
    # And elsewhere that of the clone that made it
    (tmp_path / "one" / "template.yaml").unlink()
    environment.put_command(target, "pushhub", "cli.__main__")
    result = subprocess.run([str(target / "bin" / "pushhub"), "--version"], check=True, capture_output=True, text=True)
    assert result.stdout.startswith("pushhub ")
