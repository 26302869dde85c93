"""The vault asks KMS once an hour and project, opens what every key sealed, and says which key that was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from tests.cloud import aws_services as aws
from tests.fakes import FakeClock

from pushhub.base.errors import Unavailable
from pushhub.cloud.vault import KmsVault

ONE, TWO = "5c1f0a9e2b7d4c3f8a6e1d20", "ffffffffffffffffffffffff"


class Counted:
    """A KMS client that counts its calls.

    Attributes:
        gone: Keys that are disabled.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self.calls: Counter[str] = Counter()
        self.gone: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        def call(**parameters: Any) -> Any:
            self.calls[name] += 1
            answer = getattr(self._client, name)(**parameters)
            if name == "decrypt" and answer["KeyId"] in self.gone:
                raise ClientError({"Error": {"Code": "DisabledException"}}, "Decrypt")
            return answer

        return call


class Bench:
    """Two keys, and environments that use them."""

    def __init__(self, client: Any, key: str) -> None:
        self.client = Counted(client)
        self.key = key
        self.other_key: str = client.create_key()["KeyMetadata"]["Arn"]
        self.clock = FakeClock()

    def environment(self, key: str = "") -> KmsVault:
        """A newly started execution environment."""
        return KmsVault(self.client, key or self.key, self.clock)


@pytest.fixture
def bench() -> Iterator[Bench]:
    with aws.kms() as (client, key):
        yield Bench(client, key)


def test_many_values_of_a_project_cost_one_call_an_hour(bench: Bench) -> None:
    sealing, opening = bench.environment(), bench.environment()
    for _ in range(2):
        sealed = [sealing.seal(ONE, b"%d" % number) for number in range(50)]
        assert [opening.open(ONE, each) for each in sealed] == [b"%d" % number for number in range(50)]
        bench.clock.advance(seconds=3_600)
    assert bench.client.calls == {"generate_data_key": 2, "decrypt": 2}


def test_an_environment_seals_with_a_key_that_it_opened_something_with(bench: Bench) -> None:
    sealed = bench.environment().seal(ONE, b"a")
    other = bench.environment()
    other.open(ONE, sealed)
    again = other.seal(ONE, b"b")
    assert bench.environment().open(ONE, again) == b"b"
    assert bench.client.calls["generate_data_key"] == 1


def test_values_of_any_length_are_sealed(bench: Bench) -> None:
    for content in (b"", b"x" * 4_097, b"y" * 300_000):
        sealed = bench.environment().seal(ONE, content)
        assert bench.environment().open(ONE, sealed) == content


def test_a_value_of_one_project_is_not_opened_for_another_even_when_its_key_is_known(bench: Bench) -> None:
    vault = bench.environment()
    sealed = vault.seal(ONE, b"secret")
    with pytest.raises(Unavailable, match="kms:Decrypt"):
        vault.open(TWO, sealed)


def test_a_changed_value_is_not_opened(bench: Bench) -> None:
    vault = bench.environment()
    sealed = bytearray(vault.seal(ONE, b"secret"))
    sealed[-1] ^= 1
    with pytest.raises(Unavailable):
        vault.open(ONE, bytes(sealed))


def test_values_that_kms_encrypted_one_by_one_still_open_and_are_remembered(bench: Bench) -> None:
    answer = bench.client.encrypt(KeyId=bench.key, Plaintext=b"[old]", EncryptionContext={"project": ONE})
    vault = bench.environment()
    for _ in range(3):
        assert vault.open(ONE, answer["CiphertextBlob"]) == b"[old]"
    assert bench.client.calls["decrypt"] == 1
    # They are to be sealed anew
    assert vault.kms_key_of(ONE, answer["CiphertextBlob"]) == ""


def test_what_another_key_sealed_opens_and_is_sealed_by_the_first_one_from_then_on(bench: Bench) -> None:
    before = bench.environment(bench.other_key).seal(ONE, b"a")
    vault = bench.environment()
    assert vault.open(ONE, before) == b"a"
    assert vault.kms_key_of(ONE, before) == bench.other_key
    after = vault.seal(ONE, b"a")
    assert vault.kms_key_of(ONE, after) == bench.key
    # The other key may go
    bench.client.gone.add(bench.other_key)
    assert bench.environment().open(ONE, after) == b"a"
    with pytest.raises(Unavailable):
        bench.environment().open(ONE, before)
