"""What one project's rules that exhaust their budget cost another project's posts and lists, on the local stack.

    make up && .venv/bin/python -m bench.neighbours_rules [--seconds 40] [--save docs/figures/neighbours-rules.md]

A victim posts webhook messages and lists them, one request after the other at an even pace. Another project makes as
many requests as its pace and four connections allow: ordinary posts; posts whose enforced schema is given up when its
budget of steps is used up (422); ordinary lists of twelve messages of 260 KB; and lists of the same messages under
twenty redaction rules of four ``**`` each, whose budget is used up as well. The budgets are those of decision 0062.
Latency is that of the victim's request, from before it is sent until its answer has come. Ordinary requests of the
neighbour tell what the machine's load alone costs, as everything runs on the same cores. The kinds take turns in
rounds, so that all see the machine in the same state.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import requests

from bench.harness import Page, percentile, percentiles
from bench.local_hub import Tenant, paced, tenant

CONNECTIONS = 4
LISTED = 12
WARM_UP_S = 2.0

COSTLY_SCHEMA = {
    "definitions": {"a": {"minimum": 5}},
    "properties": {"c": {"items": {"anyOf": [*[{"$ref": "#/definitions/a"}] * 1_000, True]}}},
}
"""Each item of a list is compared with a thousand alternatives, none of which it matches."""

COSTLY_PATHS = [f"**.a{number}.**.b.**.c.**.secret" for number in range(20)]


class Project:
    """A project with an application and an event type.

    Args:
        owner: The project.
        rules: Whether its rules exhaust their budgets.
    """

    def __init__(self, owner: Tenant, *, rules: bool) -> None:
        self._owner = owner
        self._own = threading.local()
        kind: dict[str, Any] = {"name": "order.paid", "description": "paid"}
        costly = {"schemas": {"1": COSTLY_SCHEMA}, "schemaEnforcement": "reject"}
        owner.webhooks("POST", "/event-type", {**kind, **(costly if rules else {})})
        redaction = {"redaction": {"payload": COSTLY_PATHS}} if rules else {}
        self._app = owner.webhooks("POST", "/app", {"name": "bench", **redaction})["id"]

    def ask(self, method: str, path: str, body: object = None) -> requests.Response:
        """Make a request, on a connection of the thread's own."""
        if not hasattr(self._own, "session"):
            self._own.session = self._owner.another().session
        answer: requests.Response = self._own.session.request(
            method, f"{self._owner.base_url}/api/v1{path}", json=body, timeout=60
        )
        return answer

    def post(self, payload: dict[str, Any]) -> int:
        """Post a message; the status of the answer."""
        return self.ask("POST", f"/app/{self._app}/msg", {"eventType": "order.paid", "payload": payload}).status_code

    def list(self) -> int:
        """List the newest messages; the status of the answer."""
        return self.ask("GET", f"/app/{self._app}/msg?limit={LISTED}").status_code


@dataclass
class Measured:
    """The victim's latencies beside one kind of neighbour, seconds.

    Attributes:
        posts: Of its posts.
        lists: Of its lists.
        made: The neighbour's requests, by the status of their answers.
        load: The machine's load before each round.
    """

    posts: list[float] = field(default_factory=list)
    lists: list[float] = field(default_factory=list)
    made: Counter[int] = field(default_factory=Counter)
    load: list[float] = field(default_factory=list)


def victim(project: Project, seconds: float, rate: float, into: Measured) -> None:
    """Post and list in turn."""
    for number in paced(round(seconds * rate), rate):
        begun = time.monotonic()
        status = project.list() if number % 2 else project.post({"number": number, "note": "x" * 300})
        assert status in {200, 202}, status
        (into.lists if number % 2 else into.posts).append(time.monotonic() - begun)


def neighbour(request: Callable[[], int], seconds: float, rate: float, into: Measured) -> None:
    """Make requests at a pace, as far as the connections allow."""
    ends = time.monotonic() + seconds
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        free = threading.Semaphore(CONNECTIONS)

        def one() -> int:
            try:
                return request() if time.monotonic() < ends else 0
            finally:
                free.release()

        statuses = []
        for _ in paced(round(seconds * rate), rate):
            free.acquire()
            statuses.append(pool.submit(one))
        into.made.update(status for each in statuses if (status := each.result()))


def main() -> None:
    """Measure, print, save."""
    title = "A victim beside rules that exhaust their budget"
    # Seconds beside each kind of neighbour; requests a second of the victim and of the neighbour.
    page = Page(title, __doc__, seconds=40.0, rounds=4, rate=10.0, pace=10.0)
    options = page.options
    paces = f"The victim makes {options.rate:g} requests a second, the neighbour at most {options.pace:g}"
    page.tell(f"{paces}; {options.seconds:g} s each, in {options.rounds} rounds.")
    ours = Project(tenant("victim"), rules=False)
    plain, ruled = Project(tenant("plain"), rules=False), Project(tenant("ruled"), rules=True)
    listed = {f"m{number}": number for number in range(16_600)}
    for project in (plain, ruled):
        assert {project.post(listed) for _ in range(LISTED)} == {202}
    few, many = {"c": [1]}, {"c": [1] * 1_000}
    kinds: dict[str, Callable[[], int] | None] = {
        "nothing": None,
        "ordinary posts": lambda: plain.post(many),
        "posts that exhaust their schema's budget": lambda: ruled.post(many),
        "ordinary lists": plain.list,
        "lists that exhaust their rules' budget": ruled.list,
    }
    assert ruled.post(few) == 202
    assert ruled.post(many) == 422, "the schema was to be given up"
    found: defaultdict[str, Measured] = defaultdict(Measured)
    victim(ours, WARM_UP_S, options.rate, Measured())
    for _ in range(options.rounds):
        for name, request in kinds.items():
            measured, seconds = found[name], options.seconds / options.rounds
            measured.load.append(os.getloadavg()[0])
            beside = threading.Thread(target=neighbour, args=(request or (lambda: 0), seconds, options.pace, measured))
            if request:
                beside.start()
            victim(ours, seconds, options.rate, measured)
            if request:
                beside.join()
            time.sleep(1)
    alone = {"posts": percentile(found["nothing"].posts, 0.95), "lists": percentile(found["nothing"].lists, 0.95)}
    rows = []
    for name, each in found.items():
        row = [name]
        for latencies, base in ((each.posts, alone["posts"]), (each.lists, alone["lists"])):
            row += [*percentiles(latencies), f"{percentile(latencies, 0.95) / base:.2f}"]
        rows.append([*row, str(sum(each.made.values())), f"{statistics.mean(each.load):.1f}"])
        print(rows[-1], dict(each.made), flush=True)
    kinds_of = [f"{kind}: {what}" for kind in ("posts", "lists") for what in ("p50, ms", "p95, ms", "p95 to alone")]
    page.table(["neighbour makes", *kinds_of, "its requests", "load before"], rows)
    page.save()


if __name__ == "__main__":
    main()
