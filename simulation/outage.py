"""One outage, as large as is asked for: ``python -m simulation.outage``.

What is in flight, how late tries are, what is written, how long it takes to drain.

No weather: all of the endpoints of a queue are down from the start, for some hours, while messages are posted. The
services, the functions and the hub's code are those of every other simulation; nothing is watched but counts, so that a
million deliveries fit into memory.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pushhub.base.ports import PushRequest
from pushhub.engine.model.circuit import Circuit
from pushhub.engine.projects import Projects
from simulation.account import Account, Operator
from simulation.endpoints import Asked, Reply
from simulation.expressions import Item
from simulation.functions import Environment
from simulation.scheduler import SECOND
from simulation.template import stack
from simulation.weather import HOUR, MINUTE, Weather

POSTED_AT_ONCE = 100
CIRCUIT = Circuit(failures=20, disable_after_s=None)
LIMIT_IN_FLIGHT = 120_000
WAIT_WATCHED = ("PushQueue", "RetryQueue", "ErrorsQueue")


@dataclass(frozen=True)
class Outage:
    """What is to happen.

    Attributes:
        messages: Posted, evenly over ``posted_within_s``.
        subscribers: Of the queue: each message is owed to each of them.
        posted_within_s: Seconds.
        lasts_s: Seconds until all endpoints are back.
        retries_delay_s: Seconds between tries.
        circuit: Whether subscribers have a circuit.
        answers_in_s: How long an endpoint takes that is well, seconds.
    """

    messages: int = 10_000
    subscribers: int = 100
    posted_within_s: int = 1_800
    lasts_s: int = 3_000
    retries_delay_s: int = 3_600
    circuit: bool = False
    answers_in_s: float = 0.1


@dataclass
class Watch:
    """What is counted.

    Attributes:
        due: When each delivery that was tried is due next, epoch milliseconds.
        late: Tries by how many whole seconds they came after their time.
        tries: By whether the endpoints were down.
        delivered_at: Deliveries that arrived, by the minute, counted from the end of the outage.
        writes: Items written or deleted, by table.
        most: The most messages in flight at a time, by queue and by minute.
    """

    due: dict[tuple[str, str], int] = field(default_factory=dict)
    late: Counter[int] = field(default_factory=Counter)
    tries: Counter[str] = field(default_factory=Counter)
    delivered_at: Counter[int] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)
    most: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)


class Everywhere:
    """All endpoints: down until the outage ends, then well.

    Args:
        account: Where they are.
        outage: How long it lasts.
        watch: Counts.
        back_at: When they are back, microseconds.
    """

    def __init__(self, account: Account, outage: Outage, watch: Watch, back_at: int) -> None:
        self._account = account
        self._takes = round(outage.answers_in_s * SECOND)
        self._watch = watch
        self._back_at = back_at

    def asked(self, request: PushRequest, environment: Environment) -> tuple[Asked, Reply]:
        """A request."""
        now, watch = self._account.scheduler.now, self._watch
        headers = {name.lower(): value for name, value in request.headers.items()}
        key = headers["iron-message-id"], headers["iron-subscriber-name"]
        due = watch.due.get(key)
        if due is not None:
            watch.late[max(0, (self._account.now_ms() - due) // 1000)] += 1
        seen = Asked(now, {}, b"", key[0], 0, environment.name)
        if now < self._back_at:
            watch.tries["down"] += 1
            return seen, Reply(error_class="connect", takes=20_000)
        watch.tries["well"] += 1
        watch.delivered_at[(now - self._back_at) // MINUTE] += 1
        return seen, Reply(status=200, takes=self._takes)


def endure(outage: Outage, *, seed: str = "outage/1") -> tuple[Watch, Account, int]:
    """Live through an outage until everything is delivered.

    What was counted, the account, and microseconds from its end to the last delivery.
    """
    account = Account(seed, stack(), Weather((), seed))
    watch = Watch()
    names = [f"s{number}" for number in range(outage.subscribers)]
    deliveries = outage.messages * outage.subscribers
    with account.installed():
        operator = Operator(account)
        projects = Projects(config=operator.config, clock=operator.clock)
        project = projects.make("simulated").project_id
        token = projects.make_token(project)
        path = f"/3/projects/{project}/queues/outage"
        push = {
            "subscribers": [{"name": each, "url": f"https://{each}.example/in"} for each in names],
            "retries": 100,
            "retries_delay": outage.retries_delay_s,
        }
        settings = {"queue": {"type": "multicast", "message_expiration": 604_800, "push": push}}
        account.scheduler.spawn(partial(account.http, "PUT", path, settings, token=token))
        account.scheduler.run(60 * SECOND)
        stored = operator.config.queue(project, "outage", fresh=True)
        assert stored is not None
        assert stored.push is not None
        if outage.circuit:
            operator.config.update_queue(replace(stored, push=replace(stored.push, circuit=CIRCUIT)))
        of_id = {each.subscriber_id: each.name for each in stored.push.subscribers}
        account.written.append(partial(_written, watch, of_id))
        account.begin_schedules()
        start = account.scheduler.now
        back_at = start + outage.lasts_s * SECOND
        everywhere: Any = Everywhere(account, outage, watch, back_at)
        account.endpoints.known.update({f"{each}.example": everywhere for each in names})
        body = {"messages": [{"body": "x" * 200}] * POSTED_AT_ONCE}

        def post() -> None:
            while account.http("POST", f"{path}/messages", body, token=token).status != 201:
                account.scheduler.sleep(SECOND)

        posts = outage.messages // POSTED_AT_ONCE
        for number in range(posts):
            account.scheduler.spawn(post, after=number * outage.posted_within_s * SECOND // posts)
        while sum(watch.delivered_at.values()) < deliveries and account.scheduler.now < start + 72 * HOUR:
            account.scheduler.run(account.scheduler.now + MINUTE)
            for name in WAIT_WATCHED:
                queue = account.queues[name]
                watch.waiting[name] = max(watch.waiting.get(name, 0), len(queue))
        for name in WAIT_WATCHED:
            watch.most[name] = account.queues[name].most_seen
        return watch, account, account.scheduler.now - back_at


def _written(watch: Watch, of_id: dict[str, str], table: str, _: Item | None, after: Item | None) -> None:
    watch.writes[table] += 1
    if table != "MessagesTable" or after is None or not after["sk"]["S"].startswith("D#"):
        return
    key = after["pk"]["S"].rpartition("#")[2], of_id[after["sk"]["S"][2:]]
    due = after.get("due_at")
    if due is None:
        watch.due.pop(key, None)
    else:
        watch.due[key] = int(due["N"])


def percentile(counts: Counter[int], share: float) -> int:
    """The least number that so large a share of the counted is not above."""
    left = share * sum(counts.values())
    for number in sorted(counts):
        left -= counts[number]
        if left <= 0:
            return number
    return 0


def main(arguments: Sequence[str]) -> int:
    """Live through an outage and print its figures; 1 when a queue came to its limit or something was not delivered."""
    parser = argparse.ArgumentParser(prog="python -m simulation.outage", description=__doc__)
    for name, kind in Outage.__annotations__.items():
        default = getattr(Outage, name)
        flag = f"--{name.replace('_', '-')}"
        if kind == "bool":
            parser.add_argument(flag, action="store_true")
        else:
            parser.add_argument(flag, type=float if kind == "float" else int, default=default, help=f"({default})")
    outage = Outage(**vars(parser.parse_args(arguments)))
    began = time.perf_counter()
    watch, account, took = endure(outage)
    seconds = time.perf_counter() - began
    deliveries, arrived = outage.messages * outage.subscribers, sum(watch.delivered_at.values())
    stopped = {name: queue.stopped for name, queue in account.queues.items() if queue.stopped}
    print(f"{outage}")
    print(
        f"deliveries {deliveries}, arrived {arrived}; tries while down {watch.tries['down']}, when well "
        f"{watch.tries['well']}"
    )
    print(f"simulated {(account.scheduler.now) / HOUR:.2f} h in {seconds:.0f} s, {account.calls} calls of services")
    for name, most in watch.most.items():
        print(
            f"{name}: at most {most} in flight, at most {watch.waiting[name]} in the queue; its limit came "
            f"{stopped.get(name, 0)} times"
        )
    late = watch.late
    print(
        f"tries after their time, seconds: p50 {percentile(late, 0.5)}, p95 {percentile(late, 0.95)}, p99 "
        f"{percentile(late, 0.99)}, most {max(late, default=0)}"
    )
    for table, count in sorted(watch.writes.items()):
        print(f"items written in {table}: {count}, {count / deliveries:.3f} a delivery")
    print(
        f"drained {took / MINUTE:.0f} minutes after the end; arrived by the minute: "
        f"{dict(sorted(watch.delivered_at.items()))}"
    )
    for name, count in sorted(account.telemetry.counts.items()):
        if not name.startswith("log "):
            print(f"  {name}: {count}")
    return 1 if stopped or arrived < deliveries else 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        again = [sys.executable, "-m", "simulation.outage", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": "0"})  # noqa: S606 (this very program)
    sys.exit(main(sys.argv[1:]))
