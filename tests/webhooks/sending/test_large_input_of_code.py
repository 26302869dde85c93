"""Code is run by a function of Lambda, which is asked nothing that Lambda refuses."""

from __future__ import annotations

import io
import json
from typing import Any

from pushhub.webhooks.model.transformation import Transformation
from pushhub.webhooks.store.lambda_scripts import MOST_BYTES, LambdaScripts
from pushhub.webhooks.wire.transformation import MAX_INPUT_BYTES, request_of, webhook_of


class Lambda:
    """A function that answers with the number of bytes that it is asked with."""

    def of(self, service: str) -> Lambda:
        assert service == "lambda"
        return self

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803 (AWS's names)
        assert FunctionName == "transform"
        # "6 MB": what is larger is refused with a 413.
        assert len(Payload) <= 6_291_456
        return {"Payload": io.BytesIO(json.dumps({"result": len(Payload)}).encode())}


def run(body: bytes) -> Any:
    webhook = webhook_of("https://a.example", body, "text/plain", "a")
    request = request_of(Transformation(code="x" * 51_200), webhook, "webhook", now=0, seed="m")
    return LambdaScripts(Lambda(), "transform").run(request)  # type: ignore[arg-type]


def test_a_payload_that_grows_too_large_as_json_in_json_is_the_owners_failure() -> None:
    # Given the largest payload that code is given, of characters that JSON escapes, and then escapes again
    found = run(b"\x01" * MAX_INPUT_BYTES)
    # Then the function is not asked, and the try fails
    assert found["error"] == "input"
    assert str(MOST_BYTES) in found["message"]


def test_text_of_the_same_size_is_given_to_code() -> None:
    for body in (b"x" * MAX_INPUT_BYTES, b'"' * MAX_INPUT_BYTES, "é".encode() * (MAX_INPUT_BYTES // 2)):
        assert run(body)["result"] > MAX_INPUT_BYTES
