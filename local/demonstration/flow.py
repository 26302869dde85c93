"""The demonstration from the first queue to the last check."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from local.demonstration.hub import Hub
from local.demonstration.sinks import Dead, Flaky, Healthy, Later, Sink, serve
from local.errors import LocalError, Say
from local.place import REPOSITORY
from local.stack import Description

MESSAGES = REPOSITORY / "events" / "messages.jsonl"
"""One JSON object to a line with ``kind`` and ``body``."""
RETRIES = 2
RETRIES_DELAY = 6
WARM_REQUESTS = 6
"""Requests side by side before the first message: the first of each process of the emulator takes a second or more, and
acknowledgements of the first messages would come too late for that.
"""
SECONDS = 180.0
"""The demonstration fails after this time."""
_BATCH_BYTES = 500_000
_BATCH = 20


@dataclass(kw_only=True)
class Demonstration:
    """What happens in one demonstration.

    Attributes:
        posted: Bodies by message id.
    """

    hub: Hub
    queue: str
    bodies: list[str]
    posted: dict[str, bytes] = field(default_factory=dict)
    sinks: list[Sink] = field(default_factory=lambda: [Healthy(), Flaky(), Later()])
    dead: Dead = field(default_factory=Dead)

    @property
    def error_queue(self) -> str:
        """Where exhausted deliveries go."""
        return f"{self.queue}-errors"

    async def prepare(self) -> None:
        """Make the queue with its subscribers."""
        subscribers = [{"name": each.name, "url": each.url} for each in [*self.sinks, self.dead]]
        push = {
            "subscribers": subscribers,
            "retries": RETRIES,
            "retries_delay": RETRIES_DELAY,
            "error_queue": self.error_queue,
        }
        await self.hub.put_queue(self.queue, {"type": "multicast", "push": push})

    async def post(self) -> None:
        """Post every message, in batches."""
        batch: list[str] = []
        for body in [*self.bodies, None]:
            size = sum(len(each.encode()) for each in batch)
            if body is None or len(batch) == _BATCH or size + len(body.encode()) > _BATCH_BYTES:
                ids = await self.hub.post(self.queue, batch) if batch else []
                self.posted.update(zip(ids, (each.encode() for each in batch), strict=True))
                batch = []
            if body is not None:
                batch.append(body)

    async def settle(self, progress: Progress) -> None:
        """Wait until every subscriber has every message, or there is an error message about it."""
        deadline = time.monotonic() + SECONDS
        while True:
            given_up = await self.hub.total_messages(self.error_queue)
            received = [len(sink.accepted) for sink in self.sinks]
            owed = (len(self.bodies) + len(self.twice())) * (len(self.sinks) + 1) - sum(received)
            parts = [
                f"{sink.name} {count}/{len(self.bodies)}" for sink, count in zip(self.sinks, received, strict=True)
            ]
            state = "  ".join([*parts, f"error queue {given_up}"])
            progress.show(state)
            if given_up >= owed:
                return
            if time.monotonic() > deadline:
                raise LocalError(f"the demonstration did not end within {SECONDS:.0f} s: {state}")
            await asyncio.sleep(0.5)

    def twice(self) -> set[str]:
        """Messages that were stored although their post seemed to fail, so that they were posted again."""
        if not self.hub.repeated or len(self.posted) < len(self.bodies):
            return set()
        return {each for sink in self.sinks for each in sink.accepted} - self.posted.keys()

    async def errors(self) -> list[dict[str, Any]]:
        """The contents of the error queue. It is only read: everything is released again."""
        found = []
        while batch := await self.hub.reserve(self.error_queue, 100, 60):
            found += batch
        for message in found:
            await self.hub.release(self.error_queue, message["id"], message["reservation_id"])
        return [json.loads(message["body"]) for message in found]

    async def tries(self) -> dict[str, int]:
        """How often each subscriber was tried, according to the hub's push statuses."""
        sums = dict.fromkeys([each.name for each in [*self.sinks, self.dead]], 0)
        gate = asyncio.Semaphore(4)

        async def add(message_id: str) -> None:
            async with gate:
                for name, status in (await self.hub.statuses(self.queue, message_id)).items():
                    sums[name] += status["tries"]

        await asyncio.gather(*map(add, self.posted))
        return sums


