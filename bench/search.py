"""Finding an order's number in the console: how long a person waits.

    make up && .venv-browser/bin/python -m bench.search [--save docs/figures/search.md]

A project has 200 queues that name the field ``order.number``, and 20,000 messages; one of them has the number 4711 and
was given up at one of two subscribers. *Asked*: ``GET .../search?value=4711`` by a client, the time until the whole
answer. *Typed*: a person on another page of the console types 4711 and Enter; the time from Enter until the message is
shown with what became of it (chromium, 1280 x 900). The stack, the browser and the client share the machine's cores.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor

from playwright.sync_api import sync_playwright

from bench.harness import Page, percentiles
from bench.local_hub import Tenant, endpoint, tenant

QUEUES = 200
MESSAGES = 20_000
A_POST = 100
LOOKS = 20
FIELD = "order.number"


def fill(owner: Tenant, url: str) -> str:
    """Make the queues and messages; the id of the one that was given up."""
    clients = [owner.another() for _ in range(4)]
    subscribers = [{"name": "warehouse", "url": f"{url}/in"}, {"name": "billing", "url": "http://127.0.0.1:9/"}]
    push = {"subscribers": subscribers, "retries": 0}
    owner.call("PUT", "/orders", {"queue": {"type": "multicast", "push": push, "search_fields": [FIELD]}})
    lost = owner.call("POST", "/orders/messages", {"messages": [{"body": _order(4711)}]})["ids"][0]

    def make(place: int) -> None:
        client = clients[place]
        for number in range(place, QUEUES - 1, len(clients)):
            name = f"orders-{number:03d}"
            client.call("PUT", f"/{name}", {"queue": {"type": "pull", "search_fields": [FIELD]}})
            first = 10_000 + number * (MESSAGES // QUEUES)
            client.post(name, [_order(first + each) for each in range(MESSAGES // QUEUES)][:A_POST])

    with ThreadPoolExecutor(len(clients)) as pool:
        list(pool.map(make, range(len(clients))))
    until = time.time() + 120
    while time.time() < until:
        if owner.call("GET", "/orders/deliveries?state=exhausted")["deliveries"]:
            return str(lost)
        time.sleep(1)
    raise RuntimeError("the message was not given up")


def _order(number: int) -> str:
    return json.dumps({"order": {"number": number, "lines": ["x" * 200]}})


def asked(owner: Tenant) -> list[float]:
    """Seconds that each of some searches took."""
    url = f"{owner.base_url}/3/projects/{owner.project_id}/search"
    times: list[float] = []
    for _ in range(LOOKS):
        begun = time.perf_counter()
        answer = owner.session.get(url, params={"value": "4711"}, timeout=60)
        times.append(time.perf_counter() - begun)
        assert len(answer.json()["found"]) == 1, answer.text
    return times


def typed(owner: Tenant, lost: str) -> list[float]:
    """Seconds from Enter until the message is shown, each time."""
    times: list[float] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        console = f"{owner.base_url}/console"
        page.goto(f"{console}#project={owner.project_id}&token={owner.token}")
        for _ in range(LOOKS):
            page.goto(f"{console}#/reports")
            box = page.get_by_role("searchbox")
            box.fill("4711")
            begun = time.perf_counter()
            box.press("Enter")
            found = page.get_by_role("region", name="Found")
            found.get_by_role("link", name=lost).wait_for()
            found.get_by_text("exhausted").wait_for()
            times.append(time.perf_counter() - begun)
        browser.close()
    return times


def main() -> None:
    """Measure, print, save."""
    page = Page("Finding a message by its order's number", __doc__)
    with endpoint(5) as target:
        owner = tenant("search")
        lost = fill(owner, target.url)
        page.tell(f"The machine's load before was {os.getloadavg()[0]:.1f}.")
        found = {"asked": asked(owner), "typed": typed(owner, lost)}
    page.table(
        ["", "p50 ms", "p95", "longest"], [[name, *percentiles(each, 0.5, 0.95, 1)] for name, each in found.items()]
    )
    page.save()


if __name__ == "__main__":
    main()
