"""Reading the answer of a service (hub protocol v5, "Responding to messages").

Only 200 is a success. A 200 takes effect as a whole or not at all: an answer with an invalid child, or with too many
children, is a failure, and none of it takes effect. An unreadable answer is a failure with a reason, never an
exception.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pushhub.base.errors import Invalid
from pushhub.base.json_text import Verbatim, members, members_of_each, read, write
from pushhub.base.numerals import whole
from pushhub.base.verdict import Answer, Verdict
from pushhub.hub.model.message import is_message_type
from pushhub.hub.model.notice import Level, ReturnedNotice
from pushhub.hub.model.parameters import ReturnedParameter
from pushhub.hub.wire.json import parse_object, parse_written
from pushhub.hub.wire.request import poll_address

if TYPE_CHECKING:
    from pushhub.hub.model.mapping import ServiceMapping

ANSWER_LIMIT = 2_097_152
"""Bytes of an answer's body that are read (2 MiB); a larger one is a failure."""

MAX_CHILDREN = 1000
"""Messages one answer may ask for."""

MAX_PARAMETERS = 200
"""Parameters one answer may set."""

MAX_NOTIFICATIONS = 100
"""Notifications taken from one answer; further ones stay in its record only."""

MAX_DELAY_S = 31_536_000
"""The longest delay taken: a year. The shortest is one second, so that nothing spins."""

MAX_POSTPONEMENTS = 100
"""How often a message may be postponed before that counts as a failure: it is then retried or parked, as its mapping
says.
"""

QUICK_DEFERRALS = 4
"""This many postponements may ask for any wait, however short; the minimum wait doubles with each further one."""

LONGEST_LEAST_WAIT_S = 60
"""The highest minimum wait, seconds."""

MAX_NAME = 255
"""Longest parameter name, in characters."""

MAX_SUBJECT = 500
"""Longest notification subject kept, in characters."""

MAX_DESCRIPTION = 8_000
"""Longest notification description kept, in characters; the whole one stays in the recorded answer."""

MAX_EXTRA = 16_000
"""Most characters of JSON kept of a notification's further keys; more than that stay in the recorded answer only."""

MAX_VALUE = 32_768
"""Longest parameter value, in characters of JSON."""

MAX_ERROR = 1000
"""Longest reason kept of a failure, in characters."""

_ALIASES = {"warning": Level.WARN, "err": Level.ERROR}
_STANDARD = frozenset({"message_id", "messages", "parameters", "notifications", "events"})

_GZIP = zlib.MAX_WBITS | 16
"""Tells zlib to expect the header and checksum of gzip."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A message that an answer asks for.

    Attributes:
        delay_s: Seconds to wait before it is delivered.
        extra: Every other key.
    """

    type: str
    payload: Mapping[str, Any] | Verbatim
    delay_s: int = 0
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAnswer:
    """How an answer is interpreted, and what it asks for.

    Attributes:
        verdict: ``DELIVERED`` (done), ``POLL``, ``POSTPONED`` or ``FAILED``.
        error: Why it is a failure, for people; empty otherwise.
        wait_s: With ``POLL`` and ``POSTPONED``: minimum wait in seconds.
        update_url: With ``POLL``: the absolute address to poll.
        children: With ``DELIVERED`` only.
        parameters: With ``DELIVERED`` only.
        notifications: Also with a failure that came with JSON.
        events: As answered (an older form of notifications, logged only).
        result: Every key that is not part of the protocol, for diagnosis.
    """

    verdict: Verdict
    error: str = ""
    wait_s: int = 0
    update_url: str | None = None
    children: tuple[Child, ...] = ()
    parameters: tuple[ReturnedParameter, ...] = ()
    notifications: tuple[ReturnedNotice, ...] = ()
    events: tuple[Any, ...] = ()
    result: dict[str, Any] = field(default_factory=dict)


def unpacked(answer: Answer) -> Answer:
    """The answer with its body as the service meant it, if the service compressed it although nobody asked for that.

    At most one byte more than :data:`ANSWER_LIMIT` is unpacked, which says that there was more. A success that cannot
    be unpacked becomes a failure that says why; any other answer stays as it is, because its status says enough.
    """
    encoding = answer.headers.get("content-encoding", "").strip().lower()
    if answer.error_class or not answer.body or encoding in ("", "identity"):
        return answer
    try:
        return replace(answer, body=_unpacked(answer.body, encoding))
    except _Unusable as error:
        return replace(answer, error_class="bad_response", message=str(error)) if answer.status_code == 200 else answer


