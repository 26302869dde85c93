"""What every store of tokens, and of certificates' ends, does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.cloud import aws_services as aws
from tests.contract.both import both
from tests.contract.filled import filled
from tests.contract.samples import NOW, OTHER_PROJECT, PROJECT
from tests.fakes import FakeClock
from tests.fakes.tokens import FakeEndNotes, FakeTokens

from pushhub.base.errors import Conflict
from pushhub.engine.ends import EndNote, EndNotes, scheme_digest
from pushhub.engine.security.oauth import AccessTokenStore, TokenOwner, TokenState
from pushhub.engine.store.dynamodb_ends import SCHEMES, DynamoDBEndNotes, of_protocol
from pushhub.engine.store.dynamodb_tokens import DynamoDBTokens

OWNER = TokenOwner(PROJECT, "ep_1")
STATE = filled(TokenState, owner=OWNER, version=1)


store = both(FakeTokens, DynamoDBTokens, aws.SCHEDULE_TABLE)


def test_what_is_stored_is_read_by_its_owner_only(store: AccessTokenStore) -> None:
    assert store.token_state(OWNER) is None
    store.save_token_state(STATE)
    assert store.token_state(OWNER) == STATE
    for other in (TokenOwner(OTHER_PROJECT, "ep_1"), TokenOwner(PROJECT, "ep_2")):
        assert store.token_state(other) is None
    empty = TokenState(owner=OWNER, revision="r2", version=2)
    store.save_token_state(empty)
    assert store.token_state(OWNER) == empty


def test_many_are_read_at_once_and_those_of_a_project(store: AccessTokenStore) -> None:
    others = [TokenOwner(PROJECT, f"app_1#ep_{number}") for number in range(9)]
    strange = TokenOwner(OTHER_PROJECT, "ep_1")
    for each in (OWNER, *others, strange):
        store.save_token_state(replace(STATE, owner=each))
    assert {each.owner for each in store.token_states([OWNER, others[3], OWNER, TokenOwner(PROJECT, "x")])} == {
        OWNER,
        others[3],
    }
    assert {each.owner: each for each in store.token_states_of(PROJECT)} == {
        each: replace(STATE, owner=each) for each in (OWNER, *others)
    }
    assert {each.owner for each in store.token_states_of(OTHER_PROJECT)} == {strange}


def test_one_of_two_that_change_the_same_state_is_refused(store: AccessTokenStore) -> None:
    store.save_token_state(STATE)
    store.save_token_state(replace(STATE, claim="first", version=2))
    # The same write made twice counts as written; another one does not
    store.save_token_state(replace(STATE, claim="first", version=2))
    with pytest.raises(Conflict):
        store.save_token_state(replace(STATE, claim="second", version=2))
    with pytest.raises(Conflict):
        store.save_token_state(replace(STATE, claim="second", version=1))
    stored = store.token_state(OWNER)
    assert stored is not None
    assert stored.claim == "first"


@pytest.fixture(params=["fake", "certificates", "schemes", "schedule"])
def ends(request: pytest.FixtureRequest) -> Iterator[EndNotes]:
    if request.param == "fake":
        yield FakeEndNotes()
        return
    with aws.dynamodb() as client:
        webhooks, schedule = (client, aws.WEBHOOKS_TABLE, FakeClock()), (client, aws.SCHEDULE_TABLE, FakeClock())
        lists = {
            "certificates": DynamoDBEndNotes(*webhooks),
            "schemes": DynamoDBEndNotes(*webhooks, SCHEMES),
            "schedule": DynamoDBEndNotes(*schedule, of_protocol("ironmq")),
        }
        own = lists.pop(request.param)
        for other in (*lists.values(), DynamoDBEndNotes(*schedule, of_protocol("hub"))):
            other.note_end(EndNote(NOW, PROJECT, "app_1", "ep_other", "d"))
        yield own


def test_notes_of_ends_come_in_the_order_of_their_time_until_they_are_dropped(ends: EndNotes) -> None:
    notes = [
        EndNote(at, PROJECT, "Bestellung #1 ü", f"ep_{at}", "d") for at in (NOW, NOW - 5, NOW + 1, NOW - 90_000_000)
    ]
    # And one of what a project hands down, which is nobody's in particular
    inherited = EndNote(NOW - 7, PROJECT, "", "", scheme_digest("X-Own", NOW))
    for each in [*notes, notes[0], inherited]:
        ends.note_end(each)
    assert list(ends.due_ends(NOW)) == [notes[3], inherited, notes[1], notes[0]]
    ends.forget_end(inherited)
    ends.forget_end(notes[1])
    ends.forget_end(notes[1])
    assert list(ends.due_ends(NOW)) == [notes[3], notes[0]]
    assert list(ends.due_ends(NOW + 1))[-1] == notes[2]
