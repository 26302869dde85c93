"""Reads schedulers, parameters, integrations and pushed messages sent to the hub's API: each reader raises
``InvalidObject`` with all that is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pushhub.base.credentials import MASK
from pushhub.base.errors import Invalid
from pushhub.base.json_text import NotJson, Verbatim, read, write
from pushhub.base.numerals import fraction, whole
from pushhub.hub.model.message import HubMessage, is_message_type
from pushhub.hub.model.parameters import DataType, Parameter, data_type_of
from pushhub.hub.model.schedule import Scheduler, period_ms
from pushhub.hub.wire.answer import MAX_VALUE
from pushhub.hub.wire.discovery import declared_types
from pushhub.hub.wire.fields import CheckedFields, InvalidObject
from pushhub.hub.wire.json import own_members, parse_written
from pushhub.hub.wire.mapping import read_token
from pushhub.hub.wire.request import MAX_URL, checked_url

if TYPE_CHECKING:
    from pushhub.hub.model.integration import Integration

MAX_DIGITS = 300
"""Of a whole number that is given as text."""

_INTEGRATION_NAME = re.compile(r"[a-z0-9_-]{1,100}\Z")


def read_pushed(body: bytes) -> tuple[HubMessage, dict[str, Any]]:
    """A pushed message, and everything that was submitted (the reply echoes it).

    The admin client's test tool nests the whole message under ``message``.
    """
    try:
        submitted, text = parse_written(body)
    except Invalid as error:
        raise InvalidObject({"base": [f"The body {error.message}"]}) from error
    written = own_members(submitted, text)
    nested = submitted.get("message")
    given, own = submitted, written
    if isinstance(nested, dict):
        inner = written["message"]
        given, own = submitted | nested, written | own_members(nested, getattr(inner, "text", None))
    message_type, payload, origin = given.get("message"), given.get("payload"), given.get("origin")
    fields = CheckedFields(given)
    if message_type is None or message_type == "":
        fields.error("message", "can't be blank")
    elif not is_message_type(message_type):
        fields.error("message", "must be a message type such as order:new")
    if payload is None:
        fields.error("payload", "can't be blank")
    elif not isinstance(payload, dict):
        fields.error("payload", "must be an object")
    fields.check()
    known = ("message", "payload", "origin", "message_id")
    message = HubMessage(
        type=str(message_type),
        payload=own["payload"],
        origin=origin if isinstance(origin, str) else None,
        extra={key: value for key, value in own.items() if key not in known},
    )
    return message, written


def read_scheduler(fields: CheckedFields, scheduler: Scheduler) -> Scheduler:
    """``scheduler`` updated with the fields that were sent."""
    key = fields.text("key", scheduler.key, required=True, longest=200)
    if key and not is_message_type(key):
        fields.error("key", "must be a message type such as acme:order:poll")
    count = fields.whole("count", scheduler.count, least=1, most=1_000_000) or scheduler.count
    interval = fields.text("interval", scheduler.interval, required=True)
    try:
        period_ms(count, interval)
    except Invalid as error:
        fields.error(error.message.partition(" ")[0], error.message.partition(" ")[2])
    fields.check()
    return replace(scheduler, key=key, count=count, interval=interval)


def read_parameter(
    fields: CheckedFields, parameter: Parameter | None, project: str, stored: Callable[[str], Iterable[Parameter]]
) -> Parameter:
    """A parameter with the fields that were sent. ``********``, as the API shows secrets, stands for its stored value.
    When it was set is left open.

    Args:
        parameter: The stored one, whose name stays; None for one that may be new.
    """
    name = parameter.name if parameter else fields.text("name", required=True, longest=255)
    value = fields.raw("value") if "value" in fields or parameter is None else parameter.value
    kind = fields.raw("data_type") or (parameter.data_type if parameter else data_type_of(value))
    if kind not in list(DataType):
        fields.error("data_type", f"must be one of {' '.join(DataType)}")
    else:
        try:
            value = value if value == MASK else _typed(value, DataType(kind))
        except ValueError:
            fields.error("value", f"is not of the type {DataType(kind).value}")
    if len(write(value)) > MAX_VALUE:
        fields.error("value", f"is longer than {MAX_VALUE} characters")
    fields.check()
    if value == MASK:
        found = [each.value for each in stored(project) if each.name == name]
        if not found:
            raise InvalidObject({"value": [f"is {MASK}, which stands for a stored value"]})
        value = found[0]
    return Parameter(project=project, name=name, value=value, data_type=DataType(kind), as_of=0)


def read_sign_up(
    integration: Integration,
    given: Mapping[str, Any],
    project: str,
    stored: Callable[[str], Iterable[Parameter]],
) -> list[Parameter]:
    """The parameters of a sign-up, each with the type that the endpoint declares.

    Args:
        given: Name to value; names with or without the endpoint's prefix.
    """
    prefix = f"{integration.name}."
    types: dict[str, DataType] = {}
    for service in integration.endpoint.services if integration.endpoint else ():
        types |= declared_types(service)
    signed: list[Parameter] = []
    errors: list[str] = []
    for name, value in given.items():
        short = name.removeprefix(prefix)
        fields = CheckedFields({"name": prefix + short, "value": value, "data_type": types.get(short)})
        try:
            signed.append(read_parameter(fields, None, project, stored))
        except InvalidObject as error:
            problems = (f"{field} {message}" for field, each in error.errors.items() for message in each)
            errors += [f"{short}: {message}" for message in problems]
    if errors:
        raise InvalidObject({"parameters": errors})
    return signed


def _typed(value: Any, kind: DataType) -> Any:
    """A value converted to its type; forms send all values as text."""
    text = value if isinstance(value, str) else None
    if text == "" and kind not in (DataType.STRING, DataType.PASSWORD):
        # A form field that was left empty.
        return None
    match kind:
        case DataType.INTEGER if text is not None:
            return whole(text, digits=MAX_DIGITS)
        case DataType.FLOAT if text is not None:
            return _number(text)
        case DataType.BOOLEAN if text is not None:
            if text.lower() not in ("true", "false", "1", "0"):
                raise ValueError
            return text.lower() in ("true", "1")
        case DataType.INTEGER if isinstance(value, Verbatim) and value.text.lstrip("-").isdigit():
            return whole(value.text, digits=MAX_DIGITS)
        case DataType.LIST if text is not None:
            value = read(text, exact=True)
        case DataType.LIST if isinstance(value, dict) and value and all(each.isdigit() for each in value):
            # A form numbers the elements of a list.
            value = list(value.values())
    fitting: dict[DataType, type | tuple[type, ...]] = {
        DataType.INTEGER: int,
        DataType.FLOAT: (int, float, Verbatim),
        DataType.BOOLEAN: bool,
        DataType.LIST: list,
        DataType.STRING: str,
        DataType.PASSWORD: str,
    }
    odd_boolean = isinstance(value, bool) and kind is not DataType.BOOLEAN
    if value is not None and (odd_boolean or not isinstance(value, fitting[kind])):
        raise ValueError
    return value


def _number(text: str) -> Any:
    """A number that is given as text; it keeps that, if JSON writes numbers so."""
    number = fraction(text)
    try:
        return read(text, exact=True)
    except NotJson:
        return number


def read_integration(fields: CheckedFields, integration: Integration) -> Integration:
    """``integration`` updated with the fields that were sent."""
    name = fields.text("name", integration.name, required=True)
    if name and not _INTEGRATION_NAME.match(name):
        fields.error("name", "must be lower-case letters, digits, - and _")
    url = fields.text("url", integration.url, required=True, longest=MAX_URL)
    if url:
        try:
            checked_url(url)
        except Invalid as error:
            fields.error("url", error.message)
    token = read_token(fields, integration, url)
    category = fields.text("category", integration.category, required=True, longest=100)
    fields.check()
    return replace(integration, name=name, url=url, token=token, category=category)
