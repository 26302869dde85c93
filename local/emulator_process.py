"""The emulator's process: MiniStack, stopped so that nothing under way is lost.

Run by :mod:`local.emulator` under the emulator's own interpreter (``python -P local/emulator_process.py``), which has
neither this package nor its dependencies. It makes up for differences between MiniStack 1.5.33 and AWS that would lose
or delay accepted messages, and for some that clients would notice:

* MiniStack saves its state service by service when it stops, and goes on without what it could not save. Here a
  snapshot of all services is taken each minute and at the end, whole or not at all (:mod:`local.emulator_snapshots`),
  what changes between two is noted before it is answered (:mod:`local.emulator_journal`), and what cannot be saved is
  not stopped.
* MiniStack saves how far each mapping has read a DynamoDB stream, but not the stream: after a restart records not yet
  read are gone, and as many new ones are skipped as had been read before. Here streams are saved with their tables.
* MiniStack stops while functions run, and their SQS messages stay invisible for the rest of their visibility timeout.
  Here ``POST /_pushhub/stop`` hands no more work to functions, waits ``PUSHHUB_DRAIN_SECONDS`` at most for those under
  way, gives the messages of the others back to their queues, and saves; then it may be ended.
* MiniStack answers that an object is stored in S3 when it could not be written to the disk. Here that is a failure.
* MiniStack hands out a queue's messages in their order. AWS has fair queues: :mod:`local.emulator_groups`.
* MiniStack hands out messages on two threads, and the same one on both: :mod:`local.emulator_queues`.
* MiniStack answers OPTIONS with 403 where an API has no CORS configuration; AWS hands it to the route, where the hub
  answers browsers itself.
* MiniStack hands work to functions from one thread that waits for them: :mod:`local.emulator_sources`.
* MiniStack reads a WebSocket client's next frame when the function is through with the one before:
  :mod:`local.emulator_frames`.
* MiniStack waits 50 ms for a log line after each run of a function that has written none, with the answer in its hands:
  :mod:`local.emulator_workers`.
* MiniStack is served by hypercorn, which takes as much CPU as all of its own work: :mod:`local.emulator_server`.
* MiniStack starts an interpreter for each process of a function: :mod:`local.emulator_forks`.
* MiniStack answers calls one after the other, so one project's would stand behind another's backlog:
  :mod:`local.emulator_calls`.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Awaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ministack import app  # type: ignore[import-not-found]
from ministack.core import lambda_runtime, persistence  # type: ignore[import-not-found]
from ministack.services import apigateway, dynamodb, lambda_svc, s3, scheduler, sqs  # type: ignore[import-not-found]

if TYPE_CHECKING:
    from local.emulator_calls import let_calls_of_backlogs_give_way
    from local.emulator_forks import fork_functions
    from local.emulator_frames import Frames, Turns
    from local.emulator_groups import SPARE_RUNS, For, in_turn, owner
    from local.emulator_journal import keep_journal
    from local.emulator_queues import take_turns_at_queues
    from local.emulator_server import serve_by_uvicorn
    from local.emulator_shortcuts import take_shortcuts
    from local.emulator_snapshots import EVERY_S, NotSaved, Snapshots
    from local.emulator_sources import answer_long_polls_at_once, hand_out_at_once
    from local.emulator_turns import OWNERS
    from local.emulator_workers import ask_directly, share_code, take_turns
    from local.journal import SYNC_S, Journal
else:

    def _sibling(name: str):  # noqa: ANN202
        """A module beside this one.

        The folder is not on the path, because its names would hide those of other packages.
        """
        spec = importlib.util.spec_from_file_location(f"pushhub_{name}", Path(__file__).with_name(f"{name}.py"))
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    Journal, SYNC_S = _sibling("journal").Journal, sys.modules["pushhub_journal"].SYNC_S
    keep_journal = _sibling("emulator_journal").keep_journal
    _sibling("snapshots")
    OWNERS = _sibling("emulator_turns").OWNERS
    let_calls_of_backlogs_give_way = _sibling("emulator_calls").let_calls_of_backlogs_give_way
    _frames = _sibling("emulator_frames")
    Frames, Turns = _frames.Frames, _frames.Turns
    _snapshots = _sibling("emulator_snapshots")
    EVERY_S, NotSaved, Snapshots = _snapshots.EVERY_S, _snapshots.NotSaved, _snapshots.Snapshots
    _sibling("emulator_lanes")
    _groups = _sibling("emulator_groups")
    SPARE_RUNS, For, in_turn, owner = _groups.SPARE_RUNS, _groups.For, _groups.in_turn, _groups.owner
    take_turns_at_queues = _sibling("emulator_queues").take_turns_at_queues
    _sources = _sibling("emulator_sources")
    answer_long_polls_at_once, hand_out_at_once = _sources.answer_long_polls_at_once, _sources.hand_out_at_once
    _workers = _sibling("emulator_workers")
    ask_directly, share_code, take_turns = _workers.ask_directly, _workers.share_code, _workers.take_turns
    fork_functions = _sibling("emulator_forks").fork_functions
    serve_by_uvicorn = _sibling("emulator_server").serve_by_uvicorn
    take_shortcuts = _sibling("emulator_shortcuts").take_shortcuts

STREAMS = "pushhub_streams"
"""Key of the streams in DynamoDB's saved state."""