def _unpacked(body: bytes, encoding: str) -> bytes:
    if encoding not in ("gzip", "x-gzip"):
        raise _Unusable(f"The answer is encoded as {encoding[:40]!r}, which was not asked for")
    reader = zlib.decompressobj(_GZIP)
    try:
        text = reader.decompress(body, ANSWER_LIMIT + 1)
    except zlib.error as error:
        raise _Unusable("The answer says that it is gzip, but cannot be unpacked") from error
    if not reader.eof and len(text) <= ANSWER_LIMIT:
        raise _Unusable("The answer is gzip that ends too early")
    return text


def read_answer(answer: Answer, *, object_id: str, mapping: ServiceMapping, polled: str | None) -> ServiceAnswer:
    """Read one answer.

    Args:
        polled: The address that was polled, if it was a poll. A delay without an address then means to poll it again.
    """
    if answer.error_class:
        return _failure(f"No usable answer: {answer.message or answer.error_class}")
    if len(answer.body) > ANSWER_LIMIT:
        return _failure(f"The answer is larger than {ANSWER_LIMIT} bytes")
    if answer.status_code != 200:
        return _refusal(answer)
    try:
        return _success(answer.body, object_id=object_id, mapping=mapping, polled=polled)
    except Invalid as error:
        return _failure(f"Invalid response: the body {error.message}")
    except _Unusable as error:
        return _failure(f"Invalid response: {error}")


class _Unusable(Exception):
    """The answer can be received but does not follow the protocol."""


def _failure(error: str) -> ServiceAnswer:
    return ServiceAnswer(verdict=Verdict.FAILED, error=error[:MAX_ERROR])


def _refusal(answer: Answer) -> ServiceAnswer:
    """How an answer other than 200 is read.

    JSON is used if it can be read. Any other body (HTML, plain text, none) is accepted too.
    """
    error = f"HTTP {answer.status_code}"
    try:
        fields = parse_object(answer.body)
    except Invalid:
        return _failure(f"{error} {answer.message}".rstrip())
    notifications = _notifications(fields)
    stated = fields.get("error")
    reason = stated if isinstance(stated, str) else next((each.subject for each in notifications), answer.message)
    return ServiceAnswer(
        verdict=Verdict.FAILED,
        error=f"{error}: {reason}"[:MAX_ERROR],
        notifications=notifications,
        events=_events(fields),
        result=_extra(fields),
    )


def _success(body: bytes, *, object_id: str, mapping: ServiceMapping, polled: str | None) -> ServiceAnswer:
    fields, text = parse_written(body)
    answered_id = fields.get("message_id")
    if answered_id != object_id and not mapping.options.lenient:
        stated = "missing" if answered_id is None else "another one"
        raise _Unusable(f"message_id is {stated}")
    update_url, delay = fields.get("update_url"), fields.get("delay")
    if update_url is not None:
        if not isinstance(update_url, str):
            raise _Unusable("update_url is not a string")
        if delay is None:
            raise _Unusable("update_url comes without a delay")
        try:
            address = poll_address(update_url, mapping)
        except Invalid as error:
            raise _Unusable(f"update_url {error.message}") from error
        return _later(fields, wait_s=max(1, _delay(delay)), update_url=address)
    if delay is not None:
        return _later(fields, wait_s=max(1, _delay(delay)), update_url=polled)
    return ServiceAnswer(
        verdict=Verdict.DELIVERED,
        children=_children(fields, text),
        parameters=_parameters(fields, text),
        notifications=_notifications(fields),
        events=_events(fields),
        result=_extra(fields),
    )


def _later(fields: dict[str, Any], *, wait_s: int, update_url: str | None) -> ServiceAnswer:
    return ServiceAnswer(
        verdict=Verdict.POLL if update_url else Verdict.POSTPONED,
        wait_s=wait_s,
        update_url=update_url,
        notifications=_notifications(fields),
        events=_events(fields),
        result=_extra(fields),
    )


def paced(reading: ServiceAnswer, *, deferrals: int) -> ServiceAnswer:
    """A reading whose wait grows when an endpoint keeps postponing a message for short times, up to a limit after which
    it fails.

    Polled work was accepted, so it is polled as often as its endpoint says; a message that is only ever postponed is
    not being worked on.

    Args:
        deferrals: How often it was postponed before.
    """
    if reading.verdict is not Verdict.POSTPONED:
        return reading
    if deferrals >= MAX_POSTPONEMENTS:
        problem = f"Postponed {MAX_POSTPONEMENTS} times"
        return replace(reading, verdict=Verdict.FAILED, wait_s=0, error=problem)
    least = min(LONGEST_LEAST_WAIT_S, 1 << min(max(0, deferrals - QUICK_DEFERRALS), 10))
    return replace(reading, wait_s=max(reading.wait_s, least))


