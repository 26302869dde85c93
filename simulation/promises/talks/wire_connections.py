"""Connections that are kept, and those with TLS: whose request goes where, by which certificate, and what becomes of
one that met a connection's end.

Sources: docs/ironmq.md ("What counts as an answer"), docs/gates.md ("Client certificates"), SECURITY.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simulation.promises.talks.internet import PRIVATE, Certificate, End, Heard, Server, Step, Wait, said
from simulation.promises.talks.talk import Talk
from simulation.promises.talks.tries import TIMEOUT_S, Tries, place, sound

OK = b"HTTP/1.1 200 OK\r\n"
SMUGGLED = b"HTTP/1.1 500 Smuggled\r\nContent-Length: 0\r\n\r\n"


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_met_its_end, _second_answers, _apart, _certified, _identified)


def _first_and_second(
    talk: Talk, about: str, ways: dict[str, Sequence[Step]], then: Sequence[Step]
) -> tuple[Tries, dict[str, Server]]:
    """Two messages to each of some servers, one some seconds after the other; ``ways`` is what these do at the first,
    ``then`` at a second one on the same connection. On other connections they are well.
    """
    tries, places = Tries(talk, about), dict[str, Server]()
    for name, steps in ways.items():

        def say(heard: Heard, steps: Sequence[Step] = steps) -> Sequence[Step]:
            if heard.number:
                return then
            return (said(),) if heard.line else steps

        places[name] = place(talk, f"{about}-{name}.example", say)
        tries.make(name, f"http://{about}-{name}.example/in")
    for turn in ("first", "second"):
        for name in ways:
            tries.post(f"{name}-{turn}", turn, queue=f"{about}-{name}")
        talk.sleep(8 + talk.put_off_s)
    return tries, places


def _met_its_end(talk: Talk) -> None:
    """One try is one request: what may have been read on a kept connection that ends is not sent again within the try;
    what certainly was not, is sent at once on another connection.
    """
    ways: dict[str, Sequence[Step]] = {
        "seen": (said(), End.CLOSED),
        "unseen": (said(), End.UNSEEN),
        "half": (said(), End.HALF),
        "later": (said(), Wait(3), End.CLOSED),
    }
    tries, places = _first_and_second(talk, "ends", ways, ())
    for name, there in places.items():
        for turn in ("first", "second"):
            tries.ended(f"{name}-{turn}", status=200)
        talk.came(
            f"{name}: each once, on two connections", [b"first", b"second"], [e.request.body for e in there.heard]
        )
    for name, end in (("read", End.CLOSED), ("reset", End.RESET)):
        tries, places = _first_and_second(talk, f"ended-{name}", {"kept": (said(),)}, (Wait(0.2), end))
        tries.ended("kept-first", status=200)
        there = places["kept"]
        # A kept connection may have been let go, or be another environment's.
        if there.heard[-1].number:
            tries.ended("kept-second", error="reset")
        talk.came(f"{name}: each once", [b"first", b"second"], [each.request.body for each in there.heard])


def _second_answers(talk: Talk) -> None:
    """Nothing of one answer becomes part of the next: what comes after an answer's end is nobody's."""
    ways: dict[str, Sequence[Step]] = {
        "twice": (said() + SMUGGLED,),
        "late": (said(), Wait(1), SMUGGLED),
        "longer": (OK + b"Content-Length: 4\r\n\r\nfine" + SMUGGLED,),
        "two-lengths": (OK + b"Content-Length: 2\r\nContent-Length: 4\r\n\r\nfine",),
        "two-framings": (
            OK + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfine\r\n0\r\n\r\n" + SMUGGLED,
        ),
        "no-content": (b"HTTP/1.1 204 No Content\r\nContent-Length: 44\r\n\r\n" + SMUGGLED,),
        "after-chunks": (OK + b"Transfer-Encoding: chunked\r\n\r\n4\r\nfine\r\n0\r\n\r\n" + SMUGGLED,),
        "cut": (OK + b"Content-Length: 5000000\r\n\r\n" + b"x" * 1_000_000,),
        "close": (OK + b"Connection: close\r\nContent-Length: 4\r\n\r\nfine",),
        "http-1-0": (b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nfine",),
        "switch": (b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + SMUGGLED,),
    }
    tries, places = _first_and_second(talk, "after", ways, (SMUGGLED,))
    for name, there in places.items():
        tries.ended(f"{name}-second", status=200, answer="fine")
        lines = [each.number for each in there.heard]
        talk.came(f"{name}: on another connection", [0, 0], lines)
        sound(talk, name, there)


def _apart(talk: Talk) -> None:
    """A connection is for one host and port, even if others have the same address."""
    address, tries = talk.internet.address(), Tries(talk, "apart")
    shared = place(talk, "apart-1.example", [said()], address=address, ports=(80, 443, 8080))
    talk.internet.leads("apart-2.example", lambda: [address])
    urls = {
        "one": "http://apart-1.example/in",
        "two": "http://apart-2.example/in",
        "port": "http://apart-1.example:8080/in",
    }
    for name, url in urls.items():
        tries.send(name, url)
        talk.sleep(5 + talk.put_off_s)
    talk.sleep(10)
    for name in urls:
        tries.ended(name, status=200)
    talk.came("a connection for each", [0, 0, 0], [each.number for each in shared.heard])
    talk.came("to their ports", [80, 80, 8080], [each.port for each in shared.connected])
    sound(talk, "apart", shared)


def _certified(talk: Talk) -> None:
    """A server shows a certificate for its name that has not ended, from an authority that is known; else nothing is
    sent to it.
    """
    good = {
        "good": Certificate(("good.tls.example",)),
        "wild": Certificate(("*.tls.example",)),
        "several": Certificate(("a.example", "several.tls.example", "b.example")),
    }
    bad = {
        "other-name": Certificate(("other.tls.example",)),
        "parent": Certificate(("tls.example",)),
        "ended": Certificate(("ended.tls.example",), ended=True),
        "unknown": Certificate(("unknown.tls.example",), by=PRIVATE),
        "asks": Certificate(("asks.tls.example",), clients=PRIVATE),
    }
    tries = Tries(talk, "tls")
    places = {
        name: place(talk, f"{name}.tls.example", [said()], shows=shown) for name, shown in {**good, **bad}.items()
    }
    places["plain"] = place(talk, "plain.tls.example", [said()], greeting=(b"HTTP/1.1 400 Bad Request\r\n\r\n",))
    places["mute"] = place(talk, "mute.tls.example", [said()], greeting=(Wait(0),))
    for name in places:
        tries.send(name, f"https://{name}.tls.example/in", body="x" * 40_000)
    talk.sleep(TIMEOUT_S + 20 + talk.put_off_s)
    for name in good:
        tries.ended(name, status=200, answer="fine")
        talk.came(f"what {name} was asked for", [f"{name}.tls.example"], [each.named for each in places[name].heard])
    for name in ("other-name", "parent", "ended", "unknown", "plain"):
        tries.ended(name, error="tls")
    tries.ended("mute", error="timeout", took_s=TIMEOUT_S)
    [asked] = tries.attempts("asks")
    talk.is_so("no certificate to show", {"status_code": 0, "result": "failed"}, asked)
    talk.is_so("it says so", True, "client certificate" in asked["msg"])
    for name in (*bad, "plain", "mute"):
        talk.came(f"nothing was sent to {name}", 0, len(places[name].heard))


def _identified(talk: Talk) -> None:
    """A certificate is shown by its subscriber's own requests, on connections that are nobody else's; a subscriber's
    own authorities are the only ones for it.
    """
    internet, host = talk.internet, "{}.mtls.example".format
    one, two = internet.identity(1, PRIVATE), internet.identity(2, PRIVATE)
    gated = place(talk, host("shown"), [said()], shows=Certificate((host("shown"),), clients=PRIVATE))
    private = place(talk, host("private"), [said()], shows=Certificate((host("private"),), by=PRIVATE))
    public = place(talk, host("public"), [said()], shows=Certificate((host("public"),)))
    own = {"identity": one, "ca": internet.authority(PRIVATE)}
    subscribers: dict[str, tuple[str, dict[str, Any]]] = {
        "one": ("shown", {"mtls": {"identity": one}}),
        "two": ("shown", {"mtls": {"identity": two}}),
        "stranger": ("shown", {"mtls": {"identity": internet.identity(3)}}),
        "nobody": ("shown", {}),
        "one-again": ("shown", {"mtls": {"identity": one}}),
        "own-authority": ("private", {"mtls": own}),
        "no-authority": ("private", {}),
        "other-authority": ("public", {"mtls": own}),
    }
    tries = Tries(talk, "mtls")
    for name, (at, gates) in subscribers.items():
        tries.send(name, f"https://{host(at)}/{name}", **gates)
        talk.sleep(4 + talk.put_off_s)
    talk.sleep(15 + talk.put_off_s)
    for name in ("one", "two", "one-again", "own-authority"):
        tries.ended(name, status=200)
    for name in ("no-authority", "other-authority"):
        tries.ended(name, error="tls")
    for name in ("nobody", "stranger"):
        [asked] = tries.attempts(name)
        talk.is_so(f"{name} is not let in", {"status_code": 0, "result": "failed"}, asked)
        talk.is_so(f"{name} is told", True, "client certificate" in asked["msg"])
    clients = {each.request.target: each.client for each in gated.heard}
    talk.came("whose certificate", {"/one": "client 1", "/two": "client 2", "/one-again": "client 1"}, clients)
    lines = {each.request.target: each.line for each in gated.heard}
    talk.came("their own connections", True, lines.get("/one") != lines.get("/two"))
    talk.came("whom the authorities let in", (1, 0), (len(private.heard), len(public.heard)))
