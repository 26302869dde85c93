"""Transformations on the wire: Svix's routes, and what the function that runs code is asked and answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pushhub.base import json_text
from pushhub.base.credentials import MASK
from pushhub.base.json_text import NotJson
from pushhub.base.times import iso_time
from pushhub.engine.model.batch_content import BatchContent, BatchFormat
from pushhub.webhooks.model.transformation import (
    METHODS,
    CodeFailed,
    EventBatch,
    Language,
    Transformation,
    Webhook,
    WebhookChanges,
)
from pushhub.webhooks.wire.endpoint import header_problem
from pushhub.webhooks.wire.fields import NAME

if TYPE_CHECKING:
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.wire.fields import Fields

CODE_CHARACTERS = 10, 51_200
"""The least and the most that code may have, as at Svix."""
MAX_VARIABLES = 100
VARIABLES_BYTES = 16_384
MAX_URL = 4_096
MAX_INPUT_BYTES = 1024 * 1024
"""A larger payload is not given to code."""

ANSWERS = {"sqs": "messages", "sns": "messages", "events": "payloads"}
"""What a destination's handler returns, by the scheme of its URL."""
SINK_ANSWERS = {**ANSWERS, "s3": "object", "kinesis": "records", "http": "request", "https": "request"}
"""What the handler of a stream's sink returns."""
MOST_RECORDS = 500
"""Records that a data stream takes in one request."""

