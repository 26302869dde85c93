"""The command line: what goes wrong is one clear line on stderr and exit status 1."""

from __future__ import annotations

import json
import re
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from botocore.config import Config
from local.__main__ import main
from local.errors import LocalError
from local.place import HOST, REPOSITORY, Place
from local.stack import Description

from local import __main__ as commands


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("PUSHHUB_TEMPLATE", "PUSHHUB_PORT", "PUSHHUB_AWS_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PUSHHUB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PUSHHUB_EMULATOR", str(tmp_path / "no" / "python"))
    return tmp_path / "home"


def fails_with(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("pushhub: ")
    return captured.err


@pytest.mark.parametrize("variable", ["PUSHHUB_PORT", "PUSHHUB_AWS_PORT"])
@pytest.mark.parametrize("command", ["up", "run"])
def test_a_port_in_use(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str, command: str
) -> None:
    # Given a port that another program listens on
    monkeypatch.setenv("PUSHHUB_EMULATOR", "/bin/sh")
    with socket.create_server((HOST, 0)) as other, socket.create_server((HOST, 0)) as free:
        monkeypatch.setenv("PUSHHUB_PORT", str(free.getsockname()[1]))
        monkeypatch.setenv("PUSHHUB_AWS_PORT", str(free.getsockname()[1]))
        monkeypatch.setenv(variable, str(other.getsockname()[1]))
        free.close()
        # When the stack is brought up
        line = fails_with(capsys, command)
        # Then the line names the port and how to choose another
        assert f"port {other.getsockname()[1]} is in use" in line
        assert variable in line


def test_a_missing_emulator(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    # Given no environment of the emulator, when the stack is brought up
    with socket.create_server((HOST, 0)) as one, socket.create_server((HOST, 0)) as two:
        monkeypatch.setenv("PUSHHUB_PORT", str(one.getsockname()[1]))
        monkeypatch.setenv("PUSHHUB_AWS_PORT", str(two.getsockname()[1]))
    # Then the line says so
    assert "the emulator's environment is missing" in fails_with(capsys, "up")


def test_an_emulator_that_does_not_start(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # Given an emulator that ends at once with a message
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'ImportError: no module'\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PUSHHUB_EMULATOR", str(broken))
    with socket.create_server((HOST, 0)) as one, socket.create_server((HOST, 0)) as two:
        monkeypatch.setenv("PUSHHUB_PORT", str(one.getsockname()[1]))
        monkeypatch.setenv("PUSHHUB_AWS_PORT", str(two.getsockname()[1]))
    # When the stack is brought up, then its last words are in the line, and nothing is left running
    line = fails_with(capsys, "up")
    assert "the emulator did not start" in line
    assert "ImportError: no module" in line
    assert not list(home.glob("*.pid"))


@pytest.mark.parametrize("arguments", [["status"], ["project", "second"]])
def test_a_stack_that_does_not_run(home: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    # Given no running stack, when something is asked of it, then the line says how to start it
    assert "the stack is not running: start it with 'make up'" in fails_with(capsys, *arguments)


def test_down_and_clean_are_fine_without_a_stack(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Given nothing, when it is stopped twice and removed, then that is no fault
    assert [main(["down"]), main(["down"]), main(["clean"])] == [0, 0, 0]
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.startswith("Pushhub is not running.\nPushhub is not running.\n")
    assert not home.exists()


def test_every_command_of_the_documentation_is_a_make_target() -> None:
    # Given all pages
    pages = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
    # When the commands in them are looked for in the Makefile
    written = re.compile(r"(?:^|`|&& )make ([a-z][a-z-]*)(?= *[#`&]| +[A-Z]+=)", re.M)
    named = {each for page in pages for each in written.findall(page.read_text())}
    makefile = (REPOSITORY / "Makefile").read_text() + (REPOSITORY / "glue_jobs" / "targets.mk").read_text()
    # Then each is there
    assert {"run", "up", "down", "test", "sam-local", "simulate", "report", "sabotage"} <= named
    assert named - set(re.findall(r"^([a-z][a-z-]*):", makefile, re.M)) == set()


def running(home: Path, aws_port: int) -> None:
    """Leave what a stack leaves that was killed, or whose file was cut off."""
    home.mkdir()
    described = {"base_url": "http://127.0.0.1:9", "project_id": "p", "token": "t", "region": "us-east-1"}
    outputs = {"ConfigTableName": "config"}
    (home / "local.json").write_text(
        json.dumps(described | {"aws_endpoint_url": f"http://127.0.0.1:{aws_port}", "outputs": outputs})
    )


def test_status_looks_instead_of_reading(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Given the description of a stack whose processes were killed
    running(home, 9)
    # When its status is asked for, then it is what is true
    line = fails_with(capsys, "status")
    assert "the emulator has ended by itself" in line
    assert "the front door has ended by itself" in line
    assert "'make up'" in line


def test_a_project_of_a_stack_that_was_killed(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a stack whose emulator does not answer
    monkeypatch.setattr("local.aws.Aws._config", Config(retries={"total_max_attempts": 1}))
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    running(home, port)
    # When a project is made, then one line says so
    assert "the emulator does not do its work" in fails_with(capsys, "project", "second")


@pytest.mark.parametrize("content", ["", "{", "{}", "[1]", "null"])
def test_a_list_of_projects_that_is_damaged(home: Path, capsys: pytest.CaptureFixture[str], content: str) -> None:
    # Given what a full disk leaves of it
    running(home, 9)
    (home / "state").mkdir()
    (home / "state" / "projects.json").write_text(content)
    # When a project is made, then the line names the file
    assert "projects.json is damaged" in fails_with(capsys, "project", "second")


@pytest.mark.parametrize("content", ["", "{", "[]", "{}"])
def test_a_description_that_is_damaged(home: Path, capsys: pytest.CaptureFixture[str], content: str) -> None:
    # Given what a full disk leaves of it, when it is needed, then the line says what to do
    home.mkdir()
    (home / "local.json").write_text(content)
    assert "local.json is damaged: 'make up' writes it anew" in fails_with(capsys, "status")


@pytest.mark.parametrize("fault", [LocalError("the hub answered 500 to POST /x"), KeyError("ids")])
def test_run_outlives_its_demonstration(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], fault: Exception
) -> None:
    # Given a stack that comes up, and a demonstration that fails
    calls: list[str] = []
    description = Description(base_url="u", project_id="p", token="t", aws_endpoint_url="a", region="r", outputs={})

    async def fails(*_: object) -> None:
        raise fault

    def stays_up(_: Place) -> None:
        calls.append("stays up")
        raise KeyboardInterrupt

    monkeypatch.delenv("PUSHHUB_DEMO_ONLY", raising=False)
    monkeypatch.setattr("local.stack.up", lambda *_: description)
    monkeypatch.setattr("local.stack.down", lambda *_: calls.append("down"))
    monkeypatch.setattr("local.demo.demonstration.PARTS", {"A part": fails})
    monkeypatch.setattr(commands, "demonstration_project", lambda shown, _: shown)
    monkeypatch.setattr(commands, "wait_while_up", stays_up)
    # When it is run, until Ctrl-C
    line = fails_with(capsys, "run")
    # Then the hub stayed up until then, and the failure was said
    assert calls == ["stays up", "down"]
    assert "the demonstration failed" in line


def test_a_demonstration_that_failed_is_said_while_the_hub_is_up(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a project of the demonstration's own
    used: list[str] = []

    async def fails(shown: Description, _: object) -> None:
        used.append(shown.project_id)
        raise LocalError("the hub answered 500 to POST /x")

    monkeypatch.setattr("local.demo.demonstration.PARTS", {"A part": fails})
    monkeypatch.setattr(commands, "demonstration_project", lambda shown, _: replace(shown, project_id="demo"))
    description = Description(base_url="u", project_id="p", token="t", aws_endpoint_url="a", region="r", outputs={})
    assert commands.demonstrate(description, Place(home=home)) == "the hub answered 500 to POST /x"
    # Then it worked there, and nothing is left in the user's
    assert used == ["demo"]


def test_logs_of_a_stack_that_does_not_run(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Given no stack, when its logs are to be followed, then the line says how to start one
    assert fails_with(capsys, "logs") == "pushhub: the stack is not running: start it with 'make up'\n"
    # Given what an earlier one wrote, then it also says where that is
    (home / "logs").mkdir(parents=True)
    (home / "logs" / "emulator.log").write_text("last words\n")
    assert f"(what the last one wrote is in {home / 'logs'})" in fails_with(capsys, "logs")
