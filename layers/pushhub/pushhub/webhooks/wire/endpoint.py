"""Endpoints, their headers and secrets on the wire."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from pushhub.base.credentials import MASK, masked_url, place_of, user_of, with_user
from pushhub.base.errors import Invalid
from pushhub.base.signing import DEFAULT_GRACE_S, MAX_GRACE_S, SigningKey, parse_key
from pushhub.base.times import iso_time
from pushhub.webhooks.model.cloud_events import CloudEvents, Mode
from pushhub.webhooks.model.endpoint import Endpoint, EndpointFields, is_sensitive
from pushhub.webhooks.model.ids import IdPrefix
from pushhub.webhooks.model.payload_filter import Operator, PayloadFilter
from pushhub.webhooks.model.refusals import unprocessable
from pushhub.webhooks.wire.fields import NAME, Fields
from pushhub.webhooks.wire.settings import SettingsFields

if TYPE_CHECKING:
    from pushhub.webhooks.model.reading import Reading

CHANNEL = re.compile(r"[a-zA-Z0-9\-_.:+]{1,128}")

MAX_CHANNELS = 10
MAX_EVENT_TYPES = 1_000
MAX_HEADERS = 100
MAX_FILTERS = 10
MAX_FILTER_VALUES = 50
MAX_FILTER_TEXT = 200
HEADER_BYTES = 4_096
ALL_HEADERS_BYTES = 65_536

_FORBIDDEN = frozenset(
    [
        "user-agent",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailers",
        "transfer-encoding",
        "upgrade",
        "age",
        "cache-control",
        "clear-site-data",
        "expires",
        "pragma",
        "warning",
        "content-length",
        "content-type",
        "content-encoding",
        "content-language",
        "content-location",
        "host",
        "connection",
    ]
)
_FORBIDDEN_PREFIXES = (
    *("x-amz-", "x-amzn-", "x-google", "x-goog-", "x-gfe", "x-azure-", "x-fd-", "x-svix-", "svix-", "webhook-"),
)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
_HEADER_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]*")


def _cloud_events(fields: Fields, name: str) -> CloudEvents | None:
    given = fields.section(name)
    if given is None:
        return None
    mode = given.raw("mode")
    if mode not in list(Mode):
        raise given.refuse(f"The mode must be one of {', '.join(Mode)}", "mode")
    callback = given.flag("callback", default=False)
    consent = given.flag("consent", default=callback)
    if callback and not consent:
        raise given.refuse(
            "callback needs consent: only an endpoint that is asked for consent can give it later", "callback"
        )
    return CloudEvents(mode=Mode(mode), consent=consent, callback=callback)


def _filters(fields: Fields, name: str) -> tuple[PayloadFilter, ...]:
    value = fields.raw(name)
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MAX_FILTERS:
        raise fields.refuse(f"A list of up to {MAX_FILTERS} filters is required", "payloadFilters")
    return tuple(_filter(fields, each, str(place)) for place, each in enumerate(value))


def _filter(fields: Fields, value: Any, place: str) -> PayloadFilter:
    given = value if isinstance(value, dict) else {}
    path, operator, against = given.get("path"), given.get("operator"), given.get("value")
    if not isinstance(path, str) or not 1 <= len(path) <= MAX_FILTER_TEXT:
        raise fields.refuse("A filter must have a path such as order.status", "payloadFilters", place)
    if operator not in list(Operator):
        raise fields.refuse(f"A filter's operator must be one of {', '.join(Operator)}", "payloadFilters", place)
    if not _comparable(Operator(operator), against):
        raise fields.refuse("The filter's value does not fit its operator", "payloadFilters", place)
    return PayloadFilter(path=path, operator=Operator(operator), value=against)


def _comparable(operator: Operator, value: Any) -> bool:
    match operator:
        case Operator.EXISTS:
            return isinstance(value, bool)
        case Operator.BEGINS_WITH:
            return isinstance(value, str) and len(value) <= MAX_FILTER_TEXT
        case Operator.GREATER | Operator.LESS:
            return isinstance(value, int | float) and not isinstance(value, bool)
        case Operator.ONE_OF:
            return isinstance(value, list) and len(value) <= MAX_FILTER_VALUES and all(map(_plain, value))
        case _:
            return _plain(value)


def _plain(value: Any) -> bool:
    return (
        value is None
        or isinstance(value, bool | int | float)
        or (isinstance(value, str) and len(value) <= MAX_FILTER_TEXT)
    )


def parse_url(fields: Fields) -> str:
    """The URL; whether there is a kind of subscriber for a scheme other than HTTP's is not checked here."""
    text = fields.text("url", least=1)
    try:
        parts = urlsplit(text)
        usable = bool(parts.scheme and (parts.hostname or parts.path)) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or "://" not in text or re.search(r"[\x00-\x20\x7f\\\ud800-\udfff]", text):
        raise fields.refuse("The URL must be a valid http or https URL", "url")
    if not is_http(text):
        return text
    if not parts.hostname:
        raise fields.refuse("The URL must be a valid http or https URL", "url")
    from pushhub.egress.guard import unusable  # noqa: PLC0415 (few requests give a URL)

    reason = unusable(text)
    if reason is not None:
        raise fields.refuse(f"The URL must be a valid http or https URL: {reason}", "url")
    return _as_browsers_write_it(text, parts)


