"""Erases a project: everything that is its, from every table and bucket, with a proof that nothing is left.

Nothing depends on where a run was cut off: each looks for what is there, removes it, and then looks again. What an
erasure took out of the delivery records is noted first, so that the nightly report does not miss it.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Any
from uuid import uuid4

from pushhub.base import json_text
from pushhub.base.errors import Invalid, Unavailable
from pushhub.base.times import iso_time
from pushhub.cloud.audit_trail import folder_of
from pushhub.cloud.calls import aws_call
from pushhub.cloud.table import WRITES_PER_CALL, Item, Table, text
from pushhub.engine.model.record import LINK

from .. import side_by_side
from .holdings import BODIES, MENTIONS, TABLES, owner

SETTLED_MS = 900_000
"""How long after the project was silenced something may still be written for it, milliseconds: no function runs
longer.
"""

NOTES = "records/erased"
"""Where it is noted, by day, how many records are left in objects from which some were taken."""

NOTED_PROJECTS = f"{NOTES}/projects"
"""Where the digests of erased projects' ids are noted, an object for each: the report's job takes their rows out of
what former nights have found and carried over.
"""

TAKEN_OUT = "curated/erased.json"
"""Where the job says, by these digests, whose rows it has taken out."""

PROJECT = "PROJECT"
"""Sort key of the project's own item."""

_TRAIL = "audit trail"
_FORMER = "former versions of curated files"
_CURATED_BY_DAY = re.compile(r"(?:curated/(?:records|deliveries|attempts_hourly)|quarantine)/dt=(?P<day>[0-9-]{10})/")
_CURATED_OF_ALL = ("curated/findings/", "curated/gone/", "curated/open/", "curated/outages/", "work/")
_BESIDE_RECORDS = ("curated/deliveries", "curated/attempts_hourly")
"""Made after a day's records are, in the same run of the job."""
_BATCH = 500
_MOST_DELETED = 1_000
_MISSING = ("NoSuchKey", "404")


@dataclass(slots=True)
class Erased:
    """What a run removed, and what it then found.

    Attributes:
        removed: Items, objects or records, by place.
        left: The same, afterwards.
        unknown: Keys that name the project and are of no known kind, by place.
        days: Days whose curated files and reports hold the project until they are made again.
    """

    removed: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    unknown: dict[str, list[str]] = field(default_factory=dict)
    days: list[str] = field(default_factory=list)

    @property
    def nothing_left(self) -> bool:
        """Whether the second look found nothing."""
        return not (+self.left or self.unknown or self.days)


