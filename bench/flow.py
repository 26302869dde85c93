"""What flow control promises (docs/flow.md), on the local stack and from outside: the endpoints' own stamps.

    make up && .venv/bin/python -m bench.flow [--only rates,quotas] [--rates 100,5] [--save docs/figures/flow.md]

One after the other: endpoints with a `throttleRate`, sent more than that (from 100 a second on, all messages are due
at the same moment, and parts of ten seconds are looked at instead of thirty); new endpoints and messages for them:
one that answers in 20 ms, and one after six seconds, alone and beside another project's 500 for one that never
answers; four clients that post over a quota, batches of a hundred or single messages, and wait as `Retry-After` says;
and a replay of 60 messages beside sixty tasks of another project: replays of 60, requested one by one, and each once
more with the same key, four at a time. (Beside other projects' work, the local stack gives a project's further
requests at a time a thirtieth of the CPU of everything else that runs, so those wait longer on a machine that is
busy; AWS has no such rule.)
"""

from __future__ import annotations

import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import requests
from local.place import Place

from bench.harness import Page, cells, percentile
from bench.local_hub import Endpoint, Tenant, endpoint, forget_work, tenant
from local import stack
from pushhub.cloud.clock import SystemClock
from pushhub.engine.model.quota import Quota
from pushhub.engine.projects.projects import Projects
from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore

RATES = "200,100,20,5,1"
WINDOW_S = 30
LONGEST_S = 120
SLOW_MS, HANGS_MS = 6_000, 3_600_000
FLOOD = 500
"""Messages for an endpoint that never answers."""
QUOTAS, QUOTA_S = ((5, 100), (5, 1), (20, 1)), 60
"""A second, and messages of a post."""
HIGH, POSTS_PER_SECOND, LEAST_AHEAD_S = 100, 40, 62
"""From which rate messages wait first, and how many a second are posted meanwhile, on a loaded machine, too."""
TASKS = 60


def posted(owner: Tenant, app: str, messages: int, mark: str, due: float = 0) -> None:
    """Post messages of webhooks, as fast as four connections do; they may be due at one moment, epoch seconds, or when
    a minute is over.
    """

    def post(number: int) -> None:
        at = datetime.fromtimestamp(max(due, time.time() + LEAST_AHEAD_S), UTC)
        later = {"deliverAt": at.isoformat()} if due else {}
        owner.webhooks("POST", f"/app/{app}/msg", {"eventType": "a.b", "payload": {mark: number}, **later})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(post, range(messages)))


def rate(target: Endpoint, per_second: int) -> list[str]:
    """A row: requests in each half minute (or less), one beginning each second, as parts of what was set."""
    window = WINDOW_S if per_second < HIGH else WINDOW_S // 3
    load, owner = os.getloadavg()[0], tenant("flow")
    target.forget()
    app = owner.webhooks("POST", "/app", {"name": "flow"})["id"]
    owner.webhooks("POST", f"/app/{app}/endpoint", {"url": f"{target.url}/stamp", "throttleRate": per_second})
    messages = per_second * (window + 12)
    due = time.time() + LEAST_AHEAD_S + messages / POSTS_PER_SECOND if per_second >= HIGH else 0
    posted(owner, app, messages, f"r{per_second}", due)
    target.wait(lambda: len(target.times()) >= messages, max(0.0, due - time.time()) + LONGEST_S)
    arrived = target.times()
    windows = [
        100 * sum(begins <= each < begins + window for each in arrived) / (per_second * window)
        for begins in (arrived[0] + 3 + second for second in range(10))
    ]
    most = max(sum(at <= each < at + 1 for each in arrived) for at in arrived)
    parts = cells(".0f", min(windows), max(windows), most)
    return [str(per_second), *parts, f"{len(arrived)} of {messages}", f"{load:.1f}"]


def met(name: str, target: Endpoint, messages: int, beside: Endpoint | None = None) -> list[list[str]]:
    """Rows: when the messages for a new endpoint have begun, seconds from their post; and those for one that hangs, if
    it has such a neighbour.
    """
    load, owner, rows = os.getloadavg()[0], tenant("flow"), []
    hangs, now = tenant("hangs"), time.time()
    if beside:
        hangs.push_queue("hangs", f"{beside.url}/stamp", timeout=10)
        for first in range(0, FLOOD, 100):
            hangs.post("hangs", [f"h{first + number}" for number in range(100)])
        time.sleep(3)
    owner.push_queue("new", f"{target.url}/stamp", timeout=10)
    target.forget()
    begun = time.time()
    owner.post("new", [f"s{number}" for number in range(messages)])
    target.wait(lambda: len(target.times()) >= messages, LONGEST_S)
    arrived = target.times()
    rows.append([name, f"{len(arrived)} of {messages}", by_second(arrived, begun), f"{load:.1f}"])
    if beside:
        time.sleep(max(0.0, now + 45 - time.time()))
        beside.look()
        seen = beside.times()
        rows.append(["... the one that hangs", f"{len(seen)} of {FLOOD}", by_second(seen, now), ""])
        forget_work()
    return rows


