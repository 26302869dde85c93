"""What goes wrong in the simulator: each kind of it in enough of the default runs, and as its name says."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from simulation.account import SCHEDULES, Account
from simulation.functions import Environment
from simulation.gateway import WebSocketGateway
from simulation.run import WORLDS
from simulation.scheduler import SECOND
from simulation.sources import MOST_SPLITS
from simulation.storage import Socket
from simulation.template import stack
from simulation.weather import LATELY, MINUTE, Kind, Storm, Weather, forecast

DEFAULT_SEEDS, DEFAULT_HOURS = range(1, 11), 6.0


def test_every_kind_of_storm_comes_in_at_least_five_of_the_default_runs() -> None:
    # Given the forecasts of the runs that `make simulate` makes
    runs: Counter[Kind] = Counter()
    for world in WORLDS:
        for seed in DEFAULT_SEEDS:
            storms = forecast(f"{world}/{seed}", DEFAULT_HOURS, ["push", "ingest"], ["PushQueue"])
            runs.update({each.kind for each in storms if each.rate})
    assert {kind: runs[kind] for kind in Kind if runs[kind] < 5} == {}


def account_in(kind: Kind, where: str = "") -> Account:
    """An account in a storm that strikes each call."""
    storm = Storm("storm", kind, where, 0, 10 * MINUTE, 1.0)
    return Account("weather/1", stack(), Weather([storm], "weather/1"))


def environment(kind: Kind, where: str) -> Environment:
    """An environment of ingest in a storm that strikes each call."""
    account = account_in(kind, where)
    created = Environment(account, account.functions["ingest"].settings, 1)
    created.lineage = {}
    return created


def outcome(environment: Environment, service: str, operation: str, **parameters: Any) -> list[object]:
    """What a call answers, or raises; filled while the account's time passes."""
    found: list[object] = []

    def call() -> None:
        real = getattr(environment.account.services[service], operation)
        try:
            found.append(environment.call(service, operation, real, parameters))
        except (ClientError, ReadTimeoutError) as error:
            found.append(error)

    environment.account.scheduler.spawn(call)
    return found


ITEM = {"pk": {"S": "a"}, "sk": {"S": "b"}}


