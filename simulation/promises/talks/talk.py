"""One client, who knows the documents by heart: asks, and compares each answer with what they say."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from simulation.promises.judgement import SECOND, Exchange, Judgement
from simulation.promises.talks.internet import Internet

OTHER_ANSWER, OTHER_STATUS = "another answer than documented", "another status than documented"
OTHER_OUTPUT = "another output than documented"
OTHER_REQUESTS, BROKEN_OFF = "other requests than documented", "a talk that breaks off"
OTHER_SHAPE = "another shape than described"


class Answered(Protocol):
    """An answer, as a client has it."""

    @property
    def status(self) -> int:
        """HTTP status."""

    @property
    def body(self) -> Any:
        """What its JSON says."""

    @property
    def exchange(self) -> Exchange:
        """When it was asked for and came."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Its headers, names in lower case."""


@dataclass(frozen=True)
class Came:
    """A request that came to an endpoint of this client's.

    Attributes:
        at: When, microseconds.
        headers: Its headers, names in lower case.
        body: Its body.
        path: What it was sent to.
        query: With which query.
        method: Its method.
        identity: The client certificate that was shown, with its key, as PEM; empty for none.
    """

    at: int
    headers: Mapping[str, str]
    body: bytes
    path: str = ""
    query: str = ""
    method: str = ""
    identity: str = ""


@dataclass(frozen=True)
class Typed:
    """What came of a command that was typed.

    Attributes:
        code: Its exit code.
        printed: On standard output.
        errors: On standard error.
    """

    code: int
    printed: str
    errors: str


Said = tuple[int, bytes] | tuple[int, bytes, Mapping[str, str]] | tuple[int, bytes, Mapping[str, str], float]
"""An endpoint's answer: status and body, headers, names in lower case, and after how many seconds it comes; 0 and the
class of an error if there is none.
"""

Say = Callable[[Came], Said]
"""What an endpoint answers to a request."""


@dataclass(frozen=True)
class Surroundings:
    """What a client has.

    Attributes:
        http: Asks the hub: method, path, body, headers.
        sleep: Waits, seconds.
        now: The time, microseconds since the start.
        listen: Has an endpoint answer at a host; returns what came to it, which grows.
        gathered_s: How much later than otherwise a message may come, as batches are gathered on its way.
        put_off_s: How much later some of many may come that are posted at once, as Lambda puts batches off for lack of
            concurrency.
        turn: Number of the run: what takes long is not asked in each.
        types: Types a command of the command line as the same project; with what is given on standard input.
        project: Its id.
        token: Its token.
        began_s: The second, since 1970, in which the time began.
        loses: Has a table lose all items of the client's project, of which its stream says nothing; how many.
        internet: What endpoints are reached through.
        recorded: Told how the only try of a message has to be recorded.
        records: The delivery records of its project.
        consumes: Hands messages of a queue to the hub that is not its own: to a destination, and whether they are
            events of a bus. The ids of those that have to come again.
        lets_in: Has a role of another account let everybody in, or nobody; how often it was asked for keys until now.
        seals_with: Deploys the hub with another key that seals: its ARN.
        disables: Has a key open nothing any more, or again: its ARN, and whether it is disabled.
    """

    http: Callable[[str, str, object, Mapping[str, str]], Answered]
    sleep: Callable[[float], None]
    now: Callable[[], int]
    listen: Callable[[str, Say], Sequence[Came]]
    gathered_s: float = 0
    put_off_s: int = 0
    turn: int = 0
    types: Callable[[Sequence[str], bytes], Typed] = lambda *_: Typed(3, "", "there is no command line")
    project: str = ""
    token: str = ""
    began_s: int = 0
    loses: Callable[[str], int] = lambda _: 0
    internet: Internet | None = None
    recorded: Callable[[str, Mapping[str, object]], None] = lambda *_: None
    records: Callable[[], Sequence[Mapping[str, Any]]] = lambda: ()
    consumes: Callable[[str, Sequence[Mapping[str, Any]], bool], Collection[str]] = lambda *_: ()
    lets_in: Callable[[str, bool], int] = lambda *_: 0
    seals_with: Callable[[str], None] = lambda _: None
    disables: Callable[[str, bool], None] = lambda *_: None


Shape = Callable[[str, str, int, object], str]
"""How an answer differs from its description: method, path, status and body of an answer; empty if it does not."""