_draining = threading.Event()
_batches: dict[int, list[dict[str, Any]]] = {}
"""SQS messages with a function now, by the identity of their batch."""


def keep_streams() -> None:
    """Save and load the records of DynamoDB streams together with the tables."""
    save, load = dynamodb.get_state, dynamodb.load_persisted_state

    def get_state() -> dict[str, Any]:
        streams = {
            "records": dynamodb._stream_records,
            "trimmed": dynamodb._stream_trimmed,
            "sequence": dynamodb._stream_seq_counter,
        }
        return {**save(), STREAMS: streams}

    def load_persisted_state(state: dict[str, Any]) -> None:
        load(state)
        streams = state.get(STREAMS)
        if streams:
            dynamodb._stream_records.update(streams["records"])
            dynamodb._stream_trimmed.update(streams["trimmed"])
            dynamodb._stream_seq_counter = streams["sequence"]

    dynamodb.get_state, dynamodb.load_persisted_state = get_state, load_persisted_state


def stream_insertions() -> None:
    """Let streams have what PartiQL inserts."""
    insert = dynamodb._partiql_insert

    def insert_and_tell(table: dict[str, Any], statement: dict[str, Any]) -> Any:
        answer = insert(table, statement)
        if answer[0] == 200:
            item = statement["item"]
            dynamodb._emit_stream_event(statement["table"], "INSERT", None, item.get("M", item))
        return answer

    dynamodb._partiql_insert = insert_and_tell


_taken = threading.local()
"""What the messages are taken for that this thread takes now."""


def hand_out_fairly() -> None:
    """Hand out messages of standard queues as AWS's fair queues do: nobody stands behind another one's backlog."""
    collect, limit, hand_out = sqs._collect_msgs, lambda_svc._sqs_esm_concurrency, sqs._receive_messages_for_esm

    def collect_fairly(queue: dict[str, Any], most: int, *rest: Any) -> Any:
        if not queue["is_fifo"]:
            taken_for = getattr(_taken, "taken_for", For.CALLER)
            queue = {**queue, "messages": in_turn(queue["messages"], taken_for, time.time())}
        return collect(queue, most, *rest)

    def hand_out_for_run(*queue: Any) -> Any:
        _taken.taken_for = For.SPARE_RUN if _taken.spare else For.RUN
        try:
            return hand_out(*queue)
        finally:
            _taken.taken_for = For.CALLER

    def limit_with_spare_runs(mapping: dict[str, Any], *about: Any) -> int:
        allowed: int = limit(mapping, *about)
        # It is asked before each run.
        _taken.spare = lambda_svc._esm_inflight.get(mapping["UUID"], 0) >= allowed > 1
        return allowed + SPARE_RUNS * (allowed > 1)

    sqs._collect_msgs, lambda_svc._sqs_esm_concurrency = collect_fairly, limit_with_spare_runs
    sqs._receive_messages_for_esm = hand_out_for_run


def hand_on_preflights() -> None:
    """Let an API without a CORS configuration answer OPTIONS itself, as on AWS."""
    execute = apigateway._handle_execute_in_scope

    async def handle(api_id: str, stage: str, path: str, method: str, *rest: Any, **more: Any) -> Any:
        if method == "OPTIONS" and not (apigateway._apis.get(api_id) or {}).get("corsConfiguration"):
            # It looks for the very word. The hub reads methods in any case.
            method = "options"
        return await execute(api_id, stage, path, method, *rest, **more)

    apigateway._handle_execute_in_scope = handle


def read_frames_at_once() -> None:
    """Let frames be read while the function is at work, and acknowledgements that wait be handed on together."""
    handle = apigateway.handle_websocket
    turns = Turns()

    async def handle_frames(scope: Any, receive: Any, send: Any, *api: Any, **more: Any) -> None:
        frames = Frames(receive, turns)
        try:
            await handle(scope, frames.next, send, *api, **more)
        finally:
            await frames.end()

    apigateway.handle_websocket = handle_frames


def let_backlogs_of_requests_give_way() -> None:
    """Let requests of those who have runs in progress go to processes of lower priority."""
    invoke = apigateway._invoke_lambda_proxy

    async def invoke_for_owner(integration: dict[str, Any], *request: Any, **more: Any) -> Any:
        _, _, path, _, headers, *_ = request
        _, *parts = path.split("/", 4)
        project = parts[2] if parts[:2] == ["3", "projects"] and len(parts) > 2 else ""
        with OWNERS.run(integration["integrationUri"], {project or headers.get("authorization", "")} - {""}):
            return await invoke(integration, *request, **more)

    apigateway._invoke_lambda_proxy = invoke_for_owner


