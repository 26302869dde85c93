"""Several consumers of one pull queue: what each message costs, and whether each is handed out once.

    .venv/bin/python -m bench.pull [--stack] [--busy 30] [--save docs/figures/pull.md]

*Counted.* Consumers, each with the memory of a separate execution environment, reserve and delete messages of one queue
on an in-process DynamoDB. Their calls take turns in virtual time (a query 3 to 12 ms, a write 1 to 6 ms), so the counts
are the same on every machine and in every run. In the baseline, consumers make the same calls without avoiding one
another: each tries the front of the queue until it has as many messages as it asked for.

*On the running stack* (``--stack``, after ``make up``). The same number of threads, each with the public ``iron_mq``
client, reserve ten messages at a time and delete them until the queue is empty; the baseline is one such consumer in
the same run. The emulator runs on the same cores as the consumers, so only the ratio is meaningful. Then twelve empty
200 and 2,000 messages beside processes that do nothing but keep the cores busy (``--busy``). Answers that a busy hub
sheds with 503 are repeated by the client and counted; *size 0 after* is how long after the last deletion the queue's
size was told to be 0.
"""

from __future__ import annotations

import os
import secrets
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from urllib.parse import urlsplit

import requests
from iron_mq import IronMQ
from tests.cloud import aws_services as aws
from tests.ironmq.store.consumers import Consumed, consume

from bench.harness import Page, busy, cells
from bench.local_hub import described
from pushhub.ironmq.store.dynamodb_pull import DynamoDBPullStore, _Reserving

CONSUMERS = (1, 3, 6, 12, 16)
SEED = 1
SHED = 503
FOR_S = 900
"""How long one run may take."""


class EveryoneAtTheFront(DynamoDBPullStore):
    """The baseline: no consumer knows about the others."""

    def _reserve(self, call: _Reserving) -> None:
        candidates = self._candidates(call, call.count + 10)
        while wave := list(islice(candidates, call.wanted)):
            for each in wave:
                self._take(call, [each])


def counted(messages: int, at_a_time: int) -> list[list[str]]:
    """Rows: writes in virtual time."""
    rows: list[list[str]] = []
    for consumers in CONSUMERS:
        results: list[Consumed] = []
        for store_of in (EveryoneAtTheFront, DynamoDBPullStore):
            with aws.dynamodb() as client:
                many = {"consumers": consumers, "at_a_time": at_a_time, "messages": messages}
                results.append(consume(client, **many, seed=SEED, store_of=store_of))
            assert set(results[-1].times.values()) == {1}
        front, ours = results
        writes = cells(".2f", front.writes / messages, ours.writes / messages)
        longest = cells("", front.longest_ms, ours.longest_ms)
        rows.append([str(consumers), *writes, *longest, f"{ours.took_ms / front.took_ms:.2f}"])
        print(rows[-1], flush=True)
    return rows


@dataclass
class Pace:
    """What the consumers of one run experienced."""

    messages: int
    seconds: float
    times: Counter[str]
    answers: Counter[int]
    longest_s: float
    empty_after_s: float

    @property
    def failures(self) -> int:
        """Answers that say neither that it is done nor that it is to be repeated."""
        return sum(count for status, count in self.answers.items() if status >= 500 and status != SHED)


