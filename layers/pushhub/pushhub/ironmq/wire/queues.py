"""Queue settings and queue info on the wire (IronMQ v3 "Queues")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Invalid
from pushhub.engine.model.queue import Alert, Queue, QueueType
from pushhub.engine.model.search import HEADER, MAX_FIELD_BYTES, MAX_FIELDS, is_path
from pushhub.ironmq.wire.alerts import parse_alerts, render_alert
from pushhub.ironmq.wire.names import check_queue_name
from pushhub.ironmq.wire.subscribers import AskedSubscriber, parse_subscribers, render_subscriber
from pushhub.web.json import Fields, boolean, integer, listed, number_in_query, section, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_TIMEOUT_S = 86_400
MAX_EXPIRATION_S = 2_592_000
MAX_RETRIES = 100
MIN_RETRIES_DELAY_S = 3
MAX_RETRIES_DELAY_S = 86_400
MAX_RESERVATIONS = 1000
DEFAULT_PER_PAGE = 30
MAX_PER_PAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PushSettingsGiven:
    """The ``push`` object of a request; None for settings that are missing.

    Attributes:
        subscribers: The complete new list; empty if the request has an empty one (which is refused later).
        retries: Tries after the first.
        retries_delay: Seconds between tries.
        error_queue: Its name; empty for none.
        eager: Whether posts send the first orders themselves.
    """

    subscribers: tuple[AskedSubscriber, ...] | None = None
    retries: int | None = None
    retries_delay: int | None = None
    error_queue: str | None = None
    eager: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterSettings:
    """The ``dead_letter`` object of a request; None for settings that are missing.

    Attributes:
        queue_name: The target queue; empty for none.
        max_reservations: Reservations allowed.
    """

    queue_name: str | None = None
    max_reservations: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """The settings in a create or update request; None for those that are missing.

    Attributes:
        type: The queue's type.
        message_timeout: Default reservation in seconds.
        message_expiration: Lifetime of a message in seconds.
        push: Push settings.
        dead_letter: Dead-letter settings.
        alerts: The complete new list of alerts.
        convert: Whether a pull queue becomes a push queue.
        search_fields: The complete new list of fields by which messages can be found.
    """

    type: QueueType | None = None
    message_timeout: int | None = None
    message_expiration: int | None = None
    push: PushSettingsGiven | None = None
    dead_letter: DeadLetterSettings | None = None
    alerts: tuple[Alert, ...] | None = None
    convert: bool = False
    search_fields: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
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
    """Read a create or update request. ``name``, ``size`` and other fields of queue info are ignored.

    Raises:
        Invalid: A setting has the wrong type or is out of range.
    """
    queue = section(fields, "queue") or {}
    alerts = listed(queue, "alerts")
    return QueueSettings(
        type=_type(queue),
        message_timeout=integer(queue, "message_timeout", least=1, most=MAX_TIMEOUT_S),
        message_expiration=integer(queue, "message_expiration", least=1, most=MAX_EXPIRATION_S),
        push=_push(section(queue, "push")),
        dead_letter=_dead_letter(section(queue, "dead_letter")),
        alerts=None if alerts is None else parse_alerts(alerts),
        convert=boolean(queue, "convert"),
        search_fields=_search_fields(listed(queue, "search_fields")),
    )


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


def _push(push: Fields | None) -> PushSettingsGiven | None:
    if not push:
        return None
    subscribers = listed(push, "subscribers")
    error_queue = text(push, "error_queue")
    return PushSettingsGiven(
        subscribers=None if subscribers is None else parse_subscribers(subscribers),
        retries=integer(push, "retries", least=0, most=MAX_RETRIES, zero_is_unset=False),
        retries_delay=integer(push, "retries_delay", least=MIN_RETRIES_DELAY_S, most=MAX_RETRIES_DELAY_S),
        error_queue=check_queue_name(error_queue, "error_queue") if error_queue else error_queue,
        eager=None if push.get("eager") is None else boolean(push, "eager"),
    )


def _dead_letter(dead_letter: Fields | None) -> DeadLetterSettings | None:
    if not dead_letter:
        return None
    queue_name = text(dead_letter, "queue_name")
    return DeadLetterSettings(
        queue_name=check_queue_name(queue_name, "dead_letter.queue_name") if queue_name else queue_name,
        max_reservations=integer(dead_letter, "max_reservations", least=1, most=MAX_RESERVATIONS),
    )


def parse_page(query: Mapping[str, str]) -> Page:
    """Read the query of a list request; a page size above the maximum is reduced to it.

    Raises:
        Invalid: The page size is not a number.
    """
    return Page(
        limit=min(number_in_query(query, "per_page", default=DEFAULT_PER_PAGE), MAX_PER_PAGE),
        after=query.get("previous", ""),
        prefix=query.get("prefix", ""),
    )


def render_queue(queue: Queue) -> dict[str, object]:
    """Queue info without the counts, as in the answer to a create request. The secret is never shown."""
    shown: dict[str, object] = {
        "project_id": queue.project,
        "id": queue.uid,
        "name": queue.name,
        "message_timeout": queue.message_timeout,
        "message_expiration": queue.message_expiration,
        "type": queue.type.value,
    }
    if queue.push is not None:
        shown["push"] = {
            "subscribers": [render_subscriber(each) for each in queue.push.subscribers],
            "retries": queue.push.retries,
            "retries_delay": queue.push.retries_delay,
            "error_queue": queue.push.error_queue,
            **({"eager": True} if queue.push.eager else {}),
        }
    if queue.dead_letter is not None:
        shown["dead_letter"] = {
            "queue_name": queue.dead_letter.queue_name,
            "max_reservations": queue.dead_letter.max_reservations,
        }
    if queue.alerts:
        shown["alerts"] = [render_alert(each) for each in queue.alerts]
    if queue.search_fields:
        shown["search_fields"] = [*queue.search_fields]
    return shown


def render_queue_info(queue: Queue, *, size: int, total_messages: int) -> dict[str, object]:
    """Queue info with its counts."""
    return {**render_queue(queue), "size": size, "total_messages": total_messages}
