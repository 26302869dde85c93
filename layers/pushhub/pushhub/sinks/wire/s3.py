"""Buckets of Amazon S3: ``s3://REGION/ACCOUNT/BUCKET[?prefix=PREFIX]``.

Buckets are named without an account: ``000000000000`` stands for any, and any other account has to own the bucket.
Source: the S3 API reference, ``PutObject``.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

from pushhub.base.errors import Invalid
from pushhub.base.sink_url import ANY_ACCOUNT
from pushhub.engine.model.batch_content import BatchContent, BatchFormat
from pushhub.sinks.model.attributes import segment
from pushhub.sinks.model.batch import line_of
from pushhub.sinks.model.kind import SinkCall
from pushhub.sinks.wire.errors import xml_fault
from pushhub.sinks.wire.grants import allowing, with_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.base.sink_url import SinkUrl
    from pushhub.base.verdict import Answer
    from pushhub.sinks.model.kind import ServiceFault, SinkMessage

PREFIX = "prefix"
"""The option that says what the names of objects begin with."""

_EXTENSIONS = {BatchFormat.LINES: ".jsonl", BatchFormat.JSON: ".json", BatchFormat.RAW: ""}
_TYPES = {
    BatchFormat.LINES: "application/x-ndjson",
    BatchFormat.JSON: "application/json",
    BatchFormat.RAW: "application/octet-stream",
}
_BUCKET = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"(?!/)(?!.*(?:^|/)\.{1,2}(?:/|$))[A-Za-z0-9_./=-]{1,256}")


class Buckets:
    """Buckets. An object's name follows from what is in it: whatever is written again takes the place of the same."""

    scheme = "s3"
    service = "s3"
    host = "s3"
    options = (PREFIX,)

    def check(self, url: SinkUrl) -> None:
        """See the kind."""
        if _BUCKET.fullmatch(url.name) is None:
            raise Invalid("The url must end with the name of a bucket, as in s3://eu-west-1/000000000000/orders")
        if PREFIX in url.options and _PREFIX.fullmatch(url.options[PREFIX]) is None:
            raise Invalid("The prefix may have 1 to 256 letters, digits and _ . / = -, and no parts . or ..")

    def grants(self, url: SinkUrl) -> list[Mapping[str, object]]:
        """See the kind."""
        objects = f"arn:{url.partition}:s3:::{url.name}/{url.options.get(PREFIX, '')}*"
        return [allowing("s3:PutObject", objects), with_keys(url, self.host)]

    def call(self, url: SinkUrl, message: SinkMessage) -> SinkCall:
        """See the kind."""
        owner = {} if url.account == ANY_ACCOUNT else {"x-amz-expected-bucket-owner": url.account}
        if message.batch:
            content = message.content or BatchContent(parts=tuple(line_of(each).encode() for each in message.batch))
            name = f"{_batch_name(message, content.name)}{_EXTENSIONS[content.format]}"
            body, kind = content.whole, _TYPES[content.format]
        else:
            own = "" if message.message_id == message.own_id else f"-{message.own_id}"
            name = f"{_folder(message.receiver, message.at)}/{segment(message.message_id)}{own}"
            body, kind = message.body, "application/octet-stream"
        # S3 verifies the signature of a path in which all but letters, digits and _ . ~ / - is escaped, whatever came.
        path = quote(f"/{url.name}/{url.options.get(PREFIX, '')}{name}")
        return SinkCall(method="PUT", path=path, headers={"Content-Type": kind, **owner}, body=body)

    def fault(self, answer: Answer) -> ServiceFault | None:
        """See the kind. Nothing is wrong with a message for good: its bucket may be made, or opened."""
        return xml_fault(answer, ())


def _batch_name(message: SinkMessage, wanted: str) -> str:
    """What a batch's object is called, but its extension. It holds the receiver's id and those of its first and last
    message, so that nothing takes the place of anything else, whatever an owner's code calls it.
    """
    first, last = message.batch[0], message.batch[-1]
    span = f"{segment(first.message_id)}-{segment(last.message_id)}"
    return f"{wanted}-{message.receiver}-{span}" if wanted else f"{_folder(message.receiver, first.at)}/{span}"


def _folder(receiver: str, at: int) -> str:
    """The folder of what was accepted within an hour: two receivers with one bucket have folders of their own."""
    return f"{receiver}/{datetime.fromtimestamp(at / 1000, UTC):%Y/%m/%d/%H}"
