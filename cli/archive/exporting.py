"""Exports a project: everything that is its, into a folder.

A run that is killed is followed by one that goes on after the last file that was finished: each file of a table's items
says where the next one begins, and nothing else is remembered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import click

from pushhub.base import json_text
from pushhub.base.errors import Unavailable
from pushhub.base.ports import Vault
from pushhub.base.times import iso_time
from pushhub.cloud.audit_trail import folder_of
from pushhub.cloud.calls import aws_call
from pushhub.cloud.table import Item
from pushhub.cloud.vault import NOT_SEALED

from .. import side_by_side
from .carried import AUDIT, BODIES, FORMAT, MANIFEST, RECORDS, Carrier, as_json, sealed_values
from .holdings import BODIES as AREAS
from .holdings import MENTIONS, TABLES, moving

PART_BYTES = 4_000_000
"""About how many bytes of items a file has."""
PART_PAGES = 200
"""How many pages of a table are read for a file at most: what is read again if the run is killed."""
UNSEALABLE = "InvalidCiphertextException"
"""What KMS says of something that it has never encrypted."""


class Exporting(Carrier):
    """Exports a project."""

    def run(self, project_id: str, created_at: int, said: Callable[[str], None]) -> Counter[str]:
        """Write what is not written yet, and then the manifest.

        Args:
            project_id: The project, which nothing changes meanwhile.
            created_at: When it was made, epoch milliseconds: older records are not looked at.

        Returns:
            How many items, objects and records there are, by place.

        Raises:
            Unavailable: Something could not be read; run it again.
            click.ClickException: A file is damaged.
        """
        for name in TABLES:
            self._items(name, project_id)
            said(name)
        for area in AREAS:
            self._objects(self.bodies, f"{area}/{project_id}/", BODIES)
        said("bodies")
        self._of_days(project_id, iso_time(created_at)[:10])
        said("delivery records")
        self._objects(self.records, folder_of(project_id), AUDIT)
        counts = self._counted()
        files = {each: self.folder.digest(each) for each in self.folder.files() if "/" in each}
        self.folder.keep(
            {
                "format": FORMAT,
                "project": project_id,
                "opened": self.vault is not None,
                "counts": dict(counts),
                "files": files,
            },
            MANIFEST,
        )
        return counts

    def _items(self, name: str, project_id: str) -> None:
        """Write the rest of a table's items."""
        parts = self.folder.parts(name)
        last = self.folder.lines(parts[-1])[-1]["next"] if parts else {}
        if last is None:
            return
        lines: list[dict[str, Any]] = []
        size = pages = 0
        number = len(parts)
        for items, following in self.tables[name].scanned(
            start=last or None, ExpressionAttributeValues={":id": {"S": project_id}}, **MENTIONS
        ):
            for item in items:
                if moving(name, item, project_id):
                    lines.append(self._line(name, item, project_id))
                    size += len(json_text.write(lines[-1]))
            pages += 1
            if size >= PART_BYTES or pages >= PART_PAGES or following is None:
                self.folder.write_lines(f"{name}/{number:06d}.jsonl.gz", [*lines, {"next": following}])
                lines, size, pages, number = [], 0, 0, number + 1

    def _line(self, name: str, item: Item, project_id: str) -> dict[str, Any]:
        line: dict[str, Any] = {"item": as_json(item)}
        sealed = sealed_values(name, item)
        if sealed and self.vault is not None:
            opened = {as_json(each): as_json(opened_by(self.vault, project_id, each)) for each in sealed}
            line["opened"] = {name: value for name, value in opened.items() if value is not None}
        return line

    def _objects(self, bucket: str, prefix: str, under: str) -> None:
        """Write the objects with a prefix, each to a file."""
        there = {*self.folder.files(under)}
        for page in self._pages(bucket, prefix):
            for each in page.get("Contents", []):
                if f"{under}/{each['Key']}" not in there:
                    self.folder.write(f"{under}/{_safe(each['Key'])}", self._read(bucket, each["Key"]))

    def _of_days(self, project_id: str, first: str) -> None:
        """Write the records of each day to a file. A day without any has a file too, so that it is read once."""
        there = {*self.folder.files(RECORDS)}
        by_day: dict[str, list[str]] = {}
        for page in self._pages(self.records, "records/dt=", after=f"records/dt={first}"):
            for each in page.get("Contents", []):
                day = each["Key"].partition("dt=")[2][:10]
                if each["Key"].endswith(".json.gz"):
                    by_day.setdefault(day, []).append(each["Key"])
        for day, keys in by_day.items():
            name = f"{RECORDS}/dt={_safe(day)}.jsonl.gz"
            if name in there:
                continue
            found: dict[str, dict[str, Any]] = {}
            for key, content in zip(keys, side_by_side.each(partial(self._read, self.records), keys), strict=True):
                hour = key.partition("hour=")[2][:2]
                for record in json_text.lines(content, partial(_passed_over, key), naming=project_id.encode()):
                    if record.get("project") == project_id:
                        # A batch of a stream may have been recorded twice.
                        called = str(record.get("record_id") or json_text.write(record))
                        found[called] = {"hour": hour, "record": record}
            self.folder.write_lines(name, [*found.values()])

    def _counted(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for name in TABLES:
            counts[name] = sum(len(self.folder.lines(part)) - 1 for part in self.folder.parts(name))
        for name in (BODIES, AUDIT):
            counts[name] = len(self.folder.files(name))
        counts[RECORDS] = sum(len(self.folder.lines(each)) for each in self.folder.files(RECORDS))
        return counts

    def _read(self, bucket: str, key: str) -> bytes:
        with aws_call("s3:GetObject"):
            content: bytes = self.s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        return content

    def _pages(self, bucket: str, prefix: str, after: str = "") -> Iterator[dict[str, Any]]:
        more = {"StartAfter": after} if after else {}
        pages = iter(self.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, **more))
        while True:
            with aws_call("s3:ListObjectsV2"):
                page = next(pages, None)
            if page is None:
                return
            yield page


def _passed_over(key: str, what: json_text.Unread) -> None:
    """Say what cannot be read, and so is not exported."""
    click.echo(f"not exported: {key}: {what}", err=True)


def opened_by(vault: Vault, project_id: str, sealed: bytes) -> bytes | None:
    """What was sealed; None if it only looks so.

    Raises:
        Unavailable: It cannot be opened with the keys that may be used.
    """
    try:
        return vault.open(project_id, sealed)
    except Unavailable as error:
        if error.reason in (UNSEALABLE, NOT_SEALED):
            return None
        raise


def _safe(name: str) -> str:
    """A key, as the name of a file."""
    if ".." in name.split("/") or name.startswith("/"):
        raise click.ClickException(f"{name} is no name of a file")
    return name
