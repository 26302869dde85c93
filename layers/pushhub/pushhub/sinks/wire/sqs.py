"""Queues of Amazon SQS, standard and FIFO: ``sqs://REGION/ACCOUNT/NAME``.

Source: the SQS API reference, ``SendMessage`` in the JSON protocol (``application/x-amz-json-1.0``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pushhub.base import json_text
from pushhub.base.errors import Invalid
from pushhub.sinks.model.attributes import attributes_of, check_size, enveloped, group_of, short, size_of, text_of
from pushhub.sinks.model.kind import SinkCall, Unfit
from pushhub.sinks.wire.errors import faults_by_id, json_fault, object_of
from pushhub.sinks.wire.grants import allowing, with_keys
from pushhub.sinks.wire.options import BODY, check_body, wants_envelope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pushhub.base.sink_url import SinkUrl
    from pushhub.base.verdict import Answer
    from pushhub.sinks.model.kind import ServiceFault, SinkMessage

MOST_BYTES = 1_048_576
"""The most that a message takes, with its attributes."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo")
_LASTING = frozenset(
    {
        *("InvalidMessageContents", "InvalidParameterValue", "InvalidParameterValueException"),
        *("InvalidAttributeValue", "MessageTooLong", "BatchRequestTooLong"),
    }
)


class Sqs:
    """Queues. A FIFO queue keeps the order of an ordering key, and drops a message that it was sent in the last five
    minutes.
    """

    scheme = "sqs"
    service = "sqs"
    host = "sqs"
    options = (BODY,)
    most = 10
    most_bytes = MOST_BYTES

    def check(self, url: SinkUrl) -> None:
        """See the kind."""
        if _NAME.fullmatch(url.name) is None:
            raise Invalid("The url must end with the name of a queue, as in sqs://eu-west-1/123456789012/orders")
        check_body(url)

    def grants(self, url: SinkUrl) -> list[Mapping[str, object]]:
        """See the kind."""
        arn = f"arn:{url.partition}:sqs:{url.region}:{url.account}:{url.name}"
        return [allowing("sqs:SendMessage", arn), with_keys(url, self.host)]

    def call(self, url: SinkUrl, message: SinkMessage) -> SinkCall:
        """See the kind."""
        text, attributes = _parts(url, message)
        if not text:
            # In a call with others, it would have all of them refused.
            raise Unfit("The body is empty, which this service refuses")
        check_size(text, attributes, MOST_BYTES)
        return _request("SendMessage", {"QueueUrl": queue_url(url), **_entry(url, message)})

    def size(self, url: SinkUrl, message: SinkMessage) -> int:
        """See the kind."""
        return size_of(*_parts(url, message))

    def call_many(self, url: SinkUrl, messages: Sequence[SinkMessage]) -> SinkCall:
        """See the kind."""
        entries = [{"Id": str(number), **_entry(url, each)} for number, each in enumerate(messages)]
        return _request("SendMessageBatch", {"QueueUrl": queue_url(url), "Entries": entries})

    def refusal(self, answer: Answer) -> ServiceFault | None:
        """See the kind."""
        return json_fault(answer, _LASTING)

    def faults(self, answer: Answer, count: int) -> list[ServiceFault | None]:
        """See the kind."""
        said = object_of(answer.body)
        failed = {str(each.get("Id")): (each.get("Code"), each.get("Message")) for each in _objects(said, "Failed")}
        done = {str(each.get("Id")) for each in _objects(said, "Successful")}
        return faults_by_id(done, failed, count, answer, _LASTING)

    def fault(self, answer: Answer) -> ServiceFault | None:
        """See the kind."""
        return json_fault(answer, _LASTING)


def _parts(url: SinkUrl, message: SinkMessage) -> tuple[str, dict[str, str]]:
    text = enveloped(message) if wants_envelope(url) else text_of(message.body)
    return text, attributes_of(message)


def _entry(url: SinkUrl, message: SinkMessage) -> dict[str, object]:
    text, attributes = _parts(url, message)
    content: dict[str, object] = {
        "MessageBody": text,
        "MessageAttributes": {name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()},
    }
    if url.name.endswith(".fifo"):
        content |= {"MessageGroupId": group_of(message), "MessageDeduplicationId": short(message.once)}
    return content


def _request(operation: str, content: Mapping[str, object]) -> SinkCall:
    headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"AmazonSQS.{operation}"}
    return SinkCall(path="/", headers=headers, body=json_text.write(content).encode())


def _objects(said: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    found = said.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def queue_url(url: SinkUrl) -> str:
    """The URL by which SQS itself knows a queue."""
    place = url.endpoint.rstrip("/") or f"https://sqs.{url.region}.{url.domain}"
    return f"{place}/{url.account}/{url.name}"
