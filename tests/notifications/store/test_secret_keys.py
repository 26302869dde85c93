"""The signing secrets: read rarely, rotated without invalidating tokens in use."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from tests.fakes import FakeClock

from pushhub.base.errors import Unavailable
from pushhub.notifications.store.secret_keys import SecretsManagerKeys


class SecretsManager:
    """Versions of one secret by stage, with the times they were made."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.versions: dict[str, tuple[str, int]] = {}
        self.reads = 0
        self.down = False
        self.rotate("first")

    def rotate(self, text: str) -> None:
        if current := self.versions.get("AWSCURRENT"):
            self.versions["AWSPREVIOUS"] = current
        self.versions["AWSCURRENT"] = text, self._clock.now()

    def get_secret_value(self, *, SecretId: str, VersionStage: str) -> Any:  # noqa: N803 (the SDK's names)
        self.reads += 1
        if self.down:
            raise EndpointConnectionError(endpoint_url="http://127.0.0.1")
        if VersionStage not in self.versions:
            response: Any = {"Error": {"Code": "ResourceNotFoundException", "Message": SecretId}}
            raise ClientError(response, "GetSecretValue")
        text, created_at = self.versions[VersionStage]
        return {"SecretString": text, "CreatedDate": datetime.fromtimestamp(created_at / 1000, UTC)}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def service(clock: FakeClock) -> SecretsManager:
    return SecretsManager(clock)


@pytest.fixture
def keys(service: SecretsManager, clock: FakeClock) -> SecretsManagerKeys:
    return SecretsManagerKeys(service, "arn", clock)


def test_a_secret_is_read_once_in_five_minutes(
    keys: SecretsManagerKeys, service: SecretsManager, clock: FakeClock
) -> None:
    first = keys.secrets()
    assert [len(each) for each in first] == [32]
    clock.advance(seconds=299)
    assert keys.secrets() == first
    assert service.reads == 2
    clock.advance(seconds=1)
    keys.secrets()
    assert service.reads == 4


def test_a_new_secret_signs_only_when_every_process_has_read_it(
    keys: SecretsManagerKeys, service: SecretsManager, clock: FakeClock
) -> None:
    (old,) = keys.secrets()
    seen: list[Sequence[bytes]] = []
    service.rotate("second")
    for _ in range(3):
        clock.advance(seconds=300)
        seen.append(keys.secrets())
    new = next(each for each in seen[0] if each != old)
    assert [list(each) for each in seen] == [[old, new], [new, old], [new, old]]


def test_what_was_read_serves_on_while_the_service_is_down(
    keys: SecretsManagerKeys, service: SecretsManager, clock: FakeClock
) -> None:
    first = keys.secrets()
    service.down = True
    clock.advance(seconds=300)
    assert keys.secrets() == first


def test_without_any_secret_nothing_is_signed(service: SecretsManager, clock: FakeClock) -> None:
    service.down = True
    with pytest.raises(Unavailable):
        SecretsManagerKeys(service, "arn", clock).secrets()
