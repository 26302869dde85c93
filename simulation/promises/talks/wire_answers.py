"""What counts as an answer, and what is done about everything else that servers send: each try ends in its time, as one
request, whatever comes.

Sources: docs/ironmq.md ("A push", "What counts as an answer"), docs/troubleshooting.md ("A message does not arrive"),
SECURITY.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from simulation.promises.talks.internet import Again, End, Heard, Server, Step, Wait, said
from simulation.promises.talks.talk import Talk
from simulation.promises.talks.tries import TIMEOUT_S, Tries, place, sound

Answers = dict[str, Sequence[Step]]
"""What servers do at each request, by their names."""

OK = b"HTTP/1.1 200 OK\r\n"
LONG = b"Content-Length: 100\r\n\r\n"
HEAD, HEADERS, FRAMING_LINE = 300 * 1024, 5_000, 16 * 1024
"""The largest head of an answer, and the largest line between chunks."""

GIGABYTES = Again(b"x" * 65_536, 640)
"""More than anybody keeps; as far as a reader that never ends is told here."""

READ_AT_MOST = 2_000_000
"""Bytes that are taken of an answer that never ends."""


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_timed, _bounded, _broken, _taken, _asked, _redirected, _said, _early)


def _all(talk: Talk, about: str, answers: Answers, **subscriber: Any) -> tuple[Tries, dict[str, Server]]:
    """Send a message to each of some servers, and wait until all tries have ended."""
    tries = Tries(talk, about)
    places = {name: place(talk, f"{about}-{name}.example", steps) for name, steps in answers.items()}
    for name in answers:
        tries.send(name, f"http://{about}-{name}.example/in", **subscriber)
    talk.sleep(TIMEOUT_S + 20 + talk.put_off_s)
    for name, server in places.items():
        talk.came(f"one request to {about} {name}", 1, len(server.heard))
        sound(talk, name, server)
    return tries, places


INTERIM = b"HTTP/1.1 102 Processing\r\n\r\n"


def _dripping(piece: bytes, times: int = 60) -> list[Step]:
    """Something each second."""
    return [step for _ in range(times) for step in (Wait(1), piece)]


SLOW: Answers = {
    "silent": (),
    "in-the-head": (OK,),
    "in-the-body": (OK + LONG,),
    "in-a-chunk": (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",),
    "interim": (INTERIM, *_dripping(INTERIM)),
    "drips-its-head": (OK, *_dripping(b"X-A: b\r\n")),
    "drips-its-body": (OK + LONG, *_dripping(b"x")),
    "drips-a-byte": tuple(step for byte in OK * 3 for step in (Wait(0.9), bytes([byte]))),
}


def _timed(talk: Talk) -> None:
    """Whoever has not answered completely in ten seconds, or in the subscriber's ``timeout``, has not answered: however
    slowly bytes come.
    """
    tries, places = _all(talk, "slow", SLOW)
    for name in SLOW:
        tries.ended(name, error="timeout", took_s=TIMEOUT_S)
        talk.came(f"{name}: it is let go", True, all(each.closed_at is not None for each in places[name].connected))
    few: Answers = {name: SLOW[name] for name in ("silent", "drips-its-body")}
    tries, _ = _all(talk, "impatient", few, timeout=3)
    for name in few:
        tries.ended(name, error="timeout", took_s=3)
    late: Answers = {
        "just-in-time": (Wait(TIMEOUT_S - 0.5), said()),
        "in-parts": (Wait(4), OK, Wait(4), b"Content-Length: 0\r\n\r\n"),
    }
    tries, _ = _all(talk, "late", late)
    tries.ended("just-in-time", status=200, took_s=TIMEOUT_S - 0.5)
    tries.ended("in-parts", status=200, took_s=8)


def _head(size: int) -> bytes:
    """The head of a good answer, of so many bytes in all."""
    head = OK + b"Content-Length: 0\r\n"
    lines = bytearray()
    while size - len(head) - len(lines) - 2 > 20_000:
        lines += b"X-Filler: " + b"y" * 9_988 + b"\r\n"
    left = size - len(head) - len(lines) - 2
    lines += b"X-Last: " + b"z" * (left - 10) + b"\r\n"
    return head + bytes(lines) + b"\r\n"


def _many(count: int) -> bytes:
    """An answer with so many headers."""
    return OK + b"Content-Length: 0\r\n" + b"".join(b"X-%d: y\r\n" % each for each in range(count - 1)) + b"\r\n"


def _chunked(*parts: bytes) -> bytes:
    return OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(parts)


def _line(size: int) -> bytes:
    """A chunk whose line has so many bytes."""
    return b"4;" + b"e" * (size - 2) + b"\r\nfine\r\n0\r\n\r\n"


def _bounded(talk: Talk) -> None:
    """Heads and framing have bounds, beyond which nothing is read; of a body, so much is read as is kept."""
    within: Answers = {
        "head": (_head(HEAD),),
        "headers": (_many(HEADERS),),
        "chunk-line": (_chunked(_line(FRAMING_LINE - 2)),),
        "interim": (b"HTTP/1.1 103 Early\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", said()),
        "bytes": (said(b"x" * 2_000_000),),
        "without-end": (OK + b"\r\n", GIGABYTES),
        "large": (OK + b"Content-Length: 41943040\r\n\r\n", GIGABYTES),
        "chunks": (_chunked(), Again(b"1000\r\n" + b"x" * 4096 + b"\r\n", 10_000)),
    }
    tries, places = _all(talk, "within", within)
    for name in within:
        tries.ended(name, status=200)
    for name in ("without-end", "large", "chunks"):
        tries.ended(name, status=200, answer="x" * 300)
        _read_little(talk, name, places[name])
    beyond: Answers = {
        "head": (_head(HEAD + 1_024),),
        "headers": (_many(HEADERS + 1),),
        "line": (OK + b"X: ", GIGABYTES),
        "endless-headers": (OK, Again(b"X-More: and more\r\n", 200_000)),
        "endless-interim": (Again(INTERIM, 200_000),),
        "chunk-line": (_chunked(_line(FRAMING_LINE + 4_096)),),
        "trailers": (_chunked(b"0\r\n"), Again(b"X-More: and more\r\n", 200_000)),
        "extensions": (_chunked(), Again(b"1;" + b"e" * 10_000 + b"\r\nx\r\n", 4_000)),
    }
    tries, places = _all(talk, "beyond", beyond)
    for name in beyond:
        tries.ended(name, error="too_large")
        _read_little(talk, name, places[name])


def _read_little(talk: Talk, name: str, server: Server) -> None:
    """The rest of an answer is not read, and its connection is closed."""
    for each in server.connected:
        talk.came(f"{name}: the rest is not read", True, each.taken <= READ_AT_MOST)
        talk.came(f"{name}: its connection is closed", True, each.closed_at is not None)


def _broken(talk: Talk) -> None:
    """What is no answer is told apart, and tried no second time at once."""
    bad: Answers = {
        "garbage": (b"hello there\r\n\r\n", End.CLOSED),
        "no-status": (b"HTTP/1.1 fine\r\n\r\n", End.CLOSED),
        "http-3": (b"HTTP/3 200 OK\r\nContent-Length: 0\r\n\r\n", End.CLOSED),
        "no-number": (OK + b"Content-Length: many\r\n\r\nfine", End.CLOSED),
        "negative": (OK + b"Content-Length: -4\r\n\r\nfine", End.CLOSED),
        "short": (OK + LONG + b"fine", End.CLOSED),
        "cut-chunk": (_chunked(b"5\r\nab"), End.CLOSED),
        "no-last-chunk": (_chunked(b"4\r\nfine\r\n"), End.CLOSED),
        "chunk-size": (_chunked(b"four\r\nfine\r\n0\r\n\r\n"), End.CLOSED),
        "chunk-longer": (_chunked(b"2\r\nfine\r\n0\r\n\r\n"), End.CLOSED),
        "half-a-status": (b"HTTP/1.", End.CLOSED),
    }
    tries, _ = _all(talk, "bad", bad)
    for name in bad:
        tries.ended(name, error="bad_response")
    gone: Answers = {
        "closed": (End.CLOSED,),
        "closed-later": (Wait(2), End.CLOSED),
        "reset": (End.RESET,),
        "reset-in-the-body": (OK + LONG + b"fine", End.RESET),
    }
    tries, _ = _all(talk, "gone", gone)
    for name in gone:
        tries.ended(name, error="reset")


TAKEN: dict[str, tuple[int, str, Sequence[Step]]] = {
    "plain": (200, "fine", (said(),)),
    "created": (201, "", (said(b"", 201),)),
    "no-content": (204, "", (b"HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n",)),
    "http-1-0": (200, "fine", (b"HTTP/1.0 200 OK\r\n\r\nfine", End.CLOSED)),
    "http-2": (200, "fine", (b"HTTP/2 200\r\ncontent-length: 4\r\n\r\nfine",)),
    "until-the-end": (200, "fine", (OK + b"\r\nfi", Wait(1), b"ne", End.CLOSED)),
    "bare-lines": (200, "fine", (b"HTTP/1.1 200 OK\nContent-Length: 4\n\nfine",)),
    "no-colon": (200, "fine", (OK + b"strange\r\nContent-Length: 4\r\n\r\nfine",)),
    "folded": (200, "fine", (OK + b"X: a\r\n b\r\nContent-Length: 4\r\n\r\nfine",)),
    "chunks": (200, "fine", (_chunked(b"2\r\nfi\r\n"), Wait(1), b"2\r\nne\r\n0\r\n\r\n")),
    "extensions": (200, "fine", (_chunked(b"4;a=b\r\nfine\r\n0\r\n\r\n"),)),
    "trailers": (200, "fine", (_chunked(b"4\r\nfine\r\n0\r\nX-Sum: 1\r\nStatus: 500\r\n\r\n"),)),
    "chunked-and-length": (
        200,
        "fine",
        (OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfine\r\n0\r\n\r\n",),
    ),
    "longer-than-it-said": (200, "fine", (OK + b"Content-Length: 4\r\n\r\nfine and more",)),
    "interim": (200, "fine", (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n", Wait(1), said())),
    "no-head-at-all": (200, "", (b"HTTP/1.1 200\r\n\r\n", End.CLOSED)),
    "switch": (101, "", (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nwhatever",)),
    "not-modified": (304, "", (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\n",)),
    "client": (404, "not here", (said(b"not here", 404),)),
    "server": (503, "busy", (said(b"busy", 503),)),
    "own": (299, "fine", (said(b"fine", 299),)),
    "beyond-all": (600, "fine", (said(b"fine", 600),)),
}
"""Answers, with the status and the body that they are."""


def _taken(talk: Talk) -> None:
    """What curl takes is taken, with the same status and body."""
    tries, _ = _all(talk, "taken", {name: steps for name, (_, _, steps) in TAKEN.items()})
    for name, (status, body, _) in TAKEN.items():
        tries.ended(name, status=status, answer=body)


FRAMINGS: dict[str, Callable[[bytes, bytes], Sequence[Step]]] = {
    "length": lambda head, body: (OK + head + b"Content-Length: %d\r\n\r\n" % len(body) + body,),
    "chunks": lambda head, body: (
        OK + head + b"Transfer-Encoding: chunked\r\n\r\n",
        b"".join(b"1\r\n%c\r\n" % each for each in body) + b"0\r\n\r\n",
    ),
    "until-the-end": lambda head, body: (OK + head + b"\r\n" + body, End.CLOSED),
    "interim": lambda head, body: (INTERIM, OK + head + b"Content-Length: %d\r\n\r\n" % len(body), Wait(1), body),
}
"""How an answer can say where its body ends: from some headers and the body, what a server does."""


def _asked(talk: Talk) -> None:
    """However an answer says where it ends, it is one: to a request for consent, and to one for a token, too."""
    webhooks = talk.at("/api/v1").with_headers(authorization=f"Bearer {talk.token}")
    webhooks.ask("POST", "/app", {"name": "Asked", "uid": "asked"}, status=201)
    tries = Tries(talk, "granted")
    granted = {}
    for name, framed in FRAMINGS.items():
        place(talk, f"consents-{name}.example", framed(b"WebHook-Allowed-Origin: *\r\n", b"you are welcome"))
        url = f"https://consents-{name}.example/in"
        endpoint = {"url": url, "uid": name, "cloudEvents": {"mode": "binary", "consent": True}}
        webhooks.ask("POST", "/app/asked/endpoint", endpoint, status=201)
        token = json.dumps({"access_token": f"of-{name}", "token_type": "Bearer", "expires_in": 3_600})
        place(talk, f"grants-{name}.example", framed(b"Content-Type: application/json\r\n", token.encode()))
        granted[name] = place(talk, f"granted-{name}.example", [said()])
        oauth = {"token_url": f"https://grants-{name}.example/", "client_id": "me", "client_secret": "s"}
        tries.send(name, f"https://granted-{name}.example/in", oauth=oauth)
    talk.sleep(TIMEOUT_S + 20 + talk.put_off_s)
    for name, server in granted.items():
        webhooks.ask("GET", f"/app/asked/endpoint/{name}", shows={"cloudEvents": {"consented": True}})
        tries.ended(name, status=200)
        shown = [each.request.header("authorization") for each in server.heard]
        talk.came(f"the token of {name}", [f"Bearer of-{name}"], shown)
    webhooks.ask("DELETE", "/app/asked", status=204)


def _redirected(talk: Talk) -> None:
    """Redirects are not followed: a try that gets one has failed."""
    elsewhere = place(talk, "elsewhere-of-wire.example", [said()])
    to = {"location": "http://elsewhere-of-wire.example/in"}
    codes = (301, 302, 303, 307, 308)
    tries, _ = _all(talk, "redirect", {str(code): (said(b"", code, **to),) for code in codes})
    for code in codes:
        tries.ended(str(code), status=code)
    talk.came("nobody went elsewhere", 0, len(elsewhere.connected))


def _said(talk: Talk) -> None:
    """What goes over the wire is what was asked for: the target as it is written, one host, one length, the exact
    bytes; a URL's user and password are in a header, and its fragment nowhere.
    """
    tries, server = Tries(talk, "said"), place(talk, "said.example", [said()], ports=(80, 443, 8080))
    body = "\u20ac \u0000 \r\n\r\nGET / HTTP/1.1\r\n\r\n" + "x" * 70_000
    urls = {
        "path": ("http://said.example/a/b?c=d&e=%2F#f", "/a/b?c=d&e=%2F", "said.example"),
        "port": ("http://said.example:8080/in", "/in", "said.example:8080"),
        "escaped": ("http://said.example/%C3%BC%2e'(a)", "/%C3%BC%2e'(a)", "said.example"),
        "none": ("http://SAID.example", "/", "said.example"),
        "user": ("http://me:secret@said.example/in?x=1", "/in?x=1", "said.example"),
        "https": ("https://said.example/in?x=2", "/in?x=2", "said.example"),
    }
    for name, (url, _, _) in urls.items():
        tries.send(name, url, body=f"{name} {body}", headers={"X-Own": f"of {name}"})
    talk.sleep(30 + talk.put_off_s)
    came = {each.request.header("x-own"): each.request for each in server.heard}
    for name, (_, target, host) in urls.items():
        tries.ended(name, status=200)
        request = came[f"of {name}"]
        shown = ("POST", target, host, f"{name} {body}".encode())
        talk.came(f"{name} on the wire", shown, (request.method, request.target, request.header("host"), request.body))
        authorization = "Basic bWU6c2VjcmV0" if name == "user" else ""
        talk.came(f"the authorization of {name}", authorization, request.header("authorization"))
    talk.came("each of them once", len(urls), len(server.heard))
    sound(talk, "said", server)


def _early(talk: Talk) -> None:
    """An answer that comes before the whole request was read counts, and ends its connection."""
    steps = (b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\n\r\nlarge", End.CLOSED)
    server = place(talk, "early.example", steps, early=True)
    tries = Tries(talk, "early")
    tries.send("large", "http://early.example/in", body="x" * 300_000)
    talk.sleep(30 + talk.put_off_s)
    tries.ended("large", status=413, answer="large")
    talk.came("one connection", 1, len(server.connected))


def again(talk: Talk) -> None:
    """Whatever failed is tried again after its wait, each time as one request."""
    talk.through(_again)


def _again(talk: Talk) -> None:
    """A try that failed in any of these ways is repeated as often as the queue says, and no oftener."""
    ways: Answers = {
        "timeout": (),
        "reset": (End.RESET,),
        "bad": (b"garbage", End.CLOSED),
        "large": (_many(HEADERS + 1),),
        "redirect": (said(b"", 302),),
        "status": (said(b"", 500),),
    }
    tries = Tries(talk, "again")
    places = {name: place(talk, f"again-{name}.example", steps) for name, steps in ways.items()}
    for name in ways:
        tries.send(name, f"http://again-{name}.example/in", retries=2, timeout=2)
    talk.sleep(90 + talk.put_off_s)
    for name, server in places.items():
        talk.came(f"three requests of {name}", 3, len(server.heard))
        gaps = [(after.at - before.at) / 1_000_000 for before, after in pairwise(server.heard)]
        talk.came(f"the waits of {name}", [True, True], [each >= 3 for each in gaps])
        numbers = [each["number"] for each in tries.attempts(name)]
        talk.is_so(f"the attempts of {name}", [1, 2, 3], numbers)


def mended(heard: Heard) -> Sequence[Step]:
    """Fails once, and is well then."""
    return (End.RESET,) if heard.line == 0 else (said(),)
