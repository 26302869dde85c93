"""Objects of a bucket, as several stores read and write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Unavailable
from pushhub.cloud.calls import aws_call, code_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_s3 import S3Client


class Bucket:
    """A bucket."""

    def __init__(self, client: S3Client, name: str) -> None:
        self._client = client
        self._name = name

    def get(self, key: str) -> bytes:
        """An object's content."""
        with aws_call("s3:GetObject"):
            return self._client.get_object(Bucket=self._name, Key=key)["Body"].read()

    def find(self, key: str) -> bytes | None:
        """An object's content; None if there is no such object."""
        try:
            return self.get(key)
        except Unavailable as unavailable:
            if code_of(unavailable) == "NoSuchKey":
                return None
            raise

    def put_once(self, key: str, content: bytes, content_type: str) -> bool:
        """Write an object unless it exists; returns whether it was written now, as far as is known."""
        try:
            with aws_call("s3:PutObject"):
                self._client.put_object(
                    Bucket=self._name, Key=key, Body=content, ContentType=content_type, IfNoneMatch="*"
                )
        except Unavailable as unavailable:
            if code_of(unavailable) == "PreconditionFailed":
                return False
            raise
        return True

    def pages(self, prefix: str, **more: Any) -> Iterator[Any]:
        """A listing in the order of names, read lazily page by page, as S3 answers it.

        Args:
            prefix: What the names begin with.
            more: Further parameters of ``ListObjectsV2``.
        """
        while True:
            with aws_call("s3:ListObjectsV2"):
                page = self._client.list_objects_v2(Bucket=self._name, Prefix=prefix, **more)
            yield page
            if not page.get("IsTruncated"):
                return
            more["ContinuationToken"] = page["NextContinuationToken"]

    def listed(self, prefix: str, **more: Any) -> Iterator[Any]:
        """The objects of such a listing."""
        for page in self.pages(prefix, **more):
            yield from page.get("Contents", [])


class BucketStore:
    """A store whose objects are in one bucket."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._bucket = Bucket(client, bucket)
