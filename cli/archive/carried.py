"""A project's data in a folder: what :mod:`cli.archive.exporting` writes and :mod:`cli.archive.importing` reads.

Each file is written whole or not at all, and the manifest comes last: a folder with a manifest is complete, and the
manifest has the digest of every file.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from pushhub.base import json_text
from pushhub.base.ports import Vault
from pushhub.cloud.table import Item, Table
from pushhub.cloud.vault import MARK

from .holdings import TABLES

FORMAT = 1
"""The form of the files; a later form has another number."""
MANIFEST, STATE, BODIES, RECORDS, AUDIT = "manifest.json", "begun.json", "bodies", "records", "audit"
"""The manifest; what an export or import was begun with; the folders besides those of tables."""
SEALING = ("ConfigTable", "HubTable", "WebhooksTable")
"""The tables that have sealed values."""
# MARK and the first byte of a length below 4,096, in base64.
_IN_TEXT = re.compile(r"UEhWMg[A-Za-z0-9+/]{40,}={0,2}")
"""A sealed value in a text: base64 of what begins with the mark."""


class Folder:
    """The folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, content: bytes) -> None:
        """Write a file, whole or not at all. Only its owner may read it."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        unfinished = path.with_name(f".{path.name}.unfinished")
        unfinished.unlink(missing_ok=True)
        unfinished.touch(mode=0o600)
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)

    def read(self, name: str) -> bytes:
        """A file."""
        try:
            return (self.path / name).read_bytes()
        except OSError as error:
            raise click.ClickException(f"{self.path / name} cannot be read: {error.strerror}") from error

    def state(self, name: str = STATE) -> dict[str, Any]:
        """A small file of JSON; empty if there is none."""
        if not (self.path / name).is_file():
            return {}
        try:
            found = json_text.read(self.read(name))
        except json_text.NotJson as error:
            raise click.ClickException(f"{self.path / name} {error}") from error
        if not isinstance(found, dict):
            raise click.ClickException(f"{self.path / name} is no export's")
        return found

    def keep(self, state: dict[str, Any], name: str = STATE) -> None:
        """Write such a file."""
        self.write(name, json_text.write(state, indent=1, sort_keys=True).encode())

    def files(self, under: str = "") -> list[str]:
        """The finished files below a folder, in order."""
        found = (each for each in (self.path / under).rglob("*") if each.is_file() and not each.name.startswith("."))
        return sorted(str(each.relative_to(self.path)) for each in found)

    def digest(self, name: str) -> str:
        """SHA-256 of a file, in hex."""
        return hashlib.sha256(self.read(name)).hexdigest()

    def write_lines(self, name: str, lines: list[dict[str, Any]]) -> None:
        """Write a file of JSON lines."""
        text = "".join(json_text.write(each) + "\n" for each in lines)
        self.write(name, gzip.compress(text.encode(), mtime=0))

    def lines(self, name: str) -> list[dict[str, Any]]:
        """The lines of such a file."""
        try:
            return [json_text.read(each) for each in json_text.split(gzip.decompress(self.read(name)))]
        except (EOFError, OSError, ValueError, zlib.error) as error:
            raise click.ClickException(f"{self.path / name} is damaged: {error!r}") from error

    def parts(self, table: str) -> list[str]:
        """The files of a table's items, in order."""
        return self.files(table) if table in TABLES else []


@dataclass(frozen=True, kw_only=True)
class Carrier:
    """Moves a project between a stack and a folder.

    Attributes:
        tables: All tables, by their names in the template.
        vault: Seals and opens with the stack's key; None leaves what is sealed as it is, for a stack that has the same
            key.
    """

    tables: Mapping[str, Table]
    s3: Any
    bodies: str
    records: str
    folder: Folder
    vault: Vault | None


def as_json(value: Any) -> Any:
    """An item, or a part of one, with binary values in base64."""
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, dict):
        return {key: as_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [as_json(each) for each in value]
    return value


def sealed_values(table: str, item: Item) -> set[bytes]:
    """The values in an item that look sealed: also a body that begins like one, which opening tells."""
    if table not in SEALING:
        return set()
    return {*_sealed({"M": item})}


def _sealed(value: dict[str, Any]) -> Iterator[bytes]:
    [(kind, content)] = value.items()
    if kind == "B" and bytes(content).startswith(MARK):
        yield bytes(content)
    elif kind == "S":
        yield from (base64.b64decode(each) for each in _IN_TEXT.findall(content) if len(each) % 4 == 0)
    elif kind in ("L", "M"):
        for each in content if kind == "L" else content.values():
            yield from _sealed(each)


def sealed_anew(value: dict[str, Any], new: Mapping[bytes, bytes]) -> dict[str, Any]:
    """A typed value with other sealed values in place of those in it."""
    [(kind, content)] = value.items()
    if kind == "B":
        return {kind: new.get(bytes(content), content)}
    if kind == "S":
        return {kind: _IN_TEXT.sub(lambda found: _replaced(found.group(), new), content)}
    if kind == "L":
        return {kind: [sealed_anew(each, new) for each in content]}
    if kind == "M":
        return {kind: {name: sealed_anew(each, new) for name, each in content.items()}}
    return value


def _replaced(text: str, new: Mapping[bytes, bytes]) -> str:
    if len(text) % 4:
        return text
    sealed = base64.b64decode(text)
    return base64.b64encode(new[sealed]).decode() if sealed in new else text
