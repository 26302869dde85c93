"""The audit trail in S3: an object for each entry, which nobody overwrites."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pushhub.base import json_text
from pushhub.cloud.bucket import BucketStore
from pushhub.cloud.unreadable import tell_of_object

ROOT: Final = "audit"
UNKNOWN: Final = "unknown"
"""The folder of entries whose project only the request's own token knew."""
OPERATORS: Final = "operators"
"""The folder of what operators do."""
_PROJECT = re.compile("[0-9a-f]{24}")


def folder_of(project: str) -> str:
    """A project's folder; or that of operators."""
    if project == OPERATORS:
        return f"{ROOT}/{OPERATORS}/"
    return f"{ROOT}/project={project if _PROJECT.fullmatch(project) else UNKNOWN}/"


class S3AuditTrail(BucketStore):
    """Keeps and reads entries."""

    def append(self, project: str, at: str, name: str, entry: Mapping[str, Any]) -> None:
        """Keep an entry.

        Args:
            at: When, ISO 8601.
            name: Unique with that time.

        Raises:
            Unavailable: It may not have been kept.
        """
        key = f"{folder_of(project)}dt={at[:10]}/{at}-{name}.json"
        # If it is there, the answer to an earlier try was lost.
        self._bucket.put_once(key, json_text.write(entry, ascii_only=True).encode(), "application/json")

    def newest(self, project: str, after: str, most: int) -> tuple[list[dict[str, Any]], str]:
        """See :meth:`pushhub.web.audit.Trail.newest`."""
        found: list[tuple[str, list[str]]] = []
        for folder in self._days(folder_of(project), after):
            by_change: dict[str, list[str]] = {}
            for listed in self._bucket.listed(folder):
                key = listed["Key"]
                by_change.setdefault(key.rpartition("/")[2].rpartition("-")[0], []).append(key)
            # By name, that asked comes before how it ended.
            found += [each for each in sorted(by_change.items(), reverse=True) if not after or each[0] < after]
            if len(found) > most:
                break
        entries = (self._entry(key) for _, keys in found[:most] for key in keys)
        return [each for each in entries if each is not None], found[most - 1][0] if len(found) > most else ""

    def _days(self, folder: str, after: str) -> Iterator[str]:
        """The folders of a project's days, from that of a change on backwards."""
        pages = self._bucket.pages(folder, Delimiter="/")
        days = [each["Prefix"] for page in pages for each in page.get("CommonPrefixes", [])]
        yield from sorted((each for each in days if not after or each[-11:-1] <= after[:10]), reverse=True)

    def _entry(self, key: str) -> dict[str, Any] | None:
        """An entry; None if it cannot be read, which hides no other."""
        try:
            entry = json_text.stored(self._bucket.get(key))
        except ValueError as error:
            tell_of_object(key, error)
            return None
        return entry if isinstance(entry, dict) else None

    def read(self, project: str, since: str, until: str) -> Iterator[dict[str, Any]]:
        """A project's entries from one time to another, oldest first.

        Args:
            since: ISO 8601; the first entry's time may be equal.
            until: Likewise; the last entry's is before it.
        """
        folder = folder_of(project)
        for each in self._bucket.listed(f"{folder}dt=", StartAfter=f"{folder}dt={since[:10]}/{since}"):
            if each["Key"].rpartition("/")[2] >= until:
                return
            if (entry := self._entry(each["Key"])) is not None:
                yield entry
