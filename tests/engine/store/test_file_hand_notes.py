"""Notes in files: those of dead processes are found, those of living ones are not."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from pushhub.engine.in_hand import LeftBehind
from pushhub.engine.store.file_hand_notes import FileHandNotes

LEFT = LeftBehind("push", 1_795_000_000_000, ["a handle", "another"])


def in_process(work: Callable[[], None]) -> int:
    """Do something in a process of its own, which then waits; returns its id."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        work()
        os.write(writes, b".")
        signal.pause()
    os.read(reads, 1)
    os.close(reads)
    os.close(writes)
    return child


def kill(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_note_is_found_when_its_process_was_killed_and_only_then(tmp_path: Path) -> None:
    # Given a process that has noted something, twice, and one that has forgotten it
    folder = str(tmp_path / "notes")
    notes = FileHandNotes(folder)
    assert [*notes.left()] == []

    def twice() -> None:
        own = FileHandNotes(folder)
        own.note(LeftBehind("push", 1, ["a" * 5_000]))
        own.note(LEFT)

    def forgets() -> None:
        own = FileHandNotes(folder)
        own.note(LEFT)
        own.forget()

    children = [in_process(twice), in_process(forgets)]
    # Then, as long as they live, there is nothing to find
    notes.note(LeftBehind("own", 1, []))
    assert [*notes.left()] == []
    # When they are killed, there is, once, and their files go
    for child in children:
        kill(child)
    assert [*notes.left()] == [LEFT]
    assert [*notes.left()] == []
    assert len([*tmp_path.glob("notes/*")]) == 1


def test_a_forked_process_has_notes_of_its_own(tmp_path: Path) -> None:
    notes = FileHandNotes(str(tmp_path))
    notes.note(LeftBehind("push", 1, ["of the first"]))
    child = in_process(lambda: notes.note(LEFT))
    kill(child)
    assert [*FileHandNotes(str(tmp_path)).left()] == [LEFT]


def test_a_note_is_kept_until_somebody_has_dealt_with_it(tmp_path: Path) -> None:
    kill(in_process(lambda: FileHandNotes(str(tmp_path)).note(LEFT)))
    notes = FileHandNotes(str(tmp_path))
    # Given somebody who cannot deal with it now
    for _ in notes.left():
        break
    assert [*notes.left()] == [LEFT]


def test_half_a_note_and_an_unusable_folder_are_no_harm(tmp_path: Path) -> None:
    (tmp_path / "1-0").write_bytes(b'["push", 1, "ha')
    (tmp_path / "2-0").write_bytes(b"what is this\n")
    assert [*FileHandNotes(str(tmp_path)).left()] == []
    (tmp_path / "file").write_bytes(b"")
    nowhere = FileHandNotes(str(tmp_path / "file"))
    nowhere.note(LEFT)
    nowhere.forget()
    assert [*nowhere.left()] == []