class Erasing:
    """Erases projects.

    Args:
        tables: All tables, by their names in the template.
    """

    def __init__(self, *, tables: Mapping[str, Table], s3: Any, bodies: str, records: str) -> None:
        self._tables = tables
        self._s3 = s3
        self._bodies = bodies
        self._records = records

    def run(self, project_id: str, created_at: int, said: Callable[[str], None]) -> Erased:
        """Remove what is there, and look again. The project's own item stays.

        Args:
            created_at: When it was made, epoch milliseconds: older records are not looked at.

        Raises:
            Unavailable: Something could not be read or removed; run it again.
        """
        erased = Erased()
        for name in TABLES:
            self._remove_items(name, project_id, erased)
            said(name)
        for area in BODIES:
            versions = list(self._versions(self._bodies, f"{area}/{project_id}/"))
            self._delete(self._bodies, versions)
            erased.removed[f"bodies bucket, {area}/"] += len(versions)
        said("bodies bucket")
        trail = list(self._versions(self._records, folder_of(project_id)))
        self._delete(self._records, trail)
        erased.removed[_TRAIL] += len(trail)
        first = iso_time(created_at)[:10]
        self._take_out(project_id, first, erased)
        said("delivery records")
        former = list(self._former(first))
        self._delete(self._records, former)
        erased.removed[_FORMER] += len(former)
        said("curated files")
        self._look_again(project_id, first, erased)
        return erased

    def look(self, project_id: str, created_at: int) -> Erased:
        """Only look for what is there; arguments and errors as in :meth:`run`, but nobody is told."""
        found = Erased()
        self._look_again(project_id, iso_time(created_at)[:10], found)
        return found

    def finish(self, project_id: str) -> None:
        """Remove the project's own item, when nothing else is left."""
        self._tables["ConfigTable"].delete({"pk": text(f"P#{project_id}"), "sk": text(PROJECT)})

    def _mentioning(self, name: str, project_id: str, *, consistent: bool) -> Iterator[Item]:
        """The items of a table whose keys, or attributes that name an owner, hold the project's id."""
        yield from self._tables[name].scan(
            consistent=consistent,
            ProjectionExpression="pk, sk, #project, #topic",
            ExpressionAttributeValues={":id": {"S": project_id}},
            **MENTIONS,
        )

    def _remove_items(self, name: str, project_id: str, erased: Erased) -> None:
        waiting: list[Item] = []
        for item in self._mentioning(name, project_id, consistent=False):
            if owner(name, item) == project_id and not _is_project(name, item):
                waiting.append({key: item[key] for key in ("pk", "sk")})
            if len(waiting) >= _BATCH:
                erased.removed[name] += self._deleted(name, waiting)
                waiting = []
        erased.removed[name] += self._deleted(name, waiting)

    def _deleted(self, name: str, keys: list[Item]) -> int:
        batches = side_by_side.in_parts(keys, WRITES_PER_CALL)
        for _ in side_by_side.each(self._tables[name].delete_many, batches):
            pass
        return len(keys)

    def _take_out(self, project_id: str, first: str, erased: Erased) -> None:
        """Take the project's records out of the objects that hold them, and remove former versions of these."""
        place = "delivery records"
        for key in self._keys("records/quarantine/"):
            if project_id.encode() in self._read(key):
                self._delete(self._records, self._versions(self._records, key))
                erased.removed[place] += 1
        by_day: dict[str, list[str]] = {}
        for key in self._keys("records/dt=", after=f"records/dt={first}"):
            by_day.setdefault(_day(key), []).append(key)
        for day, keys in by_day.items():
            looked = zip(keys, side_by_side.each(partial(self._parted, project_id), keys), strict=True)
            # Objects that hold records of the project: how many, and how many others. A day's records fit no memory.
            counts = {key: counted for key, counted in looked if counted[0]}
            noted = self._noted(day)
            if counts:
                self._write(
                    _note_of(project_id),
                    json_text.write({"erasure": uuid4().hex}).encode(),
                )
                noted |= {_below_day(key): others for key, (_, others) in counts.items()}
                self._write(
                    f"{NOTES}/dt={day}.json",
                    json_text.write(noted, sort_keys=True).encode(),
                )
            for key in side_by_side.each(partial(self._rewritten, project_id), counts):
                erased.removed[place] += counts[key][0]
            # A run that was cut off may have left former versions of what it has rewritten.
            if noted:
                versions = self._versions(self._records, f"records/dt={day}/")
                names = {f"records/dt={day}/{name}" for name in noted}
                self._delete(
                    self._records, [each for each in versions if each["Key"] in names and not each["IsLatest"]]
                )

    def _parted(self, project_id: str, key: str) -> tuple[int, int]:
        """How many lines of an object are the project's, and how many of the others are records."""
        lines = self._lines(key)
        rest = [each for each in lines if not _is_of(each, project_id)]
        return len(lines) - len(rest), sum(not _is_link(each) for each in rest)

    def _rewritten(self, project_id: str, key: str) -> str:
        rest = (each + b"\n" for each in self._lines(key) if not _is_of(each, project_id))
        self._write(key, gzip.compress(b"".join(rest), mtime=0))
        return key

    def _look_again(self, project_id: str, first: str, erased: Erased) -> None:
        for name in TABLES:
            for item in self._mentioning(name, project_id, consistent=True):
                whose = owner(name, item)
                if whose is None:
                    erased.unknown.setdefault(name, []).append(f"{item['pk']['S']} {item['sk']['S']}")
                elif whose == project_id and not _is_project(name, item):
                    erased.left[name] += 1
        for area in BODIES:
            found = sum(1 for _ in self._versions(self._bodies, f"{area}/{project_id}/"))
            erased.left[f"bodies bucket, {area}/"] += found
        erased.left[_TRAIL] += sum(1 for _ in self._versions(self._records, folder_of(project_id)))
        keys = self._keys("records/dt=", after=f"records/dt={first}")
        for own, _ in side_by_side.each(partial(self._parted, project_id), keys):
            erased.left["delivery records"] += own
        erased.left[_FORMER] += sum(1 for _ in self._former(first))
        days = self._noted_days(first)
        outdated = {day for day in days if self._is_outdated(day)}
        # Findings are those of the nights, and may be about any day.
        erased.days = sorted(outdated or (days if self._is_in_findings(project_id) else set()))

    def _noted_days(self, first: str) -> set[str]:
        """The days from whose records some were taken."""
        return {_day(key) for key in self._keys(f"{NOTES}/dt=", after=f"{NOTES}/dt={first}")}

    def _former(self, first: str) -> Iterator[dict[str, Any]]:
        """Former versions of what the report's job makes of these days, carries over, or works with."""
        days = self._noted_days(first)
        for prefix in ("curated/", "quarantine/", "work/") if days else ():
            for page in self._pages("list_object_versions", Bucket=self._records, Prefix=prefix):
                for each in page.get("Versions", []):
                    by_day = _CURATED_BY_DAY.match(each["Key"])
                    if not each["IsLatest"] and (
                        (by_day and by_day["day"] in days) or each["Key"].startswith(_CURATED_OF_ALL)
                    ):
                        yield each

    def _is_outdated(self, day: str) -> bool:
        """Whether what is kept of a day was made from records as they were before."""
        try:
            manifest = self._get(f"curated/records/dt={day}/_manifest.json")
        except KeyError:
            return False
        now = {each["Key"]: each["ETag"].strip('"') for each in self._listed(f"records/dt={day}/")}
        made_from = {name: mark for name, (_, mark) in json_text.stored(manifest["Body"].read())["raw"].items()}
        if any(made_from.get(name) != now.get(f"records/dt={day}/{name}") for name in self._noted(day)):
            return True
        # A run that was cut off has made the records anew, and not yet what it makes of them.
        since: datetime = manifest["LastModified"]
        tables = (each for table in _BESIDE_RECORDS for each in self._listed(f"{table}/dt={day}/"))
        return any(each["LastModified"] < since for each in tables)

    def _is_in_findings(self, project_id: str) -> bool:
        """Whether no night has taken what is the project's out of what former nights have found and carried over."""
        try:
            noted = json_text.stored(self._read(_note_of(project_id)))["erasure"]
        except KeyError:
            return False
        if not any(self._keys("curated/days/")):
            return False
        try:
            return bool(json_text.stored(self._read(TAKEN_OUT)).get(_digest(project_id)) != noted)
        except KeyError:
            return True

    def _noted(self, day: str) -> dict[str, int]:
        try:
            noted: dict[str, int] = json_text.stored(self._read(f"{NOTES}/dt={day}.json"))
        except KeyError:
            return {}
        return noted

    def _lines(self, key: str) -> list[bytes]:
        """The lines of an object of records.

        Raises:
            Invalid: It cannot be read, so nobody knows whose records are in it.
        """
        if not key.endswith(".json.gz"):
            return []
        content = self._read(key)
        try:
            return json_text.split(gzip.decompress(content))
        except (OSError, EOFError, zlib.error) as error:
            found = f"{key} cannot be read ({error}): bring back a former version of it, or remove it"
            raise Invalid(f"{found}, and run this command again") from error

    def _read(self, key: str) -> bytes:
        """An object of the records bucket.

        Raises:
            KeyError: There is none.
        """
        content: bytes = self._get(key)["Body"].read()
        return content

    def _get(self, key: str) -> Any:
        try:
            with aws_call("s3:GetObject"):
                return self._s3.get_object(Bucket=self._records, Key=key)
        except Unavailable as error:
            if error.reason in _MISSING:
                raise KeyError(key) from error
            raise

    def _write(self, key: str, body: bytes) -> None:
        with aws_call("s3:PutObject"):
            self._s3.put_object(Bucket=self._records, Key=key, Body=body)

    def _keys(self, prefix: str, after: str = "") -> Iterator[str]:
        yield from (each["Key"] for each in self._listed(prefix, after))

    def _listed(self, prefix: str, after: str = "") -> Iterator[dict[str, Any]]:
        more = {"StartAfter": after} if after else {}
        for page in self._pages("list_objects_v2", Bucket=self._records, Prefix=prefix, **more):
            yield from page.get("Contents", [])

    def _versions(self, bucket: str, prefix: str) -> Iterator[dict[str, Any]]:
        for page in self._pages("list_object_versions", Bucket=bucket, Prefix=prefix):
            yield from (*page.get("Versions", []), *page.get("DeleteMarkers", []))

    def _pages(self, operation: str, **query: Any) -> Iterator[dict[str, Any]]:
        pages = iter(self._s3.get_paginator(operation).paginate(**query))
        while True:
            with aws_call(f"s3:{operation}"):
                page = next(pages, None)
            if page is None:
                return
            yield page

    def _delete(self, bucket: str, versions: Iterable[Mapping[str, Any]]) -> None:
        named = [{"Key": each["Key"], "VersionId": each["VersionId"]} for each in versions]
        for start in range(0, len(named), _MOST_DELETED):
            some = named[start : start + _MOST_DELETED]
            with aws_call("s3:DeleteObjects"):
                answer = self._s3.delete_objects(Bucket=bucket, Delete={"Objects": some, "Quiet": True})
            if answer.get("Errors"):
                raise Unavailable("s3:DeleteObjects", str(answer["Errors"][0].get("Code", "")))


