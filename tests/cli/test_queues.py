"""Queues and posting, against a hub on fakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.__main__ import main
from click.shell_completion import BashComplete
from tests.cli.conftest import Typed
from tests.cli.served_hub import ServedHub
from tests.engine.world import PROJECT


def test_a_queue_is_made_shown_listed_and_deleted(hub: ServedHub, typed: Typed) -> None:
    # When a push queue is created
    url = "https://shop.example/in?x=1"
    typed(
        "queues", "create", "orders", "--push", f"shop={url}", "--push", url, "--retries", "2", "--error-queue", "dead"
    )
    typed("queues", "create", "orders", "--eager")
    # Then it exists as requested
    [shown] = typed.json("queues", "show", "orders")
    assert shown["type"] == "multicast"
    assert shown["push"]["subscribers"] == [{"name": "shop", "url": url}, {"name": "", "url": url}]
    assert (shown["push"]["retries"], shown["push"]["error_queue"]) == (2, "dead")
    assert shown["push"]["eager"]
    assert "shop.example" in typed("queues", "show", "orders")
    [listed] = typed.json("queues", "list", "--prefix", "ord")
    assert (listed["name"], listed["subscribers"], listed["waiting"], listed["state"]) == ("orders", 2, 0, "delivering")
    # When it is deleted, then it is gone; a script without --yes is refused
    typed("queues", "delete", "orders", code=2)
    typed("queues", "delete", "orders", "--yes")
    assert typed.json("queues", "list") == []
    assert typed("queues", "list").strip() == "none"


def test_a_queue_is_made_from_a_file(hub: ServedHub, typed: Typed, tmp_path: Path) -> None:
    file = tmp_path / "queue.json"
    file.write_text('{"queue": {"type": "pull", "message_timeout": 5, "message_expiration": 77}}')
    typed("queues", "create", "q", "--from", str(file), "--timeout", "9")
    [shown] = typed.json("queues", "show", "q")
    assert (shown["type"], shown["message_timeout"], shown["message_expiration"]) == ("pull", 9, 77)
    file.write_text("[")
    assert "not valid JSON (line 1, column 2)" in _error(typed, "queues", "create", "q", "--from", str(file), code=2)


def test_a_setting_that_is_misspelt_is_told(hub: ServedHub, typed: Typed) -> None:
    typed("queues", "create", "orders", "--from", "-", given=b'{"serch_fields": ["id"]}')
    assert "warning: serch_fields is not read: did you mean search_fields?" in typed.errors


def test_all_pages_of_a_list_are_shown(hub: ServedHub, typed: Typed) -> None:
    for number in range(205):
        typed("queues", "create", f"q{number:03d}")
    assert [each["name"] for each in typed.json("queues", "list")] == [f"q{number:03d}" for number in range(205)]


def test_what_is_posted_arrives_byte_by_byte(hub: ServedHub, typed: Typed, tmp_path: Path) -> None:
    file = tmp_path / "body"
    file.write_bytes(b"\x00\xff no text")
    # When bodies come as an argument, from a file, and from standard input
    [first] = typed.json("post", "q", "grüß dich")
    typed("post", "q", "--file", str(file), "-H", "x-key=1")
    typed("post", "q", given=b"piped\n")
    assert first["id"]
    # Then the queue holds exactly these
    shown = peeked(hub, "q")
    assert [each["body"] for each in shown] == ["grüß dich", "\x00� no text", "piped\n"]
    assert shown[1]["body_base64"] == "AP8gbm8gdGV4dA=="
    # When two of these are given, or a delay for a body that is not text, then the command refuses
    typed("post", "q", "x", "--file", str(file), code=2)
    typed("post", "q", "--file", str(file), "--delay", "5", code=2)


def peeked(hub: ServedHub, queue: str) -> list[dict[str, str]]:
    answer = hub.answer("GET", f"/3/projects/{PROJECT}/queues/{queue}/messages?n=100", {"x-augury-token": "t0ken"}, b"")
    assert answer is not None
    found: list[dict[str, str]] = json.loads(answer[1])["messages"]
    return found


def test_lines_go_in_requests_of_a_hundred_in_order(hub: ServedHub, typed: Typed) -> None:
    lines = b"".join(b'{"n": %d}\r\n\n' % number for number in range(250))
    assert typed.json("post", "q", "--ndjson", "-", given=lines) == [{"posted": 250}]
    posts = [json.loads(each)["messages"] for each in hub.bodies if each]
    assert [len(each) for each in posts] == [100, 100, 50]
    assert [json.loads(each["body"])["n"] for post in posts for each in post] == list(range(250))


def test_posting_that_stops_half_way_says_where_to_go_on(hub: ServedHub, typed: Typed) -> None:
    lines = b"".join(b"%d\n" % number for number in range(250))
    # Given a hub that fails after the second request with messages
    typed("queues", "create", "q")
    hub.down_after = len(hub.asked) + 3
    typed("post", "q", "--ndjson", "-", given=lines, code=3)
    assert "posted 200, and perhaps 50 more; continue with --skip 200" in typed.errors
    # When it is back and the rest is posted, then nothing is missing
    hub.down_after = None
    assert typed.json("post", "q", "--ndjson", "-", "--skip", "200", given=lines) == [{"posted": 50}]
    messages = hub.worlds["ironmq"]
    assert messages.world is not None
    assert typed.json("queues", "show", "q")[0]["size"] == 250


def test_large_lines_go_in_requests_that_the_hub_takes(hub: ServedHub, typed: Typed) -> None:
    lines = b"".join("ü".encode() * 150_000 + b"\n" for _ in range(5))
    assert typed.json("post", "q", "--ndjson", "-", given=lines) == [{"posted": 5}]
    assert max(map(len, hub.bodies)) < 4_000_000
    assert "line 2 is not UTF-8" in _error(typed, "post", "q", "--ndjson", "-", given=b"a\n\xff\n", code=2)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("queues", "show", "none"), 1, "the hub says 404: Queue not found"),
        (("queues", "create", "q", "--retries", "1000"), 1, "the hub says 400: retries must be from 0 to 100"),
        (("queues", "create", "q", "--type", "odd"), 2, "odd"),
        (("post", "q", "x", "-H", "odd"), 2, "NAME=VALUE"),
    ],
)
def test_exit_codes_say_what_kind_of_error_it_was(
    hub: ServedHub, typed: Typed, words: tuple[str, ...], code: int, said: str
) -> None:
    assert said in _error(typed, *words, code=code)


def _error(typed: Typed, *words: str, code: int, given: bytes = b"") -> str:
    typed(*words, code=code, given=given)
    return typed.errors


def test_a_hub_that_is_not_there_is_told_by_its_own_code(
    hub: ServedHub, typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PUSHHUB_URL", "http://127.0.0.1:9")
    assert "did not answer" in _error(typed, "queues", "list", code=3)
    monkeypatch.delenv("PUSHHUB_URL")
    monkeypatch.setenv("PUSHHUB_HOME", str(tmp_path))
    said = _error(typed, "queues", "list", code=3)
    assert "no hub was found on this machine" in said
    assert all(name in said for name in ("PUSHHUB_HOME", "PUSHHUB_URL", "--profile"))


@pytest.mark.parametrize(
    ("url", "code", "said"),
    [
        ("localhost:8377", 2, "must begin with http:// or https://"),
        ("ftp://hub.example", 2, "must begin with http:// or https://"),
        ("http://127.0.0.1:9", 3, "did not answer: connection refused"),
        ("http://[::1", 2, "is no URL of a hub"),
        ("http://", 2, "must begin with http:// or https://"),
        ("http://hub.invalid:1", 3, "did not answer"),
    ],
)
def test_an_address_that_is_none_is_told_in_words(
    hub: ServedHub, typed: Typed, monkeypatch: pytest.MonkeyPatch, url: str, code: int, said: str
) -> None:
    monkeypatch.setenv("PUSHHUB_URL", url)
    reported = _error(typed, "queues", "list", code=code)
    assert said in reported
    # No names of classes
    assert not any(name in reported for name in ("InvalidSchema", "ConnectionError", "InvalidURL", "Exception"))


def test_a_post_says_when_its_queue_does_not_exist(hub: ServedHub, typed: Typed) -> None:
    typed("queues", "create", "orders")
    typed("post", "orders", "x")
    assert typed.errors == ""
    # A script is told
    typed("post", "ordres", "x")
    assert "there was no queue ordres" in typed.errors
    # A person is asked, and nothing is made if they say no
    typed("post", "odrers", "x", given=b"n\n", code=130, person=True)
    assert "There is no queue odrers" in typed.errors
    assert [each["name"] for each in typed.json("queues", "list")] == ["orders", "ordres"]


@pytest.mark.parametrize("words", [["post", "a/b", "x"], ["queues", "show", ""], ["pause", "a\tb", "shop"]])
def test_a_name_that_no_queue_can_have_is_told_before_anything_is_asked(
    hub: ServedHub, typed: Typed, words: list[str]
) -> None:
    typed(*words, code=2)
    assert "a queue's name must not" in typed.errors
    assert hub.asked == []


@pytest.mark.parametrize(("typo", "meant"), [("quues", "queues"), ("lisen", "listen")])
def test_a_command_that_is_misspelt_is_told_which_was_meant(typed: Typed, typo: str, meant: str) -> None:
    typed(typo, code=2)
    assert f"Did you mean '{meant}'?" in typed.errors


def test_an_empty_standard_input_is_no_message(hub: ServedHub, typed: Typed) -> None:
    # As when the program before the pipe failed
    assert "standard input is empty" in _error(typed, "post", "q", code=2)
    assert hub.writes == []
    # An empty body can be asked for
    typed("post", "q", "")
    assert [each["body"] for each in peeked(hub, "q")] == [""]


def test_what_a_tenant_named_cannot_move_the_cursor(hub: ServedHub, typed: Typed) -> None:
    typed("queues", "create", "q\u202e\u2066")
    assert "\u202e" not in typed("queues", "list")


def test_names_of_queues_complete(hub: ServedHub, typed: Typed) -> None:
    typed("queues", "create", "orders")
    typed("queues", "create", "odd")
    completed = BashComplete(main, {}, "pushhub", "_PUSHHUB_COMPLETE")
    found = completed.get_completions(["queues", "show"], "or")
    assert [each.value for each in found] == ["orders"]
    assert "tail" in [each.value for each in completed.get_completions([], "ta")]
    assert "_PUSHHUB_COMPLETE" in typed("completion", "zsh")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((302, b""), "the hub says 302: no reason given"),
        ((422, b'{"error": "Invalid object.", "errors": {"url": ["odd"]}}'), 'Invalid object. {"url": ["odd"]}'),
        ((422, b'{"detail": [{"loc": ["body"], "msg": "odd"}]}'), "the hub says 422: odd (body)"),
        ((500, b"<html>\x1b[2J"), "<html>"),
        ((500, b"[]"), "the hub says 500"),
    ],
)
def test_what_is_no_success_is_told_as_the_hub_says_it(
    hub: ServedHub, typed: Typed, answer: tuple[int, bytes], said: str
) -> None:
    hub.answers[("GET", f"/3/projects/{PROJECT}/queues/q")] = answer
    reported = _error(typed, "queues", "show", "q", code=1)
    assert said in reported
    assert "\x1b" not in reported
