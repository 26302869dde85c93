"""What decides about a night, on AWS: records and reports in S3, what the tables hold, and Glue."""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pushhub.base import json_text
from pushhub.base.errors import Unavailable
from pushhub.base.times import epoch_ms, iso_time
from pushhub.cloud.bucket import Bucket
from pushhub.cloud.calls import aws_call, code_of
from pushhub.cloud.table import Table, number, text
from pushhub.engine.model.delivery import SETTLED
from pushhub.engine.model.record import LINK, PULSE
from pushhub.engine.records.nights import Held, Night, Proved, Recorded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Executor

    from mypy_boto3_s3 import S3Client

    from pushhub.base.ports import Clock
    from pushhub.cloud.clients import Clients

DECIDED = "reports/night.json"
LATEST = "reports/latest.json"

LATE_MS = 26 * 3_600_000
"""How long before a time the hours are that may have got an object since: a stream keeps 24 hours."""

MOST_OBJECTS = 20_000
"""Of records, between two reports: the pulses of three weeks. A hub with more is not at rest."""

MOST_PAGES = 20
"""Of a table, a megabyte each. One that holds more is left to the report, which reads it side by side."""

_NAME = re.compile(r"(\d{4}-\d\d-\d\d)_(\d{4}-\d\d-\d\d)")
_KINDS = ("message", "line", "commit", PULSE)
"""Items of messages in the three tables, as the report compares them, and pulses."""


