"""Delivery reports on S3, as the job leaves them."""

from __future__ import annotations

import re
from typing import Any

from pushhub.base import json_text
from pushhub.cloud.bucket import BucketStore
from pushhub.engine.records.ports import Report

_NAME = re.compile(r"\d{4}-\d\d-\d\d_\d{4}-\d\d-\d\d")


class S3Reports(BucketStore):
    """Implements :class:`pushhub.engine.records.ports.ReportStore`."""

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
        content = self._bucket.find(f"reports/{name}")
        return None if content is None else json_text.stored(content)