def on_the_stack(local: dict[str, str], consumers: int, messages: int) -> Pace:
    """Empty a queue with the public client."""
    base = urlsplit(local["base_url"])
    name = f"bench-pull-{secrets.token_hex(4)}"
    times: Counter[str] = Counter()
    answers: Counter[int] = Counter()
    longest = [0.0]
    last = [0.0]

    def client() -> IronMQ:
        ironmq = IronMQ(
            host=base.hostname,
            port=base.port,
            protocol=base.scheme,
            project_id=local["project_id"],
            token=local["token"],
            api_version=3,
        )
        real = ironmq.client._doRequest

        def counted(*arguments: object, **named: object) -> requests.Response:
            began = time.perf_counter()
            answer: requests.Response = real(*arguments, **named)
            longest[0] = max(longest[0], time.perf_counter() - began)
            answers[answer.status_code] += 1
            return answer

        ironmq.client._doRequest = counted
        return ironmq

    def consumer() -> None:
        queue = client().queue(name)
        while len(times) < messages and time.perf_counter() - start < FOR_S:
            try:
                held = queue.reserve(max=10, timeout=600)["messages"]
            except requests.HTTPError:
                continue
            times.update(each["id"] for each in held)
            if held:
                delete(queue, held)
                last[0] = time.perf_counter()
            else:
                time.sleep(0.1)

    def delete(queue: object, held: list[dict[str, str]]) -> None:
        """Delete them, one by one if some are gone already because an earlier try did a part."""
        for _ in range(20):
            try:
                queue.delete_multiple(messages={"messages": held})  # type: ignore[attr-defined]
            except requests.HTTPError as error:
                if error.response.status_code != 404:
                    continue
                for each in held:
                    with suppress(requests.HTTPError):
                        queue.delete(each["id"], each["reservation_id"])  # type: ignore[attr-defined]
            return

    queue = client().queue(name)
    for number in range(0, messages, 100):
        queue.post(*[str(number + each) for each in range(min(100, messages - number))])
    start = time.perf_counter()
    with ThreadPoolExecutor(consumers) as pool:
        for each in [pool.submit(consumer) for _ in range(consumers)]:
            each.result()
    seconds = time.perf_counter() - start
    while queue.size() and time.perf_counter() - last[0] < FOR_S:
        time.sleep(1)
    empty_after_s = time.perf_counter() - last[0]
    queue.delete_queue()
    return Pace(messages, seconds, times, answers, longest[0], empty_after_s)


def stack_rows(runs: Sequence[tuple[int, int, int]]) -> list[list[str]]:
    """Rows: several consumers of the running stack, compared with one.

    Args:
        runs: How many consumers, messages, and processes that keep the cores busy.
    """
    local, rows, alone = described(), [], 0.0
    for consumers, messages, others in runs:
        with busy(others):
            pace = on_the_stack(local, consumers, messages)
            load = os.getloadavg()[0]
        rate = pace.messages / pace.seconds
        alone = alone or rate
        twice = sum(each > 1 for each in pace.times.values())
        reported = [str(consumers), f"{len(pace.times)} of {messages}"]
        reported += cells("", others, twice, pace.failures, pace.answers[SHED])
        reported += [*cells(".1f", pace.longest_s, pace.empty_after_s), f"{rate / alone:.2f}", f"{load:.0f}"]
        rows.append(reported)
        print(reported, flush=True)
    return rows


def main() -> None:
    """Count, and measure on the stack if requested; print, save."""
    page = Page("Several consumers of one pull queue", __doc__, messages=400, at_a_time=10, stack=False, busy=0)
    options = page.options
    rows = counted(options.messages, options.at_a_time)
    page.tell(f"Counted, {options.messages} messages, {options.at_a_time} at a time:")
    writes = ["writes a message, all at the front", "writes a message, ours (aim: 1.5)"]
    longest = ["longest call, ms, all at the front", "longest call, ms, ours"]
    page.table(["consumers", *writes, *longest, "time to empty, ours to the front's"], rows)
    if options.stack:
        runs = [(each, options.messages, 0) for each in (1, 12, 16)]
        if options.busy:
            runs += [(12, each, options.busy) for each in (200, 2_000)]
        page.tell("On the running stack, ten at a time:")
        answers = ["more than once", "calls that failed", "shed", "longest call, s", "size 0 after, s"]
        head = ["consumers", "handed out", "busy processes", *answers, "pace to one consumer's", "load at its end"]
        page.table(head, stack_rows(runs))
    page.save()


if __name__ == "__main__":
    main()