def _as_browsers_write_it(text: str, parts: SplitResult) -> str:
    """An HTTP URL normalized by the mildest WHATWG rules: lower-case scheme and host, no default port, a path."""
    scheme = parts.scheme
    user, at, place = parts.netloc.rpartition("@")
    place = place.lower().removesuffix(":").removesuffix(":443" if scheme == "https" else ":80")
    rest = text[text.index("://") + 3 + len(parts.netloc) :]
    if not parts.path and not parts.query:
        rest = ""
    return f"{scheme}://{user}{at}{place}{rest if rest.startswith('/') else f'/{rest}'}"


def is_http(url: str) -> bool:
    """Whether a URL is an HTTP one; any other belongs to another kind of subscriber."""
    return url[:8].lower().startswith(("http://", "https://"))


_SETTINGS = SettingsFields(
    EndpointFields,
    read={
        "url": lambda fields, _: parse_url(fields),
        "uid": lambda fields, name: fields.uid(name, IdPrefix.ENDPOINT),
        "event_types": lambda fields, name: fields.names(name, NAME, most=MAX_EVENT_TYPES),
        "channels": lambda fields, name: fields.names(name, CHANNEL, most=MAX_CHANNELS),
        "filters": _filters,
        "cloud_events": _cloud_events,
    },
    show={
        "filters": lambda value: [
            {"path": each.path, "operator": each.operator.value, "value": each.value} for each in value
        ],
        "cloud_events": lambda value: {"mode": value.mode.value, "consent": value.consent},
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointChange:
    """A requested change of an endpoint's fields.

    Attributes:
        settings: What they are to be, by field.
        url: What the URL is to be, given the one that is stored when the change is made; None for that of the settings.
    """

    settings: Mapping[str, Any]
    url: Callable[[str], str] | None = None

    def apply(self, stored: EndpointFields) -> EndpointFields:
        """The fields after the change.

        Args:
            stored: The opened ones.
        """
        with_url = {} if self.url is None else {"url": self.url(stored.url)}
        return _url_as_meant(replace(stored, **{**self.settings, **with_url}), stored)


def parse_endpoint(fields: Fields) -> EndpointChange:
    """Read an endpoint to be replaced; whether its event types exist is not checked here."""
    return EndpointChange(settings=_SETTINGS.given(fields, all_of_them=True))


def parse_endpoint_patch(fields: Fields) -> EndpointChange:
    """Read a change of an endpoint's fields: those that were sent."""
    return EndpointChange(settings=_SETTINGS.given(fields))


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEndpoint:
    """An endpoint that is asked for.

    Attributes:
        key: Its signing key; None to generate one.
        headers: Sent with each message.
        reads: How it reads its stream, if it is a sink of one.
    """

    fields: EndpointFields
    key: SigningKey | None
    headers: Mapping[str, str]
    reads: Reading | None = None


def parse_new_endpoint(fields: Fields) -> NewEndpoint:
    """Read an endpoint to be created; whether its event types exist is not checked here."""
    wanted = _url_as_meant(EndpointFields(**parse_endpoint(fields).settings), None)
    key = parse_secret(fields, "secret")
    return NewEndpoint(fields=wanted, key=key, headers=_as_meant(parse_headers(fields), {}))


def _url_as_meant(given: EndpointFields, stored: EndpointFields | None) -> EndpointFields:
    """An owner's fields, with the user information that ``********`` in the URL stands for: the stored one's.

    Args:
        given: As they were sent.
        stored: The opened ones; None for a new endpoint.

    Raises:
        Unprocessable: None is stored, or it belongs to another host, which must not get it.
    """
    if user_of(given.url) != MASK:
        return given
    user = user_of(stored.url) if stored and place_of(stored.url) == place_of(given.url) else None
    if user is None:
        raise unprocessable(f"{MASK} stands for a stored value, and there is none for this URL", "body", "url")
    return replace(given, url=with_user(given.url, user))


def parse_secret(fields: Fields, name: str) -> SigningKey | None:
    """A signing key given by an owner; None when absent or null, in which case one is generated."""
    text = fields.optional_text(name)
    if text is None:
        return None
    try:
        return parse_key(text)
    except Invalid as error:
        raise fields.refuse(error.message, name) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """A requested change of the signing key.

    Attributes:
        key: The new key; None to generate one.
        grace_s: Seconds for which the old key also signs.
    """

    key: SigningKey | None
    grace_s: int


def parse_rotation(fields: Fields) -> Rotation:
    """Read a rotation of the secret."""
    grace = fields.whole("gracePeriodSeconds", least=0, most=MAX_GRACE_S)
    return Rotation(key=parse_secret(fields, "key"), grace_s=DEFAULT_GRACE_S if grace is None else grace)


def parse_headers(fields: Fields, name: str = "headers") -> dict[str, str]:
    """All headers of an endpoint; none when absent or null."""
    value = fields.raw(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise fields.refuse("An object whose values are strings is required", name)
    for header, text in value.items():
        problem = header_problem(header, text)
        if problem:
            raise fields.refuse(problem, name, header)
    return _checked_together(dict(value))


def header_problem(header: str, text: object, *, allowed: Collection[str] = ()) -> str:
    """Why a header may not be set; empty if it may.

    Args:
        allowed: Headers, in lower case, that may be set although endpoints have none of them.
    """
    lower = header.lower()
    if _HEADER_NAME.fullmatch(header) is None:
        return "A header's name has characters that may not be sent"
    if (lower in _FORBIDDEN and lower not in allowed) or lower.startswith(_FORBIDDEN_PREFIXES):
        return "This header may not be set"
    if not isinstance(text, str) or len(text.encode(errors="replace")) > HEADER_BYTES:
        return f"A header's value must be a string of up to {HEADER_BYTES} bytes"
    if _HEADER_VALUE.fullmatch(text) is None:
        return "A header's value contains control characters"
    return ""


def _checked_together(headers: dict[str, str]) -> dict[str, str]:
    """Check headers that are sent together."""
    if len({each.lower() for each in headers}) != len(headers):
        raise unprocessable("A header is given twice", "body", "headers")
    size = sum(len(name) + len(text.encode(errors="replace")) for name, text in headers.items())
    if len(headers) > MAX_HEADERS or size > ALL_HEADERS_BYTES:
        raise unprocessable(
            f"At most {MAX_HEADERS} headers of {ALL_HEADERS_BYTES} bytes together are allowed", "body", "headers"
        )
    return headers


def _as_meant(headers: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, str]:
    """An owner's headers, with the values that ``********`` stands for: those of the stored headers."""
    present = {name.lower(): text for name, text in stored.items()}
    missing = next((name for name, text in headers.items() if text == MASK and name.lower() not in present), None)
    if missing is not None:
        raise unprocessable(f"{MASK} stands for a stored value, and there is none", "body", "headers", missing)
    return {name: present[name.lower()] if text == MASK else text for name, text in headers.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderChange:
    """A requested change of an endpoint's headers.

    Attributes:
        set: Headers to add or replace.
        removed: Names to remove, in lower case; None for all others.
    """

    set: Mapping[str, str]
    removed: frozenset[str] | None

    def apply(self, stored: Mapping[str, str]) -> dict[str, str]:
        """The headers after the change.

        Raises:
            Unprocessable: There are too many, or there is none that ``********`` could stand for.
        """
        gone = None if self.removed is None else self.removed | {each.lower() for each in self.set}
        kept = {} if gone is None else {name: text for name, text in stored.items() if name.lower() not in gone}
        return _checked_together({**kept, **_as_meant(self.set, stored)})


def parse_all_headers(fields: Fields) -> HeaderChange:
    """Read the headers that an endpoint is to have from now on."""
    if fields.raw("headers") is None:
        raise fields.refuse("An object whose values are strings is required", "headers")
    return HeaderChange(set=parse_headers(fields), removed=None)


def parse_header_change(fields: Fields) -> HeaderChange:
    """Read a change of some headers: null (1.x) or ``deleteHeaders`` (2.x) removes one."""
    value = fields.raw("headers")
    if value is not None and not isinstance(value, dict):
        raise fields.refuse("An object whose values are strings is required", "headers")
    given: dict[str, Any] = value or {}
    nulls = {name for name, text in given.items() if text is None}
    for name in nulls:
        problem = header_problem(name, "")
        if problem:
            raise fields.refuse(problem, "headers", name)
    listed = fields.raw("deleteHeaders")
    if listed is not None and (not isinstance(listed, list) or not all(isinstance(each, str) for each in listed)):
        raise fields.refuse("A list of strings is required", "deleteHeaders")
    kept = Fields({"headers": {name: text for name, text in given.items() if text is not None}})
    return HeaderChange(set=parse_headers(kept), removed=frozenset(each.lower() for each in (*nulls, *(listed or ()))))


def headers_view(headers: Mapping[str, str]) -> dict[str, Any]:
    """Headers as shown to their owner: sensitive ones by name only."""
    sensitive = [name for name in headers if is_sensitive(name)]
    return {
        "headers": {name: text for name, text in headers.items() if name not in sensitive},
        "sensitive": sorted(sensitive),
    }


def endpoint_view(endpoint: Endpoint, url_as_shown: Callable[[str], str]) -> dict[str, Any]:
    """An endpoint as old and new clients read it."""
    fields = endpoint.fields
    event_types = None if fields.event_types is None else list(fields.event_types)
    shown: dict[str, Any] = {
        "id": endpoint.endpoint_id,
        "uid": fields.uid,
        "url": masked_url(url_as_shown(fields.url)),
        "version": fields.version,
        "description": fields.description,
        "disabled": fields.disabled,
        "eventTypes": event_types,
        "filterTypes": event_types,
        "channels": None if fields.channels is None else list(fields.channels),
        "throttleRate": fields.throttle_rate,
        "rateLimit": fields.throttle_rate,
        "metadata": dict(fields.metadata),
        "createdAt": iso_time(endpoint.created_at),
        "updatedAt": iso_time(endpoint.updated_at),
    }
    shown |= _SETTINGS.additions(fields)
    if fields.cloud_events:
        if fields.cloud_events.consent:
            shown["cloudEvents"] |= {"allowedRate": endpoint.allowed_rate, "consented": not endpoint.awaits_consent}
        if fields.cloud_events.callback:
            shown["cloudEvents"]["callback"] = True
        if endpoint.question is not None and not endpoint.question.answered:
            if fields.cloud_events.callback:
                shown["cloudEvents"]["callbackUntil"] = iso_time(endpoint.question.until)
            if endpoint.question.problem:
                shown["cloudEvents"]["consentProblem"] = endpoint.question.problem
    return shown
