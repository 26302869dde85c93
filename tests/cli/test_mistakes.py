"""What people mistype and paste: each mistake is told in words, with the exit code of the documents."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Typed
from tests.cli.served_hub import ServedHub, serving


@pytest.mark.parametrize(
    "header", ["X-Größe=1", "x-key=\u201c1\u201d", "x-key=a\nb"], ids=["a name", "quotes", "a line"]
)
def test_a_header_that_cannot_be_sent_is_wrong_usage(hub: ServedHub, typed: Typed, header: str) -> None:
    # Given a body that is no text, whose headers go as headers of the request
    typed("queues", "create", "q")
    before = list(hub.writes)
    typed("post", "q", "-H", header, given=b"\xff\xfe", code=2)
    assert "Error: a header has a name or value that cannot be sent" in typed.errors
    assert hub.writes == before
    typed("post", "q", "x", "-H", "=1", code=2)
    # Blanks around a value, as after a colon, are no part of it
    typed("post", "q", "-H", "x-key= 1", given=b"\xff\xfe")


@pytest.mark.parametrize(
    "url", ["http://hub..example", "http://127.0.0.1:99999", "http://[::1", f"http://{'x' * 300}.example"]
)
def test_a_url_of_no_hub_is_wrong_usage(
    hub: ServedHub, typed: Typed, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("PUSHHUB_URL", url)
    typed("queues", "list", code=2)
    assert f"Error: {url} is no URL of a hub" in typed.errors


def test_blanks_around_what_was_pasted_do_not_matter(
    hub: ServedHub, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PUSHHUB_URL", "PUSHHUB_PROJECT", "PUSHHUB_TOKEN"):
        monkeypatch.setenv(name, f" {os.environ[name]} ")
    typed("queues", "list")
    words = [f" {os.environ[name].strip()} " for name in ("PUSHHUB_URL", "PUSHHUB_PROJECT")]
    typed("profiles", "set", "here", "--url", words[0], "--project", words[1], "--token-stdin", given=b" t0ken \n")
    typed("queues", "list", "--profile", "here")


def test_dots_name_nothing(hub: ServedHub, typed: Typed) -> None:
    # Given commands whose path a client would make that of what is above it
    typed("queues", "create", "orders")
    before = len(hub.asked)
    for words in (
        ("expunge", "..", "--queue", "orders", "--yes"),
        ("sources", "delete", "..", "--yes"),
        ("streams", "remove-sink", "orders", "..", "--yes"),
        ("frames", "set", "--app", ".."),
        ("queues", "delete", ".", "--yes"),
    ):
        typed(*words, code=2)
        assert "cannot be a part of a URL" in typed.errors
    assert len(hub.asked) == before


@pytest.mark.parametrize(
    "words", [("events", "--since", "999999d"), ("search", "--past", "--queue", "q", "--until", "999999d")]
)
def test_a_span_before_all_calendars_is_told(hub: ServedHub, typed: Typed, words: tuple[str, ...]) -> None:
    typed(*words, code=2)
    assert "'999999d' is too long: it may be 36500d" in typed.errors


def test_choices_are_listed_readably(hub: ServedHub, typed: Typed) -> None:
    typed("completion", code=2)
    assert "Choose from:\n    bash,\n    zsh,\n    fish" in typed.errors


def test_no_answer_of_the_websocket_names_its_url(hub: ServedHub, typed: Typed) -> None:
    words = ("--forward", "http://127.0.0.1:9/", "--websocket-url", "ws://127.0.0.1:9/")
    typed("listen", "orders", *words, code=3)
    assert "Error: ws://127.0.0.1:9/ did not answer: connection refused" in typed.errors


def test_a_missing_timestamp_is_called_missing(typed: Typed) -> None:
    typed("verify", "--secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", given=b"{}", code=1)
    assert "is missing: header webhook-timestamp" in typed.printed


def test_an_answer_of_something_else_is_one_line(hub: ServedHub, typed: Typed) -> None:
    hub.instead = (404, b"Not found\n")
    typed("queues", "list", code=1)
    assert typed.errors == "Error: the hub says 404: Not found\n"


def test_without_a_running_stack_there_is_no_hub(typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PUSHHUB_URL", raising=False)
    monkeypatch.setenv("PUSHHUB_HOME", str(tmp_path))
    monkeypatch.setenv("PUSHHUB_CONFIG", str(tmp_path / "none"))
    typed("status", code=3)
    assert "the stack is not running: start it with 'make up'" in typed.errors


def test_what_has_nothing_to_show_is_json_all_the_same(hub: ServedHub, typed: Typed) -> None:
    typed("queues", "create", "orders", "--push", "shop=https://shop.example")
    typed("alerts", "set", "here", "given-up", "5", "--url", "https://x.example")
    words = ("--token-url", "https://login.example/token", "--client-id", "c", "--secret-file", "-")
    subscriber = ("--queue", "orders", "--subscriber", "shop")
    assert typed.json("gates", "oauth", *words, *subscriber, given=b"s") == []
    for command in (
        ("gates", "remove", "oauth", *subscriber, "--yes"),
        ("alerts", "test", "here"),
        ("alerts", "delete", "here", "--yes"),
        ("traces", "stop"),
        ("queues", "delete", "orders", "--yes"),
    ):
        assert typed.json(*command) == []
    # Without --json nothing is printed
    typed("queues", "create", "orders")
    assert typed("queues", "delete", "orders", "--yes") == ""


def test_all_settings_of_a_queue_and_its_subscribers_are_shown(hub: ServedHub, typed: Typed) -> None:
    # Given a queue whose second subscriber is paused
    typed(
        *("queues", "create", "orders", "--push", "a=https://a.example", "--push", "b=https://b.example"),
        *("--retries", "7", "--retries-delay", "33", "--error-queue", "dead"),
    )
    typed("pause", "orders", "b")
    # Then both tables say all there is
    shown = typed("queues", "show", "orders")
    rows = {line.split()[0]: line.split()[1:] for line in shown.splitlines() if line}
    assert (rows["retries"], rows["retries_delay"], rows["error_queue"]) == (["7"], ["33"], ["dead"])
    assert rows["a"] == ["https://a.example", "-"]
    assert rows["b"] == ["https://b.example", "True"]


def test_the_simulator_runs_in_any_shell() -> None:
    # Given a shell that has set no path
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [sys.executable, str(Path(sys.executable).with_name("pushhub")), "simulate", "hub", "--help"]
    # Then it is found
    ran = subprocess.run(words, env=bare, capture_output=True, text=True, check=False)
    assert "usage:" in ran.stdout.lower(), ran.stderr


def test_a_negative_number_of_lines_is_wrong_usage(hub: ServedHub, typed: Typed) -> None:
    typed("post", "q", "--skip", "-3", "--ndjson", "-", given=b"a\n", code=2)


def test_json_of_events_stays_lines(hub: ServedHub, typed: Typed) -> None:
    # Given an import that finds nothing, then no list follows its lines
    hub.answers[("GET", "/api/v1/event-type")] = hub.answers[("GET", "/api/v1/app")] = (
        200,
        b'{"data": [], "done": true}',
    )
    printed = typed("import", "--from", hub.base_url, "--token", "t", "--json")
    assert all(isinstance(json.loads(line), dict) for line in printed.splitlines())


def test_a_refusal_says_which_of_two_servers_it_is_from(hub: ServedHub, typed: Typed) -> None:
    with serving() as there:
        there.instead = (401, b'{"msg": "Invalid"}')
        typed("import", "--from", "ironmq", "--url", there.base_url, "--project", "p", "--token", "t", code=1)
        assert typed.errors.startswith("Error: the server there says 401: Invalid")


def test_a_full_disk_is_told(hub: ServedHub, typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr("sys.stdout", Full())
        assert typed.ends("queues", "list") == 1
    assert typed.errors == "Error: [Errno 28] No space left on device\n"
