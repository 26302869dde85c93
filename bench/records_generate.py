"""Makes delivery records as a busy hub would: diurnal load, bursts, outages, flapping, heavy-tailed subscribers,
all kinds of ends.

Every life is simulated with the hub's rules (tries, fixed waits, 202 and acknowledgement, expiry, pull queues), cut off
at the end of the last day, and written in the layout of the records function. The counts that a correct report must
produce are returned.
"""

from __future__ import annotations

import gzip
import json
import math
import random
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from pushhub.base.times import iso_time

__all__ = ["Plan", "Subscriber", "generate"]

HOUR = 3_600_000
DAY = 24 * HOUR
RECORDS_PER_MESSAGE = 2.36
"""Records per message, measured over the default mix."""

SMALL_QUEUES = 50
"""Queues per project when there are very many subscribers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to generate.

    Attributes:
        records: Approximate number of records.
        days: Number of days.
        last_day: The last day; lives are cut off at its end.
        seed: The same seed makes the same records.
        projects: Number of projects; the first is the busiest.
        subscribers: If not 0, this many queues of one subscriber each, all equally busy, instead of projects with a few
            busy queues.
        part: This process's share of the projects, of ``parts``.
    """

    records: int
    days: int
    last_day: date = date(2026, 11, 20)
    seed: int = 1
    projects: int = 24
    subscribers: int = 0
    part: int = 0
    parts: int = 1

    @property
    def start_ms(self) -> int:
        """Beginning of the first day, epoch milliseconds."""
        first = self.last_day - timedelta(days=self.days - 1)
        return int(datetime(first.year, first.month, first.day, tzinfo=UTC).timestamp() * 1000)

    @property
    def end_ms(self) -> int:
        """End of the last day, epoch milliseconds."""
        return self.start_ms + self.days * DAY


@dataclass(slots=True, kw_only=True)
class Subscriber:
    """How one endpoint behaves.

    Attributes:
        subscriber_id: The hub's id.
        name: The owner's name for it.
        median_ms: Median time of an attempt.
        tail: Sigma of the log-normal time: 0.3 is calm, 1.2 has a heavy tail.
        failing: Share of attempts that fail on a good day.
        acknowledges: Share of messages it answers with 202 and acknowledges later.
        outages: Times in which every attempt fails.
        slow_from: Time from which on it takes three times as long, epoch milliseconds.
    """

    subscriber_id: str
    name: str
    median_ms: float
    tail: float
    failing: float
    acknowledges: float = 0.0
    outages: list[tuple[int, int]] = field(default_factory=list)
    slow_from: int | None = None

    def is_out(self, at: int) -> bool:
        """Whether every attempt fails at that time."""
        return any(start <= at < end for start, end in self.outages)


@dataclass(slots=True, kw_only=True)
class _Queue:
    project: str
    name: str
    uid: str
    weight: float
    subscribers: list[Subscriber]
    retries: int
    retries_delay_ms: int
    unicast: bool = False
    pull: bool = False


