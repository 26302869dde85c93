"""``make report``: bring the records of the running local stack to disk and run the job over them, as Glue would.

The newest report goes back.

Reads ``local.json`` in ``PUSHHUB_HOME`` (default ``.pushhub``); writes below ``report/`` in the same folder. Further
arguments go to the job, e.g. ``make report ARGS="--date-from 2026-11-01"``.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from glue_jobs.delivery_report import job
from glue_jobs.delivery_report.run.arguments import BadInput
from glue_jobs.delivery_report.run.running import alone
from glue_jobs.local_spark import settings_for, use_bundled_java

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


_logger = logging.getLogger("report")

PREFIX = "records/"
REPORTS = "reports/"
DOWNLOADS_AT_ONCE = 16


def main(argv: Sequence[str]) -> None:
    """Sync and report; further arguments go to the job.

    Raises:
        SystemExit: The stack does not run, or the job ended with a status.
    """
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    for name in ("py4j", "boto3", "botocore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    home = Path(os.environ.get("PUSHHUB_HOME", ".pushhub")).resolve()
    description = _description(home / "local.json")
    records = home / "report" / "records"
    try:
        with alone(f"file://{home / 'report'}"):
            _report(description, home, records, argv)
    except BadInput as error:
        raise SystemExit(f"report: {error}") from error


def _report(description: dict[str, Any], home: Path, records: Path, argv: Sequence[str]) -> None:
    """What nobody else does meanwhile."""
    try:
        found, fetched = sync(_client(description), description["outputs"]["RecordsBucketName"], records)
    except (BotoCoreError, ClientError) as error:
        raise SystemExit(f"report: the stack does not answer at {description['aws_endpoint_url']}: {error}") from error
    if not found:
        raise SystemExit("report: the stack has recorded nothing yet: post some messages, or 'make run', and try again")
    _logger.info("Synced %d objects of records, %d of them new, to %s", found, fetched, records)
    use_bundled_java()
    os.environ.update(_environment(description))
    places = ["--input", f"file://{records}", "--output", f"file://{home / 'report'}"]
    try:
        given = [*places, "--tables", _tables(description["outputs"]), *argv]
        job.main(given, master="local[*]", settings=settings_for(records))
    finally:
        # Also when something is not accounted for: then most of all.
        publish(_client(description), description["outputs"]["RecordsBucketName"], home / "report" / "reports")


def sync(client: S3Client, bucket: str, folder: Path) -> tuple[int, int]:
    """Make a folder hold exactly the record objects of a bucket (``dt=...``): how many there are, and how many were
    fetched. One is fetched again only when it was written again, as the deletion of a project does.
    """
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=PREFIX)
    found = [each for page in pages for each in page.get("Contents", [])]
    # Whole seconds, as S3 counts them.
    wanted = {
        folder / each["Key"].removeprefix(PREFIX): (each["Key"], each["Size"], int(each["LastModified"].timestamp()))
        for each in found
    }
    for file in [each for each in folder.rglob("*") if each.is_file() and each not in wanted]:
        file.unlink()
    missing = {file: (key, at) for file, (key, size, at) in wanted.items() if _marks(file) != (size, at)}
    for parent in {file.parent for file in missing}:
        parent.mkdir(parents=True, exist_ok=True)

    def fetch(file: Path, key: str, at: int) -> None:
        file.write_bytes(client.get_object(Bucket=bucket, Key=key)["Body"].read())
        os.utime(file, (at, at))

    with ThreadPoolExecutor(max_workers=DOWNLOADS_AT_ONCE) as pool:
        for done in [pool.submit(fetch, file, *each) for file, each in missing.items()]:
            done.result()
    return len(wanted), len(missing)


def _marks(file: Path) -> tuple[int, int] | None:
    """The size of a file and when its object was written; None if it is not there."""
    if not file.is_file():
        return None
    status = file.stat()
    return status.st_size, int(status.st_mtime)


def publish(client: S3Client, bucket: str, folder: Path) -> int:
    """Put the newest report, if there is one, where Glue leaves it, so that the stack's console shows it to its
    projects: what is JSON, and the page. Returns how many objects were put.
    """
    try:
        newest = folder / Path(json.loads((folder / "latest.json").read_text())["report"]).name
    except FileNotFoundError:
        return 0
    files = [*sorted(newest.glob("*.json")), *newest.glob("*.html"), folder / "latest.json"]
    for file in files:
        kind = "text/html" if file.suffix == ".html" else "application/json"
        key = f"{REPORTS}{file.relative_to(folder)}"
        client.put_object(Bucket=bucket, Key=key, Body=file.read_bytes(), ContentType=kind)
    return len(files)


def _description(file: Path) -> dict[str, Any]:
    try:
        described: dict[str, Any] = json.loads(file.read_text())
    except FileNotFoundError as error:
        raise SystemExit(f"report: no running stack ({file} is missing): 'make up' or 'make run' starts one") from error
    return described


def _tables(outputs: dict[str, str]) -> str:
    """The tables that the records are held against."""
    named = {"messages": "MessagesTableName", "lines": "PullTableName", "topics": "BacklogsTableName"}
    return ",".join(f"{each}={outputs[output]}" for each, output in named.items())


def _environment(description: dict[str, Any]) -> dict[str, str]:
    """What makes the job's own AWS clients talk to the stack."""
    return {
        "AWS_ENDPOINT_URL_DYNAMODB": description["aws_endpoint_url"],
        "AWS_DEFAULT_REGION": description["region"],
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }


def _client(description: dict[str, Any]) -> S3Client:
    return boto3.client(
        "s3",
        endpoint_url=description["aws_endpoint_url"],
        region_name=description["region"],
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106 (the emulator takes anything)
        config=Config(
            connect_timeout=5,
            read_timeout=60,
            max_pool_connections=DOWNLOADS_AT_ONCE,
            s3={"addressing_style": "path"},
        ),
    )


if __name__ == "__main__":
    main(sys.argv[1:])
