"""A real token server for tests: npm's oidc-provider, unmodified."""

from __future__ import annotations

import base64
import json
import queue
import shutil
import subprocess
import threading
from pathlib import Path
from typing import IO, Any, Self

from tests.fakes.private_keys import private_key
from tests.stack.node import node_packages

__all__ = ["SECRET", "TokenServer"]

HERE = Path(__file__).parent
START_SECONDS = TELL_SECONDS = 90
SECRET = "s3cr%t:+/=&?"
"""The clients' secret: what is not form-encoded is refused."""


def _number(value: int) -> str:
    return base64.urlsafe_b64encode(value.to_bytes((value.bit_length() + 7) // 8)).rstrip(b"=").decode()


def _clients() -> list[dict[str, Any]]:
    numbers = private_key().public_key().public_numbers()
    key = {"kty": "RSA", "kid": "k1", "alg": "RS256", "use": "sig", "n": _number(numbers.n), "e": _number(numbers.e)}
    return [
        {"client_id": "basic", "client_secret": SECRET, "token_endpoint_auth_method": "client_secret_basic"},
        {"client_id": "post", "client_secret": SECRET, "token_endpoint_auth_method": "client_secret_post"},
        {"client_id": "jwt", "token_endpoint_auth_method": "private_key_jwt", "jwks": {"keys": [key]}},
    ]


class TokenServer:
    """Runs it, with the clients ``basic``, ``post`` and ``jwt``.

    Args:
        seconds: Lifetime of tokens.

    Attributes:
        issuer: Its base URL.

    Raises:
        NodeMissing: There is no Node here.
    """

    def __init__(self, *, seconds: int) -> None:
        # Node looks for packages beside the script.
        self._script = node_packages("token-server-node") / "token_server.mjs"
        shutil.copy(HERE / "token_server.mjs", self._script)
        self._seconds = seconds
        self._answered: queue.Queue[dict[str, Any]] = queue.Queue()
        self.issuer = ""

    @property
    def token_url(self) -> str:
        """Where tokens are asked for."""
        return f"{self.issuer}/token"

    def __enter__(self) -> Self:
        asked = json.dumps({"clients": _clients(), "seconds": self._seconds})
        self._process = subprocess.Popen(
            ["node", str(self._script), asked], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._reading = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._reading.start()
        self.issuer = self._answered.get(timeout=START_SECONDS)["issuer"]
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(timeout=START_SECONDS)
        self._reading.join(START_SECONDS)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def answered(self, least: int = 0) -> list[dict[str, Any]]:
        """What it gave and refused since the last call, once that is so much: it comes through a pipe."""
        found = [self._answered.get(timeout=TELL_SECONDS) for _ in range(least)]
        while not self._answered.empty():
            found.append(self._answered.get())
        return found

    def _read(self, lines: IO[str] | None) -> None:
        for line in lines or ():
            if line.startswith("{"):
                self._answered.put(json.loads(line))
