"""The body store on S3: one object per post, read by range."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from pushhub.base.errors import MessageNotFound, Unavailable
from pushhub.cloud.calls import aws_call
from pushhub.engine.model.message import BodyRef

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

__all__ = ["S3BodyStore"]


class S3BodyStore:
    """Implements :class:`pushhub.engine.ports.BodyStore`. Objects leave by the bucket's lifecycle rule on ``bodies/``.

    Args:
        client: S3 client.
        bucket: Name of the bodies bucket.
        prefix: First part of the keys. Under ``hub`` objects stay: messages of the hub protocol do not expire.
    """

    def __init__(self, client: S3Client, bucket: str, prefix: str = "bodies") -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = prefix

    def put(self, project_id: str, bodies: Sequence[bytes], now: int) -> list[BodyRef]:
        """See the port."""
        day = datetime.fromtimestamp(now / 1000, UTC).date().isoformat()
        key = f"{self._prefix}/{project_id}/{day}/{secrets.token_hex(16)}"
        with aws_call("s3:PutObject"):
            self._client.put_object(Bucket=self._bucket, Key=key, Body=b"".join(bodies))
        offsets = accumulate((len(body) for body in bodies), initial=0)
        return [
            BodyRef(key=key, offset=offset, length=len(body)) for offset, body in zip(offsets, bodies, strict=False)
        ]

    def get(self, ref: BodyRef) -> bytes:
        """See the port."""
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
        return body


def _is_missing(unavailable: Unavailable) -> bool:
    cause = unavailable.__cause__
    return isinstance(cause, ClientError) and cause.response.get("Error", {}).get("Code") == "NoSuchKey"
