"""What is uploaded before a deployment: zip files of the functions and the layer with its dependencies.

Packages are named by the digest of what goes into them, so an unchanged one is neither built nor uploaded again. They
hold compiled modules beside the sources: the emulator unpacks a package for every new worker, which would compile them
each time.
"""

from __future__ import annotations

import hashlib
import py_compile
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from local.errors import LocalError
from local.layer import leave_out

_EPOCH = (1980, 1, 1, 0, 0, 0)
_FORMAT = b"4"
"""Part of every digest: change it when packages are laid out differently."""


@dataclass(frozen=True, slots=True)
class Package:
    """A built file.

    Attributes:
        digest: SHA-256 hex of its inputs.
    """

    digest: str
    path: Path

    @property
    def key(self) -> str:
        """Its name in a bucket."""
        return f"{self.digest}{self.path.suffix}"


def build_function(source: Path, builds: Path, python: Path) -> Package:
    """Package a function's folder."""
    digest = _digest(source, python)
    return _build(builds / f"{source.name}-{digest[:16]}.zip", digest, [(source, "")])


def build_layer(source: Path, builds: Path, python: Path) -> Package:
    """Package a layer: the modules in its folder, and what its ``requirements.txt`` locks, below ``python/``.

    Args:
        python: Interpreter the functions will run under; its pip installs the dependencies.
    """
    digest = _digest(source, python)
    target = builds / f"{source.name}-layer-{digest[:16]}.zip"
    if target.exists():
        return _build(target, digest, [])
    dependencies = _dependencies(source / "requirements.txt", builds, python)
    return _build(target, digest, [(dependencies, "python/"), (source, "python/")])


def forget_old(builds: Path, keep: int = 40) -> None:
    """Remove the packages that have not been used for the longest time, except for some of the newest."""
    files = sorted(builds.glob("*.zip"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files[keep:]:
        file.unlink(missing_ok=True)


def _sources(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def _digest(folder: Path, python: Path) -> str:
    digest = hashlib.sha256(_FORMAT + _interpreter(python))
    empty = True
    for path in _sources(folder):
        empty = False
        name, content = path.relative_to(folder).as_posix().encode(), path.read_bytes()
        digest.update(b"%d %d " % (len(name), len(content)) + name + content)
    if empty:
        raise LocalError(f"nothing to package in {folder}")
    return digest.hexdigest()


def _interpreter(python: Path) -> bytes:
    """Whose packages these are: environments are made anew at the same place when another Python is there."""
    return f"{python} {sys.implementation.cache_tag}".encode()


def _dependencies(lock: Path, builds: Path, python: Path) -> Path:
    """Folder with the installed dependencies of a lock file, kept by its digest."""
    name = hashlib.sha256(_FORMAT + lock.read_bytes() + _interpreter(python)).hexdigest()[:16]
    installed = builds / f"dependencies-{name}"
    if installed.exists():
        return installed
    builds.mkdir(parents=True, exist_ok=True)
    # Its own name, because two stacks may be built at the same time.
    unfinished = Path(tempfile.mkdtemp(prefix=f"unfinished-{name}-", dir=builds))
    options = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-compile", "--require-hashes", "--no-deps"]
    command = [str(python), "-m", "pip", "install", *options, "--target", str(unfinished), "-r", str(lock)]
    result = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode:
        shutil.rmtree(unfinished)
        last = (result.stdout.strip().splitlines() or ["no output"])[-1]
        raise LocalError(f"the layer's dependencies cannot be installed: {last}")
    leave_out(unfinished)
    try:
        unfinished.rename(installed)
    except OSError:
        shutil.rmtree(unfinished)
        if not installed.exists():
            raise
    return installed


def _build(target: Path, digest: str, folders: list[tuple[Path, str]]) -> Package:
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="unfinished-", dir=target.parent) as folder:
            unfinished, scratch = Path(folder) / target.name, Path(folder) / "module.pyc"
            with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as package:
                for source, prefix in folders:
                    for path in _sources(source):
                        name = prefix + path.relative_to(source).as_posix()
                        _add(package, name, path.read_bytes())
                        if path.suffix == ".py":
                            _add(package, *_compiled(path, name, scratch))
            unfinished.replace(target)
    target.touch()
    return Package(digest, target)


def _add(package: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    package.writestr(entry, content)


def _compiled(path: Path, name: str, scratch: Path) -> tuple[str, bytes]:
    """Name and content of the module's ``.pyc``, valid whatever time stamp the source is unpacked with."""
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    try:
        py_compile.compile(str(path), str(scratch), name, doraise=True, invalidation_mode=unchecked)
    except py_compile.PyCompileError as error:
        raise LocalError(f"{path} does not compile: {error.exc_value}") from error
    module = PurePosixPath(name)
    return str(
        module.parent / "__pycache__" / f"{module.stem}.{sys.implementation.cache_tag}.pyc"
    ), scratch.read_bytes()