class _Files:
    """Collects records by the hour of their event and writes each hour as the stream batches of a few shards would
    be.
    """

    def __init__(self, out: Path, table: str, randomness: random.Random) -> None:
        self._out = out
        self._table = table
        self._random = randomness
        self._hours: dict[int, list[tuple[int, str]]] = defaultdict(list)
        self._sequence = 100_000_000_000_000_000_000
        self.written = 0
        self.objects = 0

    def add(self, at: int, line: str) -> None:
        self._hours[at // HOUR].append((at, line))

    def flush(self, before: int) -> None:
        for hour in sorted(each for each in self._hours if each * HOUR < before):
            self._write(hour, sorted(self._hours.pop(hour)))

    def _write(self, hour: int, lines: list[tuple[int, str]]) -> None:
        folder = self._out / f"{datetime.fromtimestamp(hour * 3600, UTC):dt=%Y-%m-%d/hour=%H}"
        folder.mkdir(parents=True, exist_ok=True)
        start = 0
        while start < len(lines):
            batch = lines[start : start + self._random.randint(200, 1000)]
            start += len(batch)
            first, last = self._sequence, self._sequence + len(batch) * 7
            self._sequence = last + 13
            content = "".join(line for _, line in batch).encode()
            name = f"{self._table}-{first}-{last}-{len(batch)}.json.gz"
            (folder / name).write_bytes(gzip.compress(content, compresslevel=6, mtime=0))
            self.written += len(batch)
            self.objects += 1


def generate(plan: Plan, out: Path, *, processes: int = 1) -> dict[str, int]:
    """Write the records of a plan below ``out`` (``dt=.../hour=...``); returns the counts of a correct report.

    Args:
        plan: What to generate.
        out: Folder; created if it does not exist.
        processes: Number of processes that share the work.
    """
    out.mkdir(parents=True, exist_ok=True)
    parts = [replace(plan, part=part, parts=processes) for part in range(processes)]
    truth: Counter[str] = Counter()
    if processes == 1:
        truth.update(_generate_part(parts[0], out))
    else:
        with ProcessPoolExecutor(max_workers=processes) as pool:
            for counted in pool.map(_generate_part, parts, [out] * processes):
                truth.update(counted)
    return dict(truth)


def _generate_part(plan: Plan, out: Path) -> Counter[str]:
    queues = [] if plan.subscribers else _queues(plan)
    total_weight = sum(queue.weight for queue in queues)
    mine = [queue for n, queue in enumerate(queues) if n % plan.parts == plan.part]
    randomness = random.Random(plan.seed * 1000 + plan.part)
    files = {table: _Files(out, f"{table}{plan.part}", randomness) for table in ("messages", "lines")}
    truth: Counter[str] = Counter()
    life = _Life(plan, randomness, files, truth)
    messages = plan.records / RECORDS_PER_MESSAGE
    load = [_load(hour) for hour in range(plan.days * 24)]
    for hour, share in enumerate(load):
        hour_ms = plan.start_ms + hour * HOUR
        if plan.subscribers:
            for at in _moments(randomness, hour_ms, round(messages * share / sum(load) / plan.parts)):
                number = randomness.randrange(plan.subscribers // plan.parts) * plan.parts + plan.part
                life.message(_small_queue(plan, number), at)
        for queue in mine:
            due = messages * share / sum(load) * queue.weight / total_weight
            count = max(0, round(randomness.gauss(due, math.sqrt(due))))
            for at in _moments(randomness, hour_ms, count):
                life.message(queue, at)
        for each in files.values():
            each.flush(hour_ms + HOUR)
    for each in files.values():
        each.flush(plan.end_ms)
    truth["records"] = sum(each.written for each in files.values())
    truth["objects"] = sum(each.objects for each in files.values())
    return truth


def _load(hour: int) -> float:
    """Relative load of an hour: nights are quiet, afternoons busy, and weekends have half the load."""
    daily = 1 + 0.75 * math.sin((hour % 24 - 9) / 24 * 2 * math.pi)
    return daily * (0.55 if hour // 24 % 7 in (1, 2) else 1.0)


def _moments(randomness: random.Random, hour_ms: int, count: int) -> list[int]:
    """When the messages of an hour are accepted; one hour in twelve has most of them in a burst of one minute."""
    if randomness.random() < 1 / 12:
        burst = hour_ms + randomness.randrange(HOUR - 60_000)
        return sorted(
            burst + randomness.randrange(60_000) if randomness.random() < 0.7 else hour_ms + randomness.randrange(HOUR)
            for _ in range(count)
        )
    return sorted(hour_ms + randomness.randrange(HOUR) for _ in range(count))


def _queues(plan: Plan) -> list[_Queue]:
    """The queues; the same in every process."""
    randomness = random.Random(plan.seed)
    queues = []
    for number in range(plan.projects):
        project = f"{random.Random(number).randrange(16**24):024x}"
        for index in range(1 + number % 4):
            pull = index == 3
            subscribers = [_subscriber(randomness, plan, number, index, n) for n in range(0 if pull else 1 + index)]
            queues.append(
                _Queue(
                    project=project,
                    name=("orders", "invoices", "stock-é", "tasks")[index],
                    uid=f"{number:06x}{index:06x}",
                    weight=1 / (number + 1) / (index + 1),
                    subscribers=subscribers,
                    retries=randomness.choice((3, 3, 5, 10)),
                    retries_delay_ms=randomness.choice((30, 60, 60, 300)) * 1000,
                    unicast=index == 2,
                    pull=pull,
                )
            )
    return queues


def _small_queue(plan: Plan, number: int) -> _Queue:
    """One of very many queues; always the same for a number."""
    randomness = random.Random(number)
    return _Queue(
        project=f"{number // SMALL_QUEUES:024x}",
        name=f"queue-{number % SMALL_QUEUES}",
        uid=f"{number:012x}",
        weight=1,
        subscribers=[_subscriber(randomness, plan, number, 1, 1)],
        retries=3,
        retries_delay_ms=60_000,
    )


def _subscriber(randomness: random.Random, plan: Plan, project: int, queue: int, number: int) -> Subscriber:
    outages = []
    if randomness.random() < 0.25:
        start = plan.start_ms + randomness.randrange(plan.days * DAY)
        outages.append((start, start + randomness.choice((20, 60, 300)) * 60_000))
    if project == 1 and number == 0:
        # One that is out when the plan ends, so that its deliveries wait.
        outages.append((plan.end_ms - 50 * 60_000, plan.end_ms))
    if project == 2 and number == 0:
        # One that alternates between healthy and failing every two hours of a day.
        day = plan.start_ms + (plan.days - 1) * DAY
        outages += [(day + n * 4 * HOUR, day + n * 4 * HOUR + 2 * HOUR) for n in range(6)]
    return Subscriber(
        subscriber_id=f"{project:04x}{queue:04x}{number:04x}",
        name=f"{('erp', 'shop', 'crm', 'mail', 'audit')[(project + number) % 5]}-{project}-{number}",
        median_ms=randomness.choice((25, 45, 60, 90, 140, 400)),
        tail=randomness.choice((0.3, 0.4, 0.5, 0.8, 1.2)),
        failing=randomness.choice((0.001, 0.002, 0.005, 0.01, 0.04)),
        acknowledges=0.3 if (project + queue + number) % 7 == 3 else 0.0,
        outages=outages,
        slow_from=plan.start_ms + (plan.days - 1) * DAY + 10 * HOUR if project == 4 and number == 0 else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    queue: _Queue
    message_id: str
    accepted_at: int
    size: int
    common: dict[str, str]
    """What each of its records begins with."""


class _Life:
    """Simulates messages and files their records."""

    def __init__(self, plan: Plan, randomness: random.Random, files: dict[str, _Files], truth: Counter[str]) -> None:
        self._plan = plan
        self._random = randomness
        self._files = files
        self._truth = truth
        self._next_id = 6_112_000_000_000_000_000 + plan.part * 10**15

    def message(self, queue: _Queue, at: int) -> None:
        """One message and everything that happens to it until the end of the plan."""
        self._next_id += self._random.randrange(1, 4096)
        message_id = str(self._next_id)
        common = {
            "project": queue.project,
            "queue": queue.name,
            "queue_uid": queue.uid,
            "message_id": message_id,
            "dialect": "pull" if queue.pull else "raw",
            "accepted_at": iso_time(at),
            "expires_at": iso_time(at + 7 * DAY),
        }
        size = int(self._random.lognormvariate(6.3, 1.2))
        message = _Message(queue=queue, message_id=message_id, accepted_at=at, size=size, common=common)
        due = at + (0 if self._random.random() > 0.01 else self._random.choice((60_000, 3 * HOUR)))
        owed = {each.subscriber_id: [each] for each in queue.subscribers}
        if queue.pull or queue.unicast:
            owed = {"line" if queue.pull else "*": queue.subscribers}
        ids = [f"{message_id}.{each}" for each in owed]
        more = {"reservations": 0} if queue.pull else {}
        self._record(message, "-", "accepted", 1, at, body_size=size, owed=ids, due_at=iso_time(due), **more)
        self._truth["messages"] += 1
        self._truth["deliveries"] += len(owed)
        for owed_to, targets in owed.items():
            if queue.pull:
                self._consume(message)
            else:
                self._deliver(message, due, owed_to, targets)

    def _record(self, of: _Message, owed_to: str, kind: str, number: int, at: int, **more: object) -> None:
        """File a record; ``number`` tells it from others of its kind about the same."""
        record_id = f"{of.queue.uid}/{of.message_id}/{owed_to}/{kind}/{number}"
        record = {"schema_version": 2, "record_id": record_id, "kind": kind, "at": iso_time(at), **of.common, **more}
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        self._files["lines" if of.queue.pull else "messages"].add(at, f"{line}\n")

    def _consume(self, message: _Message) -> None:
        """A message of a pull queue: reserved, now and then released or timed out, then deleted by its consumer."""
        whose = {"delivery_id": f"{message.message_id}.line", "subscriber_id": "line"}
        now, count = message.accepted_at, 0
        while True:
            now += int(self._random.expovariate(1 / 20_000)) + 1
            if now >= self._plan.end_ms:
                self._truth["pending"] += 1
                return
            count += 1
            held = {"due_at": iso_time(now + 60_000), **whose, "state": "reserved"}
            self._record(message, "line", "reserved", count, now, **held, reservations=count)
            chance = self._random.random()
            if chance < 0.03:
                now += 60_000
                if now >= self._plan.end_ms:
                    self._truth["reserved"] += 1
                    return
                continue
            now += int(self._random.expovariate(1 / 3_000)) + 1
            if now >= self._plan.end_ms:
                self._truth["reserved"] += 1
                return
            kind, state = ("released", "pending") if chance < 0.05 else ("delivered", "delivered")
            self._record(message, "line", kind, count, now, **whose, state=state, reservations=count)
            if kind == "delivered":
                self._truth["delivered"] += 1
                return

    def _deliver(self, message: _Message, due: int, owed_to: str, targets: list[Subscriber]) -> None:
        """Attempts until the delivery is settled or the plan ends."""
        end, chance, queue = self._plan.end_ms, self._random.random, message.queue
        before, tries, attempt, cursor, scheduled, state = message.accepted_at, 0, 0, 0, False, "pending"
        version = 0
        delivery = {"delivery_id": f"{message.message_id}.{owed_to}"}
        start = due + int(chance() * 400) + 30
        while True:
            subscriber = targets[cursor]
            slow = 3.0 if subscriber.slow_from is not None and start >= subscriber.slow_from else 1.0
            took = max(1, int(self._random.lognormvariate(math.log(subscriber.median_ms * slow), subscriber.tail)))
            failed = subscriber.is_out(start) or chance() < subscriber.failing
            error, status = "", 200
            if failed:
                kind_of_failure = chance()
                if kind_of_failure < 0.4:
                    error, status, took = "timeout", 0, 10_000
                elif kind_of_failure < 0.5:
                    error, status, took = "connect", 0, max(1, took // 10)
                else:
                    status = 503 if kind_of_failure < 0.9 else 404
            took = min(took, 10_000)
            finished = start + took
            if finished >= end:
                break
            attempt += 1
            version += 1
            acknowledges = not failed and chance() < subscriber.acknowledges
            goes_round = failed and cursor + 1 < len(targets)
            tries += 0 if goes_round else 1
            wait: int | None = None
            if acknowledges:
                verdict, status, state, wait = "reserved", 202, "reserved", queue.retries_delay_ms
            elif not failed:
                verdict, state = "delivered", "delivered"
            else:
                verdict = "failed"
                if goes_round:
                    state, wait = "retrying", 0
                elif tries > queue.retries:
                    state = "exhausted"
                else:
                    state, wait = "retrying", queue.retries_delay_ms
            scheduled = wait is not None and wait > 120_000
            waits: dict[str, object] = {"wait_before_ms": start - before}
            self._record(
                message,
                owed_to,
                "attempt",
                attempt,
                finished,
                **({} if wait is None else {"due_at": iso_time(finished + wait)}),
                **delivery,
                subscriber_id=subscriber.subscriber_id,
                subscriber=subscriber.name,
                state=state,
                scheduled=scheduled,
                version=version,
                attempt=attempt,
                tries=tries,
                tries_max=queue.retries + 1,
                verdict=verdict,
                status_code=status,
                error_class=error,
                started_at=iso_time(start),
                finished_at=iso_time(finished),
                duration_ms=took,
                bytes_out=message.size,
                bytes_in=0 if error else 2,
                **(waits if wait is None else waits | {"wait_after_ms": wait}),
            )
            self._truth["attempts"] += 1
            before = finished
            if state in ("delivered", "exhausted"):
                self._truth[state] += 1
                return
            due = finished + (wait or 0)
            # Settled by who acknowledges in time, or when the last wait is over.
            settled = ""
            if state == "reserved" and wait is not None:
                at = finished + int(self._random.expovariate(3 / wait))
                settled = "acknowledged" if at < due else ""
            if not settled and wait and tries > queue.retries:
                settled, at = "exhausted", due + 500
            if settled:
                if at >= end:
                    break
                counted = {"attempt": attempt, "tries": tries} if settled == "acknowledged" else {"tries": tries}
                told = {**delivery, "subscriber_id": owed_to, "state": settled, "version": version + 1, **counted}
                self._record(message, owed_to, settled, version + 1, at, **told)
                self._truth[settled] += 1
                return
            cursor = cursor + 1 if goes_round else 0
            jitter = int(chance() * (30_000 if scheduled else 900)) + 20
            start = due + (jitter if wait else 2)
        self._truth["scheduled" if scheduled and due > end else state] += 1
