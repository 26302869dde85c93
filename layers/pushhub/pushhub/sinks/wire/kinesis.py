"""Data streams of Amazon Kinesis: ``kinesis://REGION/ACCOUNT/NAME[?partition=id]``.

Source: the Kinesis API reference, ``PutRecords`` in the JSON protocol (``application/x-amz-json-1.1``).
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

from pushhub.base import json_text
from pushhub.base.errors import Invalid
from pushhub.base.sink_url import ANY_ACCOUNT
from pushhub.sinks.model.attributes import short
from pushhub.sinks.model.batch import line_of
from pushhub.sinks.model.kind import ServiceFault, SinkCall
from pushhub.sinks.wire.errors import json_fault, object_of
from pushhub.sinks.wire.grants import allowing, with_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.base.sink_url import SinkUrl
    from pushhub.base.verdict import Answer
    from pushhub.sinks.model.kind import SinkMessage

PARTITION = "partition"
"""The option that spreads messages over shards."""

BY_ID = "id"
"""Each message goes by its own id, and no order is kept. Otherwise all of a receiver's go to one shard, in order."""

_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,128}")


class DataStreams:
    """Data streams. One request has up to 500 records; if some are refused, all of them are sent again, so that the
    order within a shard is right from the last repetition on. Each record names its message.
    """

    scheme = "kinesis"
    service = "kinesis"
    host = "kinesis"
    options = (PARTITION,)

    def check(self, url: SinkUrl) -> None:
        """See the kind."""
        if _NAME.fullmatch(url.name) is None:
            raise Invalid("The url must end with the name of a stream, as in kinesis://eu-west-1/123456789012/orders")
        if url.options.get(PARTITION, BY_ID) != BY_ID:
            raise Invalid(f"The option {PARTITION} of the url can only be {BY_ID}")

    def grants(self, url: SinkUrl) -> list[Mapping[str, object]]:
        """See the kind."""
        account = "*" if url.account == ANY_ACCOUNT else url.account
        arn = f"arn:{url.partition}:kinesis:{url.region}:{account}:stream/{url.name}"
        return [allowing("kinesis:PutRecords", arn), with_keys(url, self.host)]

    def call(self, url: SinkUrl, message: SinkMessage) -> SinkCall:
        """See the kind."""
        spread = PARTITION in url.options
        if message.content is not None:
            records = [
                _record(each, f"{message.message_id}/{number}" if spread else message.receiver)
                for number, each in enumerate(message.content.parts)
            ]
        elif message.batch:
            records = [
                _record(line_of(each).encode(), each.message_id if spread else message.receiver)
                for each in message.batch
            ]
        else:
            alone = message.message_id if spread else message.group or message.receiver
            records = [_record(message.body, alone)]
        content: dict[str, object] = {"StreamName": url.name, "Records": records}
        if url.account != ANY_ACCOUNT:
            content["StreamARN"] = f"arn:{url.partition}:kinesis:{url.region}:{url.account}:stream/{url.name}"
        headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "Kinesis_20131202.PutRecords"}
        return SinkCall(path="/", headers=headers, body=json_text.write(content).encode())

    def fault(self, answer: Answer) -> ServiceFault | None:
        """See the kind. An answer that is right by its status may say that some records were refused."""
        fault = json_fault(answer, ())
        if fault is not None:
            return fault
        said = object_of(answer.body)
        if said.get("FailedRecordCount") == 0:
            return None
        records = said.get("Records")
        listed = records if isinstance(records, list) else []
        refused = [each for each in listed if isinstance(each, dict) and "ErrorCode" in each]
        if not refused:
            return ServiceFault(code="Unclear", text="The answer does not say what became of the records")
        code, text = refused[0].get("ErrorCode"), refused[0].get("ErrorMessage", "")
        return ServiceFault(
            code=code if isinstance(code, str) else "Refused", text=text if isinstance(text, str) else ""
        )


def _record(data: bytes, key: str) -> dict[str, str]:
    return {"Data": base64.b64encode(data).decode(), "PartitionKey": short(key)}
