"""How the emulator's functions get work from queues and streams. Runs in the emulator's process, on its loop.

MiniStack has one thread that looks at every mapping in turn, runs functions for streams itself and meanwhile looks at
nothing else, and sleeps 50 ms where it found nothing; what it hands out to functions, requests on the loop hand out
too. On AWS mappings know nothing of each other, and a message is handed out once. Here queues and streams have a task
each, which asks the services as a client does and sleeps until there is work. Messages are handed out fairly
(:mod:`local.emulator.groups`), and batches of a stream are run as AWS runs them (:mod:`local.emulator.lanes`): so many
side by side as ``ParallelizationFactor`` says, apart by partition key, and after ``MaximumBatchingWindowInSeconds``.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

from ministack.services import dynamodb, lambda_svc, sqs  # type: ignore[import-not-found]

from ..iam.emulator_roles import may_read
from ..state.memory_journal import at_once
from .groups import SPARE_RUNS, TAKEN_FOR, For, in_turn, owner
from .lanes import Batch, Lanes
from .turns import OWNERS

WINDOW_S = 2.0
"""The longest batching window here: who looks for a record on a machine of their own does not wait a minute."""
LOOK_S = 1.0
"""How often mappings are looked at without a reason."""
GRANTED_S = 60.0
"""How long what a mapping's function may read is taken as it was."""
HANDED_OUT_S = 0.01
"""How long a long poll leaves a message that comes to those who hand it out: a process of its own is better."""
TOGETHER_S = 0.05
"""How long after a message becomes visible others that do are handed out with it. Copies of an order, hidden until the
same moment by different runs, would otherwise be tried side by side, a few milliseconds apart."""
READ = 10_000
"""Records read at a time."""
RUNS = 5
"""Runs of a queue's mapping side by side, if it has no ``MaximumConcurrency``."""
PAUSE_S = 1.0
"""How long after a run that failed no other one of its queue's mapping begins."""
_log = logging.getLogger("pushhub.sources")

Mapping = dict[str, Any]
"""An event source mapping, as Lambda lists it."""


class RunFailed(Exception):
    """A function's run has failed; the text says how."""


class Arrivals:
    """Wakes those who wait for something to come. What comes is told from any thread."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def set(self) -> None:
        """Something has come."""
        for each in list(self._waiting):
            each.get_loop().call_soon_threadsafe(_done, each)

    async def wait(self, seconds: float) -> bool:
        """Wait until something comes, or for some seconds; whether something came."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        try:
            return bool((await asyncio.wait({waiting}, timeout=seconds))[0])
        finally:
            self._waiting.discard(waiting)


