"""Single posts on the local stack: how many a second, and how soon they are delivered.

    make up && .venv/bin/python -m bench.singles [--save docs/figures/singles.md]

Queues were last changed more than a minute before (posts go by copies of such a queue). *Posted*: eight clients, each
with a connection of its own, post one message after the other, of 1 KB; answered posts a second, the median of five
rounds. *Delivered*: messages posted at an even pace to a prompt endpoint; from the answer to the post, and from before
the post, until the message arrives. An *eager* queue's first orders are sent by ingest itself. The emulator, the
functions, the endpoint and the clients share the machine's cores.
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


def delivered(
    owner: Tenant, queue: str, target: Endpoint, rate: float, seconds: float
) -> tuple[list[float], list[float]]:
    """Seconds from the answer, and from before the post, to the arrival of each message."""
    target.forget()
    before: dict[str, float] = {}
    answered: dict[str, float] = {}
    for number in paced(round(rate * seconds), rate):
        body = f"{rate}-{number}-" + BODY
        before[body] = time.time()
        owner.post(queue, [body])
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
        for queue in ("stream", "eager"):
            owner.push_queue(queue, f"{target.url}/stamp", eager=queue == "eager")
        page.tell(f"The machine's load before was {page.load:.1f}.")
        time.sleep(UNCOPIED_MS / 1000 + 1)
        rows: list[list[str]] = []
        for rate, queue in ((2, "stream"), (10, "stream"), (10, "eager")):
            delivered(owner, queue, target, 5, 3)
            after, whole = delivered(owner, queue, target, rate, seconds)
            rows.append(
                [f"{rate}", "ingest" if queue == "eager" else "the stream", *percentiles(after), *percentiles(whole)]
            )
        waits = ["answered to delivered, p50 ms", "p95", "posted to delivered, p50 ms", "p95"]
        page.table(["posts a second", "first orders by", *waits], rows)
        posted(owner, 2)
        rounds = [posted(owner, seconds) for _ in range(ROUNDS)]
    paces, times = sorted(pace for pace, _ in rounds), [each for _, took in rounds for each in took]
    row = [f"{CLIENTS}", f"{median(paces):.0f}", f"{paces[0]:.0f}, {paces[-1]:.0f}", *percentiles(times)]
    page.table(["clients", "posts answered a second", "slowest and fastest round", "a post, p50 ms", "p95"], [row])
    page.save()


if __name__ == "__main__":
    main()
