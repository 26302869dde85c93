"""Whether a healthy endpoint gets a message twice, on the local stack.

    make up && .venv/bin/python -m bench.once [--runs 20] [--messages 3000] [--ends 450] [--save docs/figures/once.md]

In each run, messages are posted a hundred at a time, on four connections, to a push queue whose endpoint answers 200
within milliseconds. A run ends when all have arrived and nothing more has for some seconds; then it is counted how
often each did. The emulator, the functions, the endpoint and the clients share the machine's cores, and other work may.

With ``--ends``, messages wait for so many seconds for an endpoint with a `throttleRate` of 5 that answers after two
seconds, and for one that answers after six, which is slow. The runs of push end after seven minutes, in the slow lane
after four, with requests in progress, and others go on (docs/flow-control.md).
"""

from __future__ import annotations

import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from bench.harness import Page, table
from bench.local_hub import Endpoint, Tenant, endpoint, tenant

PER_POST = 100
QUIET_S = 5
LATE_S = 300
"""How long a run waits for messages that have not arrived yet."""


def run(owner: Tenant, target: Endpoint, number: int, messages: int) -> Counter[str]:
    """Post messages; how often each arrived."""
    bodies = [f"{number}-{each}" for each in range(messages)]
    posts = [bodies[start : start + PER_POST] for start in range(0, messages, PER_POST)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda each: owner.post("once", each), posts))
    target.seen.clear()
    posted_at = changed_at = time.time()
    while time.time() - changed_at < (QUIET_S if len(target.seen) == messages else LATE_S):
        if time.time() - posted_at > 2 * LATE_S:
            break
        if target.look():
            changed_at = time.time()
        time.sleep(0.5)
    return Counter({body: len(times) for body, times in target.seen.items()})


def ends(rated: Tenant, slow: Tenant, seconds: int) -> str:
    """Have runs end while messages wait for two endpoints: how often each arrived."""
    load = os.getloadavg()[0]
    with endpoint(2_000) as one, endpoint(6_000) as other:
        until = time.time() + seconds
        app = rated.webhooks("POST", "/app", {"name": "rated"})["id"]
        rated.webhooks("POST", f"/app/{app}/endpoint", {"url": f"{one.url}/stamp", "throttleRate": 5})
        slow.push_queue("slow", f"{other.url}/stamp", timeout=10)
        for first in range(0, 9 * seconds, PER_POST):
            slow.post("slow", [str(each) for each in range(first, first + PER_POST)])
        for number in range(5 * seconds):
            rated.webhooks("POST", f"/app/{app}/msg", {"eventType": "a.b", "payload": {"number": number}})
        while time.time() < until:
            time.sleep(2)
            one.look()
            other.look()
    rows = [
        [name, str(len(each.seen)), str(sum(len(times) > 1 for times in each.seen.values())), f"{load:.1f}"]
        for name, each in (("5 a second, answers after 2 s", one), ("answers after 6 s", other))
    ]
    return table(["endpoint", "arrived", "more than once", "load before"], rows)


def main() -> None:
    """Measure, print, save."""
    page = Page("Messages to a healthy endpoint arrive once", __doc__, runs=20, messages=3_000, ends=0)
    options, rows = page.options, []
    with endpoint(5) as target:
        owner = tenant("once")
        owner.push_queue("once", f"{target.url}/stamp")
        for number in range(options.runs):
            began = time.time()
            times = run(owner, target, number, options.messages)
            came, twice = f"{len(times)} of {options.messages}", str(sum(each > 1 for each in times.values()))
            took, load = f"{time.time() - began:.0f}", f"{os.getloadavg()[0]:.1f}"
            rows.append([str(number + 1), came, twice, took, load])
            print(rows[-1], flush=True)
    page.table(["run", "arrived", "more than once", "took, s", "load after"], rows)
    if options.ends:
        page.tell(ends(tenant("rated"), tenant("slow"), options.ends))
    page.save()


if __name__ == "__main__":
    main()
