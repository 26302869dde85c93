"""Frames of clients must be masked (RFC 6455, section 5.1): aiohttp takes unmasked ones, so they are found here.

The local stack's door closes such a connection with 1002, as API Gateway does.
"""

from __future__ import annotations

from typing import Any

from aiohttp import WSCloseCode, web
from aiohttp.http import WebSocketError

_LENGTHS = {126: 2, 127: 8}
"""Bytes of a longer length, by what stands in its place."""


class MaskedFrames:
    """Goes along a client's bytes from frame to frame and looks at the heads only."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._left = 0

    def feed(self, data: bytes) -> bool:
        """Go on; whether every frame that begins in the bytes is masked."""
        at = 0
        while at < len(data):
            if self._left:
                passed = min(self._left, len(data) - at)
                self._left -= passed
                at += passed
                continue
            self._head.append(data[at])
            at += 1
            if len(self._head) < 2:
                continue
            if not self._head[1] & 0x80:
                return False
            short = self._head[1] & 0x7F
            more = _LENGTHS.get(short, 0)
            if len(self._head) == 2 + more:
                # The mask's four bytes are in the way, too.
                self._left = 4 + (int.from_bytes(self._head[2:]) if more else short)
                self._head.clear()
        return True


class _Checked:
    """aiohttp's reader of a connection, behind a look at the heads."""

    def __init__(self, reader: Any, queue: Any, frames: MaskedFrames) -> None:
        self._reader = reader
        self._queue = queue
        self._frames = frames
        self._refused = False

    def feed_data(self, data: bytes) -> Any:
        """Hand bytes on, unless a frame in them is not masked: then the connection has failed."""
        if not self._refused and self._frames.feed(data):
            return self._reader.feed_data(data)
        self.refuse()
        return True, b""

    def refuse(self) -> None:
        """Let whoever receives close the connection."""
        if not self._refused:
            self._refused = True
            error = WebSocketError(WSCloseCode.PROTOCOL_ERROR, "a client's frames must be masked")
            self._queue.set_exception(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)


class MaskedWebSocketResponse(web.WebSocketResponse):
    """A connection that a client closes by a frame without a mask."""

    def _post_start(self, request: web.BaseRequest, *rest: Any) -> None:
        # aiohttp has no place of its own for this. What came with the handshake is read at once by the call below.
        protocol: Any = request.protocol
        early = bytes(protocol._message_tail)
        super()._post_start(request, *rest)
        frames = MaskedFrames()
        masked = frames.feed(early)
        checked = _Checked(protocol._payload_parser, self._reader, frames)
        protocol._payload_parser = checked
        if not masked:
            checked.refuse()
