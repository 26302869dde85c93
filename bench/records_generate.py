"""Makes delivery records as a busy hub would: diurnal load, bursts, outages, flapping, heavy-tailed subscribers,
all kinds of ends.

Every life is simulated with the hub's rules (tries, fixed waits, 202 and acknowledgement, expiry, pull queues), cut off
at the end of the last day, and written in the layout of the records function. The counts that a correct report must
produce are returned and written to ``truth.json``.
"""

from __future__ import annotations

import gzip
import json
import math
import random
from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

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


class _Clock:
    """ISO times, fast: the date and hour are formatted once per hour."""

    def __init__(self) -> None:
        self._hours: dict[int, str] = {}

    def iso(self, ms: int) -> str:
        hour, rest = divmod(ms, HOUR)
        prefix = self._hours.get(hour)
        if prefix is None:
            prefix = self._hours[hour] = f"{datetime.fromtimestamp(hour * 3600, UTC):%Y-%m-%dT%H}"
        minute, rest = divmod(rest, 60_000)
        return f"{prefix}:{minute:02d}:{rest // 1000:02d}.{rest % 1000:03d}Z"


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
    parts = [
        Plan(
            records=plan.records,
            days=plan.days,
            last_day=plan.last_day,
            seed=plan.seed,
            projects=plan.projects,
            subscribers=plan.subscribers,
            part=part,
            parts=processes,
        )
        for part in range(processes)
    ]
    truth: Counter[str] = Counter()
    if processes == 1:
        truth.update(_generate_part(parts[0], out))
    else:
        with ProcessPoolExecutor(max_workers=processes) as pool:
            for counted in pool.map(_generate_part, parts, [out] * processes):
                truth.update(counted)
    (out / "truth.json").write_text(json.dumps(truth, indent=1, sort_keys=True) + "\n")
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


