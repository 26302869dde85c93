"""Links: each object of records names the one that the same environment of the records function wrote before it, so one
that is named and not there was removed, whatever was in it. docs/decisions/records.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from pushhub.engine.model.record import LINK

from ..storage.files import listed

_PREFIX: Final = f"{LINK}/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Objects of an hour (that they are filed under) which others name and that are not there.

    Attributes:
        named_by: An object that names one of them, below ``records/``.
    """

    hour: datetime
    names: Sequence[str]
    named_by: str


def is_link(record_id: str) -> bool:
    """Whether a line that is no record is a link."""
    return record_id.startswith(_PREFIX)


def named_objects(lines: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """The objects that links name, each with one of those that name it."""
    return {each.removeprefix(_PREFIX): source for source, ids in lines.items() for each in ids if is_link(each)}


def missing_objects(
    records: str, links: Mapping[date, Mapping[str, str]], *, until: datetime, kept_since: datetime | None
) -> list[Missing]:
    """The objects that links name and that are not there, by hour.

    The hours in which some seem to be missing are listed again: one that was written while the days were being listed
    is there now, as whatever names it was written later. A day before the first one that is there was not copied.

    Args:
        links: What the objects of each day name, and the object that does.
        until: Objects of later hours say nothing yet: a copy of a bucket that is being written may lack what they name.
        kept_since: Objects of hours before this time may have been taken away by the bucket; None: never.
    """
    wanted: dict[datetime, dict[str, str]] = defaultdict(dict)
    for day, named in links.items():
        for target, source in named.items():
            by = f"dt={day}/{source}"
            hour, naming = _hour(target), _hour(by)
            if hour is None or naming is None or naming + timedelta(hours=1) > until:
                continue
            if kept_since is None or hour >= kept_since:
                wanted[hour][target.rpartition("/")[2]] = by
    found = []
    for hour, names in sorted(wanted.items()):
        there = listed(f"{records}/{hour:dt=%Y-%m-%d/hour=%H}").keys()
        missing = sorted(names.keys() - there)
        copied = there or hour.date() in links or listed(f"{records}/{hour:dt=%Y-%m-%d}")
        if missing and copied:
            found.append(Missing(hour=hour, names=missing, named_by=names[missing[0]]))
    return found


def _hour(name: str) -> datetime | None:
    """The hour that an object is filed under; None if its name does not say."""
    try:
        return datetime.strptime(name.rpartition("/")[0], "dt=%Y-%m-%d/hour=%H").replace(tzinfo=UTC)
    except ValueError:
        return None
