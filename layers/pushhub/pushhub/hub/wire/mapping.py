"""Mappings as the administration API and ``endpoint.json`` write them (hub protocol v5, "Mapping basics").

Readers raise ``InvalidObject`` with all that is wrong.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from pushhub.base.credentials import MASK, place_of
from pushhub.base.errors import FieldRefused, Invalid
from pushhub.base.gates import KEEP_GATES, MTLS, OAUTH, GateChange
from pushhub.base.patterns import MAX_INSTRUCTIONS, MAX_PATTERN, Pattern
from pushhub.base.signing import MAX_GRACE_S
from pushhub.base.signing_change import KEEP, SigningChange
from pushhub.engine.model.search import HEADER, MAX_FIELD_BYTES, MAX_FIELDS, is_path
from pushhub.hub.model.filters import Filter, FilterOperator, MatchRule, text_of
from pushhub.hub.model.mapping import MAX_PARAMETERS, ServiceMapping, ServiceOptions
from pushhub.hub.model.message import is_message_type
from pushhub.hub.model.object_ids import is_object_id
from pushhub.hub.wire.fields import CheckedFields, InvalidObject
from pushhub.hub.wire.request import MAX_URL, checked_url
from pushhub.web.gates import gates_view, parse_gates
from pushhub.web.signing import parse_signing

if TYPE_CHECKING:
    from pushhub.hub.model.integration import Integration

MAX_MESSAGES = 200
MAX_FILTERS = 50
MAX_IDENTIFIERS = 20
MAX_PATH = 500
MAX_VALUE = 2000
"""Longest value of a filter, in characters."""
LONGEST_WAIT_S = 604_800
"""Seconds; the longest first wait and cap of a back-off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedMapping:
    """A mapping as its owner wants it.

    Attributes:
        mapping: With the signing keys and gates that it has had.
    """

    mapping: ServiceMapping
    signing: SigningChange
    gates: GateChange


def wanted_mapping(fields: CheckedFields, mapping: ServiceMapping) -> WantedMapping:
    """What a request asks for."""
    return WantedMapping(mapping=read_mapping(fields, mapping), signing=read_signing(fields), gates=read_gates(fields))


def read_mapping(fields: CheckedFields, mapping: ServiceMapping) -> ServiceMapping:
    """``mapping`` updated with the fields that were sent.

    Args:
        fields: As sent; absent ones keep their values.
        mapping: The stored one, or a fresh one with empty name, URL, token and messages.
    """
    url = fields.text("url", mapping.url, required=True, longest=MAX_URL)
    if url:
        try:
            checked_url(url)
        except Invalid as error:
            fields.error("url", error.message)
    token = read_token(fields, mapping, url, required=True)
    read = replace(
        mapping,
        name=fields.text("name", mapping.name, required=True, longest=255),
        url=url,
        token=token,
        messages=_messages(fields, mapping),
        parameter_ids=_parameter_ids(fields, mapping),
        filters=read_filters(fields) if "filters" in fields else mapping.filters,
        identifiers=read_identifiers(fields) if "identifiers" in fields else mapping.identifiers,
        search_fields=_search_fields(fields, mapping),
        options=read_options(fields, mapping.options),
        enabled=fields.flag("enabled", mapping.enabled),
        required=fields.flag("required", mapping.required),
    )
    if read.required and not read.enabled:
        fields.error("enabled", "can't be false: the mapping is required")
    fields.check()
    return read


def read_token(fields: CheckedFields, stored: ServiceMapping | Integration, url: str, *, required: bool = False) -> str:
    """The token; ``********``, as the API shows it, stands for the stored one, which stays with the host it was given
    for. Errors are recorded in ``fields``.

    Args:
        stored: What is changed, or a fresh one.
        url: Where the token will be sent.
    """
    token = fields.text("token", stored.token, required=required, longest=500)
    if not token.isascii():
        fields.error("token", "must be ASCII")
    if token != MASK or "token" not in fields:
        return token
    if not stored.token:
        fields.error("token", f"is {MASK}, which stands for a stored token")
    elif place_of(stored.url) != place_of(url):
        fields.error("token", f"is {MASK}, which stands for a token that was given for another host")
    return stored.token


def read_signing(fields: CheckedFields) -> SigningChange:
    """The change that a mapping's ``signing`` asks for; none when it was not sent."""
    given = fields.raw("signing")
    if isinstance(given, str):
        spelt = given.strip()
        given = (
            fields.section("signing") if spelt[:1] == "{" else fields.flag("signing", default=False) if spelt else None
        )
    if isinstance(given, dict) and isinstance(given.get("grace_period"), str):
        # A form carries the number as text.
        inner = CheckedFields(given)
        given = {**given, "grace_period": inner.whole("grace_period", None, least=0, most=MAX_GRACE_S)}
        inner.check()
    try:
        change = parse_signing(given)
    except Invalid as error:
        change = KEEP
        fields.error("signing", error.message)
    fields.check()
    return change


def read_gates(fields: CheckedFields) -> GateChange:
    """The change that a mapping's ``oauth`` and ``mtls`` ask for; none when they were not sent."""
    given = {gate: _gate(fields, gate) for gate in (OAUTH, MTLS)}
    try:
        change = parse_gates(given)
    except FieldRefused as refused:
        change = KEEP_GATES
        fields.error(refused.place[0], refused.text)
    fields.check()
    return change


def _gate(fields: CheckedFields, gate: str) -> Any:
    """A gate as it was sent; a form carries it as text."""
    given = fields.raw(gate)
    if not isinstance(given, str):
        return given
    spelt = given.strip()
    return fields.section(gate) if spelt[:1] == "{" else fields.flag(gate, default=False) if spelt else None


