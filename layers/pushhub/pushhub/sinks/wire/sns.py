"""Topics of Amazon SNS, standard and FIFO: ``sns://REGION/ACCOUNT/NAME``.

Source: the SNS API reference, ``Publish`` in the query protocol.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from pushhub.base.errors import Invalid
from pushhub.sinks.model.attributes import attributes_of, check_size, enveloped, group_of, short, size_of, text_of
from pushhub.sinks.model.kind import SinkCall, Unfit
from pushhub.sinks.wire.errors import faults_by_id, members_of, xml_fault
from pushhub.sinks.wire.grants import allowing, with_keys
from pushhub.sinks.wire.options import BODY, check_body, wants_envelope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pushhub.base.sink_url import SinkUrl
    from pushhub.base.verdict import Answer
    from pushhub.sinks.model.kind import ServiceFault, SinkMessage

MOST_BYTES = 262_144
"""The most that a message takes, with its attributes."""

VERSION = "2010-03-31"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,256}|[A-Za-z0-9_-]{1,251}\.fifo")
_LASTING = frozenset({"InvalidParameter", "InvalidParameterValue", "ParameterValueInvalid", "ValidationError"})


class Sns:
    """Topics. The attributes are what subscriptions filter by: ``webhook-event-type`` among them."""

    scheme = "sns"
    service = "sns"
    host = "sns"
    options = (BODY,)
    most = 10
    most_bytes = MOST_BYTES

    def check(self, url: SinkUrl) -> None:
        """See the kind."""
        if _NAME.fullmatch(url.name) is None:
            raise Invalid("The url must end with the name of a topic, as in sns://eu-west-1/123456789012/orders")
        check_body(url)

    def grants(self, url: SinkUrl) -> list[Mapping[str, object]]:
        """See the kind."""
        return [allowing("sns:Publish", topic_arn(url)), with_keys(url, self.host)]

    def call(self, url: SinkUrl, message: SinkMessage) -> SinkCall:
        """See the kind."""
        text, attributes = _parts(url, message)
        if not text:
            raise Unfit("The body is empty, which this service refuses")
        check_size(text, attributes, MOST_BYTES)
        return _request("Publish", url, _entry(url, message))

    def size(self, url: SinkUrl, message: SinkMessage) -> int:
        """See the kind."""
        return size_of(*_parts(url, message))

    def call_many(self, url: SinkUrl, messages: Sequence[SinkMessage]) -> SinkCall:
        """See the kind."""
        form: dict[str, str] = {}
        for number, each in enumerate(messages):
            place = f"PublishBatchRequestEntries.member.{number + 1}"
            form[f"{place}.Id"] = str(number)
            form |= {f"{place}.{name}": value for name, value in _entry(url, each).items()}
        return _request("PublishBatch", url, form)

    def refusal(self, answer: Answer) -> ServiceFault | None:
        """See the kind."""
        return xml_fault(answer, _LASTING)

    def faults(self, answer: Answer, count: int) -> list[ServiceFault | None]:
        """See the kind."""
        text = answer.body.decode(errors="replace")
        failed = {
            each["Id"]: (each.get("Code", ""), each.get("Message", ""))
            for each in members_of(text, "Failed")
            if "Id" in each
        }
        done = {each.get("Id", "") for each in members_of(text, "Successful")}
        return faults_by_id(done, failed, count, answer, _LASTING)

    def fault(self, answer: Answer) -> ServiceFault | None:
        """See the kind."""
        return xml_fault(answer, _LASTING)


def _parts(url: SinkUrl, message: SinkMessage) -> tuple[str, dict[str, str]]:
    text = enveloped(message) if wants_envelope(url) else text_of(message.body)
    return text, attributes_of(message)


def _entry(url: SinkUrl, message: SinkMessage) -> dict[str, str]:
    text, attributes = _parts(url, message)
    form = {"Message": text}
    for number, (name, value) in enumerate(attributes.items(), 1):
        place = f"MessageAttributes.entry.{number}"
        form |= {f"{place}.Name": name, f"{place}.Value.DataType": "String", f"{place}.Value.StringValue": value}
    if url.name.endswith(".fifo"):
        form |= {"MessageGroupId": group_of(message), "MessageDeduplicationId": short(message.once)}
    return form


def _request(action: str, url: SinkUrl, form: Mapping[str, str]) -> SinkCall:
    whole = {"Action": action, "Version": VERSION, "TopicArn": topic_arn(url), **form}
    headers = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
    return SinkCall(path="/", headers=headers, body=urlencode(whole).encode())


def topic_arn(url: SinkUrl) -> str:
    """The ARN of a topic."""
    return f"arn:{url.partition}:sns:{url.region}:{url.account}:{url.name}"