def pause_work_when_draining() -> None:
    """Let every source of work look empty once draining has begun, and know which SQS messages are with a function."""
    hand_out_at_once(_draining.is_set)
    tick = scheduler._tick_schedules
    scheduler._tick_schedules = lambda: False if _draining.is_set() else tick()
    run = lambda_svc._run_sqs_batch

    def run_sqs_batch(esm: Any, function: Any, event: Any, batch: list[dict[str, Any]], *queue: Any) -> None:
        owners = set(map(owner, batch))
        _batches[id(batch)] = batch
        try:
            with OWNERS.run(esm["FunctionName"], owners - {""}):
                run(esm, function, event, batch, *queue)
        finally:
            _batches.pop(id(batch), None)

    lambda_svc._run_sqs_batch = run_sqs_batch


async def drain() -> None:
    """Hand no more work to functions, wait for those under way, and give the messages of the others back."""
    _draining.set()
    deadline = time.monotonic() + float(os.environ.get("PUSHHUB_DRAIN_SECONDS", "10"))
    quiet_since = time.monotonic()
    # A poll that began just before may still be about to take a batch: quiet must last a moment.
    while time.monotonic() < min(deadline, quiet_since + 0.2):
        if _batches or lambda_runtime.workers_in_use():
            quiet_since = time.monotonic()
        await asyncio.sleep(0.02)


def give_back() -> None:
    """Make the SQS messages that are with functions now visible again."""
    for batch in list(_batches.values()):
        for message in batch:
            message["visible_at"] = time.time()


def keep_objects_or_fail() -> None:
    """Let S3 refuse an object that could not be written to the disk, instead of only saying so in its log."""
    persist = s3._persist_object
    failed: list[Any] = []

    class Noted(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.msg.startswith("Failed to persist S3 object"):
                failed.append(record.getMessage())

    s3.logger.addHandler(Noted(logging.WARNING))

    def persist_object(*arguments: Any) -> None:
        failed.clear()
        persist(*arguments)
        if failed:
            raise OSError(failed.pop())

    s3._persist_object = persist_object


def serve_own_routes(taken: Snapshots) -> None:
    """Answer ``/_pushhub/snapshot`` and ``/_pushhub/stop`` besides what MiniStack answers."""
    inner = app.app

    async def own(scope: Any, receive: Any, send: Any) -> None:
        route = (scope.get("method"), scope.get("path")) if scope["type"] == "http" else None
        match route:
            case ("GET", "/_pushhub/snapshot"):
                status = 200
            case ("POST", "/_pushhub/snapshot"):
                status = await _status_of(taken.take())
            case ("POST", "/_pushhub/stop"):
                await drain()
                status = await _status_of(taken.take_final())
                if status != 200:
                    _draining.clear()
            case _:
                await inner(scope, receive, send)
                return
        body = json.dumps(taken.state).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    app.app = own


async def _status_of(saving: Awaitable[None]) -> int:
    try:
        await saving
    except NotSaved:
        return 507
    return 200


def _keep_syncing(journal: Journal) -> None:
    while True:
        time.sleep(SYNC_S)
        journal.sync()


def main() -> None:
    """Run the emulator until it is told to stop."""
    keep_streams()
    keep_objects_or_fail()
    ask_directly()
    share_code()
    take_turns()
    fork_functions()
    take_shortcuts()
    stream_insertions()
    hand_out_fairly()
    hand_on_preflights()
    read_frames_at_once()
    let_backlogs_of_requests_give_way()
    answer_long_polls_at_once()
    pause_work_when_draining()
    every_s = float(os.environ.get("PUSHHUB_SNAPSHOT_SECONDS", EVERY_S))
    root = Path(persistence.STATE_DIR)
    journal = Journal(root, persistence._json_default)
    keep_journal(journal)
    # After what else stands for a queue's actions, so that a turn is for all of it.
    take_turns_at_queues()
    threading.Thread(target=_keep_syncing, args=[journal], daemon=True, name="pushhub-journal").start()
    taken = Snapshots(root, every_s, journal, give_back)
    app._load_persisted_state, app.save_all = taken.load, taken.save_all
    serve_own_routes(taken)
    app.app = let_calls_of_backlogs_give_way(app.app)
    serve_by_uvicorn()
    # Each snapshot is a fork of a process with threads, on purpose; the child uses none of what they hold.
    warnings.filterwarnings("ignore", message=".*multi-threaded, use of fork", category=DeprecationWarning)
    app.main()


if __name__ == "__main__":
    main()
