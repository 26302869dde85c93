"""A function starts only if the runtime's boto3 is new enough, and its calls name the hub."""

from __future__ import annotations

from io import BytesIO

import boto3
import botocore
import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders

from pushhub.cloud.clients import Clients, OldSdkError, check_version


class Answer(BytesIO):
    """A body as boto3 reads it."""

    def stream(self) -> list[bytes]:
        return [self.read()]


@pytest.mark.parametrize("version", ["1.34.162", "1.35.1", "1.9.999"])
def test_an_old_sdk_fails_the_start_by_name(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a runtime whose boto3 lacks the parameter that the hub writes records with
    monkeypatch.setattr(botocore, "__version__", version)
    # When a function makes its first client, then it fails with a message that names the required version
    with pytest.raises(OldSdkError, match=r"botocore .* is too old: the hub needs 1\.35\.2"):
        Clients().of("s3")


@pytest.mark.parametrize("version", ["1.35.2", "1.42.0", "2.0.0", botocore.__version__])
def test_a_new_one_is_taken(version: str) -> None:
    check_version(version)


def test_calls_say_what_they_come_from_in_a_text_that_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a client, When two calls are made, Then both have the same user agent, which names the SDK and the hub
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    client = Clients().of("sqs")
    agents: list[str] = []

    def answered(request: AWSPreparedRequest, **_: object) -> AWSResponse:
        agent = request.headers["User-Agent"]
        agents.append(agent.decode() if isinstance(agent, bytes) else agent)
        return AWSResponse(request.url, 200, HTTPHeaders(), Answer(b"{}"))

    client.meta.events.register("before-send.sqs.ListQueues", answered)
    client.list_queues()
    client.list_queues()
    # (Powertools, where it was imported, adds its own at the end)
    assert agents[0].startswith(f"Boto3/{boto3.__version__} Pushhub Botocore/{botocore.__version__}")
    assert agents == [agents[0]] * 2
