"""What the hub's API shows: messages, queues, notifications, integrations, schedulers, parameters (hub protocol v5,
and what its admin client reads).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pushhub.base.credentials import MASK, named_like_a_secret
from pushhub.base.json_text import NotJson, read
from pushhub.base.times import iso_time
from pushhub.hub.model.object_ids import to_object_id
from pushhub.hub.model.parameters import DataType
from pushhub.hub.wire.mapping import mapping_view

if TYPE_CHECKING:
    from pushhub.hub.model.integration import Integration
    from pushhub.hub.model.log import LoggedMessage, OpenRequest, RecordedAnswer
    from pushhub.hub.model.mapping import ServiceMapping
    from pushhub.hub.model.message import HubMessage
    from pushhub.hub.model.notice import Notice
    from pushhub.hub.model.parameters import Parameter
    from pushhub.hub.model.schedule import Scheduler

SHOWN_ANSWER = 65_536
"""Bytes shown of an answer that is not JSON."""


def _time(at: int | None) -> str | None:
    return None if at is None else iso_time(at)


def _id(message_id: str | None) -> str | None:
    return None if message_id is None else to_object_id(message_id)


def row_view(
    entry: LoggedMessage, mapping: ServiceMapping | None, icon_url: str | None, request: OpenRequest | None
) -> dict[str, Any]:
    """A message in a list.

    Args:
        mapping: The mapping it is for; None for incoming messages, and when the mapping was deleted.
    """
    consumer = mapping.name if mapping else entry.consumer or entry.mapping_id
    return {
        "id": _id(entry.message_id),
        "message_id": _id(entry.message_id),
        "message": entry.type,
        "state": entry.shown_state.value,
        "queue_name": entry.location.value,
        "source": entry.source.value,
        "consumer": consumer,
        "destination_name": consumer,
        "is_consumer_remote": entry.mapping_id is not None,
        "integration_icon_url": icon_url,
        "mapping_id": entry.mapping_id,
        "parent_id": _id(entry.parent_id),
        "attempts": entry.attempts,
        "last_error": entry.last_error,
        "reason": entry.why_not,
        "created_at": _time(entry.created_at),
        "attempt_at": _time(entry.attempt_at),
        "completed_at": _time(entry.completed_at),
        "locked_at": _time(request.opened_at if request else None),
        # Left out when there is none: the admin client formats any value it finds.
        **({} if entry.next_at is None else {"next_attempt": _time(entry.next_at)}),
    }


def message_view(
    entry: LoggedMessage,
    content: HubMessage | None,
    *,
    mapping: ServiceMapping | None,
    icon_url: str | None,
    recorded: RecordedAnswer | None,
    secrets: Collection[str] = (),
    request: OpenRequest | None,
    children: Sequence[LoggedMessage],
    notifications: Sequence[Notice],
    store_name: str,
) -> dict[str, Any]:
    """Everything about one message.

    Args:
        content: Its content; None when it is no longer kept.
        secrets: Names of parameters whose values are never shown, besides those that are named like a secret.
    """
    answered = _answered(recorded, secrets) if recorded else None
    fields = answered if isinstance(answered, dict) else {}
    return {
        **row_view(entry, mapping, icon_url, request),
        **({"reason": _reason(entry, recorded)} if recorded else {}),
        "payload": content.payload if content else None,
        "origin": content.origin if content else None,
        "extra": dict(content.extra) if content else {},
        "store_id": entry.project,
        "store_name": store_name,
        "consumer_class": "Augury::Consumers::Remote" if entry.mapping_id else None,
        "can_attempt": entry.can_attempt and request is None,
        "result": answered,
        "events": fields.get("events") or [],
        "last_answer": _answer_view(recorded) if recorded else None,
        "children": [_child_view(each) for each in children],
        "notifications": [notification_view(each) for each in notifications],
        "references": None,
        "reference_token": None,
        "mapping": mapping_view(mapping, entry.project) if mapping else None,
    }


def _child_view(entry: LoggedMessage) -> dict[str, Any]:
    return {
        "id": _id(entry.message_id),
        "message": entry.type,
        "state": entry.shown_state.value,
        "location": entry.location.value,
    }


def _reason(entry: LoggedMessage, recorded: RecordedAnswer) -> str | None:
    """Why the message was not processed; if its service answered after it was archived, what happened to that."""
    archived_at = entry.completed_at
    if entry.why_not is None or archived_at is None or recorded.answer.finished_at <= archived_at:
        return entry.why_not
    answer = recorded.answer
    done = "; what the answer asks for was carried out" if recorded.expires_at is None else ""
    return f"{entry.why_not}. The attempt ended at {iso_time(answer.finished_at)} with {answer.status_code}{done}"


def _answered(recorded: RecordedAnswer, secrets: Collection[str] = ()) -> Any:
    """The answer's JSON without what is never shown of its parameters, or its text."""
    body = recorded.answer.body
    try:
        answered = read(body, last_wins=True, exact=True)
    except NotJson:
        answered = None
    if not isinstance(answered, dict):
        return body[:SHOWN_ANSWER].decode(errors="replace")
    returned = answered.get("parameters")
    if isinstance(returned, list):
        answered["parameters"] = [_returned(each, secrets) for each in returned]
    return answered


