"""The catalogue: what a project accepted in the last days, newest first, and by which values it is found. Pure.

A batch of the tables' streams becomes one *chunk* per project and day. A chunk lists its messages, and has a digest of
each value in their bodies, so nothing has to be named beforehand. Digests are short: who looks for a value reads the
messages that it leads to, and leaves out those that do not have it (docs/ironmq.md#finding-messages gives the price).
"""

from __future__ import annotations

import hashlib
import heapq
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Unreadable
from pushhub.base.json_text import NotJson, read_words
from pushhub.base.nesting import is_deeper
from pushhub.engine.model.deflated import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pushhub.engine.model.deflated import StoredBody

DAY_MS = 86_400_000

KEPT_DAYS = 7
"""For how many days, besides the current one, messages are listed and found."""

MOST_IN_CHUNK = 1_000
"""Messages of a chunk: their list stays below 30 KB."""

MAX_VALUE = 100
"""Longer values are not in the catalogue; characters."""

LEAST_VALUES = 20
"""Values of a message that are always in the catalogue: at five bytes each that is 3 % of a small message's price."""

VALUES_PER_KB = 7
"""Further values for each KB of its body, as its storage costs more, too."""

MOST_READ = 262_144
"""Bodies longer than this have no values here, bytes."""

MOST_LEVELS = 50
"""Bodies nested deeper than this are read as text."""

COMMON_FROM = 16
"""A value that so many messages of a chunk have, and more than an eighth of them, leads to the whole chunk."""

COMMON = 0xFFFF
"""In place of a message's number in its chunk: all of them."""

LEFT_OUT = "\0"
"""Stands for a value of messages that have values which are not in the catalogue; no message has it."""

_NAMES_FIRST = re.compile(r"(?i)(^|[._-])(id|no|nr|num|number|code|ref|reference|key|email|mail|phone|sku|iban|vin)s?$")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = re.compile(r"[^\s<>\"'=&,;(){}\[\]|]+")
_UNTELLING = frozenset({"true", "false", "null", ""})


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A message that was accepted.

    Attributes:
        queue: Name of its queue, also of an internal one.
        queue_uid: Generation of the queue; of a pull queue, of its messages.
        accepted_at: Epoch milliseconds.
        body: Its body as it is stored with it; None if that is stored elsewhere, and so not read.
    """

    project: str
    queue: str
    queue_uid: str
    message_id: str
    accepted_at: int
    body: StoredBody | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A message as the catalogue lists it; it may be gone."""

    queue: str
    queue_uid: str
    message_id: str
    accepted_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Messages of one project and day that came together.

    Attributes:
        day: Days since 1970.
        name: Unique among the chunks of its day; the same when the same batch is read again.
        seen: The messages by rising id.
        postings: The digest of each value, and the numbers in ``seen`` of the messages that have it.
    """

    project: str
    day: int
    name: str
    seen: Sequence[Seen]
    postings: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """A day of which the catalogue has messages of a project. Days without any are not asked for anything.

    Attributes:
        number: Days since 1970.
        levels: How the values of its chunks are spread; only the store understands these.
        crowded: Those of the chunks in which a message has values that are not in the catalogue.
    """

    number: int
    levels: Sequence[int]
    crowded: Sequence[int]

    def levels_of(self, value: str) -> Sequence[int]:
        """Where a value can be, or :data:`LEFT_OUT`."""
        return self.crowded if value == LEFT_OUT else self.levels


def is_crowded(chunk: Chunk) -> bool:
    """Whether a message of a chunk has values that are not in the catalogue."""
    wanted = digest(chunk.project, LEFT_OUT)
    return any(value == wanted for value, _ in chunk.postings)


def chunks_of(accepted: Iterable[Accepted], batch: str) -> Iterator[Chunk]:
    """The chunks of a batch.

    Args:
        batch: Names the batch; the same on each repetition.
    """
    groups: dict[tuple[str, int], dict[tuple[str, str], Accepted]] = defaultdict(dict)
    for each in accepted:
        groups[each.project, each.accepted_at // DAY_MS][each.message_id, each.queue_uid] = each
    for (project, day), found in groups.items():
        ordered = [found[each] for each in sorted(found)]
        for start in range(0, len(ordered), MOST_IN_CHUNK):
            part = ordered[start : start + MOST_IN_CHUNK]
            name = f"{part[-1].message_id}-{part[0].message_id}#{batch}"
            yield _chunk(project, day, name, part)


def _chunk(project: str, day: int, name: str, part: Sequence[Accepted]) -> Chunk:
    having: dict[int, list[int]] = defaultdict(list)
    seen: list[Seen] = []
    for number, each in enumerate(part):
        values, whole = _values(each.body)
        for value in (*values, *(() if whole else (LEFT_OUT,))):
            having[digest(project, value)].append(number)
        seen.append(
            Seen(
                queue=each.queue,
                queue_uid=each.queue_uid,
                message_id=each.message_id,
                accepted_at=each.accepted_at,
            )
        )
    most = max(COMMON_FROM, len(part) // 8)
    postings = [
        (value, number)
        for value in sorted(having)
        for number in ([COMMON] if len(having[value]) >= most else dict.fromkeys(having[value]))
    ]
    return Chunk(project=project, day=day, name=name, seen=seen, postings=postings)


def digest(project: str, value: str) -> int:
    """Four bytes for a value, whatever its case and the space around it. The project is in it, so that nobody sees that
    two projects have the same values.
    """
    normalized = f"{project}\0{value.strip().casefold()}"
    return int.from_bytes(hashlib.sha256(normalized.encode(errors="surrogatepass")).digest()[:4])


def _values(body: StoredBody | None) -> tuple[Sequence[str], bool]:
    if body is None:
        return (), False
    try:
        return values_of(plain(body))
    except Unreadable:
        # Whoever looks for it reads the message, and is told so there.
        return (), False


def values_of(body: bytes) -> tuple[Sequence[str], bool]:
    """The values in a body that the catalogue has, and whether those are all.

    Of JSON, texts and numbers (as they are written), whole and by their words; first those whose names say that one
    looks for them (``id``, ``order_number``, ``email``), then the others as they come. Of anything else, words.
    """
    room = LEAST_VALUES + VALUES_PER_KB * (len(body) // 1024)
    found: dict[str, None] = {}
    for value in _in_order(body):
        folded = value.strip().casefold()
        if len(folded) > MAX_VALUE or folded in _UNTELLING or folded in found:
            continue
        if len(found) == room:
            return [*found], False
        found[folded] = None
    return [*found], len(body) <= MOST_READ


def _in_order(body: bytes) -> Iterator[str]:
    if len(body) > MOST_READ:
        return
    parsed = _parsed(body)
    if parsed is None:
        yield from _WORD.findall(body.decode(errors="replace"))
        return
    leaves = list(leaves_of(parsed))
    first = [value for path, value in leaves if _NAMES_FIRST.search(_CAMEL.sub("_", path.rpartition(".")[2]))]
    yield from first
    yield from (value for _, value in leaves)
    for _, value in leaves:
        if not value.isalnum():
            yield from _WORD.findall(value)


def leaves_of(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The texts and numbers in JSON that :func:`read_words` has read, each with its path."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from leaves_of(each, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        for each in value:
            yield from leaves_of(each, path)
    elif isinstance(value, str):
        yield path, value


def _parsed(body: bytes) -> Any:
    if is_deeper(body, MOST_LEVELS):
        return None
    try:
        return read_words(body)
    except NotJson:
        return None


def sought(value: str) -> str:
    """By which value of the catalogue a text is looked for: of several words by the longest."""
    words = _WORD.findall(value)
    return max(words, key=len) if len(words) > 1 else value


AROUND = 60
"""Characters shown on either side of what was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a value is in a message.

    Attributes:
        field: Path in its JSON body; empty in any other body.
        excerpt: What is around it.
    """

    field: str
    excerpt: str


def place_of(value: str, body: bytes) -> Place | None:
    """Where a value is in a body, or None. It counts as a whole, as one of a text's words, or as several in a row."""
    wanted = value.strip().casefold()
    row = len(_WORD.findall(wanted)) > 1
    text = body.decode(errors="replace")
    parsed = _parsed(body) if len(body) <= MOST_READ else None
    if parsed is None:
        if (row and wanted in text.casefold()) or wanted in (each.casefold() for each in _WORD.findall(text)):
            return Place(field="", excerpt=excerpt(text, wanted))
        return None
    for path, each in leaves_of(parsed):
        folded = each.casefold()
        if folded.strip() == wanted or (wanted in folded and (row or wanted in _WORD.findall(folded))):
            return Place(field=path, excerpt=excerpt(text, wanted))
    return None


