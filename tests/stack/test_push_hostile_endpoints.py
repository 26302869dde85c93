"""Hostile endpoints of the running push function: each ends as a status, and their neighbours notice nothing."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.hostile import BEHAVIOURS, Authority, HostileEndpoint, unaccepting_port
from tests.hostile.behaviours import BEFORE_BODY
from tests.stack.endpoints import Recorder
from tests.stack.project import ProjectClient, unique
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack

TIMEOUT_S = 8
"""Sixty endpoints answer at once, on a machine that may be busy."""
TIMED_OUT = f"No complete answer within {TIMEOUT_S} s"
MALFORMED = "The answer is not valid HTTP/1.1"
TOO_LARGE = "The answer's head or framing is too large"
CLOSED = "The connection was closed without an answer"

OUTCOMES: dict[str, tuple[int, str]] = {
    "hang": (0, TIMED_OUT),
    "hang_in_head": (0, TIMED_OUT),
    "hang_in_body": (0, TIMED_OUT),
    "drip_head": (0, TIMED_OUT),
    "drip_body": (0, TIMED_OUT),
    "endless_head": (0, TOO_LARGE),
    "endless_interim": (0, TOO_LARGE),
    "endless_chunk_extensions": (0, TOO_LARGE),
    "endless_trailers": (0, TOO_LARGE),
    "big_header": (0, TOO_LARGE),
    "many_headers": (0, TOO_LARGE),
    "short_body": (0, "The answer ended before it was complete"),
    "cut_chunk": (0, "The answer ended before it was complete"),
    "garbage_status": (0, MALFORMED),
    "other_version": (0, MALFORMED),
    "negative_length": (0, MALFORMED),
    "length_no_number": (0, MALFORMED),
    "close": (0, CLOSED),
    "switch_protocols": (101, "Switching Protocols"),
    "redirect": (302, "Found"),
    "bad_redirect": (301, "Moved Permanently"),
    "status/599": (599, "Told to"),
    "refuse_early": (413, "Content Too Large"),
    # Whatever was answered before the failure counts.
    "endless_body": (200, ""),
    "endless_chunks": (200, ""),
    "long_body": (200, ""),
    "absurd_length": (200, ""),
    "same_length_twice": (200, ""),
    "two_lengths": (200, ""),
    "two_lengths_in_one_line": (200, ""),
    # As curl takes them; tests/egress compares all others.
    "odd/space-before-colon": (200, ""),
    "odd/te-blank": (200, ""),
    "odd/1000-headers": (200, ""),
    "gzip_bomb": (200, ""),
    "interim": (200, ""),
    "echo_cookie": (200, ""),
    "answer_and_close": (200, ""),
    "healthy": (200, ""),
}
SUCCESS = "Message was pushed successfully."


@dataclasses.dataclass(frozen=True)
class Aftermath:
    """The result once every endpoint had answered.

    Attributes:
        statuses: By subscriber.
        requests: Paths requested from the hostile endpoint.
    """

    statuses: dict[str, dict[str, Any]]
    requests: list[str]


@pytest.fixture(scope="module")
def aftermath(stack: RunningStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aftermath]:
    """Push one message to all of them at once."""
    project, queue = ProjectClient.default(stack), unique("hostile")
    authority = Authority(tmp_path_factory.mktemp("authority"))
    with (
        Recorder() as recorder,
        HostileEndpoint(BEHAVIOURS, before_body=BEFORE_BODY, host="0.0.0.0") as plain,
        HostileEndpoint(BEHAVIOURS, tls=authority.server("127.0.0.1")) as unknown_authority,
        HostileEndpoint(BEHAVIOURS, tls=authority.server("127.0.0.1", expired=True, trusted=False)) as expired,
        HostileEndpoint(BEHAVIOURS, greeting=b"220 mail.example ESMTP\r\n") as mail,
        unaccepting_port() as unaccepting,
    ):
        # Each has an address of its own: what one does to its connections is nothing to the others.
        names = [
            *(each for each in BEHAVIOURS if each not in ("status", "odd")),
            *(each for each in OUTCOMES if "/" in each),
        ]
        urls = {name: plain.url(name, host=f"127.0.1.{number}") for number, name in enumerate(names, 1)}
        urls |= {
            "unknown authority": unknown_authority.url("healthy"),
            "expired": expired.url("healthy"),
            "tls to plain": plain.url("healthy", host="127.0.0.1").replace("http:", "https:"),
            "plain to tls": unknown_authority.url("healthy").replace("https:", "http:"),
            "mail": mail.url("healthy"),
            "unaccepting": f"http://127.0.0.1:{unaccepting}/",
            "unknown name": "http://nowhere.invalid/",
        }
        quick = recorder.endpoint()
        subscribers = [{"name": name, "url": url, "timeout": TIMEOUT_S} for name, url in urls.items()]
        project.make_push(queue, *subscribers, {"name": "quick", "url": quick.url}, retries=0)
        [message_id] = project.post(queue, "x" * 100)
        quick.wait()
        deadline = time.monotonic() + 240
        statuses = project.statuses(queue, message_id)
        while any("status_code" not in each for each in statuses) and time.monotonic() < deadline:
            time.sleep(0.5)
            statuses = project.statuses(queue, message_id)
        # The function goes on as before
        again = unique("after")
        project.make_push(again, quick)
        project.post(again, "after")
        assert quick.wait(2)[1].body == b"after"
        yield Aftermath(
            statuses={each["name"]: each for each in statuses},
            requests=[request.path for request in plain.requests],
        )


@pytest.mark.parametrize("name", OUTCOMES)
def test_what_an_endpoint_does_ends_as_a_status(aftermath: Aftermath, name: str) -> None:
    code, message = OUTCOMES[name]
    status = aftermath.statuses[name]
    # On a machine that is too busy to read that much in time, an endless answer ends by the clock.
    allowed = {message or SUCCESS, TIMED_OUT} if name.startswith("endless_") else {message or SUCCESS}
    assert status["status_code"] == code
    assert status["msg"] in allowed
    assert status["tries"] == 1


def test_every_endpoint_was_tried_once_and_none_twice(aftermath: Aftermath) -> None:
    # Given all behaviours, including those that can end in several ways
    assert {name.partition("/")[0] for name in aftermath.statuses} >= BEHAVIOURS.keys()
    assert {each["tries"] for each in aftermath.statuses.values()} == {1}
    # Then none led the hub to ask twice, or elsewhere
    for name in OUTCOMES:
        assert aftermath.requests.count(f"/{name}") <= 1, name


def test_broken_connections_are_told(aftermath: Aftermath) -> None:
    for name in ("reset", "reset_in_body", "garbage", "bad_chunk_size", "negative_chunk"):
        assert (aftermath.statuses[name]["status_code"], bool(aftermath.statuses[name]["msg"])) == (0, True)
    for name in ("hostile_reason",):
        message = aftermath.statuses[name]["msg"]
        assert aftermath.statuses[name]["status_code"] == 500
        assert message.isprintable()
        assert len(message) <= 200


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("unknown authority", "The certificate of 127.0.0.1 is not valid"),
        ("expired", "The certificate of 127.0.0.1 is not valid"),
        ("tls to plain", ""),
        ("plain to tls", ""),
        ("mail", ""),
        ("unaccepting", "did not accept a connection in time"),
        ("unknown name", "nowhere.invalid cannot be resolved"),
    ],
)
def test_what_cannot_be_spoken_with_is_told(aftermath: Aftermath, name: str, told: str) -> None:
    status = aftermath.statuses[name]
    assert status["status_code"] == 0
    assert status["msg"]
    assert told in status["msg"]


def test_the_neighbours_notice_nothing(aftermath: Aftermath) -> None:
    assert aftermath.statuses["quick"]["status_code"] == 200