def _delay(value: Any) -> int:
    """Whole seconds; a numeric string is accepted too (a real endpoint with a newer library answers ``"120"``)."""
    if isinstance(value, str):
        try:
            value = whole(value)
        except ValueError as error:
            raise _Unusable("delay is not a number of seconds") from error
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _Unusable("delay is not a number of seconds")
    if not 0 <= value <= MAX_DELAY_S:
        raise _Unusable(f"delay is not from 0 to {MAX_DELAY_S} seconds")
    return math.ceil(value)


def _read_each(fields: dict[str, Any], name: str, limit: int, reader: Callable[[Any], _T]) -> tuple[_T, ...]:
    """Every element of an array in the answer; null and absent are empty."""
    items = fields.get(name)
    if items is None:
        return ()
    if not isinstance(items, list):
        raise _Unusable(f"{name} is not an array")
    if len(items) > limit:
        raise _Unusable(f"{name} holds {len(items)} elements, more than the {limit} allowed")
    found: list[_T] = []
    for index, item in enumerate(items):
        try:
            found.append(reader(item))
        except Invalid as error:
            raise _Unusable(f"{name}[{index}] {error.message}") from error
    return tuple(found)


def _children(fields: dict[str, Any], text: str | None) -> tuple[Child, ...]:
    """The messages that an answer asks for, with their values as it wrote them."""
    children = _read_each(fields, "messages", MAX_CHILDREN, read_child)
    if not children or text is None:
        return children
    own = members_of_each(members(text)["messages"])
    return tuple(
        replace(
            child,
            payload=Verbatim(texts["payload"]),
            extra={name: Verbatim(texts[name]) for name in child.extra},
        )
        for child, texts in zip(children, own, strict=True)
    )


def _parameters(fields: dict[str, Any], text: str | None) -> tuple[ReturnedParameter, ...]:
    """The parameters that an answer sets, with their numbers as it wrote them."""
    found = _read_each(fields, "parameters", MAX_PARAMETERS, _read_parameter)
    if not found or text is None:
        return found
    own = members_of_each(members(text)["parameters"])
    return tuple(replace(each, value=read(texts["value"], exact=True)) for each, texts in zip(found, own, strict=True))


def read_child(item: Any) -> Child:
    """A message that an answer asks for.

    Raises:
        Invalid: It is not a valid message.
    """
    if not isinstance(item, dict):
        raise Invalid("is not an object")
    message_type, payload = item.get("message"), item.get("payload")
    if not is_message_type(message_type):
        raise Invalid("has no message type")
    if not isinstance(payload, dict):
        raise Invalid("has no payload object")
    delay = item.get("delay")
    try:
        delay_s = 0 if delay is None else _delay(delay)
    except _Unusable as error:
        raise Invalid(str(error)) from error
    extra = {key: value for key, value in item.items() if key not in ("message", "payload", "delay", "message_id")}
    return Child(type=message_type, payload=payload, delay_s=delay_s, extra=extra)


def _read_parameter(item: Any) -> ReturnedParameter:
    if not isinstance(item, dict):
        raise Invalid("is not an object")
    name = item.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise Invalid("has no name")
    if "value" not in item:
        raise Invalid("has no value")
    if len(write(item["value"])) > MAX_VALUE:
        raise Invalid(f"has a value longer than {MAX_VALUE} characters")
    return ReturnedParameter(name=name, value=item["value"])


def _notifications(fields: dict[str, Any]) -> tuple[ReturnedNotice, ...]:
    """The readable notifications. They only report on the work, so a bad one must not undo it."""
    items = fields.get("notifications")
    if not isinstance(items, list):
        return ()
    found = (_read_notification(item) for item in items[:MAX_NOTIFICATIONS])
    return tuple(each for each in found if each is not None)


def _read_notification(item: Any) -> ReturnedNotice | None:
    if not isinstance(item, dict):
        return None
    stated = str(item.get("level", "")).strip().lower()
    level = _ALIASES.get(stated) or (Level(stated) if stated in set(Level) else Level.INFO)
    subject, description = item.get("subject"), item.get("description")
    texts = [each for each in (subject, description) if isinstance(each, str) and each.strip()]
    if not texts:
        return None
    extra = {key: value for key, value in item.items() if key not in ("level", "subject", "description")}
    return ReturnedNotice(
        level=level,
        subject=texts[0][:MAX_SUBJECT],
        description=texts[-1][:MAX_DESCRIPTION],
        extra=extra if len(write(extra)) <= MAX_EXTRA else {},
    )


def _events(fields: dict[str, Any]) -> tuple[Any, ...]:
    """Events, logged as they are; one endpoint sent a single object instead of an array."""
    events = fields.get("events")
    if events is None:
        return ()
    return tuple(events[:MAX_NOTIFICATIONS]) if isinstance(events, list) else (events,)


def _extra(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in _STANDARD}
