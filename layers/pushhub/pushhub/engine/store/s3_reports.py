"""Delivery reports on S3, as the job leaves them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from pushhub.base.errors import Unavailable
from pushhub.cloud.calls import aws_call
from pushhub.engine.ports import Report

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


_NAME = re.compile(r"\d{4}-\d\d-\d\d_\d{4}-\d\d-\d\d")


class S3Reports:
    """Implements :class:`pushhub.engine.ports.ReportStore`."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def newest(self) -> Report | None:
        found = self._read("latest.json")
        if not isinstance(found, dict):
            return None
        name = str(found.get("report", "")).rstrip("/").rpartition("/")[2]
        verdict = found.get("verdict")
        as_of = str(verdict.get("as_of", "")) if isinstance(verdict, dict) else ""
        return Report(name=name, as_of=as_of) if _NAME.fullmatch(name) else None

    def rows(self, report: str, table: str) -> list[dict[str, Any]]:
        found = self._read(f"{report}/{table}.json")
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []

    def _read(self, name: str) -> Any:
        """Contents of a JSON file under ``reports/``; None when it does not exist."""
        try:
            with aws_call("s3:GetObject"):
                content = self._client.get_object(Bucket=self._bucket, Key=f"reports/{name}")["Body"].read()
        except Unavailable as unavailable:
            cause = unavailable.__cause__
            if isinstance(cause, ClientError) and cause.response.get("Error", {}).get("Code") == "NoSuchKey":
                return None
            raise
        return json.loads(content)
