"""``pushhub audit``: changes of a project with how each ended."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import click
import pytest
from botocore.exceptions import ClientError
from cli.__main__ import run
from cli.commands.projects import rename_project
from cli.hub import HubOptions
from cli.operators.deployment import deployment
from cli.trail import CommandTrail
from tests.cli.deployment import answering
from tests.operating import test_erasing
from tests.operating.test_erasing import NOW, OTHER, RECORDS_BUCKET, Hub

from cli import side_by_side
from pushhub.base.times import iso_time
from pushhub.cloud.audit_trail import S3AuditTrail
from pushhub.web.audit import joined

acme = test_erasing.hub
ASKED = {
    "part": "asked",
    "by": {"kind": "token", "token": "0a1b2c3d4e5f"},
    "from": {"address": "203.0.113.7", "agent": "curl"},
    "what": "PUT /queues/q",
    "asked": {"queue": {}},
    "before": {"queue": {"retries": 1}},
}


def keep(hub: Hub, project: str, entry: dict[str, Any], at: int = NOW) -> None:
    trail = S3AuditTrail(hub.s3, RECORDS_BUCKET)
    trail.append(project, iso_time(at), f"{entry['id']}-{entry['part']}", {**entry, "at": iso_time(at)})


def test_changes_are_shown_with_their_ends(acme: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    # Given changes of two projects, one of them of a run that was stopped, one long ago
    keep(acme, acme.project, {**ASKED, "id": "1", "action": "ironmq.put_queue"})
    keep(acme, acme.project, {"id": "1", "part": "ended", "status": 200, "after": {"queue": {"retries": 2}}})
    keep(acme, acme.project, {**ASKED, "id": "2", "action": "webhooks.create_endpoint"})
    keep(acme, acme.project, {**ASKED, "id": "3", "action": "ironmq.put_queue"}, at=NOW - 8 * 86_400_000)
    keep(acme, OTHER, {**ASKED, "id": "4", "action": "ironmq.put_queue"})

    def audit(*words: str) -> list[dict[str, Any]]:
        assert run(["--stack", "acme", "--json", "audit", acme.project, *words]) == 0
        found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
        return found

    # Then those of this week are shown, with before and after
    first, second = audit()
    assert (first["before"], first["after"], first["status"]) == (
        {"queue": {"retries": 1}},
        {"queue": {"retries": 2}},
        200,
    )
    assert (second["id"], second["status"]) == ("2", None)
    assert [each["id"] for each in audit("--since", "30d")] == ["3", "1", "2"]
    assert [each["id"] for each in audit("--action", "webhooks")] == ["2"]
    # And as a table
    assert run(["--stack", "acme", "audit", acme.project]) == 0
    heading, one, two = capsys.readouterr().out.splitlines()
    assert heading.split() == ["at", "by", "from", "action", "what", "status"]
    assert "token 0a1b2c3d4e5f" in one
    assert one.endswith("200")
    assert two.endswith("?")
    assert run(["--stack", "acme", "audit", "../x"]) == 2


def test_an_end_without_its_beginning_is_left_out() -> None:
    assert [*joined([{"id": "1", "part": "ended", "status": 200}])] == []


def test_a_projects_trail_goes_with_the_project(acme: Hub) -> None:
    keep(acme, acme.project, {**ASKED, "id": "1", "action": "a"})
    keep(acme, OTHER, {**ASKED, "id": "2", "action": "a"})
    places, _ = acme.delete()
    assert places["audit trail"] == (1, 0)
    assert len([key for key in acme.stored(RECORDS_BUCKET) if key.startswith("audit/")]) == 1


class Stack:
    """A stack that keeps an audit trail.

    Attributes:
        refuses: Whether the trail cannot be written to.
    """

    def __init__(self, hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
        self.hub = hub
        self.refuses = False
        self._capsys = capsys

    def run(self, *words: str, code: int = 0) -> Any:
        assert run(["--stack", "acme", "--json", *words]) == code
        printed = self._capsys.readouterr()
        return json.loads(printed.out) if code == 0 else printed.err

    def trail(self, whose: str = "operators") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.run("audit", whose)
        return found


@pytest.fixture
def stack(acme: Hub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Stack:
    created = Stack(acme, capsys)

    def answered(operation: str, parameters: dict[str, Any], real: Callable[[], Any]) -> Any:
        if created.refuses and operation == "PutObject":
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, operation)
        answer = real()
        if operation == "DescribeStacks":
            answer["Stacks"][0]["Parameters"] = [{"ParameterKey": "AuditTrail", "ParameterValue": "true"}]
        return answer

    answering(monkeypatch, answered)
    return created


def test_what_an_operator_changes_is_kept_with_who_it_was_and_no_token(stack: Stack) -> None:
    # Given an operator who makes a token, and only looks at others
    [created] = stack.run("tokens", "make", stack.hub.project, "--label", "shop")
    stack.run("tokens", "list", stack.hub.project)
    stack.run("projects", "rename", stack.hub.project, "B", "--dry-run")
    # Then the trail has what was changed, once, and what came of it
    [change] = stack.trail()
    assert (change["action"], change["project"]) == ("operator.tokens.make", stack.hub.project)
    assert change["by"]["arn"].startswith("arn:aws:")
    assert change["by"]["person"]
    assert change["asked"]["label"] == "shop"
    assert (change["status"], change["after"][0]["label"]) == (0, "shop")
    assert created["token"] not in json.dumps(change)
    # And the project's own trail shows it, and not that of another project
    assert stack.trail(stack.hub.project) == [change]
    assert stack.trail(OTHER) == []


def test_what_was_there_before_is_kept(stack: Stack) -> None:
    stack.run("projects", "rename", stack.hub.project, "B")
    [change] = stack.trail()
    assert (change["before"]["name"], change["after"][0]["name"]) == ("Acme", "B")


def test_a_command_that_fails_is_kept_with_its_failure(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Any) -> None:
        raise click.ClickException("the consumers stay")

    monkeypatch.setattr("cli.commands.projects.close_consumers", fails)
    stack.run("projects", "suspend", stack.hub.project, code=1)
    assert [each["status"] for each in stack.trail()] == [1]


def test_nothing_is_changed_by_a_command_that_cannot_be_kept(stack: Stack) -> None:
    stack.refuses = True
    before = stack.hub.all("ConfigTable")
    said = stack.run("projects", "rename", stack.hub.project, "B", code=1)
    assert "nothing was changed" in said
    assert stack.hub.all("ConfigTable") == before


def test_of_calls_side_by_side_none_is_made_before_the_trail_has_the_command(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a trail that takes a moment to refuse, and a command whose first changes are made side by side
    stack.refuses = True
    before = CommandTrail._before

    def slowly(*of: Any) -> Any:
        time.sleep(0.2)
        return before(*of)

    monkeypatch.setattr(CommandTrail, "_before", slowly)
    carried_out: list[str] = []

    def put(trail: CommandTrail, number: int) -> None:
        trail.before(SimpleNamespace(name="PutItem"))
        carried_out.append(f"{number}")

    def rename(hub: HubOptions, *_: Any, **__: Any) -> None:
        trail = deployment(hub).trail
        assert trail is not None
        list(side_by_side.each(partial(put, trail), range(4)))

    monkeypatch.setattr(rename_project, "callback", click.pass_obj(rename))
    # Then none of them is made
    assert "nothing was changed" in stack.run("projects", "rename", stack.hub.project, "B", code=1)
    assert carried_out == []


def test_a_hub_without_a_trail_keeps_nothing(acme: Hub) -> None:
    assert run(["--stack", "acme", "projects", "rename", acme.project, "B"]) == 0
    assert not [key for key in acme.stored(RECORDS_BUCKET) if key.startswith("audit/")]
