"""``pushhub tail``: shows what is happening from the delivery records as they are written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import click
from botocore.exceptions import BotoCoreError, ClientError

from pushhub.base.json_text import lines
from pushhub.engine.model.record import NO_RECORDS

from ..durations import Duration
from ..framework import Printing
from ..hub import HubOptions
from ..operators.deployment import Deployment, deployment
from ..operators.passing_over import PassedOver
from ..terminal import printable
from .queues import complete

POLL_S = 2.0
SETTLE = timedelta(minutes=5)
"""How long after its hour a record may still be written."""


class Records:
    """The delivery records of a hub, each one once.

    Args:
        passed_over: Told what cannot be read.
    """

    def __init__(self, hub: Deployment, since: datetime, passed_over: Callable[[str], None]) -> None:
        self._passed_over = passed_over
        self._s3 = hub.client("s3")
        self._bucket = hub.outputs["RecordsBucketName"]
        self._since = since
        self._read: set[str] = set()

    def new(self, now: datetime) -> list[dict[str, Any]]:
        """Records that were not there before, in the order of their times."""
        start = self._since.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        found = [each for key in self._keys(now) for each in self._records(key) if each["at"] >= start]
        return sorted(found, key=lambda each: (each["at"], each["record_id"]))

    def _keys(self, now: datetime) -> Iterator[str]:
        hour = max(self._since, now - SETTLE).replace(minute=0, second=0, microsecond=0)
        if not self._read:
            hour = self._since.replace(minute=0, second=0, microsecond=0)
        while hour <= now:
            prefix = f"records/dt={hour:%Y-%m-%d}/hour={hour:%H}/"
            for page in self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix):
                yield from (each["Key"] for each in page.get("Contents", []) if each["Key"] not in self._read)
            hour += timedelta(hours=1)

    def _records(self, key: str) -> Iterator[dict[str, Any]]:
        body = self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].read()
        for record in lines(body, lambda what: self._passed_over(f"{key}: {what}")):
            if record.get("kind") not in NO_RECORDS:
                yield record
        self._read.add(key)


@click.command(cls=Printing)
@click.argument("queue", required=False, shell_complete=complete)
@click.option("--project", help="Only for this project.")
@click.option("--subscriber", help="Only for this subscriber.")
@click.option("--state", help="Only changes to this state: delivered, retrying, exhausted ...")
@click.option("--since", type=Duration(), default=0, help="How far back to begin: 10m, 2h. Default: now.")
@click.option("--for", "length", type=Duration(), help="End after this time. Default: at Ctrl-C.")
@click.pass_obj
def tail(hub: HubOptions, /, *, since: int, length: int | None, **wanted: str | None) -> None:
    """Show what is happening: accepted messages, attempts and their answers, settled deliveries.

    Reads the delivery records, so it lags by a few seconds, and needs an operator's rights (--stack).
    """
    records = Records(deployment(hub), datetime.now(UTC) - timedelta(milliseconds=since), PassedOver(hub))
    end = None if length is None else time.monotonic() + length / 1000
    while True:
        try:
            found = records.new(datetime.now(UTC))
        except (BotoCoreError, ClientError) as error:
            raise click.ClickException(f"the records cannot be read: {error}") from error
        for each in found:
            if all(value is None or each.get(name) == value for name, value in wanted.items()):
                hub.event(each, line(each))
        if end is not None and time.monotonic() >= end:
            return
        time.sleep(POLL_S)


def line(record: dict[str, Any]) -> str:
    """A record in a line."""
    parts = [record["at"][11:23], record["kind"].ljust(12), record["queue"], record["message_id"]]
    if record.get("subscriber"):
        parts.append(f"-> {record['subscriber']}")
    if record["kind"] in ("attempt", "poll"):
        answer = record.get("status_code") or record.get("error_class") or "no answer"
        parts.append(f"try {record.get('attempt', '-')}: {answer} in {record.get('duration_ms', '-')} ms")
    if record.get("state"):
        parts.append(record["state"])
    if record.get("reason"):
        parts.append(f"({record['reason']})")
    if record.get("wait_after_ms"):
        parts.append(f"next in {record['wait_after_ms'] / 1000:g} s")
    return printable(" ".join(map(str, parts)))
