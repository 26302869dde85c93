"""Pull queues: the life of each message, as IronMQ promises it, from what producers, consumers and owners asked and
were answered.

A message is available from its delay's end until it expires. Who reserves it has it alone until the reservation ends,
is extended, given back, or the message deleted; then it is available again, with a higher ``reserved_count``. One that
has been reserved ``max_reservations`` times goes to the dead letters instead. A consumer that is alone gets the oldest
available messages, and so nobody is refused a message that is there.
"""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from simulation.promises.judgement import SECOND, Exchange, Judgement, Post, moment

ALONE_S = 10
"""A consumer is alone if no other asked the queue at the same time, or within so many seconds before."""

CROWDED_LOOKS = 12
"""So many looks of consumers that are not alone, and get less than they asked for, find what is available."""

GRACE_S = 180
MENDING_LOOKS = 12
"""How long the places of messages that a failed request left behind may take to be mended, from the first look on that
finds them, when a reservation that it may have made has ended; and how many looks, as each mends those that it meets.
"""

CLEARED_S = 1
"""A change of a queue is in force a second after its answer."""

LONGEST_S = 120
"""The longest reservation that consumers ask for."""


@dataclass(frozen=True)
class Settings:
    """A queue.

    Attributes:
        expiration_s: How long its messages live.
        dead_letters: Where messages go that were reserved too often; empty for nowhere.
        max_reservations: How often that is.
    """

    expiration_s: int
    dead_letters: str = ""
    max_reservations: int = 0


@dataclass(frozen=True)
class Got:
    """A message as a consumer got it."""

    message_id: str
    body: bytes
    reserved_count: int
    reservation_id: str


@dataclass(frozen=True)
class Reserve:
    """A consumer's request for messages.

    Attributes:
        queue: The queue.
        exchange: The request.
        count: How many it asked for.
        timeout_s: For how long.
        delete: Whether they are deleted at once.
        messages: What it got.
    """

    queue: str
    exchange: Exchange
    count: int
    timeout_s: int
    delete: bool = False
    messages: Sequence[Got] = ()


@dataclass(frozen=True)
class Act:
    """What a consumer does with a message that it has.

    Attributes:
        kind: What it does.
        queue: The queue.
        exchange: The request.
        message_id: The message.
        reservation_id: The reservation it names.
        seconds: Timeout of a touch, delay of a release.
        new_id: The reservation after a touch.
        among: How many messages the request deletes: one that cannot be refuses them all.
    """

    kind: Literal["touch", "release", "delete"]
    queue: str
    exchange: Exchange
    message_id: str
    reservation_id: str
    seconds: int = 0
    new_id: str = ""
    among: int = 1


@dataclass(frozen=True)
class Clear:
    """An owner empties a queue."""

    queue: str
    exchange: Exchange


@dataclass
class _Life:
    """What is known of a message while its events are gone through in order.

    Attributes:
        queue: Its queue.
        message_id: Its id.
        body: What was posted.
        earliest: It is not available before that (microseconds).
        latest: It is available after that.
        posted: The post that was answered.
        why: Why it is not available before.
        expires: Earliest and latest end of its life.
        count: ``reserved_count`` as consumers were told last.
        holder: The current reservation; empty for none.
        gone: The request that certainly, or perhaps, ended it.
        surely: Whether it certainly did.
        since: When its count was last known.
        dead_by: When it must have become a dead letter.
        cleared: When its owner emptied the queue, after it was posted.
        doubts: Requests about it of which nobody knows what they did.
    """

    queue: str
    message_id: str
    body: bytes
    earliest: int
    latest: int
    expires: tuple[int, int]
    posted: Exchange
    why: str = "before its delay was over"
    count: int = 0
    holder: str = ""
    gone: Exchange | None = None
    surely: bool = False
    since: int = 0
    dead_by: int | None = None
    cleared: list[Clear] = field(default_factory=list)
    doubts: list[Exchange] = field(default_factory=list)