class Talk:
    """A client with credentials.

    Args:
        around: What it has.
        judgement: Where the facts go.
        base: What each path begins with.
        headers: Sent with each request.
        shape: What each answer has to look like, besides what is asked for.

    Attributes:
        put_off_s: How much later some of many may come that are posted at once.
        turn: Number of the run: what takes long is not asked in each.
        project: The client's project.
        token: Its token.
    """

    def __init__(
        self,
        around: Surroundings,
        judgement: Judgement,
        *,
        base: str = "",
        headers: Mapping[str, str] | None = None,
        shape: Shape | None = None,
    ) -> None:
        self._around = around
        self._judgement = judgement
        self._base = base
        self._headers = dict(headers or {})
        self._shape = shape
        self.listen = around.listen
        self.loses = around.loses
        self.records = around.records
        self.consumes = around.consumes
        self.lets_in = around.lets_in
        self.seals_with = around.seals_with
        self.disables = around.disables
        self.put_off_s = around.put_off_s
        self.turn = around.turn
        self.project = around.project
        self.token = around.token

    def with_headers(self, **headers: str) -> Talk:
        """The same client with other headers; underscores stand for hyphens."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._other(self._base, self._headers | named, self._shape)

    def at(self, base: str) -> Talk:
        """The same client at other paths."""
        return self._other(base, self._headers, self._shape)

    def described_by(self, shape: Shape) -> Talk:
        """The same client, who looks at the shape of each answer, too."""
        return self._other(self._base, self._headers, shape)

    def _other(self, base: str, headers: Mapping[str, str], shape: Shape | None) -> Talk:
        return Talk(self._around, self._judgement, base=base, headers=headers, shape=shape)

    @property
    def internet(self) -> Internet:
        """What endpoints are reached through."""
        assert self._around.internet is not None
        return self._around.internet

    def recorded(self, message: str, **fields: object) -> None:
        """The record of a message's only try has these fields; that is compared at the end."""
        self._around.recorded(message, fields)

    def ask(self, method: str, path: str, body: object = None, *, status: int = 200, shows: object = ...) -> Any:
        """Ask for something; returns the body of the answer.

        Args:
            method: HTTP method.
            path: What follows the base.
            body: As JSON, or bytes.
            status: The documented status.
            shows: What the answer shows at least, see :func:`differs`; anything if left out.
        """
        answer = self._around.http(method, self._base + path, body, self._headers)
        about = f"{method} {self._base}{path}"
        detail = f"{str(body)[:160]}: {answer.status} {str(answer.body)[:160]}"
        kept = self._judgement.fact(answer.status == status, OTHER_STATUS, about, f"{detail}, not {status}")
        if kept and shows is not ...:
            difference = differs(shows, answer.body)
            self._judgement.fact(not difference, OTHER_ANSWER, about, f"{detail}: {difference}")
        if self._shape is not None:
            difference = self._shape(method, self._base + path, answer.status, answer.body)
            self._judgement.fact(not difference, OTHER_SHAPE, about, f"{detail}: {difference}")
        return answer.body

    def answered(self, method: str, path: str, body: object = None) -> Answered:
        """Ask for something whose answer is compared by the caller."""
        return self._around.http(method, self._base + path, body, self._headers)

    def status(self, method: str, path: str, body: object = None) -> int:
        """Ask for something whose answer is compared by the caller; its status."""
        return self.answered(method, path, body).status

    def typed(self, *words: str, code: int = 0, given: str = "", shows: object = ..., says: str = "") -> Any:
        """Type a command; returns the rows of JSON that it printed.

        Args:
            words: What follows ``pushhub``.
            code: The documented exit code.
            given: Standard input, a pipe.
            shows: What is printed at least, see :func:`differs`; anything if left out.
            says: What is in the remarks, or in what is wrong.
        """
        came = self._around.types((*words, "--json"), given.encode())
        about, detail = " ".join(words), f"{came.code}: {came.printed[:300]} {came.errors[:300]}"
        kept = self._judgement.fact(came.code == code, OTHER_STATUS, about, f"{detail}, not {code}")
        self._judgement.fact(says in came.errors, OTHER_OUTPUT, about, f"{detail}, not {says}")
        shown: list[Any] = []
        for line in came.printed.splitlines() if came.printed.startswith(("[", "{")) else ():
            rows = json.loads(line)
            shown += rows if isinstance(rows, list) else [rows]
        if kept and shows is not ...:
            difference = differs(shows, shown)
            self._judgement.fact(not difference, OTHER_OUTPUT, about, f"{detail}: {difference}")
        return shown

    def read(self, *words: str) -> list[list[str]]:
        """Type a command as a person does; returns the cells of the lines that it prints."""
        came = self._around.types(words, b"")
        self._judgement.fact(not came.code, OTHER_STATUS, " ".join(words), f"{came.code}: {came.errors[:300]}")
        return [re.split(r"\s{2,}", line.rstrip()) for line in came.printed.splitlines()]

    def now(self) -> int:
        """The time, microseconds since the start."""
        return self._around.now()

    def epoch_s(self) -> int:
        """The second, since 1970."""
        return self._around.began_s + self._around.now() // SECOND

    def moment(self, text: str) -> float:
        """A time as it is written, microseconds since the start."""
        return (datetime.fromisoformat(text).timestamp() - self._around.began_s) * SECOND

    def refused(self, method: str, path: str, *bodies: object, status: int = 400, shows: object = ...) -> None:
        """Ask for several things, each of which is refused."""
        for body in bodies or (None,):
            self.ask(method, path, body, status=status, shows=shows)

    def sleep(self, seconds: float, *, exactly: bool = False) -> None:
        """Wait until something has come, which takes longer where batches are gathered; or wait ``exactly`` so long."""
        self._around.sleep(seconds + (0 if exactly else self._around.gathered_s))

    @property
    def gathered_s(self) -> int:
        """How much later than otherwise a message may come, as batches are gathered on its way, whole seconds."""
        return math.ceil(self._around.gathered_s)

    def through(self, *parts: Callable[[Talk], None]) -> None:
        """One part after the other; one that cannot go on, as an answer lacks what comes next, breaks off."""
        for part in parts:
            try:
                part(self)
            except (LookupError, TypeError, ValueError, AttributeError, StopIteration) as error:
                self._judgement.fact(False, BROKEN_OFF, part.__name__, repr(error)[:200])

    def timed(self, least_s: float, most_s: float, act: Callable[[], Any]) -> Any:
        """Do something that takes so long."""
        began = self._around.now()
        answer = act()
        took = (self._around.now() - began) / SECOND
        self._judgement.fact(least_s <= took <= most_s, OTHER_ANSWER, "time", f"{took} s, not {least_s} to {most_s}")
        return answer

    def is_so(self, about: str, expected: object, found: object) -> None:
        """Compare something, see :func:`differs`."""
        difference = differs(expected, found)
        self._judgement.fact(not difference, OTHER_ANSWER, about, f"{difference}; {str(found)[:300]}")

    def came(self, about: str, expected: object, found: object) -> None:
        """Compare what came to an endpoint."""
        difference = differs(expected, found)
        self._judgement.fact(not difference, OTHER_REQUESTS, about, f"{difference}; {str(found)[:300]}")


