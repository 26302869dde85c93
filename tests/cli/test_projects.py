"""The operator's command line, against a deployed stack: projects and tokens."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import boto3
import pytest
from botocore.exceptions import ClientError
from cli.__main__ import run
from tests.cli.deployment import answering, described, with_credentials
from tests.cloud import aws_services as aws

from pushhub.cloud.clock import SystemClock
from pushhub.engine.model.project import Project
from pushhub.engine.model.quota import Quota
from pushhub.engine.projects.copies import slot_of
from pushhub.engine.projects.suspension import KNOWN_WITHIN_MS
from pushhub.engine.projects.tokens import is_allowed, token_hash
from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore


class Operator:
    """Runs commands against one deployed stack."""

    invoked: ClassVar[list[tuple[str, bytes]]] = []
    """The functions that were started, and with what."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.invoked.clear()

    def run(self, *words: str, code: int = 0) -> Any:
        assert run(["--stack", "acme", "--json", *words]) == code
        printed = self._capsys.readouterr()
        return json.loads(printed.out) if code == 0 else printed.err

    def store(self) -> DynamoDBConfigStore:
        """The store as a fresh function sees it, without a cache."""
        return DynamoDBConfigStore(boto3.client("dynamodb"), aws.CONFIG_TABLE, SystemClock())

    def acts(self, project: str, token: str) -> bool:
        return is_allowed(self.store(), project, token)


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Operator]:
    with_credentials(monkeypatch)

    def answered(operation: str, parameters: dict[str, Any], real: Callable[[], Any]) -> Any:
        """A CloudFormation with one stack; moto's needs more packages than it is worth."""
        if operation == "Invoke":
            Operator.invoked.append((parameters["FunctionName"], parameters["Payload"]))
            return {"StatusCode": 200}
        if operation != "DescribeStacks":
            return real()
        if parameters["StackName"] != "acme":
            said = f"Stack with id {parameters['StackName']} does not exist"
            raise ClientError({"Error": {"Code": "ValidationError", "Message": said}}, operation)
        outputs = {"ConfigTableName": aws.CONFIG_TABLE, "NotifyFunctionName": "notify"}
        return described(outputs)

    answering(monkeypatch, answered)
    with aws.dynamodb():
        yield Operator(capsys)


def test_a_project_is_made_with_a_token_that_acts_for_it(operator: Operator) -> None:
    # When an operator makes a project in a deployed stack
    [project] = operator.run("projects", "make", "Acme", "--allow", "10.0.0.0/8")
    # Then its token acts for it, it is listed, and it may push where it was allowed to
    assert operator.acts(project["project"], project["token"])
    [listed] = operator.run("projects", "list")
    assert (listed["project"], listed["name"]) == (project["project"], "Acme")
    assert listed["allowed_targets"] == ["10.0.0.0/8"]


def test_a_project_is_renamed_and_its_targets_are_set_and_closed(operator: Operator) -> None:
    [created] = operator.run("projects", "make", "Acme")
    operator.run("projects", "rename", created["project"], "Acme Ltd")
    operator.run("projects", "allow", created["project"], "intern.example", "192.168.0.0/16")
    project = operator.store().project(created["project"])
    assert project is not None
    assert (project.name, project.allowed_targets) == ("Acme Ltd", ("intern.example", "192.168.0.0/16"))
    # When no target is given, then none is allowed, and the name stays
    operator.run("projects", "allow", created["project"])
    [listed] = operator.run("projects", "list")
    assert (listed["name"], listed["allowed_targets"]) == ("Acme Ltd", [])


def test_a_project_is_given_a_quota_none_or_the_stacks(operator: Operator) -> None:
    [created] = operator.run("projects", "make", "Acme")
    assert created["quota"] == "default"
    # When the operator sets its quota, then functions apply it and it is shown
    for words, quota, shown in (
        (["100"], Quota.of(100), "100/s, 1000 at once"),
        (["100", "--burst", "5000"], Quota.of(100, 5_000), "100/s, 5000 at once"),
        (["none"], Quota.of(0), "none"),
        (["default"], None, "default"),
    ):
        [listed] = operator.run("projects", "quota", created["project"], *words)
        project = operator.store().project(created["project"])
        assert project is not None
        assert (listed["quota"], project.quota, project.name) == (shown, quota, "Acme")
    # And an invalid rate is refused
    for wrong in ("-1", "0", "many", "1000001"):
        operator.run("projects", "quota", created["project"], "--", wrong, code=2)
    assert "Project not found" in operator.run("projects", "quota", "5f" * 12, "100", code=1)


