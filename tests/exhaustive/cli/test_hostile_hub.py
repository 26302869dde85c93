"""The command line against something that is no hub, or one that lies: a line that says so, and never a traceback."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.__main__ import run
from cli.rest import LONGEST_BYTES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cli.conftest import Typed
from tests.cli.served_hub import ServedHub
from tests.cli.test_dry_runs import ON_THE_HUB

COMMANDS = [
    ("status",),
    ("queues", "list"),
    ("queues", "show", "q"),
    ("simulate", "policy", "--ask-hub", "--replay", "s", "--queue", "q", "--since", "2026-11-01"),
    ("listen", "t", "--forward", "http://127.0.0.1:9"),
    *((*name.split(), *words) for name, ways in ON_THE_HUB.items() for words in ways if "BINARY" not in words),
]
KEYS = [
    *("queue", "queues", "messages", "subscribers", "push", "name", "type", "size", "ids", "id", "body", "token"),
    *("reservation_id", "state", "tries", "looked", "found", "replayed", "after", "pages", "plan", "duration"),
    *("outage", "from", "failed", "attempts", "data", "done", "iterator", "msg", "errors", "subscriptions", "consumer"),
]
ODD_TEXT = st.sampled_from(
    ["", "x", "multicast", "pull", "unicast", "exhausted", "delivered", "-1", "\x1b[2J", "\x9b31m"]
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, 2, -1, 10**30, 0.5, float("nan"), float("inf")]),
    ODD_TEXT,
    st.text(st.characters(), max_size=5),
    st.sampled_from(
        ["\ud800", "\u202e", json.dumps({"source_msg_id": "1", "queue": "q", "subscribers": [{"name": "s"}]})]
    ),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=12)),
    max_leaves=40,
)


def obeyed(text: str) -> list[str]:
    """What a terminal would not print but obey."""
    return [each for each in text.replace("\n", "") if not each.isprintable()]


@pytest.fixture
def words(request: pytest.FixtureRequest, tmp_path: Path, hub: ServedHub) -> tuple[str, ...]:
    lines = tmp_path / "lines"
    lines.write_bytes(b"a\nb\n")
    places = {"LINES": str(lines), "MESSAGE": "1", "THERE": hub.base_url}
    return tuple(places.get(each, each) for each in request.param)


@pytest.mark.parametrize("words", COMMANDS, indirect=True, ids=" ".join)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(value=VALUES, status=st.sampled_from([200, 200, 200, 201, 204, 302, 404, 500]))
def test_any_json_is_read_or_refused(
    hub: ServedHub,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: Any,
    words: tuple[str, ...],
    value: Any,
    status: int,
) -> None:
    monkeypatch.setattr("cli.messages.replaying.LOOKS", 1)
    monkeypatch.setattr("cli.migration.taking_over.TRIES", 1)
    # It would wait between two tries, for minutes in all.
    monkeypatch.setattr("cli.messages.shovelling.TRIES", 1)
    hub.instead = (status, b"" if status == 204 else json.dumps(value).encode())
    for more in ((), ("--json",)):
        code = run([*words, *more])
        printed = capsys.readouterr()
        # Then it ends with a code that says something, in words
        assert code in (0, 1, 2, 3)
        assert code == 0 or printed.err.strip() or printed.out.strip()
        assert "Traceback" not in printed.err
        # And nothing that a terminal obeys is printed
        assert obeyed(printed.out) == obeyed(printed.err) == []


ANSWERS = {
    "html": (200, b"<!doctype html><h1>It works</h1>"),
    "cut": (200, b'{"queue": {"name": "q"'),
    "bytes": (200, bytes(range(256))),
    "nested": (200, b"[" * 200_000),
    "number": (200, b"1" * 10_000),
    "nothing": (200, b""),
    "escapes": (500, '{"msg": "\x1b]0;gone\x07 \u009b2J \u202e"}'.encode()),
    "page": (502, b"<html>\x1b[2J" * 1000),
}


@pytest.mark.parametrize(
    "words", [("queues", "show", "q"), ("post", "q", "x"), ("replay", "q")], indirect=True, ids=" ".join
)
@pytest.mark.parametrize("answer", ANSWERS)
def test_what_is_no_json_is_told_in_one_line(hub: ServedHub, typed: Typed, words: tuple[str, ...], answer: str) -> None:
    hub.instead = ANSWERS[answer]
    typed(*words, code=1)
    [line] = typed.errors.splitlines()
    assert line.startswith("Error: the hub")
    assert len(line) < 400
    assert obeyed(line) == []


@pytest.fixture
def raw(monkeypatch: pytest.MonkeyPatch, hub: ServedHub) -> Iterator[list[bytes]]:
    """A server that sends these bytes to whoever connects, and closes."""
    sent: list[bytes] = []
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.recv(65_536)
                    for each in sent:
                        connection.sendall(each)
                except OSError:
                    continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    monkeypatch.setenv("PUSHHUB_URL", f"http://127.0.0.1:{listening.getsockname()[1]}")
    yield sent
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"


@pytest.mark.parametrize(
    ("blocks", "code"),
    [
        ([], 3),
        ([b"HTTP/1.1 200 OK\r\n"], 1),
        ([b"SSH-2.0-OpenSSH\r\n"], 3),
        ([HEAD % 100, b'{"queue'], 3),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"], 3),
        ([b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd"], 3),
        ([b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n"], 1),
        ([HEAD % (2 * LONGEST_BYTES), *[b" " * 1_048_576] * (LONGEST_BYTES // 1_048_576 + 2)], 1),
    ],
    ids=["closed", "cut head", "other protocol", "cut body", "odd chunk", "odd gzip", "redirect", "huge"],
)
def test_an_answer_that_is_none_is_told_in_one_line(
    typed: Typed, raw: list[bytes], blocks: list[bytes], code: int
) -> None:
    raw += blocks
    typed("queues", "list", code=code)
    [line] = typed.errors.splitlines()
    assert line.startswith("Error: ")
    assert len(line) < 200


def test_json_for_programs_says_the_same_and_moves_no_cursor(hub: ServedHub, typed: Typed) -> None:
    # Given names with everything that a terminal obeys: C0, C1, DEL, marks of direction
    name = "a\x1b[31m\x7f\x85\x9b2J\u202e\u2066\u2028é✓😀"
    answer = {"queues": [{"name": name, "waiting": 0}], "queue": {"name": name, "type": "pull", "\x9bkey": "\x80"}}
    hub.instead = (200, json.dumps(answer).encode())
    text = typed("queues", "show", "q", "--json")
    assert obeyed(text) == []
    assert "é✓😀" in text
    assert json.loads(text) == [answer["queue"]]
    assert obeyed(typed("queues", "list")) == obeyed(typed("queues", "show", "q")) == []
