"""One outage of any size: ``python -m simulation.outage``.

What is in flight, how late tries are, what is written, to which keys, how long it takes to drain.

No weather: all endpoints of a queue are down from the start, for some time, while messages are posted. The services,
the functions and the hub's code are those of every other simulation; nothing is watched but counts, so that a million
deliveries fit into memory. It reports its progress now and then, and prints its counts also when it is ended early (by
a signal, or ``--minutes``).
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import signal
import sys
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pushhub.base.ports import PushRequest
from pushhub.engine.model.circuit import Circuit
from pushhub.engine.projects.projects import Projects
from simulation.account import Account, Operator
from simulation.endpoints import Asked, Reply
from simulation.expressions import Item
from simulation.functions import Sender
from simulation.scheduler import SECOND
from simulation.template import stack
from simulation.weather import HOUR, MINUTE, Weather

POSTED_AT_ONCE = 100
CIRCUIT = Circuit(failures=20, disable_after_s=None)
WAIT_WATCHED = ("PushQueue", "RetryQueue", "SlowQueue", "ErrorsQueue")

TELLS_EACH_S = 20
"""Seconds of this machine between two lines about how far it is."""

LONGEST_HOURS = 72
"""Simulated hours after which it ends, whatever is left."""


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
        answers_in_s: How long a working endpoint takes to answer, seconds.
    """

    messages: int = 10_000
    subscribers: int = 100
    posted_within_s: int = 600
    lasts_s: int = 1_800
    retries_delay_s: int = 3_600
    circuit: bool = False
    answers_in_s: float = 0.1