def _done(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


class Source:
    """Hands out work of one kind.

    Args:
        kind: Part of the ARN of what it comes from.
        arrivals: Tell of new work.
    """

    def __init__(self, kind: str, arrivals: Arrivals) -> None:
        self._kind = kind
        self._arrivals = arrivals
        self._mappings: list[Mapping] = []
        self._listed_at = 0.0
        self._granted: dict[str, tuple[float, bool]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.paused = False

    async def run(self) -> None:
        """Go on for as long as the process lives."""
        while True:
            due = time.time() + LOOK_S
            for mapping in [] if self.paused else self._listed():
                try:
                    due = min([due, *self._look(mapping)])
                except Exception:  # noqa: BLE001 (told below; all other work waits for this task)
                    _log.exception("%s cannot be read", mapping["EventSourceArn"])
            await self._arrivals.wait(max(0.001, due - time.time()))

    def _look(self, mapping: Mapping) -> Iterator[float]:
        """Begin the runs that are due; when to look again, if that is known."""
        raise NotImplementedError

    def _listed(self) -> list[Mapping]:
        now = time.time()
        if self._listed_at + LOOK_S <= now:
            path, most = "/2015-03-31/event-source-mappings", {"MaxItems": ["1000"]}
            listed = json.loads(at_once(lambda_svc.handle_request("GET", path, {}, b"", most))[2])
            self._mappings = [
                each
                for each in listed["EventSourceMappings"]
                if self._kind in each["EventSourceArn"] and each["State"] == "Enabled" and self._may(each, now)
            ]
            self._listed_at = now
        return self._mappings

    def _may(self, mapping: Mapping, now: float) -> bool:
        """Whether the function's role grants what the mapping does."""
        until, may = self._granted.get(mapping["UUID"], (0.0, False))
        if now >= until:
            path = f"/2015-03-31/functions/{quote(mapping['FunctionArn'], safe='')}/configuration"
            status, _, body = at_once(lambda_svc.handle_request("GET", path, {}, b"", {}))
            may = status == 200 and may_read(mapping, json.loads(body))
            self._granted[mapping["UUID"]] = now + (GRANTED_S if may else LOOK_S), may
        return may

    def _begin(self, run: Any) -> None:
        task = asyncio.get_running_loop().create_task(run)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _run_function(mapping: Mapping, records: list[Any], owners: set[str], *, urgent: bool = True) -> Any:
    """What a function returns.

    Raises:
        RunFailed: It has failed, or could not be run.
    """
    arn = mapping["FunctionArn"]
    with OWNERS.run(arn, owners, urgent=urgent):
        status, headers, body = await lambda_svc.handle_request(
            "POST",
            f"/2015-03-31/functions/{quote(arn, safe='')}/invocations",
            {},
            json.dumps({"Records": records}).encode(),
            {},
        )
    if status != 200 or "X-Amz-Function-Error" in headers:
        raise RunFailed(f"{arn}: {bytes(body).decode(errors='replace')[:2000]}")
    return json.loads(body)


def _ask_queue(action: str, queue: str, **more: Any) -> dict[str, Any]:
    """What a queue answers to a request that waits for nothing."""
    body = json.dumps({"QueueUrl": queue, **more}).encode()
    status, _, answer = at_once(sqs.handle_request("POST", "/", {"x-amz-target": f"AmazonSQS.{action}"}, body, {}))
    content: dict[str, Any] = json.loads(answer) if answer else {}
    # One that is deleted has a mapping for a moment.
    return content if status == 200 else {}


class Queues(Source):
    """Hands out messages of queues."""

    def __init__(self, arrivals: Arrivals) -> None:
        super().__init__(":sqs:", arrivals)
        self._running: Counter[str] = Counter()
        self._not_before: dict[str, float] = {}
        self._in_hand: dict[int, tuple[str, list[dict[str, Any]]]] = {}
        self._next: dict[str, float] = {}

    @property
    def has_runs(self) -> bool:
        """Whether messages are with a function now."""
        return bool(self._in_hand)

    def give_back(self) -> None:
        """Make the messages that are with functions now visible again."""
        for queue, messages in list(self._in_hand.values()):
            entries = [
                {"Id": str(number), "ReceiptHandle": each["ReceiptHandle"], "VisibilityTimeout": 0}
                for number, each in enumerate(messages)
            ]
            _ask_queue("ChangeMessageVisibilityBatch", queue, Entries=entries)

    def collected_fairly(self, collect: Callable[..., Any]) -> Callable[..., Any]:
        """What stands for a part of a receive: standard queues hand out messages as AWS's fair queues do.

        Args:
            collect: That part, which takes the queue, how many messages, and for how long to hide them.
        """

        def collect_fairly(queue: dict[str, Any], most: int, *hidden_s: Any) -> Any:
            now = time.time()
            fair = {} if queue["is_fifo"] else {"messages": in_turn(queue["messages"], TAKEN_FOR.get(), now, most)}
            taken = collect({**queue, **fair}, most, *hidden_s)
            if TAKEN_FOR.get() is not For.CALLER and not taken:
                later = (each["visible_at"] for each in queue["messages"] if each["visible_at"] > now)
                self._next[queue["name"]] = min(later, default=now + LOOK_S)
            return taken

        return collect_fairly

    def _look(self, mapping: Mapping) -> Iterator[float]:
        uuid, queue = mapping["UUID"], mapping["EventSourceArn"].rpartition(":")[2]
        limit = (mapping.get("ScalingConfig") or {}).get("MaximumConcurrency") or RUNS
        # In one run at a time, messages of a group keep their order.
        limit, spare = (1, 0) if queue.endswith(".fifo") else (limit, SPARE_RUNS * (limit > 1))
        if self._not_before.get(uuid, 0.0) > time.time():
            yield self._not_before[uuid]
            return
        while self._running[uuid] < limit + spare:
            token = TAKEN_FOR.set(For.RUN if self._running[uuid] < limit else For.SPARE_RUN)
            try:
                messages = _ask_queue(
                    "ReceiveMessage",
                    queue,
                    MaxNumberOfMessages=min(10, mapping["BatchSize"]),
                    WaitTimeSeconds=0,
                    AttributeNames=["All"],
                    MessageAttributeNames=["All"],
                ).get("Messages", [])
            finally:
                TAKEN_FOR.reset(token)
            if not messages:
                yield self._next.get(queue, time.time() + LOOK_S) + TOGETHER_S
                return
            self._running[uuid] += 1
            self._in_hand[id(messages)] = queue, messages
            self._begin(self._run(mapping, queue, messages))

    async def _run(self, mapping: Mapping, queue: str, messages: list[dict[str, Any]]) -> None:
        uuid = mapping["UUID"]
        records = [_record(mapping, each) for each in messages]
        owners = {owner({"group_id": each["attributes"].get("MessageGroupId")}) for each in records}
        try:
            wanted = lambda_svc._apply_filter_criteria(records, mapping)
            answer = await _run_function(mapping, wanted, owners - {""}) if wanted else None
            failed = set()
            if "ReportBatchItemFailures" in mapping.get("FunctionResponseTypes", []) and isinstance(answer, dict):
                failed = {each["itemIdentifier"] for each in answer.get("batchItemFailures") or []}
            done = [
                {"Id": str(number), "ReceiptHandle": each["ReceiptHandle"]}
                for number, each in enumerate(messages)
                if each["MessageId"] not in failed
            ]
            if done:
                _ask_queue("DeleteMessageBatch", queue, Entries=done)
        except RunFailed as error:
            self._not_before[uuid] = time.time() + PAUSE_S
            _log.warning("%s", error)
        finally:
            self._running[uuid] -= 1
            del self._in_hand[id(messages)]
            self._arrivals.set()


def _record(mapping: Mapping, message: dict[str, Any]) -> dict[str, Any]:
    """A message as functions get it."""
    arn = mapping["EventSourceArn"]
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message.get("Attributes", {}),
        "messageAttributes": {
            name: {key[0].lower() + key[1:]: each for key, each in about.items()}
            for name, about in message.get("MessageAttributes", {}).items()
        },
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": arn.split(":")[3],
    }


class Streams(Source):
    """Hands out records of table streams."""

    def __init__(self, arrivals: Arrivals) -> None:
        super().__init__(":dynamodb:", arrivals)
        self._lanes: dict[str, Lanes] = {}

    def _look(self, mapping: Mapping) -> Iterator[float]:
        uuid, table = mapping["UUID"], mapping["EventSourceArn"].split("/")[1]
        start, end = dynamodb.stream_start_position(table), dynamodb.stream_end_position(table)
        lanes = self._lanes.get(uuid)
        if lanes is None:
            # Lambda notes where a new mapping begins.
            lanes = self._lanes[uuid] = Lanes(
                _positions().get(uuid, start),
                lanes=mapping.get("ParallelizationFactor") or 1,
                batch_size=mapping.get("BatchSize") or 100,
                window_s=min(WINDOW_S, mapping.get("MaximumBatchingWindowInSeconds") or 0),
            )
        lanes.position = max(lanes.position, start)
        if lanes.position < end:
            records = dynamodb.stream_records_since(table, lanes.position, READ)
            wanted = {id(each) for each in lambda_svc._apply_filter_criteria(records, mapping)}
            lanes.read([each if id(each) in wanted else None for each in records], time.time())
            _positions()[uuid] = lanes.checkpoint
        if not lanes.is_idle:
            for batch in lanes.ready(time.time()):
                self._begin(self._run(mapping, lanes, batch))
            due = lanes.next_due()
            if due is not None:
                yield due

    async def _run(self, mapping: Mapping, lanes: Lanes, batch: Batch) -> None:
        # Nobody waits for what waits for more.
        urgent = not mapping.get("MaximumBatchingWindowInSeconds")
        done = False
        try:
            await _run_function(mapping, batch.records, batch.owners, urgent=urgent)
            done = True
        except RunFailed as error:
            _log.warning("%s", error)
        finally:
            lanes.through(batch, time.time(), done=done)
            _positions()[mapping["UUID"]] = lanes.checkpoint
            self._arrivals.set()


def _positions() -> Any:
    """How far each mapping is in its stream, which is saved with the functions."""
    return lambda_svc._dynamodb_stream_positions


def take_over() -> tuple[Queues, Streams]:
    """Let queues and streams be handed out here, and let a long poll end as soon as a message comes: MiniStack looks
    ten times a second.

    Returns:
        What is to be run on the emulator's loop.
    """
    sent, written = Arrivals(), Arrivals()
    queues, streams = Queues(sent), Streams(written)
    # What is written to a table concerns the streams alone.
    sqs.esm_wake, dynamodb.esm_wake = sent, written
    lambda_svc._poll_loop = lambda: None
    sqs._collect_msgs = queues.collected_fairly(sqs._collect_msgs)

    async def sleep(seconds: float) -> None:
        if await sent.wait(seconds):
            await asyncio.sleep(HANDED_OUT_S)

    sqs.asyncio = SimpleNamespace(**{**vars(asyncio), "sleep": sleep})
    return queues, streams
