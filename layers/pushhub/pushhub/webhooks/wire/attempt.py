"""Attempts, attempted messages and destinations on the wire."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pushhub.base.credentials import masked_url
from pushhub.base.times import iso_time
from pushhub.webhooks.model.attempt import LoggedAttempt, MessageStatus, Trigger
from pushhub.webhooks.model.ids import message_id
from pushhub.webhooks.wire.endpoint import endpoint_view
from pushhub.webhooks.wire.fields import bad_request

if TYPE_CHECKING:
    from pushhub.webhooks.model.endpoint import Endpoint

_CLASSES = (0, 100, 200, 300, 400, 500)


def parse_status(query: Mapping[str, str]) -> MessageStatus | None:
    """The status in a query; None when absent."""
    given = query.get("status", "")
    if not given:
        return None
    if given not in {str(each.value) for each in MessageStatus}:
        raise bad_request("status must be from 0 to 4")
    return MessageStatus(int(given))


def parse_status_class(query: Mapping[str, str]) -> int | None:
    """The class of HTTP statuses in a query; None when absent."""
    given = query.get("status_code_class", "")
    if not given:
        return None
    if given not in {str(each) for each in _CLASSES}:
        raise bad_request("status_code_class must be 0, 100, 200, 300, 400 or 500")
    return int(given)


def attempt_view(
    attempt: LoggedAttempt,
    url_as_shown: Callable[[str], str],
    *,
    with_content: bool = True,
    message: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """An attempt as clients read it."""
    shown: dict[str, Any] = {
        "id": attempt.attempt_id,
        "url": masked_url(url_as_shown(attempt.url)),
        "msgId": message_id(attempt.engine_id),
        "endpointId": attempt.endpoint_id,
        "response": attempt.response if with_content else "{}",
        "responseStatusCode": attempt.status_code,
        "responseDurationMs": attempt.duration_ms,
        "status": attempt.status.value,
        "statusText": attempt.status.text,
        "triggerType": (Trigger.MANUAL if attempt.manual else Trigger.SCHEDULED).value,
        "timestamp": iso_time(attempt.started_at),
    }
    said = {
        "signedBy": list(attempt.proof.schemes),
        "tokenClient": attempt.proof.client,
        "certificate": attempt.proof.certificate,
    }
    shown |= {name: value for name, value in said.items() if value}
    if message is not None:
        shown["msg"] = message
    return shown


def status_view(status: MessageStatus, next_at: int | None) -> dict[str, Any]:
    """The status fields shown beside a message."""
    shown: dict[str, Any] = {"status": status.value, "statusText": status.text}
    if next_at is not None:
        shown["nextAttempt"] = iso_time(next_at)
    return shown


def destination_view(
    endpoint: Endpoint, status: MessageStatus, next_at: int | None, url_as_shown: Callable[[str], str]
) -> dict[str, Any]:
    """An endpoint that a message was sent to, as clients read it."""
    shown = endpoint_view(endpoint, url_as_shown)
    del shown["metadata"]
    return {"nextAttempt": None, **shown, **status_view(status, next_at)}
