"""The hub beside what a Python team would build: Celery and Dramatiq on Redis,
each posting with requests and retrying; and a bare asyncio loop with SQLite, as the limit; in one run.

    make up && .venv/bin/python -m bench.peers --redis redis-server [--save docs/figures/peers.md]

Their environment is made by ``uv venv .venv-bench-peers`` and
``uv pip install --require-hashes -r requirements/bench-peers.txt``; the Redis is Debian's ``redis-server``. All deliver
the same messages of 1 KB to the same endpoint, which takes 20 ms, on the same cores. Celery runs eight processes,
Dramatiq two of eight threads (its default on two cores); the loop (bench/peers_loop.py) is one process, whose 64 tasks
share commits and do nothing but post and remove; the hub runs as ``make up`` starts it, emulator and all.

*Throughput*: messages posted as fast as it goes (to the hub and the loop: one hundred a post, on two connections), from
the first post until the last arrives. *Latency*: ten messages a second, from before the post until it arrives.
*Missing*: messages are posted, and when a third have arrived, workers are killed (``kill -9``), or workers and broker,
and started again; counted is what has not arrived one minute and two minutes after the kill, and when the last came of
what did. Two minutes are the hub's promise (docs/flow-control.md). What Celery had fetched and not begun comes after an
hour; what it was doing never does unless it acknowledges late. The hub's broker is the emulator, which stands for AWS
and notes each change before it answers (docs/decisions/local-stack.md); on AWS there is no such process to kill. The
loop's store is a file.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import requests
from local.emulator import lifecycle
from local.place import Place

from bench.harness import ROOT, Page, percentiles
from bench.local_hub import Endpoint, endpoint, paced, tenant
from bench.sink import wait_until_open
from local import stack

PEERS = ROOT / ".venv-bench-peers/bin"
PORT = 6390
DELAY_MS = 20
PER_POST = 100
WITHIN_S = 60
AFTER_KILL_S = (60, 120)
SLOWEST = 50
"""Messages a second: for slower ones nobody waits."""
WORKERS = {
    "celery": [PEERS / "celery", "-A", "peers_tasks:celery_app", "worker", "--concurrency", "8", "--loglevel", "ERROR"],
    "dramatiq": [PEERS / "dramatiq", "peers_tasks", "--processes", "2", "--threads", "8"],
}


class Peer:
    """Celery or Dramatiq, with a Redis of its own.

    Args:
        kind: Which.
        redis: The server's program.
        careful: Late acknowledgements, and a Redis that appends each write to a file that is synced each second.
    """

    def __init__(self, kind: str, redis: str, *, careful: bool) -> None:
        self._kind = kind
        self._redis = redis
        self._careful = careful
        self._home = tempfile.mkdtemp(prefix="peers-")
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._env = {**os.environ, "PYTHONPATH": str(ROOT / "bench"), "PEERS_BROKER": f"redis://127.0.0.1:{PORT}/0"}
        if careful:
            self._env["PEERS_CAREFUL"] = "1"

    def start(self) -> None:
        """Broker, then workers."""
        if "broker" not in self._processes:
            kept = ["--appendonly", "yes", "--appendfsync", "everysec"] if self._careful else []
            self._run("broker", [self._redis, "--port", str(PORT), "--dir", self._home, *kept])
            time.sleep(1)
        self._run("workers", [str(each) for each in WORKERS[self._kind]])
        time.sleep(5)

    def post(self, url: str, count: int, rate: float) -> dict[str, float]:
        """Post messages; when each was."""
        command = [str(PEERS / "python"), str(ROOT / "bench/peers_tasks.py"), self._kind, url, str(count), str(rate)]
        finished = subprocess.run(command, env=self._env, capture_output=True, check=True)
        answer: dict[str, float] = json.loads(finished.stdout)
        return answer

    def kill(self, *, broker: bool) -> None:
        """``kill -9``."""
        for name in ("workers", "broker") if broker else ("workers",):
            process = self._processes.pop(name)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)

    def close(self) -> None:
        """End everything."""
        self.kill(broker=True)
        shutil.rmtree(self._home, ignore_errors=True)

    def _run(self, name: str, command: list[str]) -> None:
        log = (Path(self._home) / f"{name}.log").open("ab")
        self._processes[name] = subprocess.Popen(
            command, env=self._env, cwd=self._home, stdout=log, stderr=log, start_new_session=True
        )


def in_hundreds(post: Callable[[int, list[str]], object], kind: str, count: int, rate: float) -> dict[str, float]:
    """Post messages on two connections, a hundred at a time, or singly on one at so many a second; when each was."""
    posted: dict[str, float] = {}
    bodies = [f"{kind}-{time.time():.3f}-{number}-" + "x" * 1000 for number in range(count)]
    if rate:
        for number in paced(count, rate):
            posted[bodies[number]] = time.time()
            post(0, [bodies[number]])
        return posted

    def some(chunk: tuple[int, list[str]]) -> None:
        posted.update(dict.fromkeys(chunk[1], time.time()))
        post(chunk[0] % 2, chunk[1])

    chunks = [bodies[start : start + PER_POST] for start in range(0, count, PER_POST)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(some, enumerate(chunks)))
    return posted


class BareLoop:
    """One asyncio loop with a durable store (:mod:`bench.peers_loop`)."""

    def __init__(self, url: str) -> None:
        self._home = tempfile.mkdtemp(prefix="peers-")
        self._command = [sys.executable, "-m", "bench.peers_loop", str(PORT), f"{self._home}/messages.sqlite", url]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """It, if it does not run."""
        if self._process is None:
            self._process = subprocess.Popen(self._command, cwd=ROOT)
            wait_until_open(PORT)

    def post(self, url: str, count: int, rate: float) -> dict[str, float]:  # noqa: ARG002 (it was told)
        """Post messages; when each was."""
        clients = [requests.Session() for _ in range(2)]
        address = f"http://127.0.0.1:{PORT}/messages"
        return in_hundreds(
            lambda connection, bodies: clients[connection].post(address, json=bodies, timeout=60).raise_for_status(),
            "loop",
            count,
            rate,
        )

    def kill(self, *, broker: bool) -> None:  # noqa: ARG002 (they are one process)
        """``kill -9``."""
        if self._process:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    def close(self) -> None:
        """End it."""
        self.kill(broker=True)
        shutil.rmtree(self._home, ignore_errors=True)


class Hub:
    """The local stack that runs here."""

    def __init__(self, url: str) -> None:
        self._place = Place.from_environment()
        self._owner = tenant("peers")
        self._owner.push_queue("peers", url)

    def start(self) -> None:
        """Bring up what was killed."""
        said: list[str] = []
        stack.up(self._place, said.append)

    def post(self, url: str, count: int, rate: float) -> dict[str, float]:  # noqa: ARG002 (the queue knows it)
        """Post messages; when each was."""
        owners = [self._owner.another() for _ in range(2)]
        return in_hundreds(lambda connection, bodies: owners[connection].post("peers", bodies), "hub", count, rate)

    def kill(self, *, broker: bool) -> None:
        """``kill -9``."""
        outputs = stack.describe(self._place).outputs
        stack.kill_function_workers(self._place, outputs["PushFunctionName"])
        if broker:
            lifecycle.abandon(self._place)

    def close(self) -> None:
        """It belongs to who started it."""


def lost(peer: Any, target: Endpoint, count: int, *, broker: bool) -> str:
    """What has not arrived a minute and two minutes after a kill, of so many messages."""
    posted = peer.post(f"{target.url}/stamp", count, 0)
    target.wait(lambda: len(posted.keys() & target.seen.keys()) >= count // 3, WITHIN_S)
    there = len(posted.keys() & target.seen.keys())
    killed_at = time.time()
    peer.kill(broker=broker)
    peer.start()
    missing = []
    for seconds in AFTER_KILL_S:
        target.wait_for([*posted], killed_at + seconds - time.time())
        missing.append(len(posted.keys() - target.seen.keys()))
    last = max(target.seen[each][0] for each in posted.keys() & target.seen.keys()) - killed_at
    return f"{missing[0]}, {missing[1]} (killed after {there} of {count}; the last came {last:.0f} s later)"


def measured(peer: Any, target: Endpoint, options: argparse.Namespace) -> list[str]:
    """One row."""
    peer.start()
    url = f"{target.url}/stamp"
    target.wait_for([*peer.post(url, 20, 5)], WITHIN_S)
    kills = () if options.without_kills else (False, True)
    if options.only_kills:
        return ["", "", "", *(lost(peer, target, options.messages, broker=each) for each in kills)]
    evenly = peer.post(url, round(10 * options.seconds), 10)
    target.wait_for([*evenly], WITHIN_S)
    waits = percentiles([target.seen[each][0] - at for each, at in evenly.items()])
    posted = peer.post(url, options.messages, 0)
    target.wait_for([*posted], 3 * WITHIN_S + options.messages / SLOWEST)
    took = max(target.seen[each][0] for each in posted) - min(posted.values())
    missing = [lost(peer, target, options.messages, broker=each) for each in kills]
    return [f"{options.messages / took:.0f}", *waits, *(missing or ["", ""])]


def main() -> None:
    """Measure, print, save."""
    chosen: dict[str, Any] = {
        "redis": "redis-server",
        "messages": 1_000,
        "seconds": 10.0,
        "only": "",
        "without_kills": False,
        "only_kills": False,
    }
    page = Page("The hub beside Celery and Dramatiq", __doc__, **chosen)
    options, rows = page.options, []
    before = f"The machine's load before was {page.load:.1f} (2 cores; others worked beside)."
    page.tell(f"{options.messages} messages. {before}")
    with endpoint(DELAY_MS) as target:
        peers: list[tuple[str, Callable[[], Any]]] = [
            ("Celery 5, as it comes", lambda: Peer("celery", options.redis, careful=False)),
            ("Celery 5, late acknowledgements, AOF", lambda: Peer("celery", options.redis, careful=True)),
            ("Dramatiq, as it comes", lambda: Peer("dramatiq", options.redis, careful=False)),
            ("Dramatiq, AOF", lambda: Peer("dramatiq", options.redis, careful=True)),
            ("a bare asyncio loop, SQLite", lambda: BareLoop(f"{target.url}/stamp")),
            ("the hub, local stack", lambda: Hub(f"{target.url}/stamp")),
        ]
        for name, make in (each for each in peers if re.search(options.only, each[0])):
            with closing(make()) as peer:
                rows.append([name, *measured(peer, target, options)])
            print(rows[-1], flush=True)
    page.table(
        ["", "messages/s", "p50 at 10/s, ms", "p95", "missing after 1 and 2 minutes: workers killed", "both killed"],
        rows,
    )
    page.save()


if __name__ == "__main__":
    main()