def _messages(fields: CheckedFields, mapping: ServiceMapping) -> tuple[str, ...]:
    messages = fields.texts("messages", most=MAX_MESSAGES) if "messages" in fields else mapping.messages
    if not messages:
        fields.error("messages", "can't be blank")
    if not all(is_message_type(each) for each in messages):
        fields.error("messages", "must be message types such as order:new")
    return messages


def _parameter_ids(fields: CheckedFields, mapping: ServiceMapping) -> tuple[str, ...]:
    if "parameters" not in fields:
        return mapping.parameter_ids
    ids = fields.texts("parameters", most=MAX_PARAMETERS)
    if not all(is_object_id(each) for each in ids):
        fields.error("parameters", "must be ids of parameters")
    return ids


def _search_fields(fields: CheckedFields, mapping: ServiceMapping) -> tuple[str, ...]:
    if "search_fields" not in fields:
        return mapping.search_fields
    given = fields.texts("search_fields", most=MAX_FIELDS)
    if not all(is_path(each) and not each.startswith(HEADER) for each in given):
        fields.error("search_fields", f"must be paths in the payload such as order.number, of {MAX_FIELD_BYTES} bytes")
    return given


def read_filters(fields: CheckedFields, name: str = "filters") -> tuple[Filter, ...]:
    """The filters; errors are recorded in ``fields``."""
    found: list[Filter] = []
    length = instructions = 0
    for index, given in enumerate(fields.sections(name, most=MAX_FILTERS)):
        try:
            each = _filter(given)
            if each.operator is FilterOperator.MATCH:
                length += len(each.value)
                if length > MAX_PATTERN:
                    fields.error(name, f"have patterns that are longer than {MAX_PATTERN} characters together")
                    break
                instructions += _instructions(each.value)
            found.append(each)
        except Invalid as error:
            fields.error(name, f"[{index}] {error.message}")
    if instructions > MAX_INSTRUCTIONS:
        fields.error(name, f"have patterns of more than {MAX_INSTRUCTIONS} instructions together")
    return tuple(found)


def _instructions(pattern: str) -> int:
    """The size of a pattern."""
    try:
        return Pattern(pattern).instructions
    except Invalid as error:
        raise Invalid(f"value {error.message}") from error


def _filter(given: dict[str, Any]) -> Filter:
    path = given.get("path")
    if not isinstance(path, str) or not 0 < len(path) <= MAX_PATH:
        raise Invalid("has no path")
    operator, rule = given.get("operator", "eq"), given.get("match_rule") or MatchRule.ALL
    if operator not in list(FilterOperator):
        raise Invalid(f"operator must be one of {' '.join(FilterOperator)}")
    if rule not in list(MatchRule):
        raise Invalid("match_rule must be all or any")
    value = text_of(given.get("value"))
    if len(value) > MAX_VALUE:
        raise Invalid(f"value is longer than {MAX_VALUE} characters")
    return Filter(path=path, operator=FilterOperator(operator), value=value, match_rule=MatchRule(rule))


def read_identifiers(fields: CheckedFields, name: str = "identifiers") -> dict[str, str]:
    """The identifiers; errors are recorded in ``fields``."""
    given = fields.section(name)
    if len(given) > MAX_IDENTIFIERS:
        fields.error(name, f"must have at most {MAX_IDENTIFIERS} elements")
    if not all(
        isinstance(path, str) and 0 < len(path) <= MAX_PATH and len(key) <= MAX_PATH for key, path in given.items()
    ):
        fields.error(name, "must be names and paths")
        return {}
    return given


def read_options(fields: CheckedFields, options: ServiceOptions) -> ServiceOptions:
    """The options; those not sent keep their values, and ``max_attempts`` without a value means any number.

    ``allow_retries`` is an older name that endpoints still use.
    """
    asked = fields.section("options")
    given = CheckedFields(asked)
    unlimited = "max_attempts" in asked and asked["max_attempts"] in (None, "")
    older = given.flag("allow_retries", options.retries_allowed)
    base = given.number("retry_base", options.retry_base, least=1, most=LONGEST_WAIT_S)
    cap = given.number("retry_cap", options.retry_cap, least=1, most=LONGEST_WAIT_S)
    read = ServiceOptions(
        retries_allowed=given.flag("retries_allowed", older),
        retry_base=base or options.retry_base,
        retry_cap=cap or options.retry_cap,
        max_attempts=given.whole("max_attempts", None if unlimited else options.max_attempts, least=1, most=100_000),
        lenient=given.flag("lenient", options.lenient),
    )
    if read.retry_cap < read.retry_base:
        given.error("retry_cap", "must not be below retry_base")
    try:
        given.check()
    except InvalidObject as error:
        for name, messages in error.errors.items():
            for message in messages:
                fields.error("options", f"{name} {message}")
    return read


def mapping_view(mapping: ServiceMapping, store_id: str) -> dict[str, Any]:
    """A mapping as the API shows it. ``formatted_filters`` is what the admin client reads."""
    filters = [asdict(each) for each in mapping.filters]
    return {
        "id": mapping.mapping_id,
        "name": mapping.name,
        "url": mapping.url,
        "token": MASK if mapping.token else "",
        "messages": list(mapping.messages),
        "parameters": list(mapping.parameter_ids),
        "identifiers": dict(mapping.identifiers),
        "search_fields": list(mapping.search_fields),
        "filters": filters,
        "formatted_filters": filters,
        "options": asdict(mapping.options),
        "enabled": mapping.enabled,
        "required": mapping.required,
        "integration_id": mapping.integration_id,
        "store_id": store_id,
        **({"signing": True} if mapping.sealed else {}),
        **({"signing_ends": dict(mapping.signing_ends)} if mapping.signing_ends else {}),
        **gates_view(mapping),
    }
