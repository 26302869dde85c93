"""Functions of Lambda."""

from __future__ import annotations

import base64
import json

import pytest
from tests.sinks.examples import ACCOUNT, answered, message, place

from pushhub.base.errors import Invalid
from pushhub.sinks.model.kind import Unfit
from pushhub.sinks.wire.functions import MOST_BYTES, Functions

FUNCTIONS = Functions()
ARN = f"arn:aws:lambda:eu-west-1:{ACCOUNT}:function:handle"


def test_a_function_gets_what_api_gateway_would_hand_it() -> None:
    call = FUNCTIONS.call(place("lambda", "handle"), message('{"n": 1.10}'))
    assert call.path == f"/2015-03-31/functions/{ARN.replace(':', '%3A')}/invocations"
    assert call.headers["X-Amz-Invocation-Type"] == "RequestResponse"
    event = json.loads(call.body)
    assert (event["body"], event["isBase64Encoded"]) == ('{"n": 1.10}', False)
    assert event["headers"]["webhook-signature"] == "v1,x"


def test_bytes_that_are_no_text_are_base64_and_an_alias_is_named() -> None:
    call = FUNCTIONS.call(place("lambda", "handle", qualifier="live"), message(b"\xff\x00"))
    assert call.path.endswith("/invocations?Qualifier=live")
    event = json.loads(call.body)
    assert (base64.b64decode(event["body"]), event["isBase64Encoded"]) == (b"\xff\x00", True)


def test_an_event_that_is_too_large_is_not_sent() -> None:
    with pytest.raises(Unfit):
        FUNCTIONS.call(place("lambda", "handle"), message(b"x" * MOST_BYTES))


@pytest.mark.parametrize(("name", "options"), [("a.b", {}), ("x" * 141, {}), ("f", {"qualifier": "a b"})])
def test_what_no_function_is_named_is_refused(name: str, options: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        FUNCTIONS.check(place("lambda", name, **options))


def test_a_function_that_fails_has_not_taken_it() -> None:
    fault = FUNCTIONS.fault(
        answered(200, b'{"errorMessage": "boom", "errorType": "X"}', {"x-amz-function-error": "Unhandled"})
    )
    assert fault is not None
    assert (fault.message, fault.lasting) == ("FunctionError: boom", False)
    assert FUNCTIONS.fault(answered(200, b"null")) is None


def test_lambda_says_what_it_refuses_in_the_head() -> None:
    throttled = FUNCTIONS.fault(answered(429, b"{}", {"x-amzn-errortype": "TooManyRequestsException:http://x"}))
    large = FUNCTIONS.fault(answered(413, b"{}", {"x-amzn-errortype": "RequestTooLargeException"}))
    assert throttled is not None
    assert throttled.throttled
    assert large is not None
    assert large.lasting


def test_a_role_may_invoke_that_function() -> None:
    [grant] = FUNCTIONS.grants(place("lambda", "handle", qualifier="live"))
    assert grant == {"Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": f"{ARN}:live"}
