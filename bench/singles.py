"""Single posts on the local stack: how many a second, and how soon they are delivered.

    make up && .venv/bin/python -m bench.singles [--save docs/figures/singles.md]

*Posted*: eight clients, each with a connection of its own, post one message after the other, of 1 KB, to a push queue
that was last changed more than a minute before (posts go by copies of such a queue); answered posts a second, the
median of five rounds. *Delivered*: messages posted at an even pace to a prompt endpoint; from the answer to the post,
and from before the post, until the message arrives. The emulator, the functions, the endpoint and the clients share the
machine's cores.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from bench.harness import Page, percentiles
from bench.local_hub import Endpoint, Tenant, endpoint, paced, tenant
from pushhub.engine.projects.queue_copies import UNCOPIED_MS

CLIENTS = 8
ROUNDS = 5
BODY = "x" * 1000


def posted(owner: Tenant, seconds: float) -> tuple[float, list[float]]:
    """Answered posts a second of several clients, and how long each took, seconds."""
    clients = [owner.another() for _ in range(CLIENTS)]
    until = time.perf_counter() + seconds

    def loop(client: Tenant) -> list[float]:
        took: list[float] = []
        while (begun := time.perf_counter()) < until:
            client.post("posted", [BODY])
            took.append(time.perf_counter() - begun)
        return took

    begun = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        times = [each for took in pool.map(loop, clients) for each in took]
    return len(times) / (time.perf_counter() - begun), times


def delivered(owner: Tenant, target: Endpoint, rate: float, seconds: float) -> tuple[list[float], list[float]]:
    """Seconds from the answer, and from before the post, to the arrival of each message."""
    target.forget()
    before: dict[str, float] = {}
    answered: dict[str, float] = {}
    for number in paced(round(rate * seconds), rate):
        body = f"{rate}-{number}-" + BODY
        before[body] = time.time()
        owner.post("delivered", [body])
        answered[body] = time.time()
    assert target.wait_for([*before], 60), "some messages did not arrive"
    came = {body: times[0] for body, times in target.seen.items()}
    return [came[body] - at for body, at in answered.items()], [came[body] - at for body, at in before.items()]


def main() -> None:
    """Measure, print, save."""
    page = Page("Single posts on the local stack", __doc__, seconds=15.0)
    seconds = page.options.seconds
    with endpoint(5) as target:
        owner = tenant("singles")
        owner.push_queue("posted", f"{target.url}/in")
        made_at = time.time()
        owner.push_queue("delivered", f"{target.url}/stamp")
        delivered(owner, target, 5, 3)
        page.tell(f"The machine's load before was {page.load:.1f}.")
        rows: list[list[str]] = []
        for rate in (2, 10):
            after, whole = delivered(owner, target, rate, seconds)
            rows.append([f"{rate}", *percentiles(after), *percentiles(whole)])
        head = ["posts a second", "answered to delivered, p50 ms", "p95", "posted to delivered, p50 ms", "p95"]
        page.table(head, rows)
        time.sleep(max(0.0, made_at + UNCOPIED_MS / 1000 + 1 - time.time()))
        posted(owner, 2)
        rounds = [posted(owner, seconds) for _ in range(ROUNDS)]
    paces, times = sorted(pace for pace, _ in rounds), [each for _, took in rounds for each in took]
    row = [f"{CLIENTS}", f"{median(paces):.0f}", f"{paces[0]:.0f}, {paces[-1]:.0f}", *percentiles(times)]
    page.table(["clients", "posts answered a second", "slowest and fastest round", "a post, p50 ms", "p95"], [row])
    page.save()


if __name__ == "__main__":
    main()
