"""Lambda ends a chain of requests in which a function has run 16 times, unless the template allows that function its
chain; the hub's waits are such chains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from simulation.account import Account, Operator
from simulation.endpoints import Asked, Reply
from simulation.functions import LONGEST_CHAIN, Sender
from simulation.scheduler import SECOND
from simulation.template import stack
from simulation.weather import HOUR, Weather

from pushhub.base.ports import PushRequest
from pushhub.engine.model.message import MAX_HOPS
from pushhub.engine.projects.projects import Projects

TRIES = 20


class FailsUntil:
    """An endpoint that answers 500 to the first tries."""

    def __init__(self, account: Account, tries: int) -> None:
        self._account = account
        self._tries = tries
        self.asked_at: list[int] = []

    def asked(self, request: PushRequest, environment: str) -> tuple[Asked, Reply]:
        now = self._account.scheduler.now
        self.asked_at.append(now // SECOND)
        status = 200 if len(self.asked_at) >= self._tries else 500
        return Asked(now, {}, b"", request.headers["Iron-Message-Id"], environment), Reply(status=status)


def posted(
    account: Account, queues: Mapping[str, Mapping[str, Any]], *, to: str, hours: float
) -> tuple[Account, list[str]]:
    """Post a message to one of these queues and let some hours pass; the names of the queues that got messages."""
    accepted: list[str] = []

    def written(table: str, before: Any, after: Any) -> None:
        if table == "MessagesTable" and before is None and after["kind"] == {"S": "message"}:
            accepted.append(after["queue"]["S"])

    account.written.append(written)
    with account.installed():
        operator = Operator(account)
        projects = Projects(config=operator.config, clock=operator.clock)
        project = projects.make("simulated").project_id
        ask = partial(account.http, token=projects.make_token(project))
        path = f"/3/projects/{project}/queues/"
        for name, push in queues.items():
            settings = {"queue": {"type": "multicast", "push": push}}
            account.scheduler.spawn(partial(ask, "PUT", path + name, settings))
        account.scheduler.run(60 * SECOND)
        account.begin_schedules()
        account.scheduler.spawn(partial(ask, "POST", f"{path}{to}/messages", {"messages": [{"body": "x"}]}))
        account.scheduler.run(account.scheduler.now + round(hours * HOUR))
    return account, accepted


def delivered(chained: Sequence[str]) -> tuple[Account, FailsUntil]:
    """Post a message that arrives with its twentieth try, each 70 s after the one before; only these functions may run
    in chains.
    """
    created = stack()
    functions = tuple(replace(each, chains=each.name in chained) for each in created.functions)
    account = Account("chains", replace(created, functions=functions), Weather((), "chains"))
    account.sends = Sender
    endpoint: Any = FailsUntil(account, TRIES)
    account.endpoints.known["shop.example"] = endpoint
    shop = {"name": "shop", "url": "https://shop.example/in"}
    posted(account, {"orders": {"subscribers": [shop], "retries": TRIES, "retries_delay": 70}}, to="orders", hours=1)
    return account, endpoint


def test_a_message_arrives_after_more_tries_than_lambda_lets_a_chain_have() -> None:
    # Given the functions that the template allows their chains
    chained = [each.name for each in stack().functions if each.chains]
    # When a message is tried twenty times, then it arrives, and Lambda has ended nothing
    account, endpoint = delivered(chained)
    assert len(endpoint.asked_at) == TRIES
    assert account.chains_ended == []


def test_without_leave_for_its_chain_push_is_run_no_more_and_that_is_noticed() -> None:
    # Given that the template allows push no chain
    chained = [each.name for each in stack().functions if each.chains and each.name != "push"]
    # When a message is tried twenty times
    account, endpoint = delivered(chained)
    # Then Lambda ends its chain before it arrives, and sets its order aside
    assert len(endpoint.asked_at) <= LONGEST_CHAIN
    assert [function for function, _ in account.chains_ended] == ["push"]
    dead = [name for name, queue in account.queues.items() if name.endswith("DeadLetters") and len(queue)]
    assert dead == ["RetryDeadLetters"]


@pytest.mark.parametrize(("copies", "limit", "most"), [(1, 1_000, MAX_HOPS + 1), (2, 50, 51)])
def test_a_circle_of_queues_ends_by_the_hubs_own_limits_and_not_by_lambdas(copies: int, limit: int, most: int) -> None:
    # Given two queues that feed each other, once or twice each
    account = Account("circle", stack({"QUEUE_DESCENDANTS": str(limit)}), Weather((), "circle"))
    account.sends = Sender
    feeds: dict[str, dict[str, Any]] = {
        name: {"subscribers": [{"name": f"s{each}", "url": f"ironmq:///{other}"} for each in range(copies)]}
        for name, other in (("there", "back"), ("back", "there"))
    }
    feeds = {name: {**push, "retries": 0} for name, push in feeds.items()}
    # When a message is posted to one of them
    account, accepted = posted(account, feeds, to="there", hours=0.5)
    # Then it goes round, but only so often; and no run of a function was left out
    assert MAX_HOPS < len(accepted) <= most
    assert set(accepted) == {"there", "back"}
    assert account.chains_ended == []
    # And nothing is left to do
    assert not any(len(queue) for queue in account.queues.values())


@pytest.mark.parametrize("error", [True, False])
def test_a_circle_of_error_queues_ends(error: bool) -> None:
    # Given two queues whose endpoint always fails, each the other's error queue if it has one
    account = Account("errors", stack(), Weather((), "errors"))
    account.sends = Sender
    endpoint: Any = FailsUntil(account, 1_000_000)
    account.endpoints.known["shop.example"] = endpoint
    push = {"subscribers": [{"name": "shop", "url": "https://shop.example/in"}], "retries": 0}
    queues = {name: {**push, **({"error_queue": other} if error else {})} for name, other in (("a", "b"), ("b", "a"))}
    # When a message is posted to one of them
    account, accepted = posted(account, queues, to="a", hours=0.5)
    # Then it goes round, but only so often
    assert len(accepted) == (MAX_HOPS + 1 if error else 1)
    assert account.chains_ended == []
    assert not any(len(queue) for queue in account.queues.values())


@pytest.mark.parametrize("name", [each.name for each in stack().functions])
def test_each_function_that_may_follow_from_itself_is_allowed_to(name: str) -> None:
    # Given where each function sends messages, and which function each queue runs
    settings = {each.name: each for each in stack().functions}
    runs = {events.queue: each.name for each in settings.values() for events in each.queues}
    queues = {
        each.name: {runs[url.rpartition("/")[2]] for key, url in each.environ.items() if key.endswith("_QUEUE_URL")}
        for each in settings.values()
    }
    # When messages are followed from queue to queue
    followed: set[str] = set()
    following = set(queues[name])
    while following - followed:
        followed |= following
        following = {further for each in followed for further in queues[each]}
    # Then a function that they lead back to may run in a chain, and no other
    assert (name in followed) == settings[name].chains


def test_functions_are_told_the_queues_that_the_template_joins() -> None:
    # Given the stack, when its wake reads which queues it looks at, then each is a queue of the stack
    created = stack()
    [wake] = [each for each in created.functions if each.name == "wake"]
    urls = wake.environ["SET_ASIDE_QUEUES"].split(",")
    assert len(urls) > 1
    assert {url.rpartition("/")[2] for url in urls} <= {each.name for each in created.queues}
