"""Whether a healthy endpoint gets a message twice, on the local stack.

    make up && .venv/bin/python -m bench.once [--runs 20] [--messages 3000] [--ends 450] [--save docs/figures/once.md]

In each run, messages are posted a hundred at a time, on four connections, to a push queue whose endpoint answers 200
within milliseconds. A run ends when all have arrived and nothing more has for some seconds; then it is counted how
often each did. The emulator, the functions, the endpoint and the clients share the machine's cores, and other work may.

With ``--ends``, messages wait for so many seconds for an endpoint with a `throttleRate` of 5 that answers after two
seconds, and for one that answers after six, which is slow. The runs of push end after seven minutes, in the slow lane
after four, with requests in progress, and others go on (docs/decisions/0111).
"""

from __future__ import annotations

import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import requests

from bench.flow import webhooks
from bench.local_hub import Tenant, tenant
from bench.sink import sink
from bench.tables import options_of, save, table

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


def ends(rated: Tenant, slow: Tenant, seconds: int) -> str:
    """Have runs end while messages wait for two endpoints: how often each arrived."""
    load, times = os.getloadavg()[0], (Counter[str](), Counter[str]())
    with sink(2_000) as one, sink(6_000) as other:
        urls = f"http://127.0.0.1:{one}", f"http://127.0.0.1:{other}"
        until = time.time() + seconds
        app = webhooks(rated, "POST", "/app", {"name": "rated"})["id"]
        webhooks(rated, "POST", f"/app/{app}/endpoint", {"url": f"{urls[0]}/stamp", "throttleRate": 5})
        slow.push_queue("slow", f"{urls[1]}/stamp", timeout=10)
        for first in range(0, 9 * seconds, PER_POST):
            slow.post("slow", [str(each) for each in range(first, first + PER_POST)])
        for number in range(5 * seconds):
            webhooks(rated, "POST", f"/app/{app}/msg", {"eventType": "a.b", "payload": {"number": number}})
        while time.time() < until:
            time.sleep(2)
            for url, known in zip(urls, times, strict=True):
                known.update({body: len(at) for body, at in requests.get(f"{url}/stamps", timeout=60).json().items()})
    names = ["5 a second, answers after 2 s", "answers after 6 s"]
    rows = [
        [name, str(len(each)), str(sum(n > 1 for n in each.values()))] for name, each in zip(names, times, strict=True)
    ]
    return table(["endpoint", "arrived", "more than once", "load before"], [[*each, f"{load:.1f}"] for each in rows])


def main() -> None:
    """Measure, print, save."""
    parser = options_of(__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--messages", type=int, default=3_000)
    parser.add_argument("--ends", type=int, default=0)
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
    if options.ends:
        result += "\n\n" + ends(tenant("rated"), tenant("slow"), options.ends)
    print(result)
    save(options.save, "Messages to a healthy endpoint arrive once", __doc__ or "", result)


if __name__ == "__main__":
    main()
