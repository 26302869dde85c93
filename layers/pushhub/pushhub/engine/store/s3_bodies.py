"""The body store on S3: one object per post, read by range."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from itertools import accumulate
from typing import TYPE_CHECKING

from pushhub.base.errors import MessageNotFound, Unavailable
from pushhub.cloud.calls import aws_call, code_of
from pushhub.engine.model.message import BodyRef

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_s3 import S3Client

_ERASED = b"\0erased\0"
"""Repeated over the bytes of an erased body, so that a reader that was about to fetch them does not take the rest for a
body.
"""

_ERASE_ROUNDS = 5
"""How often an erasure is retried when another one changed the same object first."""


class S3BodyStore:
    """Implements :class:`pushhub.engine.ports.BodyStore`. The bucket's lifecycle rule on ``bodies/`` removes objects.

    Args:
        prefix: First part of the keys. Objects under ``hub`` stay: messages of the hub protocol do not expire.
    """

    def __init__(self, client: S3Client, bucket: str, prefix: str = "bodies") -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = prefix

    def put(self, project_id: str, bodies: Sequence[bytes], now: int) -> list[BodyRef]:
        day = datetime.fromtimestamp(now / 1000, UTC).date().isoformat()
        key = f"{self._prefix}/{project_id}/{day}/{secrets.token_hex(16)}"
        with aws_call("s3:PutObject"):
            self._client.put_object(Bucket=self._bucket, Key=key, Body=b"".join(bodies))
        offsets = accumulate((len(body) for body in bodies), initial=0)
        return [
            BodyRef(key=key, offset=offset, length=len(body)) for offset, body in zip(offsets, bodies, strict=False)
        ]

    def get(self, ref: BodyRef) -> bytes:
        if not ref.length:
            return b""
        last = ref.offset + ref.length - 1
        try:
            with aws_call("s3:GetObject"):
                answer = self._client.get_object(Bucket=self._bucket, Key=ref.key, Range=f"bytes={ref.offset}-{last}")
                body = answer["Body"].read()
        except Unavailable as unavailable:
            if _is_missing(unavailable):
                raise MessageNotFound from unavailable
            raise
        if len(body) != ref.length:
            raise Unavailable("s3:GetObject")
        if body[: len(_ERASED)] == _ERASED[: ref.length] and body == _erased(ref.length):
            raise MessageNotFound
        return body

    def erase(self, ref: BodyRef) -> None:
        """Rewrites the object; if another erasure came first, starts again from its result."""
        for _ in range(_ERASE_ROUNDS):
            try:
                with aws_call("s3:GetObject"):
                    answer = self._client.get_object(Bucket=self._bucket, Key=ref.key)
                    bodies = bytearray(answer["Body"].read())
                bodies[ref.offset : ref.offset + ref.length] = _erased(ref.length)
                with aws_call("s3:PutObject"):
                    self._client.put_object(
                        Bucket=self._bucket, Key=ref.key, Body=bytes(bodies), IfMatch=answer["ETag"]
                    )
            except Unavailable as unavailable:
                if _is_missing(unavailable):
                    return
                if code_of(unavailable) not in _OVERTAKEN:
                    raise
                continue
            return
        raise Unavailable("s3:PutObject", "erasing under contention")


_OVERTAKEN = frozenset({"PreconditionFailed", "ConditionalRequestConflict"})


def _erased(length: int) -> bytes:
    return (_ERASED * (length // len(_ERASED) + 1))[:length]


def _is_missing(unavailable: Unavailable) -> bool:
    return code_of(unavailable) == "NoSuchKey"