def _is_project(name: str, item: Item) -> bool:
    """Whether it is the project's own item, which says that it is being erased until everything else is gone."""
    return name == "ConfigTable" and item["sk"]["S"] == PROJECT


def _is_of(line: bytes, project_id: str) -> bool:
    """Whether a line is a project's record, or is none and names the project."""
    if project_id.encode() not in line:
        return False
    read = _record(line)
    return read is None or read.get("project") == project_id


def _digest(project_id: str) -> str:
    return sha256(project_id.encode()).hexdigest()


def _note_of(project_id: str) -> str:
    return f"{NOTED_PROJECTS}/{_digest(project_id)}.json"


def _is_link(line: bytes) -> bool:
    """Whether a line only names another object; a key's count does not include it."""
    return b'"link' in line and (_record(line) or {}).get("kind") == LINK


def _record(line: bytes) -> Mapping[str, Any] | None:
    """What a line says; None if it is no record."""
    try:
        read = json_text.read(line, last_wins=True)
    except json_text.NotJson:
        return None
    return read if isinstance(read, dict) else None


def _day(key: str) -> str:
    return key.partition("dt=")[2][:10]


def _below_day(key: str) -> str:
    """A key below its day: ``hour=05/messages-...json.gz``."""
    return key.partition("dt=")[2].partition("/")[2]
