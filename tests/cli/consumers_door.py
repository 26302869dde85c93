"""A topic with one subscriber, behind a WebSocket on this machine, that behaves like Notifications 2.0: unacknowledged
frames are sent again.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from tests.fakes.loopback import serving
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve


@dataclass
class Topic:
    """The topic.

    Attributes:
        frames: What it holds, by ack id, in order.
        acknowledged: In the order they came.
        break_after: The connection is cut after this many frames; 0 for never.
        connections: Number of connections made.
        url: Where consumers connect.
        open: Open connections.
        done: Set when all is acknowledged.
    """

    frames: dict[str, str] = field(default_factory=dict)
    acknowledged: list[str] = field(default_factory=list)
    break_after: int = 0
    connections: int = 0
    url: str = ""
    open: list[ServerConnection] = field(default_factory=list)
    done: threading.Event = field(default_factory=threading.Event)

    def publish(self, count: int) -> None:
        """Add notifications."""
        for number in range(len(self.frames), len(self.frames) + count):
            ack_id = f"A{number:07d}"
            body = json.dumps({"n": number})
            self.frames[ack_id] = f"{ack_id}\n/tenant/events/source {number}\nCREATE\n\n{body}"

    def serve(self, connection: ServerConnection) -> None:
        """Send unacknowledged frames and receive acknowledgements."""
        self.connections += 1
        self.open.append(connection)
        owed = [each for each in self.frames if each not in set(self.acknowledged)]
        if self.break_after:
            owed, self.break_after = owed[: self.break_after], 0
            cut = True
        else:
            cut = False
        try:
            for each in owed:
                connection.send(self.frames[each])
            for taken, ack_id in enumerate(connection, 1):
                self.acknowledged.append(str(ack_id))
                if set(self.acknowledged) == set(self.frames):
                    self.done.set()
                if cut and taken == len(owed):
                    connection.close()
        except ConnectionClosed:
            return


@contextmanager
def topic() -> Iterator[Topic]:
    """A topic that consumers can connect to until the block ends."""
    created = Topic()
    with serve(created.serve, "127.0.0.1", 0) as server:
        created.url = f"ws://127.0.0.1:{server.socket.getsockname()[1]}/"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield created
        server.shutdown()
        thread.join()


@dataclass
class Receiver:
    """A program that messages are forwarded to.

    Attributes:
        url: Its address.
        got: Headers and body of each request.
        answers: Statuses to answer with, in order; 200 after the last one.
        seen: Set once ``wake_at`` requests have arrived.
    """

    url: str = ""
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    wake_at: int = 0
    seen: threading.Event = field(default_factory=threading.Event)

    @property
    def numbers(self) -> list[int]:
        """The numbers in the bodies."""
        return [json.loads(body)["n"] for _, body in self.got]


@contextmanager
def receiver() -> Iterator[Receiver]:
    """A program that answers until the block ends."""
    created = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = self.rfile.read(length)
            if len(body) < length:
                # Its sender was killed in the middle of it.
                self.close_connection = True
                return
            created.got.append((dict(self.headers), body))
            if len(created.got) == created.wake_at:
                created.seen.set()
            self.send_response(created.answers.pop(0) if created.answers else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with serving(Handler) as url:
        created.url = f"{url}/in"
        yield created