class _Life:
    """Simulates messages and files their records."""

    def __init__(self, plan: Plan, randomness: random.Random, files: dict[str, _Files], truth: Counter[str]) -> None:
        self._plan = plan
        self._random = randomness
        self._files = files
        self._truth = truth
        self._iso = _Clock().iso
        self._next_id = 6_112_000_000_000_000_000 + plan.part * 10**15

    def message(self, queue: _Queue, at: int) -> None:
        """One message and everything that happens to it until the end of the plan."""
        self._next_id += self._random.randrange(1, 4096)
        message_id = str(self._next_id)
        expires = at + 7 * DAY
        common = (
            f'"project":"{queue.project}","queue":"{queue.name}","queue_uid":"{queue.uid}","message_id":"{message_id}",'
            f'"dialect":"{"pull" if queue.pull else "raw"}","accepted_at":"{self._iso(at)}",'
            f'"expires_at":"{self._iso(expires)}"'
        )
        self._truth["messages"] += 1
        size = int(self._random.lognormvariate(6.3, 1.2))
        delayed = 0 if self._random.random() > 0.01 else self._random.choice((60_000, 3 * HOUR))
        owed = (
            ["line"] if queue.pull else ["*"] if queue.unicast else [each.subscriber_id for each in queue.subscribers]
        )
        ids = ",".join(f'"{message_id}.{each}"' for each in owed)
        table = self._files["lines" if queue.pull else "messages"]
        reservations = ',"reservations":0' if queue.pull else ""
        table.add(
            at,
            f'{{"schema_version":2,"record_id":"{queue.uid}/{message_id}/-/accepted/1","kind":"accepted","at":"{self._iso(at)}",'
            f'{common},"body_size":{size},"owed":[{ids}],"due_at":"{self._iso(at + delayed)}"{reservations}}}\n',
        )
        self._truth["deliveries"] += len(owed)
        if queue.pull:
            self._consume(queue, message_id, common, at)
        elif queue.unicast:
            self._deliver(queue, message_id, common, at, at + delayed, "*", queue.subscribers, size)
        else:
            for each in queue.subscribers:
                self._deliver(queue, message_id, common, at, at + delayed, each.subscriber_id, [each], size)

    def _consume(self, queue: _Queue, message_id: str, common: str, at: int) -> None:
        """A message of a pull queue: reserved, now and then released or timed out, then deleted by its consumer."""
        table, delivery = self._files["lines"], f"{message_id}.line"
        now, count = at, 0
        while True:
            now += int(self._random.expovariate(1 / 20_000)) + 1
            if now >= self._plan.end_ms:
                self._truth["pending"] += 1
                return
            count += 1
            self._line_record(
                table, queue, message_id, delivery, common, "reserved", "reserved", count, now, now + 60_000
            )
            chance = self._random.random()
            if chance < 0.03:
                now += 60_000
                continue
            now += int(self._random.expovariate(1 / 3_000)) + 1
            if now >= self._plan.end_ms:
                self._truth["reserved"] += 1
                return
            if chance < 0.05:
                self._line_record(table, queue, message_id, delivery, common, "released", "pending", count, now, None)
                continue
            self._line_record(table, queue, message_id, delivery, common, "delivered", "delivered", count, now, None)
            self._truth["delivered"] += 1
            return

    def _line_record(
        self,
        table: _Files,
        queue: _Queue,
        message_id: str,
        delivery: str,
        common: str,
        kind: str,
        state: str,
        count: int,
        at: int,
        due: int | None,
    ) -> None:
        due_at = f',"due_at":"{self._iso(due)}"' if due else ""
        table.add(
            at,
            f'{{"schema_version":2,"record_id":"{queue.uid}/{message_id}/line/{kind}/{count}","kind":"{kind}","at":"{self._iso(at)}",'
            f'{common}{due_at},"delivery_id":"{delivery}","subscriber_id":"line","state":"{state}","reservations":{count}}}\n',
        )

    def _deliver(
        self,
        queue: _Queue,
        message_id: str,
        common: str,
        accepted: int,
        due: int,
        owed_to: str,
        targets: list[Subscriber],
        size: int,
    ) -> None:
        """Attempts until the delivery is settled or the plan ends."""
        end, iso, chance = self._plan.end_ms, self._iso, self._random.random
        before, tries, attempt, cursor, scheduled, state = accepted, 0, 0, 0, False, "pending"
        version, due_ms = 0, due
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
                self._truth["scheduled" if scheduled and due_ms > end else state] += 1
                return
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
            more = "" if wait is None else f',"wait_after_ms":{wait}'
            due_at = "" if wait is None else f'"due_at":"{iso(finished + wait)}",'
            self._files["messages"].add(
                finished,
                f'{{"schema_version":2,"record_id":"{queue.uid}/{message_id}/{owed_to}/attempt/{attempt}",'
                f'"kind":"attempt",'
                f'"at":"{iso(finished)}",{common},{due_at}"delivery_id":"{message_id}.{owed_to}",'
                f'"subscriber_id":"{subscriber.subscriber_id}","subscriber":"{subscriber.name}","state":"{state}",'
                f'"scheduled":{"true" if scheduled else "false"},"version":{version},"attempt":{attempt},'
                f'"tries":{tries},"tries_max":{queue.retries + 1},"verdict":"{verdict}",'
                f'"status_code":{status},"error_class":"{error}",'
                f'"started_at":"{iso(start)}","finished_at":"{iso(finished)}","duration_ms":{took},"bytes_out":{size},'
                f'"bytes_in":{0 if error else 2},"wait_before_ms":{start - before}{more}}}\n',
            )
            self._truth["attempts"] += 1
            before = finished
            if state in ("delivered", "exhausted"):
                self._truth[state] += 1
                return
            if state == "reserved" and wait is not None:
                acknowledged = finished + int(self._random.expovariate(3 / wait))
                if acknowledged < finished + wait:
                    if acknowledged >= end:
                        self._truth["scheduled" if scheduled else state] += 1
                        return
                    version += 1
                    self._files["messages"].add(
                        acknowledged,
                        f'{{"schema_version":2,"record_id":"{queue.uid}/{message_id}/{owed_to}/acknowledged/{version}",'
                        f'"kind":"acknowledged","at":"{iso(acknowledged)}",{common},'
                        f'"delivery_id":"{message_id}.{owed_to}",'
                        f'"subscriber_id":"{owed_to}","state":"acknowledged","version":{version},'
                        f'"attempt":{attempt},"tries":{tries}}}\n',
                    )
                    self._truth["acknowledged"] += 1
                    return
            if wait and tries > queue.retries:
                closed = finished + wait + 500
                if closed >= end:
                    self._truth["scheduled" if scheduled and finished + wait > end else state] += 1
                    return
                version += 1
                self._files["messages"].add(
                    closed,
                    f'{{"schema_version":2,"record_id":"{queue.uid}/{message_id}/{owed_to}/exhausted/{version}",'
                    f'"kind":"exhausted",'
                    f'"at":"{iso(closed)}",{common},"delivery_id":"{message_id}.{owed_to}","subscriber_id":"{owed_to}",'
                    f'"state":"exhausted","version":{version},"tries":{tries}}}\n',
                )
                self._truth["exhausted"] += 1
                return
            cursor = cursor + 1 if goes_round else 0
            jitter = int(chance() * (30_000 if scheduled else 900)) + 20
            due_ms = finished + (wait or 0)
            start = due_ms + (jitter if wait else 2)
