"""Files by name, on S3 or on this machine: listing, reading, writing and removing without Spark."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence, Set
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
    scheme, rest = _split(path)
    found = _on_s3(rest) if scheme in _S3 else _on_disk(Path(rest), digests=digests)
    return {name: stored for name, stored in found if not name.rsplit("/", 1)[-1].startswith(("_", "."))}


def read_text(path: str) -> str | None:
    """The content of one small file, None when there is none."""
    scheme, rest = _split(path)
    if scheme in _S3:
        bucket, key = _place(rest)
        client = _client()
        try:
            return client.get_object(Bucket=bucket, Key=key)["Body"].read().decode()
        except client.exceptions.NoSuchKey:
            return None
    try:
        return Path(rest).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def fetched(paths: Sequence[str], folder: Path) -> list[Path]:
    """Files on this machine's disk, whence they can be read as often as needed; those from S3 go to a folder."""
    found = []
    for number, path in enumerate(paths):
        scheme, rest = _split(path)
        file = Path(rest)
        if scheme in _S3:
            bucket, key = _place(rest)
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / f"{number}-{file.name}"
            _client().download_file(bucket, key, str(file))
        found.append(file)
    return found


def put_file(file: Path, path: str) -> None:
    """Put a file of this machine's disk somewhere, completely or not at all."""
    scheme, rest = _split(path)
    if scheme in _S3:
        bucket, key = _place(rest)
        _client().upload_file(str(file), bucket, key)
        return
    place = Path(rest)
    place.parent.mkdir(parents=True, exist_ok=True)
    unfinished = place.with_name(f".{place.name}.unfinished")
    shutil.copyfile(file, unfinished)
    unfinished.replace(place)


def write_text(path: str, text: str, content_type: str) -> None:
    """Write one small file, completely or not at all."""
    scheme, rest = _split(path)
    if scheme in _S3:
        bucket, key = _place(rest)
        _client().put_object(Bucket=bucket, Key=key, Body=text.encode(), ContentType=f"{content_type}; charset=utf-8")
        return
    file = Path(rest)
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f".{file.name}.unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(file)


def replace_text(path: str, text: str, *, former: str | None) -> bool:
    """Write one small file of JSON, completely, if it is as it was read (None: not there): whether it was. Of several
    at once, one writes it.
    """
    scheme, rest = _split(path)
    if scheme in _S3:
        return _replace_on_s3(*_place(rest), text, former)
    folder = Path(rest).parent
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY)
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
    scheme, rest = _split(path)
    if scheme in _S3:
        bucket, key = _place(rest)
        _client().delete_object(Bucket=bucket, Key=key)
        return
    Path(rest).unlink(missing_ok=True)


def remove(path: str) -> None:
    """Remove everything below a path, hidden files too; nothing happens when there is no such path."""
    scheme, rest = _split(path)
    if scheme not in _S3:
        shutil.rmtree(rest, ignore_errors=True)
        if Path(rest).exists():
            raise OSError(f"{rest} could not be removed")
        return
    bucket, prefix = _place(rest)
    for page in _client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/"):
        keys: list[Any] = [{"Key": each["Key"]} for each in page.get("Contents", [])]
        if keys:
            refused = _client().delete_objects(Bucket=bucket, Delete={"Objects": keys, "Quiet": True}).get("Errors")
            if refused:
                raise OSError(f"{len(refused)} objects below {path} could not be removed: {refused[0].get('Code')}")


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


def _on_s3(rest: str) -> Iterator[tuple[str, Stored]]:
    bucket, prefix = _place(rest)
    for page in _client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{prefix}/"):
        for each in page.get("Contents", []):
            # A console marks a folder that it makes by an empty object.
            if not each["Key"].endswith(("/", "_$folder$")):
                yield each["Key"][len(prefix) + 1 :], Stored(each["Size"], each["ETag"].strip('"'))


def _on_disk(folder: Path, *, digests: bool) -> Iterator[tuple[str, Stored]]:
    for file in folder.rglob("*"):
        if file.is_file():
            status = file.stat()
            yield (
                file.relative_to(folder).as_posix(),
                Stored(status.st_size, _digest(file) if digests else str(status.st_mtime_ns)),
            )


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


def _split(path: str) -> tuple[str, str]:
    scheme, found, rest = path.partition("://")
    return (scheme, rest) if found else ("", path)


def _place(rest: str) -> tuple[str, str]:
    bucket, _, key = rest.partition("/")
    return bucket, key


@lru_cache(maxsize=1)
def _client() -> S3Client:
    import boto3  # noqa: PLC0415 (on Glue only: local runs keep everything on disk)

    return boto3.client("s3")
