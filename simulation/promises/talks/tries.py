"""Single tries, seen from both ends: a server somewhere on the internet, a queue with one subscriber there, a message;
and then what came on the wire, how long it took, and what the hub says of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from simulation.promises.talks.internet import Certificate, Say, Server, Step
from simulation.promises.talks.talk import Talk

TIMEOUT_S = 10
"""Within which an answer has to come."""

LATE_MS = 700
"""How much longer a try may take than an answer that is waited for."""


def place(
    talk: Talk,
    host: str,
    say: Say | Sequence[Step],
    *,
    address: str = "",
    ports: Sequence[int] = (80, 443),
    shows: Certificate | None = None,
    greeting: Sequence[Step] = (),
    early: bool = False,
) -> Server:
    """A server at a host, which has one address; see :meth:`.Internet.stands`.

    Args:
        talk: Who has it.
        host: Its name; empty for none.
        say: What it does when a request is complete, or what it does at each.
        address: Its address; a public one if left out.
        ports: Where it listens.
        shows: Its certificate.
        greeting: What it does as soon as a connection stands.
        early: Whether it answers the head of a request.
    """
    at = address or talk.internet.address()
    if host:
        talk.internet.leads(host, lambda: [at])
    does = say if callable(say) else lambda _: say
    return talk.internet.stands([(at, port) for port in ports], does, shows=shows, greeting=greeting, early=early)


@dataclass(frozen=True)
class Try:
    """A message on its way."""

    queue: str
    message: str
    about: str


class Tries:
    """Messages that are sent together, each from a queue of its own, which tries once.

    Args:
        talk: Whose queues they are.
        about: What their names begin with.
    """

    def __init__(self, talk: Talk, about: str) -> None:
        self.talk = talk
        self._about = about
        self._sent: dict[str, Try] = {}

    def make(self, name: str, url: str, *, retries: int = 0, **subscriber: Any) -> str:
        """A queue whose subscriber is at a URL."""
        queue = f"{self._about}-{name}"
        push = {"subscribers": [{"name": "one", "url": url, **subscriber}], "retries": retries, "retries_delay": 3}
        self.talk.ask("PUT", f"/queues/{queue}", {"queue": {"push": push}})
        return queue

    def post(self, name: str, body: str = "x", *, queue: str = "") -> None:
        """Send a message from a queue that there is."""
        queue = queue or f"{self._about}-{name}"
        messages = {"messages": [{"body": body}]}
        [message] = self.talk.ask("POST", f"/queues/{queue}/messages", messages, status=201)["ids"]
        self._sent[name] = Try(queue, message, f"{self._about} {name}")

    def send(self, name: str, url: str, *, body: str = "x", **subscriber: Any) -> None:
        """Make a queue, and send a message."""
        self.make(name, url, **subscriber)
        self.post(name, body)

    def attempts(self, name: str) -> Any:
        """The attempts that are shown of a message."""
        sent = self._sent[name]
        return self.talk.ask("GET", f"/queues/{sent.queue}/messages/{sent.message}/attempts")["attempts"]

    def ended(
        self,
        name: str,
        *,
        status: int = 0,
        error: str = "",
        result: str = "",
        took_s: float | None = None,
        **shows: Any,
    ) -> None:
        """A message was tried once, and it ended so.

        Args:
            name: Which.
            status: The status of the answer; 0 for none.
            error: The class of what went wrong; it is compared with the records.
            result: Of the try; by the status if left out.
            took_s: How long it took; not compared if left out.
            shows: What is shown besides.
        """
        sent = self._sent[name]
        result = result or ("delivered" if 200 <= status < 300 else "failed")
        attempts = self.attempts(name)
        expected: dict[str, Any] = {"status_code": status, "number": 1, "result": result, **shows}
        self.talk.is_so(sent.about, [expected], attempts)
        if took_s is not None:
            shown = [each["took_ms"] for each in attempts]
            least, most = took_s * 1000 - LATE_MS / 10, took_s * 1000 + LATE_MS
            self.talk.is_so(
                f"how long {sent.about} took", [True] * len(shown), [least <= each <= most for each in shown]
            )
        self.talk.recorded(sent.message, status_code=status, error_class=error)


def sound(talk: Talk, name: str, server: Server) -> None:
    """What came to a server are requests whose ends are clear, and those on one connection belong together."""
    wrong = [each.request.wrong for each in server.heard if each.request.wrong]
    talk.came(f"well-formed requests to {name}", [], wrong)
    for each in server.connected:
        on_it = [heard for heard in server.heard if heard.line == each.number]
        hosts = {heard.request.header("host") for heard in on_it}
        talk.came(f"one host on a connection to {name}", True, len(hosts) <= 1)
