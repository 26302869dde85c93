"""IronMQ's push queues: which subscribers each message is owed to, and under which settings, from what producers and
owners asked and were answered; and what must stand in the error queues.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal
from urllib.parse import parse_qs, urlsplit

from simulation.promises.judgement import SECOND, Exchange, Faults, Judgement, Post, moment
from simulation.promises.push import FOREVER, Came, Fixed, Meaning, Owed, Pushes, Request, Seen, Terms

RESERVED = 202
TOO_MANY = 429
TOO_MANY_TOLD, NOT_TOLD = "an error message too many", "an error message is missing"
NOT_OWED, NEVER_POSTED, TWO_POSTS = "pushed and not owed", "pushed and never posted", "an identifier twice"
ERROR_OF_OTHERS, OTHER_CODE = "an error message with other bytes", "an error message with another answer"
OTHER_HEADERS, SHARED = "pushed with other headers than documented", "one reservation for two"

COMES_AND_GOES: Mapping[str, bool] = MappingProxyType({"remove": False, "add": True, "change": True})
"""Whether a queue has a subscriber after what its owner did."""


@dataclass(frozen=True)
class Queue:
    """A push queue, as its owner made it.

    Attributes:
        unicast: Whether each message is owed to one of the subscribers, not to each.
        subscribers: Their names.
        retries: Tries after the first.
        delay_s: From one to the next.
        expires_s: How long its messages live.
        error_queue: Where what is given up is told of; empty for nowhere.
        prompt: Whether nothing but the schedule holds up a message.
        obeys: Whether ``Retry-After`` is obeyed.
        slow_down_s: How long it waits at least after 429.
    """

    unicast: bool
    subscribers: Sequence[str]
    retries: int
    delay_s: int
    expires_s: int
    error_queue: str = ""
    prompt: bool = True
    obeys: bool = False
    slow_down_s: float = 0


@dataclass(frozen=True)
class Act:
    """What an owner does.

    Attributes:
        kind: What: change the retries; remove, add or change a subscriber (which adds one that was removed); clear,
            delete, or make the queue; delete a message.
        queue: The queue.
        exchange: The request.
        subject: The subscriber, or the message.
        retries: The new number of retries.
        delay_s: The new wait.
    """

    kind: Literal["retries", "remove", "add", "change", "clear", "delete", "make", "forget"]
    queue: str
    exchange: Exchange
    subject: str = ""
    retries: int = 0
    delay_s: int = 0


@dataclass(frozen=True)
class Acknowledgement:
    """What a subscriber acknowledged."""

    message_id: str
    name: str
    exchange: Exchange


@dataclass(frozen=True)
class ErrorMessage:
    """What was found in an error queue; ``body`` is None if it was left out, ``codes`` where they are not compared."""

    queue: str
    message_id: str
    names: tuple[str, ...]
    body: bytes | None
    codes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Pushed:
    """A push as its endpoint saw it: whose, and with which headers (names in lower case)."""

    queue: str
    name: str
    message_id: str
    headers: Mapping[str, str]


def judge_headers(judgement: Judgement, pushes: Iterable[Pushed]) -> None:
    """Each push says whose it is, of which message and by which reservation, which is no other message's and no other
    subscriber's; nobody here has set a header that replaces one of the hub's, or posted what had passed a queue.
    """
    whose: dict[str, tuple[str, str, str]] = {}
    for each in pushes:
        reservation = each.headers.get("iron-reservation-id", "")
        expected = {
            "user-agent": "IronMQ Pusherd",
            "content-type": "text/plain; encoding=utf-8",
            "iron-message-id": each.message_id,
            "iron-subscriber-name": each.name,
            "pushhub-hops": "1",
        }
        shown = {name: each.headers.get(name) for name in expected}
        url = urlsplit(each.headers.get("iron-subscriber-message-url", ""))
        place = url.path.endswith(f"/queues/{each.queue}/messages/{each.message_id}")
        capable = parse_qs(url.query).get("reservation_id") == [reservation]
        detail = f"{each.queue} to {each.name}: {shown} {url.geturl()} {reservation}"
        judgement.fact(shown == expected and place and capable, OTHER_HEADERS, each.message_id, detail)
        own = each.queue, each.name, each.message_id
        judgement.fact(
            whose.setdefault(reservation, own) == own, SHARED, each.message_id, f"{own}, {whose[reservation]}"
        )


def is_taken(request: Request) -> bool:
    """Whether a subscriber took a message, and did not only promise to acknowledge it."""
    return 200 <= request.status < 300 and request.status != RESERVED


class PushQueues:
    """Judges a run.

    Args:
        queues: The queues, by name.
        judgement: Where the facts go.
        faults: What the fault plan did.
        clocks_s: The most by which two clocks of the hub differ, by the fault plan, in seconds.
        ends: When the run ended, microseconds.
    """

    def __init__(
        self, queues: Mapping[str, Queue], judgement: Judgement, faults: Faults, *, clocks_s: float, ends: int
    ) -> None:
        self._queues = queues
        self._judgement = judgement
        self._faults = faults
        self._ends = ends
        self._pushes = Pushes(judgement, faults, clocks_s=clocks_s, ends=ends)

    def judge(
        self,
        posts: Sequence[Post],
        acts: Sequence[Act],
        requests: Sequence[Request],
        acknowledged: Sequence[Acknowledgement],
        errors: Sequence[ErrorMessage],
    ) -> None:
        """Judge each message at each of its subscribers."""
        self._acts: dict[str, list[Act]] = defaultdict(list)
        for act in sorted(acts, key=lambda each: each.exchange.asked):
            if act.exchange.done or act.exchange.unsure:
                self._acts[act.queue].append(act)
        self._terms = {name: list(self._terms_of(name)) for name in self._queues}
        self._asked: dict[str, list[Request]] = defaultdict(list)
        for request in sorted(requests, key=lambda each: each.at):
            self._asked[request.message_id].append(request)
        self._acknowledged: dict[str, list[Acknowledgement]] = defaultdict(list)
        for each in acknowledged:
            self._acknowledged[each.message_id].append(each)
        self._errors: dict[str, list[ErrorMessage]] = defaultdict(list)
        for error in errors:
            self._errors[error.message_id].append(error)
        known: set[str] = set()
        for post in posts:
            for message_id, body, delay_s in zip(post.ids, post.bodies, post.delays_s, strict=False):
                self._judgement.fact(message_id not in known, TWO_POSTS, message_id, post.queue)
                known.add(message_id)
                self._message(post, message_id, body, delay_s)
        self._strangers(posts, known)

    def _terms_of(self, name: str) -> Iterator[Terms]:
        queue = self._queues[name]
        first = Fixed(queue.retries, queue.delay_s)
        versions = [(0, first, True)]
        ends: list[int] = []
        for act in self._acts[name]:
            if act.kind in {"retries", "make"}:
                waits = Fixed(act.retries, act.delay_s) if act.kind == "retries" else first
                versions.append((act.exchange.asked, waits, act.exchange.done))
                ends.append(act.exchange.answered)
        for place, (since, waits, _) in enumerate(versions):
            until = next(
                (end for end, (_, _, sure) in zip(ends[place:], versions[place + 1 :], strict=True) if sure), FOREVER
            )
            yield Terms(since, until, waits)

    def _there(self, queue: str, kinds: Mapping[str, bool], begins: int, ends: int, subject: str = "") -> set[bool]:
        """What may have been so between two moments, by acts that say what is so from then on; at first it was so."""
        may = {True}
        for act in self._acts[queue]:
            if act.kind in kinds and act.subject == subject and act.exchange.asked <= ends:
                sure = act.exchange.done and not act.exchange.unsure and act.exchange.answered <= begins
                may = {kinds[act.kind]} if sure else may | {kinds[act.kind]}
        return may

    def _message(self, post: Post, message_id: str, body: bytes, delay_s: int) -> None:
        queue, exchange = self._queues[post.queue], post.exchange
        exists = self._there(post.queue, {"delete": False, "make": True}, exchange.asked, exchange.answered)
        if exists == {False}:
            # The post made a queue of its own.
            return
        there = {
            name: self._there(post.queue, COMES_AND_GOES, exchange.asked, exchange.answered, name)
            for name in queue.subscribers
        }
        groups = [tuple(queue.subscribers)] if queue.unicast else [(name,) for name in queue.subscribers]
        for names in groups:
            receivers = frozenset(name for name in names if True in there[name])
            asked = [each for each in self._asked.get(message_id, ()) if each.receiver in names]
            for each in asked:
                told_of = f"{post.queue}, by {each.receiver} at {moment(each.at)}"
                self._judgement.fact(each.receiver in receivers, NOT_OWED, message_id, told_of)
            if not receivers:
                continue
            where = f"{post.queue} to {'/'.join(names)}"
            owed = Owed(message_id, where, receivers, exchange, delay_s, queue.expires_s, self._terms[post.queue])
            owed.prompt = queue.prompt
            owed.acknowledged = [each.exchange for each in self._acknowledged.get(message_id, ()) if each.name in names]
            self._acted(owed, post, names)
            if False in exists or any(False in there[name] for name in names):
                owed.disturbed = exchange.asked
            seen = [self._seen(queue, each, body) for each in asked]
            came = self._pushes.judge(owed, seen)
            self._told_of(owed, came, post, body, names)

    def _acted(self, owed: Owed, post: Post, names: Sequence[str]) -> None:
        """What its owner did to a message, or to its subscribers, since."""
        for act in self._acts[post.queue]:
            concerns = act.kind in {"clear", "delete", "make"} or act.subject in {owed.message_id, *names}
            if not concerns or act.kind in {"retries", "add", "change"} or act.exchange.answered < post.exchange.asked:
                continue
            owed.disturbed = min(owed.disturbed, act.exchange.asked)
            certainly = act.exchange.asked > post.exchange.answered
            if certainly and act.kind != "make" and not (act.kind == "remove" and len(names) > 1):
                owed.back.append(act.exchange)

    @staticmethod
    def _seen(queue: Queue, each: Request, body: bytes) -> Seen:
        meaning = Meaning.FAILED
        if each.status == RESERVED:
            meaning = Meaning.PROMISED
        elif 200 <= each.status < 300:
            meaning = Meaning.TAKEN
        wait_s = float(each.wait_s if queue.obeys else 0)
        if queue.obeys and each.status == TOO_MANY:
            wait_s = max(wait_s, queue.slow_down_s)
        of = "" if each.body == body else f"{len(each.body)} bytes {each.body[:40]!r} for {len(body)} {body[:40]!r}"
        return Seen(each.at, each.ended, each.receiver, each.body == body, meaning, wait_s, of)

    def _told_of(self, owed: Owed, came: Came, post: Post, body: bytes, names: Sequence[str]) -> None:
        """One error message for what was given up or has expired, and none for what was not."""
        queue, about = self._queues[post.queue], owed.message_id
        found = [
            each
            for each in self._errors.get(about, ())
            # A subscriber that was removed before it was ever asked has no name there.
            if queue.unicast or not {*each.names, ""}.isdisjoint(names) or each.names == ("",)
        ]
        because = self._faults.on(about, owed.posted.asked, self._ends)[-1:]
        for each in found:
            fact = each.body is None or each.body == body
            self._judgement.fact(fact, ERROR_OF_OTHERS, about, f"{len(each.body or b'')} bytes for {len(body)}")
            for name, code in zip(each.names, each.codes, strict=bool(each.codes)):
                last = [one.status for one in self._asked.get(about, ()) if one.receiver == name][-1:]
                detail = f"{owed.where}: {code} of {name}, whose last answer was {last}"
                kept = [code] == (last or [0]) or owed.disturbed < FOREVER
                self._judgement.fact(kept, OTHER_CODE, about, detail, because)
        taken = came.over is not None or any(each.done for each in owed.acknowledged)
        most = int(bool(queue.error_queue) and not taken)
        detail = f"{owed.where}: {len(found)}, {came.why or 'not taken'}, after {came.most} tries"
        self._judgement.fact(len(found) <= most or owed.disturbed < FOREVER, TOO_MANY_TOLD, about, detail, because)
        doubtful = owed.disturbed < FOREVER or any(each.unsure for each in owed.acknowledged)
        expires = post.exchange.answered + round((owed.delay_s + queue.expires_s) * SECOND)
        due = (came.may_end and came.latest < self._ends) or expires + 26 * 3_600 * SECOND < self._ends
        # Whoever looks when the next try is due sees that it has expired.
        due = due or expires < came.latest < self._ends - 3_600 * SECOND
        if most and not doubtful and due:
            self._judgement.fact(len(found) >= 1, NOT_TOLD, about, detail, because)

    def _strangers(self, posts: Sequence[Post], known: set[str]) -> None:
        """Messages whose post was not answered: they exist at most once for each such post, with its bytes."""
        open_posts: Counter[tuple[str, bytes]] = Counter()
        for post in posts:
            if not post.ids:
                open_posts.update((post.queue, body) for body in post.bodies)
        for message_id, asked in self._asked.items():
            if message_id in known:
                continue
            key = asked[0].queue, asked[0].body
            detail = f"{asked[0].queue} at {moment(asked[0].at)}: {asked[0].body[:40]!r}"
            self._judgement.fact(open_posts[key] > 0, NEVER_POSTED, message_id, detail)
            open_posts[key] -= 1
