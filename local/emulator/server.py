"""How the emulator serves HTTP. Runs in the emulator's process.

MiniStack's own server, hypercorn, reads requests in Python, which is half of the emulator's CPU. Here uvicorn serves
them, with a parser in C.
"""

from __future__ import annotations

from typing import Any

import hypercorn.asyncio  # type: ignore[import-not-found]
import uvicorn  # type: ignore[import-not-found]


def serve_by_uvicorn() -> None:
    """Let uvicorn serve what MiniStack hands to hypercorn."""
    hypercorn.asyncio.serve = _serve


async def _serve(app: Any, config: Any) -> None:
    """Stands for ``hypercorn.asyncio.serve``.

    Args:
        app: The emulator, as an ASGI application.
        config: hypercorn's; where to listen and for how long to keep a connection.
    """
    host, _, port = config.bind[0].rpartition(":")
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            host=host,
            port=int(port),
            http="httptools",
            ws="wsproto",
            # API Gateway sends no pings, and the front door's answers stand behind what a consumer has sent.
            ws_ping_interval=None,
            lifespan="on",
            timeout_keep_alive=config.keep_alive_timeout,
            timeout_graceful_shutdown=config.graceful_timeout,
            # Headers are the emulator's and the front door's alone.
            proxy_headers=False,
            server_header=False,
            date_header=False,
            access_log=False,
            log_config=None,
            # For each handshake it would log the query at level INFO, in which consumers have their token.
            log_level="warning",
        )
    )
    await server.serve()
