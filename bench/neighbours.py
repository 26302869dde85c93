"""What one project's messages to endpoints that hang cost another project's healthy delivery, on the local stack.

    make up && .venv/bin/python -m bench.neighbours [--seconds 60] [--save docs/figures/neighbours.md]

A victim posts single messages at an even pace to a prompt endpoint. After five seconds another project posts its
messages, a hundred at a time on two connections: to a prompt endpoint, to one that never answers, and to fifty of
those. Latency is from before a message is posted until it arrives. The first runs tell what the machine's load alone
costs, as everything runs on the same cores: the victim alone, and beside as many messages that are simply delivered.

The neighbour's posts take a tenth of a run, in which the machine's cores are shared with the neighbour's own requests.
So each run is measured in two parts: "while it posts" has a few dozen messages and speaks of the machine, "afterwards"
has the rest, while the neighbour's messages hang, and speaks of the hub. One percentile over both would lie at their
border, and tell by chance the one or the other.
"""

from __future__ import annotations

import argparse
import os
import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import requests

from bench.local_hub import Tenant, forget_work, tenant
from bench.sink import sink
from bench.tables import options_of, save, table

BEGINS_S = 5
PER_POST = 100
LATE_S = 120
"""How long a run waits for messages that have not arrived yet."""


@dataclass
class Measured:
    """One run, in seconds.

    Attributes:
        beside: Latencies of the victim's messages that were posted while the neighbour posted.
        afterwards: Of those posted later.
        lost: How many never came.
        posting: How long the neighbour's posts took.
    """

    beside: list[float]
    afterwards: list[float]
    lost: int
    posting: float


def percentile(latencies: list[float], share: float) -> float:
    """The latency that this share stays below, in seconds; of none 0."""
    ordered = sorted(latencies)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def victim(owner: Tenant, seconds: float, rate: float, posted: dict[str, float]) -> None:
    """Post a message now and then, late ones at once."""
    begun = time.time()
    for number in range(round(seconds * rate)):
        time.sleep(max(0.0, begun + number / rate - time.time()))
        body = f"{begun:.0f}-{number}"
        posted[body] = time.time()
        owner.post("victim", [body])


def flood(owner: Tenant, queues: list[str], messages: int) -> float:
    """Post to one queue after the other; seconds that took."""
    begun = time.time()
    posts = [queues[number % len(queues)] for number in range(messages // PER_POST)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: owner.post(name, ["x" * 1000] * PER_POST), posts))
    return time.time() - begun


def run(
    ours: Tenant,
    theirs: Tenant,
    stamps: Callable[[], dict[str, list[float]]],
    queues: list[str],
    options: argparse.Namespace,
) -> Measured:
    """One run beside a neighbour who posts to those queues; none for a victim alone."""
    stamps()
    posted: dict[str, float] = {}
    thread = threading.Thread(target=victim, args=(ours, options.seconds, options.rate, posted))
    begun = time.time()
    thread.start()
    time.sleep(BEGINS_S)
    posting = flood(theirs, queues, options.messages) if queues else 0.0
    thread.join()
    arrived: dict[str, float] = {}
    until = time.time() + LATE_S
    while not posted.keys() <= arrived.keys() and time.time() < until:
        for body, times in stamps().items():
            arrived.setdefault(body, times[0])
        time.sleep(0.5)
    quiet = begun + BEGINS_S + posting
    beside = [arrived[body] - at for body, at in posted.items() if begun + BEGINS_S <= at < quiet and body in arrived]
    afterwards = [arrived[body] - at for body, at in posted.items() if at >= quiet and body in arrived]
    return Measured(beside, afterwards, len(posted.keys() - arrived.keys()), posting)


def main() -> None:
    """Measure, print, save."""
    parser = options_of(__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=float, default=5)
    parser.add_argument("--messages", type=int, default=5_000)
    options = parser.parse_args()
    rows: list[list[str]] = []
    with sink(5) as port:
        url = f"http://127.0.0.1:{port}"
        ours = tenant("victim")
        ours.push_queue("victim", f"{url}/stamp")

        def stamps() -> dict[str, list[float]]:
            told: dict[str, list[float]] = requests.get(f"{url}/stamps", timeout=30).json()
            return told

        victim(ours, 3, options.rate, {})
        base = 0.0
        for name, paths in (
            ("nobody", []),
            ("a prompt endpoint", ["/in"]),
            ("one that hangs", ["/never/0"]),
            ("fifty that hang", [f"/never/{number}" for number in range(50)]),
        ):
            theirs = tenant("neighbour")
            queues = [f"q{number}" for number in range(len(paths))]
            for queue, path in zip(queues, paths, strict=True):
                theirs.push_queue(queue, f"{url}{path}")
            load = os.getloadavg()[0]
            made = run(ours, theirs, stamps, queues, options)
            p95 = percentile(made.afterwards, 0.95)
            base = base or p95
            rows.append(
                [
                    name,
                    *(f"{1000 * each:.0f}" for each in (statistics.median(made.afterwards), p95)),
                    f"{p95 / base:.2f}",
                    f"{1000 * percentile(made.beside, 0.5):.0f}" if made.beside else "-",
                    f"{1000 * max(made.beside + made.afterwards):.0f}",
                    str(made.lost),
                    f"{made.posting:.0f}",
                    f"{load:.1f}",
                ]
            )
            print(rows[-1], flush=True)
            forget_work()
            time.sleep(15)
    head = [
        "neighbour posts to",
        "p50 afterwards, ms",
        "p95 afterwards, ms",
        "p95 to alone",
        "p50 while it posts, ms",
        "longest, ms",
        "lost",
        "its posts took, s",
        "load before",
    ]
    text = table(head, rows)
    print(text)
    save(
        options.save,
        "A victim beside endpoints that hang",
        __doc__ or "",
        f"{options.rate:g} messages a second for {options.seconds:g} s; the neighbour posts {options.messages}.",
        text,
    )


if __name__ == "__main__":
    main()
