"""One run at a time writes to an output: the second says who runs, whenever it comes."""

from __future__ import annotations

import json
import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from glue_jobs import local_report
from glue_jobs.delivery_report.run import running
from glue_jobs.delivery_report.run.arguments import BadInput
from glue_jobs.delivery_report.run.running import LONGEST, alone
from glue_jobs.delivery_report.storage.files import replace_text

PARENT = os.getppid()


def noted(output: Path, *, process: int = PARENT, host: str | None = None, ago: timedelta = timedelta()) -> Path:
    """What a run leaves in an output while it is at work."""
    note = {
        "since": (datetime.now(UTC) - ago).isoformat(timespec="seconds"),
        "process": process,
        "host": host or socket.gethostname(),
    }
    file = output / "curated/running.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(note))
    return file


def test_a_second_run_says_who_runs(tmp_path: Path) -> None:
    # Given an output that a living process of this machine works on, or any of another one
    for note in (noted(tmp_path), noted(tmp_path, host="elsewhere", process=1)):
        # When another run begins, Then it is told who, and the first one is left alone
        told = rf"another run works on {tmp_path}: since .*, process \d+ of .*; wait for its end"
        with pytest.raises(BadInput, match=told), alone(f"{tmp_path}"):
            pytest.fail("ran beside another")
        assert note.exists()


@pytest.mark.parametrize("dead", [False, True])
def test_of_two_at_once_one_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, dead: bool) -> None:
    # Given a second run that begins after the first has seen that nobody runs, or that who ran is dead, and before it
    # says that it runs itself
    if dead:
        noted(tmp_path, process=os.getpid())

    def meanwhile(path: str, text: str, *, former: str | None) -> bool:
        if dead is (former is not None):
            noted(tmp_path)
        return replace_text(path, text, former=former)

    monkeypatch.setattr(running, "replace_text", meanwhile)
    # Then only the second one runs
    with pytest.raises(BadInput, match=f"process {PARENT} of"), alone(f"{tmp_path}"):
        pytest.fail("ran beside another")


@pytest.mark.parametrize("ago", [timedelta(), LONGEST + timedelta(minutes=1)])
def test_a_run_that_is_dead_is_followed(tmp_path: Path, ago: timedelta) -> None:
    # Given a run that has died: its process is gone, or it began too long ago
    dead = {"process": os.getpid()} if not ago else {"host": "elsewhere"}
    note = noted(tmp_path, ago=ago, **dead)
    # When another begins, Then it runs, and nothing is left when it has ended
    with alone(f"{tmp_path}"):
        assert json.loads(note.read_text())["process"] == os.getpid()
    assert not note.exists()


def test_make_report_leaves_the_records_alone_while_another_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PUSHHUB_HOME", str(tmp_path))
    (tmp_path / "local.json").write_text("{}")
    noted(tmp_path / "report")
    with pytest.raises(SystemExit, match="report: another run works on"):
        local_report.main([])
    assert not (tmp_path / "report/records").exists()


def test_a_run_within_a_run_ends_with_the_outer_one(tmp_path: Path) -> None:
    # Given a run that has fetched records, and lets the job run within it
    with alone(f"{tmp_path}"):
        with alone(f"{tmp_path}"):
            pass
        # When the job has ended, then nobody else runs before all has
        assert (tmp_path / "curated/running.json").exists()
    assert not (tmp_path / "curated/running.json").exists()
