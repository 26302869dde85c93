"""Models of S3, KMS and the management API of WebSocket connections, as far as the hub uses them."""

from __future__ import annotations

import ast
import hashlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from simulation.consumers import Consumers
from simulation.dynamodb import service_error

VERSIONED = "RecordsBucket"
"""The bucket that keeps former versions of its objects."""
A_PAGE = 1_000
"""Keys in an answer."""


class S3:
    """Buckets of objects, strongly consistent, with conditional writes and lists; one of them has former versions.

    Attributes:
        objects: By bucket and key.
        encrypts_with: ARN of the KMS key that objects are encrypted with from now on; empty for S3's own.
    """

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], bytes] = {}
        self.encrypts_with = ""
        self._encrypted_with: dict[tuple[str, str], str] = {}
        self._former: dict[tuple[str, str], list[tuple[str, bytes]]] = {}
        self._versions = 0

    def put_object(self, *, Bucket: str, Key: str, Body: bytes, **more: Any) -> dict[str, Any]:  # noqa: N803 (the service's)
        """PutObject."""
        stored = self.objects.get((Bucket, Key))
        if more.get("IfNoneMatch") == "*" and stored is not None:
            raise service_error("PreconditionFailed", "PutObject")
        if "IfMatch" in more and (stored is None or _etag(stored) != more["IfMatch"]):
            raise service_error("PreconditionFailed", "PutObject")
        if stored is not None and Bucket == VERSIONED:
            self._versions += 1
            self._former.setdefault((Bucket, Key), []).append((f"v{self._versions}", stored))
        self.objects[Bucket, Key] = Body
        self._encrypted_with[Bucket, Key] = self.encrypts_with
        return {"ETag": _etag(Body)}

    def head_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        """HeadObject."""
        stored = self.objects.get((Bucket, Key))
        if stored is None:
            raise service_error("404", "HeadObject")
        return {"ETag": _etag(stored), **_with_key(self._encrypted_with.get((Bucket, Key), ""), "SSEKMSKeyId")}

    def copy_object(self, *, Bucket: str, Key: str, CopySource: Mapping[str, str], **more: Any) -> dict[str, Any]:  # noqa: N803
        """CopyObject onto itself, which encrypts it anew."""
        assert CopySource == {"Bucket": Bucket, "Key": Key}
        stored = self.objects.get((Bucket, Key))
        if stored is None or {_etag(stored)} != {more["IfMatch"], more["CopySourceIfMatch"]}:
            raise service_error("PreconditionFailed", "CopyObject")
        self._encrypted_with[Bucket, Key] = more.get("SSEKMSKeyId", "")
        return {}

    def get_bucket_encryption(self, *, Bucket: str) -> dict[str, Any]:  # noqa: ARG002, N803
        """GetBucketEncryption: the same for all."""
        by_default = {"SSEAlgorithm": "AES256", **_with_key(self.encrypts_with, "KMSMasterKeyID")}
        return {"ServerSideEncryptionConfiguration": {"Rules": [{"ApplyServerSideEncryptionByDefault": by_default}]}}

    def get_object(self, *, Bucket: str, Key: str, **more: Any) -> dict[str, Any]:  # noqa: N803
        """GetObject, whole or a range of bytes."""
        stored = self.objects.get((Bucket, Key))
        if stored is None:
            raise service_error("NoSuchKey", "GetObject")
        body = stored
        if "Range" in more:
            first, _, last = more["Range"].removeprefix("bytes=").partition("-")
            body = stored[int(first) : int(last) + 1]
        return {"Body": io.BytesIO(body), "ETag": _etag(stored)}

    def list_objects_v2(self, *, Bucket: str, Prefix: str = "", **more: Any) -> dict[str, Any]:  # noqa: N803
        """ListObjectsV2, page by page."""
        after = more.get("ContinuationToken") or more.get("StartAfter", "")
        keys = [key for key in self._keys(Bucket, Prefix) if key > after]
        if delimiter := more.get("Delimiter", ""):
            folders = {key[: key.index(delimiter, len(Prefix)) + 1] for key in keys if delimiter in key[len(Prefix) :]}
            keys = [key for key in keys if delimiter not in key[len(Prefix) :]]
            assert len(keys) + len(folders) <= A_PAGE
            common: dict[str, Any] = {"CommonPrefixes": [{"Prefix": each} for each in sorted(folders)]}
            return common | ({"Contents": [{"Key": each} for each in keys]} if keys else {})
        found = [{"Key": each, "ETag": f'"{_etag(self.objects[Bucket, each])}"'} for each in keys[:A_PAGE]]
        answer: dict[str, Any] = {"Contents": found} if found else {}
        if len(keys) > A_PAGE:
            answer |= {"IsTruncated": True, "NextContinuationToken": keys[A_PAGE - 1]}
        return answer

    def list_object_versions(self, *, Bucket: str, Prefix: str = "", **_: Any) -> dict[str, Any]:  # noqa: N803
        """ListObjectVersions, in a page."""
        former = {key for bucket, key in self._former if bucket == Bucket and key.startswith(Prefix)}
        found: list[dict[str, Any]] = []
        for key in sorted({*self._keys(Bucket, Prefix), *former}):
            there = (Bucket, key) in self.objects
            found += [{"Key": key, "VersionId": "null", "IsLatest": True}] if there else []
            versions = [name for name, _ in reversed(self._former.get((Bucket, key), []))]
            found += [{"Key": key, "VersionId": each, "IsLatest": False} for each in versions]
        return {"Versions": found} if found else {}

    def delete_objects(self, *, Bucket: str, Delete: Mapping[str, Any]) -> dict[str, Any]:  # noqa: N803
        """DeleteObjects, each by its version."""
        for each in Delete["Objects"]:
            place = Bucket, each["Key"]
            if each["VersionId"] == "null":
                self.objects.pop(place, None)
                continue
            left = [one for one in self._former.pop(place, []) if one[0] != each["VersionId"]]
            if left:
                self._former[place] = left
        return {}

    def _keys(self, bucket: str, prefix: str) -> list[str]:
        return sorted(key for of, key in self.objects if of == bucket and key.startswith(prefix))


