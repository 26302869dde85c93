"""An export that somebody has changed: nothing of it is written, and what is wrong is a sentence with file and line."""

from __future__ import annotations

import base64
import gzip
import json
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cli.archive import archived
from cli.archive.archived import READERS
from cli.archive.carried import MANIFEST, Folder
from cli.archive.holdings import TABLES
from tests.cloud.test_unreadable import DECODERS
from tests.operating import test_erasing, test_moving
from tests.operating.test_erasing import NAMES, OTHER
from tests.operating.test_moving import Mover, write_records

from pushhub.engine.projects.tokens import token_hash

hub, mover = test_erasing.hub, test_moving.mover


class Archive:
    """An export that is tampered with: its manifest fits again."""

    def __init__(self, mover: Mover) -> None:
        self.mover, self.project = mover, mover.hub.project
        write_records(mover.hub)
        mover.exports("--with-keys")
        mover.leaves()
        self.folder = Folder(mover.folder)

    def add(self, table: str, pk: str, sk: str, **attributes: Any) -> None:
        """An item, before all others of a table."""
        name = self.folder.parts(table)[0]
        item = {"pk": {"S": pk}, "sk": {"S": sk}, **attributes}
        self.write(name, [json.dumps({"item": item}).encode(), *self.lines(name)])

    def lines(self, name: str) -> list[bytes]:
        return gzip.decompress((self.folder.path / name).read_bytes()).splitlines()

    def write(self, name: str, lines: list[bytes]) -> None:
        self.raw(name, gzip.compress(b"".join(each + b"\n" for each in lines)))

    def raw(self, name: str, content: bytes) -> None:
        self.folder.write(name, content)
        manifest = self.folder.state(MANIFEST)
        manifest["files"][name] = self.folder.digest(name)
        self.folder.keep(manifest, MANIFEST)

    @contextmanager
    def tampered(self) -> Iterator[None]:
        """The export may be changed, and is as it was afterwards."""
        untouched = self.folder.path.with_name("untouched")
        shutil.copytree(self.folder.path, untouched)
        yield
        shutil.rmtree(self.folder.path)
        untouched.rename(self.folder.path)

    def refused(self) -> str:
        """Import it, which is refused; what is said."""
        _, said = self.mover.imports(code=1)
        assert "Traceback" not in said
        assert said.count("\n") == 1, said
        assert all(self.mover.hub.all(name) == [] for name in TABLES)
        return said


@pytest.fixture
def archive(mover: Mover) -> Archive:
    return Archive(mover)


_UNOPENED: dict[str, Any] = {
    "kind": {"S": "message"},
    "queue": {"S": "q"},
    **{each: {"N": "600"} for each in ("body_size", "accepted_at", "due_at", "expires_at", "ttl", "reserved_count")},
    "place": {"S": "0#1"},
    "deflated": {"B": "eNqrVspIzcnJBwAGLAIV"},
}
"""A message whose body is compressed, but not by a hub."""


def _of(project: str) -> dict[str, tuple[str, str, str, dict[str, Any]]]:
    return {
        "a note of slow subscribers without one": ("ScheduleTable", "SLOW", f"1#{project}#q", {}),
        "a wait for nothing": ("ScheduleTable", "29916666#7", f"001795000000000#{project}#1", {}),
        "a circuit of no queue": ("ScheduleTable", "CIRCUITS#1", f"{project}#u", {}),
        "a backlog of no time": ("ScheduleTable", "LINES#1", f"{project}#u", {}),
        "an end of nothing": ("ScheduleTable", "ENDS#ironmq", f"001795000000000#{project}#q", {}),
        "a chunk without ids": ("ScheduleTable", f"LISTED#{project}#20800", "x#b", {}),
        "values of nothing": ("ScheduleTable", f"VALUES#{project}#20800#0#0", "2-1#b", {}),
        "a queue without fields": ("ConfigTable", f"P#{project}", "QUEUE#x", {}),
        "an alert without settings": ("ConfigTable", "ALERTS", f"{project}#1", {}),
        "a message without fields": ("MessagesTable", f"{project}#u#9", "M", {"kind": {"S": "message"}}),
        "a body that nobody can open": ("MessagesTable", f"{project}#u#9", "M", _UNOPENED),
        "a pulled body that nobody can open": ("PullTable", f"{project}#u#9", "M", _UNOPENED),
        "another's list": ("MessagesTable", f"{project}#u#9", "K", {"unsettled_queue": {"S": f"{OTHER}#u"}}),
        "a kind of nobody": ("ConfigTable", f"P#{project}", "NEW#x", {}),
        "another's message": ("MessagesTable", f"{OTHER}#u#9", "M", {}),
        "a wrong number": ("HubTable", f"P#{project}", "X", {"n": {"N": "NaN"}}),
        "no base64": ("HubTable", f"P#{project}", "X", {"b": {"B": "%"}}),
        "two types": ("HubTable", f"P#{project}", "X", {"b": {"S": "a", "N": "1"}}),
        "no type": ("HubTable", f"P#{project}", "X", {"b": "text"}),
        "half a pair": ("HubTable", f"P#{project}", "X", {"b": {"S": "\ud800"}}),
        "an empty key": ("HubTable", f"P#{project}", "", {}),
    }


def test_an_item_that_the_functions_could_not_read_or_that_is_anothers_is_not_imported(archive: Archive) -> None:
    # Making a stack and an export takes seconds: one for all
    for what, (table, pk, sk, attributes) in _of(archive.project).items():
        with archive.tampered():
            archive.add(table, pk, sk, **attributes)
            assert f"{table}/000000.jsonl.gz, line 1: " in archive.refused(), what


