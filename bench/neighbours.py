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
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bench.harness import Page, cells, percentile, percentiles
from bench.local_hub import Endpoint, Tenant, endpoint, forget_work, paced, tenant

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


def victim(owner: Tenant, seconds: float, rate: float, posted: dict[str, float]) -> None:
    """Post a message now and then, late ones at once."""
    begun = time.time()
    for number in paced(round(seconds * rate), rate):
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


def run(ours: Tenant, theirs: Tenant, target: Endpoint, queues: list[str], options: argparse.Namespace) -> Measured:
    """One run beside a neighbour who posts to those queues; none for a victim alone."""
    target.forget()
    posted: dict[str, float] = {}
    thread = threading.Thread(target=victim, args=(ours, options.seconds, options.rate, posted))
    begun = time.time()
    thread.start()
    time.sleep(BEGINS_S)
    posting = flood(theirs, queues, options.messages) if queues else 0.0
    thread.join()
    target.wait_for([*posted], LATE_S)
    quiet = begun + BEGINS_S + posting
    came = {body: (at, target.seen[body][0] - at) for body, at in posted.items() if body in target.seen}
    beside = [took for at, took in came.values() if begun + BEGINS_S <= at < quiet]
    return Measured(beside, [took for at, took in came.values() if at >= quiet], len(posted) - len(came), posting)


def main() -> None:
    """Measure, print, save."""
    page = Page("A victim beside endpoints that hang", __doc__, seconds=60.0, rate=5.0, messages=5_000)
    options = page.options
    much = f"{options.rate:g} messages a second for {options.seconds:g} s"
    page.tell(f"{much}; the neighbour posts {options.messages}.")
    rows: list[list[str]] = []
    with endpoint(5) as target:
        ours = tenant("victim")
        ours.push_queue("victim", f"{target.url}/stamp")
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
                theirs.push_queue(queue, f"{target.url}{path}")
            load = os.getloadavg()[0]
            result = run(ours, theirs, target, queues, options)
            p95 = percentile(result.afterwards, 0.95)
            base = base or p95
            beside = percentiles(result.beside, 0.5) if result.beside else ["-"]
            longest = percentiles(result.beside + result.afterwards, 1)
            figures = [*percentiles(result.afterwards), f"{p95 / base:.2f}", *beside, *longest]
            rows.append([name, *figures, str(result.lost), *cells(".0f", result.posting), *cells(".1f", load)])
            print(rows[-1], flush=True)
            forget_work()
            time.sleep(15)
    afterwards = ["p50 afterwards, ms", "p95 afterwards, ms", "p95 to alone"]
    rest = ["p50 while it posts, ms", "longest, ms", "lost", "its posts took, s", "load before"]
    page.table(["neighbour posts to", *afterwards, *rest], rows)
    page.save()


if __name__ == "__main__":
    main()
