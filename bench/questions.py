"""What a person asks first, in the console: how many clicks and seconds until it is answered.

    make up && .venv-browser/bin/python -m bench.questions [--save docs/figures/questions.md]

A project in which nothing was set up for it has 200 queues, 20,000 messages and 1,000 subscribers: 100 pull queues with
199 waiting messages each, and 100 push queues with ten subscribers each, one of which is down everywhere. One order,
4711, is among them and was given up at that one. An application has an endpoint whose token server is down.

*Clicks* counts everything that a hand does after signing in: a click, a text that is typed, Enter. *Seconds* is the
time from the first of them until the answer is on the page (chromium, 1440 x 900); *requests* is how many the busiest
page in between has made. The stack, the browser and the client share the machine's cores.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from playwright.sync_api import Locator, sync_playwright
from playwright.sync_api import Page as Tab

from bench.harness import Page
from bench.local_hub import Tenant, endpoint, tenant

QUEUES = 200
WAITING = 199
SUBSCRIBERS = 10
CLIENTS = 4
DOWN = "http://127.0.0.1:9/"
OAUTH = {"grantType": "clientCredentials", "authMethod": "clientSecretPost", "clientId": "c", "clientSecret": "s"}


@dataclass
class World:
    """The project, and what is to be found in it."""

    owner: Tenant
    app: str
    endpoint: str
    lost: str


def fill(owner: Tenant, url: str) -> World:
    """Make the queues, subscribers and messages."""
    clients = [owner.another() for _ in range(CLIENTS)]

    def make(place: int) -> None:
        client = clients[place]
        for number in range(place, QUEUES // 2, CLIENTS):
            client.call("PUT", f"/stock-{number:03d}", {"queue": {"type": "pull"}})
            first = 10_000 + number * WAITING
            client.post(f"stock-{number:03d}", [_order(first + each) for each in range(WAITING)][:100])
            client.post(f"stock-{number:03d}", [_order(first + each) for each in range(WAITING)][100:])
            there = [{"name": f"shop-{each}", "url": f"{url}/in"} for each in range(SUBSCRIBERS - 1)]
            push = {"subscribers": [*there, {"name": "warehouse", "url": DOWN}], "retries": 1, "retries_delay": 86_400}
            client.call("PUT", f"/orders-{number:03d}", {"queue": {"type": "multicast", "push": push}})
            client.post(f"orders-{number:03d}", [_order(90_000 + number)])

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(make, range(CLIENTS)))
    push = {"subscribers": [{"name": "shop", "url": f"{url}/in"}, {"name": "warehouse", "url": DOWN}], "retries": 0}
    owner.call("PUT", "/orders", {"queue": {"type": "multicast", "push": push}})
    lost = str(owner.call("POST", "/orders/messages", {"messages": [{"body": _order(4711)}]})["ids"][0])
    app = owner.webhooks("POST", "/app", {"name": "Acme"})["id"]
    created = owner.webhooks("POST", f"/app/{app}/endpoint", {"url": f"{url}/in"})["id"]
    gate = f"{owner.base_url}/api/v1/app/{app}/endpoint/{created}/oauth"
    owner.session.put(gate, json={**OAUTH, "tokenUrl": DOWN}, timeout=60).raise_for_status()
    owner.webhooks("POST", f"/app/{app}/msg", {"eventType": "order.paid", "payload": {"n": 1}})
    _until(lambda: bool(owner.call("GET", "/orders/deliveries?state=exhausted")["deliveries"]))
    _until(lambda: owner.webhooks("GET", f"/app/{app}/endpoint/{created}/health")["health"]["state"] != "delivering")
    return World(owner, app, created, lost)


def _order(number: int) -> str:
    return json.dumps({"order": {"number": number, "lines": ["x" * 200]}})


def _until(done: Callable[[], bool]) -> None:
    until = time.time() + 180
    while not done():
        if time.time() > until:
            raise RuntimeError("it did not happen")
        time.sleep(1)


@dataclass
class Walk:
    """A person's way through the console; counts what their hands do, and what the page asks the hub."""

    tab: Tab
    clicks: int = 0
    most_requests: int = 0
    _requests: int = 0
    times: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tab.on("request", lambda _: self._ask())

    def _ask(self) -> None:
        self._requests += 1
        self.most_requests = max(self.most_requests, self._requests)

    def click(self, on: Locator) -> None:
        """Click on something."""
        self.clicks, self._requests = self.clicks + 1, 0
        on.click()

    def find(self, text: str) -> None:
        """Type a text into Find, and Enter."""
        self.clicks, self._requests = self.clicks + 2, 0
        box = self.tab.get_by_role("searchbox", name="Find")
        box.fill(text)
        box.press("Enter")

    @contextmanager
    def timed(self, answer: str) -> Iterator[None]:
        """Note how long it takes until an answer is there."""
        begun = time.perf_counter()
        yield
        self.times[answer] = time.perf_counter() - begun


