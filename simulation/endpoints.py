"""Models of other people's endpoints: outages, slow days, flapping, redirects, invalid answers; and what each of them
received, which is the truth.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from urllib.parse import urlsplit

from pushhub.base.ports import PushRequest
from simulation.conditions import Conditions
from simulation.scheduler import SECOND
from simulation.weather import HOUR, MINUTE


@dataclass(frozen=True)
class Reply:
    """An endpoint's answer.

    Attributes:
        status: HTTP status.
        takes: Microseconds until it arrives.
        error_class: What went wrong if there is no answer.
        body: Its body.
        headers: Its headers, names in lower case.
        reason: Its reason phrase.
    """

    status: int = 200
    takes: int = 50_000
    error_class: str = ""
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""


class Mood(StrEnum):
    """The condition of an endpoint."""

    WELL = "well"
    DOWN = "down"
    """Nothing listens there."""
    ERRORS = "errors"
    """Mostly 500."""
    BUSY = "busy"
    """503 with ``Retry-After``, or 429."""
    SLOW = "slow"
    """Answers take seconds to a minute, sometimes longer than the hub waits."""
    RACES = "races"
    """It answers 202 and acknowledges at the same moment, so that both arrive at the hub together."""
    HANGS = "hangs"
    """It accepts requests and never answers."""
    FLAPPING = "flapping"
    """Down every other minute."""
    REDIRECTS = "redirects"
    GONE = "gone"
    """410."""
    LIES = "lies"
    """It does its work, then the answer is cut short or its length is wrong."""
    LATER = "later"
    """202: it works on the message, and usually acknowledges when done."""
    FORGETS = "forgets"
    """202, but never an acknowledgement."""


@dataclass
class Asked:
    """One request as the endpoint saw it.

    Attributes:
        at: When it arrived, microseconds.
        headers: Its headers, names in lower case.
        body: Its body.
        message_id: Which message it is for, by the hub's own id.
        environment: The environment that sent it.
        status: Status of the answer; 0 when there was none, or nothing listened.
        wait_s: What ``Retry-After`` asked for, seconds; 0 for nothing.
        answered_at: When the hub had the whole answer, microseconds; None if it never had.
        ended_at: When the connection ended, microseconds; None while it is open.
        said: The body of the answer.
        path: The path that it was sent to.
        query: Its query.
        method: Its method.
        identity: The client certificate that it was sent with, with its key, as PEM; empty for none.
        arrived: Whether anything listened that it could come to.
    """

    at: int
    headers: Mapping[str, str]
    body: bytes
    message_id: str
    environment: str
    status: int = 0
    wait_s: int = 0
    answered_at: int | None = None
    ended_at: int | None = None
    said: bytes = b""
    path: str = ""
    query: str = ""
    method: str = ""
    identity: str = ""
    arrived: bool = True


class Endpoint:
    """One endpoint.

    Args:
        account: Where it lives.
        name: Name of its host.
        moods: Its conditions in order, each with the time from which on it applies (microseconds).

    Attributes:
        log: Every request made to it, even while nothing listened.
        about_message: The same, by message.
        later: Told of each request that was answered with 202.
        about: Finds the message of a request from its headers and body, by the hub's own id.
        answers: Makes its answer when it is well; None for any 2xx.
    """

    def __init__(self, account: Conditions, name: str, moods: Sequence[tuple[int, Mood]]) -> None:
        self.account = account
        self.name = name
        self.moods = [*moods]
        self.log: list[Asked] = []
        self.about_message: defaultdict[str, list[Asked]] = defaultdict(list)
        self.later: Callable[[Asked], None] = lambda _: None
        self.about: Callable[[Mapping[str, str], bytes], str] = lambda headers, _: headers.get("iron-message-id", "")
        self.answers: Callable[[Asked, Random], Reply] | None = None
        self._random = Random(f"{account.seed}/{name}")

    def mood(self) -> Mood:
        """Its current condition."""
        now = self.account.scheduler.now
        found = bisect.bisect_right(self.moods, now, key=lambda each: each[0])
        return self.moods[found - 1][1] if found else Mood.WELL

    def well_between(self, begins: int, ends: int) -> bool:
        """Whether it is well during the whole time between two moments (microseconds)."""
        spells = zip(self.moods, [*self.moods[1:], (10**18, Mood.WELL)], strict=True)
        return all(mood is Mood.WELL or until <= begins or since >= ends for (since, mood), (until, _) in spells)

    def listens(self) -> bool:
        """Whether anything listens there."""
        mood = self.mood()
        return not (mood is Mood.DOWN or (mood is Mood.FLAPPING and self.account.scheduler.now // MINUTE % 2))

    def asked(self, request: PushRequest, environment: str) -> tuple[Asked, Reply]:
        """Handle a request of an environment: what is recorded of it, and the reply."""
        now = self.account.scheduler.now
        mood = self.mood()
        self.account.asked += 1
        headers = {name.lower(): value for name, value in request.headers.items()}
        message_id = self.about(headers, request.body)
        url = urlsplit(request.url)
        seen = Asked(
            now,
            headers,
            request.body,
            message_id,
            environment,
            path=url.path,
            query=url.query,
            method=request.method,
            identity=request.identity.pem if request.identity is not None else "",
        )
        self.log.append(seen)
        self.about_message[message_id].append(seen)
        if not self.listens():
            seen.arrived = False
            return seen, Reply(error_class="connect", takes=self._random.randrange(1_000, 2_000_000))
        reply = self._reply(mood, seen)
        seen.status = 0 if reply.error_class else reply.status
        seen.said = reply.body
        wait = reply.headers.get("retry-after", "0")
        # A date is for talks, which compare with what they said.
        seen.wait_s = int(wait) if wait.isdigit() else 0
        self.account.note(f"{self.name} asked {message_id} {mood} {reply.status} {reply.error_class}")
        return seen, reply

    def _reply(self, mood: Mood, seen: Asked) -> Reply:
        random = self._random
        quick = random.randrange(5_000, 400_000)
        if mood is Mood.ERRORS:
            return Reply(status=random.choice((500, 500, 500, 502, 400, 404)), takes=quick)
        if mood is Mood.BUSY:
            wait = {"retry-after": str(random.choice((1, 30, 120, 3600)))}
            return Reply(status=random.choice((503, 429)), takes=quick, headers=wait)
        if mood is Mood.HANGS:
            return Reply(takes=10_000 * SECOND)
        if mood is Mood.REDIRECTS:
            return Reply(status=302, takes=quick, headers={"location": "https://elsewhere.example/"})
        if mood is Mood.GONE:
            return Reply(status=410, takes=quick)
        if mood is Mood.LIES:
            return Reply(error_class=random.choice(("bad_response", "reset", "too_large")), takes=quick)
        if mood is Mood.RACES and "iron-reservation-id" in seen.headers:
            self.later(seen)
            return Reply(status=202, takes=random.randrange(15_000, 90_000))
        if mood in {Mood.LATER, Mood.FORGETS} and "iron-reservation-id" in seen.headers:
            if mood is Mood.LATER:
                self.later(seen)
            # Some finish before they answer, or at the same moment.
            return Reply(status=202, takes=random.choice((quick, quick + SECOND, quick // 8 + 30_000)))
        if mood is Mood.SLOW:
            quick = round(min(random.expovariate(1 / (8 * SECOND)), 200 * SECOND))
        if self.answers is not None:
            said = self.answers(seen, random)
            return Reply(said.status, max(quick, said.takes), said.error_class, said.body, said.headers, said.reason)
        return Reply(status=random.choice((200, 200, 200, 201, 204)), takes=quick)


class Endpoints:
    """All endpoints, by host."""

    def __init__(self, account: Conditions) -> None:
        self._account = account
        self.known: dict[str, Endpoint] = {}

    def add(self, name: str, moods: Sequence[tuple[int, Mood]]) -> Endpoint:
        """Add an endpoint; its host is its name."""
        self.known[name] = Endpoint(self._account, name, moods)
        return self.known[name]

    def at(self, url: str) -> Endpoint:
        """The endpoint of a URL."""
        return self.known[urlsplit(url).hostname or ""]


def life(random: Random, hours: float, favourite: Sequence[Mood] = tuple(Mood)) -> list[tuple[int, Mood]]:
    """The conditions of an endpoint over some hours: well, with spells of something else, and well at the end."""
    moods: list[tuple[int, Mood]] = [(0, Mood.WELL)]
    at, end = 0, round(hours * HOUR)
    while True:
        at += round(random.expovariate(1 / (1.5 * HOUR)))
        if at >= end:
            break
        moods.append((at, random.choice(favourite)))
        at += round(min(random.expovariate(1 / (25 * MINUTE)), 6 * HOUR))
        moods.append((min(at, end), Mood.WELL))
    return moods
