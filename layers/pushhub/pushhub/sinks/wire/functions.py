"""Functions of AWS Lambda: ``lambda://REGION/ACCOUNT/NAME[?qualifier=...]``.

Source: the Lambda API reference, ``Invoke``. The function is waited for: what it fails to handle is tried again, with
the retries of the hub.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from pushhub.base import json_text
from pushhub.base.errors import Invalid
from pushhub.sinks.model.kind import ServiceFault, SinkCall, Unfit
from pushhub.sinks.wire.errors import json_fault, object_of
from pushhub.sinks.wire.grants import allowing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.base.sink_url import SinkUrl
    from pushhub.base.verdict import Answer
    from pushhub.sinks.model.kind import SinkMessage

MOST_BYTES = 6 * 1024 * 1024
"""The most that an event takes that a function is waited for with."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,140}")
_QUALIFIER = re.compile(r"[A-Za-z0-9_$-]{1,128}")
_LASTING = frozenset({"RequestTooLargeException", "InvalidRequestContentException", "UnsupportedMediaTypeException"})


class Functions:
    """Functions. The event has ``headers``, ``body`` and ``isBase64Encoded``, as one of API Gateway has them, so that a
    webhook's signature can be verified by the same code.
    """

    scheme = "lambda"
    service = "lambda"
    host = "lambda"
    options = ("qualifier",)

    def check(self, url: SinkUrl) -> None:
        """See the kind."""
        if _NAME.fullmatch(url.name) is None:
            raise Invalid("The url must end with the name of a function, as in lambda://eu-west-1/123456789012/handle")
        if "qualifier" in url.options and _QUALIFIER.fullmatch(url.options["qualifier"]) is None:
            raise Invalid("qualifier must be the name of an alias, or a version")

    def grants(self, url: SinkUrl) -> list[Mapping[str, object]]:
        """See the kind."""
        qualifier = url.options.get("qualifier")
        own = f":{qualifier}" if qualifier else ""
        return [allowing("lambda:InvokeFunction", f"{function_arn(url)}{own}")]

    def call(self, url: SinkUrl, message: SinkMessage) -> SinkCall:
        """See the kind."""
        event: dict[str, object] = {"headers": {"webhook-id": message.message_id, **message.headers}}
        try:
            event |= {"body": message.body.decode(), "isBase64Encoded": False}
        except UnicodeDecodeError:
            event |= {"body": base64.b64encode(message.body).decode(), "isBase64Encoded": True}
        content = json_text.write(event).encode(errors="backslashreplace")
        if len(content) > MOST_BYTES:
            raise Unfit(f"The event takes {len(content)} bytes, and this service takes at most {MOST_BYTES}")
        qualifier = url.options.get("qualifier")
        query = f"?Qualifier={quote(qualifier, safe='')}" if qualifier else ""
        # By its ARN, as a role may be of another account than the function.
        name = quote(function_arn(url), safe="")
        headers = {"Content-Type": "application/json", "X-Amz-Invocation-Type": "RequestResponse"}
        return SinkCall(path=f"/2015-03-31/functions/{name}/invocations{query}", headers=headers, body=content)

    def fault(self, answer: Answer) -> ServiceFault | None:
        """See the kind."""
        if answer.headers.get("x-amz-function-error"):
            said = object_of(answer.body)
            return ServiceFault(code="FunctionError", text=str(said.get("errorMessage", ""))[:200])
        return json_fault(answer, _LASTING)


def function_arn(url: SinkUrl) -> str:
    """The ARN of a function, without a qualifier."""
    return f"arn:{url.partition}:lambda:{url.region}:{url.account}:function:{url.name}"
