"""Pushes of the running hub, as subscribers on this machine see them (IronMQ v3 sections 3 to 5).

All run side by side.
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from urllib.parse import quote

import pytest
import requests
from tests.hostile import Peer
from tests.stack.endpoints import Endpoint, Push, Recorder, acknowledging, redirecting, slowly
from tests.stack.project import DELAY_S, ProjectClient, unique, until
from tests.stack.running import RunningStack
from tests.stack.side_by_side import SCENARIO_SECONDS, SideBySide

pytestmark = pytest.mark.stack

UNHURRIED_S = 40
"""A ``retries_delay`` for subscribers that acknowledge: calls to the hub take seconds on a machine that is busy."""
EARLY_S = 0.05
"""How far the clocks of test and hub may differ, seconds."""


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


def assert_spaced(pushes: list[Push], answered_after_s: float = 0.0) -> None:
    """See that each push comes so long after the one before was answered, which takes at least that long.

    (When the answer was sent is known too late on a busy machine: its thread may wait for a processor after that.)
    """
    for before, after in pairwise(pushes):
        assert after.at - before.at >= answered_after_s + DELAY_S - EARLY_S


def no_more_than(endpoint: Endpoint, count: int, seconds: float = DELAY_S + 3.0) -> None:
    """Check that no further push arrives."""
    time.sleep(seconds)
    assert len(endpoint.pushes) == count


@scenarios.test
def test_the_request_on_the_wire(stage: Stage) -> None:
    # Given a subscriber with nothing special about it, on a queue whose name needs encoding
    queue = f"{unique('wire')} a+b:c%2Fd é"
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
def test_multicast_retries_only_who_failed(stage: Stage) -> None:
    # Given a healthy subscriber, one that fails twice, one that always fails slowly, and one that refuses connections
    healthy, flaky = stage.recorder.endpoint(200), stage.recorder.endpoint(500, 404, 204)
    dead = stage.recorder.endpoint(slowly(1.0, 503))
    queue = unique("multicast")
    stage.project.make_push(queue, healthy, flaky, dead, "http://127.0.0.1:9/nobody", retries=2)
    # When a message is posted
    [message_id] = stage.project.post(queue, "x")
    # Then its statuses are there at once
    at_once = stage.project.statuses(queue, message_id)
    assert [each["subscriber_name"] for each in at_once] == ["s0", "s1", "s2", "s3"]
    # And every delivery ends as expected
    final = stage.project.wait_codes(queue, message_id, [200, 204, 503, 0], [1, 3, 3, 3])
    assert [each["retries_remaining"] for each in final] == [2, 0, 0, 0]
    assert final[0]["msg"] == "Message was pushed successfully."
    assert "refused" in final[3]["msg"]
    # And tries are spaced from the end of one to the beginning of the next
    assert_spaced(flaky.wait(3))
    assert_spaced(dead.wait(3), answered_after_s=1.0)
    # And each try has a reservation of its own, for the same message
    assert len({push.reservation["reservation_id"] for push in dead.pushes}) == 3
    assert {push.message_id for push in [*healthy.pushes, *flaky.pushes, *dead.pushes]} == {message_id}
    # And that was all
    no_more_than(dead, 3)
    assert (len(healthy.pushes), len(flaky.pushes)) == (1, 3)
    info = stage.project.info(queue)
    assert (info["size"], info["total_messages"]) == (0, 1)


@scenarios.test
def test_unicast_asks_the_next_at_once_and_all_of_them_are_one_try(stage: Stage) -> None:
    # Given three subscribers that fail in the first round, one of which accepts in the second
    endpoints = [stage.recorder.endpoint(500), stage.recorder.endpoint(501), stage.recorder.endpoint(502, 200)]
    queue = unique("unicast")
    stage.project.make_push(queue, *endpoints, type="unicast", retries=1)
    # When a message is posted
    [message_id] = stage.project.post(queue, "x")
    endpoints[2].wait(2)
    # Then each is asked in the first round, and rounds are spaced
    first_round = sorted((endpoint.pushes[0] for endpoint in endpoints), key=lambda push: push.at)
    second_round = [push for endpoint in endpoints for push in endpoint.pushes[1:]]
    assert min(push.at for push in second_round) - first_round[-1].at >= DELAY_S - EARLY_S
    # And after the success nobody else is asked
    stage.project.wait_codes(queue, message_id, [500, 501, 200])
    before = [len(endpoint.pushes) for endpoint in endpoints]
    assert before[2] == 2
    no_more_than(endpoints[2], 2)
    assert [len(endpoint.pushes) for endpoint in endpoints] == before


@scenarios.test
def test_acknowledging_after_a_202(stage: Stage) -> None:
    # Given subscribers that answer 202
    endpoints = [stage.recorder.endpoint(202) for _ in range(4)]
    queue = unique("acknowledged")
    stage.project.make_push(queue, *endpoints, retries=3, retries_delay=UNHURRIED_S)
    [message_id] = stage.project.post(queue, "x")
    by_body, by_url, by_token, as_iron_does = [endpoint.wait()[0] for endpoint in endpoints]
    # When they acknowledge in each way there is
    answers = [
        by_body.acknowledge(),
        by_url.acknowledge(by_url=True),
        by_token.acknowledge(token=stage.project.token),
        as_iron_does.acknowledge(body={"id": message_id, **as_iron_does.reservation}),
    ]
    # Then all count
    assert [(answer.status_code, answer.json()) for answer in answers] == [(200, {"msg": "Deleted"})] * 4
    assert {answer.headers["Content-Type"] for answer in answers} == {"application/json"}
    assert stage.project.codes(queue, message_id) == [200] * 4
    # And a second time is no error
    assert by_url.acknowledge(by_url=True).status_code == 200
    # And nothing is pushed again, and the message stays readable
    no_more_than(endpoints[0], 1, seconds=UNHURRIED_S + 1)
    assert [len(endpoint.pushes) for endpoint in endpoints] == [1] * 4
    message = stage.project.message(queue, message_id)
    assert [each["status_code"] for each in message["push_statuses"]] == [200] * 4


@scenarios.test
def test_acknowledging_while_the_push_is_open(stage: Stage) -> None:
    # Given subscribers that acknowledge before they answer, whatever they answer then
    answers: list[requests.Response] = []
    # (and have time to, before they are given up)
    endpoints = [
        stage.recorder.endpoint(acknowledging(202, answers, pause=0.5)),
        stage.recorder.endpoint(acknowledging(202, answers, by_url=True)),
        stage.recorder.endpoint(acknowledging(200, answers)),
        stage.recorder.endpoint(acknowledging(500, answers)),
    ]
    queue = unique("early")
    subscribers = [{"name": f"s{place}", "url": each.url, "timeout": 40} for place, each in enumerate(endpoints)]
    stage.project.make_push(queue, *subscribers, retries=2, retries_delay=UNHURRIED_S)
    [message_id] = stage.project.post(queue, "x")
    # Then all are settled after one push
    for endpoint in endpoints:
        endpoint.wait()
    until(lambda: len(answers) == 4, 120, lambda: f"{answers}")
    no_more_than(endpoints[0], 1, seconds=UNHURRIED_S + 1)
    assert [answer.status_code for answer in answers] == [200] * 4
    assert [len(endpoint.pushes) for endpoint in endpoints] == [1] * 4
    assert stage.project.codes(queue, message_id) == [200] * 4
    assert stage.project.tries(queue, message_id) == [1] * 4


@scenarios.test
def test_redirects_are_failures_and_are_not_followed(stage: Stage) -> None:
    # Given subscribers that redirect to one that would accept
    goal = stage.recorder.endpoint()
    redirects = [stage.recorder.endpoint(redirecting(status, goal.url)) for status in (301, 302, 303, 307, 308)]
    queue, errors = unique("redirects"), unique("redirects-errors")
    stage.project.make_push(queue, *redirects, retries=0, error_queue=errors)
    [message_id] = stage.project.post(queue, "x")
    # Then the code is recorded, in the statuses and in the error queue, and the redirect's target was never called
    stage.project.wait_codes(queue, message_id, [301, 302, 303, 307, 308], [1] * 5)
    messages = stage.project.wait_messages(errors, 5)
    codes = sorted(json.loads(each["body"])["subscribers"][0]["code"] for each in messages)
    assert codes == [301, 302, 303, 307, 308]
    assert goal.pushes == []


@scenarios.test
def test_error_queue_of_a_multicast_queue(stage: Stage) -> None:
    # Given a queue with two failing subscribers, and an error queue that does not exist
    queue, errors = unique("failing"), f"{unique('errors')} of failing"
    urls = [stage.recorder.endpoint(status) for status in (200, 500, 404)]
    stage.project.make_push(queue, *urls, retries=1, error_queue=errors)
    assert stage.project.call("GET", f"/queues/{quote(errors)}").status_code == 404
    # When a message with headers is posted
    [message_id] = stage.project.post(queue, "cuerpo – ½", push_headers={"X-Custom": "abc"})
    # Then there is one error message for each of the two
    messages = stage.project.wait_messages(errors, 2)
    shown = sorted((json.loads(each["body"]) for each in messages), key=lambda each: each["subscribers"][0]["name"])
    for fields, (name, code, endpoint) in zip(shown, [("s1", 500, urls[1]), ("s2", 404, urls[2])], strict=True):
        assert fields["source_msg_id"] == message_id
        assert fields["body"] == "cuerpo – ½"
        assert fields["headers"] == {"X-Custom": "abc"}
        assert fields["queue"] == queue
        [subscriber] = fields["subscribers"]
        assert subscriber == {"name": name, "url": endpoint.url, "code": code, "msg": "As Told"}
    # And there are no more, the error queue is a pull queue, and the original is readable
    time.sleep(2)
    info = stage.project.info(errors)
    assert (info["total_messages"], info["type"]) == (2, "pull")
    message = stage.project.message(queue, message_id)
    assert message["body"] == "cuerpo – ½"
    assert [each["status_code"] for each in message["push_statuses"]] == [200, 500, 404]
    assert [each["retries_remaining"] for each in message["push_statuses"]] == [1, 0, 0]


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
def test_a_delayed_message_is_pushed_when_it_is_due(stage: Stage) -> None:
    queue, endpoint = unique("delayed"), stage.recorder.endpoint()
    stage.project.make_push(queue, endpoint)
    posted_at = time.monotonic()
    [late] = stage.project.post(queue, "late", delay=4)
    pushes = endpoint.wait()
    assert pushes[0].message_id == late
    assert pushes[0].at - posted_at >= 4 - EARLY_S


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
