"""What signs consumers' tokens: made once, read rarely, rotated and copied without invalidating tokens in use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from tests.cloud import aws_services as aws
from tests.fakes import FakeClock
from tests.fakes.credentials import FakeVault

from pushhub.base.errors import Conflict, Unauthorized, Unavailable
from pushhub.cloud.table import Table
from pushhub.notifications.model.topic import Topic
from pushhub.notifications.store.secret_keys import SEALED_FOR, SealedSigningKeys, SigningSecretItem
from pushhub.notifications.wire.tokens import Claims, Tokens

DOWN = EndpointConnectionError(endpoint_url="http://127.0.0.1")


class Service:
    """The client of a service, which can be down, and counts."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.reads = 0
        self.down = False

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)

        def counted(**arguments: Any) -> Any:
            self.reads += name == "get_item"
            if self.down:
                raise DOWN
            return call(**arguments)

        return counted


@dataclass
class House:
    """A deployment: its table, and environments of its functions."""

    clock: FakeClock
    service: Service
    vault: FakeVault = field(default_factory=FakeVault)

    @property
    def item(self) -> SigningSecretItem:
        table: Any = Table(self.service, aws.CONFIG_TABLE, self.clock)  # type: ignore[arg-type]
        return SigningSecretItem(table, self.vault, self.clock)

    def environment(self) -> SealedSigningKeys:
        """A newly started one."""
        return SealedSigningKeys(self.item, self.clock)

    def tokens(self) -> Tokens:
        """Of a newly started environment."""
        keys = self.environment()
        return Tokens(keys.secrets, keys.signing)


@pytest.fixture
def house() -> Iterator[House]:
    with aws.dynamodb() as dynamodb:
        yield House(FakeClock(), Service(dynamodb))


def claims(house: House) -> Claims:
    return Claims(
        topic=Topic(project="p", name="t"),
        subscriber="s",
        shared=False,
        issued_by="p",
        token_id="1",
        issued_at=house.clock.now() // 1000,
        expires_at=house.clock.now() // 1000 + 86_400 * 365,
    )


def good(tokens: Tokens, token: str, house: House) -> bool:
    try:
        tokens.check(token, house.clock.now() / 1000)
    except Unauthorized:
        return False
    return True


def test_a_secret_is_read_once_in_five_minutes(house: House) -> None:
    house.item.make()
    house.service.reads = 0
    keys = house.environment()
    first = keys.secrets()
    assert [len(each) for each in first] == [32]
    house.clock.advance(seconds=299)
    assert keys.secrets() == first
    assert house.service.reads == 1
    house.clock.advance(seconds=1)
    keys.secrets()
    assert house.service.reads == 2


def test_the_first_token_makes_the_secret_and_every_environment_knows_it_at_once(house: House) -> None:
    # Given an environment that has looked before there was any
    checking = house.tokens()
    assert not good(checking, "a.b.c", house)
    assert house.item.read() is None
    # When two environments make the first token at the same time, each having found none
    one, other = house.environment(), house.environment()
    assert (one.secrets(), other.secrets()) == ((), ())
    signed = [Tokens(each.secrets, each.signing).sign(claims(house)) for each in (one, other)]
    # Then there is one secret, and both tokens are good everywhere
    assert one.secrets() == other.secrets()
    assert [good(checking, each, house) for each in signed] == [True, True]


def test_of_two_that_make_the_first_secret_one_does(house: House) -> None:
    assert house.item.make(b"a" * 32)
    assert not house.item.make(b"b" * 32)
    assert house.environment().secrets() == (b"a" * 32,)


def test_a_write_that_the_client_repeated_counts_as_made(house: House) -> None:
    put = house.service._client.put_item

    class Twice:
        """Loses the answer to a write, and makes it again."""

        def __getattr__(self, name: str) -> Any:
            return getattr(house.service, name)

        def put_item(self, **arguments: Any) -> Any:
            put(**arguments)
            return put(**arguments)

    table: Any = Table(Twice(), aws.CONFIG_TABLE, house.clock)  # type: ignore[arg-type]
    assert SigningSecretItem(table, house.vault, house.clock).make()


def test_a_new_secret_signs_only_when_every_process_has_read_it(house: House) -> None:
    house.item.make()
    house.clock.advance(seconds=600)
    keys = house.environment()
    (old,) = keys.secrets()
    seen: list[Sequence[bytes]] = []
    house.item.rotate()
    for _ in range(3):
        house.clock.advance(seconds=300)
        seen.append(keys.secrets())
    new = next(each for each in seen[0] if each != old)
    assert [list(each) for each in seen] == [[old, new], [new, old], [new, old]]


def test_tokens_of_the_present_secret_outlive_one_rotation(house: House) -> None:
    house.item.make()
    house.clock.advance(seconds=600)
    token = house.tokens().sign(claims(house))
    # A second one within the ten minutes in which the old one still signs would lose tokens
    house.item.rotate()
    with pytest.raises(Conflict, match="ten minutes"):
        house.item.rotate()
    house.clock.advance(seconds=600)
    assert good(house.tokens(), token, house)
    house.item.rotate()
    assert not good(house.tokens(), token, house)


def test_there_is_nothing_to_rotate_before_the_first_token(house: House) -> None:
    with pytest.raises(Conflict, match="first token"):
        house.item.rotate()
    assert house.item.read() is None


def test_of_two_rotations_at_the_same_time_one_is_made(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.item.make()
    house.clock.advance(seconds=600)
    item, inner = house.item, house.item

    def first(project: str, content: bytes) -> bytes:
        monkeypatch.undo()
        inner.rotate()
        return house.vault.seal(project, content)

    monkeypatch.setattr(house.vault, "seal", first)
    with pytest.raises(Conflict, match="meanwhile"):
        item.rotate()


def test_what_was_read_serves_on_while_the_services_are_down(house: House) -> None:
    house.item.make()
    keys = house.environment()
    first = keys.secrets()
    house.service.down = True
    house.clock.advance(seconds=300)
    assert keys.secrets() == first


def test_while_the_table_is_down_nothing_is_signed_and_nobody_is_called_a_stranger(house: House) -> None:
    house.service.down = True
    with pytest.raises(Unavailable):
        house.environment().signing()
    with pytest.raises(Unavailable):
        house.environment().secrets()


def test_what_is_stored_opens_for_nothing_else(house: House) -> None:
    house.item.make(b"a" * 32)
    stored = house.item.read()
    assert stored is not None
    assert b"a" * 32 not in stored.current
    assert house.vault.open(SEALED_FOR, stored.current) == b"a" * 32
    assert "current" not in repr(stored)
