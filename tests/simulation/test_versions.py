"""A deployment in mid-flight: today's code and the last release's work side by side, on what the other stored and
sent.
"""

from __future__ import annotations

import sys

from simulation.account import Account
from simulation.run import Plan, simulate
from simulation.template import stack
from simulation.versions import PACKAGE, TODAYS, loaded, released
from simulation.weather import MINUTE, Kind, Storm, Weather


def test_the_release_is_loaded_beside_todays_code_and_has_nothing_of_it() -> None:
    release = released()
    assert release.runtime is not TODAYS.runtime
    # Given all modules of the release, then none has anything that is defined in today's code
    for name, module in [*sys.modules.items()]:
        if name.startswith(f"{PACKAGE}."):
            of_today = [
                each
                for each, value in vars(module).items()
                if str(getattr(value, "__module__", "")).startswith("pushhub.")
            ]
            assert of_today == [], name
    assert [each.__name__ for each in loaded("engine.finished")] == [
        "pushhub.engine.finished",
        f"{PACKAGE}.engine.finished",
    ]
    assert release.handler("push").co_filename != TODAYS.handler("push").co_filename


def test_a_function_that_the_release_did_not_have_is_todays() -> None:
    storm = Storm("deployed", Kind.DEPLOYED, "", 0, 60 * MINUTE, 1.0)
    account = Account("versions/1", stack(), Weather([storm], "versions/1"))
    # Given the first moment of a deployment, then what the release has is its own
    assert account.version_of("push") is released()
    assert account.version_of("no-such-function") is TODAYS
    assert not account.weather.struck["no-such-function"]


def test_each_function_has_the_release_until_its_turn_comes() -> None:
    storm = Storm("deployed", Kind.DEPLOYED, "", 0, 60 * MINUTE, 1.0)
    account = Account("versions/1", stack(), Weather([storm], "versions/1"))
    anew: dict[str, int] = {}
    for minute in range(61):
        account.scheduler.run(minute * MINUTE)
        for name in account.functions:
            if account.version_of(name) is TODAYS:
                anew.setdefault(name, minute)
    # Then all are deployed anew at the end, one after the other, and each only once
    assert anew.keys() == account.functions.keys()
    assert len({*anew.values()}) > 5
    assert account.weather.struck[Kind.DEPLOYED] == sum(anew.values())
    # And without a deployment all have today's code
    calm = Account("versions/1", stack(), Weather((), "versions/1"))
    assert all(calm.version_of(name) is TODAYS for name in calm.functions)


def test_promises_are_kept_while_a_deployment_is_under_way() -> None:
    only = frozenset({"deployed", "producer-0", "producer-1"})
    result = simulate(Plan(10, "ironmq", hours=0.5, rate=40, only=only))
    assert result.violations == []
    assert result.figures["messages"] > 10
    assert result.figures["fault deployed"] > 10
    # And it is known until when each function ran the release's code, as whose fault a broken promise is depends on it
    until = {name: at / (60 * MINUTE) for name, at in result.released.items()}
    assert "push" in until
    assert all(0 < at < 0.6 for at in until.values())


def versions_in(seed: str, function: str, minute: int) -> set[bool]:
    """Whether runs of a function in a minute of a deployment of an hour have today's code."""
    storm = Storm("deployed", Kind.DEPLOYED, "", 0, 60 * MINUTE, 1.0)
    account = Account(seed, stack(), Weather([storm], seed))
    account.scheduler.run(minute * MINUTE)
    return {account.version_of(function) is TODAYS for _ in range(200)}


def gradual(seed: str, function: str) -> list[set[bool]]:
    return [versions_in(seed, function, minute) for minute in range(60)]


def test_in_a_gradual_deployment_runs_of_one_function_have_both_versions_for_minutes() -> None:
    # Given a deployment that is gradual
    minutes = gradual("ironmq/20", "push")
    # Then for up to ten minutes both are there, before that the release's alone, and after that today's
    mixed = [number for number, each in enumerate(minutes) if len(each) == 2]
    assert 0 < len(mixed) <= 10
    assert mixed == [*range(mixed[0], mixed[-1] + 1)]
    assert all(each == {False} for each in minutes[: mixed[0]])
    assert all(each == {True} for each in minutes[mixed[-1] + 1 :])
    # And functions without versions pass at once
    assert {len(each) for each in gradual("ironmq/20", "dispatch")} == {1}


def test_one_that_goes_back_leaves_the_release_to_the_end() -> None:
    minutes = gradual("ironmq/55", "push")
    mixed = [number for number, each in enumerate(minutes) if len(each) == 2]
    assert mixed
    assert all(each == {False} for number, each in enumerate(minutes) if number not in mixed)


def test_promises_are_kept_while_two_versions_of_one_function_work_and_when_one_goes_back() -> None:
    for seed in (20, 55):
        only = frozenset({"deployed", "producer-0", "producer-1"})
        result = simulate(Plan(seed, "ironmq", hours=0.5, rate=40, only=only))
        assert result.violations == []
        assert result.figures["messages"] > 10
        assert result.figures["fault deployed"] > 10
