"""``endpoint.json``: how an endpoint describes itself (hub protocol v5, "Configuration" and "Custom integrations").

Real files contain typing errors and older names, so each service is read as far as possible. An unreadable one is left
out and reported, and the others work.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Invalid
from pushhub.base.json_text import write
from pushhub.hub.model.integration import EndpointDescription, Recommendation, Service
from pushhub.hub.model.mapping import ServiceOptions
from pushhub.hub.model.message import is_message_type
from pushhub.hub.model.parameters import DataType
from pushhub.hub.model.schedule import period_ms
from pushhub.hub.wire.fields import CheckedFields, InvalidObject
from pushhub.hub.wire.json import parse_object
from pushhub.hub.wire.mapping import read_filters, read_identifiers, read_options

if TYPE_CHECKING:
    from pushhub.base.verdict import Answer

DESCRIPTION_LIMIT = 262_144
"""Bytes of ``endpoint.json`` that are read (256 KiB)."""

MAX_SERVICES = 100

MAX_STORED = 300_000
"""Maximum size of a stored description, in characters of JSON: it is kept in one item of at most 400 KB."""


def description_url(base_url: str) -> str:
    """The URL of an endpoint's description."""
    return f"{base_url.rstrip('/')}/endpoint.json"


def read_description(answer: Answer) -> EndpointDescription:
    """The description in the answer to ``GET endpoint.json``. Never raises; faults are listed in ``errors``."""
    if answer.error_class or answer.status_code != 200:
        problem = " ".join(
            each for each in (str(answer.status_code or ""), answer.message or answer.error_class) if each
        )
        return EndpointDescription(errors=(f"endpoint.json could not be read: {problem}",))
    if len(answer.body) > DESCRIPTION_LIMIT:
        return EndpointDescription(errors=(f"endpoint.json is larger than {DESCRIPTION_LIMIT} bytes",))
    try:
        fields = parse_object(answer.body)
    except Invalid as error:
        return EndpointDescription(errors=(f"endpoint.json {error.message}",))
    given = fields.get("services")
    if not isinstance(given, list):
        return EndpointDescription(errors=("endpoint.json lists no services",))
    services: list[Service] = []
    errors: list[str] = []
    if len(given) > MAX_SERVICES:
        errors.append(f"only the first {MAX_SERVICES} of {len(given)} services are used")
    for index, each in enumerate(given[:MAX_SERVICES]):
        try:
            service = _service(each)
        except InvalidObject as error:
            problem = "; ".join(f"{name} {', '.join(messages)}" for name, messages in error.errors.items())
            errors.append(f"service {_called(each, index)}: {problem}")
        else:
            if any(service.name == other.name for other in services):
                errors.append(f"service {service.name} is listed twice; the first one is used")
            else:
                services.append(service)
    described = EndpointDescription(
        display=_text(fields, "display"),
        description=_text(fields, "description"),
        help=_text(fields, "help"),
        icon_url=_text(fields, "icon_url"),
        services=tuple(services),
        errors=tuple(errors),
    )
    if len(write(asdict(described))) > MAX_STORED:
        return EndpointDescription(errors=("endpoint.json describes more than can be kept",))
    return described


def declared_types(service: Service) -> dict[str, DataType]:
    """The types that a service declares for the parameters it requires, by name without the endpoint's prefix.

    Unknown types are left out, and so are parameters without a type.
    """
    requires = service.description.get("requires")
    given = requires if isinstance(requires, dict) else {}
    declared = given.get("parameters") or given.get("paramaters")
    named = [each for each in declared if isinstance(each, dict)] if isinstance(declared, list) else []
    return {
        each["name"]: DataType(each["data_type"])
        for each in named
        if isinstance(each.get("name"), str) and each.get("data_type") in list(DataType)
    }


def _called(given: Any, index: int) -> str:
    name = given.get("name") if isinstance(given, dict) else None
    return name if isinstance(name, str) else f"number {index + 1}"


def _text(fields: dict[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value[:2000] if isinstance(value, str) else None


def _service(given: Any) -> Service:
    if not isinstance(given, dict):
        raise InvalidObject({"it": ["is not an object"]})
    fields = CheckedFields(given)
    requires = CheckedFields(fields.section("requires"))
    declared = requires.sections("parameters", most=200) or requires.sections("paramaters", most=200)
    service = Service(
        name=fields.text("name", required=True, longest=100),
        path=fields.text("path", required=True, longest=500),
        parameters=tuple(each["name"] for each in declared if isinstance(each.get("name"), str) and each["name"]),
        recommends=_recommendation(fields),
        required=fields.flag("required", False),
        description=given,
    )
    fields.check()
    requires.check()
    return service


def _recommendation(fields: CheckedFields) -> Recommendation:
    given = CheckedFields(fields.section("recommends"))
    messages = given.texts("messages" if "messages" in given else "keys", most=200)
    recommendation = Recommendation(
        messages=tuple(each for each in messages if is_message_type(each)),
        identifiers=tuple(read_identifiers(given, "identifiers" if "identifiers" in given else "event_key").items()),
        filters=read_filters(given),
        options=read_options(given, ServiceOptions()),
        every=_schedule(given),
    )
    given.check()
    return recommendation


def _schedule(given: CheckedFields) -> tuple[int, str] | None:
    if "schedule" not in given:
        return None
    schedule = CheckedFields(given.section("schedule"))
    count = schedule.whole("count", 1, least=1, most=1_000_000) or 1
    interval = schedule.text("interval", "hours")
    try:
        period_ms(count, interval)
    except Invalid as error:
        given.error("schedule", error.message)
        return None
    return count, interval
