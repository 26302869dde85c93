"""What hostile endpoints do to their callers.

Each is reached by its name as the path: ``http://127.0.0.1:PORT/hang``.
"""

from __future__ import annotations

import gzip
import os

from tests.hostile.endpoint import Behaviour, Peer
from tests.hostile.odd_answers import ODD_ANSWERS

GZIP_BOMB = gzip.compress(bytes(16 * 1024 * 1024))
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


def _healthy(peer: Peer) -> bool:
    return peer.answer(b"fine")


def _status(peer: Peer) -> bool:
    """``/status/503``: answers with that status."""
    return peer.answer(status=f"{peer.request.path.rpartition('/')[2]} Told to")


def _odd(peer: Peer) -> bool:
    """``/odd/te-blank``: sends one of the odd answers, and keeps the connection open."""
    peer.send(ODD_ANSWERS[peer.request.path.rpartition("/")[2].replace("-", " ")])
    return True


def _echo_cookie(peer: Peer) -> bool:
    return peer.answer(headers="Set-Cookie: a=1; Path=/\r\nSet-Cookie: b=2\r\n")


def _hang(peer: Peer) -> None:
    peer.hang()


def _hang_in_head(peer: Peer) -> None:
    peer.send(b"HTTP/1.1 200 O")
    peer.hang()


def _hang_in_body(peer: Peer) -> None:
    peer.send(_HEAD + b"Content-Length: 10\r\n\r\nfine")
    peer.hang()


def _drip_head(peer: Peer) -> None:
    peer.drip(_HEAD + b"X-Padding: " + b"x" * 10_000)


def _drip_body(peer: Peer) -> None:
    peer.send(_HEAD + b"Content-Length: 10000\r\n\r\n")
    peer.drip(b"x" * 10_000)


def _endless_head(peer: Peer) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\nX-Padding: ")
    peer.repeat(b"x" * 8192)


def _endless_body(peer: Peer) -> None:
    peer.send(_HEAD + b"\r\n")
    peer.repeat(b"x" * 8192)


def _endless_chunks(peer: Peer) -> None:
    peer.send(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    peer.repeat(b"2000\r\n" + b"x" * 8192 + b"\r\n")


def _endless_chunk_extensions(peer: Peer) -> None:
    peer.send(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    peer.repeat(b"1;" + b"x" * 60_000 + b"\r\nx\r\n")


def _endless_trailers(peer: Peer) -> None:
    peer.send(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n")
    peer.repeat(b"X-Trailer: x\r\n" * 500)


def _endless_interim(peer: Peer) -> None:
    peer.repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 300)


def _interim(peer: Peer) -> bool:
    peer.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n")
    return peer.answer(b"fine")


def _switch_protocols(peer: Peer) -> None:
    peer.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
    peer.hang()


def _many_headers(peer: Peer) -> bool:
    return peer.answer(headers="".join(f"X-{n}: x\r\n" for n in range(5_001)))


def _big_header(peer: Peer) -> bool:
    return peer.answer(headers=f"X-Big: {'x' * 310_000}\r\n")


def _short_body(peer: Peer) -> None:
    peer.send(_HEAD + b"Content-Length: 100\r\n\r\nfine")


def _negative_length(peer: Peer) -> None:
    peer.send(_HEAD + b"Content-Length: -5\r\n\r\nfine")


def _length_no_number(peer: Peer) -> None:
    peer.send(_HEAD + b"Content-Length: many\r\n\r\nfine")


def _reason_utf8(peer: Peer) -> None:
    peer.send("HTTP/1.1 503 Überlastet – später\r\nContent-Length: 0\r\n\r\n".encode())


def _reason_latin1(peer: Peer) -> None:
    peer.send("HTTP/1.1 503 Überlastet\r\nContent-Length: 0\r\n\r\n".encode("latin-1"))


def _bad_chunk_size(peer: Peer) -> None:
    peer.send(_HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nfine\r\n0\r\n\r\n")


def _negative_chunk(peer: Peer) -> None:
    peer.send(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n")
    peer.repeat(b"x" * 8192)


def _cut_chunk(peer: Peer) -> None:
    peer.send(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n64\r\nfine")


def _gzip_bomb(peer: Peer) -> bool:
    return peer.answer(GZIP_BOMB, headers="Content-Encoding: gzip\r\n")


def _garbage(peer: Peer) -> None:
    peer.send(os.urandom(512))


def _garbage_status(peer: Peer) -> None:
    peer.send(b"HTTP/1.1 two-hundred Fine\r\n\r\n")


def _other_version(peer: Peer) -> None:
    peer.send(b"HTTP/3 200\r\nContent-Length: 0\r\n\r\n")


def _hostile_reason(peer: Peer) -> bool:
    return peer.answer(status="500 Over\x1b[31m\tthere\x00 " + "x" * 1000)


def _redirect(peer: Peer) -> bool:
    return peer.answer(status="302 Found", headers=f"Location: http://127.0.0.1:{peer.port}/healthy\r\n")


def _bad_redirect(peer: Peer) -> bool:
    return peer.answer(status="301 Moved Permanently", headers="Location: http://[::1/\r\n")


def _close(peer: Peer) -> None:
    """Closes without an answer."""


def _reset(peer: Peer) -> None:
    peer.reset()


def _reset_in_body(peer: Peer) -> None:
    peer.send(_HEAD + b"Content-Length: 100\r\n\r\nfine")
    peer.stopping.wait(0.05)
    peer.reset()


def _refuse_early(peer: Peer) -> None:
    """Answers without reading the body, then reads and discards it so that the answer is not lost to a reset."""
    peer.answer(status="413 Content Too Large", headers="Connection: close\r\n")
    peer.hang()


def _close_second(peer: Peer) -> bool:
    """Answers the first request of each connection, and closes without an answer at the second."""
    return peer.nth == 0 and peer.answer(b"fine")


def _hang_second(peer: Peer) -> bool:
    if peer.nth == 0:
        return peer.answer(b"fine")
    peer.hang()
    return False


def _answer_and_close(peer: Peer) -> None:
    """Closes after the answer, without telling the client."""
    peer.answer(b"fine")


BEHAVIOURS: dict[str, Behaviour] = {
    function.__name__.removeprefix("_"): function
    for function in (
        _healthy,
        _status,
        _odd,
        _echo_cookie,
        _hang,
        _hang_in_head,
        _hang_in_body,
        _drip_head,
        _drip_body,
        _endless_head,
        _endless_body,
        _endless_chunks,
        _endless_chunk_extensions,
        _endless_trailers,
        _endless_interim,
        _interim,
        _switch_protocols,
        _many_headers,
        _big_header,
        _short_body,
        _negative_length,
        _length_no_number,
        _reason_utf8,
        _reason_latin1,
        _bad_chunk_size,
        _negative_chunk,
        _cut_chunk,
        _gzip_bomb,
        _garbage,
        _garbage_status,
        _other_version,
        _hostile_reason,
        _redirect,
        _bad_redirect,
        _close,
        _reset,
        _reset_in_body,
        _refuse_early,
        _close_second,
        _hang_second,
        _answer_and_close,
    )
}
BEFORE_BODY = frozenset({"refuse_early"})
