"""The emulator's process: MiniStack, stopped so that nothing under way is lost.

Run by :mod:`local.emulator` under the emulator's own interpreter (``python -P local/emulator_process.py``), which has neither
this package nor its dependencies. It makes up for three differences between MiniStack 1.5.33 and AWS that would lose or
delay accepted messages over a stop and a start, and for one that makes consumers of notifications wait:

* MiniStack saves how far each mapping has read a DynamoDB stream, but not the stream: after a restart records not yet
  read are gone, and as many new ones are skipped as had been read before. Here streams are saved with their tables.
* MiniStack stops while functions run, and their SQS messages stay invisible for the rest of their visibility timeout.
  Here SIGUSR1 hands no more work to functions, waits ``PUSHHUB_DRAIN_SECONDS`` at most for those under way, gives the
  messages of the others back to their queues, and then stops as SIGTERM does.
* MiniStack writes its state piece by piece, which takes half a minute for 30 MB on a busy machine, longer than a stop may
  take. Here each file is made at once.
* MiniStack answers OPTIONS with 403 where an API has no CORS configuration; AWS hands it to the route, where the hub answers browsers itself.
* MiniStack waits 50 ms for a log line after each run of a function that has written none, and hands a WebSocket API's frames
  on one at a time. Acknowledgements are not logged, so a few consumers would have them noted minutes late. Here it waits 5 ms.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TextIO

from ministack import app  # type: ignore[import-not-found]
from ministack.core import lambda_runtime, persistence  # type: ignore[import-not-found]
from ministack.services import apigateway, dynamodb, lambda_svc, scheduler  # type: ignore[import-not-found]

STREAMS = "pushhub_streams"
"""Key of the streams in DynamoDB's saved state."""

FRAMES_FUNCTION = "ConsumersFunction"
LOG_LINE_WAIT_S = 0.005

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


def save_at_once() -> None:
    """Let each state be made into text in one piece: unlike ``json.dump``, ``json.dumps`` does that in C."""

    def dump(state: Any, file: TextIO, *, default: Callable[[Any], Any]) -> None:
        file.write(json.dumps(state, default=default))

    persistence.json = SimpleNamespace(dump=dump, load=json.load, JSONDecodeError=json.JSONDecodeError)


def work_off_frames_soon() -> None:
    """Wait for log lines of the function that answers frames no longer than they need to come."""
    drain = lambda_runtime.Worker._drain_stderr_bounded

    def drain_soon(worker: Any, *args: float, **waits: float) -> Any:
        if FRAMES_FUNCTION in worker.func_name and not args:
            waits.setdefault("first_line_wait", LOG_LINE_WAIT_S)
        return drain(worker, *args, **waits)

    lambda_runtime.Worker._drain_stderr_bounded = drain_soon


def hand_on_preflights() -> None:
    """Let an API without a CORS configuration answer OPTIONS itself, as on AWS."""
    execute = apigateway._handle_execute_in_scope

    async def handle(api_id: str, stage: str, path: str, method: str, *rest: Any, **more: Any) -> Any:
        if method == "OPTIONS" and not (apigateway._apis.get(api_id) or {}).get("corsConfiguration"):
            # It looks for the very word. The hub reads methods in any case.
            method = "options"
        return await execute(api_id, stage, path, method, *rest, **more)

    apigateway._handle_execute_in_scope = handle


def pause_work_when_draining() -> None:
    """Let every source of work look empty once draining has begun, and know which SQS messages are with a function."""
    for module, name in (
        (lambda_svc, "_poll_sqs"),
        (lambda_svc, "_poll_dynamodb_streams"),
        (scheduler, "_tick_schedules"),
    ):
        setattr(module, name, _unless_draining(getattr(module, name)))
    run = lambda_svc._run_sqs_batch

    def run_sqs_batch(esm: Any, function: Any, event: Any, batch: list[dict[str, Any]], *queue: Any) -> None:
        _batches[id(batch)] = batch
        try:
            run(esm, function, event, batch, *queue)
        finally:
            _batches.pop(id(batch), None)

    lambda_svc._run_sqs_batch = run_sqs_batch


def _unless_draining(poll: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: False if _draining.is_set() else poll()


def drain_and_stop(*_: Any) -> None:
    """Begin to drain (a signal handler); the process stops when that is done."""
    if not _draining.is_set():
        _draining.set()
        threading.Thread(target=_drain, daemon=True, name="pushhub-drain").start()


def _drain() -> None:
    deadline = time.monotonic() + float(os.environ.get("PUSHHUB_DRAIN_SECONDS", "10"))
    quiet_since = time.monotonic()
    # A poll that began just before may still be about to take a batch: quiet must last a moment.
    while time.monotonic() < min(deadline, quiet_since + 0.2):
        if _batches or lambda_runtime.workers_in_use():
            quiet_since = time.monotonic()
        time.sleep(0.02)
    for batch in list(_batches.values()):
        for message in batch:
            message["visible_at"] = time.time()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    keep_streams()
    save_at_once()
    work_off_frames_soon()
    hand_on_preflights()
    pause_work_when_draining()
    signal.signal(signal.SIGUSR1, drain_and_stop)
    app.main()
