"""How the emulator's functions get work from queues and streams. Runs in the emulator's process.

MiniStack has one thread that looks at every mapping in turn, runs functions for streams itself and meanwhile looks at
nothing else, and sleeps 50 ms where it found nothing. On AWS mappings know nothing of each other. Here queues and
streams have a thread each, which sleeps until there is work; each batch is run on a thread of its own, and those of a
stream as AWS runs them (:mod:`local.emulator_lanes`): so many side by side as ``ParallelizationFactor`` says, apart by
partition key, and after ``MaximumBatchingWindowInSeconds``.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ministack.core import concurrency  # type: ignore[import-not-found]
from ministack.services import dynamodb, lambda_svc, sqs  # type: ignore[import-not-found]

if TYPE_CHECKING:
    from local.emulator_lanes import Batch, Lanes
    from local.emulator_turns import OWNERS
else:
    # Put there by the emulator's process, which has no package "local".
    _lanes = sys.modules["pushhub_emulator_lanes"]
    Batch, Lanes = _lanes.Batch, _lanes.Lanes
    OWNERS = sys.modules["pushhub_emulator_turns"].OWNERS

WINDOW_S = 2.0
"""The longest batching window here: who looks for a record on a machine of their own does not wait a minute."""
LOOK_S = 1.0
"""How often mappings are looked at without a reason."""
HANDED_OUT_S = 0.01
"""How long a long poll leaves a message that comes to those who hand it out: a process of its own is better."""
TOGETHER_S = 0.05
"""How long after a message becomes visible others that do are handed out with it. Copies of an order, hidden until the
same moment by different runs, would otherwise be tried side by side, a few milliseconds apart."""
READ = 10_000
"""Records read at a time."""
_log = logging.getLogger("pushhub.sources")

_all_mappings = lambda_svc._iter_all_esms

Mapping = tuple[str, str, dict[str, Any]]
"""Account, region and record of an event source mapping."""


class Queues:
    """Hands out messages of queues, from a thread of its own.

    Args:
        paused: Says whether nothing may be handed out now.
    """

    def __init__(self, paused: Callable[[], bool]) -> None:
        self._paused = paused
        self._next = 0.0

    def run(self) -> None:
        """Go on for as long as the process lives."""
        while True:
            concurrency.esm_wake.clear()
            try:
                found = not self._paused() and lambda_svc._poll_sqs()
            except Exception:  # noqa: BLE001 (told below; all other work waits for this thread)
                _log.exception("queues cannot be read")
                found = False
            if not found:
                concurrency.esm_wake.wait(min(LOOK_S, max(0.001, self._next - time.time())))

    def worth_a_look(self) -> Iterator[Mapping]:
        """Mappings whose queue has a message to hand out. MiniStack looks closely at each that it is given."""
        now = time.time()
        self._next = now + LOOK_S
        for account, region, mapping in _all_mappings():
            queue = _queue(account, region, mapping)
            if queue is None:
                continue
            earliest = min((each["visible_at"] for each in list(queue["messages"])), default=None)
            if earliest is None:
                continue
            if earliest <= now:
                yield account, region, mapping
            else:
                self._next = min(self._next, earliest + TOGETHER_S)


@dataclass
class _Reader:
    """One mapping's way through a stream.

    Attributes:
        mapping: Its record.
        scope: Account and region.
        function: What it runs.
        lanes: How far it is.
    """

    mapping: dict[str, Any]
    scope: tuple[str, str]
    function: dict[str, Any]
    lanes: Lanes

    def note(self) -> None:
        """Note where a restart goes on."""
        lambda_svc._dynamodb_stream_positions.set_scoped(*self.scope, self.mapping["UUID"], self.lanes.checkpoint)


class Streams:
    """Hands out records of table streams, from a thread of its own.

    Args:
        paused: Says whether nothing may be handed out now.
    """

    def __init__(self, paused: Callable[[], bool]) -> None:
        self.wake = threading.Event()
        self._paused = paused
        self._readers: dict[str, _Reader] = {}
        self._turn = threading.Lock()

    def run(self) -> None:
        """Go on for as long as the process lives."""
        while True:
            self.wake.clear()
            due = time.time() + LOOK_S
            try:
                if not self._paused():
                    due = min([due, *self._look()])
            except Exception:  # noqa: BLE001 (told below; all other work waits for this thread)
                _log.exception("streams cannot be read")
            self.wake.wait(max(0.001, due - time.time()))

    def _look(self) -> Iterator[float]:
        """Run what is ready; when each mapping is due next."""
        mappings = [each for each in _all_mappings() if ":dynamodb:" in each[2].get("EventSourceArn", "")]
        known = {mapping["UUID"] for _, _, mapping in mappings}
        with self._turn:
            self._readers = {uuid: reader for uuid, reader in self._readers.items() if uuid in known}
        for account, region, mapping in mappings:
            if self._has_nothing(account, region, mapping):
                continue
            function, _ = lambda_svc._effective_func_record_for_qualifier(
                lambda_svc._functions.get_scoped(account, region, mapping["FunctionName"]), mapping.get("Qualifier")
            )
            name = _table(mapping)
            table = dynamodb._tables.get_scoped(account, region, name)
            read = table is not None and table.get("LatestStreamArn") == mapping["EventSourceArn"]
            if function is None or not read or not mapping.get("Enabled", True):
                continue
            with self._turn:
                reader = self._read(account, region, mapping, name, function)
                ready = reader.lanes.ready(time.time())
                due = reader.lanes.next_due()
            for batch in ready:
                concurrency.spawn_background(self._run, reader, batch, thread_name="pushhub-stream")
            if due is not None:
                yield due

    def _has_nothing(self, account: str, region: str, mapping: dict[str, Any]) -> bool:
        """Whether there is nothing to do for a mapping: each write to any table makes all of them be looked at."""
        with self._turn:
            reader = self._readers.get(mapping["UUID"])
            end = dynamodb.stream_end_position(_table(mapping), account_id=account, region=region)
            return reader is not None and reader.lanes.is_idle and reader.lanes.position == end

    def _read(
        self, account: str, region: str, mapping: dict[str, Any], table: str, function: dict[str, Any]
    ) -> _Reader:
        """The mapping's reader, with what is new in its stream."""
        scope = {"account_id": account, "region": region}
        start = dynamodb.stream_start_position(table, **scope)
        reader = self._readers.get(mapping["UUID"])
        if reader is None:
            position = lambda_svc._dynamodb_stream_positions.get_scoped(account, region, mapping["UUID"])
            if position is None:
                latest = mapping.get("StartingPosition", "LATEST") != "TRIM_HORIZON"
                position = dynamodb.stream_end_position(table, **scope) if latest else start
            lanes = Lanes(
                position,
                lanes=mapping.get("ParallelizationFactor") or 1,
                batch_size=mapping.get("BatchSize") or 100,
                window_s=min(WINDOW_S, mapping.get("MaximumBatchingWindowInSeconds") or 0),
            )
            reader = self._readers[mapping["UUID"]] = _Reader(mapping, (account, region), function, lanes)
        reader.function, lanes = function, reader.lanes
        lanes.position = max(lanes.position, start)
        records = dynamodb.stream_records_since(table, lanes.position, READ, **scope)
        wanted = {id(each) for each in lambda_svc._apply_filter_criteria(records, mapping)}
        lanes.read([each if id(each) in wanted else None for each in records], time.time())
        reader.note()
        return reader

    def _run(self, reader: _Reader, batch: Batch) -> None:
        """Run one batch."""
        name, failed = reader.mapping["FunctionName"], True
        # Nobody waits for what waits for more.
        urgent = not reader.mapping.get("MaximumBatchingWindowInSeconds")
        try:
            with OWNERS.run(name, batch.owners, urgent=urgent):
                result = lambda_svc._execute_function(reader.function, {"Records": batch.records})
            failed = bool(result.get("error"))
            if failed:
                _log.warning("%s failed: %s\n%s", name, result.get("body"), result.get("log", ""))
            elif result.get("log"):
                _log.info("%s:\n%s", name, result["log"])
        finally:
            reader.mapping["LastProcessingResult"] = "FAILED" if failed else f"OK - {len(batch.records)} records"
            with self._turn:
                reader.lanes.through(batch, time.time(), done=not failed)
                if self._readers.get(reader.mapping["UUID"]) is reader:
                    reader.note()
            self.wake.set()