class AwsNights:
    """Implements :class:`pushhub.engine.records.nights.NightStore`.

    Args:
        clients: Its clients of S3 and DynamoDB are used.
        tables: Names of the tables through which pulses are sent.
        executor: Reads objects side by side.
    """

    def __init__(
        self, clients: Clients, bucket: str, tables: Sequence[str], *, clock: Clock, executor: Executor
    ) -> None:
        self._s3: S3Client = clients.of("s3")
        self._name = bucket
        self._bucket = Bucket(self._s3, bucket)
        self._tables = {each: Table(clients.of("dynamodb"), each, clock) for each in tables}
        self._clock = clock
        self._executor = executor

    def decided(self) -> Night | None:
        """None, too, if another version wrote it."""
        found = self._json(DECIDED)
        try:
            return Night(**found) if found else None
        except TypeError:
            return None

    def decide(self, night: Night) -> None:
        with aws_call("s3:PutObject"):
            self._s3.put_object(
                Bucket=self._name,
                Key=DECIDED,
                Body=json_text.write(asdict(night)).encode(),
                ContentType="application/json",
            )

    def proved(self) -> Proved | None:
        """Nothing can be concluded from a report over some projects, over days that are not the last seven, or from one
        that cannot be read.
        """
        latest = self._json(LATEST) or {}
        name = _NAME.fullmatch(str(latest.get("report", "")).rstrip("/").rpartition("/")[2])
        carried = self._carried()
        if name is None or carried is None:
            return None
        first, last = (datetime.fromisoformat(each) for each in name.groups())
        try:
            verdict = latest["verdict"]
            as_of = datetime.fromisoformat(verdict["as_of"]).astimezone(UTC)
            if (last - first).days < 6 or f"{as_of:%Y-%m-%d}" != name[2]:
                return None
            ended = sum(verdict.get(each.value, 0) for each in SETTLED)
            return Proved(
                as_of=round(as_of.timestamp() * 1000),
                settled=verdict["conserved"] is True and verdict["owed"] == ended,
                carried=carried,
                quarantined=verdict["stream_records_quarantined"],
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            return None

    def _carried(self) -> int | None:
        """Records in the newest state of open deliveries; None if there is no state."""
        names = [each["Key"] for each in self._bucket.listed("curated/open/", Delimiter="/")]
        states = sorted(each for each in names if each.endswith(".json"))
        state = self._json(states[-1]) if states else None
        rows = (state or {}).get("rows")
        return rows if isinstance(rows, int) else None

    def quarantined(self) -> int:
        return sum(1 for _ in self._bucket.listed("records/quarantine/"))

    def touched(self, since: int) -> bool:
        return any(
            _at(each) >= since for place in ("settled/", "records/erased/") for each in self._bucket.listed(place)
        )

    def recorded(self, since: int) -> Recorded:
        keys: list[str] = []
        for hour in range((since - LATE_MS) // 3_600_000, self._clock.now() // 3_600_000 + 1):
            at = iso_time(hour * 3_600_000)
            found = self._bucket.listed(f"records/dt={at[:10]}/hour={at[11:13]}/")
            keys += [each["Key"] for each in found if _at(each) >= since]
            if len(keys) > MOST_OBJECTS:
                return Recorded(pulses={}, others=True)
        pulses: dict[str, set[int]] = {}
        for lines in self._executor.map(self._lines, keys):
            for line in lines:
                if line["kind"] == PULSE:
                    table, at = str(line["record_id"]).split("/")[1:]
                    pulses.setdefault(table, set()).add(epoch_ms(at))
                elif line["kind"] != LINK:
                    return Recorded(pulses={}, others=True)
        return Recorded(pulses=pulses, others=False)

    def _lines(self, key: str) -> list[Mapping[str, Any]]:
        """The lines of an object. What cannot be read is a record like any other, which the report looks at."""
        content = self._bucket.get(key)
        unread: list[json_text.Unread] = []
        lines: list[Mapping[str, Any]] = [*json_text.lines(content, unread.append)]
        try:
            count = int(key.removesuffix(".json.gz").rpartition("-")[2])
            whole = not unread and sum(each["kind"] != LINK for each in lines) == count
        except (KeyError, ValueError):
            whole = False
        return lines if whole else [{"kind": "unreadable"}]

    def held(self, since: int) -> Held:
        pulses: dict[str, set[int]] = {each: set() for each in self._tables}
        names = {f":{number}": text(each) for number, each in enumerate(_KINDS)}
        for name, table in self._tables.items():
            pages = table.scanned(
                consistent=False,
                Select="SPECIFIC_ATTRIBUTES",
                ProjectionExpression="pk, sk, accepted_at",
                FilterExpression=f"#kind IN ({', '.join(names)}) AND accepted_at >= :since",
                ExpressionAttributeNames={"#kind": "kind"},
                ExpressionAttributeValues={**names, ":since": number(since)},
            )
            for count, (items, _) in enumerate(pages, start=1):
                if count > MOST_PAGES or any(each["sk"]["S"] != PULSE for each in items):
                    return Held(pulses={}, messages=True)
                pulses[name] |= {int(each["accepted_at"]["N"]) for each in items}
        return Held(pulses=pulses, messages=False)

    def _json(self, key: str) -> dict[str, Any] | None:
        content = self._bucket.find(key)
        if content is None:
            return None
        try:
            found = json_text.stored(content)
        except ValueError:
            # What cannot be read tells nothing, and the report is made again.
            return None
        return found if isinstance(found, dict) else None


class GlueRuns:
    """Implements :class:`pushhub.engine.records.nights.ReportRuns`.

    Args:
        clients: Its clients of Glue and EventBridge are made when they are needed, once a night.
        job: Name of the Glue job.
    """

    def __init__(self, clients: Clients, job: str) -> None:
        self._clients = clients
        self._job = job

    def start(self) -> bool:
        try:
            with aws_call("glue:StartJobRun"):
                self._clients.of("glue").start_job_run(JobName=self._job)
        except Unavailable as unavailable:
            if code_of(unavailable) == "ConcurrentRunsExceededException":
                return False
            raise
        return True

    def quiet(self) -> None:
        """An event like Glue's own of a run that succeeded: the same rule counts it for the alarm ``ReportMissing``."""
        entry = {
            "Source": "pushhub.report",
            "DetailType": "Quiet Night",
            "Detail": json_text.write({"jobName": self._job, "state": "SUCCEEDED"}),
        }
        with aws_call("events:PutEvents"):
            answer = self._clients.of("events").put_events(Entries=[entry])
        if answer["FailedEntryCount"]:
            raise Unavailable("events:PutEvents", answer["Entries"][0].get("ErrorCode", ""))


def _at(listed: Any) -> int:
    """When an object was written, epoch milliseconds."""
    written: datetime = listed["LastModified"]
    return round(written.timestamp() * 1000)