_KEY = re.compile(r"(?!/)(?!.*(?:^|/)\.{1,2}(?:/|$))[A-Za-z0-9_./=-]{1,256}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformationChange:
    """A requested change; what was not sent is not there."""

    settings: Mapping[str, Any]
    variables: Mapping[str, str] | None

    def apply(self, stored: Transformation) -> Transformation:
        """The transformation as it is wanted."""
        changed = replace(stored, **self.settings)
        return changed if self.variables is None else replace(changed, variables=as_meant(self.variables, stored))


def as_meant(given: Mapping[str, str], stored: Transformation) -> dict[str, str]:
    """Variables, with the stored values that ``********`` stands for."""
    return {name: stored.variables.get(name, text) if text == MASK else text for name, text in given.items()}


def parse_change(fields: Fields, *, of_sink: bool = False) -> TransformationChange:
    """Read a change.

    Args:
        of_sink: Whether it is one of a destination or a stream's sink. Svix's clients send the code alone there, which
            is then to be applied.
    """
    settings: dict[str, Any] = {}
    if fields.has("code"):
        settings["code"] = _code(fields) or ""
        if of_sink:
            settings["enabled"] = bool(settings["code"])
    if fields.raw("enabled") is not None:
        settings["enabled"] = fields.flag("enabled", default=False)
    if fields.raw("language") is not None:
        settings["language"] = _language(fields)
    return TransformationChange(settings=settings, variables=_variables(fields) if fields.has("variables") else None)


def _code(fields: Fields) -> str | None:
    least, most = CODE_CHARACTERS
    return fields.optional_text("code", least=least, most=most)


def _language(fields: Fields) -> Language:
    given = fields.raw("language")
    if given is None:
        return Language.JAVASCRIPT
    if given not in list(Language):
        raise fields.refuse(f"The language must be one of {', '.join(Language)}", "language")
    return Language(given)


def _variables(fields: Fields) -> dict[str, str]:
    given = fields.raw("variables")
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(each, str) for each in given.values()):
        raise fields.refuse("An object whose values are strings is required", "variables")
    size = sum(len(f"{name}{text}".encode(errors="replace")) for name, text in given.items())
    if len(given) > MAX_VARIABLES or size > VARIABLES_BYTES:
        raise fields.refuse(
            f"At most {MAX_VARIABLES} variables of {VARIABLES_BYTES} bytes together are allowed", "variables"
        )
    return dict(given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Code to be tried on a payload.

    Attributes:
        variables: None for those of the endpoint.
        payload: JSON.
    """

    code: str
    language: Language
    variables: Mapping[str, str] | None
    event_type: str
    payload: str


def parse_trial(fields: Fields) -> Trial:
    """Read a trial."""
    code, event_type, payload = _code(fields), fields.text("eventType", least=1, most=256), fields.raw("payload")
    if code is None:
        raise fields.refuse("A string is required", "code")
    if NAME.fullmatch(event_type) is None:
        raise fields.refuse("An event type has letters, digits, points, hyphens and underscores", "eventType")
    if not isinstance(payload, dict):
        raise fields.refuse("An object is required", "payload")
    return Trial(
        code=code,
        language=_language(fields),
        variables=_variables(fields) if fields.raw("variables") is not None else None,
        event_type=event_type,
        payload=json_text.write(payload),
    )


def transformation_view(transformation: Transformation) -> dict[str, Any]:
    """A transformation as its owner sees it. Values of variables are never shown again."""
    view: dict[str, Any] = {
        "code": transformation.code or None,
        "enabled": transformation.enabled,
        "variables": dict.fromkeys(transformation.variables, MASK),
        "language": transformation.language,
    }
    return {**view, "updatedAt": iso_time(transformation.updated_at)} if transformation.updated_at else view


def trial_view(webhook: Webhook, changes: WebhookChanges) -> dict[str, Any]:
    """What an endpoint would have been sent."""
    return {
        "url": webhook.url if changes.url is None else changes.url,
        "method": changes.method,
        "payload": webhook.payload if changes.shown is None else changes.shown,
        "cancel": changes.cancel,
        "headers": dict(changes.headers),
    }


def webhook_of(url: str, body: bytes, content_type: str | None, event_type: str) -> Webhook:
    """What code is given for a message.

    Args:
        url: Of the endpoint, without user information.
        content_type: Of the message; None for JSON.

    Raises:
        CodeFailed: No code can be given that.
    """
    if len(body) > MAX_INPUT_BYTES:
        raise CodeFailed(f"The payload is larger than {MAX_INPUT_BYTES} bytes")
    try:
        payload = body.decode()
    except UnicodeDecodeError as error:
        raise CodeFailed("The payload is not text") from error
    return Webhook(url=url, payload=payload, is_json=_is_json(payload, content_type), event_type=event_type)


def _is_json(payload: str, content_type: str | None) -> bool:
    if content_type is not None and "json" not in content_type.lower():
        return False
    try:
        json_text.read(payload, last_wins=True)
    except NotJson:
        return False
    return True


def answers_of(endpoint: Endpoint) -> str:
    """What the code of an endpoint is to return."""
    scheme = endpoint.fields.url.partition(":")[0].lower()
    return SINK_ANSWERS[scheme] if endpoint.reads is not None else ANSWERS.get(scheme, "webhook")


def given_for(endpoint: Endpoint, url: str, events: Sequence[Webhook]) -> Webhook | EventBatch:
    """What the code of an endpoint is given.

    Args:
        url: Where it is sent, without user information.
        events: One, unless the endpoint is a sink of a stream.
    """
    answers = answers_of(endpoint)
    if answers == "webhook":
        return events[0]
    return EventBatch(events=tuple(events), url=url if answers == "request" else "")


def request_of(
    transformation: Transformation, given: Webhook | EventBatch, answers: str, *, now: int, seed: str
) -> dict[str, object]:
    """What the function that runs code is asked.

    Args:
        answers: See :func:`answers_of`.
        now: What the code is told of the time, epoch milliseconds.
        seed: What its chance follows from.
    """
    return {
        "language": transformation.language,
        "code": transformation.code,
        "input": given.input(transformation.variables),
        "answers": answers,
        "now": now,
        "seed": seed,
    }


def read_changes(found: Mapping[str, Any], answers: str) -> WebhookChanges:
    """What the function answers. It is a stranger's word: code may have spoiled what it was run with.

    Args:
        answers: What it was asked for.

    Raises:
        CodeFailed: The code did not do its work, or made something that cannot be sent.
    """
    if "error" in found:
        raise CodeFailed(str(found.get("message", "")) or "The code failed")
    result = found.get("result")
    if not isinstance(result, Mapping):
        raise CodeFailed("The code failed")
    if result.get("cancel") is True:
        return WebhookChanges(cancel=True)
    if answers in ("object", "records"):
        return WebhookChanges(batch=_content(result, answers))
    method, url = result.get("method", METHODS[0]), result.get("url")
    if method not in METHODS:
        raise CodeFailed(f"The method must be one of {', '.join(METHODS)}")
    if url is not None and (not isinstance(url, str) or len(url) > MAX_URL or not url.isprintable()):
        raise CodeFailed("The url is none")
    return WebhookChanges(method=method, url=url, payload=_payload(result.get("payload")), headers=_headers(result))


def _content(result: Mapping[str, Any], answers: str) -> BatchContent:
    """What takes the place of a batch's events."""
    parts, key = result.get("parts"), result.get("key") or ""
    if not isinstance(parts, list) or not parts or not all(isinstance(each, str) for each in parts):
        raise CodeFailed("The data is none")
    if answers == "records":
        if len(parts) > MOST_RECORDS:
            raise CodeFailed(f"A data stream takes at most {MOST_RECORDS} messages at once")
        return BatchContent(parts=_bytes(parts), format=BatchFormat.RAW)
    if result.get("format") not in list(BatchFormat):
        raise CodeFailed("The format is none")
    if key and (not isinstance(key, str) or _KEY.fullmatch(key) is None):
        raise CodeFailed("The key may have 1 to 256 letters, digits and _ . / = -, and no parts . or ..")
    written = BatchFormat(result["format"])
    if written is BatchFormat.RAW:
        return BatchContent(parts=_bytes(parts[:1]), format=written, name=key)
    for each in parts:
        _check_json(each)
    return BatchContent(parts=_bytes(parts), format=written, name=key)


def _bytes(parts: Sequence[str]) -> tuple[bytes, ...]:
    try:
        return tuple(each.encode() for each in parts)
    except UnicodeEncodeError as error:
        raise CodeFailed("The data holds half a surrogate pair") from error


def _check_json(text: str) -> None:
    if "\n" in text:
        raise CodeFailed("The data is none")
    try:
        json_text.read(text, last_wins=True)
    except NotJson as error:
        raise CodeFailed(f"The data {error.fault}") from error


def _payload(given: object) -> str | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise CodeFailed("The payload is none")
    text = given.get("text", given.get("json"))
    if not isinstance(text, str):
        raise CodeFailed("The payload is none")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise CodeFailed("The payload holds half a surrogate pair") from error
    if "json" in given:
        try:
            json_text.read(text, last_wins=True)
        except NotJson as error:
            raise CodeFailed(f"The payload {error.fault}") from error
    return text


def _headers(result: Mapping[str, Any]) -> dict[str, str]:
    headers: dict[str, str] = {}
    pairs = result.get("headers") or []
    if not isinstance(pairs, list):
        raise CodeFailed("The headers are none")
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(each, str) for each in pair):
            raise CodeFailed("The headers are none")
        name, text = pair
        # A transformation says what it makes of a payload.
        problem = header_problem(name, text, allowed=("content-type",))
        if problem:
            raise CodeFailed(f"A header cannot be sent: {problem}")
        headers[name] = text
    if len({each.lower() for each in headers}) != len(headers):
        raise CodeFailed("A header is given twice")
    return headers
