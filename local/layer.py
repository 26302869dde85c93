"""Builds a layer for one runtime and processor, on any machine:
``python -m local.layer pushhub python3.13-arm64 TARGET``.

``sam build`` calls it through ``layers/targets/*/Makefile``. SAM's own builder for Python would find most wheels, but
checks no hash of one for another processor, and needs the runtime's own Python (docs/deploy.md). This one needs nothing
but Python with pip: it runs before any environment exists.

What was installed is then read again: the tags of every wheel, the processor and the C library that every compiled file
wants, and the size. A layer that could not be imported where it is going is not built.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from local.errors import LocalError

MOST_BYTES = 40 * 1024 * 1024
"""Largest layer, unpacked. AWS allows 250 MB (of 1,024 KB, as here), but a cold start reads what it imports from it."""

MACHINE = "machine"
"""The target of what runs on this machine, under this Python: the emulator."""

GLIBC = (2, 34)
"""The C library of Amazon Linux 2023, which runs python3.12 and later."""

LEFT_OUT = (
    "aws_lambda_powertools/event_handler/openapi/swagger_ui",  # Pages that no function serves; 1.7 MB.
    "pycparser",  # With it cffi reads C, when a package is made and never when it is used.
    "cffi",  # Likewise: cryptography uses only the module _cffi_backend beside it.
    "bin",
)
"""Folders of wheels that no function imports."""

LEFT_OUT_FILES = ("*.pyi", "*.pyx", "*.pxd", "*.cyclonedx.json")
"""Files of wheels that nothing can import."""

_PROCESSORS = {"arm64": ("aarch64", 183), "x86_64": ("x86_64", 62)}
"""By AWS's name: the name in tags, and the number in ELF files (``e_machine``)."""

