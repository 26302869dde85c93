"""Searches delivery records by reading their objects, a part at each look: for a hub on one machine, or a small one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Invalid, NotFound
from pushhub.base.json_text import lines
from pushhub.cloud.bucket import BucketStore
from pushhub.engine.model.past import PastPage, PastState, event

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mypy_boto3_s3 import S3Client

    from pushhub.base.ports import Clock
    from pushhub.engine.model.past import PastEvent, PastQuery

LOOK_MS = 3_000
"""After so long, a look ends with the object that it reads."""

LOOK_BYTES = 16_777_216
"""The same for what it has read, bytes."""

LOOK_EVENTS = 200
"""And for what it has found."""

_CURSOR = re.compile(r"(\d{4}-\d\d-\d\dT\d\d)/([A-Za-z0-9._-]{0,300})/(\d{1,15})")


class NoPastRecords:
    """Implements :class:`pushhub.engine.records.ports.PastRecords` where records are not searched."""

    def check(self) -> None:
        raise NotFound("This hub does not search its delivery records: its operator can allow it (PastSearch)")

    def start(self, query: PastQuery, search_id: str) -> str:
        del query, search_id
        self.check()
        return ""

    def look(self, query: PastQuery, run: str, after: str | None) -> PastPage:
        del query, run, after
        self.check()
        return PastPage(state=PastState.FAILED)


class S3PastRecords(BucketStore):
    """Implements :class:`pushhub.engine.records.ports.PastRecords`. Nothing runs between two looks: each goes on
    where the one before ended, the newest hours first.
    """

    def __init__(self, client: S3Client, bucket: str, clock: Clock) -> None:
        super().__init__(client, bucket)
        self._clock = clock

    def check(self) -> None:
        pass

    def start(self, query: PastQuery, search_id: str) -> str:
        del query, search_id
        return ""

    def look(self, query: PastQuery, run: str, after: str | None) -> PastPage:
        del run
        hours = query.hours
        at, read_until, scanned = _position(after, hours[0])
        if at not in hours:
            raise Invalid("after must be the cursor of an answer")
        begun, before = self._clock.now(), scanned
        found: list[PastEvent] = []
        for place in range(hours.index(at), len(hours)):
            for name, content in self._objects(hours[place], read_until):
                found += [event(each) for each in _records(content) if query.wants(each)]
                scanned += len(content)
                if self._clock.now() - begun >= LOOK_MS or scanned - before >= LOOK_BYTES or len(found) >= LOOK_EVENTS:
                    return PastPage(
                        state=PastState.RUNNING,
                        events=_sorted(found),
                        after=f"{hours[place]}/{name}/{scanned}",
                        scanned_bytes=scanned,
                        hours_left=len(hours) - place,
                    )
            read_until = ""
        return PastPage(state=PastState.DONE, events=_sorted(found), scanned_bytes=scanned, hours_left=0)

    def _objects(self, hour: str, after: str) -> Iterator[tuple[str, bytes]]:
        """Name and content of an hour's objects, in the order of their names."""
        prefix = f"records/dt={hour[:10]}/hour={hour[11:13]}/"
        for each in self._bucket.listed(prefix, StartAfter=prefix + after):
            key = each["Key"]
            # One that is gone has expired meanwhile.
            if key.endswith(".json.gz") and (content := self._bucket.find(key)) is not None:
                yield key.removeprefix(prefix), content


def _position(after: str | None, newest: str) -> tuple[str, str, int]:
    if after is None:
        return newest, "", 0
    read = _CURSOR.fullmatch(after)
    if read is None:
        raise Invalid("after must be the cursor of an answer")
    return read[1], read[2], int(read[3])


def _records(content: bytes) -> Iterator[Mapping[str, Any]]:
    """The records of an object; what is damaged is left to the delivery report, which says so."""
    yield from lines(content, lambda _: None)


def _sorted(events: list[PastEvent]) -> list[PastEvent]:
    return sorted(events, key=lambda each: each.at, reverse=True)
