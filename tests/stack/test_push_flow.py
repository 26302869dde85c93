"""Pushes of the running hub, as subscribers on this machine see them (IronMQ v3 sections 3 to 5): what is on the wire,
and what waits and races for real. Rules of retries, rounds, error queues and acknowledgements are in tests/engine and
tests/ironmq.

All run side by side.
"""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

import pytest
import requests
from tests.hostile import Peer
from tests.stack.endpoints import Push, Recorder, slowly
from tests.stack.project import ProjectClient, unique
from tests.stack.running import RunningStack
from tests.stack.side_by_side import SCENARIO_SECONDS, SideBySide

pytestmark = pytest.mark.stack


@dataclass(frozen=True)
class Stage:
    """What a scenario needs: the default project, and endpoints."""

    project: ProjectClient
    recorder: Recorder


scenarios = SideBySide[Stage]()


@pytest.fixture(scope="module")
def together(request: pytest.FixtureRequest, stack: RunningStack) -> Iterator[None]:
    project = ProjectClient.default(stack)
    with Recorder() as recorder:
        warm_up(project, recorder)
        with scenarios.running(request, Stage(project, recorder)):
            yield


def warm_up(project: ProjectClient, recorder: Recorder) -> None:
    """Get the first cold starts over with: they take seconds on a busy machine, and these tests measure time."""
    queue, endpoint = unique("warm"), recorder.endpoint(slowly(1.0, 500))
    project.make_push(queue, *(f"{endpoint.url}?{number}" for number in range(30)), retries=1)
    [message_id] = project.post(queue, "x")
    project.wait_codes(queue, message_id, [500] * 30, [2] * 30, seconds=SCENARIO_SECONDS)


@scenarios.test
def test_the_request_on_the_wire(stage: Stage) -> None:
    # Given a subscriber with nothing special about it, on a queue whose name needs encoding
    queue = f"{unique('wire')} a+b:c&d é"
    endpoint = stage.recorder.endpoint(path="wire/in?auth=TOKEN&x=a%20b")
    stage.project.make_push(queue, {"name": "my subscriber", "url": endpoint.url})
    body = '{"grüße": "żółć \U0001f6f0", "lines": "a\r\nb\t\x00"}'
    # When a message is posted
    [message_id] = stage.project.post(queue, body)
    [push] = endpoint.wait()
    # Then its bytes arrive unchanged, with exactly these headers
    assert push.received.head.partition(b"\r\n")[0] == b"POST /wire/in?auth=TOKEN&x=a%20b HTTP/1.1"
    assert push.body == body.encode()
    headers = push.headers
    reservation = headers.pop("Iron-Reservation-Id")
    assert len(reservation) == 32
    assert set(reservation) <= set("0123456789abcdef")
    url = stage.project.url(f"/queues/{quote(queue, safe='')}/messages/{message_id}")
    assert headers == {
        "Host": f"127.0.0.1:{stage.recorder.port}",
        "Content-Length": str(len(body.encode())),
        "Accept-Encoding": "identity",
        "User-Agent": "IronMQ Pusherd",
        "Content-Type": "text/plain; encoding=utf-8",
        "Iron-Message-Id": message_id,
        "Pushhub-Hops": "1",
        "Pushhub-Descendants": "1000",
        "Iron-Subscriber-Name": "my subscriber",
        "Iron-Subscriber-Message-Url": f"{url}?reservation_id={reservation}&subscriber_name=my%20subscriber",
    }
    # And a client can use the message's URL unchanged
    found = requests.get(push.message_url.partition("?")[0], params={"oauth": stage.project.token}, timeout=40)
    assert found.json()["message"]["body"] == body


@scenarios.test
def test_timeouts_of_subscribers(stage: Stage) -> None:
    # Given slow subscribers: one with too short a timeout, one with the default 10 s, one with a longer one
    impatient = stage.recorder.endpoint(slowly(10.0))
    standard = stage.recorder.endpoint(slowly(25.0))
    patient = stage.recorder.endpoint(slowly(11.0))
    queue = unique("timeouts")
    stage.project.make_push(
        queue,
        {"name": "impatient", "url": impatient.url, "timeout": 1},
        {"name": "standard", "url": standard.url},
        {"name": "patient", "url": patient.url, "timeout": 40},
        retries=0,
    )
    [message_id] = stage.project.post(queue, "x")
    # Then only the last is delivered to, and the others are recorded as failures without a code
    final = stage.project.wait_codes(queue, message_id, [0, 0, 200], [1, 1, 1])
    assert [each["msg"] for each in final[:2]] == [f"No complete answer within {seconds} s" for seconds in (1, 10)]
    assert stage.project.info(queue)["push"]["subscribers"][2]["timeout"] == 40


@scenarios.test
def test_a_slow_subscriber_costs_its_neighbours_nothing(stage: Stage) -> None:
    # Given a subscriber that does not answer before it is let go, and quick ones
    let_go = threading.Event()

    def hold(peer: Peer, _push: Push) -> bool:
        let_go.wait(SCENARIO_SECONDS)
        return peer.answer()

    slow, quick = stage.recorder.endpoint(hold), [stage.recorder.endpoint() for _ in range(4)]
    queue = unique("neighbours")
    stage.project.make_push(queue, slow, *quick)
    # When messages are posted
    try:
        stage.project.post(queue, "a", "b", "c")
        # Then the quick ones have all messages although the slow one has not answered once
        for endpoint in quick:
            endpoint.wait(3, seconds=SCENARIO_SECONDS)
        assert not any(push.answered_at for push in slow.pushes)
    finally:
        let_go.set()


@scenarios.test
def test_large_bodies_come_byte_for_byte(stage: Stage) -> None:
    # Given a body of 3 MiB of text, and one of as many bytes that are not text
    queue, endpoint = unique("large"), stage.recorder.endpoint()
    stage.project.make_push(queue, {"name": "s", "url": endpoint.url, "timeout": 30})
    noise = random.Random(20261121)
    text = "".join(noise.choices('abcdefgh ,."\\\n½ż€\U0001f6f0', k=2_300_000))
    binary = noise.randbytes(3 * 1024 * 1024)
    # When they are posted
    [text_id] = stage.project.post(queue, text)
    headers = {"Content-Type": "application/octet-stream", "X-Subscribers-Kind": "noise"}
    answer = stage.project.send("POST", f"/queues/{queue}/webhook", data=binary, headers=headers)
    assert (answer.status_code, answer.json()["msg"]) == (201, "Messages put on queue.")
    # Then they arrive unchanged
    pushed = {push.message_id: push for push in endpoint.wait(2, seconds=SCENARIO_SECONDS)}
    assert len(text.encode()) > 3 * 1024 * 1024
    for message_id, body in ((text_id, text.encode()), (answer.json()["ids"][0], binary)):
        push = pushed[message_id]
        assert hashlib.sha256(push.body).hexdigest() == hashlib.sha256(body).hexdigest()
        assert push.headers["Content-Length"] == str(len(body))
    assert {name.lower(): value for name, value in push.headers.items()}["kind"] == "noise"
    # And they can be read
    assert stage.project.message(queue, text_id)["body"] == text
