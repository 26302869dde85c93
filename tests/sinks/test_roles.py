"""Keys of roles: once in their lifetime, by one thread for all."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.fakes import FakeClock
from tests.fakes.roles import FakeRoles
from tests.fakes.telemetry import FakeTelemetry

from pushhub.sinks.ports import AwsKeys, RoleWanted
from pushhub.sinks.roles import MARGIN_MS, NoKeys, RoleKeys

WANTED = RoleWanted(role="r", external_id="x", session="s", policy="{}")


def test_threads_that_need_keys_at_once_ask_once() -> None:
    # Given a role that answers when all threads have asked for its keys
    clock, asked, begun = FakeClock(), 0, threading.Barrier(8)

    def assume(wanted: RoleWanted, /) -> tuple[AwsKeys, int]:
        nonlocal asked
        asked += 1
        return AwsKeys(key_id="k", secret="s"), clock.now() + 3_600_000

    roles = RoleKeys(assume=assume, clock=clock, telemetry=FakeTelemetry())

    def ask() -> AwsKeys:
        begun.wait(90)
        return roles.keys(WANTED)

    with ThreadPoolExecutor(8) as threads:
        found = [each.result() for each in [threads.submit(ask) for _ in range(8)]]
    assert len(set(found)) == 1
    assert asked == 1


def test_keys_of_one_policy_or_external_id_are_nobody_elses() -> None:
    clock = FakeClock()
    fake = FakeRoles(clock)
    fake.trusting["r"] = "x"
    roles = RoleKeys(assume=fake, clock=clock, telemetry=FakeTelemetry())
    roles.keys(WANTED)
    roles.keys(RoleWanted(role="r", external_id="x", session="s", policy='{"other": 1}'))
    assert len(fake.asked) == 2
    # And who knows another external id is not let in, though the hub has keys of the role
    with pytest.raises(NoKeys):
        roles.keys(RoleWanted(role="r", external_id="y", session="s", policy="{}"))


def test_keys_are_replaced_before_they_end_and_forgotten_when_they_are_refused() -> None:
    clock = FakeClock()
    fake = FakeRoles(clock)
    fake.trusting["r"] = "x"
    roles = RoleKeys(assume=fake, clock=clock, telemetry=FakeTelemetry())
    first = roles.keys(WANTED)
    clock.advance(ms=fake.LIFETIME_MS - MARGIN_MS - 1)
    assert roles.keys(WANTED) == first
    clock.advance(ms=1)
    second = roles.keys(WANTED)
    assert second != first
    # Keys that somebody else has replaced already are not forgotten again
    roles.forget(WANTED, first)
    assert roles.keys(WANTED) == second
    roles.forget(WANTED, second)
    assert roles.keys(WANTED) != second
