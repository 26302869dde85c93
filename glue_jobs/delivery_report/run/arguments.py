"""The job's arguments, the same on Glue and locally."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta


class BadInput(Exception):
    """The job's input cannot be processed; the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """What a run has to do; see the help of each argument in :func:`parse`.

    Attributes:
        grace: How long past its due time a delivery may go without a record before it counts as missing.
        tables: Their names by ``messages``, ``lines`` and ``topics``; empty compares with none.
    """

    input: str
    output: str
    date_from: date
    date_to: date
    projects: tuple[str, ...] = ()
    now: datetime
    grace: timedelta = timedelta(hours=1)
    tables: Mapping[str, str] = field(default_factory=dict)
    anomalies: bool = False
    keep_days: int = 0

    @property
    def days(self) -> list[date]:
        """Every day of the report."""
        return [self.date_from + timedelta(days=n) for n in range((self.date_to - self.date_from).days + 1)]

    @property
    def until(self) -> datetime:
        """The end of the covered time: the end of the last day, or now if that is earlier."""
        return min(self.now, midnight(self.date_to + timedelta(days=1)))


def midnight(day: date) -> datetime:
    """When a day begins."""
    return datetime.combine(day, time(), UTC)


def parse(argv: Sequence[str], *, today: date, now: datetime) -> Arguments:
    """Read the command line. With Glue's ``--JOB_NAME`` in it, unknown arguments are Glue's own, else they are errors.

    Args:
        today: The current day (UTC); the default report is it and the six days before.

    Raises:
        BadInput: Something is missing, malformed or contradictory.
    """
    parser = _Parser(prog="delivery_report", description="Reports on delivery records and proves that none is missing.")
    add = parser.add_argument
    add("--input", required=True, help="folder of the records (holds dt=...)")
    add("--output", required=True, help="where curated/ and reports/ are written")
    add("--date-from", type=date.fromisoformat, default=today - timedelta(days=6), help="first day, YYYY-MM-DD")
    add("--date-to", type=date.fromisoformat, default=today, help="last day, YYYY-MM-DD")
    add("--projects", type=_names, default=(), help="comma-separated project ids; all when left out")
    add("--now", type=_moment, default=now, help="judge deliveries as of this time, ISO 8601")
    add("--grace-minutes", dest="grace", type=_minutes, default=timedelta(hours=1), help="how late a record may be")
    add("--tables", type=_tables, default={}, help="tables to compare with: messages=NAME,lines=NAME,topics=NAME")
    add("--anomalies", choices=("yes", "no"), default="no", help="whether to look for anomalies")
    add("--keep-days", type=_number, default=0, help="after how many days the bucket takes files away")
    parsed, unknown = parser.parse_known_args([each for each in argv if each])
    if unknown and "--JOB_NAME" not in argv:
        raise BadInput(f"unknown arguments: {' '.join(unknown)}")
    if parsed.date_from > parsed.date_to:
        raise BadInput(f"--date-from {parsed.date_from} is after --date-to {parsed.date_to}")
    places = {"input": parsed.input.rstrip("/"), "output": parsed.output.rstrip("/")}
    return Arguments(**{**vars(parsed), **places, "anomalies": parsed.anomalies == "yes"})


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        raise BadInput(message)


def _number(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return number


def _minutes(text: str) -> timedelta:
    return timedelta(minutes=_number(text))


def _names(text: str) -> tuple[str, ...]:
    return tuple(sorted({each.strip() for each in text.split(",") if each.strip()}))


def _tables(text: str) -> dict[str, str]:
    named = dict(each.split("=", 1) for each in text.split(",") if each)
    if unknown := named.keys() - {"messages", "lines", "topics"}:
        raise argparse.ArgumentTypeError(f"no such tables: {', '.join(sorted(unknown))}")
    return named


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
