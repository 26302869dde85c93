"""What the ports of webhooks promise, of the fakes and of AWS."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import pytest
from tests.cloud import aws_services as aws
from tests.contract.both import both
from tests.contract.filled import filled
from tests.contract.mortal import Killed, Mortal
from tests.contract.samples import NOW, OTHER_PROJECT, PROJECT
from tests.fakes import FakeClock
from tests.fakes.credentials import FakeVault, credentials
from tests.fakes.webhooks import FakeArrivalCounts, FakeIdempotencyKeys, FakeWebhooksLogs, FakeWebhooksSettings

from pushhub.base.errors import Conflict
from pushhub.base.gates import NO_PROOF, Proof
from pushhub.base.ports import Vault
from pushhub.base.signature_schemes import PRESETS
from pushhub.cloud.vault import KmsVault
from pushhub.engine.model.reach import Reach
from pushhub.webhooks.messages.ports import IdempotencyKeys, KeyBusy, KeyReused
from pushhub.webhooks.model.application import Application, ApplicationFields
from pushhub.webhooks.model.arrival import Turned, TurnedAway
from pushhub.webhooks.model.attempt import KEPT_BYTES, LoggedAttempt
from pushhub.webhooks.model.endpoint import Endpoint, EndpointFields, OpenQuestion
from pushhub.webhooks.model.event_type import EventType
from pushhub.webhooks.model.ids import IdPrefix, new_id
from pushhub.webhooks.model.message import ListedMessage, MessageFields
from pushhub.webhooks.model.page import KeyRange
from pushhub.webhooks.model.redaction import Redaction
from pushhub.webhooks.model.source import Source, TokenDigest
from pushhub.webhooks.ports import KeptAnswer, RequestKey, UidTaken
from pushhub.webhooks.sources.arrivals import ArrivalCounts
from pushhub.webhooks.store.dynamodb_arrivals import DynamoDBArrivalCounts
from pushhub.webhooks.store.dynamodb_keys import DynamoDBIdempotencyKeys
from pushhub.webhooks.store.dynamodb_logs import DynamoDBWebhooksLogs
from pushhub.webhooks.store.dynamodb_settings import DynamoDBWebhooksSettings

settings = both(FakeWebhooksSettings, partial(DynamoDBWebhooksSettings, credentials=credentials()), aws.WEBHOOKS_TABLE)
keys = both(FakeIdempotencyKeys, DynamoDBIdempotencyKeys, aws.WEBHOOKS_TABLE)
arrivals = both(FakeArrivalCounts, DynamoDBArrivalCounts, aws.WEBHOOKS_TABLE)
logs = both(FakeWebhooksLogs, DynamoDBWebhooksLogs, aws.WEBHOOKS_TABLE)


@pytest.fixture(params=["fake", "kms"])
def vault(request: pytest.FixtureRequest) -> Iterator[Vault]:
    if request.param == "fake":
        yield FakeVault()
        return
    with aws.kms() as (client, key_id):
        yield KmsVault(client, key_id, FakeClock())


def application(number: int = 0, **fields: Any) -> Application:
    return Application(
        project=PROJECT,
        app_id=new_id(IdPrefix.APPLICATION, NOW + 10 * number),
        fields=ApplicationFields(**{"name": "größe", **fields}),
        created_at=NOW,
        updated_at=NOW,
    )


def endpoint(app: Application, number: int = 0, **fields: Any) -> Endpoint:
    return Endpoint(
        project=PROJECT,
        app_id=app.app_id,
        endpoint_id=new_id(IdPrefix.ENDPOINT, NOW + 10 * number),
        fields=EndpointFields(**{"url": "https://a.example/", **fields}),
        reach=Reach.PROJECT,
        flags=frozenset({"b", "a"}),
        headers={"X-Key": "ü"},
        allowed_rate=90,
        question=OpenQuestion(digest="0a", until=NOW + 5, rate=60, answered=True),
        sealed=b"\x00sealed",
        created_at=NOW,
        updated_at=NOW,
    )


FULL = filled(EndpointFields, uid="shop")


def source(number: int = 0, **fields: Any) -> Application:
    taken = Source(
        kind="generic-webhook",
        scheme=PRESETS["stripe"],
        verified=True,
        tokens=(TokenDigest("0a"), TokenDigest("0b", NOW)),
        sealed=b"\x00sealed",
    )
    return replace(application(number, **fields), app_id=new_id(IdPrefix.SOURCE, NOW + 10 * number), source=taken)


def test_sources_are_applications_with_uids_of_their_own(settings: Any) -> None:
    app = settings.put_application(application(uid="same"), None)
    taking = settings.put_application(source(uid="same"), None)
    assert settings.application(PROJECT, "same") == app
    assert settings.source(PROJECT, "same") == settings.source(PROJECT, taking.app_id) == taking
    assert settings.application(PROJECT, taking.app_id) == taking
    assert settings.source(PROJECT, app.app_id) is None
    assert settings.source(OTHER_PROJECT, taking.app_id) is None
    with pytest.raises(UidTaken):
        settings.put_application(source(1, uid="same"), None)
    # Both are in one list, sources behind applications
    assert [*settings.applications(PROJECT, KeyRange(above=IdPrefix.SOURCE))] == [taking]
    assert [*settings.applications(PROJECT, KeyRange(below=IdPrefix.SOURCE))] == [app]
    # A source has endpoints like any application, and its uid is free when it is gone
    settings.put_endpoint(endpoint(taking), None)
    assert settings.source(PROJECT, "same").endpoints == 1
    assert settings.delete_application(taking)
    assert settings.source(PROJECT, "same") is None
    assert settings.application(PROJECT, "same") == app
    settings.put_application(source(1, uid="same"), None)


def test_what_is_turned_away_is_counted_by_day_and_reason(arrivals: ArrivalCounts) -> None:
    first, last = Turned(why="forged", at=NOW, address="192.0.2.1", agent="é"), Turned(why="old", at=NOW + 1)
    for day, turned in ((1, first), (2, first), (2, first), (2, last), (10, last)):
        arrivals.count(PROJECT, "src_a", day, turned)
    arrivals.count(PROJECT, "src_b", 2, first)
    assert [*arrivals.counts(PROJECT, "src_a", 2)] == [
        TurnedAway(day=10, counts={"old": 1}, last=last),
        TurnedAway(day=2, counts={"forged": 2, "old": 1}, last=last),
    ]
    assert [*arrivals.counts(OTHER_PROJECT, "src_a", 0)] == []


def test_an_application_is_found_by_id_and_uid_with_all_its_fields(settings: Any) -> None:
    created = application(
        uid="acme", throttle_rate=5, metadata={"a": "☃"}, redaction=Redaction(payload=("ü.*",), answers=("**.b",))
    )
    schemes = (replace(PRESETS["stripe"], ends_at=NOW), PRESETS["standard-webhooks"])
    stored = settings.put_application(replace(created, signatures=schemes), None)
    assert stored.version == 1
    for name in (stored.app_id, "acme"):
        assert settings.application(PROJECT, name) == stored
        assert settings.application(OTHER_PROJECT, name) is None


def test_a_uid_is_taken_until_it_is_given_up(settings: Any) -> None:
    # Given an application with a uid
    first = settings.put_application(application(uid="acme"), None)
    # Then no other application can have it
    with pytest.raises(UidTaken):
        settings.put_application(application(uid="acme"), None)
    # When the first one changes its uid, then it is free
    changed = settings.put_application(replace(first, fields=replace(first.fields, uid="new")), first)
    second = settings.put_application(application(uid="acme"), None)
    assert settings.application(PROJECT, "acme") == second
    assert settings.application(PROJECT, "new") == changed
    # When one is deleted, then its uid is free
    assert settings.delete_application(changed)
    assert not settings.delete_application(changed)
    assert settings.application(PROJECT, "new") is None
    settings.put_application(application(uid="new"), None)


def test_an_application_that_changed_is_not_overwritten(settings: Any) -> None:
    first = settings.put_application(application(), None)
    settings.put_application(replace(first, updated_at=NOW + 1), first)
    with pytest.raises(Conflict):
        settings.put_application(replace(first, updated_at=NOW + 2), first)
    settings.delete_application(first)
    with pytest.raises(Conflict):
        settings.put_application(replace(first, version=2), first)


def test_lists_are_read_within_their_spans_in_both_directions(settings: Any) -> None:
    # Given four applications
    created = [settings.put_application(application(number), None) for number in range(4)]
    ids = [each.app_id for each in created]
    # Then a span returns those between its ends
    for span, expected in (
        (KeyRange(), ids),
        (KeyRange(up=False), ids[::-1]),
        (KeyRange(above=ids[0], below=ids[3]), ids[1:3]),
        (KeyRange(above=ids[1]), ids[2:]),
        (KeyRange(below=ids[2], up=False), ids[1::-1]),
        (KeyRange(above=ids[2], below=ids[2]), []),
        (KeyRange(above=ids[3], below=ids[0]), []),
    ):
        assert [each.app_id for each in settings.applications(PROJECT, span)] == expected


def test_endpoints_are_kept_with_all_their_fields_and_counted(settings: Any) -> None:
    # Given an application
    app = settings.put_application(application(), None)
    # When endpoints are made and changed
    first = settings.put_endpoint(replace(endpoint(app), fields=FULL), None)
    settings.put_endpoint(endpoint(app, 1), None)
    changed = settings.put_endpoint(replace(first, updated_at=NOW + 5), first)
    # Then they are found, and each change is counted
    assert settings.endpoint(PROJECT, app.app_id, "shop") == changed
    assert settings.endpoint(PROJECT, app.app_id, first.endpoint_id) == changed
    assert len(list(settings.endpoints(PROJECT, app.app_id, KeyRange()))) == 2
    assert settings.application(PROJECT, app.app_id).endpoints == 3
    # And a change of the application does not lose the count
    settings.put_application(replace(app, updated_at=NOW + 9), app)
    assert settings.application(PROJECT, app.app_id).endpoints == 3


def test_an_endpoint_is_not_overwritten_and_its_uid_is_its_own(settings: Any) -> None:
    app = settings.put_application(application(), None)
    other_app = settings.put_application(application(1), None)
    first = settings.put_endpoint(endpoint(app, uid="shop"), None)
    with pytest.raises(UidTaken):
        settings.put_endpoint(endpoint(app, 1, uid="shop"), None)
    settings.put_endpoint(endpoint(other_app, uid="shop"), None)
    settings.put_endpoint(first, first)
    with pytest.raises(Conflict):
        settings.put_endpoint(first, first)
    settings.delete_application(other_app)
    with pytest.raises(Conflict):
        settings.put_endpoint(endpoint(other_app), None)


def test_a_deleted_endpoint_is_kept_for_the_record_without_its_secrets(settings: Any) -> None:
    app = settings.put_application(application(), None)
    first = settings.put_endpoint(endpoint(app, uid="shop"), None)
    settings.delete_endpoint(first)
    assert settings.endpoint(PROJECT, app.app_id, "shop") is None
    assert list(settings.endpoints(PROJECT, app.app_id, KeyRange())) == []
    kept = settings.deleted_endpoint(PROJECT, app.app_id, first.endpoint_id)
    assert kept == replace(first, deleted=True, sealed=b"", credentials=b"", headers={})
    settings.put_endpoint(endpoint(app, 1, uid="shop"), None)
    with pytest.raises(Conflict):
        settings.delete_endpoint(first)


def test_an_applications_endpoints_go_with_it(settings: Any) -> None:
    # Given an application with endpoints, and another one with one
    app, other = (settings.put_application(application(each), None) for each in range(2))
    gone = [settings.put_endpoint(endpoint(app, each), None) for each in range(3)]
    settings.put_endpoint(endpoint(other, uid="shop"), None)
    # When it is deleted, then of its endpoints only the record is kept
    assert settings.delete_application(app)
    assert list(settings.endpoints(PROJECT, app.app_id, KeyRange())) == []
    for each in gone:
        kept = settings.deleted_endpoint(PROJECT, app.app_id, each.endpoint_id)
        assert kept == replace(each, deleted=True, sealed=b"", credentials=b"", headers={})
    # And the other application has its own
    assert settings.endpoint(PROJECT, other.app_id, "shop") is not None


class Meddling:
    """A client of which something else happens before one of its calls, which may then fail."""

    def __init__(self, real: Any, operation: str, before: Callable[[], None]) -> None:
        self._real, self._operation, self._before = real, operation, before

    def __getattr__(self, name: str) -> Any:
        if name == self._operation:
            self._operation = ""
            self._before()
        return getattr(self._real, name)


@pytest.mark.parametrize("cut_off_after", range(1, 12))
def test_the_uid_of_an_application_that_is_gone_can_be_had_wherever_its_deletion_was_cut_off(
    cut_off_after: int,
) -> None:
    # Given an application with a uid and an endpoint, whose deletion is cut off
    with aws.dynamodb() as client:
        store = DynamoDBWebhooksSettings(client, aws.WEBHOOKS_TABLE, FakeClock(), credentials())
        app = store.put_application(application(uid="acme"), None)
        store.put_endpoint(endpoint(app), None)
        mortal: Any = Mortal(client, cut_off_after)
        with suppress(Killed):
            DynamoDBWebhooksSettings(mortal, aws.WEBHOOKS_TABLE, FakeClock(), credentials()).delete_application(app)
        # When it is deleted again by its uid, as long as that leads to it
        there = store.application(PROJECT, "acme")
        if there is not None:
            assert store.delete_application(there)
        # Then another one can have the uid
        assert store.application(PROJECT, app.app_id) is None
        again = store.put_application(application(uid="acme"), None)
        assert store.application(PROJECT, "acme") == again


def test_an_endpoint_that_is_made_while_its_application_is_deleted_goes_with_it() -> None:
    # Given an application without endpoints
    with aws.dynamodb() as client:
        store = DynamoDBWebhooksSettings(client, aws.WEBHOOKS_TABLE, FakeClock(), credentials())
        app = store.put_application(application(), None)
        late = endpoint(app)
        # When it is deleted, and one is made after those that are there were listed
        calls = ("delete_item", "transact_write_items")
        meddled: Any = client
        for each in calls:
            meddled = Meddling(meddled, each, lambda: made_once(store, late))
        DynamoDBWebhooksSettings(meddled, aws.WEBHOOKS_TABLE, FakeClock(), credentials()).delete_application(app)
        # Then none of its secrets is left
        assert store.endpoint(PROJECT, app.app_id, late.endpoint_id) is None
        kept = store.deleted_endpoint(PROJECT, app.app_id, late.endpoint_id)
        assert kept is not None
        assert kept.sealed == b""


def made_once(store: DynamoDBWebhooksSettings, wanted: Endpoint) -> None:
    """Make an endpoint, unless its application is gone, or it was made before."""
    with suppress(Conflict):
        store.put_endpoint(wanted, None)


@pytest.mark.parametrize("gone", ["endpoint", "application"])
def test_no_item_keeps_code_or_variables_of_what_is_deleted(gone: str) -> None:
    # Given an endpoint with a transformation, as it is sealed
    marked = b"code and variables"
    with aws.dynamodb() as client:
        store = DynamoDBWebhooksSettings(client, aws.WEBHOOKS_TABLE, FakeClock(), credentials())
        app = store.put_application(application(), None)
        first = replace(endpoint(app, uid="shop"), transforms=True, transformation=marked)
        stored = store.put_endpoint(first, None)

        def places() -> list[str]:
            items = [each for name in client.list_tables()["TableNames"] for each in all_of(client, name)]
            return [each["sk"]["S"] for each in items if {marked, b64encode(marked)} & {*leaves(each)}]

        assert places() == [f"EP#{first.endpoint_id}"]
        # When it is deleted, or its application is, then none of it is in any item of any table
        if gone == "endpoint":
            store.delete_endpoint(stored)
        else:
            store.delete_application(app)
        assert places() == []


def all_of(client: Any, name: str) -> list[dict[str, Any]]:
    """The items of a small table."""
    return list(client.scan(TableName=name)["Items"])


def leaves(value: Any) -> Iterator[bytes]:
    """Every text in an item, also those in JSON, as bytes."""
    if isinstance(value, dict):
        for each in value.values():
            yield from leaves(each)
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each)
    elif isinstance(value, bytes):
        yield value
    elif isinstance(value, str):
        yield value.encode()
        if value.startswith(("{", "[")):
            yield from leaves(json.loads(value))


def test_event_types_are_kept_by_name(settings: Any) -> None:
    full = filled(EventType, project=PROJECT, name="-a.b", version=0)
    stored = settings.put_event_type(full)
    plain = settings.put_event_type(replace(full, name="c", schemas=None, group_name=None, feature_flags=()))
    assert settings.event_type(PROJECT, "-a.b") == stored
    assert settings.event_type(OTHER_PROJECT, "-a.b") is None
    assert list(settings.event_types(PROJECT, KeyRange())) == [stored, plain]
    assert settings.event_types_named(PROJECT, ["c", "d"]) == [plain]
    with pytest.raises(Conflict):
        settings.put_event_type(replace(full, description="other"))
    settings.delete_event_type(PROJECT, "c")
    settings.delete_event_type(PROJECT, "c")
    assert settings.event_type(PROJECT, "c") is None
    # One that is made anew is another one, which nobody has read yet
    anew = settings.put_event_type(replace(plain, version=0, created_at=plain.created_at + 1))
    with pytest.raises(Conflict):
        settings.put_event_type(replace(plain, description="other"))
    assert settings.event_type(PROJECT, "c") == anew


KEY = RequestKey("d", "c")
ANSWER = KeptAnswer(status=201, body='{"a": "☃"}', headers={"X": "y"})


def test_a_request_is_one_callers_until_its_answer_is_kept(keys: IdempotencyKeys) -> None:
    assert keys.begin(PROJECT, KEY, now=NOW, locked_ms=5_000) is None
    with pytest.raises(KeyBusy):
        keys.begin(PROJECT, KEY, now=NOW + 4_999, locked_ms=5_000)
    assert keys.begin(OTHER_PROJECT, KEY, now=NOW, locked_ms=5_000) is None
    keys.keep(PROJECT, KEY, ANSWER, until=NOW + 60_000)
    assert keys.begin(PROJECT, KEY, now=NOW + 59_999, locked_ms=5_000) == ANSWER
    assert keys.begin(PROJECT, KEY, now=NOW + 60_000, locked_ms=5_000) is None


def test_a_request_that_was_given_up_is_the_next_callers(keys: IdempotencyKeys) -> None:
    keys.begin(PROJECT, KEY, now=NOW, locked_ms=5_000)
    assert keys.begin(PROJECT, KEY, now=NOW + 5_000, locked_ms=5_000) is None
    keys.release(PROJECT, KEY)
    assert keys.begin(PROJECT, KEY, now=NOW + 5_001, locked_ms=5_000) is None


def test_the_message_noted_first_counts_until_its_time_is_over(keys: IdempotencyKeys) -> None:
    assert keys.note_id(PROJECT, KEY, "1", now=NOW, until=NOW + 100) == "1"
    assert keys.note_id(PROJECT, KEY, "2", now=NOW + 99, until=NOW + 200) == "1"
    assert keys.note_id(PROJECT, KEY, "3", now=NOW + 100, until=NOW + 200) == "3"
    keys.release(PROJECT, KEY)
    assert keys.note_id(PROJECT, KEY, "4", now=NOW + 101, until=NOW + 200) == "4"


def test_a_key_is_for_one_request_while_it_is_valid(keys: IdempotencyKeys) -> None:
    # Given a request that is worked on, then answered, and one that made a message
    other, noted = replace(KEY, content="other"), RequestKey("n", "c")
    keys.begin(PROJECT, KEY, now=NOW, locked_ms=5_000)
    keys.note_id(PROJECT, noted, "1", now=NOW, until=NOW + 100)
    # When its key comes with another body, then that is told, as long as the key is valid
    with pytest.raises(KeyReused):
        keys.begin(PROJECT, other, now=NOW, locked_ms=5_000)
    keys.keep(PROJECT, KEY, ANSWER, until=NOW + 60_000)
    with pytest.raises(KeyReused):
        keys.begin(PROJECT, other, now=NOW, locked_ms=5_000)
    with pytest.raises(KeyReused):
        keys.note_id(PROJECT, replace(noted, content="other"), "2", now=NOW, until=NOW + 100)
    assert keys.begin(PROJECT, other, now=NOW + 60_000, locked_ms=5_000) is None
    assert keys.note_id(PROJECT, replace(noted, content="other"), "3", now=NOW + 100, until=NOW + 200) == "3"


def test_what_is_sealed_is_opened_and_not_seen(vault: Vault) -> None:
    sealed = vault.seal(PROJECT, b"whsec_secret")
    assert b"secret" not in sealed
    assert vault.open(PROJECT, sealed) == b"whsec_secret"
    assert vault.open(PROJECT, sealed) == b"whsec_secret"


def test_what_was_sealed_for_a_project_is_not_opened_for_another(vault: Vault) -> None:
    sealed = vault.seal(PROJECT, b"whsec_secret")
    with pytest.raises(Exception):  # noqa: B017 (the fake asserts, KMS refuses)
        vault.open(OTHER_PROJECT, sealed)


APP, ENDPOINT = new_id(IdPrefix.APPLICATION, NOW), new_id(IdPrefix.ENDPOINT, NOW)
MESSAGE = filled(
    ListedMessage,
    project=PROJECT,
    app_id=APP,
    engine_id="1910848478410441216",
    listed_until=NOW + 20_000,
    expunged=True,
)


def test_messages_are_listed_with_all_that_was_said_of_them(logs: Any) -> None:
    # Given messages of two applications
    plain = replace(MESSAGE, engine_id="1910848478410441217", fields=MessageFields(event_type="c"), expunged=False)
    for each in (MESSAGE, plain, replace(plain, app_id=new_id(IdPrefix.APPLICATION, NOW))):
        logs.list_message(each)
    # Then each is found, and those of one are listed in a span
    assert logs.listed(PROJECT, APP, MESSAGE.engine_id) == MESSAGE
    assert logs.listed(PROJECT, APP, "1910848478410441299") is None
    assert list(logs.messages(PROJECT, APP, KeyRange(up=False))) == [plain, MESSAGE]
    assert list(logs.messages(PROJECT, APP, KeyRange(above=MESSAGE.engine_id))) == [plain]
    assert list(logs.messages(PROJECT, APP, KeyRange(above="2", below="1"))) == []
    # When one was expunged, then it stays expunged
    logs.list_message(replace(plain, expunged=True))
    logs.list_message(plain)
    assert logs.listed(PROJECT, APP, plain.engine_id).expunged


def test_places_of_messages_that_came_late_are_noted(logs: Any) -> None:
    places = [str(10**18 + number) for number in range(3)]
    for place in places:
        logs.note_late(MESSAGE, place)
    logs.note_late(replace(MESSAGE, app_id=new_id(IdPrefix.APPLICATION, NOW)), str(10**18 + 1))
    assert list(logs.late(PROJECT, APP, KeyRange())) == [(each, MESSAGE.engine_id) for each in places]
    assert list(logs.late(PROJECT, APP, KeyRange(above=places[0], below=places[2]))) == [(places[1], MESSAGE.engine_id)]
    assert list(logs.late(PROJECT, APP, KeyRange(above="2", below="1"))) == []
    assert list(logs.messages(PROJECT, APP, KeyRange())) == []


def test_an_event_id_belongs_to_the_message_that_had_it_first(logs: Any) -> None:
    assert logs.message_of_event(PROJECT, APP, "e") is None
    assert logs.claim_event(PROJECT, APP, "e", "1", until=NOW) == "1"
    assert logs.claim_event(PROJECT, APP, "e", "2", until=NOW) == "1"
    assert logs.claim_event(PROJECT, APP, "e", "1", until=NOW) == "1"
    assert logs.message_of_event(PROJECT, APP, "e") == "1"
    assert logs.message_of_event(OTHER_PROJECT, APP, "e") is None


@pytest.mark.parametrize("response", ["", "ok", "größe " * 3_000])
def test_attempts_are_listed_by_endpoint_and_message(logs: Any, response: str) -> None:
    # Given attempts for two messages
    first = LoggedAttempt(
        project=PROJECT,
        app_id=APP,
        endpoint_id=ENDPOINT,
        engine_id="1",
        number=1,
        manual=True,
        url="https://a.example/",
        status_code=500,
        success=False,
        response=response,
        duration_ms=20,
        started_at=NOW,
        event_type="a",
        channels=("x",),
        tags=("t",),
        listed_until=(NOW // 1000 + 60) * 1000,
        proof=Proof(schemes=("stripe", "x-own"), client="c", certificate="0a"),
    )
    second = replace(
        first,
        proof=NO_PROOF,
        engine_id="2",
        number=2,
        manual=False,
        success=True,
        status_code=0,
        duration_ms=0,
        started_at=NOW + 8,
    )
    for each in (first, second):
        logs.log_attempts([each])
    # Then they are listed with all their data
    assert list(logs.attempts(PROJECT, ENDPOINT, KeyRange(up=False))) == [second, first]
    assert list(logs.attempts(PROJECT, ENDPOINT, KeyRange(), engine_id="1")) == [first]
    assert list(logs.attempts(PROJECT, ENDPOINT, KeyRange(above=first.attempt_id))) == [second]
    assert list(logs.attempts(OTHER_PROJECT, ENDPOINT, KeyRange())) == []


@pytest.mark.parametrize("seed", range(4))
def test_attempts_logged_together_are_listed_as_if_each_had_been_alone(logs: Any, seed: int) -> None:
    # Given attempts at an endpoint over half a minute, logged in overlapping groups: in the order in which they ended,
    # not began
    random = Random(seed)
    created = [
        _attempt(str(10**18 + n), NOW + random.randrange(30_000), "größe " * random.randrange(200)) for n in range(80)
    ]
    rest = [*created]
    while rest:
        count = random.randrange(1, 12)
        logs.log_attempts(rest[:count])
        rest = rest[count:]
    # Then they are listed in the order in which they began, in both directions, completely and in part
    ids = sorted(each.attempt_id for each in created)
    by_id = {each.attempt_id: each for each in created}
    assert list(logs.attempts(PROJECT, ENDPOINT, KeyRange())) == [by_id[each] for each in ids]
    assert [each.attempt_id for each in logs.attempts(PROJECT, ENDPOINT, KeyRange(up=False))] == ids[::-1]
    for up in (True, False):
        found = [
            each.attempt_id for each in logs.attempts(PROJECT, ENDPOINT, KeyRange(above=ids[9], below=ids[60], up=up))
        ]
        assert found == (ids[10:60] if up else ids[59:9:-1])
    # And those of one message among them
    one = created[17]
    assert list(logs.attempts(PROJECT, ENDPOINT, KeyRange(), engine_id=one.engine_id)) == [one]
    # When one of them is changed, then no other one changes
    logs.change_attempt(replace(one, response="EXPUNGED"))
    by_id[one.attempt_id] = replace(one, response="EXPUNGED")
    assert list(logs.attempts(PROJECT, ENDPOINT, KeyRange())) == [by_id[each] for each in ids]


@pytest.mark.parametrize("letters", ["0123456789abcdef", [*map(chr, range(0x10000, 0x110000))], [*map(chr, range(32))]])
def test_attempts_that_do_not_fit_one_item_are_logged_all_the_same(logs: Any, letters: Sequence[str]) -> None:
    # Given the largest answers, of a letter of each size
    random = Random(1)
    texts = ("".join(random.choices(letters, k=KEPT_BYTES // len(letters[0].encode()))) for _ in range(40))
    created = [_attempt(str(n), NOW + n, text) for n, text in enumerate(texts)]
    logs.log_attempts(created)
    assert list(logs.attempts(PROJECT, ENDPOINT, KeyRange())) == sorted(created, key=lambda each: each.attempt_id)


def _attempt(message_id: str, started_at: int, response: str = "") -> LoggedAttempt:
    return LoggedAttempt(
        project=PROJECT,
        app_id=APP,
        endpoint_id=ENDPOINT,
        engine_id=message_id,
        number=1,
        manual=False,
        url="https://a.example/",
        status_code=200,
        success=True,
        response=response,
        duration_ms=20,
        started_at=started_at,
        event_type="a",
        listed_until=(NOW // 1000 + 60) * 1000,
    )


def test_disabled_endpoints_of_all_applications_are_found_until_they_are_enabled_or_deleted(settings: Any) -> None:
    # Given two applications with endpoints, some of them disabled from the start or later
    first, second = (settings.put_application(application(number), None) for number in range(2))
    well = settings.put_endpoint(endpoint(first, 1), None)
    off = settings.put_endpoint(endpoint(first, 2, disabled=True), None)
    later = settings.put_endpoint(endpoint(second, 3), None)
    later = settings.put_endpoint(replace(later, fields=replace(later.fields, disabled=True)), later)
    # Then those are found, in their current state
    assert {each.endpoint_id: each for each in settings.disabled(PROJECT)} == {
        off.endpoint_id: off,
        later.endpoint_id: later,
    }
    assert [*settings.disabled(OTHER_PROJECT)] == []
    assert well not in settings.disabled(PROJECT)
    # When one is changed and stays disabled, one is enabled, and one deleted
    off = settings.put_endpoint(replace(off, headers={}), off)
    settings.put_endpoint(replace(later, fields=replace(later.fields, disabled=False)), later)
    assert [*settings.disabled(PROJECT)] == [off]
    settings.delete_endpoint(off)
    # Then none is left
    assert [*settings.disabled(PROJECT)] == []
