"""Where the messages of a pull queue stand: entries in the order of the queue, written by the store in place of an
index (decision 0049).

The message's own item says where it stands, and every change of that is one conditional write to it. Its entry follows:
the new one is written, then the old one is deleted. No place is used twice. So an entry at a place where its message
does not stand is out of date for good, and while a message lives there is always an entry that leads to it: at the
place where it stands or, if whoever moved it was cut off, where it stood before. Who meets an entry that is out of date
mends it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from pushhub.cloud.table import Item, Table, number, text
from pushhub.ironmq.store._pull_items import (
    AVAILABLE,
    AWAY,
    Candidate,
    away_before,
    decode_candidate,
    encode_entry,
    entry_key,
    shard_key,
)

_PAGE = 1000
"""Entries read at once behind the first page, and messages come back that are considered together."""


class PullPlaces:
    """The entries of pull queues.

    Args:
        table: The table of pull queues.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def enter(self, items: Sequence[Item]) -> None:
        """Write entries where messages stand now, given their items. Once a message is stored, this makes it one of its
        queue.
        """
        entries = [encode_entry(each) for each in items]
        if len(entries) == 1:
            self._table.put(entries[0])
        else:
            self._table.put_many(entries)

    def move(self, items: Sequence[Item]) -> None:
        """Let entries follow messages that were moved, given their items."""
        if items:
            self.enter(items)
            self.leave(items, "came_from")

    def leave(self, items: Sequence[Item], which: str = "place") -> None:
        """Delete the entries of messages that have left a place.

        Args:
            items: Of the messages.
            which: The attribute that names the place.
        """
        self._table.delete_many([entry_key(each, each[which]["S"]) for each in items])

    def forget(self, project_id: str, pull_uid: str, candidates: Iterable[Candidate]) -> None:
        """Delete entries that lead to nothing."""
        self._table.delete_many(
            [{"pk": shard_key(project_id, pull_uid, each.shard), "sk": text(each.place)} for each in candidates]
        )

    def front(self, project_id: str, pull_uid: str, *, now: int, first_page: int) -> Iterator[Candidate]:
        """Messages that nobody holds, in the order of the queue, read as they are asked for; expired ones among them.

        Args:
            project_id: Owner.
            pull_uid: Generation of its messages.
            now: Epoch milliseconds.
            first_page: How many are likely to be asked for.
        """
        # One look shows a short queue whole: those that nobody has held, then those that came back.
        look = self._read(project_id, pull_uid, AVAILABLE, away_before(now), first_page)
        new = [each for each in look if each.place < AWAY]
        back = look[len(new) :]
        if len(look) == first_page:
            # What came back is read first and whole, because its order is not the queue's.
            back = self._read(project_id, pull_uid, AWAY, away_before(now), _PAGE)
        waiting = self._waiting(project_id, pull_uid, new, more=len(new) == first_page)
        return heapq.merge(sorted(back, key=_rank), waiting, key=_rank)

    def count(self, project_id: str, pull_uid: str, now: int, *, at_most: int | None = None) -> int:
        """Messages in the queue; counting ends at ``at_most``. Reads 1 MB (some 8,000 messages) a call."""
        bound: dict[str, int] = {} if at_most is None else {"Limit": at_most}
        pages = self._table.pages(
            **bound,
            Select="COUNT",
            ConsistentRead=True,
            KeyConditionExpression="pk = :shard",
            FilterExpression="expires_at > :now",
            ExpressionAttributeValues={":shard": shard_key(project_id, pull_uid, 0), ":now": number(now)},
        )
        count = 0
        for page in pages:
            count += page["Count"]
            if at_most is not None and count >= at_most:
                return at_most
        return count

    def _waiting(
        self, project_id: str, pull_uid: str, first: Sequence[Candidate], *, more: bool
    ) -> Iterator[Candidate]:
        found = first
        while True:
            yield from found
            if not more:
                return
            # "!" sorts before every character of a place, so nothing lies between the last one read and this.
            found = self._read(project_id, pull_uid, f"{found[-1].place}!", AWAY, _PAGE)
            more = len(found) == _PAGE

    def _read(self, project_id: str, pull_uid: str, first: str, last: str, limit: int) -> list[Candidate]:
        items = self._table.items(
            KeyConditionExpression="pk = :shard AND sk BETWEEN :first AND :last",
            ExpressionAttributeValues={
                ":shard": shard_key(project_id, pull_uid, 0),
                ":first": text(first),
                ":last": text(last),
            },
            ConsistentRead=True,
            Limit=limit,
        )
        return [decode_candidate(each) for each in islice(items, limit)]


def _rank(candidate: Candidate) -> str:
    return candidate.message_id