def differs(expected: object, found: object, where: str = "") -> str:
    """How something differs from what is expected; empty if it does not.

    A mapping shows at least these members, a list exactly these items; a type stands for any of its values, ``...`` for
    anything, a function for what it holds for; everything else for itself.
    """
    if expected is ...:
        return ""
    if isinstance(expected, type):
        return "" if isinstance(found, expected) else f"{where} is {found!r}, no {expected.__name__}"
    if isinstance(expected, Mapping):
        if not isinstance(found, Mapping):
            return f"{where} is {found!r}"
        missing = (f"{where}.{name} is missing" for name in expected if name not in found)
        inner = (differs(each, found.get(name), f"{where}.{name}") for name, each in expected.items())
        return next((each for each in (*missing, *inner) if each), "")
    if isinstance(expected, list | tuple):
        if not isinstance(found, list | tuple) or len(found) != len(expected):
            return f"{where} has {len(found) if isinstance(found, list | tuple) else found}, not {len(expected)}"
        pairs = enumerate(zip(expected, found, strict=True))
        return next(
            (difference for place, (one, other) in pairs if (difference := differs(one, other, f"{where}[{place}]"))),
            "",
        )
    if callable(expected):
        return "" if expected(found) else f"{where} is {found!r}"
    same = expected == found and isinstance(expected, bool) == isinstance(found, bool)
    return "" if same else f"{where} is {found!r}, not {expected!r}"


__all__ = ["Answered", "Came", "Said", "Say", "Surroundings", "Talk", "Typed", "differs"]