def _returned(parameter: Any, secrets: Collection[str]) -> Any:
    """A parameter as a service has returned it, its value hidden as in the list of parameters."""
    if not isinstance(parameter, dict) or parameter.get("value") in (None, ""):
        return parameter
    name = str(parameter.get("name"))
    secret = name in secrets or named_like_a_secret(name.rpartition(".")[2])
    return parameter | {"value": MASK} if secret else parameter


def _answer_view(recorded: RecordedAnswer) -> dict[str, Any]:
    answer = recorded.answer
    return {
        "attempt": recorded.attempt,
        "status": answer.status_code,
        "error": answer.error_class or None,
        "message": answer.message,
        "content_type": answer.headers.get("content-type"),
        "polled": recorded.polled,
        "at": iso_time(answer.finished_at),
        "duration_ms": answer.duration_ms,
    }


def notification_view(notification: Notice) -> dict[str, Any]:
    """A notification."""
    extra = notification.extra
    return {
        "id": notification.notification_id,
        "store_id": notification.project,
        "message_id": to_object_id(notification.message_id),
        "level": notification.level.value,
        "subject": notification.subject,
        "description": notification.description,
        "occurrences": notification.occurrences,
        "logged_on": iso_time(notification.logged_at),
        "last_update": iso_time(notification.updated_at),
        "origin": notification.origin,
        "reference_type": extra.get("reference_type"),
        "reference_id": extra.get("reference_id"),
        "reference_token": extra.get("reference_token"),
        "details": {key: value for key, value in extra.items() if not key.startswith("reference_")},
    }


def parameter_view(parameter: Parameter) -> dict[str, Any]:
    """A parameter."""
    return {
        "id": parameter.parameter_id,
        "name": parameter.name,
        "value": MASK if is_hidden(parameter) else parameter.value,
        "data_type": parameter.data_type.value,
        "store_id": parameter.project,
    }


def is_hidden(parameter: Parameter) -> bool:
    """Whether a value is never shown: passwords, and what is named like one, as endpoints often declare no type."""
    own_name = parameter.name.rpartition(".")[2]
    secret = parameter.data_type is DataType.PASSWORD or named_like_a_secret(own_name)
    return secret and parameter.value not in (None, "")


def scheduler_view(scheduler: Scheduler) -> dict[str, Any]:
    """A scheduler."""
    return {
        "id": scheduler.scheduler_id,
        "key": scheduler.key,
        "count": scheduler.count,
        "interval": scheduler.interval,
        "next_at": iso_time(scheduler.next_at),
        "store_id": scheduler.project,
    }


def integration_view(integration: Integration, store_id: str, *, created: bool = False) -> dict[str, Any]:
    """An integration; shown as pending while it has no services.

    Args:
        created: Whether it was made just now: only then its token is shown.
    """
    endpoint = integration.endpoint
    described: Mapping[str, Any] = {
        "display": endpoint.display if endpoint else None,
        "description": endpoint.description if endpoint else None,
        "help": endpoint.help if endpoint else None,
        "icon_url": endpoint.icon_url if endpoint else None,
        "services": [each.description for each in endpoint.services] if endpoint else [],
    }
    return {
        "id": integration.integration_id,
        "name": integration.name,
        "url": integration.url,
        "token": integration.token if created or not integration.token else MASK,
        "category": integration.category,
        **described,
        "state": "ready" if described["services"] else "pending",
        "error_messages": list(integration.errors) or None,
        "store_id": store_id,
    }