class Progress:
    """One line that changes on a terminal; one line every few seconds elsewhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._started = time.monotonic()
        self._shown = ""
        self._shown_at = float("-inf")

    def show(self, text: str) -> None:
        """Show where things are."""
        now = time.monotonic()
        line = f"{now - self._started:5.1f} s  {text}"
        if self._live:
            self._stream.write(f"\r\x1b[K{line}")
            self._stream.flush()
        elif text != self._shown and now - self._shown_at >= 2:
            self._shown, self._shown_at = text, now
            self._stream.write(f"{line}\n")
            self._stream.flush()

    def end(self) -> None:
        """End the line."""
        if self._live:
            self._stream.write("\n")


def load(path: Path = MESSAGES) -> list[str]:
    """Bodies of the messages to post."""
    try:
        return [str(json.loads(line)["body"]) for line in path.read_text(encoding="utf-8").strip("\n").split("\n")]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LocalError(f"the demonstration's messages cannot be read: {path}: {error!r}") from error


def check(show: Demonstration, errors: list[dict[str, Any]], tries: dict[str, int]) -> list[str]:
    """What is wrong; empty when every claim of the table is true.

    Every message must be at every subscriber, or in the error queue with that subscriber's name, and unchanged in
    both. If the machine is too slow to acknowledge in time, the error queue may also hold messages that were accepted.
    """
    problems = []
    twice = show.twice()
    errors = [error for error in errors if error["source_msg_id"] not in twice]
    given_up = Counter((error["source_msg_id"], each["name"]) for error in errors for each in error["subscribers"])
    if len(errors) != len(given_up) or given_up.total() != len(given_up):
        problems.append(f"{len(errors)} error messages are about {len(given_up)} deliveries")
    for error in errors:
        if error["body"].encode() != show.posted.get(error["source_msg_id"]):
            problems.append(f"the error message of {error['source_msg_id']} holds another body")
    for sink in show.sinks:
        changed = sum(
            body not in show.posted.values() if message_id in twice else show.posted.get(message_id) != body
            for message_id, body in sink.accepted.items()
        )
        lost = sum((each, sink.name) not in given_up for each in show.posted if each not in sink.accepted)
        if changed or lost:
            problems.append(f"{sink.name} has {changed} messages changed and {lost} missing")
        if tries[sink.name] > sink.tries.total():
            problems.append(f"{sink.name} was tried {sink.tries.total()} times, its statuses say {tries[sink.name]}")
    healthy = show.sinks[0]
    received = len(healthy.accepted.keys() & show.posted.keys())
    if received != len(show.posted):
        problems.append(f"{healthy.name} received {received} of {len(show.posted)} messages")
    if sum(name == show.dead.name for _, name in given_up) != len(show.posted):
        problems.append(f"not every message for {show.dead.name} is in the error queue")
    if tries[show.dead.name] != len(show.posted) * (RETRIES + 1):
        problems.append(f"{show.dead.name} was tried {tries[show.dead.name]} times")
    return problems


async def run(stack: Description, say: Say, *, messages: Path = MESSAGES, stream: TextIO = sys.stdout) -> None:
    """Show the main job on the running stack and check it."""
    bodies = load(messages)
    async with Hub(stack.base_url, stack.project_id, stack.token) as hub:
        earlier = [name for name in await hub.queue_names("demo-") if not name.endswith("-errors")]
        numbers = [int(name.removeprefix("demo-")) for name in earlier if name.removeprefix("demo-").isdecimal()]
        show = Demonstration(hub=hub, queue=f"demo-{max(numbers, default=0) + 1}", bodies=bodies)
        if earlier:
            say(f"Here from earlier demonstrations: {', '.join(earlier)}")
        async with serve(show.sinks, show.dead):
            await show.prepare()
            await asyncio.gather(*[hub.queue_names("demo-") for _ in range(WARM_REQUESTS)])
            say(f"Posting {len(bodies)} messages ({_size(bodies)}) to the multicast queue {show.queue} ...")
            started = time.monotonic()
            progress = Progress(stream)
            posting = asyncio.create_task(show.post())
            try:
                await asyncio.gather(posting, show.settle(progress))
            finally:
                posting.cancel()
                progress.end()
            seconds = time.monotonic() - started
            errors, tries = await show.errors(), await show.tries()
        problems = check(show, errors, tries)
        say(table(rows(show, errors, tries)))
        say(
            f"Error queue {show.error_queue}: {len(errors)} messages, each with a body that was not taken in "
            f"{RETRIES + 1} tries {RETRIES_DELAY} s apart, and by whom."
        )
        if problems:
            raise LocalError(f"the demonstration is not right: {'; '.join(problems[:5])}")
        say(f"Checked: every body arrived as it was posted, byte for byte. {seconds:.1f} s in all.")


class Row(NamedTuple):
    """What is said of one subscriber in the table."""

    subscriber: str
    manner: str
    received: str
    tries: str
    given_up: str


def rows(show: Demonstration, errors: list[dict[str, Any]], tries: dict[str, int]) -> list[Row]:
    """The table's rows."""
    given_up = Counter(each["name"] for error in errors for each in error["subscribers"])
    # The dead one cannot tell how often it was tried.
    seen = {each.name: (len(each.accepted), each.tries.total()) for each in show.sinks}
    return [
        Row(each.name, each.manner, f"{accepted} of {len(show.posted)}", str(tried), str(given_up[each.name]))
        for each in [*show.sinks, show.dead]
        for accepted, tried in [seen.get(each.name, (0, tries[each.name]))]
    ]


def table(rows: list[Row]) -> str:
    """The rows under headings, in columns of the necessary width."""
    lines = [Row("subscriber", "what it does", "received", "tries", "in the error queue"), *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    return "\n".join(["", texts[0], "  ".join("-" * width for width in widths), *texts[1:], ""])


def _size(bodies: list[str]) -> str:
    sizes = [len(body.encode()) for body in bodies]
    return f"{min(sizes)} bytes to {max(sizes) / 1000:.0f} kB each, {sum(sizes) / 1000:.0f} kB in all"