@dataclass
class Watch:
    """What is counted.

    Attributes:
        accepted_at: When each message was stored, epoch milliseconds.
        due: When each delivery is due next, epoch milliseconds, 0 when it is not: by message, in the order of the
            subscribers.
        first: First tries by how many whole seconds after their message they came.
        late: Further tries by how many whole seconds they came after their time, by the ten minutes in which they came
            (counted from the end of the outage).
        tries: By whether the endpoints were down.
        delivered_at: Deliveries that arrived, by the minute, counted from the end of the outage.
        last_at: When the last one arrived, microseconds.
        waiting: The most messages that were in each queue, looked at each minute.
    """

    accepted_at: dict[str, int] = field(default_factory=dict)
    due: dict[str, array[int]] = field(default_factory=dict)
    first: Counter[int] = field(default_factory=Counter)
    late: dict[int, Counter[int]] = field(default_factory=dict)
    tries: Counter[str] = field(default_factory=Counter)
    delivered_at: Counter[int] = field(default_factory=Counter)
    last_at: int = 0
    waiting: dict[str, int] = field(default_factory=dict)

    @property
    def arrived(self) -> int:
        """Deliveries so far."""
        return self.tries["well"]


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

    def asked(self, request: PushRequest, environment: str) -> tuple[Asked, Reply]:
        """A request."""
        now, now_ms, watch = self._account.scheduler.now, self._account.now_ms(), self._watch
        headers = request.headers
        message_id, number = headers["Iron-Message-Id"], int(headers["Iron-Subscriber-Name"].removeprefix("s"))
        after_ms = now - self._back_at
        due = watch.due[message_id][number]
        if due:
            late = watch.late.setdefault(after_ms // (10 * MINUTE), Counter())
            late[max(0, (now_ms - due) // 1000)] += 1
        else:
            watch.first[(now_ms - watch.accepted_at[message_id]) // 1000] += 1
        seen = Asked(now, {}, b"", message_id, environment)
        if after_ms < 0:
            watch.tries["down"] += 1
            return seen, Reply(error_class="connect", takes=20_000)
        watch.tries["well"] += 1
        watch.delivered_at[after_ms // MINUTE] += 1
        watch.last_at = now
        return seen, Reply(status=200, takes=self._takes)


def endure(
    outage: Outage,
    *,
    seed: str = "outage/1",
    goes_on: Callable[[Account, Watch], bool] = lambda *_: True,
) -> tuple[Watch, Account, int]:
    """Live through an outage until everything is delivered.

    Args:
        outage: What is to happen.
        seed: Decides everything.
        goes_on: Called each simulated minute; the outage ends early when it returns False.

    Returns:
        What was counted, the account, and when the endpoints came back, microseconds.
    """
    account = Account(seed, stack(), Weather((), seed))
    account.sends = Sender
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
        numbers = {each.subscriber_id: int(each.name.removeprefix("s")) for each in stored.push.subscribers}
        account.written.append(partial(_written, account, watch, numbers))
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
        while watch.arrived < deliveries and account.scheduler.now < start + LONGEST_HOURS * HOUR:
            account.scheduler.run(account.scheduler.now + MINUTE)
            for name in WAIT_WATCHED:
                watch.waiting[name] = max(watch.waiting.get(name, 0), len(account.queues[name]))
            if not goes_on(account, watch):
                break
        return watch, account, back_at


def _written(
    account: Account, watch: Watch, numbers: dict[str, int], table: str, _: Item | None, after: Item | None
) -> None:
    if table != "MessagesTable" or after is None:
        return
    message_id, sort = after["pk"]["S"].rpartition("#")[2], after["sk"]["S"]
    if sort.startswith("D#"):
        due = after.get("due_at")
        watch.due[message_id][numbers[sort[2:]]] = int(due["N"]) if due else 0
    elif after["kind"]["S"] == "message" and message_id not in watch.due:
        watch.accepted_at[message_id] = account.now_ms()
        watch.due[message_id] = array("q", bytes(8 * len(numbers)))


def percentile(counts: Counter[int], share: float) -> int:
    """The least number that this share of the counted numbers does not exceed."""
    left = share * sum(counts.values())
    for number in sorted(counts):
        left -= counts[number]
        if left <= 0:
            return number
    return 0


class Progress:
    """Prints the progress of an outage, and says when to end it.

    Args:
        minutes: End it after this many minutes of real time; 0 for never.
    """

    def __init__(self, minutes: float) -> None:
        self._began = self._reported = time.monotonic()
        self._ends = self._began + minutes * 60 if minutes else 0.0
        self.ended = False

    def end(self, *_: object) -> None:
        """End it after the current simulated minute."""
        self.ended = True

    def goes_on(self, account: Account, watch: Watch) -> bool:
        """Print the progress if it is time to; whether to go on."""
        now = time.monotonic()
        self.ended = self.ended or bool(self._ends and now >= self._ends)
        if now - self._reported >= TELLS_EACH_S:
            self._reported = now
            waiting = sum(len(account.queues[name]) for name in WAIT_WATCHED)
            print(
                f"minute {account.scheduler.now // MINUTE}: {len(watch.accepted_at)} messages, {watch.tries['down']} "
                f"tries while down, {watch.arrived} arrived, {waiting} in queues; {now - self._began:.0f} s, "
                f"{time.process_time():.0f} s of CPU, {memory_mb()} MB at most",
                flush=True,
            )
        return not self.ended


def memory_mb() -> int:
    """The peak memory of this process, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def report(outage: Outage, watch: Watch, account: Account, back_at: int) -> Iterator[str]:
    """The figures, line by line."""
    begun = len(watch.due) * outage.subscribers or 1
    yield f"{outage}"
    yield (
        f"deliveries {begun}, arrived {watch.arrived}; tries while down {watch.tries['down']}, when well "
        f"{watch.tries['well']}: {sum(watch.tries.values()) / begun:.3f} a delivery"
    )
    yield f"simulated {account.scheduler.now / HOUR:.2f} h, {account.calls} calls of services"
    for name in WAIT_WATCHED:
        queue = account.queues[name]
        yield (
            f"{name}: at most {queue.most_seen} in flight, at most {watch.waiting.get(name, 0)} in the queue; its "
            f"limit came {queue.stopped} times"
        )
    yield f"first tries after their message: {_spread(watch.first)}"
    yield f"further tries after their time: {_spread(sum(watch.late.values(), Counter()))}"
    for tens, late in sorted(watch.late.items()):
        yield f"  those {tens * 10} to {tens * 10 + 10} minutes after the end: {_spread(late)}"
    for name, pace in account.paces():
        if pace.most:
            at = (account.moment(pace.at * 1000) - back_at) / MINUTE
            yield (
                f"{name}: {pace.total:.0f}, {pace.total / begun:.3f} a delivery; at most {pace.most:.0f} in a second "
                f"to {pace.key}, {at:.1f} minutes after the end"
            )
    for table in account.dynamodb.tables.values():
        if table.refused:
            yield f"{table.schema.name}: {table.refused} calls refused, as a key had had what it takes in a second"
    yield (
        f"the last arrived {(watch.last_at - back_at) / MINUTE:.1f} minutes after the end; arrived by the minute: "
        f"{dict(sorted(watch.delivered_at.items()))}"
    )
    for name, count in sorted(account.telemetry.counts.items()):
        if not name.startswith("log "):
            yield f"  {name}: {count}"


def _spread(counts: Counter[int]) -> str:
    shares = ", ".join(f"p{round(share * 100)} {percentile(counts, share)} s" for share in (0.5, 0.95, 0.99))
    return f"{sum(counts.values())}; {shares}, most {max(counts, default=0)} s"


def main(arguments: Sequence[str]) -> int:
    """Live through an outage and print its figures; 1 when a queue reached its limit or something was not delivered."""
    parser = argparse.ArgumentParser(prog="python -m simulation.outage", description=__doc__)
    for name, kind in Outage.__annotations__.items():
        default = getattr(Outage, name)
        flag = f"--{name.replace('_', '-')}"
        if kind == "bool":
            parser.add_argument(flag, action="store_true")
        else:
            parser.add_argument(flag, type=float if kind == "float" else int, default=default, help=f"({default})")
    parser.add_argument("--minutes", type=float, default=0, help="end it after so many minutes; 0 for never")
    given = vars(parser.parse_args(arguments))
    progress = Progress(given.pop("minutes"))
    outage = Outage(**given)
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, progress.end)
    # Long-lived objects are packed: the garbage collector has little to look through, and little of that is garbage.
    gc.set_threshold(100_000, 20, 20)
    watch, account, back_at = endure(outage, goes_on=progress.goes_on)
    for line in report(outage, watch, account, back_at):
        print(line)
    deliveries = outage.messages * outage.subscribers
    print(f"{time.process_time() / deliveries * 1000:.2f} ms of CPU a delivery, {memory_mb()} MB at most")
    if progress.ended:
        print("ENDED BEFORE ALL WAS DELIVERED")
    return 1 if any(each.stopped for each in account.queues.values()) or watch.arrived < deliveries else 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        again = [sys.executable, "-m", "simulation.outage", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": "0"})  # noqa: S606 (this very program)
    sys.exit(main(sys.argv[1:]))
