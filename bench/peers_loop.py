"""The least that keeps its promise: one asyncio loop that stores each message, posts it, and removes it when it has
been taken. It knows no retries that wait longer, no order, no limits, no records and no second process: the limit that
the others are compared with (``bench.peers``).

    python -m bench.peers_loop PORT STORE URL

``POST /messages`` takes a JSON list of bodies, and answers when they are in the store (SQLite, synced at each commit).
A new process delivers what the one before it has left.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys

import aiohttp
from aiohttp import web

CONCURRENT = 64
AGAIN_S = 3
TOGETHER_S = 0.01
"""How long outcomes wait for others, so that they share a commit."""


class Loop:
    """Messages of a store, and the tasks that deliver them to one address."""

    def __init__(self, store: str, url: str) -> None:
        self._url = url
        self._rows = sqlite3.connect(store)
        self._rows.execute("PRAGMA journal_mode = WAL")
        self._rows.execute("PRAGMA synchronous = FULL")
        self._rows.execute("CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, body TEXT)")
        self._due: asyncio.Queue[tuple[int, str]] = asyncio.Queue()
        self._taken: list[tuple[int]] = []

    async def accept(self, request: web.Request) -> web.Response:
        """Store messages, then answer."""
        bodies: list[str] = await request.json()
        stored = [
            (self._rows.execute("INSERT INTO messages (body) VALUES (?)", (each,)).lastrowid or 0, each)
            for each in bodies
        ]
        self._rows.commit()
        for each in stored:
            self._due.put_nowait(each)
        return web.Response(text="ok")

    async def work(self, app: web.Application) -> None:  # noqa: ARG002 (aiohttp gives it)
        """Begin with what is stored."""
        for each in self._rows.execute("SELECT id, body FROM messages ORDER BY id"):
            self._due.put_nowait(each)
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONCURRENT))
        self._tasks = [asyncio.create_task(self._deliver()) for _ in range(CONCURRENT)]
        self._tasks.append(asyncio.create_task(self._remove()))

    async def _deliver(self) -> None:
        while True:
            number, body = await self._due.get()
            try:
                async with self._session.post(self._url, data=body) as answer:
                    answer.raise_for_status()
                self._taken.append((number,))
            except (aiohttp.ClientError, TimeoutError):
                asyncio.get_running_loop().call_later(AGAIN_S, self._due.put_nowait, (number, body))

    async def _remove(self) -> None:
        while True:
            await asyncio.sleep(TOGETHER_S)
            if taken := self._taken:
                self._taken = []
                self._rows.executemany("DELETE FROM messages WHERE id = ?", taken)
                self._rows.commit()


def main(port: int, store: str, url: str) -> None:
    """Serve on loopback until killed."""
    loop = Loop(store, url)
    app = web.Application(client_max_size=2**24)
    app.router.add_post("/messages", loop.accept)
    app.on_startup.append(loop.work)
    web.run_app(app, host="127.0.0.1", port=port, print=None, access_log=None)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
