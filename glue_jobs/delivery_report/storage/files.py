"""Files by name, on S3 or on this machine: listing, reading, writing and removing without Spark."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_S3 = ("s3", "s3a", "s3n")

_JSON = "application/json"

_ANOTHER_CAME_FIRST = (404, 409, 412)
"""How S3 answers if an object has gone, is being written, or is another one than a condition names."""


class Stored(NamedTuple):
    """One file as a listing shows it; in JSON a list of both.

    Attributes:
        size: Bytes.
        mark: Changes with the content: S3's ETag; on disk the time of the last change, or a digest where one was asked
            for.
    """

    size: int
    mark: str


def listed(path: str, *, digests: bool = False) -> dict[str, Stored]:
    """The files below a path by their names below it, without those that Spark takes for hidden; empty when there is no
    path like that.

    Args:
        digests: Whether files on this machine are marked by a digest of their content, which reads them all; S3 keeps
            one anyway.
    """
    where = _where(path)
    found = _on_disk(where, digests=digests) if isinstance(where, Path) else _on_s3(*where)
    return {name: stored for name, stored in found if not name.rsplit("/", 1)[-1].startswith(("_", "."))}


def read_text(path: str) -> str | None:
    """The content of one small file, None when there is none."""
    where = _where(path)
    if isinstance(where, Path):
        return where.read_text(encoding="utf-8") if where.is_file() else None
    client, (bucket, key) = _client(), where
    try:
        return client.get_object(Bucket=bucket, Key=key)["Body"].read().decode()
    except client.exceptions.NoSuchKey:
        return None


def fetched(paths: Sequence[str], folder: Path) -> list[Path]:
    """Files on this machine's disk, whence they can be read as often as needed; those from S3 go to a folder."""
    found = []
    for number, path in enumerate(paths):
        where = _where(path)
        if not isinstance(where, Path):
            folder.mkdir(parents=True, exist_ok=True)
            (bucket, key), where = where, folder / f"{number}-{path.rpartition('/')[2]}"
            _client().download_file(bucket, key, str(where))
        found.append(where)
    return found


def put_file(file: Path, path: str) -> None:
    """Put a file of this machine's disk somewhere, completely or not at all."""
    where = _where(path)
    if isinstance(where, Path):
        _completely(where, lambda unfinished: shutil.copyfile(file, unfinished))
    else:
        _client().upload_file(str(file), *where)


def write_text(path: str, text: str, content_type: str) -> None:
    """Write one small file, completely or not at all."""
    where = _where(path)
    if isinstance(where, Path):
        _completely(where, lambda unfinished: unfinished.write_text(text, encoding="utf-8"))
    else:
        bucket, key = where
        _client().put_object(Bucket=bucket, Key=key, Body=text.encode(), ContentType=f"{content_type}; charset=utf-8")


def replace_text(path: str, text: str, *, former: str | None) -> bool:
    """Write one small file of JSON, completely, if it is as it was read (None: not there): whether it was. Of several
    at once, one writes it.
    """
    where = _where(path)
    if not isinstance(where, Path):
        return _replace_on_s3(*where, text, former)
    where.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(where.parent, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if read_text(path) != former:
            return False
        write_text(path, text, _JSON)
    finally:
        os.close(lock)
    return True


def remove_file(path: str) -> None:
    """Remove one file, if there is one."""
    where = _where(path)
    if isinstance(where, Path):
        where.unlink(missing_ok=True)
    else:
        bucket, key = where
        _client().delete_object(Bucket=bucket, Key=key)


def remove(path: str) -> None:
    """Remove everything below a path, hidden files too; nothing happens when there is no such path."""
    where = _where(path)
    if isinstance(where, Path):
        shutil.rmtree(where, ignore_errors=True)
        if where.exists():
            raise OSError(f"{where} could not be removed")
        return
    bucket, prefix = where
    for page in _client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/"):
        keys: list[Any] = [{"Key": each["Key"]} for each in page.get("Contents", [])]
        if keys:
            refused = _client().delete_objects(Bucket=bucket, Delete={"Objects": keys, "Quiet": True}).get("Errors")
            if refused:
                raise OSError(f"{len(refused)} objects below {path} could not be removed: {refused[0].get('Code')}")


def _completely(place: Path, write: Callable[[Path], object]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    unfinished = place.with_name(f".{place.name}.unfinished")
    write(unfinished)
    unfinished.replace(place)


def _replace_on_s3(bucket: str, key: str, text: str, former: str | None) -> bool:
    import boto3  # noqa: PLC0415 (see below)
    from botocore.exceptions import ClientError  # noqa: PLC0415

    client = boto3.client("s3")
    condition = {"If-None-Match": "*"}
    try:
        if former is not None:
            there = client.get_object(Bucket=bucket, Key=key)
            if there["Body"].read().decode() != former:
                return False
            condition = {"If-Match": there["ETag"]}
        # Not as a parameter, which the SDK of Glue may not know.
        client.meta.events.register("before-call.s3.PutObject", lambda params, **_: params["headers"].update(condition))
        client.put_object(Bucket=bucket, Key=key, Body=text.encode(), ContentType=f"{_JSON}; charset=utf-8")
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] in _ANOTHER_CAME_FIRST:
            return False
        raise
    return True


def _on_s3(bucket: str, prefix: str) -> Iterator[tuple[str, Stored]]:
    for page in _client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/"):
        for each in page.get("Contents", []):
            # A console marks a folder that it makes by an empty object.
            if not each["Key"].endswith(("/", "_$folder$")):
                yield each["Key"][len(prefix) + 1 :], Stored(each["Size"], each["ETag"].strip('"'))


def _on_disk(folder: Path, *, digests: bool) -> Iterator[tuple[str, Stored]]:
    for file in folder.rglob("*"):
        if file.is_file():
            status = file.stat()
            mark = _digest(file) if digests else str(status.st_mtime_ns)
            yield file.relative_to(folder).as_posix(), Stored(status.st_size, mark)


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def from_json(files: Mapping[str, Any]) -> dict[str, Stored]:
    """Files as they were written in JSON.

    Raises:
        AttributeError, TypeError, ValueError: They are something else.
    """
    return {name: Stored(int(size), str(mark)) for name, (size, mark) in files.items()}


def as_text(value: Any) -> Any:
    """What JSON has no form for: times in ISO 8601, sets as lists."""
    if isinstance(value, Set):
        return sorted(value)
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def _where(path: str) -> tuple[str, str] | Path:
    """A bucket and a key in it, or a place on this machine's disk."""
    scheme, found, rest = path.partition("://")
    if scheme in _S3 and found:
        bucket, _, key = rest.partition("/")
        return bucket, key
    return Path(rest if found else path)


@lru_cache(maxsize=1)
def _client() -> S3Client:
    import boto3  # noqa: PLC0415 (on Glue only: local runs keep everything on disk)

    return boto3.client("s3")
