"""The record store on S3: gzip JSON lines, written once. The key depends on the stream records alone, and so do the
bytes but for the last lines, which name objects that were written before (docs/decisions/records.md).
"""

from __future__ import annotations

import gzip
import json
from itertools import islice
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Unavailable
from pushhub.base.json_text import Unread, lines
from pushhub.cloud.bucket import BucketStore
from pushhub.engine.model.pulse import names_the_hour_before
from pushhub.engine.model.record import LINK, NO_RECORDS, REQUIRED, SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mypy_boto3_s3 import S3Client

    from pushhub.engine.model.pulse import Pulse
    from pushhub.engine.model.record import DeliveryRecord


_PAGES = 10
"""Of a listing, a thousand objects each: how many objects of an hour are named at most."""


class S3Records(BucketStore):
    """Reads delivery records back."""

    def read(self, since: str, passed_over: Callable[[str], None]) -> Iterator[Mapping[str, Any]]:
        """The fields of every record from a day (``2026-11-21``) onwards, object by object.

        Args:
            passed_over: Told what cannot be read: object, line and why.
        """
        for each in self._bucket.listed("records/dt=", StartAfter=f"records/dt={since}"):
            if each["Key"].endswith(".json.gz"):
                yield from self._records(each["Key"], passed_over)

    def _records(self, key: str, passed_over: Callable[[str], None]) -> Iterator[Mapping[str, Any]]:
        def unread(what: Unread) -> None:
            passed_over(f"{key}: {what}")

        for number, each in enumerate(lines(self._bucket.get(key), unread), start=1):
            if each.get("kind") in NO_RECORDS:
                continue
            missing = next((name for name in REQUIRED if not isinstance(each.get(name), str)), None)
            if missing is None:
                yield each
            else:
                passed_over(f"{key}: record {number} has no {missing}")


class S3RecordStore(BucketStore):
    """Implements :class:`pushhub.engine.records.ports.RecordStore`."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        super().__init__(client, bucket)
        self._before: str | None = None

    def write(self, records: Sequence[DeliveryRecord | Pulse], *, table: str, first: str, last: str) -> bool:
        date, hour = records[0].hour
        key = f"records/dt={date}/hour={hour}/{table}-{first}-{last}-{len(records)}.json.gz"
        fields = [record.as_fields() for record in records]
        # Not counted in the key, which is the same whichever environment writes the batch.
        named = [self._before] if self._before else []
        for prefix in {each for record in records if (each := names_the_hour_before(record)) is not None}:
            named += self._listed(f"records/{prefix}/")
        fields += [_link(each, at=str(fields[0]["at"])) for each in dict.fromkeys(named)]
        text = "".join(_line(each) + "\n" for each in fields)
        # A timestamp in the gzip header would change the bytes on each run.
        written = self._bucket.put_once(key, gzip.compress(text.encode(), mtime=0), "application/gzip")
        self._before = key
        return written

    def quarantine(self, stream_record: Mapping[str, object], *, error: str, table: str, sequence: str) -> None:
        content = _line({"error": error, "record": stream_record})
        self._bucket.put_once(f"records/quarantine/{table}-{sequence}.json", content.encode(), "application/json")

    def _listed(self, prefix: str) -> list[str]:
        """The objects that are there; those up to where it failed, as nothing that is recorded may depend on it."""
        found: list[str] = []
        try:
            for page in islice(self._bucket.pages(prefix), _PAGES):
                found += [each["Key"] for each in page.get("Contents", [])]
        except Unavailable:
            return found
        return found


def _link(key: str, *, at: str) -> dict[str, object]:
    """A line that names an object which is there."""
    record_id = f"{LINK}/{key.removeprefix('records/')}"
    return {"schema_version": SCHEMA_VERSION, "record_id": record_id, "kind": LINK, "at": at}


def _line(fields: Mapping[str, object]) -> str:
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False, default=str)
