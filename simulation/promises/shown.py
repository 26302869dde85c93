"""What people are shown of what was sent: the requests that receivers saw, with their answers, what became of each
message, and the list of messages as they were posted. Protocols say in their own words what stands here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from simulation.promises.judgement import SECOND, Exchange, Fault, Faults, Judgement, moment
from simulation.promises.push import Request

RUN_S = 120
"""A run lasts so long at most, from when its order came to the attempt."""

DOUBLING = frozenset({"duplicates", "replay", "repeated", "lost", "late", "twice", "crash"})
"""Faults after which one order may become two, which may wait as long as any."""

NOTED_S = 60
"""A request is shown so long after its end at the latest."""

NEVER_MADE, NOT_SHOWN = "an attempt is shown that was never made", "an attempt is not shown"
OTHER_END, NOT_FOUND = "another end is shown than it had", "a message is not found"
LISTED_TWICE, NOT_LISTED = "a message is listed twice", "a message is not listed"
NEVER_POSTED, OTHER_CONTENT = "a message is listed that was never posted", "a message is shown otherwise"
OUT_OF_ORDER, OTHER_TIME = "messages are listed out of order", "a message is listed with another time"
OTHER_SETTINGS = "settings are shown that nobody made"
OTHER_TOTAL = "another total is shown than was posted"
GIVEN_UP_UNLISTED, LISTED_AND_TAKEN = "what was given up is not listed", "what was taken is listed as given up"
NOBODY_ASKED = "an attempt is shown as asked for by a person"


@dataclass(frozen=True)
class Attempt:
    """An attempt as it is shown.

    Attributes:
        receiver: Who was asked, by name.
        status: The answer; 0 for none.
        at: When it began, microseconds.
        by_hand: Whether a person is said to have asked for it; None where that is not told.
    """

    receiver: str
    status: int
    at: int
    by_hand: bool | None = None


@dataclass(frozen=True)
class End:
    """What is shown of a message at a receiver.

    Attributes:
        receiver: The receiver.
        taken: Whether it is said to have taken it.
        status: Its last answer; None where that is not told.
        any_of: All to whom it is owed as one; just the receiver if empty.
        given_up: Whether it is said to have been given up.
    """

    receiver: str
    taken: bool
    status: int | None = None
    any_of: frozenset[str] = frozenset()
    given_up: bool = False


@dataclass(frozen=True)
class Shown:
    """What is shown of one message.

    Attributes:
        message_id: The message.
        exchange: The request for it.
        posted: When it was posted, microseconds.
        attempts: All that are told one by one; None where none are.
        forgotten: How many more are said to have been made.
        ends: What is shown of it at each receiver that has been asked.
        acknowledged: Acknowledgements of it, by receiver.
        by_hand: What people asked for, by receiver.
        content: Its content as it is shown; None where that was not asked for.
        posted_content: Its content as it was posted.
    """

    message_id: str
    exchange: Exchange
    posted: int
    attempts: Sequence[Attempt] | None
    forgotten: int = 0
    ends: Sequence[End] = ()
    acknowledged: Sequence[tuple[str, Exchange]] = ()
    by_hand: Sequence[tuple[str, Exchange]] = ()
    content: object = None
    posted_content: object = None


@dataclass(frozen=True)
class Listed:
    """A message, as it was posted or as it is listed.

    Attributes:
        message_id: The message.
        content: Its content.
        at: When it is said to have come, or its post was answered, microseconds.
        since: When its post began.
    """

    message_id: str
    content: object
    at: int
    since: int = 0


def is_success(request: Request) -> bool:
    """Whether any 2xx was answered."""
    return 200 <= request.status < 300


class ShownPushes:
    """Judges what was shown.

    Args:
        requests: All requests that receivers saw.
        judgement: Where the facts go.
        faults: What the fault plan did.
        clocks_s: The most by which two clocks of the hub differ, by the fault plan, in seconds.
        taken: Whether an answer means that the message was taken.
    """

    def __init__(
        self,
        requests: Iterable[Request],
        judgement: Judgement,
        faults: Faults,
        *,
        clocks_s: float,
        taken: Callable[[Request], bool] = is_success,
    ) -> None:
        self._requests: dict[str, list[Request]] = defaultdict(list)
        for each in sorted(requests, key=lambda each: each.at):
            self._requests[each.message_id].append(each)
        self._judgement = judgement
        self._faults = faults
        self._taken = taken
        self._slack = round((1.1 + clocks_s) * SECOND)

    def judge(self, shown: Shown) -> None:
        """Each request is shown once, when it was made and with its answer, and nothing else; and how it ended."""
        about = shown.message_id
        if not self._judgement.fact(
            shown.exchange.status == 200, NOT_FOUND, about, f"{shown.exchange.status}", [shown.exchange]
        ):
            return
        if shown.attempts is not None:
            self._attempts(shown, shown.attempts)
        for end in shown.ends:
            self._end(shown, end)
        if shown.content is not None:
            detail = f"{str(shown.content)[:80]} for {str(shown.posted_content)[:80]}"
            self._judgement.fact(shown.content == shown.posted_content, OTHER_CONTENT, about, detail)

    def _attempts(self, shown: Shown, attempts: Sequence[Attempt]) -> None:
        about = shown.message_id
        requests = [each for each in self._requests[about] if each.at <= shown.exchange.answered]
        for attempt in sorted(attempts, key=lambda each: each.at):
            found = next((each for each in requests if self._is(attempt, each)), None)
            detail = f"{attempt.receiver} at {moment(attempt.at)}: {attempt.status}"
            if self._judgement.fact(found is not None, NEVER_MADE, about, detail, self._because(shown)) and found:
                requests.remove(found)
            asked_for = any(
                name == attempt.receiver and hand.asked <= attempt.at + self._slack for name, hand in shown.by_hand
            )
            self._judgement.fact(not attempt.by_hand or asked_for, NOBODY_ASKED, about, detail)
        missing = [each for each in requests if each.ended + NOTED_S * SECOND <= shown.exchange.asked]
        detail = f"{len(missing)} of {len(requests) + len(attempts)}, {shown.forgotten} are said not to be known"
        kept = len(missing) <= shown.forgotten <= len(requests)
        self._judgement.fact(kept, NOT_SHOWN, about, detail, self._unnoted(shown, missing))

    def _unnoted(self, shown: Shown, missing: Sequence[Request]) -> list[Fault]:
        """What struck the runs of attempts that were not noted, before their orders came or before the write; or what
        may have doubled an order, as an attempt that was made twice for one is noted once.
        """
        struck = [
            [
                fault
                for fault in self._faults.on(each.message_id, shown.posted, each.ended + NOTED_S * SECOND)
                if fault.kind in DOUBLING or fault.at >= each.at - RUN_S * SECOND
            ]
            for each in missing
        ]
        # Those that are said not to be known need no reason.
        reasons = [each[-1] for each in struck if each]
        return reasons[:1] if len(reasons) >= max(1, len(missing) - shown.forgotten) else []

    def _because(self, shown: Shown) -> list[Fault]:
        """An attempt of a run that a fault struck may not have been noted, or one of an order that came twice."""
        return self._faults.on(shown.message_id, shown.posted, shown.exchange.answered)[-1:]

    def _is(self, attempt: Attempt, request: Request) -> bool:
        same = (attempt.receiver, attempt.status) == (request.receiver, request.status)
        return same and abs(attempt.at - request.at) <= self._slack

    def _end(self, shown: Shown, end: End) -> None:
        """Taken is what was taken or acknowledged, once that is noted."""
        group, about = end.any_of or {end.receiver}, shown.message_id
        asked = [
            each for each in self._requests[about] if each.receiver in group and each.at <= shown.exchange.answered
        ]
        acknowledged = [exchange for name, exchange in shown.acknowledged if name in group]
        fresh = any(each.ended + NOTED_S * SECOND > shown.exchange.asked for each in asked)
        if fresh or any(each.unsure for each in acknowledged):
            return
        because = self._because(shown)
        detail = f"{end}, asked {[(moment(each.at), each.receiver, each.status) for each in asked]}"
        taken = any(self._taken(each) for each in asked)
        by_word = any(each.done for each in acknowledged)
        self._judgement.fact(end.taken == (taken or by_word), OTHER_END, about, detail, because)
        own = [each.status for each in asked if each.receiver == end.receiver]
        if own and end.status is not None and not by_word:
            self._judgement.fact(end.status == own[-1], OTHER_END, about, detail, because)


def judge_given_up(judgement: Judgement, shown: Iterable[Shown], listed: Collection[tuple[str, str]]) -> None:
    """The list of what was given up has what each message by itself is said to have come to, and nothing that arrived.

    Args:
        judgement: Where the facts go.
        shown: What was shown of some messages, before the list was.
        listed: Messages and receivers of the list.
    """
    for each in shown:
        for end in each.ends:
            found = any((each.message_id, name) in listed for name in end.any_of or {end.receiver})
            if end.given_up:
                judgement.fact(found, GIVEN_UP_UNLISTED, each.message_id, f"{end}")
            elif end.taken:
                judgement.fact(not found, LISTED_AND_TAKEN, each.message_id, f"{end}")


def judge_list(
    judgement: Judgement,
    posted: Mapping[str, Listed],
    listed: Sequence[Listed],
    unanswered: Sequence[object],
    *,
    clocks_s: float = 0,
) -> None:
    """All messages are listed once, as they were posted, newest first, and no others.

    Args:
        judgement: Where the facts go.
        posted: What was posted and answered, by id; ``at`` is when the answer came.
        listed: What is listed, in that order; ``at`` is when it is said to have come.
        unanswered: Contents of posts that had no answer, each of which may be listed.
        clocks_s: The most by which a clock of the hub is off, seconds.
    """
    slack = round((0.1 + clocks_s) * SECOND)
    seen: set[str] = set()
    for each in listed:
        judgement.fact(each.message_id not in seen, LISTED_TWICE, each.message_id, "")
        seen.add(each.message_id)
        if each.message_id not in posted:
            detail = str(each.content)[:80]
            judgement.fact(each.content in unanswered, NEVER_POSTED, each.message_id, detail)
            continue
        own = posted[each.message_id]
        detail = f"{str(each.content)[:80]} for {str(own.content)[:80]}"
        judgement.fact(each.content == own.content, OTHER_CONTENT, each.message_id, detail)
        detail = f"{moment(each.at)}, and it was posted from {moment(own.since)} to {moment(own.at)}"
        judgement.fact(own.since - slack <= each.at <= own.at + slack, OTHER_TIME, each.message_id, detail)
    ids = [each.message_id for each in listed]
    judgement.fact(ids == sorted(ids, reverse=True), OUT_OF_ORDER, ids[0] if ids else "", f"{len(ids)} messages")
    for message_id, item in posted.items():
        judgement.fact(message_id in seen, NOT_LISTED, message_id, f"posted until {moment(item.at)}")


def judge_settings(
    judgement: Judgement, name: str, settings: Mapping[str, object], shown: Mapping[str, object]
) -> None:
    """What an owner is shown of something is what the owner set; the hub may show more than that."""
    for each, value in settings.items():
        detail = f"{each} is {shown.get(each)}, and was set to {value}"
        judgement.fact(shown.get(each) == value, OTHER_SETTINGS, name, detail)


__all__ = [
    "Attempt",
    "End",
    "Listed",
    "Shown",
    "ShownPushes",
    "is_success",
    "judge_given_up",
    "judge_list",
    "judge_settings",
]
