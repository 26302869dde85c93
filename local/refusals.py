"""What the local front door itself says when it refuses a request: in the format that clients of the path's protocol
read.

On AWS it is API Gateway that refuses, always with ``{"message"}``.
"""

from __future__ import annotations

import json

_CODES = {400: "generic_error", 413: "payload_too_large", 507: "insufficient_storage"}
"""Codes of webhooks, by status; all others are ``server_error``."""
_NAMES = {400: "general/badRequest", 413: "general/requestTooLarge", 507: "general/insufficientStorage"}
"""Names of Notifications 2.0, by status; all others are ``general/internalError``."""


def refusal_body(path: str, status: int, message: str) -> bytes:
    """The body of a refusal."""
    return json.dumps(_told(path, status, message)).encode()


def _told(path: str, status: int, message: str) -> dict[str, str]:
    if path.startswith("/api/v1/"):
        return {"code": _CODES.get(status, "server_error"), "detail": message}
    if path.startswith("/notification2/"):
        return {"error": _NAMES.get(status, "general/internalError"), "message": message, "info": ""}
    if path.startswith("/api/"):
        return {"error": message}
    return {"message": message, "msg": message}
