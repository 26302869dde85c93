"""Snapshots of the emulator's state on disk: each is complete, or it does not count.

A snapshot is a folder of files with a manifest that holds the size and the SHA-256 of each. It is written under a name
that counts for nothing, brought to the disk, and only then renamed; the one before it stays until the next. So neither
a full disk, nor a crash, nor a power cut leaves a mixture of two moments.

The emulator's process uses this module too. Its interpreter has neither this package nor its dependencies: standard
library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

KEPT = 2
"""The newest, and the one before it in case the newest is damaged."""
_PREFIX = "snapshot-"
_UNFINISHED = "unfinished-"
_MANIFEST = "manifest.json"
_BEGAN = "began-from"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One snapshot.

    Attributes:
        folder: Where its files are.
        taken_at: Seconds since the epoch.
        final: Whether it was taken when the emulator stopped, after its work was done.
        size: Bytes of its files.
        journal: Number of the journal's first file with changes that came after it (:mod:`local.state.journal`).
    """

    folder: Path
    taken_at: float
    final: bool
    size: int
    journal: int


def save(root: Path, write: Callable[[Path], None], *, taken_at: float, final: bool, journal: int = 0) -> Snapshot:
    """Write a snapshot.

    Args:
        root: Folder of all snapshots.
        write: Puts its files in a folder.
        taken_at: Seconds since the epoch.
        final: Whether the emulator stops now.
        journal: Number of the journal's file that begins now.

    Raises:
        OSError: It could not be written. The snapshots before it are as they were.
    """
    root.mkdir(parents=True, exist_ok=True)
    for left in root.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(left, ignore_errors=True)
    number = max((_number(each) for each in root.glob(f"{_PREFIX}*")), default=0) + 1
    folder = root / f"{_UNFINISHED}{number}"
    try:
        folder.mkdir()
        write(folder)
        size = _finish(folder, {"taken_at": taken_at, "final": final, "journal": journal})
        finished = root / f"{_PREFIX}{number:010}"
        folder.rename(finished)
        _to_disk(root)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    forget_old(root)
    return Snapshot(finished, taken_at, final, size, journal)


def newest(root: Path) -> Snapshot | None:
    """The newest undamaged snapshot, or None. It reads every byte."""
    return next((each for each in _known(root) if _is_whole(each.folder)), None)


def latest(root: Path) -> Snapshot | None:
    """The newest snapshot, unchecked."""
    return next(iter(_known(root)), None)


def oldest_journal(root: Path) -> int:
    """Number of the journal's first file that a snapshot still needs; 0 when there is no snapshot."""
    return min((each.journal for each in _known(root)), default=0)


def forget_old(root: Path, keep: int = KEPT) -> None:
    """Remove all but the newest."""
    for folder in sorted(root.glob(f"{_PREFIX}*"), key=_number, reverse=True)[keep:]:
        shutil.rmtree(folder, ignore_errors=True)


def begin(root: Path, snapshot: Snapshot | None) -> None:
    """Note that the emulator runs from now on, so that an end without a final snapshot is noticed.

    Raises:
        OSError: That could not be written.
    """
    root.mkdir(parents=True, exist_ok=True)
    (root / _BEGAN).write_text(snapshot.folder.name if snapshot else "")


def ended_in_order(root: Path) -> bool:
    """Whether the emulator saved everything before it last ended (or never ran)."""
    try:
        began = (root / _BEGAN).read_text()
    except FileNotFoundError:
        return True
    snapshot = latest(root)
    return snapshot is not None and snapshot.final and snapshot.folder.name != began


def _finish(folder: Path, about: dict[str, object]) -> int:
    """Bring the files in a folder to the disk, with a manifest; their size."""
    listed: dict[str, dict[str, int | str]] = {}
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        _to_disk(path)
        listed[path.name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    size = sum(int(each["size"]) for each in listed.values())
    manifest = folder / _MANIFEST
    manifest.write_text(json.dumps({**about, "size": size, "files": listed}))
    _to_disk(manifest)
    _to_disk(folder)
    return size


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _known(root: Path) -> list[Snapshot]:
    """Snapshots with a manifest that can be read, newest first."""
    found = []
    for folder in sorted(root.glob(f"{_PREFIX}*"), key=_number, reverse=True):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            about = json.loads((folder / _MANIFEST).read_text())
            taken_at, final, size = float(about["taken_at"]), bool(about["final"]), int(about["size"])
            found.append(Snapshot(folder, taken_at, final, size, int(about["journal"])))
    return found


def _is_whole(folder: Path) -> bool:
    try:
        listed = json.loads((folder / _MANIFEST).read_text())["files"]
        return all(
            hashlib.sha256((folder / name).read_bytes()).hexdigest() == each["sha256"] for name, each in listed.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _number(folder: Path) -> int:
    digits = folder.name.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0