def test_a_record_of_another_project_is_not_imported(archive: Archive) -> None:
    [name] = archive.folder.files("records")
    forged = json.dumps({"hour": "05", "record": {"project": OTHER, "queue": "forged"}}).encode()
    archive.write(name, [*archive.lines(name), forged])
    assert "line 4: a delivery record is not the project's" in archive.refused()


def test_another_projects_token_is_not_taken(archive: Archive) -> None:
    # Given a stack where another project has the token that an export says is its own
    digest = token_hash("theirs")
    key = {"pk": {"S": f"T#{digest}"}, "sk": {"S": "TOKEN"}}
    theirs = {**key, "project": {"S": OTHER}}
    archive.mover.hub.dynamodb.put_item(TableName=NAMES["ConfigTable"], Item=theirs)
    archive.add("ConfigTable", f"T#{digest}", "TOKEN", project={"S": archive.project})
    # When it is imported, then that is refused, and the token stays theirs
    _, said = archive.mover.imports(code=1)
    assert "another project's here" in said
    assert archive.mover.hub.all("ConfigTable") == [theirs]


DAMAGES: dict[str, Callable[[Archive, str], None]] = {
    "no gzip": lambda archive, name: archive.raw(name, b"{}"),
    "cut off": lambda archive, name: archive.raw(name, (archive.folder.path / name).read_bytes()[:-9]),
    "changed inside": lambda archive, name: archive.raw(name, b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + b"\xff" * 40),
    "no JSON": lambda archive, name: archive.write(name, [b"{", *archive.lines(name)]),
    "no object": lambda archive, name: archive.write(name, [b"[]", *archive.lines(name)]),
    "no item": lambda archive, name: archive.write(name, [b'{"item": 1}', *archive.lines(name)]),
    "no key": lambda archive, name: archive.write(name, [b'{"item": {}}', *archive.lines(name)]),
    "not UTF-8": lambda archive, name: archive.write(name, [b'{"item": "\xff"}', *archive.lines(name)]),
    "nested": lambda archive, name: archive.write(name, [b"[" * 200_000, *archive.lines(name)]),
    "without its end": lambda archive, name: archive.write(name, archive.lines(name)[:-1]),
    "empty": lambda archive, name: archive.write(name, []),
}


def test_a_damaged_file_is_one_sentence(archive: Archive) -> None:
    name = archive.folder.parts("HubTable")[0]
    for damage, damaged in DAMAGES.items():
        with archive.tampered():
            damaged(archive, name)
            assert name in archive.refused(), damage


MANIFESTS = [
    b"[]",
    b"{",
    b"\xff",
    b"[" * 200_000,
    b'{"format": 1, "project": 5}',
    b'{"format": 1, "project": "555555555555555555555555"}',
    b'{"format": 1, "project": "555555555555555555555555", "counts": {}, "files": []}',
    b'{"format": 1, "project": "555555555555555555555555", "counts": {"x": "y"}, "files": {"a": 1}}',
]


def test_a_manifest_that_is_none_is_one_sentence(archive: Archive) -> None:
    for manifest in MANIFESTS:
        with archive.tampered():
            (archive.folder.path / MANIFEST).write_bytes(manifest)
            assert str(archive.folder.path) in archive.refused(), manifest[:40]


def test_mutated_archives_end_in_a_sentence(archive: Archive) -> None:
    # Given the lines of an export, of which one is mutated each time, by a seed
    chance = random.Random(45)
    names = [
        each for table in ("ConfigTable", "MessagesTable", "ScheduleTable") for each in archive.folder.parts(table)
    ]
    names += archive.folder.files("records")
    refused = 0
    for _ in range(25):
        name = chance.choice(names)
        before = archive.lines(name)
        place = chance.randrange(len(before))
        mutated = bytearray(before[place])
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(mutated))
            match chance.randrange(4):
                case 0:
                    mutated[at] = chance.randrange(256)
                case 1:
                    del mutated[at : at + chance.randint(1, 9)]
                case 2:
                    mutated[at:at] = chance.choice([b'"', b"{}", b"[", b"null", b"\\ud800", b"#", b"NaN", b"9" * 30])
                case _:
                    mutated[at : at + 1] = base64.b64encode(chance.randbytes(3))
            if not mutated:
                break
        archive.write(name, [*before[:place], bytes(mutated), *before[place + 1 :]])
        # When it is looked at, then it is whole, or that is told in a sentence
        try:
            archive.mover.imports("--dry-run", code=0)
        except AssertionError as failed:
            said = failed.args[0].err if hasattr(failed.args[0], "err") else str(failed)
            assert "Traceback" not in said
            refused += 1
        archive.write(name, before)
    assert refused > 12


def test_whatever_stores_read_is_read_by_the_import() -> None:
    # Given what stores read; without what does not go with a project, parts of others, and a value that is sealed
    apart = {
        *("_decode_position", "decode_connection", "decode_candidate", "decode_fields", "decode_delivery"),
        *("decode_message", "decode_positions", "decode_parameter", "_decode_eager", "_decode"),
        "decode_body",
        "_decode_health",
    }
    # Then the module of the import names each
    source = Path(archived.__file__).read_text()
    names = {name.rpartition(".")[2] for name in DECODERS} - apart
    assert {name for name in names if name not in source} == set()
    assert len(names) > 20


def test_there_are_readers_for_every_table() -> None:
    assert set(READERS) == set(TABLES)
