"""The vault asks KMS once an hour and project, opens what every key sealed, and says which key that was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from cryptography.exceptions import InvalidTag
from tests.cloud import aws_services as aws
from tests.fakes import FakeClock
from tests.fakes.vectors import VECTORS

from pushhub.base.errors import Unavailable
from pushhub.cloud.vault import KmsVault, _cipher, _parts

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


def test_each_byte_of_a_sealed_value_counts(bench: Bench) -> None:
    # Given a sealed value whose key is known
    vault = bench.environment()
    sealed = vault.seal(ONE, b"secret")
    # When one byte is another, or some are missing, then it does not open; nor does what was never sealed
    for place in range(len(sealed)):
        changed = bytearray(sealed)
        changed[place] ^= 1
        with pytest.raises(Unavailable):
            vault.open(ONE, bytes(changed))
    for wrong in (b"", b"secret", sealed[:4], sealed[:10], sealed[:-1], sealed + b"\0", b"X" + sealed):
        with pytest.raises(Unavailable):
            vault.open(ONE, wrong)


def test_a_value_is_bound_to_its_project_even_if_kms_made_the_key_for_both(bench: Bench) -> None:
    # Given KMS that does not look at the context
    vault = bench.environment()
    sealed = vault.seal(ONE, b"secret")
    wrapped, *_ = _parts(sealed)
    vault._keys.put((TWO, wrapped), vault._decrypted(ONE, wrapped))
    # When it is opened for another project, then the cipher refuses it
    with pytest.raises(Unavailable, match="opening a sealed value"):
        vault.open(TWO, sealed)


def test_the_same_value_is_never_sealed_the_same_way(bench: Bench) -> None:
    vault = bench.environment()
    assert len({vault.seal(ONE, b"same") for _ in range(100)}) == 100
    assert bench.client.calls["generate_data_key"] == 1


@pytest.mark.parametrize("vector", VECTORS["aes_256_gcm_siv"], ids=lambda vector: vector["id"])
def test_the_cipher_is_that_of_rfc_8452(vector: dict[str, str]) -> None:
    # Given what Wycheproof publishes, of which some is forged
    key, nonce, context, text, sealed = (
        bytes.fromhex(vector[name]) for name in ("key", "nonce", "context", "text", "sealed")
    )
    if vector["result"] == "valid":
        assert _cipher(key).encrypt(nonce, text, context) == sealed
        assert _cipher(key).decrypt(nonce, sealed, context) == text
    else:
        with pytest.raises(InvalidTag):
            _cipher(key).decrypt(nonce, sealed, context)


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
