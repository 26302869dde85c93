"""Imports an exported project into another stack, with the same ids.

The project is suspended until somebody resumes it. What an earlier run has not finished is written over, in an order in
which nothing is sent twice: settings first, deliveries before their messages, and waits last. Items of tables
that have a stream carry a mark by which the stream's readers know that they are not new.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import click

from pushhub.base import json_text
from pushhub.base.errors import Unavailable
from pushhub.base.ports import Clock, Vault
from pushhub.cloud.calls import ConditionRefused, aws_call
from pushhub.cloud.table import WRITES_PER_CALL, Item, number, text
from pushhub.engine.store.dynamodb_messages import RESTORED
from pushhub.engine.store.dynamodb_schedule import KEPT_S, LEAST_MINUTES_AHEAD, MINUTE_MS

from .. import side_by_side
from . import archived
from .carried import (
    AUDIT,
    BODIES,
    FORMAT,
    MANIFEST,
    RECORDS,
    Carrier,
    sealed_anew,
    sealed_values,
)
from .exporting import opened_by
from .holdings import BODIES as AREAS
from .holdings import PROJECT_ID, TABLES

PROJECT = "PROJECT"
STREAMED = ("MessagesTable", "PullTable", "BacklogsTable")
"""The tables whose streams are read."""
ORDER = ("ConfigTable", "HubTable", "WebhooksTable", "MessagesTable", "PullTable", "BacklogsTable", "ScheduleTable")
_WAIT = re.compile(r"(?P<minute>[0-9]+)#(?P<shard>[0-9]+)")
_DAY = re.compile(r"records/dt=[0-9]{4}-[0-9]{2}-[0-9]{2}\.jsonl\.gz")
_RECORDS_IN_OBJECT = 20_000
_THERE = "PreconditionFailed"


@dataclass(frozen=True, kw_only=True)
class Importing(Carrier):
    """Imports a project.

    Attributes:
        clock: Says when it was suspended, and which waits are over.
    """

    _written: dict[str, int] = field(default_factory=dict, init=False)
    vault: Vault
    clock: Clock

    @property
    def begun(self) -> str:
        """The file of the folder in which it is kept what is written already: here, as names of buckets are nobody
        else's, while stacks of other accounts have the same names.
        """
        return f"imported-{self.bodies}.json"

    def check(self) -> dict[str, Any]:
        """The manifest of the export, if that is whole and what is sealed in it opens here."""
        manifest = self._manifest()
        project_id: str = manifest["project"]
        found = {each for each in self.folder.files() if "/" in each}
        for name in sorted(found | {*manifest["files"]}):
            if name not in found or self.folder.digest(name) != manifest["files"].get(name):
                raise click.ClickException(f"{self.folder.path / name} is not as it was exported")
        for name in TABLES:
            for part in self.folder.parts(name):
                for line in archived.items(self.folder, part, name, project_id):
                    self._check(name, line, project_id)
        for name in self.folder.files(BODIES):
            if not name.startswith(tuple(f"{BODIES}/{area}/{project_id}/" for area in AREAS)):
                raise click.ClickException(f"{name} is not the project's")
        for name in self.folder.files(RECORDS):
            for _ in self._records(name, project_id):
                pass
        for name in self.folder.files(AUDIT):
            if not name.startswith(f"{AUDIT}/audit/project={project_id}/"):
                raise click.ClickException(f"{name} is not the project's")
        return manifest

    def _manifest(self) -> dict[str, Any]:
        """The manifest, if it has what one has."""
        manifest = self.folder.state(MANIFEST)
        if not manifest:
            raise click.ClickException(f"{self.folder.path} has no {MANIFEST}: the export is not finished")
        if manifest.get("format") != FORMAT or not PROJECT_ID.fullmatch(str(manifest.get("project"))):
            raise click.ClickException(f"{self.folder.path} was exported in another form")
        counts, files = manifest.get("counts"), manifest.get("files")
        counted = isinstance(counts, dict) and all(type(each) is int for each in counts.values())
        listed = isinstance(files, dict) and all(isinstance(each, str) for each in files.values())
        if not counted or not listed or set(counts or ()) != {*TABLES, BODIES, RECORDS, AUDIT}:
            raise click.ClickException(f"{self.folder.path / MANIFEST} is not as an export writes it")
        return manifest

    def _check(self, name: str, line: archived.ExportedItem, project_id: str) -> None:
        """Check that what is sealed in an item opens here, and that it takes nothing from another project."""
        try:
            self._opened(name, line, project_id)
        except Unavailable as error:
            raise click.ClickException(
                f"what is sealed in the export does not open with this stack's keys ({error}): export it --with-keys"
            ) from error
        if _is_token(name, line.item):
            key = {each: line.item[each] for each in ("pk", "sk")}
            there = self.tables[name].get(key)
            if there is not None and there.get("project", {}).get("S") != project_id:
                raise click.ClickException("a token of the export is another project's here: delete it there first")

    def _records(self, name: str, project_id: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The delivery records of a file, with their hours."""
        if _DAY.fullmatch(name) is None:
            raise click.ClickException(f"{self.folder.path / name} is no file of delivery records")
        for number_of, line in archived.numbered(self.folder, name):
            try:
                yield archived.record(line, project_id)
            except archived.Wrong as error:
                raise archived.at(self.folder, name, number_of, str(error)) from error

    def run(self, manifest: Mapping[str, Any], said: Callable[[str], None]) -> Counter[str]:
        """Write everything.

        Returns:
            How many items, objects and records were written, by place.

        Raises:
            Unavailable: Something could not be written; run it again.
        """
        project_id = str(manifest["project"])
        done: Counter[str] = Counter()
        written = self.folder.state(self.begun).get("written", {})
        if not isinstance(written, dict) or not all(type(each) is int for each in written.values()):
            raise click.ClickException(f"{self.folder.path / self.begun} is not as an import writes it")
        self._written.update(written)
        done["ConfigTable"] += self._put("ConfigTable", project_id, "project", _is_project)
        done[BODIES] += self._once(project_id, BODIES, self._put_bodies)
        said("bodies")
        for name in ORDER:
            if name == "ConfigTable":
                done[name] += self._put(name, project_id, "rest", lambda item: not _is_project(item))
            else:
                # A message without its deliveries would be taken for a new one.
                done[name] += self._put(name, project_id, "deliveries", lambda item: not _is_message(item))
                done[name] += self._put(name, project_id, "messages", _is_message)
            said(name)
        done[RECORDS] += self._once(project_id, RECORDS, lambda: self._put_records(project_id))
        said("delivery records")
        for name in self.folder.files(AUDIT):
            self._write_once(name.removeprefix(f"{AUDIT}/"), self.folder.read(name), "application/json")
            done[AUDIT] += 1
        return done

    def _put(self, name: str, project_id: str, kind: str, wanted: Callable[[Item], bool]) -> int:
        def put(part: str) -> int:
            lines = archived.items(self.folder, part, name, project_id)
            items = [self._item(name, line, project_id) for line in lines if wanted(line.item)]
            alone = [each for each in items if _is_token(name, each) or _is_project(each)]
            for each in alone:
                if _is_project(each):
                    self._put_project(name, each)
                else:
                    self._put_token(name, each)
            rest = [each for each in items if each not in alone]
            for _ in side_by_side.each(self.tables[name].put_many, side_by_side.in_parts(rest, WRITES_PER_CALL)):
                pass
            return len(items)

        parts = self.folder.parts(name)
        return sum(self._once(project_id, f"{part} {kind}", partial(put, part)) for part in parts)

    def _put_project(self, name: str, item: Item) -> None:
        """Write the project, unless its owner has begun to use or to delete it since it was looked for."""
        try:
            self.tables[name].put(
                item,
                ConditionExpression="attribute_not_exists(pk) OR attribute_exists(suspended_at) "
                "AND attribute_not_exists(erased_since)",
            )
        except ConditionRefused as error:
            raise click.ClickException("the project is there already, and was resumed or is being deleted") from error

    def _put_token(self, name: str, item: Item) -> None:
        """Write whose a token is, unless it is somebody else's: the only item whose key does not name its owner."""
        try:
            self.tables[name].put(
                item,
                ConditionExpression="attribute_not_exists(pk) OR #project = :project",
                ExpressionAttributeNames={"#project": "project"},
                ExpressionAttributeValues={":project": item["project"]},
            )
        except ConditionRefused as error:
            raise click.ClickException("a token of the export is another project's here") from error

    def _once(self, project_id: str, what: str, write: Callable[[], int]) -> int:
        """Write something, unless an earlier run has, and keep that it is written: how much it is."""
        if what not in self._written:
            self._written[what] = write()
            self.folder.keep({"project": project_id, "written": self._written}, self.begun)
        return self._written[what]

    def _put_bodies(self) -> int:
        def put(name: str) -> None:
            self._write(self.bodies, name.removeprefix(f"{BODIES}/"), self.folder.read(name))

        return sum(1 for _ in side_by_side.each(put, self.folder.files(BODIES)))

    def _item(self, name: str, line: archived.ExportedItem, project_id: str) -> Item:
        """An item as it is to be here."""
        item, plain = line.item, self._opened(name, line, project_id)
        if plain:
            new = {sealed: self.vault.seal(project_id, content) for sealed, content in plain.items()}
            item = sealed_anew({"M": item}, new)["M"]
        if name == "ConfigTable" and item["sk"]["S"] == PROJECT and "suspended_at" not in item:
            item = item | {"suspended_at": number(self.clock.now())}
        if name == "ScheduleTable":
            item = self._in_time(item)
        return item | {RESTORED: {"BOOL": True}} if name in STREAMED else item

    def _opened(self, name: str, line: archived.ExportedItem, project_id: str) -> dict[bytes, bytes]:
        plain: dict[bytes, bytes] = {}
        for sealed in sealed_values(name, line.item):
            content = line.opened[sealed] if sealed in line.opened else opened_by(self.vault, project_id, sealed)
            if content is not None:
                plain[sealed] = content
        return plain

    def _in_time(self, item: Item) -> Item:
        """A wait that is over is entered anew for a minute that has not been read yet."""
        found = _WAIT.fullmatch(item["pk"]["S"])
        soonest = self.clock.now() // MINUTE_MS + LEAST_MINUTES_AHEAD + 1
        if found is None or int(found["minute"]) >= soonest:
            return item
        _, _, rest = item["sk"]["S"].partition("#")
        return item | {
            "pk": text(f"{soonest}#{found['shard']}"),
            "sk": text(f"{soonest * MINUTE_MS:015d}#{rest}"),
            "ttl": number(soonest * MINUTE_MS // 1000 + KEPT_S),
        }

    def _put_records(self, project_id: str) -> int:
        # An object outlives what is taken out of it when a project is deleted, so its name is not the project's.
        whose = hashlib.sha256(project_id.encode()).hexdigest()[:16]
        count = 0
        for name in self.folder.files(RECORDS):
            by_hour: dict[str, list[dict[str, Any]]] = {}
            for hour, found in self._records(name, project_id):
                by_hour.setdefault(hour, []).append(found)
            day = name.partition("dt=")[2][:10]
            for hour, records in by_hour.items():
                for start in range(0, len(records), _RECORDS_IN_OBJECT):
                    some = records[start : start + _RECORDS_IN_OBJECT]
                    key = f"records/dt={day}/hour={hour}/imported-{whose}-{start}-{len(some)}.json.gz"
                    self._write_once(key, _lines(some), "application/gzip")
                    count += len(some)
        return count

    def _write(self, bucket: str, key: str, body: bytes, **more: Any) -> None:
        with aws_call("s3:PutObject"):
            self.s3.put_object(Bucket=bucket, Key=key, Body=body, **more)

    def _write_once(self, key: str, body: bytes, content_type: str) -> None:
        """Write an object of the records bucket, unless an earlier run has."""
        try:
            self._write(self.records, key, body, ContentType=content_type, IfNoneMatch="*")
        except Unavailable as error:
            if error.reason != _THERE:
                raise


def _is_token(name: str, item: Item) -> bool:
    """Whether an item says whose a token is: the only one whose key does not name its owner."""
    return name == "ConfigTable" and str(item["pk"]["S"]).startswith("T#")


def _is_project(item: Item) -> bool:
    return bool(item["sk"]["S"] == PROJECT)


def _is_message(item: Item) -> bool:
    return bool(item.get("kind") == {"S": "message"})


def _lines(records: Iterable[Mapping[str, Any]]) -> bytes:
    text = "".join(json_text.write(each) + "\n" for each in records)
    return gzip.compress(text.encode(), mtime=0)
