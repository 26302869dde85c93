"""Event buses of Amazon EventBridge: ``events://REGION/ACCOUNT/NAME[?source=...&detailType=...]``.

Source: the EventBridge API reference, ``PutEvents`` (``application/x-amz-json-1.1``). Its entries are refused one by
one in an answer with status 200.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pushhub.base import json_text
from pushhub.base.errors import Invalid
from pushhub.sinks.model.attributes import as_json, enveloped, text_of
from pushhub.sinks.model.kind import SinkCall, Unfit
from pushhub.sinks.wire.errors import NOT_SAID, fault_of, json_fault, object_of
from pushhub.sinks.wire.grants import allowing
from pushhub.sinks.wire.options import BODY, check_body, wants_envelope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pushhub.base.sink_url import SinkUrl
    from pushhub.base.verdict import Answer
    from pushhub.sinks.model.kind import ServiceFault, SinkMessage

MOST_BYTES = 1_000_000
"""The most that an event takes: source, type, detail, resources and time. AWS says "less than 1 MB"."""

MOST_TYPE = 128
"""The longest detail type, in characters."""

SOURCE = "pushhub"
"""Where events come from, if the URL does not say it."""

_TIME_BYTES = 14
_NAME = re.compile(r"[A-Za-z0-9._/-]{1,256}")
_SOURCE = re.compile(r"(?!aws\.)[^\x00-\x1f\x7f\ud800-\udfff]{1,256}")
_TYPE = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,128}")
_LASTING = frozenset({"MalformedDetail", "InvalidArgument", "ValidationException", "InvalidEventPattern"})


class EventBuses:
    """Event buses. The payload is the event's detail; what is no JSON object is wrapped in one, as ``payload``."""

    scheme = "events"
    service = "events"
    host = "events"
    options = ("source", "detailType", BODY)
    most = 10
    most_bytes = MOST_BYTES - 1

    def check(self, url: SinkUrl) -> None:
        """See the kind."""
        if _NAME.fullmatch(url.name) is None:
            raise Invalid(
                "The url must end with the name of an event bus, as in events://eu-west-1/123456789012/default"
            )
        if "source" in url.options and _SOURCE.fullmatch(url.options["source"]) is None:
            raise Invalid('source must be a text of 1 to 256 characters that does not begin with "aws."')
        if "detailType" in url.options and _TYPE.fullmatch(url.options["detailType"]) is None:
            raise Invalid(f"detailType must be a text of 1 to {MOST_TYPE} characters")
        check_body(url)

    def grants(self, url: SinkUrl) -> list[Mapping[str, object]]:
        """See the kind."""
        return [allowing("events:PutEvents", bus_arn(url))]

    def call(self, url: SinkUrl, message: SinkMessage) -> SinkCall:
        """See the kind."""
        return _request([_entry(url, message)])

    def size(self, url: SinkUrl, message: SinkMessage) -> int:
        """See the kind."""
        return _size(_entry(url, message))

    def call_many(self, url: SinkUrl, messages: Sequence[SinkMessage]) -> SinkCall:
        """See the kind."""
        return _request([_entry(url, each) for each in messages])

    def fault(self, answer: Answer) -> ServiceFault | None:
        """See the kind."""
        return json_fault(answer, _LASTING) or self.faults(answer, 1)[0]

    def refusal(self, answer: Answer) -> ServiceFault | None:
        """See the kind."""
        return json_fault(answer, _LASTING)

    def faults(self, answer: Answer, count: int) -> list[ServiceFault | None]:
        """See the kind."""
        said = object_of(answer.body).get("Entries")
        entries = said if isinstance(said, list) else []
        return [_fault(entries[at] if at < len(entries) else None, answer) for at in range(count)]


def _detail(text: str) -> str:
    """The text if it is a JSON object, and an object with it otherwise."""
    written = as_json(text)
    return written if written.lstrip(" \t\r\n").startswith("{") else json_text.object_of({"payload": written})


def _entry(url: SinkUrl, message: SinkMessage) -> dict[str, object]:
    source = url.options.get("source", SOURCE)
    named = url.options.get("detailType") or message.about
    if _TYPE.fullmatch(named) is None:
        raise Unfit(f"The event type is no detail type of 1 to {MOST_TYPE} characters; set detailType in the url")
    entry: dict[str, object] = {
        "Source": source,
        "DetailType": named,
        "Detail": enveloped(message) if wants_envelope(url) else _detail(text_of(message.body)),
        "EventBusName": bus_arn(url),
        "Time": message.at // 1000,
        # There are no attributes: the id is where it can be found without being part of the payload.
        "Resources": [message.message_id],
    }
    size = _size(entry)
    if size >= MOST_BYTES:
        raise Unfit(f"The event takes {size} bytes, and this service takes less than {MOST_BYTES}")
    return entry


def _size(entry: Mapping[str, Any]) -> int:
    texts = [*(entry[each] for each in ("Source", "DetailType", "Detail")), *entry["Resources"]]
    return sum(len(str(each).encode(errors="surrogatepass")) for each in texts) + _TIME_BYTES


def _request(entries: Sequence[Mapping[str, object]]) -> SinkCall:
    headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "AWSEvents.PutEvents"}
    return SinkCall(path="/", headers=headers, body=json_text.write({"Entries": entries}).encode())


def _fault(entry: object, answer: Answer) -> ServiceFault | None:
    if not isinstance(entry, dict) or not entry:
        return NOT_SAID
    if entry.get("EventId") and not entry.get("ErrorCode"):
        return None
    return fault_of(entry.get("ErrorCode", ""), entry.get("ErrorMessage", ""), answer, _LASTING)


def bus_arn(url: SinkUrl) -> str:
    """The ARN of an event bus."""
    return f"arn:{url.partition}:events:{url.region}:{url.account}:event-bus/{url.name}"