_LEGACY = {"aarch64": ("manylinux2014",), "x86_64": ("manylinux2014", "manylinux2010", "manylinux1")}
_GLIBC_SYMBOL = re.compile(rb"GLIBC_(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Target:
    """Where a layer is to run.

    Attributes:
        minor: Of its Python 3.
        architecture: Its processor, as AWS calls it.
    """

    minor: int
    architecture: str

    @property
    def platforms(self) -> list[str]:
        """Platform tags of wheels that run there, the newest first."""
        name, _ = _PROCESSORS[self.architecture]
        names = [f"manylinux_{GLIBC[0]}_{minor}_{name}" for minor in range(GLIBC[1], 4, -1)]
        return [*names, *(f"{each}_{name}" for each in _LEGACY[name]), f"linux_{name}"]

    def runs(self, tag: str) -> bool:
        """Whether a wheel with this tag can be imported there (``cp311-abi3-manylinux_2_28_aarch64``)."""
        python, abi, place = tag.split("-")
        if place != "any" and place not in self.platforms:
            return False
        version = re.fullmatch(r"(cp|py)3(\d*)", python)
        if version is None:
            return False
        least = int(version[2] or 0)
        if abi == f"cp3{self.minor}":
            return least == self.minor
        return abi in ("abi3", "none") and least <= self.minor


def read_target(name: str) -> Target:
    """The target of a name such as ``python3.13-arm64``.

    Raises:
        LocalError: There is none of that name.
    """
    if name == MACHINE:
        return this_machine()
    found = re.fullmatch(r"python3\.(\d+)-(\w+)", name)
    if found is None or int(found[1]) < 12 or found[2] not in _PROCESSORS:
        raise LocalError(f"there is no runtime for a layer called {name}")
    return Target(int(found[1]), found[2])


def this_machine() -> Target:
    """The target of what runs here: the present Python and processor."""
    names = {name: architecture for architecture, (name, _) in _PROCESSORS.items()}
    return Target(sys.version_info.minor, names[platform.machine()])


def install(lock: Path, folder: Path, target: Target, python: Path) -> None:
    """Install what a lock file names: wheels only, each with its hash.

    Args:
        folder: An empty folder.
        python: Interpreter whose pip does it. It need not be the target's.

    Raises:
        LocalError: There is no wheel for the target, or one has another hash.
    """
    options = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-compile", "--no-deps", "--require-hashes"]
    place = ["--only-binary=:all:", "--implementation=cp", f"--python-version=3.{target.minor}"]
    place += [f"--platform={each}" for each in target.platforms]
    command = [str(python), "-m", "pip", "install", *options, *place, "--target", str(folder), "-r", str(lock)]
    result = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode:
        lines = [line.strip() for line in result.stdout.splitlines() if line.strip()]
        reasons = [line for line in lines if line.startswith("ERROR")] or lines or ["no output"]
        raise LocalError(f"the layer's dependencies cannot be installed: {reasons[-1]}")
    leave_out(folder)


def leave_out(folder: Path) -> None:
    """Remove what no function can import."""
    for name in LEFT_OUT:
        shutil.rmtree(folder / name, ignore_errors=True)
    for pattern in LEFT_OUT_FILES:
        for path in folder.rglob(pattern):
            path.unlink()


def problems(folder: Path, target: Target) -> Iterator[str]:
    """Why the packages in a folder could not be imported on the target: nothing if they can.

    Args:
        folder: What becomes ``python/`` of a layer.
    """
    for file in sorted(folder.glob("*.dist-info/WHEEL")):
        tags = [line.partition(": ")[2].strip() for line in file.read_text().splitlines() if line.startswith("Tag:")]
        if not any(map(target.runs, tags)):
            package = file.parent.name.removesuffix(".dist-info")
            yield f"{package} is built for {', '.join(tags)}, which does not run on {_described(target)}"
    for file in sorted(folder.rglob("*.so")):
        yield from _problems_of_compiled(file, file.relative_to(folder).as_posix(), target)


def _problems_of_compiled(file: Path, name: str, target: Target) -> Iterator[str]:
    content = file.read_bytes()
    # ELF, 64 bits, little-endian; e_machine stands at byte 18.
    machine = int.from_bytes(content[18:20], "little")
    if content[:6] != b"\x7fELF\x02\x01" or machine != _PROCESSORS[target.architecture][1]:
        yield f"{name} is not compiled for {target.architecture}"
    named = re.search(r"\.cpython-3(\d+)-", name)
    if named and int(named[1]) != target.minor:
        yield f"{name} is not compiled for Python 3.{target.minor}"
    wanted = max(((int(one), int(two)) for one, two in _GLIBC_SYMBOL.findall(content)), default=(0, 0))
    if wanted > GLIBC:
        yield f"{name} wants glibc {wanted[0]}.{wanted[1]}; {_described(target)} has {GLIBC[0]}.{GLIBC[1]}"


def _described(target: Target) -> str:
    return f"python3.{target.minor} on {target.architecture}"


def build(source: Path, artifacts: Path, target: Target, python: Path) -> None:
    """Build the layer.

    Args:
        source: Its folder: the lock file, and in that of the hub its own package.
        artifacts: Where it goes.
        python: As of :func:`install`.

    Raises:
        LocalError: It could not be imported on the target, or is too large; the text says why.
    """
    folder = artifacts / "python"
    folder.mkdir(parents=True, exist_ok=True)
    install(source / "requirements.txt", folder, target, python)
    if (source / "pushhub").is_dir():
        shutil.copytree(source / "pushhub", folder / "pushhub", ignore=shutil.ignore_patterns("__pycache__"))
    found = list(problems(folder, target))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if size > MOST_BYTES:
        found.append(f"it has {size:,} bytes, and {MOST_BYTES:,} are the most")
    if found:
        raise LocalError("this layer cannot be deployed: " + "; ".join(found))


def main(arguments: Sequence[str] | None = None) -> int:
    """Build it."""
    layer, name, artifacts = arguments if arguments is not None else sys.argv[1:]
    source = Path(__file__).resolve().parent.parent / "layers" / layer
    try:
        build(source, Path(artifacts), read_target(name), Path(sys.executable))
    except LocalError as error:
        print(f"pushhub: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
