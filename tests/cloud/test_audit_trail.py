"""Entries of the audit trail in S3 are added, never changed, and read in order of time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.cloud import aws_services as aws
from tests.fakes.telemetry import FakeTelemetry
from tests.simulation import simulated_services

from pushhub.cloud import observability
from pushhub.cloud.audit_trail import S3AuditTrail, folder_of

PROJECT = "0" * 24


@pytest.fixture
def trail() -> Iterator[S3AuditTrail]:
    with aws.s3() as client:
        yield S3AuditTrail(client, aws.BUCKET)


def test_entries_are_read_from_one_time_to_another(trail: S3AuditTrail) -> None:
    days = ("2026-11-22T23:59:59.999Z", "2026-11-23T00:00:00.000Z", "2026-11-24T10:00:00.000Z")
    for number, at in enumerate(reversed(days)):
        trail.append(PROJECT, at, f"{number}-asked", {"at": at})
    trail.append("f" * 24, days[0], "another", {"at": "another project's"})
    assert [each["at"] for each in trail.read(PROJECT, days[0], "2027")] == [*days]
    assert [each["at"] for each in trail.read(PROJECT, days[1], days[2])] == [days[1]]


def test_an_entry_stays_as_it_was(trail: S3AuditTrail) -> None:
    trail.append(PROJECT, "2026-11-24T10:00:00.000Z", "1", {"first": True})
    trail.append(PROJECT, "2026-11-24T10:00:00.000Z", "1", {"first": False})
    assert [*trail.read(PROJECT, "2026-11-24T10:00:00.000Z", "2027")] == [{"first": True}]


def test_what_is_no_projects_id_makes_no_folder_of_its_own() -> None:
    assert folder_of(f"../{PROJECT}") == folder_of("") == "audit/project=unknown/"


def test_the_newest_are_read_page_by_page(trail: S3AuditTrail) -> None:
    # Given changes of three days, one of which has not ended, and some of another project
    times = [f"2026-11-{day}T10:00:0{second}.000Z" for day in (22, 23, 24) for second in range(3)]
    for at in times:
        for part in ("asked", "ended"):
            if (at, part) != (times[-1], "ended"):
                trail.append(PROJECT, at, f"{'0' * 16}-{part}", {"at": at, "part": part})
        trail.append("f" * 24, at, f"{'0' * 16}-asked", {"at": "another project's"})
    # When they are read four at a time
    seen, after = [], ""
    for _ in range(3):
        entries, after = trail.newest(PROJECT, after, 4)
        seen += [(each["at"], each["part"]) for each in entries]
        if not after:
            break
    # Then each is read once, the newest first, and what was asked before how it ended
    wanted = [(at, part) for at in reversed(times) for part in ("asked", "ended")]
    wanted.remove((times[-1], "ended"))
    assert (seen, after) == (wanted, "")
    assert trail.newest("e" * 24, "", 4) == ([], "")


def test_an_entry_that_cannot_be_read_is_named_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    telemetry = FakeTelemetry()
    monkeypatch.setattr(observability, "telemetry", telemetry)
    with simulated_services.s3() as client:
        trail = S3AuditTrail(client, aws.BUCKET)
        # Given three entries, of which the second is damaged
        entries = [{"id": str(number)} for number in range(3)]
        for number, entry in enumerate(entries):
            trail.append(PROJECT, f"2026-11-30T20:00:0{number}.000Z", f"{number}-asked", entry)
        damaged = f"{folder_of(PROJECT)}dt=2026-11-30/2026-11-30T20:00:01.000Z-1-asked.json"
        client.put_object(Bucket=aws.BUCKET, Key=damaged, Body=b'{"id": ')
        # Then the others are shown, and read
        assert trail.newest(PROJECT, "", 10)[0] == [entries[2], entries[0]]
        assert [*trail.read(PROJECT, "2026-11-30", "2026-12-01")] == [entries[0], entries[2]]
        assert telemetry.counts["ItemsUnreadable"] == 2
        assert telemetry.named("item_unreadable")[0]["pk"] == damaged
