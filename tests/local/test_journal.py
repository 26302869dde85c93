"""What was noted is read again up to where it was cut off, and a gap in it is never passed over."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from local.state.journal import Journal, changes, forget, last_change


def test_what_was_noted_since_a_snapshot_is_read_in_order(tmp_path: Path) -> None:
    # Given changes before and after a snapshot, and after a restart
    journal = Journal(tmp_path)
    journal.begin()
    journal.note(["before"])
    since = journal.begin()
    journal.note(["after", {"pk": {"S": "ü"}}])
    journal.sync()
    again = Journal(tmp_path)
    again.begin()
    again.note(["later"])
    # Then those since the snapshot are read
    assert [*changes(tmp_path, since)] == [["after", {"pk": {"S": "ü"}}], ["later"]]
    # And once nobody needs those before, they can go
    forget(tmp_path, since)
    assert [*changes(tmp_path, 0)] == [["after", {"pk": {"S": "ü"}}], ["later"]]


@pytest.mark.parametrize("cut_off", [b'["half', b"\0\0\0\0", b"\0\0\n", b""])
def test_what_a_power_cut_left_of_a_line_does_not_count(tmp_path: Path, cut_off: bytes) -> None:
    # Given a journal whose last line was not written to its end
    journal = Journal(tmp_path)
    number = journal.begin()
    journal.note(["whole"])
    with next(tmp_path.iterdir()).open("ab") as file:
        file.write(cut_off)
    # When the next run goes on from there, Then its changes follow those before
    again = Journal(tmp_path)
    again.begin()
    again.note(["next"])
    assert [*changes(tmp_path, number)] == [["whole"], ["next"]]


def full_disk(monkeypatch: pytest.MonkeyPatch, room: int = 0) -> None:
    """Let a write take so many bytes and fail after that."""
    real = os.write

    def write(file: int, content: bytes) -> int:
        if room:
            return real(file, content[:room])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", write)


@pytest.mark.parametrize("room", [0, 3])
def test_after_a_change_that_could_not_be_noted_there_is_none_until_a_snapshot_has_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    # Given a disk that is full for one change
    journal = Journal(tmp_path)
    since = journal.begin()
    journal.note(["noted"])
    with monkeypatch.context() as full:
        full_disk(full, room)
        journal.note(["not noted"])
    assert journal.failed
    journal.note(["after a gap"])
    # When a snapshot is begun and fails, Then what was noted meanwhile does not count
    journal.begin()
    journal.note(["after a gap"])
    journal.begun(saved=False)
    journal.note(["after a gap"])
    assert journal.failed
    assert [*changes(tmp_path, since)] == [["noted"]]
    # And when one succeeds, it goes on from there
    after = journal.begin()
    journal.note(["in order"])
    journal.begun(saved=True)
    journal.note(["again"])
    assert not journal.failed
    assert [*changes(tmp_path, after)] == [["in order"], ["again"]]


def test_a_snapshot_that_fails_does_not_end_a_journal_that_has_no_gap(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    since = journal.begin()
    journal.note(["one"])
    journal.begin()
    journal.note(["two"])
    journal.begun(saved=False)
    journal.note(["three"])
    assert [*changes(tmp_path, since)] == [["one"], ["two"], ["three"]]


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "missing")
    journal.begin()
    journal.note(["lost"])
    assert "No such file" in journal.failed


def test_when_the_last_change_was_is_known(tmp_path: Path) -> None:
    # Given a file with changes, and an empty one that follows
    journal = Journal(tmp_path)
    first = journal.begin()
    journal.note(["one"])
    second = journal.begin()
    os.utime(next(iter(sorted(tmp_path.iterdir()))), (1000.0, 1000.0))
    assert last_change(tmp_path, first) == 1000.0
    assert last_change(tmp_path, second) is None
