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

import itertools
import json
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

from bench.harness import Page, cells, percentile
from bench.local_hub import Endpoint, Tenant, endpoint, paced, tenant

HEALTHY = 3
KEYS = 20
BASELINE = 4
"""One message is posted to the application without the dead endpoint for every so many to the other one."""

BLOCKS = 5

WARM_UP = 50
"""Messages to each application before anything is measured and before the fourth endpoint dies."""

PATIENCE_S = 900
"""How long to wait for one part of the run, seconds."""


_numbers = itertools.count()
"""No two messages have the same."""


def posted(owner: Tenant, app: str, count: int, rate: float) -> dict[int, float]:
    """Post messages at a pace, every second one with an ordering key; when each post began, by the message's number."""
    begun: dict[int, float] = {}

    def post(number: int) -> None:
        body = {"eventType": "order.paid", "payload": {"number": number, "note": "x" * 300}}
        if number % 2:
            body["orderingKey"] = f"customer-{key_of(number)}"
        begun[number] = time.time()
        owner.webhooks("POST", f"/app/{app}/msg", body)

    # Posted one after the other as far as the pace allows, so that the order of a key is that of its numbers.
    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(post, next(_numbers)) for _ in paced(count, rate)]:
            each.result()
    return begun


def key_of(number: int) -> int:
    """Which ordering key a message has."""
    return number // 2 % KEYS


def arrived(target: Endpoint) -> dict[int, list[float]]:
    """When each message came, by its number, in the order in which they came."""
    seen = sorted(target.seen.items(), key=lambda each: each[1][0])
    return {int(json.loads(body)["number"]): times for body, times in seen}


def times(healthy: Endpoint, begun: dict[int, float]) -> list[float]:
    """Seconds until each healthy endpoint had each message; waits for all of them."""
    came: dict[int, list[float]] = {}

    def done() -> bool:
        came.update(arrived(healthy))
        return all(len(came.get(each, ())) >= HEALTHY for each in begun)

    awaited(healthy, done, "the healthy endpoints")
    return [at - since for number, since in begun.items() for at in came[number][:HEALTHY]]


def awaited(target: Endpoint, done: Callable[[], bool], what: str) -> float:
    """Look at an endpoint until it is so; the seconds that this took."""
    start = time.time()
    if not target.wait(done, PATIENCE_S):
        raise TimeoutError(what)
    return time.time() - start


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


def application(owner: Tenant, *urls: str) -> list[str]:
    """Create an application with endpoints; returns its id and theirs."""
    app = owner.webhooks("POST", "/app", {"name": "bench"})["id"]
    return [app, *(owner.webhooks("POST", f"/app/{app}/endpoint", {"url": each})["id"] for each in urls)]


def main() -> None:
    """Measure, print, save."""
    page = Page("A dead webhook endpoint among healthy ones", __doc__, messages=2_000, rate=15.0)
    messages, rate = page.options.messages, page.options.rate
    page.tell(f"{messages} messages at {rate:g} a second to {HEALTHY} healthy endpoints and the dead one.")
    owner = tenant("webhooks")
    with endpoint(0) as healthy, endpoint(0) as fourth:
        three = [f"{healthy.url}/stamp?{number}" for number in range(HEALTHY)]
        plain = application(owner, *three)[0]
        app, *_, dead = application(owner, *three, f"{fourth.url}/stamp")
        for each in (plain, app):
            times(healthy, posted(owner, each, WARM_UP, rate))
        awaited(fourth, lambda: len(fourth.seen) == WARM_UP, "the fourth endpoint, while it is well")
        fourth.switch("down")
        without: list[float] = []
        beside: list[float] = []
        for _ in range(BLOCKS):
            for where, count, taken in (
                (plain, messages // BASELINE // BLOCKS, without),
                (app, messages // BLOCKS, beside),
            ):
                taken.extend(times(healthy, posted(owner, where, count, rate)))
            alone, p95 = (percentile(each, 0.95) for each in (without, beside))
            print(f"so far: p95 {alone:.3f} s without it, {p95:.3f} s beside it", flush=True)
        refused = fourth.switch("up")
        took = awaited(fourth, lambda: len(fourth.seen) == WARM_UP + messages, "the fourth endpoint")
        order: defaultdict[int, list[int]] = defaultdict(list)
        for number in arrived(fourth):
            if number % 2:
                order[key_of(number)].append(number)
        ramp = per_minute(owner, app, dead)
    in_order = sum(numbers == sorted(numbers) for numbers in order.values())
    medians = ", ".join(cells(".2f", *map(statistics.median, (without, beside))))
    figures = [
        ["requests made to the dead endpoint", str(refused), "fewer than 50"],
        ["neighbours' p95 without it, s", f"{alone:.2f}", ""],
        ["neighbours' p95 beside it, s", f"{p95:.2f}", f"{1.5 * alone:.2f} (1.5 x)"],
        ["neighbours' median without it and beside it, s", medians, ""],
        ["messages it has in the end", f"{len(fourth.seen) - WARM_UP} of {messages}", "all"],
        ["minutes from being mended until it has all", f"{took / 60:.1f}", ""],
        ["ordering keys whose messages came in order", f"{in_order} of {len(order)}", "all"],
    ]
    page.table(["", "", "aim"], figures)
    page.tell("What its list of attempts shows:")
    page.table(["minute", "failed attempts", "successful attempts"], [cells("", *minute) for minute in ramp])
    page.save()


if __name__ == "__main__":
    main()