class PullQueues:
    """Judges a run.

    Args:
        queues: The queues, by name.
        clocks_s: The most by which two clocks of the hub differ, by the fault plan, in seconds.
        ends: When the run ended, microseconds.
    """

    def __init__(self, queues: Mapping[str, Settings], *, clocks_s: float, ends: int) -> None:
        self.judgement = Judgement()
        self._queues = queues
        self._slack = round((0.1 + clocks_s) * SECOND)
        self._ends = ends

    def judge(
        self, posts: Sequence[Post], reserves: Sequence[Reserve], acts: Sequence[Act], clears: Sequence[Clear]
    ) -> Judgement:
        """Go through the life of each message."""
        self._clears: dict[str, list[Clear]] = defaultdict(list)
        for clear in clears:
            self._clears[clear.queue].append(clear)
        self._looks: dict[str, list[Reserve]] = defaultdict(list)
        self._got: dict[tuple[str, str], list[tuple[Reserve, Got]]] = defaultdict(list)
        self._acts: dict[tuple[str, str], list[Act]] = defaultdict(list)
        for look in sorted(reserves, key=lambda each: each.exchange.asked):
            self._looks[look.queue].append(look)
            for got in look.messages:
                self._got[look.queue, got.message_id].append((look, got))
        for act in acts:
            self._acts[act.queue, act.message_id].append(act)
        self._alone = {id(each) for looks in self._looks.values() for each in _alone(looks)}
        self._doubtful = {name: [each for each in looks if each.exchange.unsure] for name, looks in self._looks.items()}
        self._done = {
            name: [each.exchange.asked for each in looks if each.exchange.done] for name, looks in self._looks.items()
        }
        self._troubled: dict[str, list[Exchange]] = defaultdict(list)
        self._counts = {each.exchange: each.count for each in reserves}
        self._taken: Counter[Exchange] = Counter()
        requests: list[Post | Reserve | Act | Clear] = [*posts, *reserves, *acts, *clears]
        for request in requests:
            if request.exchange.unsure:
                self._troubled[request.queue].append(request.exchange)
        known = self._posted(posts)
        self._dead(known)
        self._strangers(posts, known)
        return self.judgement

    def _posted(self, posts: Sequence[Post]) -> dict[tuple[str, str], _Life]:
        known: dict[tuple[str, str], _Life] = {}
        for post in posts:
            for message_id, body, delay_s in zip(post.ids, post.bodies, post.delays_s, strict=False):
                key = post.queue, message_id
                detail = f"told by two posts to {post.queue}"
                if self.judgement.fact(key not in known, "an identifier twice", message_id, detail):
                    delay, lasts = delay_s * SECOND, self._queues[post.queue].expiration_s * SECOND
                    known[key] = _Life(
                        post.queue,
                        message_id,
                        body,
                        post.exchange.asked + delay,
                        post.exchange.answered + delay,
                        (post.exchange.asked + delay + lasts, post.exchange.answered + delay + lasts),
                        post.exchange,
                        since=post.exchange.asked,
                        doubts=[post.exchange] if post.exchange.unsure else [],
                    )
                    self._goes_through(known[key])
        return known

    def _goes_through(self, life: _Life) -> None:
        """All events of a message, in the order in which they took effect, and what should have come between them."""
        key = life.queue, life.message_id
        steps: list[tuple[int, Reserve | Act, Got | None]] = [
            (look.exchange.answered, look, got) for look, got in self._got.get(key, ())
        ]
        steps += [(act.exchange.asked, act, None) for act in self._acts.get(key, ())]
        life.cleared = [each for each in self._clears[life.queue] if each.exchange.answered > life.posted.asked]
        for _, step, got in sorted(steps, key=lambda each: each[0]):
            if isinstance(step, Act):
                self._acted(life, step)
            elif got is not None:
                self._offered(life, step.exchange.asked)
                self._handed(life, step, got)
        self._offered(life, min(life.expires[0], self._ends))

    def _handed(self, life: _Life, look: Reserve, got: Got) -> None:
        fact, about, at = self.judgement.fact, life.message_id, moment(look.exchange.answered)
        where, settings = f"{life.queue} at {at}", self._queues[life.queue]
        fact(got.body == life.body, "other bytes than were posted", about, f"{where}: {_differ(life.body, got.body)}")
        if life.gone is not None and life.surely:
            gone = f"{where}, deleted at {moment(life.gone.answered)}"
            fact(look.exchange.answered < life.gone.asked, "handed out after it was deleted", about, gone, life.doubts)
        elif life.holder or life.earliest:
            early = f"{where}, {(life.earliest - look.exchange.answered) / SECOND:.1f} s {life.why}"
            rule = "reserved by two" if life.holder else "handed out too early"
            fact(look.exchange.answered >= life.earliest - self._slack, rule, about, early, life.doubts)
        over = f"{where}, expired at {moment(life.expires[1])}"
        fact(look.exchange.asked <= life.expires[1] + self._slack, "handed out after it expired", about, over)
        for clear in life.cleared:
            if clear.exchange.done and life.posted.answered < clear.exchange.asked:
                late = look.exchange.asked > clear.exchange.answered + CLEARED_S * SECOND + self._slack
                detail = f"{where}, cleared at {moment(clear.exchange.answered)}"
                fact(not late, "handed out after it was cleared", about, detail)
        unseen = self._unseen(life.queue, life, look.exchange.answered)
        more = got.reserved_count - life.count - 1
        counted = f"{where}: {got.reserved_count} after {life.count}"
        # Requests whose answers nobody got may have reserved it, each no more messages than it asked for. Of several,
        # those that came last explain it.
        explain = sorted(unseen, key=lambda each: each.asked)[-more:] if 0 < more <= len(unseen) else []
        known = bool(explain) and all(each.struck and self._may_have(each) for each in explain)
        fact(more == 0 or known, "reserved_count", about, counted, explain)
        if settings.dead_letters:
            often = f"{where}, {got.reserved_count} times of {settings.max_reservations}"
            fact(got.reserved_count <= settings.max_reservations, "handed out too often", about, often)
        life.count, life.since, life.holder = got.reserved_count, look.exchange.answered, got.reservation_id
        life.doubts = []
        life.gone, life.surely = (look.exchange, not look.exchange.unsure) if look.delete else (None, False)
        timeout = look.timeout_s * SECOND
        life.earliest, life.latest = look.exchange.asked + timeout, look.exchange.answered + timeout
        life.why = "before its reservation ended"

    def _may_have(self, exchange: Exchange) -> bool:
        """Whether a request without an answer may have reserved one more message."""
        self._taken[exchange] += 1
        return self._taken[exchange] <= self._counts.get(exchange, 1)

    def _unseen(self, queue: str, life: _Life, until: int) -> list[Exchange]:
        """Requests that may have reserved the message without anybody being told."""
        looks = [each.exchange for each in self._doubtful.get(queue, ())]
        return [
            each
            for each in [*looks, *life.doubts]
            if life.since <= each.answered and each.asked <= until and each.answered <= until
        ]

    def _acted(self, life: _Life, act: Act) -> None:
        exchange, about = act.exchange, life.message_id
        if life.gone is not None and life.surely:
            return
        where = f"{act.kind} in {act.queue} at {moment(exchange.asked)}: {exchange.status}"
        if exchange.done:
            valid = act.reservation_id == life.holder and exchange.asked <= life.latest + self._slack
            self.judgement.fact(valid, "a reservation that was over counts", about, where, life.doubts)
            self._took_effect(life, act)
        elif exchange.unsure:
            life.doubts.append(exchange)
            if act.kind == "delete":
                life.gone, life.surely = exchange, False
            elif act.kind == "release":
                life.earliest = min(life.earliest, exchange.asked + act.seconds * SECOND)
                life.latest = max(life.latest, exchange.answered + act.seconds * SECOND)
            else:
                life.latest = max(life.latest, exchange.answered + act.seconds * SECOND)
                life.holder = ""
        elif exchange.status < 500:
            mine = act.reservation_id == life.holder and exchange.answered < life.earliest - self._slack
            alive = exchange.answered < life.expires[0] - self._slack
            taken_back = any(each.exchange.asked <= exchange.answered for each in life.cleared)
            refused = mine and alive and not taken_back and life.gone is None and act.among == 1
            self.judgement.fact(not refused, "refused although reserved", about, where, life.doubts)

    @staticmethod
    def _took_effect(life: _Life, act: Act) -> None:
        exchange = act.exchange
        wait = act.seconds * SECOND
        if act.kind == "delete":
            life.gone, life.surely = exchange, True
            return
        life.earliest, life.latest = exchange.asked + wait, exchange.answered + wait
        if act.kind == "touch":
            life.count += 1
            life.holder, life.since = act.new_id, exchange.answered
        else:
            life.holder, life.why = "", "before the delay of its release was over"
        if exchange.unsure:
            life.doubts.append(exchange)

    def _offered(self, life: _Life, until: int) -> None:
        """Until it was handed out next, or expired, nobody asked in vain who should have got it."""
        if life.gone is not None or life.dead_by is not None:
            return
        settings, excused = self._queues[life.queue], False
        for look in self._in_vain(life, until):
            if settings.dead_letters and life.count >= settings.max_reservations:
                life.dead_by = look.exchange.answered
                return
            taken, because = self._in_its_way(life, look)
            if because and excused:
                continue
            detail = (
                f"{life.queue} at {moment(look.exchange.asked)}: {len(look.messages)} of {look.count}, available since "
                f"{moment(life.latest)}, expires at {moment(life.expires[0])}, reserved {life.count} times"
            )
            self.judgement.fact(False, "there and not handed out", life.message_id, detail, because)
            excused = True
            if taken or not because:
                life.gone = look.exchange
                return
        if not excused:
            self.judgement.judged += 1

    def _in_vain(self, life: _Life, until: int) -> Iterator[Reserve]:
        """The looks, up to a time, that should have found a message if it was in its queue."""
        taken_back = (each.exchange.asked for each in life.cleared if each.exchange.done or each.exchange.unsure)
        until = min([until, life.expires[0] - self._slack, *taken_back])
        looks, crowded = self._looks[life.queue], 0
        place = bisect.bisect_right(looks, life.latest + self._slack, key=lambda each: each.exchange.asked)
        for look in looks[place:]:
            if look.exchange.asked >= until:
                return
            if look.exchange.answered > until or not look.exchange.done or look.exchange.unsure:
                continue
            room = len(look.messages) < look.count
            if id(look) in self._alone:
                self.judgement.judged += 1
                if room or any(int(each.message_id) > int(life.message_id) for each in look.messages):
                    yield look
            else:
                crowded += room
                if crowded >= CROWDED_LOOKS:
                    yield look

    def _in_its_way(self, life: _Life, look: Reserve) -> tuple[bool, list[Exchange]]:
        """Requests with faults that may keep a message from a look, and whether for good: they may have taken it, or
        reserved it, or left places of messages that are not there.
        """
        popped = self._taken_by(life, look.exchange.answered)
        if popped:
            return True, [popped]
        settings, unseen = self._queues[life.queue], self._unseen(life.queue, life, look.exchange.answered)
        worn = life.count + len(unseen) >= settings.max_reservations > 0
        if worn and (settings.dead_letters, life.message_id) in self._got:
            return True, unseen
        return False, [
            each
            for each in [*self._troubled[life.queue], *life.doubts]
            if each.asked <= look.exchange.answered and look.exchange.asked <= self._mended_at(life.queue, each)
        ]

    def _mended_at(self, queue: str, trouble: Exchange) -> int:
        looks, ended = self._done[queue], trouble.answered + LONGEST_S * SECOND + self._slack
        place = bisect.bisect_left(looks, ended)
        found = [*looks[place : place + MENDING_LOOKS], self._ends]
        return max(found[0] + GRACE_S * SECOND, found[-1] if len(found) <= MENDING_LOOKS else found[-2])

    def _taken_by(self, life: _Life, until: int) -> Exchange | None:
        """A request that may have taken the message for good, before a time, although nobody got it."""
        return next(
            (
                each.exchange
                for each in self._doubtful.get(life.queue, ())
                if each.delete
                and each.exchange.answered >= life.earliest - self._slack
                and each.exchange.asked <= until
            ),
            None,
        )

    def _dead(self, known: Mapping[tuple[str, str], _Life]) -> None:
        """Dead letters: those that are due arrive, whole, and no others do."""
        targets = {settings.dead_letters for settings in self._queues.values() if settings.dead_letters}
        source = {message_id: (queue, life) for (queue, message_id), life in known.items()}
        seen: Counter[str] = Counter()
        for target in targets:
            for (queue, message_id), handed in self._got.items():
                if queue != target or message_id not in source:
                    continue
                seen[message_id] += 1
                self._arrived(target, *source[message_id], handed)
        for (queue, message_id), life in known.items():
            settings = self._queues[queue]
            if life.dead_by is None:
                continue
            drained = any(
                each.exchange.asked > life.dead_by + self._slack
                and each.exchange.done
                and len(each.messages) < each.count
                for each in self._looks[settings.dead_letters]
            )
            if drained:
                detail = f"{queue}, reserved {life.count} times, due at {moment(life.dead_by)}"
                because = self._unseen(queue, life, self._ends)
                self.judgement.fact(seen[message_id] > 0, "a dead letter is missing", message_id, detail, because)

    def _arrived(self, target: str, queue: str, life: _Life, handed: Sequence[tuple[Reserve, Got]]) -> None:
        fact, about, settings = self.judgement.fact, life.message_id, self._queues[queue]
        look, got = handed[0]
        where = f"{target} at {moment(look.exchange.answered)}"
        unseen = self._unseen(queue, life, look.exchange.answered)
        due = settings.dead_letters == target and life.count >= settings.max_reservations
        enough = life.count + len(unseen) >= settings.max_reservations
        detail = f"{where}, reserved {life.count} times of {settings.max_reservations} in {queue}"
        fact(due, "a dead letter too early", about, detail, unseen if enough else ())
        fact(got.body == life.body, "other bytes than were posted", about, f"{where}: {_differ(life.body, got.body)}")
        later = [*unseen, *self._unseen(target, life, look.exchange.answered)]
        counted = f"{where}: {got.reserved_count} after {life.count} in {queue}"
        fact(got.reserved_count == life.count + 1, "reserved_count", about, counted, later)
        for again, _ in handed[1:]:
            gone = f"{target} again at {moment(again.exchange.answered)}"
            fact(not look.delete or look.exchange.unsure, "handed out after it was deleted", about, gone, unseen)

    def _strangers(self, posts: Sequence[Post], known: Mapping[tuple[str, str], _Life]) -> None:
        """Messages whose post was not answered: they exist at most once for each such post, with its bytes."""
        own = {message_id for _, message_id in known}
        open_posts: Counter[tuple[str, bytes]] = Counter()
        for post in posts:
            if not post.ids and (post.exchange.unsure or not post.exchange.status):
                open_posts.update((post.queue, body) for body in post.bodies)
        for (queue, message_id), handed in self._got.items():
            targets = [name for name, each in self._queues.items() if each.dead_letters == queue]
            if message_id in own or any((name, message_id) in self._got for name in targets):
                continue
            for name in [queue, *targets]:
                key = name, handed[0][1].body
                if open_posts[key]:
                    open_posts[key] -= 1
                    break
            else:
                detail = f"{queue} at {moment(handed[0][0].exchange.answered)}: {handed[0][1].body[:40]!r}"
                self.judgement.fact(False, "handed out and never posted", message_id, detail)


def _alone(looks: Sequence[Reserve]) -> Iterator[Reserve]:
    """Of looks in the order of their beginnings those whose consumer met no other, and saw no trace of one."""
    busy_until = -1
    for place, look in enumerate(looks):
        following = looks[place + 1].exchange.asked if place + 1 < len(looks) else look.exchange.answered + 1
        if busy_until + ALONE_S * SECOND < look.exchange.asked and following > look.exchange.answered:
            yield look
        busy_until = max(busy_until, look.exchange.answered)


def _differ(posted: bytes, got: bytes) -> str:
    """How two bodies differ, in a few words."""
    place = next(
        (at for at, (one, other) in enumerate(zip(posted, got, strict=False)) if one != other),
        min(len(posted), len(got)),
    )
    return f"{len(got)} bytes for {len(posted)}, from byte {place} on"
