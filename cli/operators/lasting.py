"""The objects that no lifecycle rule of a bucket ends, and the keys that S3 encrypts them with.

S3 encrypts an object with the key that the bucket has when it is written, and never again. What ends by a rule leaves
with its key; these objects stay, and have to be written anew before a former key may go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pushhub.base.errors import Unavailable
from pushhub.cloud.calls import aws_call, code_of

from .. import side_by_side

PLACES = (("BodiesBucket", "hub/"), ("RecordsBucket", "settled/"))
"""Bucket, by its name in the template, and folder: what stores keep as long as their log, and findings that people
settled."""
UPLOADED = ("RecordsBucket", "jobs/")
"""The report's program: uploaded anew, as operators may not write what runs with the report's role."""
AWS_OWN = "AES256"
"""In place of a key: a bucket without ``KmsKeyArn``, whose objects S3 encrypts with keys of its own."""
_GONE = frozenset(("404", "NoSuchKey", "PreconditionFailed", "ConditionalRequestConflict", "412", "409"))
"""What S3 says when an object was removed or written over since it was looked at."""


@dataclass(frozen=True, slots=True)
class LastingObject:
    """An object.

    Attributes:
        bucket: Its bucket.
        key: Its name there.
        etag: Which content it has.
        encrypted_with: ARN of a KMS key, or :data:`AWS_OWN`.
    """

    bucket: str
    key: str
    etag: str
    encrypted_with: str


class LastingObjects:
    """The objects in one folder of a bucket.

    Args:
        s3: A client.
        bucket: Name of the bucket.
        folder: With a slash at its end.
    """

    def __init__(self, s3: Any, bucket: str, folder: str) -> None:
        self._s3 = s3
        self._bucket = bucket
        self._folder = folder

    def present_key(self) -> str:
        """What the bucket encrypts with from now on, like :attr:`LastingObject.encrypted_with`.

        Raises:
            Unavailable: S3 does not say.
        """
        try:
            with aws_call("s3:GetBucketEncryption"):
                found = self._s3.get_bucket_encryption(Bucket=self._bucket)
        except Unavailable as error:
            # An emulator's bucket; S3 itself encrypts every bucket.
            if code_of(error) == "ServerSideEncryptionConfigurationNotFoundError":
                return AWS_OWN
            raise
        rules = found["ServerSideEncryptionConfiguration"]["Rules"]
        return str(rules[0]["ApplyServerSideEncryptionByDefault"].get("KMSMasterKeyID") or AWS_OWN)

    def each(self) -> Iterator[LastingObject]:
        """Every object; those that are removed meanwhile are left out.

        Raises:
            Unavailable: They cannot be listed, or looked at.
        """
        for found in side_by_side.each(partial(_looked_at, self._s3, self._bucket), self._keys()):
            if found is not None:
                yield found

    def _keys(self) -> Iterator[str]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._folder)
        with aws_call("s3:ListObjectsV2"):
            for page in pages:
                yield from (str(each["Key"]) for each in page.get("Contents", ()))

    def encrypt_with(self, key: str, found: LastingObject) -> bool:
        """Copy an object onto itself, encrypted with a key.

        Only what was looked at is written: what a tenant expunged or changed meanwhile does not come back.

        Returns:
            Whether it was there to be copied, as it was.

        Raises:
            Unavailable: The former key does not open it any more, or S3 does not answer.
        """
        chosen: dict[str, Any] = {"ServerSideEncryption": AWS_OWN}
        if key != AWS_OWN:
            chosen = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key, "BucketKeyEnabled": True}
        try:
            with aws_call("s3:CopyObject"):
                self._s3.copy_object(
                    Bucket=found.bucket,
                    Key=found.key,
                    CopySource={"Bucket": found.bucket, "Key": found.key},
                    CopySourceIfMatch=found.etag,
                    IfMatch=found.etag,
                    **chosen,
                )
        except Unavailable as error:
            if code_of(error) in _GONE:
                return False
            raise
        return True


def lasting(s3: Any, outputs: Mapping[str, str], place: tuple[str, str]) -> LastingObjects:
    """What lies in a place, in a stack with these outputs."""
    bucket, folder = place
    return LastingObjects(s3, outputs[f"{bucket}Name"], folder)


def anything(s3: Any, bucket: str, folder: str) -> bool:
    """Whether there is an object in a folder.

    Raises:
        Unavailable: S3 does not say.
    """
    with aws_call("s3:ListObjectsV2"):
        return bool(s3.list_objects_v2(Bucket=bucket, Prefix=folder, MaxKeys=1).get("Contents"))


def _looked_at(s3: Any, bucket: str, key: str) -> LastingObject | None:
    try:
        with aws_call("s3:HeadObject"):
            head = s3.head_object(Bucket=bucket, Key=key)
    except Unavailable as error:
        if code_of(error) in _GONE:
            return None
        raise
    return LastingObject(bucket, key, str(head["ETag"]), str(head.get("SSEKMSKeyId") or AWS_OWN))
