"""Whether a healthy endpoint gets a message twice, on the local stack.

    make up && .venv/bin/python -m bench.once [--runs 20] [--messages 3000] [--save docs/figures/once.md]

In each run, messages are posted a hundred at a time, on four connections, to a push queue whose endpoint answers 200
within milliseconds. A run ends when all have arrived and nothing more has for some seconds; then it is counted how
often each did. The emulator, the functions, the endpoint and the clients share the machine's cores, and other work may.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import requests

from bench.local_hub import Tenant, tenant
from bench.sink import sink
from bench.tables import save, table

PER_POST = 100
QUIET_S = 5
LATE_S = 300
"""How long a run waits for messages that have not arrived yet."""


def run(owner: Tenant, url: str, number: int, messages: int) -> Counter[str]:
    """Post messages; how often each arrived."""
    bodies = [f"{number}-{each}" for each in range(messages)]
    posts = [bodies[start : start + PER_POST] for start in range(0, messages, PER_POST)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda each: owner.post("once", each), posts))
    times: Counter[str] = Counter()
    posted_at = changed_at = time.time()
    while time.time() - changed_at < (QUIET_S if len(times) == messages else LATE_S):
        if time.time() - posted_at > 2 * LATE_S:
            break
        arrived = requests.get(f"{url}/stamps", timeout=60).json()
        for body, stamps in arrived.items():
            times[body] += len(stamps)
        if arrived:
            changed_at = time.time()
        time.sleep(0.5)
    return times


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--messages", type=int, default=3_000)
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    rows: list[list[str]] = []
    with sink(5) as port:
        url = f"http://127.0.0.1:{port}"
        owner = tenant("once")
        owner.push_queue("once", f"{url}/stamp")
        for number in range(options.runs):
            began = time.time()
            times = run(owner, url, number, options.messages)
            twice = sum(each > 1 for each in times.values())
            rows.append(
                [
                    str(number + 1),
                    f"{len(times)} of {options.messages}",
                    str(twice),
                    f"{time.time() - began:.0f}",
                    f"{os.getloadavg()[0]:.1f}",
                ]
            )
            print(rows[-1], flush=True)
    result = table(["run", "arrived", "more than once", "took, s", "load after"], rows)
    print(result)
    save(options.save, "Messages to a healthy endpoint arrive once", __doc__ or "", result)


if __name__ == "__main__":
    main()
