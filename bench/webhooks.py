"""A dead webhook endpoint among healthy ones: what it is spared, what its neighbours notice, and how it catches up.

    make up && .venv/bin/python -m bench.webhooks [--messages 2000] [--rate 15] [--save docs/figures/webhooks.md]

Runs against the running local stack. Messages are posted at the same pace to two applications: one with three healthy
endpoints, and one with three healthy endpoints and a fourth, which dies after the first fifty messages and answers 503
to everything. The two take turns in blocks, so that both see the machine in the same state. Half of the messages have
one of twenty ordering keys. A neighbour's time is measured from the request that posts a message until the endpoint has
it. When all messages are posted and the neighbours have theirs, the fourth endpoint recovers, and the run waits until
it has everything that it is owed. What it was sent in each minute is read from its list of attempts.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bench.harness import Page, cells, percentile
from bench.local_hub import Tenant, tenant

HEALTHY = 3
KEYS = 20
BASELINE = 4
"""One message is posted to the application without the dead endpoint for every so many to the other one."""

BLOCKS = 5

WARM_UP = 50
"""Messages to each application before anything is measured and before the fourth endpoint dies."""

PATIENCE_S = 900
"""How long to wait for one part of the run, seconds."""


@dataclass
class Receiver:
    """Receives deliveries.

    Attributes:
        down: Whether the fourth endpoint is dead.
        refused: Requests made to it while it was.
        got: When each endpoint first had each message, by path and id; monotonic seconds.
        order: By ordering key: the sequence numbers that the fourth endpoint accepted, in order of arrival.
    """

    down: bool = False
    refused: int = 0
    got: dict[tuple[str, str], float] = field(default_factory=dict)
    order: dict[str, list[int]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, path: str, headers: Any) -> int:
        """Handle a delivery; returns the status of the answer."""
        message = headers["webhook-id"]
        with self.lock:
            if path == "/fourth" and self.down:
                self.refused += 1
                return 503
            if (path, message) not in self.got:
                self.got[path, message] = time.monotonic()
                if path == "/fourth" and "webhook-sequence" in headers:
                    self.order.setdefault(headers["webhook-ordering-key"], []).append(int(headers["webhook-sequence"]))
        return 200

    def count(self, path: str) -> int:
        """Number of messages that an endpoint has."""
        with self.lock:
            return sum(each == path for each, _ in self.got)


@dataclass(frozen=True)
class Posted:
    """An application whose messages are posted."""

    app: str
    begun: dict[str, float]
    """When the request that posted a message began, by its id; monotonic seconds."""


def posted(owner: Tenant, app: str, count: int, rate: float) -> Posted:
    """Post messages at a pace, every second one with an ordering key."""
    begun: dict[str, float] = {}
    start = time.monotonic()

    def post(number: int) -> None:
        time.sleep(max(0.0, start + number / rate - time.monotonic()))
        body = {"eventType": "order.paid", "payload": {"number": number, "note": "x" * 300}}
        if number % 2:
            body["orderingKey"] = f"customer-{number // 2 % KEYS}"
        at = time.monotonic()
        begun[owner.webhooks("POST", f"/app/{app}/msg", body)["id"]] = at

    # Posted one after the other as far as the pace allows, so that the order of a key is that of its numbers.
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(post, range(count)))
    return Posted(app, begun)


def times(receiver: Receiver, made: Posted) -> list[float]:
    """Seconds until each healthy endpoint had each message; waits for all of them."""
    owed = [(f"/{made.app}/{number}", each) for number in range(HEALTHY) for each in made.begun]
    awaited(lambda: all(each in receiver.got for each in owed), "the healthy endpoints")
    return [receiver.got[path, each] - made.begun[each] for path, each in owed]


def awaited(done: Any, what: str) -> float:
    """Wait for a condition; returns the seconds that it took."""
    start = time.monotonic()
    while time.monotonic() - start < PATIENCE_S:
        if done():
            return time.monotonic() - start
        time.sleep(0.5)
    raise TimeoutError(what)


def per_minute(owner: Tenant, app: str, endpoint: str) -> list[tuple[int, int, int]]:
    """The attempts at an endpoint according to its list of attempts: minute, failures, successes."""
    counts: Counter[tuple[int, bool]] = Counter()
    query: dict[str, Any] = {"limit": 250, "with_content": "false"}
    first = 0.0
    while True:
        page = owner.webhooks("GET", f"/app/{app}/attempt/endpoint/{endpoint}", **query)
        for each in page["data"]:
            first = datetime.fromisoformat(each["timestamp"]).timestamp()
            counts[int(first // 60), each["status"] == 0] += 1
        if page["done"]:
            break
        query["iterator"] = page["iterator"]
    minutes = sorted({minute for minute, _ in counts})
    return [(minute - minutes[0], counts[minute, False], counts[minute, True]) for minute in minutes]


def application(owner: Tenant, port: int, *, fourth: bool) -> tuple[str, str]:
    """Create an application with its endpoints; returns its id and that of the fourth endpoint."""
    app = str(owner.webhooks("POST", "/app", {"name": "bench"})["id"])
    for number in range(HEALTHY):
        owner.webhooks("POST", f"/app/{app}/endpoint", {"url": f"http://127.0.0.1:{port}/{app}/{number}"})
    if not fourth:
        return app, ""
    return app, str(owner.webhooks("POST", f"/app/{app}/endpoint", {"url": f"http://127.0.0.1:{port}/fourth"})["id"])


def serve(receiver: Receiver) -> ThreadingHTTPServer:
    """The endpoints."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(receiver.take(self.path, self.headers))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main() -> None:
    """Measure, print, save."""
    page = Page("A dead webhook endpoint among healthy ones", __doc__, messages=2_000, rate=15.0)
    messages, rate = page.options.messages, page.options.rate
    page.tell(f"{messages} messages at {rate:g} a second to {HEALTHY} healthy endpoints and the dead one.")
    owner, receiver = tenant("webhooks"), Receiver()
    server = serve(receiver)
    plain, _ = application(owner, server.server_port, fourth=False)
    app, fourth = application(owner, server.server_port, fourth=True)
    for each in (plain, app):
        times(receiver, posted(owner, each, WARM_UP, rate))
    awaited(lambda: receiver.count("/fourth") == WARM_UP, "the fourth endpoint, while it is well")
    receiver.down = True
    without: list[float] = []
    beside: list[float] = []
    for _ in range(BLOCKS):
        for where, count, taken in (
            (plain, messages // BASELINE // BLOCKS, without),
            (app, messages // BLOCKS, beside),
        ):
            taken.extend(times(receiver, posted(owner, where, count, rate)))
        alone, p95 = (percentile(each, 0.95) for each in (without, beside))
        print(f"so far: p95 {alone:.3f} s without it, {p95:.3f} s beside it", flush=True)
    refused = receiver.refused
    receiver.down = False
    took = awaited(lambda: receiver.count("/fourth") == WARM_UP + messages, "the fourth endpoint")
    in_order = sum(sequences == list(range(1, len(sequences) + 1)) for sequences in receiver.order.values())
    ramp = per_minute(owner, app, fourth)
    server.shutdown()
    medians = ", ".join(cells(".2f", *map(statistics.median, (without, beside))))
    figures = [
        ["requests made to the dead endpoint", str(refused), "fewer than 50"],
        ["neighbours' p95 without it, s", f"{alone:.2f}", ""],
        ["neighbours' p95 beside it, s", f"{p95:.2f}", f"{1.5 * alone:.2f} (1.5 x)"],
        ["neighbours' median without it and beside it, s", medians, ""],
        ["messages it has in the end", f"{receiver.count('/fourth') - WARM_UP} of {messages}", "all"],
        ["minutes from being mended until it has all", f"{took / 60:.1f}", ""],
        ["ordering keys whose messages came in order", f"{in_order} of {len(receiver.order)}", "all"],
    ]
    page.table(["", "", "aim"], figures)
    page.tell("What its list of attempts shows:")
    page.table(["minute", "failed attempts", "successful attempts"], [cells("", *minute) for minute in ramp])
    page.save()


if __name__ == "__main__":
    main()