def test_a_project_is_suspended_and_resumed(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    [created] = operator.run("projects", "make", "Acme")
    slept: list[float] = []
    monkeypatch.setattr(SystemClock, "sleep", lambda _, seconds: slept.append(seconds))

    def stored() -> Project:
        project = operator.store().project(created["project"])
        assert project is not None
        return project

    # When it is suspended
    [shown] = operator.run("projects", "suspend", created["project"])
    # Then that is stored and shown, and its consumers are closed: now, and when no function admits them any more
    assert shown["suspended"] is not None
    assert stored().suspended
    assert operator.invoked == [("notify", b"{}")] * 2
    assert KNOWN_WITHIN_MS / 1000 < slept[-1] < 4.5
    [listed] = operator.run("projects", "list")
    assert listed == shown
    # And attempts hear of it at once
    assert operator.store().noted_changes()[slot_of(created["project"], "")] > 0
    # When it is resumed, then it is as before
    [shown] = operator.run("projects", "resume", created["project"])
    assert shown["suspended"] is None
    assert not stored().suspended
    assert "Project not found" in operator.run("projects", "suspend", "5f" * 12, code=1)


def test_tokens_are_listed_without_themselves_and_revoked(operator: Operator) -> None:
    [project] = operator.run("projects", "make", "Acme")
    [second] = operator.run("tokens", "make", project["project"], "--label", "laptop")
    listed = operator.run("tokens", "list", project["project"])
    assert [each["label"] for each in listed] == ["first", "laptop"]
    assert second["token"] not in json.dumps(listed)
    # When one is revoked
    token_id = token_hash(second["token"])[:12]
    operator.run("tokens", "revoke", project["project"], token_id)
    # Then it does not act any more, and the other one does
    assert not operator.acts(project["project"], second["token"])
    assert operator.acts(project["project"], project["token"])
    assert "Token not found" in operator.run("tokens", "revoke", project["project"], token_id, code=1)


def test_a_token_expires(operator: Operator) -> None:
    [project] = operator.run("projects", "make", "Acme")
    [short] = operator.run("tokens", "make", project["project"], "--expires", "0s")
    [long] = operator.run("tokens", "make", project["project"], "--expires", "90d")
    assert not operator.acts(project["project"], short["token"])
    assert operator.acts(project["project"], long["token"])


def test_a_rotated_token_acts_beside_the_new_one_for_as_long_as_is_asked(operator: Operator) -> None:
    # Given a token
    [project] = operator.run("projects", "make", "Acme")
    first = token_hash(project["token"])[:12]
    # When it is rotated with an overlap, then both act
    [new] = operator.run("tokens", "rotate", project["project"], first, "--overlap", "2h")
    assert operator.acts(project["project"], project["token"])
    assert operator.acts(project["project"], new["token"])
    # When the new one is rotated without an overlap, then it stops at once
    [newest] = operator.run("tokens", "rotate", project["project"], token_hash(new["token"])[:12], "--overlap", "0s")
    assert not operator.acts(project["project"], new["token"])
    assert operator.acts(project["project"], newest["token"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tokens", "make", "5f0000000000000000000009"), "Project not found"),
        (("projects", "rename", "5f0000000000000000000009", "x"), "Project not found"),
        (("tokens", "make", "p", "--expires", "soon"), "not a time span"),
    ],
)
def test_what_cannot_be_done_is_said(operator: Operator, words: tuple[str, ...], said: str) -> None:
    code = 2 if "--expires" in words else 1
    assert said in operator.run(*words, code=code)


def test_a_stack_that_is_none_is_said_in_a_line(operator: Operator, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--stack", "nobody", "projects", "list"]) == 1
    assert "the stack nobody cannot be read" in capsys.readouterr().err


def test_a_name_cannot_move_the_cursor(operator: Operator, capsys: pytest.CaptureFixture[str]) -> None:
    operator.run("projects", "make", "Acme\x1b[2J")
    assert run(["--stack", "acme", "projects", "list"]) == 0
    assert "\x1b" not in capsys.readouterr().out