def by_second(seen: list[float], begun: float) -> str:
    """How many came in which second."""
    return ", ".join(
        f"{many} at {second}" for second, many in sorted(Counter(round(at - begun) for at in seen).items())
    )


def quota(per_second: int, batch: int) -> list[str]:
    """A row: messages accepted in a minute and the burst, by four clients that wait as they are told."""
    load, owner = os.getloadavg()[0], tenant("flow")
    place = Place.from_environment()
    description = stack.describe(place)
    dynamodb = stack.aws(description).dynamodb()
    store = DynamoDBConfigStore(dynamodb, description.outputs["ConfigTableName"], SystemClock())
    Projects(config=store, clock=SystemClock()).limit(owner.project_id, Quota.of(per_second))
    owner.call("PUT", "/pull", {"queue": {"type": "pull"}})
    until = time.time() + QUOTA_S

    def post(_: int) -> int:
        accepted = 0
        url = f"{owner.base_url}/3/projects/{owner.project_id}/queues/pull/messages"
        headers = {"Authorization": f"OAuth {owner.token}"}
        while time.time() < until:
            answer = requests.post(url, json={"messages": [{"body": "x"}] * batch}, headers=headers, timeout=60)
            accepted += batch if answer.ok else 0
            time.sleep(float(answer.headers.get("Retry-After", 0)))
        return accepted

    with ThreadPoolExecutor(4) as pool:
        total = sum(pool.map(post, range(4)))
    most = per_second * QUOTA_S + Quota.of(per_second).burst
    return [*cells("", per_second, batch, total, most), f"{load:.1f}"]


def tasks(target: Endpoint) -> list[str]:
    """A row: how long requests for tasks took, and a replay beside those tasks."""
    load, busy, other = os.getloadavg()[0], tenant("busy"), tenant("flow")
    since = {"since": "2020-01-01T00:00:00Z", "unlimited": True}
    apps = [each.webhooks("POST", "/app", {"name": "flow"})["id"] for each in (busy, other)]
    for owner, app in zip((busy, other), apps, strict=True):
        posted(owner, app, 60, "t")
    paths = [
        f"/app/{app}/endpoint/" + owner.webhooks("POST", f"/app/{app}/endpoint", {"url": f"{target.url}/in"})["id"]
        for owner, app in zip((busy, other), apps, strict=True)
    ]

    def ask(number: int) -> tuple[str, float]:
        begun = time.time()
        task = busy.webhooks("POST", f"{paths[0]}/replay-missing", since, key=f"task-{number}")["id"]
        return task, time.time() - begun

    asked = list(map(ask, range(TASKS)))
    with ThreadPoolExecutor(4) as pool:
        repeated = list(pool.map(ask, range(TASKS)))
    begun = time.time()
    replay = other.webhooks("POST", f"{paths[1]}/replay-missing", since)["id"]
    answered = time.time() - begun
    while other.webhooks("GET", f"/background-task/{replay}")["status"] == "running" and time.time() < begun + 200:
        time.sleep(0.5)
    done = time.time() - begun
    counted = len({each for each, _ in (*asked, *repeated)})
    took = [[seconds for _, seconds in each] for each in (asked, repeated)]
    times = [percentile(each, share) for each in took for share in (0.5, 1)]
    return [str(counted), *cells(".2f", *times, answered), f"{done:.0f}", f"{load:.1f}"]


def main() -> None:
    """Measure, print, save."""
    page = Page("Flow control, measured from outside", __doc__, only="rates,slow,quotas,tasks", rates=RATES)
    options = page.options
    with endpoint(20) as prompt, endpoint(SLOW_MS) as late, endpoint(HANGS_MS) as never:
        if "rates" in options.only:
            parts = ["least in a part, %", "most in a part, %", "most in 1 s"]
            rows = [rate(prompt, int(each)) for each in options.rates.split(",")]
            page.table(["rate set, /s", *parts, "arrived", "load before"], rows)
        if "slow" in options.only:
            rows = [
                *met("20 ms", prompt, 100),
                *met("6 s", late, 30),
                *met("6 s", late, 100),
                *met("6 s, beside one that hangs", late, 30, never),
            ]
            page.table(["a new endpoint takes", "begun", "how many, at which second", "load before"], rows)
        if "quotas" in options.only:
            head = ["quota, /s", "a post", f"accepted in {QUOTA_S} s", "rate and burst", "load before"]
            page.table(head, [quota(*each) for each in QUOTAS])
        if "tasks" in options.only:
            answered = ["one at a time: answered, p50, s", "longest, s", "four at a time: p50, s", "longest, s"]
            head = ["tasks of 120 requests", *answered, "the replay's, s", "replay of 60 done, s", "load before"]
            page.table(head, [tasks(prompt)])
    page.save()


if __name__ == "__main__":
    main()