def hand_out_at_once(paused: Callable[[], bool]) -> None:
    """Let queues and streams be looked at as soon as they have something.

    Args:
        paused: Says whether nothing may be handed out now.
    """
    queues, streams = Queues(paused), Streams(paused)

    def run() -> None:
        threading.Thread(target=streams.run, daemon=True, name="pushhub-streams").start()
        queues.run()

    lambda_svc._poll_loop = run
    lambda_svc._iter_all_esms = queues.worth_a_look
    # What is written to a table concerns the streams alone.
    dynamodb.esm_wake = streams.wake


def _table(mapping: dict[str, Any]) -> str:
    """Name of the table whose stream a mapping reads."""
    name: str = mapping["EventSourceArn"].split("/stream/")[0].rpartition("/")[2]
    return name


class Arrivals:
    """Wakes those who wait for a message: the thread that hands them out, and long polls."""

    def __init__(self) -> None:
        self._polls: set[asyncio.Future[None]] = set()

    def set(self) -> None:
        """A message has come. May be called from any thread."""
        concurrency.esm_wake.set()
        for poll in list(self._polls):
            poll.get_loop().call_soon_threadsafe(_done, poll)

    async def sleep(self, seconds: float) -> None:
        """Wait until a message comes, or for some seconds."""
        poll = asyncio.get_running_loop().create_future()
        self._polls.add(poll)
        try:
            done, _ = await asyncio.wait({poll}, timeout=seconds)
            if done:
                await asyncio.sleep(HANDED_OUT_S)
        finally:
            self._polls.discard(poll)


def _done(poll: asyncio.Future[None]) -> None:
    if not poll.done():
        poll.set_result(None)


def answer_long_polls_at_once() -> None:
    """Let a long poll of a queue end as soon as a message comes. MiniStack looks ten times a second."""
    arrivals = Arrivals()
    sqs.esm_wake = arrivals
    sqs.asyncio = SimpleNamespace(**{**vars(asyncio), "sleep": arrivals.sleep})


def _queue(account: str, region: str, mapping: dict[str, Any]) -> dict[str, Any] | None:
    """The queue of a mapping, if it has one."""
    arn = mapping.get("EventSourceArn", "")
    name = arn.rpartition(":")[2]
    url = sqs._queue_name_to_url.get_scoped(account, region, name) if ":sqs:" in arn else None
    queue: dict[str, Any] | None = sqs._queues.get_scoped(
        account, region, url or sqs._queue_url_for_account(account, name)
    )
    return queue