def test_a_late_call_takes_effect_after_its_caller_has_given_up() -> None:
    created = environment(Kind.LATE, "dynamodb")
    account = created.account
    found = outcome(created, "dynamodb", "put_item", TableName="HubTable", Item=ITEM)
    table = account.dynamodb.tables["HubTable"]
    # When its caller has given up
    while not found:
        account.scheduler.run(account.scheduler.now + SECOND // 100)
        assert found or table.item(ITEM) is None
    assert isinstance(found[0], ReadTimeoutError)
    # Then it still takes effect
    account.scheduler.run(account.scheduler.now + 10 * SECOND)
    assert table.item(ITEM) == ITEM
    assert account.weather.struck[Kind.LATE] == 1


@pytest.mark.parametrize(("service", "down"), [("dynamodb", True), ("sqs", False)])
def test_a_service_that_is_down_answers_nobody(service: str, down: bool) -> None:
    created = environment(Kind.OUTAGE, "dynamodb")
    request: dict[str, Any] = {"TableName": "HubTable", "Key": ITEM}
    if service == "sqs":
        request = {"QueueUrl": "https://sqs/PushQueue", "Entries": [{"Id": "1", "ReceiptHandle": "gone"}]}
    found = outcome(created, service, "get_item" if service == "dynamodb" else "delete_message_batch", **request)
    created.account.scheduler.run(SECOND)
    assert isinstance(found[0], ClientError) == down


def test_a_slow_transaction_ends_once_or_never_and_leaves_nothing_held() -> None:
    # Given transactions in a storm of conflicts
    created = environment(Kind.CONFLICT, "dynamodb")
    account = created.account
    outcomes = []
    for number in range(60):
        put = {"Put": {"TableName": "HubTable", "Item": {**ITEM, "sk": {"S": f"{number}"}}}}
        outcomes.append(
            outcome(created, "dynamodb", "transact_write_items", TransactItems=[put], ClientRequestToken=f"{number}")
        )
    account.scheduler.run(60 * SECOND)
    # Then some were cancelled, some were refused although they took effect, and most were made
    codes = Counter(
        each[0].response["Error"]["Code"] if isinstance(each[0], ClientError) else "made" for each in outcomes
    )
    assert codes.keys() == {"made", "TransactionCanceledException", "TransactionInProgressException"}
    items = [*account.dynamodb.tables["HubTable"].everything()]
    assert len(items) == 60 - codes["TransactionCanceledException"]
    # And none holds its items any more
    assert not +account.dynamodb._held


def test_a_crowded_account_runs_no_function() -> None:
    for name in ("ingest", "push"):
        account = account_in(Kind.CROWDED)
        refused: list[str] = []

        def invoke(function: Any, refused: list[str] = refused) -> None:
            try:
                function.invoke({})
            except Exception as error:  # noqa: BLE001 (as Lambda tells it)
                refused.append(str(error))

        account.scheduler.spawn(partial(invoke, account.functions[name]))
        account.scheduler.run(SECOND)
        assert refused == ["throttled"]


def test_a_schedule_may_fire_twice() -> None:
    account = account_in(Kind.TWICE)
    fired: Counter[str] = Counter()
    account._scheduled = lambda name: fired.update([name])  # type: ignore[method-assign]
    account.begin_schedules()
    account.scheduler.run(9 * MINUTE)
    # Then everything that is done each minute was done twice
    assert fired["wake"] == fired["notify"] == 2 * 9 * 60 // SCHEDULES["wake"]


def test_a_client_that_vanished_leaves_its_connection_half_open_until_it_has_been_idle() -> None:
    # Given an open connection
    account = account_in(Kind.HALF_OPEN)
    gateway, heard = WebSocketGateway(account), list[str]()
    closed: list[bool] = []
    account.sockets.open["c"] = Socket(account.now_ms(), account.now_ms(), heard.append, lambda: closed.append(True))
    account.scheduler.spawn(lambda: gateway._watch("c"))
    # When its client vanishes
    gateway.cut("c")
    # Then what is sent on it is taken, and lost; and so is what the client's machine would have sent
    account.sockets.post_to_connection(ConnectionId="c", Data=b"frame")
    gateway.send("c", "frame", lambda: heard.append("sent"))
    account.scheduler.run(MINUTE)
    assert heard == []
    assert account.weather.struck[Kind.HALF_OPEN] == 1
    # And it ends after ten idle minutes, of which the client does not hear
    account.scheduler.run(12 * MINUTE)
    with pytest.raises(ClientError, match="Gone"):
        account.sockets.post_to_connection(ConnectionId="c", Data=b"frame")
    assert closed == []


def test_a_shard_splits_as_a_record_is_written_a_few_times_one_after_another() -> None:
    created = environment(Kind.SPLIT, "")
    put = partial(created.account.dynamodb.put_item, TableName="MessagesTable")
    for number in range(200):
        put(Item={**ITEM, "sk": {"S": f"{number}"}, "kind": {"S": "message"}})
    # Then each shard was split until the last that followed it was not
    assert created.account.weather.struck[Kind.SPLIT] == MOST_SPLITS


@pytest.mark.parametrize("first", [1, 8, 2026112300])
@pytest.mark.parametrize("world", WORLDS)
def test_each_ten_seeds_of_a_world_have_each_of_the_kinds_that_chance_may_leave_out(world: str, first: int) -> None:
    # Given ten seeds that follow one another, wherever they begin
    found = Counter[Kind]()
    for seed in range(first, first + 10):
        storms = forecast(f"{world}/{seed}", DEFAULT_HOURS, ["push", "ingest"], ["PushQueue"])
        found.update({each.kind for each in storms if each.rate})
    assert {each for each in LATELY if not found[each]} == set()
