"""Single posts on the local stack: how many a second, and how soon they are delivered.

    make up && .venv/bin/python -m bench.singles [--save docs/figures/singles.md]

*Posted*: eight clients, each with a connection of its own, post one message after the other, of 1 KB, to a push queue
that was last changed more than a minute before (posts go by copies of such a queue); answered posts a second, the
median of five rounds. *Delivered*: messages posted at an even pace to a prompt endpoint; from the answer to the post,
and from before the post, until the message arrives. The emulator, the functions, the endpoint and the clients share the
machine's cores.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import requests

from bench.local_hub import Tenant, tenant
from bench.sink import sink
from bench.tables import options_of, save, table
from pushhub.engine.queue_copies import UNCOPIED_MS

CLIENTS = 8
ROUNDS = 5
BODY = "x" * 1000


def posted(owner: Tenant, seconds: float) -> tuple[float, list[float]]:
    """Answered posts a second of several clients, and how long each took (ms)."""
    clients = [Tenant(owner.base_url, owner.project_id, owner.token) for _ in range(CLIENTS)]
    until = time.perf_counter() + seconds

    def loop(client: Tenant) -> list[float]:
        took: list[float] = []
        while (begun := time.perf_counter()) < until:
            client.post("posted", [BODY])
            took.append((time.perf_counter() - begun) * 1000)
        return took

    begun = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        times = [each for took in pool.map(loop, clients) for each in took]
    return len(times) / (time.perf_counter() - begun), times


def delivered(owner: Tenant, url: str, rate: float, seconds: float) -> tuple[list[float], list[float]]:
    """Milliseconds from the answer, and from before the post, to the arrival of each message."""
    requests.get(f"{url}/stamps", timeout=30)
    before: dict[str, float] = {}
    answered: dict[str, float] = {}
    begun = time.time()
    for number in range(round(rate * seconds)):
        time.sleep(max(0.0, begun + number / rate - time.time()))
        body = f"{begun:.0f}-{number}-" + BODY
        before[body] = time.time()
        owner.post("delivered", [body])
        answered[body] = time.time()
    arrived: dict[str, float] = {}
    until = time.time() + 60
    while len(arrived) < len(before) and time.time() < until:
        for body, times in requests.get(f"{url}/stamps", timeout=30).json().items():
            arrived.setdefault(body, times[0])
        time.sleep(0.2)
    assert len(arrived) == len(before), "some messages did not arrive"
    return [1000 * (arrived[each] - answered[each]) for each in before], [
        1000 * (arrived[each] - before[each]) for each in before
    ]


def _percentiles(times: list[float]) -> list[str]:
    ordered = sorted(times)
    return [f"{ordered[min(len(ordered) - 1, int(share * len(ordered)))]:.0f}" for share in (0.5, 0.95)]


def main() -> None:
    """Measure, print, save."""
    parser = options_of(__doc__)
    parser.add_argument("--seconds", type=float, default=15)
    options = parser.parse_args()
    with sink(5) as port:
        url = f"http://127.0.0.1:{port}"
        owner = tenant("singles")
        owner.push_queue("posted", f"{url}/in")
        made_at = time.time()
        owner.push_queue("delivered", f"{url}/stamp")
        delivered(owner, url, 5, 3)
        load = os.getloadavg()[0]
        rows: list[list[str]] = []
        for rate in (2, 10):
            after, whole = delivered(owner, url, rate, options.seconds)
            rows.append([f"{rate}", *_percentiles(after), *_percentiles(whole)])
        time.sleep(max(0.0, made_at + UNCOPIED_MS / 1000 + 1 - time.time()))
        posted(owner, 2)
        rounds = [posted(owner, options.seconds) for _ in range(ROUNDS)]
    paces, times = sorted(pace for pace, _ in rounds), [each for _, took in rounds for each in took]
    head = ["posts a second", "answered to delivered, p50 ms", "p95", "posted to delivered, p50 ms", "p95"]
    first = table(head, rows)
    second = table(
        ["clients", "posts answered a second", "slowest and fastest round", "a post, p50 ms", "p95"],
        [[str(CLIENTS), f"{median(paces):.0f}", f"{paces[0]:.0f}, {paces[-1]:.0f}", *_percentiles(times)]],
    )
    print(first, second, f"load before: {load:.1f}", sep="\n\n")
    save(
        options.save,
        "Single posts on the local stack",
        __doc__ or "",
        f"The machine's load before was {load:.1f}.",
        first,
        second,
    )


if __name__ == "__main__":
    main()
