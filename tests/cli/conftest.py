"""A hub on fakes for commands to run against."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.__main__ import run
from tests.cli.aws_calls import Calls, watched
from tests.cli.served_hub import ServedHub, serving


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ServedHub]:
    """A hub that the environment points to; the developer's own profiles are ignored."""
    monkeypatch.setenv("PUSHHUB_CONFIG", str(tmp_path / "config" / "profiles.toml"))
    monkeypatch.delenv("PUSHHUB_PROFILE", raising=False)
    with serving() as served:
        for name, value in served.environment.items():
            monkeypatch.setenv(name, value)
        yield served


class _Input(io.TextIOWrapper):
    """Standard input: a pipe, or a person's terminal."""

    def __init__(self, given: bytes, *, person: bool) -> None:
        super().__init__(io.BytesIO(given))
        self._person = person

    def isatty(self) -> bool:
        return self._person


class Typed:
    """Runs a typed command, and keeps what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch
        self.errors = ""
        self.printed = ""

    def __call__(self, *words: str, code: int = 0, given: bytes = b"", person: bool = False) -> str:
        assert self.ends(*words, given=given, person=person) == code, (self.errors, self.printed)
        return self.printed

    def ends(self, *words: str, given: bytes = b"", person: bool = False) -> int:
        """The exit code of a command that may end in any way."""
        self._monkeypatch.setattr("sys.stdin", _Input(given, person=person))
        code = run([*words])
        printed = self._capsys.readouterr()
        self.errors, self.printed = printed.err, printed.out
        return code

    def json(self, *words: str, code: int = 0, given: bytes = b"") -> Any:
        return json.loads(self(*words, "--json", code=code, given=given))


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Runs commands."""
    return Typed(capsys, monkeypatch)


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Calls]:
    """What AWS is asked for by the commands of any test here: nothing that the table of rights does not have."""
    created = Calls()
    watched(created, monkeypatch)
    yield created
    assert created.unforeseen == []
