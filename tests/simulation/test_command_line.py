"""Commands that are typed in a simulated account: they reach its hub and its services, and see its time."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from simulation.account import START_MS, Account
from simulation.command_line import CommandLine
from simulation.promises.talks.talk import Typed
from simulation.scheduler import SECOND
from simulation.template import stack
from simulation.weather import Kind, Storm, Weather


def typed(commands: Callable[[CommandLine], Any], *, weather: Weather | None = None) -> Any:
    """What comes of commands that somebody types in an account."""
    account = Account("commands/1", stack(), weather or Weather((), "commands/1"))
    found: list[Any] = []
    with account.installed():
        line = CommandLine(account, "0" * 24, "none")
        account.scheduler.spawn(lambda: found.append(commands(line)))
        account.scheduler.run(600 * SECOND)
    return found[0]


def rows(came: Typed) -> Any:
    assert came.code == 0, came
    return json.loads(came.printed)


def test_an_operators_commands_reach_the_services_and_see_their_time() -> None:
    def commands(line: CommandLine) -> Any:
        # When a project is made dry, and then in earnest, with a token that lasts an hour
        dry = line(["projects", "make", "Acme", "--dry-run", "--json"])
        none = rows(line(["projects", "list", "--json"]))
        [created] = rows(line(["projects", "make", "Acme", "--json"]))
        line(["tokens", "make", created["project"], "--expires", "1h"])
        return dry, none, created, rows(line(["tokens", "list", created["project"], "--json"]))

    dry, none, created, tokens = typed(commands)
    # Then the first made none, and the second has one, of the account's time
    assert (dry.code, none) == (0, [])
    began = datetime.fromtimestamp(START_MS / 1000, UTC)
    assert datetime.fromisoformat(created["created"]) == began
    assert sorted(str(each["expires"])[:13] for each in tokens) == [f"{began:%Y-%m-%d}T{began.hour + 1:02}", "None"]


def test_a_projects_commands_reach_the_hub_and_what_is_wrong_is_told() -> None:
    # Given a token that opens nothing, and standard input
    def commands(line: CommandLine) -> Any:
        return line(["queues", "list"]), line(["queues", "create", "q", "--from", "-"], b"{")

    refused, wrong = typed(commands)
    assert (refused.code, refused.errors[:21]) == (1, "Error: the hub says 4")
    assert wrong.code == 2
    assert "not valid JSON" in wrong.errors


def test_a_lost_answer_is_none() -> None:
    weather = Weather([Storm("all", Kind.LOST, "http", 0, 10**12, 1.0)], "commands/1")
    assert typed(lambda line: line(["queues", "list"]), weather=weather).code == 3
