"""An endpoint in a separate process: answers 200 after a set time (``/in``), after eight seconds (``/hang``) or never
(``/never/...``).

``/stamp`` also answers after the set time and records when each body arrived; ``GET /stamps`` returns these times
(epoch seconds by body) and forgets them. ``PUT /down`` has it answer 503 instead until ``PUT /up``; both return how
many requests it has answered so.

    python -m bench.sink PORT DELAY_MS
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aiohttp import web

__all__ = ["main", "sink", "wait_until_open"]

HANG_SECONDS = 8
"""Below the push timeout of ten seconds, so that the endpoint counts as slow and not as dead."""


def main(port: int, delay_ms: int) -> None:
    """Serve on loopback until killed."""

    async def post(request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(delay_ms / 1000)
        return web.Response(text="ok")

    async def hang(request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(HANG_SECONDS)
        return web.Response(text="ok")

    async def never(request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(3_600)
        return web.Response(text="ok")

    stamps: dict[str, list[float]] = {}
    is_down, refused = False, 0

    async def switch(request: web.Request) -> web.Response:
        nonlocal is_down
        is_down = request.path == "/down"
        return web.json_response(refused)

    async def stamp(request: web.Request) -> web.Response:
        nonlocal refused
        if is_down:
            refused += 1
            return web.Response(status=503)
        stamps.setdefault(await request.text(), []).append(time.time())
        await asyncio.sleep(delay_ms / 1000)
        return web.Response(text="ok")

    async def stamped(request: web.Request) -> web.Response:  # noqa: ARG001
        known = web.json_response(stamps)
        stamps.clear()
        return known

    app = web.Application()
    app.router.add_post("/in", post)
    app.router.add_post("/never/{name}", never)
    app.router.add_post("/stamp", stamp)
    app.router.add_get("/stamps", stamped)
    app.router.add_put("/down", switch)
    app.router.add_put("/up", switch)
    app.router.add_post("/hang", hang)
    web.run_app(app, host="127.0.0.1", port=port, print=None, access_log=None)


def wait_until_open(port: int) -> None:
    """Wait until somebody listens there, up to twenty seconds."""
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)


@contextmanager
def sink(delay_ms: int) -> Iterator[int]:
    """The endpoint; yields its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.sink", str(port), str(delay_ms)], cwd=Path(__file__).parents[1]
    )
    try:
        wait_until_open(port)
        yield port
    finally:
        # It would wait for the requests that it never answers.
        process.kill()
        process.wait(10)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
