"""What curl takes as an answer is one: Debian's curl and the hub's sender at the same server, side by side."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest
from tests.egress.guarded_sending import asking, sender
from tests.hostile.odd_answers import ODD_ANSWERS

BODY = b"hello"
NAMES = list(ODD_ANSWERS)
THREADS = 12

AT_ODDS = {
    "fold te": "curl does not read a framing header that goes on in the next line; we do",
    "101": "nothing is sent to us in another protocol",
}
"""Where both take the answer, and what follows the head is another thing to us."""

KINDER = {
    *("no colon", "tab in status", "http 1.2", "only status eof", "fold first", "fold length", "line 150k"),
    *("nul in value", "nul in name", "reason nul", "http line as header", "te unknown", "te params", "te quoted"),
    *("chunk leading blank", "chunk bad trailer", "chunk no last crlf"),
}
"""What curl refuses, although it is plain what is meant; all of them are a 200 here."""


class Seen(NamedTuple):
    """The status and body of an answer; a status of 0 stands for no answer."""

    status: int
    body: bytes


class Server:
    """Answers ``/n`` with the nth odd answer, byte for byte, and then ends the connection, or keeps it open."""

    def __init__(self, *, keeps: bool) -> None:
        self._keeps = keeps
        self._stopped = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/{NAMES.index(name)}"

    def stop(self) -> None:
        self._stopped.set()
        for each in [self._listener, *self._open]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while not self._stopped.is_set():
                connection, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        self._open.add(connection)
        with connection, contextlib.suppress(OSError):
            request = b""
            while not request.endswith(b"\r\n\r\n" + BODY):
                request += connection.recv(65_536)
            connection.sendall(ODD_ANSWERS[NAMES[int(request.split()[1].strip(b"/"))]])
            if not self._keeps:
                connection.shutdown(socket.SHUT_WR)
            while connection.recv(65_536):
                pass


@contextlib.contextmanager
def serving(*, keeps: bool) -> Iterator[Server]:
    server = Server(keeps=keeps)
    try:
        yield server
    finally:
        server.stop()


def asked_by_curl(url: str, patience_s: float) -> Seen:
    """What curl takes as an answer; none if it complains."""
    curl = shutil.which("curl")
    assert curl, "this test needs Debian's curl"
    settings = ["--http1.1", "-H", "Expect:", "--data-binary", BODY.decode(), "--max-time", str(patience_s)]
    ran = subprocess.run([curl, "-q", "-s", "-w", "\n%{http_code}", *settings, url], capture_output=True, check=False)
    body, _, status = ran.stdout.rpartition(b"\n")
    return Seen(int(status), body) if ran.returncode == 0 else Seen(0, b"")


def of_all(ask: Callable[[str], Seen], names: list[str]) -> dict[str, Seen]:
    with ThreadPoolExecutor(THREADS) as pool:
        return dict(zip(names, pool.map(ask, names), strict=True))


def compared(*, keeps: bool, patience_s: float) -> tuple[Mapping[str, Seen], Mapping[str, Seen]]:
    """What curl took, and what the hub's sender took of the same."""
    with serving(keeps=keeps) as server, sender(threads=THREADS, idle_limit_s=0) as sending:

        def ours(name: str) -> Seen:
            answer = sending.send(asking(server.url(name), body=BODY, timeout_s=30, answer_limit=10_000))
            return Seen(answer.status_code, answer.body)

        every = of_all(lambda name: asked_by_curl(server.url(name), patience_s), NAMES)
        taken = {name: seen for name, seen in every.items() if seen.status}
        return taken, of_all(ours, list(taken))


@pytest.mark.parametrize(
    ("keeps", "patience_s", "most"), [(False, 20, 100), (True, 1, 80)], ids=["closed after it", "kept open"]
)
def test_whatever_curl_takes_is_taken(keeps: bool, patience_s: float, most: int) -> None:
    # Given a server that sends 160 odd answers
    assert len(NAMES) >= 160
    # When curl and the sender ask it, then the sender reads each that curl reads, with the same status and body
    taken, ours = compared(keeps=keeps, patience_s=patience_s)
    assert len(taken) >= most
    assert {name: seen for name, seen in ours.items() if name not in AT_ODDS and seen != taken[name]} == {}
    assert {ours[name].status for name in AT_ODDS if name in ours} <= {101, 200}


def test_what_is_plain_is_taken_even_if_curl_refuses_it() -> None:
    with serving(keeps=False) as server, sender(idle_limit_s=0) as sending:
        refused = {
            name
            for name in KINDER
            if sending.send(asking(server.url(name), body=BODY, timeout_s=30)).status_code != 200
        }
    assert refused == set()
