"""Requests signed as AWS's services demand it (Signature Version 4), by the SDK itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.sinks.ports import AwsKeys


def sign(
    keys: AwsKeys,
    *,
    service: str,
    region: str,
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
) -> Mapping[str, str]:
    """See the port."""
    request = AWSRequest(method=method, url=url, data=body, headers=dict(headers))
    credentials = Credentials(keys.key_id, keys.secret, keys.session or None)
    # S3 has the path signed as it is, and wants the digest of the body as a header.
    signer = S3SigV4Auth if service == "s3" else SigV4Auth
    signer(credentials, service, region).add_auth(request)
    return dict(request.headers.items())
