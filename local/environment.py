"""Makes a virtual environment from a lock file, with nothing but Python and its standard library.

Called by the Makefile before anything else exists: ``python3 local/environment.py .venv requirements/dev.txt``, and
with ``NAME=MODULE`` for a command in it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST, NEWEST = (3, 11), (3, 14)
"""Versions of Python that all lock files support."""
STAMP = "made-from.sha256"
"""File inside an environment that names the lock file it was made from."""
QUIETLY = ("--quiet", "--disable-pip-version-check", "--no-input", "--no-warn-script-location")
"""Options of pip."""


def digest_of(lock: Path) -> str:
    """The stamp of an environment made from this lock file; it also covers the interpreter."""
    return hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()


def is_current(environment: Path, lock: Path) -> bool:
    """Whether the environment is complete and was made from the present lock file."""
    stamp = environment / STAMP
    return (
        stamp.is_file() and stamp.read_text().strip() == digest_of(lock) and (environment / "bin" / "python").exists()
    )


def pip_of(environment: Path) -> list[str]:
    """Make the empty environment and say how pip is called for it.

    Raises:
        SystemExit: This Python has neither ``ensurepip`` nor ``pip``, as on Debian without python3-venv.
    """
    create, python = [sys.executable, "-m", "venv"], str(environment / "bin" / "python")
    if wheel := pip_brought_along():
        # As ensurepip does it, but for one second of CPU instead of six: without compiling, and without setuptools.
        run([*create, "--without-pip", str(environment)])
        run([python, f"{wheel}/pip", "install", *QUIETLY, "--no-index", "--no-deps", "--no-compile", str(wheel)])
        return [python, "-m", "pip"]
    if importlib.util.find_spec("ensurepip"):
        run([*create, str(environment)])
        return [python, "-m", "pip"]
    if importlib.util.find_spec("pip"):
        run([*create, "--without-pip", str(environment)])
        return [sys.executable, "-m", "pip", "--python", python]
    raise SystemExit("pushhub: this Python cannot make virtual environments: install the package python3-venv")


def pip_brought_along() -> Path | None:
    """The wheel of pip that ``ensurepip`` has; None where a distribution keeps it elsewhere."""
    found = importlib.util.find_spec("ensurepip")
    wheels = sorted(Path(found.origin).parent.glob("_bundled/pip-*.whl")) if found and found.origin else []
    return wheels[-1] if wheels else None


def run(command: list[str]) -> None:
    """Run a command whose output only matters when it fails."""
    result = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode:
        lines = [line.strip() for line in result.stdout.splitlines() if line.strip()]
        errors = [line for line in lines if line.upper().startswith("ERROR")] or lines[-1:] or ["no output"]
        raise SystemExit(f"pushhub: {Path(command[0]).name} {command[2]} failed: {errors[-1]}")


def check_own(environment: Path) -> None:
    """Make sure that nobody else's files are removed.

    Raises:
        SystemExit: The folder exists and was not made here.
    """
    if environment.exists() and not (environment / STAMP).is_file():
        raise SystemExit(
            f"pushhub: {environment} exists but was not made by make, so it is left alone: move it away, or name "
            f"another "
            "with VENV=... or EMULATOR_VENV=..."
        )


def make(environment: Path, lock: Path) -> None:
    """Create the environment again unless it is current."""
    if is_current(environment, lock):
        return
    check_own(environment)
    packages = sum("==" in line for line in lock.read_text().splitlines())
    print(f"Making {environment} from {lock}: {packages} packages, a minute or two the first time ...", flush=True)
    shutil.rmtree(environment, ignore_errors=True)
    environment.mkdir(parents=True)
    # From here on the folder is ours, even if this is interrupted and started again.
    (environment / STAMP).write_text("unfinished\n")
    pip = pip_of(environment)
    # A lock file is complete. Left to resolve it, older pips stumble over packages asked for with and without extras.
    # Most modules are never imported: each that is, is compiled then.
    run([*pip, "install", *QUIETLY, "--no-compile", "--no-deps", "--require-hashes", "-r", str(lock)])
    (environment / STAMP).write_text(digest_of(lock) + "\n")
    print(f"Made {environment}.", flush=True)


def put_command(environment: Path, name: str, module: str) -> None:
    """Put a command into an environment that runs a module of the clone it is in, or else of this one."""
    code = f"""#!{environment.absolute() / "bin" / "python"}
import sys
from pathlib import Path

clone = Path(__file__).absolute().parents[2]
if not (clone / "template.yaml").is_file():
    clone = Path({str(Path(__file__).resolve().parent.parent)!r})
sys.path[:0] = [str(clone), str(clone / "layers" / "pushhub")]
from {module} import entry

entry()
"""
    command = environment / "bin" / name
    if not command.is_file() or command.read_text() != code:
        command.write_text(code)
        command.chmod(0o755)


if __name__ == "__main__":
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        raise SystemExit(f"pushhub: Python 3.11 to 3.14 is needed, this is {sys.version.split()[0]}")
    make(Path(sys.argv[1]), Path(sys.argv[2]))
    if len(sys.argv) > 3:
        put_command(Path(sys.argv[1]), *sys.argv[3].split("="))
