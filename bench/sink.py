"""An endpoint in a process of its own that answers 200 after a set time, or hangs on ``/hang``. Counts what it answers.

python -m bench.sink PORT DELAY_MS
"""

from __future__ import annotations

import asyncio
import sys

from aiohttp import web

__all__ = ["main"]

HANG_SECONDS = 8
"""Below the push timeout of ten seconds, so that the slow endpoint is slow and not dead."""


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

    app = web.Application()
    app.router.add_post("/in", post)
    app.router.add_post("/hang", hang)
    web.run_app(app, host="127.0.0.1", port=port, print=None, access_log=None)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
