"""Queue settings and queue info on the wire (IronMQ v3 "Queues")."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Invalid
from pushhub.base.signature_schemes import Malformed
from pushhub.base.webhook_senders import GENERIC, SENDERS
from pushhub.engine.model.queue import Alert, DeadLetter, PushSettings, Queue, QueueType
from pushhub.engine.model.search import HEADER, MAX_FIELD_BYTES, MAX_FIELDS, is_path
from pushhub.ironmq.wire.alerts import parse_alerts, render_alert
from pushhub.ironmq.wire.names import MAX_QUEUE_NAME_BYTES, check_queue_name
from pushhub.ironmq.wire.subscribers import AskedSubscriber, parse_subscribers, render_subscriber
from pushhub.web.json import Fields, boolean, listed, number_in_query, section, text
from pushhub.web.settings import Given, read, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_PER_PAGE = 30
MAX_PER_PAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedSender:
    """Whose webhooks a queue is to take.

    Attributes:
        kind: Empty for anybody's.
        secret: None for the stored one.
    """

    kind: str
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """The settings in a create or update request; None for those that are missing.

    Attributes:
        own: Those that stand on the fields of the queue itself.
        push: Push settings; an empty list of subscribers is refused later.
        alerts: The complete new list of alerts.
        convert: Whether a pull queue becomes a push queue.
        search_fields: The complete new list of fields by which messages can be found.
        sender: Whose webhooks it is to take.
    """

    own: Given[Queue]
    type: QueueType | None = None
    push: Given[PushSettings] | None = None
    dead_letter: Given[DeadLetter] | None = None
    alerts: tuple[Alert, ...] | None = None
    convert: bool = False
    search_fields: tuple[str, ...] | None = None
    sender: AskedSender | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueListQuery:
    """Which queue names to list.

    Attributes:
        limit: Maximum number of names.
        after: Only names greater than this one.
        prefix: Only names that begin with this.
    """

    limit: int
    after: str
    prefix: str


def parse_queue(fields: Fields) -> QueueSettings:
    """Read a create or update request. ``name``, ``size`` and other fields of queue info are ignored."""
    queue = section(fields, "queue") or {}
    alerts, kind = listed(queue, "alerts"), _type(queue)
    return QueueSettings(
        own=read(Queue, queue),
        type=kind,
        push=_push(section(queue, "push")),
        dead_letter=_dead_letter(section(queue, "dead_letter")),
        alerts=None if alerts is None else parse_alerts(alerts),
        convert=boolean(queue, "convert"),
        search_fields=_search_fields(listed(queue, "search_fields")),
        sender=_sender(queue),
    )


def _sender(queue: Fields) -> AskedSender | None:
    if queue.get("webhook") is False:
        return AskedSender(kind="")
    given = section(queue, "webhook")
    if given is None:
        return None
    kind, secret = text(given, "type") or "", text(given, "secret")
    if kind not in SENDERS or kind == GENERIC:
        raise Invalid(f"webhook.type must be one of: {', '.join(each for each in SENDERS if each != GENERIC)}")
    if secret is not None:
        try:
            SENDERS[kind].check_secret(secret)
        except Malformed as error:
            raise Invalid(f"webhook.secret: {error}") from error
    return AskedSender(kind=kind, secret=secret)


def _search_fields(given: Sequence[Any] | None) -> tuple[str, ...] | None:
    if given is None:
        return None
    if len(given) > MAX_FIELDS:
        raise Invalid(f"search_fields can have at most {MAX_FIELDS} fields")
    for each in given:
        if not is_path(each) or each == HEADER:
            raise Invalid(
                f"search_fields must be paths like order.id, or header:NAME, of at most {MAX_FIELD_BYTES} bytes"
            )
    return tuple(dict.fromkeys(given))


def _type(queue: Fields) -> QueueType | None:
    # Older versions of the API called it push_type; ignoring that would silently create the wrong type of queue.
    given = text(queue, "type") or text(queue, "push_type")
    if not given:
        return None
    try:
        return QueueType(given)
    except ValueError as error:
        raise Invalid("type must be one of: pull, multicast, unicast") from error


def _push(push: Fields | None) -> Given[PushSettings] | None:
    return read(PushSettings, push, subscribers=_subscribers, error_queue=_error_queue) if push else None


def _subscribers(push: Fields, name: str) -> tuple[AskedSubscriber, ...] | None:
    given = listed(push, name)
    return None if given is None else parse_subscribers(given)


def _error_queue(push: Fields, name: str) -> str | None:
    given = text(push, name)
    return check_queue_name(given, name) if given else given


def _dead_letter(dead_letter: Fields | None) -> Given[DeadLetter] | None:
    return read(DeadLetter, dead_letter, queue_name=_dead_letter_queue) if dead_letter else None


def _dead_letter_queue(dead_letter: Fields, name: str) -> str | None:
    given = text(dead_letter, name)
    return check_queue_name(given, f"dead_letter.{name}") if given else given


def parse_page(query: Mapping[str, str]) -> QueueListQuery:
    """Read the query of a list request; a page size above the maximum is reduced to it.

    Raises:
        Invalid: No number, or a text that no queue's name can begin with.
    """
    for name in ("previous", "prefix"):
        if len(query.get(name, "").encode()) > MAX_QUEUE_NAME_BYTES:
            raise Invalid(f"{name} is longer than {MAX_QUEUE_NAME_BYTES} bytes")
    return QueueListQuery(
        limit=min(number_in_query(query, "per_page", default=DEFAULT_PER_PAGE), MAX_PER_PAGE),
        after=query.get("previous", ""),
        prefix=query.get("prefix", ""),
    )


def render_queue(queue: Queue) -> dict[str, object]:
    """Queue info without the counts, as in the answer to a create request. The secret is never shown."""
    info: dict[str, object] = {
        "project_id": queue.project,
        "id": queue.uid,
        "name": queue.name,
        **shown(queue),
        "type": queue.type.value,
    }
    if queue.push is not None:
        info["push"] = shown(queue.push, subscribers=lambda each: [*map(render_subscriber, each)])
    if queue.dead_letter is not None:
        info["dead_letter"] = shown(queue.dead_letter)
    if queue.alerts:
        info["alerts"] = [render_alert(each) for each in queue.alerts]
    if queue.search_fields:
        info["search_fields"] = [*queue.search_fields]
    if queue.sender is not None:
        info["webhook"] = {"type": queue.sender.kind}
    return info


def render_queue_info(queue: Queue, *, size: int, total_messages: int) -> dict[str, object]:
    """Queue info with its counts."""
    return {**render_queue(queue), "size": size, "total_messages": total_messages}
