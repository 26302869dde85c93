"""The SAM CLI and a full emulator for it, each in an environment made from its lock file."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from local.environment import make
from local.layer import MACHINE

__all__ = ["REGION", "ROOT", "Emulator", "built", "emulator", "sam"]

ROOT = Path(__file__).parents[2]
REGION = "us-east-1"
START_SECONDS = 120.0
STOP_SECONDS = 10.0
SOURCES = ("template.yaml", "stacks", "functions", "layers", "local/layer.py", "requirements/sam.txt")
"""What a build is made of."""


def environment(name: str, lock: str) -> Path:
    """The ``bin`` folder of an environment, which is created if it is missing or its lock file changed."""
    folder = ROOT / name
    make(folder, ROOT / "requirements" / lock)
    return folder / "bin"


def sam(*arguments: str, environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the SAM CLI in the root of the repository; nothing of this machine's AWS configuration reaches it."""
    bin_folder = environment(".venv-sam", "sam.txt")
    return subprocess.run(
        [bin_folder / "sam", *arguments],
        cwd=ROOT,
        # sam build looks for a python3 with pip on the path.
        env={
            "PATH": os.pathsep.join([str(bin_folder), str(Path(sys.base_prefix) / "bin"), "/usr/bin", "/bin"]),
            "HOME": os.environ["HOME"],
            "SAM_CLI_TELEMETRY": "0",
            "AWS_DEFAULT_REGION": REGION,
            **_network_settings(),
            **(environ or {}),
        },
        check=False,
        capture_output=True,
        text=True,
        timeout=900,
    )


def built() -> Path:
    """The output of ``sam build`` for the code as it is, made once; nobody changes it."""
    digest = hashlib.sha256(sys.version.encode())
    for each in sorted(file for name in SOURCES for file in [ROOT / name, *(ROOT / name).rglob("*")]):
        if each.is_file() and each.suffix != ".pyc":
            digest.update(f"{each}\n".encode() + each.read_bytes())
    output = ROOT / "build" / "sam" / digest.hexdigest()[:16]
    if not output.is_dir():
        output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=output.parent) as folder:
            unfinished = Path(folder) / "build"
            # The emulator runs functions under this machine's Python.
            result = sam("build", "--build-dir", str(unfinished), "--no-cached", environ={"LAYER_TARGET": MACHINE})
            assert result.returncode == 0, result.stdout + result.stderr
            unfinished.rename(output)
    return output


def _network_settings() -> dict[str, str]:
    """What pip, called by sam build, needs to find packages on this machine."""
    prefixes = ("PIP_", "SSL_", "REQUESTS_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
    return {name: value for name, value in os.environ.items() if name.upper().startswith(prefixes)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulator:
    """A running emulator.

    Attributes:
        url: Endpoint of all its services.
        log: What it writes.
    """

    url: str
    log: Path

    @property
    def credentials(self) -> dict[str, str]:
        """Environment of a client with all rights, as needed for deployment."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": REGION,
        }


@contextmanager
def emulator(folder: Path) -> Iterator[Emulator]:
    """A separate emulator on a free port, which enforces the policies of the functions' roles."""
    bin_folder = environment(".venv-ministack-full", "ministack-full.txt")
    port = _free_port()
    started = Emulator(url=f"http://127.0.0.1:{port}", log=folder / "emulator.log")
    with started.log.open("w") as log:
        process = subprocess.Popen(
            [bin_folder / "python", "-P", Path(__file__).with_name("as_aws.py")],
            cwd=folder,
            env={
                "PATH": os.pathsep.join([str(bin_folder), "/usr/bin", "/bin"]),
                "HOME": str(folder),
                "TMPDIR": str(folder),
                "GATEWAY_PORT": str(port),
                "BIND_HOST": "127.0.0.1",
                "IOT_MTLS_ENABLED": "0",
                # Every call is checked against the policies, as on AWS.
                "AUTH": "true",
                "AWS_ACCESS_KEY_ID": "test",
                "AWS_SECRET_ACCESS_KEY": "test",
                "AWS_DEFAULT_REGION": REGION,
            },
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_for(f"{started.url}/_ministack/health", process, started.log)
        yield started
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=20):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise AssertionError(f"the emulator did not start:\n{log.read_text()[-2000:]}")
