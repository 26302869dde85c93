"""An HTTP server that keeps what it was sent, byte for byte, and answers what it is told to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

__all__ = ["Upstream", "exchange", "serving"]

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


@dataclass
class Upstream:
    """The server.

    Attributes:
        answer: What it answers, whole.
        seconds: How long it takes to.
        heads: Request lines and headers received.
        bodies: Bodies received.
    """

    answer: bytes = OK
    seconds: float = 0.0
    heads: list[bytes] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    url: str = ""

    @property
    def line(self) -> bytes:
        """The last request line."""
        return self.heads[-1].split(b"\r\n")[0]

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """Headers of the last request, as sent."""
        return [
            (name, value)
            for name, _, value in (line.partition(b": ") for line in self.heads[-1].split(b"\r\n")[1:] if line)
        ]

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                sizes = [value for name, value in self.headers if name.lower() == b"content-length"]
                self.bodies.append(await reader.readexactly(int(sizes[0])) if sizes else b"")
                await asyncio.sleep(self.seconds)
                writer.write(self.answer)
                await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def serving(upstream: Upstream) -> AsyncIterator[None]:
    """Let it serve on a free port of loopback."""
    server = await asyncio.start_server(upstream.handle, "127.0.0.1", 0, limit=1 << 20)
    upstream.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield
    finally:
        server.close()


async def exchange(port: int, request: bytes) -> bytes:
    """Send raw bytes and read the answer until the connection closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        return await asyncio.wait_for(reader.read(), 90)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