def where(walk: Walk, world: World) -> None:
    """Asks where order 4711 is."""
    tab = walk.tab
    with walk.timed("Where is order 4711? Found, with what became of it"):
        walk.find("4711")
        found = tab.get_by_role("region", name="Found")
        found.get_by_role("link", name=world.lost).wait_for()
        found.get_by_text("exhausted").wait_for()
    with walk.timed("Sent again"):
        walk.click(found.get_by_role("button", name="Send again"))
        walk.click(tab.get_by_role("dialog").get_by_role("button", name="Send again"))
        tab.get_by_text("Sent again: 1 delivery.").wait_for()


def today(walk: Walk, world: World) -> None:
    """Asks what happened today."""
    del world
    tab = walk.tab
    with walk.timed("What happened today? What was accepted and delivered"):
        walk.click(tab.get_by_role("link", name="Today"))
        tab.locator(".figures").get_by_text("Accepted, last day").wait_for()
    with walk.timed("... what waits in all queues"):
        tab.get_by_text(f"{QUEUES + 1} queues counted").wait_for()
    with walk.timed("... every message, newest first"):
        walk.click(tab.get_by_role("link", name="Events"))
        tab.get_by_role("region", name="Messages").get_by_role("link").first.wait_for()


def healthy(walk: Walk, world: World) -> None:
    """Asks whether endpoints are healthy."""
    del world
    tab = walk.tab
    with walk.timed("Is this endpoint healthy? Of an application"):
        walk.click(tab.get_by_role("link", name="Applications"))
        walk.click(tab.get_by_role("link", name="Acme"))
        tab.get_by_text("waits for its token server").first.wait_for()
    with walk.timed("... of thirty queues with 300 subscribers"):
        walk.click(tab.get_by_role("link", name="Queues"))
        tab.get_by_text("delivering, some are retried").first.wait_for()


QUESTIONS = (where, today, healthy)


def main() -> None:
    """Ask, print, save."""
    page = Page("What a person asks first", __doc__)
    rows: list[list[str]] = []
    with endpoint(5) as target, sync_playwright() as playwright:
        world = fill(tenant("questions"), target.url)
        page.tell(f"The machine's load before was {page.load:.1f}, and {os.getloadavg()[0]:.1f} once all was there.")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for question in QUESTIONS:
            tab = browser.new_page(viewport={"width": 1440, "height": 900})
            tab.set_default_timeout(120_000)
            tab.goto(f"{world.owner.base_url}/console#project={world.owner.project_id}&token={world.owner.token}")
            tab.locator("main[data-address]").wait_for()
            tab.goto(f"{world.owner.base_url}/console#/alerts")
            tab.get_by_role("heading", name="Alerts", level=1).wait_for()
            walk = Walk(tab)
            question(walk, world)
            for number, (answer, seconds) in enumerate(walk.times.items()):
                counted = [str(walk.clicks), str(walk.most_requests)] if number == 0 else ["", ""]
                rows.append([answer, f"{seconds:.2f}", *counted])
            tab.close()
        browser.close()
    page.table(["", "s", "clicks in all", "requests of the busiest page"], rows)
    page.save()


if __name__ == "__main__":
    main()