def excerpt(text: str, wanted: str = "") -> str:
    """The part of a text around something that it contains; its beginning if it does not, as where JSON escapes it."""
    at = max(0, text.casefold().find(wanted)) if wanted else 0
    start, end = max(0, at - AROUND), at + len(wanted) + AROUND
    shown = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{shown}{'…' if end < len(text) else ''}"


def merged(lists: Iterable[tuple[str, Iterator[Seen]]], before: str | None) -> Iterator[Seen]:
    """Messages of several chunks, newest first. A chunk is read when its turn comes.

    Args:
        lists: The highest id of each, highest first, and its messages by falling id.
        before: Only messages with lower ids; None for all.
    """
    heap: list[tuple[int, str, Seen]] = []
    waiting = iter(lists)
    coming = next(waiting, None)
    while heap or coming:
        while coming and (not heap or int(coming[0]) >= -heap[0][0]):
            for each in coming[1]:
                if before is None or each.message_id < before:
                    heapq.heappush(heap, (-int(each.message_id), each.queue_uid, each))
            coming = next(waiting, None)
        if heap:
            last = heapq.heappop(heap)
            while heap and heap[0][:2] == last[:2]:
                heapq.heappop(heap)
            yield last[2]


def days_until(now: int) -> Sequence[int]:
    """The days that the catalogue has, newest first."""
    today = now // DAY_MS
    return [today - each for each in range(KEPT_DAYS + 1)]


def read_names(found: Mapping[str, Any]) -> Sequence[Seen]:
    """The messages of a chunk as it is stored."""
    queues = found["q"]
    return [
        Seen(queue=queues[queue][0], queue_uid=queues[queue][1], message_id=each, accepted_at=at)
        for each, queue, at in found["m"]
    ]


def names_of(seen: Sequence[Seen]) -> Mapping[str, Any]:
    """The messages of a chunk as they are stored."""
    queues = {
        queue: number for number, queue in enumerate(dict.fromkeys((each.queue, each.queue_uid) for each in seen))
    }
    return {
        "q": [list(each) for each in queues],
        "m": [[each.message_id, queues[each.queue, each.queue_uid], each.accepted_at] for each in seen],
    }
