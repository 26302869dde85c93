"""``pushhub listen``: everything is forwarded, in order.

Acknowledged notifications are not forwarded again, whatever fails in between.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from cli.messages.listening import Listening, Notification, Target, signing_key, waits
from cli.messages.signatures import Signed, findings
from cli.rest import Refused, Rest, Unreachable
from local.place import REPOSITORY
from tests.cli.consumers_door import Receiver, Topic, receiver, topic
from tests.cli.served_hub import ServedHub
from tests.engine.world import PROJECT

NOW = 1_795_000_000


@pytest.fixture
def topic_here() -> Iterator[Topic]:
    with topic() as created:
        yield created


@pytest.fixture
def program() -> Iterator[Receiver]:
    with receiver() as created:
        yield created


class Listener:
    """A listener in its own thread; it ends once this many are acknowledged."""

    def __init__(self, hub: ServedHub, here: Topic, program: Receiver, *, until: int, **options: Any) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.stopped = threading.Event()
        self._until = until
        target = Target(program.url, "orders", key=options.pop("key", b""), now=lambda: NOW)
        self._listening = Listening(
            Rest(hub.base_url, PROJECT, "t0ken"),
            topic="orders",
            subscriber="me",
            post=target.post,
            say=self._say,
            stopped=self.stopped,
            websocket_url=here.url,
            longest_wait=0.01,
            **options,
        )

    def _say(self, event: str, fields: dict[str, Any]) -> None:
        self.said.append((event, fields))
        if [name for name, _ in self.said].count("acknowledged") == self._until:
            self.stopped.set()

    def run(self) -> list[str]:
        self._listening.run()
        return [name for name, _ in self.said]


def test_each_is_forwarded_with_what_is_known_of_it_and_acknowledged(
    hub: ServedHub, topic_here: Topic, program: Receiver
) -> None:
    topic_here.publish(3)
    key = b"k" * 24
    Listener(hub, topic_here, program, until=3, key=key).run()
    assert program.numbers == [0, 1, 2]
    assert topic_here.done.wait(90)
    assert topic_here.acknowledged == list(topic_here.frames)
    # And the request says where it comes from, and is signed
    headers, body = program.got[1]
    reported = {name: value for name, value in headers.items() if name.startswith("Pushhub-")}
    assert reported == {
        "Pushhub-Topic": "orders",
        "Pushhub-Id": "A0000001",
        "Pushhub-Action": "CREATE",
        "Pushhub-Type": "events",
        "Pushhub-Source": "source 1",
    }
    request = Signed(
        message_id=headers["Webhook-Id"],
        timestamp=headers["Webhook-Timestamp"],
        signature=headers["Webhook-Signature"],
        body=body,
    )
    secret = "whsec_" + base64.b64encode(key).decode()
    assert signing_key(secret) == key
    assert not [each for each in findings(request, secret, NOW) if each.wrong]


def test_a_topic_that_no_subscription_has_is_told(hub: ServedHub, topic_here: Topic, program: Receiver) -> None:
    topic_here.publish(1)
    listener = Listener(hub, topic_here, program, until=1)
    assert listener.run()[0] == "unknown"
    # And it is not, once there is one
    rest = Rest(hub.base_url, PROJECT, "t0ken")
    rest.call("POST", "/notification2/subscriptions", {"context": "tenant", "subscription": "orders"})
    topic_here.publish(1)
    assert "unknown" not in Listener(hub, topic_here, program, until=1).run()


@pytest.mark.parametrize("odd", ["naïve", "\N{SNOWMAN}", "a\rb", "\x85", "\ud800", " a ", "  "])
def test_what_no_header_can_hold_is_forwarded_all_the_same(program: Receiver, odd: str) -> None:
    frame = f"A{odd}\n/tenant/{odd}/{odd}\n{odd}\n\n" + '{"n": 1}'
    target = Target(program.url, "orders" if odd == "\ud800" else odd, now=lambda: NOW)
    if odd == "\ud800":
        # No frame holds half a character; its body could
        frame = "A\n/tenant/t/s\nCREATE\n\n" + odd
    program.answers = [200]
    assert target.post(Notification.of_frame(frame)) == 200
    assert len(program.got) == 1


def test_what_is_not_taken_is_tried_again_before_what_comes_after_it(
    hub: ServedHub, topic_here: Topic, program: Receiver
) -> None:
    topic_here.publish(3)
    program.answers = [200, 500, 302, 404, 200]
    Listener(hub, topic_here, program, until=3).run()
    assert program.numbers == [0, 1, 1, 1, 1, 2]


def test_what_is_not_taken_may_be_skipped(hub: ServedHub, topic_here: Topic, program: Receiver) -> None:
    topic_here.publish(2)
    program.answers = [500]
    Listener(hub, topic_here, program, until=2, skip_failed=True).run()
    assert program.numbers == [0, 1]


def test_it_goes_on_where_it_was_when_the_connection_breaks(
    hub: ServedHub, topic_here: Topic, program: Receiver
) -> None:
    topic_here.publish(20)
    topic_here.break_after = 7
    said = Listener(hub, topic_here, program, until=20).run()
    assert program.numbers == list(range(20))
    assert (topic_here.connections, said.count("disconnected")) == (2, 1)


def test_what_was_taken_but_not_acknowledged_is_acknowledged_later_and_not_forwarded_again(
    hub: ServedHub, topic_here: Topic, program: Receiver
) -> None:
    """Given a connection that breaks while the program handles a message, then its answer still counts."""
    topic_here.publish(2)
    listener = Listener(hub, topic_here, program, until=2)
    real = listener._listening.post
    cut = iter([True, False, False])

    def post(notification: Notification) -> int:
        status = real(notification)
        if next(cut):
            # The first acknowledgement is made on a closed connection
            broken = topic_here.open.pop()
            broken.close()
        return status

    listener._listening.post = post
    listener.run()
    assert program.numbers == [0, 1]
    assert topic_here.done.wait(90)
    assert topic_here.acknowledged == list(topic_here.frames)


def test_a_wrong_token_and_a_hub_that_is_not_there_end_it(hub: ServedHub, topic_here: Topic, program: Receiver) -> None:
    listener = Listener(hub, topic_here, program, until=1)
    listener._listening.rest = Rest(hub.base_url, PROJECT, "wrong")
    with pytest.raises(Refused):
        listener.run()
    listener._listening.rest = Rest("http://127.0.0.1:9", PROJECT, "t0ken")
    with pytest.raises(Unreachable):
        listener.run()


def test_waits_double_up_to_the_longest() -> None:
    assert list(islice(waits(5), 5)) == [1, 2, 4, 5, 5]


@pytest.mark.parametrize("frame", ["", "a\nb\n\nbody", '{"message": "Internal server error"}'])
def test_a_frame_that_is_no_notification_is_none(frame: str) -> None:
    with pytest.raises(ValueError, match="no notification"):
        Notification.of_frame(frame)


def start(hub: ServedHub, here: Topic, program: Receiver) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "cli", "--json", "listen", "orders", "--subscriber", "me"]
    return subprocess.Popen(
        [*command, "--forward", program.url, "--websocket-url", here.url],
        cwd=REPOSITORY,
        env={**os.environ, **hub.environment},
        stdout=subprocess.DEVNULL,
    )


def test_killed_in_the_middle_of_five_hundred_it_loses_nothing_and_repeats_nothing_acknowledged(
    hub: ServedHub, topic_here: Topic, program: Receiver
) -> None:
    # Given 500 messages, and a listener that is killed while it forwards them
    topic_here.publish(500)
    program.wake_at = 200
    first = start(hub, topic_here, program)
    assert program.seen.wait(60)
    first.kill()
    first.wait()
    acknowledged, forwarded = list(topic_here.acknowledged), len(program.got)
    assert 0 < len(acknowledged) < 500
    # When another is started, until all is acknowledged
    second = start(hub, topic_here, program)
    assert topic_here.done.wait(60)
    second.terminate()
    second.wait()
    assert second.returncode == 0
    # Then each was forwarded at least once, and none again that was acknowledged before
    assert set(program.numbers) == set(range(500))
    again = program.numbers[forwarded:]
    known = {json.loads(topic_here.frames[each].partition("\n\n")[2])["n"] for each in acknowledged}
    assert not known & set(again)
    assert again == sorted(again)
