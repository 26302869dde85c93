"""A snapshot is whole, or it does not count, whatever fails while it is written and whatever happens to it later."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from local.state import snapshots

FIRST = [("tables.json", b"first tables"), ("queues.json", b"first queues")]
SECOND = [("tables.json", b"second tables"), ("queues.json", b"second queues")]


def content(snapshot: snapshots.Snapshot | None) -> dict[str, bytes]:
    assert snapshot is not None
    return {each.name: each.read_bytes() for each in snapshot.folder.iterdir() if each.name != "manifest.json"}


def writing(files: Iterable[tuple[str, bytes]], *links: Path) -> Callable[[Path], None]:
    """What puts files and links in a folder."""

    def write(folder: Path) -> None:
        for name, content in files:
            (folder / name).write_bytes(content)
        for each in links:
            os.link(each, folder / each.name)

    return write


def save(root: Path, files: list[tuple[str, bytes]], *, at: float = 1.0, final: bool = False) -> snapshots.Snapshot:
    return snapshots.save(root, writing(files), taken_at=at, final=final)


def test_what_was_saved_is_found_and_two_are_kept(tmp_path: Path) -> None:
    # Given nothing, then nothing is found
    assert snapshots.newest(tmp_path) is None
    # When three are saved
    for number in range(3):
        save(tmp_path, [("a.json", b"%d" % number)], at=number)
    # Then the last one is found, and the one before it is there for the case that it is damaged
    assert content(snapshots.newest(tmp_path)) == {"a.json": b"2"}
    assert len(list(tmp_path.iterdir())) == 2


def test_the_order_is_that_of_saving_not_that_of_the_clock(tmp_path: Path) -> None:
    # Given a clock that was set back between two snapshots
    save(tmp_path, FIRST, at=2000.0)
    save(tmp_path, SECOND, at=1000.0)
    # Then the later one counts
    assert content(snapshots.newest(tmp_path)) == dict(SECOND)


def failing_at(call: int, name: str, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> Callable[[], int]:
    """Let the call of that number of one of the system's functions fail; returns how to ask how many there were."""
    real, created = getattr(os, name), 0

    def fails(*arguments: Any, **options: Any) -> Any:
        nonlocal created
        created += 1
        if created == call:
            raise error
        return real(*arguments, **options)

    monkeypatch.setattr(os, name, fails)
    return lambda: created


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize(
    ("name", "call"), [*[("fsync", call) for call in range(1, 7)], ("mkdir", 2), ("rename", 1), ("link", 1)]
)
def test_a_failure_at_any_step_leaves_the_snapshot_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, call: int, error: BaseException
) -> None:
    # Given a snapshot
    code = tmp_path / "code.zip"
    code.write_bytes(b"code")
    root = tmp_path / "root"
    save(root, FIRST)
    # When the next one fails at one of its steps
    with monkeypatch.context() as patched:
        created = failing_at(call, name, patched, error)
        with pytest.raises(type(error)):
            snapshots.save(root, writing(SECOND, code), taken_at=2.0, final=True)
        assert created() == call
    # Then the one before it is the newest, and nothing else is left
    renamed = (name, call) == ("fsync", 6)
    assert content(snapshots.newest(root)) == ({**dict(SECOND), "code.zip": b"code"} if renamed else dict(FIRST))
    assert not list(root.glob("unfinished*"))


def test_contents_that_cannot_be_made_leave_the_snapshot_before_it(tmp_path: Path) -> None:
    # Given a snapshot, and a service whose state cannot be told
    save(tmp_path, FIRST)

    def contents() -> Iterator[tuple[str, bytes]]:
        yield SECOND[0]
        raise RuntimeError("dictionary changed size during iteration")

    # When the next one is saved
    with pytest.raises(RuntimeError):
        snapshots.save(tmp_path, writing(contents()), taken_at=2.0, final=True)
    # Then the first stands
    assert content(snapshots.newest(tmp_path)) == dict(FIRST)


def test_what_a_crash_left_half_written_is_removed_by_the_next(tmp_path: Path) -> None:
    # Given what is left when the machine stops in the middle
    save(tmp_path, FIRST)
    (tmp_path / "unfinished-2").mkdir()
    (tmp_path / "unfinished-2" / "tables.json").write_bytes(b"half")
    assert content(snapshots.newest(tmp_path)) == dict(FIRST)
    # When one is saved
    save(tmp_path, SECOND)
    # Then it is gone
    assert content(snapshots.newest(tmp_path)) == dict(SECOND)
    assert not list(tmp_path.glob("unfinished*"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "tables.json").write_bytes(b""),
        lambda folder: (folder / "tables.json").write_bytes(b"second tablez"),
        lambda folder: (folder / "tables.json").unlink(),
        lambda folder: (folder / "manifest.json").write_bytes(b""),
        lambda folder: (folder / "manifest.json").write_bytes(b"[]"),
        lambda folder: (folder / "manifest.json").unlink(),
    ],
)
def test_a_damaged_snapshot_does_not_count(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    # Given two snapshots, the newer of which is damaged
    save(tmp_path, FIRST, at=1.0)
    damage(save(tmp_path, SECOND, at=2.0).folder)
    # When the newest is asked for, then it is the one before
    assert content(snapshots.newest(tmp_path)) == dict(FIRST)


def test_finished_files_belong_to_a_snapshot_and_outlive_their_removal(tmp_path: Path) -> None:
    # Given a file beside
    code = tmp_path / "code.zip"
    code.write_bytes(b"code")
    # When it is made part of a snapshot, and removed
    snapshots.save(tmp_path / "root", writing(FIRST, code), taken_at=1.0, final=False)
    code.unlink()
    # Then the snapshot has it
    assert content(snapshots.newest(tmp_path / "root"))["code.zip"] == b"code"


def test_an_end_without_a_last_snapshot_is_noticed(tmp_path: Path) -> None:
    # Given an emulator that never ran
    assert snapshots.ended_in_order(tmp_path)
    # When it runs and is killed, before and after a snapshot
    snapshots.begin(tmp_path, None)
    assert not snapshots.ended_in_order(tmp_path)
    save(tmp_path, FIRST)
    assert not snapshots.ended_in_order(tmp_path)
    # When it runs and stops
    save(tmp_path, FIRST, final=True)
    assert snapshots.ended_in_order(tmp_path)
    # When it runs again and is killed at once
    snapshots.begin(tmp_path, snapshots.newest(tmp_path))
    assert not snapshots.ended_in_order(tmp_path)
    # When it stops
    save(tmp_path, SECOND, final=True)
    assert snapshots.ended_in_order(tmp_path)