def _etag(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


def _with_key(key: str, name: str) -> dict[str, str]:
    return {name: key} if key else {}


class Kms:
    """Keys. What one encrypts can only be decrypted with the context that it was encrypted with.

    Attributes:
        disabled: Keys that encrypt and decrypt nothing.
    """

    def __init__(self) -> None:
        self._data_keys = 0
        self.disabled: set[str] = set()

    def generate_data_key(self, *, KeyId: str, NumberOfBytes: int, **more: Any) -> dict[str, Any]:  # noqa: N803
        """GenerateDataKey."""
        if KeyId in self.disabled:
            raise service_error("DisabledException", "GenerateDataKey")
        self._data_keys += 1
        plain = hashlib.shake_256(f"data key {self._data_keys}".encode()).digest(NumberOfBytes)
        blob = repr((plain, sorted(more.get("EncryptionContext", {}).items()), KeyId)).encode()
        return {"Plaintext": plain, "CiphertextBlob": blob, "KeyId": KeyId}

    def decrypt(self, *, CiphertextBlob: bytes, **more: Any) -> dict[str, Any]:  # noqa: N803
        """Decrypt."""
        plaintext, context, key_id = ast.literal_eval(bytes(CiphertextBlob).decode())
        if context != sorted(more.get("EncryptionContext", {}).items()):
            raise service_error("InvalidCiphertextException", "Decrypt")
        if key_id in self.disabled:
            raise service_error("DisabledException", "Decrypt")
        return {"Plaintext": plaintext, "KeyId": key_id}


@dataclass
class Socket:
    """A client's end of a connection.

    Attributes:
        opened_at: When its handshake ended, epoch milliseconds.
        active_at: When it was last used, epoch milliseconds.
        heard: Called with each frame that arrives.
        closed: Called when the hub's side ends it.
        half_open: Whether the client is gone and nobody knows: what is sent is lost.
    """

    opened_at: int
    active_at: int
    heard: Callable[[str], None] = field(default=lambda _: None)
    closed: Callable[[], None] = field(default=lambda: None)
    half_open: bool = False


class Sockets:
    """Connections of a WebSocket API, as the management API sees them.

    Args:
        now_ms: Its clock, epoch milliseconds.
        seen: Told what is sent, and which connections the hub ends.
    """

    def __init__(self, now_ms: Callable[[], int], seen: Consumers) -> None:
        self._now_ms = now_ms
        self._seen = seen
        self.open: dict[str, Socket] = {}

    def post_to_connection(self, *, ConnectionId: str, Data: bytes) -> dict[str, Any]:  # noqa: N803
        """PostToConnection: the client has the frame when the call returns, unless it vanished without a word."""
        socket = self._socket(ConnectionId, "PostToConnection")
        socket.active_at = self._now_ms()
        frame = Data.decode("utf-8", "surrogatepass")
        self._seen.gets(ConnectionId, frame)
        if not socket.half_open:
            socket.heard(frame)
        return {}

    def delete_connection(self, *, ConnectionId: str) -> dict[str, Any]:  # noqa: N803
        """DeleteConnection."""
        socket = self._socket(ConnectionId, "DeleteConnection")
        del self.open[ConnectionId]
        self._seen.ends(ConnectionId)
        if not socket.half_open:
            socket.closed()
        return {}

    def get_connection(self, *, ConnectionId: str) -> dict[str, Any]:  # noqa: N803
        """GetConnection."""
        socket = self._socket(ConnectionId, "GetConnection")
        return {"LastActiveAt": datetime.fromtimestamp(socket.active_at / 1000, UTC)}

    def _socket(self, connection_id: str, operation: str) -> Socket:
        socket = self.open.get(connection_id)
        if socket is None:
            raise service_error("GoneException", operation)
        return socket
