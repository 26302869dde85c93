"""The emulator's process: MiniStack, stopped so that nothing under way is lost.

Run by :mod:`local.emulator.lifecycle` under the emulator's own interpreter, which has neither this package nor its
dependencies (:mod:`local.apart`). It makes up for differences between MiniStack 1.5.33 and AWS that would lose
or delay accepted messages, and for some that clients would notice:

* MiniStack saves its state service by service when it stops, and goes on without what it could not save. Here a
  snapshot of all services is taken each minute and at the end, whole or not at all
  (:mod:`local.state.memory_snapshots`), what changes between two is noted before it is answered
  (:mod:`local.state.memory_journal`), and what cannot be saved is not stopped.
* MiniStack saves how far each mapping has read a DynamoDB stream, but not the stream: after a restart records not yet
  read are gone, and as many new ones are skipped as had been read before. Here streams are saved with their tables.
* MiniStack stops while functions run, and their SQS messages stay invisible for the rest of their visibility timeout.
  Here ``POST /_pushhub/stop`` hands no more work to functions, waits ``PUSHHUB_DRAIN_SECONDS`` at most for those under
  way, gives the messages of the others back to their queues, and saves; then it may be ended.
* MiniStack answers that an object is stored in S3 when it could not be written to the disk. Here that is a failure.
* MiniStack hands out a queue's messages in their order. AWS has fair queues: :mod:`local.emulator.groups`.
* MiniStack answers OPTIONS with 403 where an API has no CORS configuration; AWS hands it to the route, where the hub
  answers browsers itself.
* MiniStack hands work to functions from one thread that waits for them, and a message that a request takes meanwhile a
  second time: :mod:`local.emulator.sources`.
* MiniStack reads a WebSocket client's next frame when the function is through with the one before:
  :mod:`local.emulator.frames`.
* MiniStack is served by hypercorn, which takes as much CPU as all of its own work: :mod:`local.emulator.server`.
* MiniStack starts an interpreter for each process of a function, and waits for log lines that do not come after each
  run: :mod:`local.emulator.functions`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
import time
import warnings
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from ministack import app  # type: ignore[import-not-found]
from ministack.core import persistence  # type: ignore[import-not-found]
from ministack.services import dynamodb, eventbridge, s3  # type: ignore[import-not-found]

from ..state.journal import SYNC_S, Journal
from ..state.memory_journal import keep_journal
from ..state.memory_snapshots import EVERY_S, NotSaved, Snapshots
from .frames import Frames, SpacedTurns
from .functions import run_functions, runs_in_progress
from .server import serve_by_uvicorn
from .shortcuts import take_shortcuts
from .sources import Queues, Source, take_over
from .turns import OWNERS

STREAMS = "pushhub_streams"
"""Key of the streams in DynamoDB's saved state."""
REQUESTS = "/_aws/execute-api/"
"""What paths of requests to APIs begin with; the API's id, its stage and the client's own path follow."""


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


async def drain(queues: Queues, streams: Source) -> None:
    """Hand no more work to functions, and wait for those under way."""
    queues.paused = streams.paused = True
    deadline = time.monotonic() + float(os.environ.get("PUSHHUB_DRAIN_SECONDS", "10"))
    quiet_since = time.monotonic()
    # What has just ended may be about to begin something else: quiet must last a moment.
    while time.monotonic() < min(deadline, quiet_since + 0.2):
        if queues.has_runs or runs_in_progress():
            quiet_since = time.monotonic()
        await asyncio.sleep(0.02)


def serve_requests_as_aws() -> None:
    """Change how clients of the hub's APIs are served, before MiniStack serves them.

    An API without a CORS configuration, as the hub's, answers OPTIONS itself. Requests of those who have runs in
    progress go to processes of lower priority. Frames of WebSockets are read while the function is at work, and
    acknowledgements that wait are handed on together.
    """
    inner, turns = app.app, SpacedTurns()

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            frames = Frames(receive, turns)
            try:
                await inner(scope, frames.next, send)
            finally:
                await frames.end()
        elif scope["type"] == "http" and scope["path"].startswith(REQUESTS):
            if scope["method"] == "OPTIONS":
                # MiniStack looks for the very word. The hub reads methods in any case.
                scope = {**scope, "method": "options"}
            with OWNERS.run("requests", _owner_of_request(scope)):
                await inner(scope, receive, send)
        else:
            await inner(scope, receive, send)

    app.app = serve


def _owner_of_request(scope: Any) -> set[str]:
    """The project in the path; if there is none, the client's token. What functions send to connections is nobody's."""
    path = scope["path"].removeprefix(REQUESTS).split("/")[2:]
    if path[:1] == ["@connections"]:
        return set()
    if path[:2] == ["3", "projects"] and len(path) > 2:
        return {path[2]} - {""}
    return {value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"}


def serve_own_routes(taken: Snapshots, queues: Queues, streams: Source) -> None:
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
                await drain(queues, streams)
                status = await _status_of(taken.take_final())
                if status != 200:
                    queues.paused = streams.paused = False
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


def begin_when_loaded(taken: Snapshots, queues: Queues, streams: Source) -> None:
    """Go on where the emulator was, once MiniStack has loaded its state and before its own clocks begin."""
    start = eventbridge.start_scheduler
    tasks: list[asyncio.Task[None]] = []

    def begin() -> None:
        taken.loaded()
        tasks.extend(asyncio.get_running_loop().create_task(each.run()) for each in (queues, streams))
        start()

    eventbridge.start_scheduler = begin


def _keep_syncing(journal: Journal) -> None:
    while True:
        time.sleep(SYNC_S)
        journal.sync()


def main() -> None:
    """Run the emulator until it is told to stop."""
    every_s = float(os.environ.get("PUSHHUB_SNAPSHOT_SECONDS", EVERY_S))
    root = Path(persistence.STATE_DIR)
    keep_streams()
    keep_objects_or_fail()
    run_functions()
    take_shortcuts()
    stream_insertions()
    queues, streams = take_over()
    journal = Journal(root)
    keep_journal(journal)
    threading.Thread(target=_keep_syncing, args=[journal], daemon=True, name="pushhub-journal").start()
    taken = Snapshots(root, every_s, journal, queues.give_back)
    taken.load()
    app.save_all = taken.save_all
    begin_when_loaded(taken, queues, streams)
    serve_requests_as_aws()
    serve_own_routes(taken, queues, streams)
    serve_by_uvicorn()
    # Each snapshot is a fork of a process with threads, on purpose; the child uses none of what they hold.
    warnings.filterwarnings("ignore", message=".*multi-threaded, use of fork", category=DeprecationWarning)
    app.main()
